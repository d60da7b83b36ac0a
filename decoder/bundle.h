/*
 * bundle.h - decodes an archive of a recording's files into one trace.
 *
 * The archive is read several times from its start: first to recognise its files by content, then
 * the files that contain names, then the trace, then its side files, whatever their order in the
 * archive.  Files of no known format are counted (entry_skipped).  The largest of the device's own
 * traces, with Perfetto's format preferred, is treated like a form's part `system`.
 * Thread: one decode job.
 */
#ifndef TW_BUNDLE_H
#define TW_BUNDLE_H

#include "decoder/base/unzip.h"
#include "decoder/decoder.h"

/* Side files of the trace; each has its own clock. */
enum tw_bundle_side { TW_BUNDLE_SIDE, TW_BUNDLE_ANR, TW_BUNDLE_SYSTEM };

struct tw_bundle_task {
	struct tw_arena *arena;
	const struct tw_limits *limits;
	struct tw_sink *sink;
	bool without_system; /* a system trace was uploaded separately: those in the archive are
	                      * ignored */
	void *arg;           /* passed to the functions below */
	/* Passes the whole input, from its start, to `push` on each call. */
	enum tw_status (*feed)(void *arg, tw_bytes_fn push, void *to, struct tw_err *err);
	/* Later events come from a file of this kind; may be NULL. */
	void (*side)(void *arg, enum tw_bundle_side what);
	/* Receives the bytes of the device's own trace as they are in the archive; may be NULL. */
	tw_bytes_fn keep;
};

/* Whether an upload with these first bytes (possibly compressed) is a bundle. */
bool tw_bundle_is(const void *head, size_t n, const struct tw_limits *limits);

/* *ret_format is the format of the contained trace, *ret_bytes the size of its files.
 * TW_UNSUPPORTED if no file is a trace. */
enum tw_status tw_bundle_decode(const struct tw_bundle_task *task,
        const struct tw_format **ret_format, uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

#endif
