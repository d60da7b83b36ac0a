/*
 * anr_judge.h - why an application did not respond, from one dump or from many looks.
 *
 * The chain of locks is followed from the main thread to the thread that it ends at;
 * what that one does is the kind of the ANR.  The verdict says it in one sentence.
 * The cluster is a hash of the blamed stack without what changes from build to build
 * (lines, addresses, numbers of lambdas), so that equal causes have equal clusters.
 */
#ifndef TW_ANR_JUDGE_H
#define TW_ANR_JUDGE_H

#include "decoder/formats/anr/anr_model.h"

enum tw_anr_end { /* new ones come last: clusters are made of the numbers too */
	TW_ANR_NO_STACK,
	TW_ANR_IDLE, /* the main thread waits for its next message: the dump came late */
	TW_ANR_RUNS,
	TW_ANR_CALLS_NATIVE,
	TW_ANR_IO,
	TW_ANR_BINDER, /* waits for another process */
	TW_ANR_SLEEPS,
	TW_ANR_WAITS, /* for a notify, or parked */
	TW_ANR_GC,
	TW_ANR_LOCK_UNKNOWN, /* wants a lock and nobody is seen to hold it */
	TW_ANR_HOLDER_GONE,
	TW_ANR_DEADLOCK,
	TW_ANR_POSSIBLE_DEADLOCK, /* not all members were seen to be blocked */
	TW_ANR_NO_CPU,            /* could run, but waited longer for a processor than it had one */
	TW_ANR_ENDS
};

const char *tw_anr_end_word(enum tw_anr_end end); /* "deadlock", "io", ... */

enum { TW_ANR_CHAIN_MAX = 64 };
#define TW_ANR_NO_INDEX UINT32_MAX

struct tw_anr_finding {         /* threads count from the first of the dump */
	uint32_t main, culprit; /* TW_ANR_NO_INDEX: none */
	struct tw_anr_graph graph;
	uint32_t chain[TW_ANR_CHAIN_MAX];
	uint32_t n_chain;
	uint32_t main_frame; /* the topmost one of main that is the application's own */
	enum tw_anr_end end;
	const char *verdict; /* with marks: anr_words.h */
	uint64_t cluster;
};

struct tw_anr_summary {                  /* of the whole report */
	struct tw_anr_finding *findings; /* of each dump */
	uint32_t blamed;                 /* dump, TW_ANR_NO_INDEX none */
	bool looks;                      /* many looks at one thread, not dumps of processes */
	int64_t waited_ms;               /* -1 unknown */
	const char *kind;                /* "input", "broadcast", "service", ... "unknown" */
	struct tw_str reason;
	enum tw_anr_end end;
	const char *verdict; /* with marks */
	uint64_t cluster;
};

/* False: no memory. */
bool tw_anr_judge(const struct tw_anr *m, struct tw_anr_summary *ret);

/* Index of a frame of the thread, TW_ANR_NO_INDEX without: the topmost one that says what it does
 * (not how it waits), and the topmost one of the application itself. */
uint32_t tw_anr_telling_frame(const struct tw_anr *m, const struct tw_anr_thread *t);
uint32_t tw_anr_app_frame(const struct tw_anr *m, const struct tw_anr_thread *t);
/* What the end of a chain does. */
enum tw_anr_end tw_anr_doing(
        const struct tw_anr *m, const struct tw_anr_thread *t, bool wants_lock, bool is_main);
/* The state says that a monitor is waited for. */
bool tw_anr_blocked(struct tw_str state);
uint64_t tw_anr_stack_hash(const struct tw_anr *m, const struct tw_anr_thread *t);

#endif
