/*
 * format.h - one input format, and the list of all of them (formats.def).
 *
 * A format is a push machine: bytes in, any cut, events out to the sink.
 * Cutting the input at any byte boundaries changes no event, count or error
 * offset (I3).  It fails only when nothing can be read; damage past the first
 * readable record is a repair, not an error (I2).
 * Formats know the sink and never each other.  Thread: one decode job.
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
	const char *name;  /* "btrace2": the word in format=, in answers and in tests/golden/ */
	const char *title; /* for people */
	/* The multipart parts it belongs in, with a blank between: "trace", "trace atrace" */
	const char *part;
	/* How sure (0 no ... 100 certain) these first bytes, ≤ TW_PROBE_BYTES of the decoded
	 * input, are this format.  An old or newer version of it counts: push then refuses it
	 * with words. */
	int (*probe)(const uint8_t *head, size_t len);
	size_t state_size; /* zeroed, from the job's arena */
	/* Called once before the first push. */
	enum tw_status (*start)(void *state, struct tw_arena *a, const struct tw_limits *limits,
	        struct tw_sink *sink, struct tw_err *err);
	enum tw_status (*push)(void *state, const uint8_t *p, size_t n, struct tw_err *err);
	/* The input ended.  `cut`: its compression ended early or was damaged. */
	enum tw_status (*finish)(void *state, bool cut, struct tw_err *err);
	/* After a finish that went well: bytes of another format that this one carried, in the
	 * arena; they are recognised and decoded into the same sink, their offsets counted anew.
	 * NULL: it never carries any; empty: there were none. */
	struct tw_str (*inner)(const void *state);
};

/* All registered formats, in the order of formats.def. */
const struct tw_format *const *tw_formats(size_t *ret_n);
const struct tw_format *tw_format_by_name(struct tw_str name); /* NULL: unknown */
/* May it come as this part?  NULL asks for any. */
bool tw_format_fits(const struct tw_format *f, const char *part);
/* The format with the highest probe score; NULL when all say 0. */
const struct tw_format *tw_format_probe(const uint8_t *head, size_t len);

#endif
