/*
 * format.h - the interface of an input format, and the list of all (formats.def).
 *
 * A format is a push state machine: bytes in, split anywhere; events out to the sink.  Splitting
 * the input at any byte changes no event, count or error offset (I3).  A format fails only if
 * nothing can be read; damage after the first readable record is a repair, not an error (I2).
 * Formats use the sink and never each other.  Thread: one decode job.
 */
#ifndef TW_FORMAT_H
#define TW_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

enum { TW_PROBE_BYTES = 4096 };

struct tw_format {
	const char *name;  /* "btrace2": the value of format=, in responses and in tests/golden/ */
	const char *title; /* display name */
	/* The multipart parts it is accepted in, separated by blanks: "trace", "trace atrace" */
	const char *part;
	/* How likely (0 no ... 100 certain) these first bytes of the decoded input, ≤
	 * TW_PROBE_BYTES, are this format.  Unsupported older or newer versions count too: push
	 * then refuses them with a message. */
	int (*probe)(const uint8_t *head, size_t len);
	size_t state_size; /* zeroed, from the job's arena */
	/* Called once before the first push. */
	enum tw_status (*start)(void *state, struct tw_arena *a, const struct tw_limits *limits,
	        struct tw_sink *sink, struct tw_err *err);
	enum tw_status (*push)(void *state, const uint8_t *p, size_t n, struct tw_err *err);
	/* The input ended.  `cut`: its compression was truncated or damaged. */
	enum tw_status (*finish)(void *state, bool cut, struct tw_err *err);
	/* After a successful finish: bytes of another format that this one contained, in the arena.
	 * They are recognised and decoded into the same sink, with offsets from 0.  NULL: this
	 * format never contains any; empty: there were none. */
	struct tw_str (*inner)(const void *state);
};

/* All registered formats, in the order of formats.def. */
const struct tw_format *const *tw_formats(size_t *ret_n);
const struct tw_format *tw_format_by_name(struct tw_str name); /* NULL: unknown */
/* Whether it is accepted as this part; part NULL: as any. */
bool tw_format_fits(const struct tw_format *f, const char *part);
/* The format with the highest probe score; NULL if all are 0. */
const struct tw_format *tw_format_probe(const uint8_t *head, size_t len);

#endif
