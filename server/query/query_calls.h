/*
 * query_calls.h - single calls of a selection: durations, the longest calls, and the neighbours of
 * one.
 *
 * One pass over the selection's slices. Calls that overlap the range count with their full
 * duration. Thread: one query.
 */
#ifndef TW_QUERY_CALLS_H
#define TW_QUERY_CALLS_H

#include "decoder/trace/buckets.h"
#include "server/query/query.h"

enum { TW_CALLS_MAX = 10000, TW_CALLS_STEPS = 16, TW_CALLS_BARS = TW_BUCKETS / TW_CALLS_STEPS };

/* Calls are ordered by begin, then tid, then depth. */
struct tw_call {
	uint64_t tid;
	int64_t start_ns, dur_ns;
	int64_t cpu_ns; /* -1: not known */
	uint32_t depth, method;
};

struct tw_calls_query {
	const struct tw_selection *sel;
	uint32_t method;        /* TW_NO_METHOD: every call */
	int64_t min_ns, max_ns; /* durations to list */
	bool by_time;           /* the first, not the longest */
	uint32_t limit;         /* at most TW_CALLS_MAX */
	const struct tw_call
	        *around; /* the call that is returned with its neighbours; NULL: none */
};

struct tw_calls {
	uint64_t n; /* of the selection and the method */
	int64_t sum_ns, longest_ns;
	int64_t p50_ns, p95_ns;       /* accurate to within 1.6 % (trace/buckets.h) */
	uint64_t bars[TW_CALLS_BARS]; /* calls by duration */
	uint64_t listable;            /* number of calls with a duration to list */
	struct tw_call *list;
	uint32_t n_list;
	struct tw_call at;                      /* the call of `around` */
	struct tw_call before, after;           /* in all threads of the selection */
	struct tw_call before_here, after_here; /* in the thread of `around` */
	bool has_at, has_before, has_after, has_before_here, has_after_here;
	bool partial;
};

/* Durations of a bar: [from, to). */
int64_t tw_calls_bar_from(uint32_t bar);

enum tw_status tw_query_calls(struct tw_trace_file *f, const struct tw_calls_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_calls *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
