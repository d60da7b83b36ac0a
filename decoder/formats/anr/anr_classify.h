/*
 * anr_classify.h - determines the cause of an ANR from one dump or many samples.
 *
 * Follows the chain of locks from the main thread to the thread at its end; the activity of that
 * thread is the kind of the ANR.  The verdict describes it in one sentence.  The cluster is a hash
 * of the blamed stack without the parts that change from build to build (lines, addresses, numbers
 * of lambdas), so that equal causes have equal clusters.
 */
#ifndef TW_ANR_CLASSIFY_H
#define TW_ANR_CLASSIFY_H

#include "decoder/formats/anr/anr_model.h"

enum tw_anr_end { /* append new values: cluster hashes include the numbers */
	TW_ANR_NO_STACK,
	TW_ANR_IDLE, /* the main thread waits for its next message: the dump was taken too late */
	TW_ANR_RUNS,
	TW_ANR_CALLS_NATIVE,
	TW_ANR_IO,
	TW_ANR_BINDER, /* waits for another process */
	TW_ANR_SLEEPS,
	TW_ANR_WAITS, /* for a notify, or parked */
	TW_ANR_GC,
	TW_ANR_LOCK_UNKNOWN, /* waits for a lock with no visible owner */
	TW_ANR_HOLDER_MISSING,
	TW_ANR_DEADLOCK,
	TW_ANR_POSSIBLE_DEADLOCK, /* not all members were seen blocked */
	TW_ANR_NO_CPU,            /* runnable, but waited longer for a CPU than it ran */
	TW_ANR_ENDS
};

const char *tw_anr_end_name(enum tw_anr_end end); /* "deadlock", "io", ... */

enum { TW_ANR_CHAIN_MAX = 64 };
#define TW_ANR_NO_INDEX UINT32_MAX

struct tw_anr_finding {         /* thread indices are relative to the first of the dump */
	uint32_t main, culprit; /* TW_ANR_NO_INDEX: none */
	struct tw_anr_graph graph;
	uint32_t chain[TW_ANR_CHAIN_MAX];
	uint32_t n_chain;
	uint32_t main_frame; /* the topmost frame of main that belongs to the application */
	enum tw_anr_end end;
	const char *verdict; /* with markup: anr_markup.h */
	uint64_t cluster;
};

struct tw_anr_summary {                  /* of the complete report */
	struct tw_anr_finding *findings; /* one per dump */
	uint32_t blamed;                 /* dump; TW_ANR_NO_INDEX: none */
	bool sampled;                    /* repeated samples of one thread, not dumps of
	                                  * processes */
	int64_t waited_ms;               /* -1 unknown */
	const char *kind;                /* "input", "broadcast", "service", ... "unknown" */
	struct tw_str reason;
	enum tw_anr_end end;
	const char *verdict; /* with markup */
	uint64_t cluster;
};

/* False: out of memory. */
bool tw_anr_classify(const struct tw_anr *m, struct tw_anr_summary *ret);

/* Index of a frame of the thread, or TW_ANR_NO_INDEX: the topmost frame that shows the thread's
 * activity (not how it waits), and the topmost frame of the application. */
uint32_t tw_anr_activity_frame(const struct tw_anr *m, const struct tw_anr_thread *t);
uint32_t tw_anr_app_frame(const struct tw_anr *m, const struct tw_anr_thread *t);
/* The activity of the thread at the end of a chain. */
enum tw_anr_end tw_anr_doing(
        const struct tw_anr *m, const struct tw_anr_thread *t, bool wants_lock, bool is_main);
/* Whether the state means that the thread waits for a monitor. */
bool tw_anr_blocked(struct tw_str state);
uint64_t tw_anr_stack_hash(const struct tw_anr *m, const struct tw_anr_thread *t);

#endif
