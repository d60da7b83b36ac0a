/*
 * sim.h - a deterministic phone: the same seed gives the same traces, and the truth about them.
 *
 * It makes an app's methods, calls them on several threads the way a cold start
 * does (start-up phases on the main thread, frames, network, database and JSON
 * workers, recursion, ties, long tails), and writes what btrace 2.0 would have
 * written.  Truth comes from the calls themselves, while they are made: nothing
 * of the product is used here, so nothing of it can be wrong twice.
 */
#ifndef TW_SIM_H
#define TW_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_MAX_THREADS = 256, SIM_MAX_METHODS = 4096 };

struct sim_options {
	uint64_t seed;
	uint64_t build_seed; /* numbers the methods: another build, other ids */
	uint64_t records;    /* about how many */
	unsigned threads;    /* 1.. */
	unsigned max_depth;
	unsigned slow_percent;               /* how much longer one method takes: a regression */
	bool big_tids;                       /* thread ids over 32,767 */
	bool zero_tail, stale_tail, wrapped; /* oddities of the file, with the same truth */
};

struct sim_record {
	int64_t start_ns, end_ns;
	uint32_t tid, method; /* full tid, method index */
};

struct sim_method {
	uint32_t id; /* in this build */
	uint64_t count;
	int64_t sum_ns, self_ns, max_ns;
	char name[160]; /* "package.Class method" as in a mapping */
};

struct sim_thread {
	uint32_t tid;
	char name[32];
	uint64_t slices, roots;
	uint32_t max_depth;
};

struct sim {
	struct sim_options options;
	uint32_t pid;
	uint32_t n_methods, n_threads;
	struct sim_method methods[SIM_MAX_METHODS];
	struct sim_thread threads[SIM_MAX_THREADS];
	struct sim_record *records; /* by end, as the phone writes them */
	uint64_t n_records, cap;
};

/* NULL when memory is short. */
struct sim *sim_new(const struct sim_options *o);
struct sim *sim_free(struct sim *s);

#endif
