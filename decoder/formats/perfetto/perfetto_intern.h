/*
 * perfetto_intern.h - interned texts and stacks of Perfetto's sequences.
 *
 * A sequence defines a text, frame or stack once and then refers to it by number, until it clears
 * its state.  A cleared sequence gets a new generation, in which older numbers are undefined.
 * Texts are stored once for the whole trace, as they recur in every generation.
 */
#ifndef TW_PERFETTO_INTERN_H
#define TW_PERFETTO_INTERN_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

enum tw_perfetto_kind {
	TW_PERFETTO_EVENT_NAME, /* a text's number, like the next four */
	TW_PERFETTO_CATEGORY,
	TW_PERFETTO_FUNCTION,
	TW_PERFETTO_PATH,
	TW_PERFETTO_BUILD_ID, /* its hex digits */
	TW_PERFETTO_MAPPING,  /* the build id's text << 32 | the path's */
	TW_PERFETTO_FRAME,    /* a symbol of the sink */
	TW_PERFETTO_STACK,    /* index of its first frame << 32 | number of frames */
	TW_PERFETTO_TASK,     /* pid << 32 | tid */
	/* of the whole trace, by process or thread id: */
	TW_PERFETTO_PROCESS,     /* a text's number */
	TW_PERFETTO_THREAD,      /* pid << 32 | a text's number */
	TW_PERFETTO_SAMPLE_TRACK /* a handle of the sink */
};

struct tw_perfetto_scope { /* the scope of a number */
	uint32_t sequence, generation;
};

struct tw_perfetto_text {
	const char *ptr;
	uint32_t len;
	uint32_t sym; /* at the sink; 0 not requested yet */
};

struct tw_perfetto_number {
	uint64_t iid, value;
	uint32_t owner; /* sequence and kind; 0 free */
	uint32_t generation;
};

enum { TW_PERFETTO_RECENT = 4096 };

struct tw_perfetto_intern {
	struct tw_arena *arena;
	struct tw_sink *sink;
	struct tw_perfetto_number *numbers; /* by hash */
	uint32_t n_numbers, cap_numbers;
	struct tw_perfetto_number recent[TW_PERFETTO_RECENT]; /* copies, one per low bits */
	struct tw_perfetto_text *texts;                       /* number - 1 */
	uint32_t *slots;                                      /* number by hash; 0 free */
	uint32_t n_texts, cap_texts;
	uint64_t bytes, max_bytes;
	uint32_t max_name;
	uint64_t salt; /* of the hashes */
};

void tw_perfetto_intern_init(struct tw_perfetto_intern *t, struct tw_arena *a,
        const struct tw_limits *limits, struct tw_sink *sink);

/* The number (≥ 1) of a text; 0 at the limit, which is counted.  False: out of memory. */
bool tw_perfetto_intern_text(
        struct tw_perfetto_intern *t, struct tw_str text, uint64_t offset, uint32_t *ret);
/* A text by its number; "" for 0. */
struct tw_str tw_perfetto_intern_str(const struct tw_perfetto_intern *t, uint32_t number);
/* Its symbol at the sink; 0 for 0 and at the sink's limit. */
uint32_t tw_perfetto_intern_sym(struct tw_perfetto_intern *t, uint32_t number);

/* Defines a number; the last definition wins.  False: out of memory. */
bool tw_perfetto_intern_set(struct tw_perfetto_intern *t, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid, uint64_t value);
/* Looks a number up.  False: undefined. */
bool tw_perfetto_intern_get(struct tw_perfetto_intern *t, struct tw_perfetto_scope scope,
        enum tw_perfetto_kind kind, uint64_t iid, uint64_t *ret);

#endif
