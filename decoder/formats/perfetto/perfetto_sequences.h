/*
 * perfetto_sequences.h - what each packet sequence of a Perfetto trace has for its own.
 */
#ifndef TW_PERFETTO_SEQUENCES_H
#define TW_PERFETTO_SEQUENCES_H

#include "decoder/formats/perfetto/perfetto_clocks.h"
#include "decoder/formats/perfetto/perfetto_intern.h"

struct tw_perfetto_sequence {
	uint32_t id; /* 0: of packets that have none */
	struct tw_perfetto_scope scope;
	bool seen, lost; /* lost: what it interned is not to be trusted */
	bool has_track;
	uint32_t clock; /* 0: the trace's */
	uint64_t track;
	struct tw_perfetto_own_clock own[TW_PERFETTO_OWN_CLOCKS];
	/* ThreadDescriptor of old: the thread of all its events, and where their times begin */
	uint32_t pid;
	uint64_t tid;
	int64_t now_us;
};

struct tw_perfetto_sequences {
	struct tw_arena *arena;
	struct tw_perfetto_sequence *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, cap;
	uint64_t salt; /* of their hash */
	struct tw_perfetto_sequence none;
};

/* Valid until the next call.  Past a bound all new ones are that of no sequence.  NULL: no memory.
 */
struct tw_perfetto_sequence *tw_perfetto_sequences_get(
        struct tw_perfetto_sequences *s, uint32_t id);

#endif
