/*
 * anr_locks.h - the wait-for graph of one thread dump.
 *
 * A thread waits for at most one monitor, so each node has at most one outgoing edge: cycles and
 * chains are walks, without recursion.  Finding lock owners takes n log n in threads and lock lines
 * (sorting, as the input could make a hash collide); everything else is linear.
 * Pure: takes and returns indices and numbers.  Thread: any.
 */
#ifndef TW_ANR_LOCKS_H
#define TW_ANR_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"

enum tw_anr_how {
	TW_ANR_LOCKED,    /* held in this frame */
	TW_ANR_WANTED,    /* waits to enter */
	TW_ANR_INFLATION, /* the same, during the short state of lock inflation */
	TW_ANR_WAITING,   /* Object.wait: the thread has released it */
	TW_ANR_SLEEPING   /* Thread.sleep: on its internal lock */
};

struct tw_anr_lock {          /* one lock line */
	uint64_t object;      /* equal values: the same object; 0 unknown */
	uint64_t holder;      /* thread id in the line, 0 none */
	uint32_t thread;      /* index of the thread whose stack has the line */
	uint32_t type, frame; /* for the caller; not used here */
	enum tw_anr_how how;
};

struct tw_anr_node {
	uint64_t tid; /* the id in "held by thread"; 0 none */
	bool blocked; /* its state is waiting for a monitor */
};

enum {
	TW_ANR_NONE = -1,   /* does not wait */
	TW_ANR_MISSING = -2 /* waits for a thread that is missing in the dump */
};

struct tw_anr_edge {
	int32_t to;   /* index of a thread, or one of the above */
	int32_t lock; /* index of the lock line, -1 none */
	bool named;   /* the line names the owner; otherwise inferred from the thread that has the
	               * object locked */
};

struct tw_anr_cycle {
	uint32_t first; /* the member that is first in the dump; the others follow by the edges */
	uint32_t n;
	bool certain; /* all members were blocked; threads are dumped one after the other, so
	               * otherwise it may not be a deadlock */
};

struct tw_anr_graph {
	struct tw_anr_edge *edges; /* one per thread */
	uint32_t n;
	struct tw_anr_cycle *cycles; /* each once, ordered by first member */
	uint32_t n_cycles;
	/* Per thread: the end of its chain (the first member of a cycle if it leads into one), and
	 * the number of other threads whose chain ends there. */
	uint32_t *ends, *victims;
	uint32_t *cycle_of; /* number (1..) of the cycle that contains a thread, 0 none */
};

/* At most INT32_MAX threads and lines; the lines of one thread are adjacent, top frame first.
 * False: out of memory.  The result is allocated in the arena. */
bool tw_anr_graph(struct tw_arena *a, const struct tw_anr_node *nodes, uint32_t n,
        const struct tw_anr_lock *locks, uint32_t n_locks, struct tw_anr_graph *ret);

/* The threads from `from` along the edges, including itself, each once, at most `max`. */
uint32_t tw_anr_chain(
        const struct tw_anr_graph *g, uint32_t from, uint32_t *ret_threads, uint32_t max);

#endif
