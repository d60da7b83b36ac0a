/*
 * bundle.h - an archive of a recording's files becomes one trace.
 *
 * The archive is read several times from its start: once to see what its files
 * are, by content; then files that name things, then the trace, then what goes
 * beside it, whatever their order in the archive.  Files that nothing knows are
 * counted (entry_skipped).  The largest of the device's own traces, one in
 * Perfetto's format first, is what a part `system` is in a form.
 * Thread: one decode job.
 */
#ifndef TW_BUNDLE_H
#define TW_BUNDLE_H

#include "decoder/base/unzip.h"
#include "decoder/decoder.h"

/* What goes beside the trace; each has a clock of its own. */
enum tw_bundle_side { TW_BUNDLE_SIDE, TW_BUNDLE_ANR, TW_BUNDLE_SYSTEM };

struct tw_bundle_task {
	struct tw_arena *arena;
	const struct tw_limits *limits;
	struct tw_sink *sink;
	bool without_system; /* it was sent beside the archive: what is in there is left out */
	void *arg;           /* of the functions */
	/* Gives the whole input to `push`, from its start, each time it is asked. */
	enum tw_status (*feed)(void *arg, tw_bytes_fn push, void *to, struct tw_err *err);
	/* What comes to the sink from now on is of this file; may be NULL. */
	void (*side)(void *arg, enum tw_bundle_side what);
	/* The device's own trace, piece by piece, as it stands in the archive; may be NULL. */
	tw_bytes_fn keep;
};

/* Is an upload with these first bytes (as they came, perhaps compressed) a bundle? */
bool tw_bundle_is(const void *head, size_t n, const struct tw_limits *limits);

/* *ret_format is the format of the trace in it, *ret_bytes how large its files are.
 * TW_UNSUPPORTED when no file in it is a trace. */
enum tw_status tw_bundle_decode(const struct tw_bundle_task *task,
        const struct tw_format **ret_format, uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

#endif
