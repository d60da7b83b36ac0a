/*
 * anr_locks.h - who waits for whom in one thread dump.
 *
 * A thread waits for at most one monitor, so the graph has at most one edge out
 * of each node: cycles and chains are walks, with no recursion.  Finding holders
 * is n log n in threads and lock lines (a hash could be made to collide by the
 * input), all else is linear.
 * Pure: indices and numbers in, indices out.  Thread: any.
 */
#ifndef TW_ANR_LOCKS_H
#define TW_ANR_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"

enum tw_anr_how {
	TW_ANR_LOCKED,    /* held in this frame */
	TW_ANR_WANTED,    /* waits to enter */
	TW_ANR_INFLATION, /* the same, seen in the short moment of another state */
	TW_ANR_WAITING,   /* Object.wait: the thread has let go of it */
	TW_ANR_SLEEPING   /* Thread.sleep: its own inner lock */
};

struct tw_anr_lock {          /* one lock line */
	uint64_t object;      /* equal: the same object; 0 unknown */
	uint64_t holder;      /* thread id that the line names, 0 none */
	uint32_t thread;      /* index of the thread whose stack has the line */
	uint32_t type, frame; /* the caller's; not looked at */
	enum tw_anr_how how;
};

struct tw_anr_node {
	uint64_t tid; /* what "held by thread" names; 0 has none */
	bool blocked; /* its state says that it waits for a monitor */
};

enum {
	TW_ANR_NONE = -1, /* waits for nobody */
	TW_ANR_GONE = -2  /* waits for a thread that the dump does not have */
};

struct tw_anr_edge {
	int32_t to;   /* index of a thread, or one of the above */
	int32_t lock; /* index of the line, -1 none */
	bool told;    /* the line names the holder; else found by who has the object locked */
};

struct tw_anr_cycle {
	uint32_t first; /* the member that comes first in the dump; the rest by the edges */
	uint32_t n;
	bool certain; /* all members were blocked: threads are dumped one after the other */
};

struct tw_anr_graph {
	struct tw_anr_edge *edges; /* of each thread */
	uint32_t n;
	struct tw_anr_cycle *cycles; /* each once, in the order of their first members */
	uint32_t n_cycles;
	/* of each thread: where its chain ends, the first member of a cycle when it runs into one;
	 * and how many other threads end there */
	uint32_t *ends, *victims;
	uint32_t *cycle_of; /* number of the cycle (1..) a thread is a member of, 0 none */
};

/* At most INT32_MAX threads and lines; the lines of a thread lie together, top frame first.  False:
 * no memory.  The result lives in the arena. */
bool tw_anr_graph(struct tw_arena *a, const struct tw_anr_node *nodes, uint32_t n,
        const struct tw_anr_lock *locks, uint32_t n_locks, struct tw_anr_graph *ret);

/* The threads from `from` on along the edges, itself first, each once, at most `max` of them. */
uint32_t tw_anr_chain(
        const struct tw_anr_graph *g, uint32_t from, uint32_t *ret_threads, uint32_t max);

#endif
