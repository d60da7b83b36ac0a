/*
 * btrace3_facts.h - facts in btrace 3.0's samples other than the stacks.
 *
 * Each sample has a thread's running totals of allocations, faults and switches.  They are emitted
 * as counters of the thread at its first and last sample and in between where they changed, at most
 * every 10 ms: one note per sample would fill the trace.  Waits become notes with their duration,
 * releases of the main thread become wake-ups, frames and scenes become instants.
 */
#ifndef TW_BTRACE3_FACTS_H
#define TW_BTRACE3_FACTS_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

enum tw_btrace3_type {
	TW_BTRACE3_BINDER = 2,
	TW_BTRACE3_JANK = 3,
	TW_BTRACE3_WAIT = 6,
	TW_BTRACE3_PARK = 7,
	TW_BTRACE3_MONITOR = 8,
	TW_BTRACE3_GC = 11,
	TW_BTRACE3_MUTEX = 12,
	TW_BTRACE3_VSYNC = 13,
	TW_BTRACE3_DRAW = 14,
	TW_BTRACE3_ARGUMENT = 15,
	TW_BTRACE3_UNPARK = 17,
	TW_BTRACE3_SCENE = 18,
	TW_BTRACE3_LOAD_LIBRARY = 20,
	TW_BTRACE3_NOTIFY = 22,
	TW_BTRACE3_UNLOCK = 23
};

struct tw_btrace3_totals { /* of a thread so far */
	uint64_t objects, bytes;
	uint32_t faults, switches, forced;
};

struct tw_btrace3_fact { /* a note that is held until time 0 is known */
	int64_t ts_ns, dur_ns;
	uint64_t offset;
	uint32_t track;
	uint32_t type;
	struct tw_btrace3_totals totals;
};

struct tw_btrace3_facts { /* the owner sets arena, sink and max */
	struct tw_arena *arena;
	struct tw_sink *sink;
	uint32_t max;
	struct tw_btrace3_fact *list;
	uint32_t n, cap;
	uint32_t pid;
	int64_t zero_ns;
};

/* A thread released the main thread. */
bool tw_btrace3_is_release(unsigned type);
/* Past the maximum the fact is counted and dropped. */
enum tw_status tw_btrace3_facts_keep(struct tw_btrace3_facts *s, const struct tw_btrace3_fact *f,
        struct tw_err *err) TW_MUST_USE;
/* Emits all facts, once; zero_ns is time 0. */
enum tw_status tw_btrace3_facts_emit(
        struct tw_btrace3_facts *s, uint32_t pid, int64_t zero_ns, struct tw_err *err) TW_MUST_USE;

#endif
