/*
 * query.h - queries on one trace: the selection, call trees, flame graphs, methods, quantiles.
 *
 * Queries read a trace file and return trees and tables of method indexes; names are resolved
 * later. They are independent of HTTP and SQL.  All memory is in the passed arena.  A query that
 * reaches its deadline stops and sets partial. Thread: one query, one caller; time ranges and
 * large trees are read by several threads (base/thread/parallel.h).
 */
#ifndef TW_QUERY_H
#define TW_QUERY_H

#include "decoder/trace/buckets.h"
#include "server/base/clock.h"
#include "server/trace/trace_file.h"

struct tw_selection {
	bool all_threads;
	const uint64_t *tids; /* unless all_threads */
	size_t n_tids;
	bool ranged; /* only [from_ns, to_ns) of trace time */
	int64_t from_ns, to_ns;
};

/* The call trees of the selection's threads, unmerged: as stored, or of a range.  In a range,
 * durations are clipped to it and count is the number of calls that overlap it.  TW_NOT_FOUND if a
 * tid is not in the trace. */
enum tw_status tw_query_forest(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_forest *ret,
        bool *ret_partial, struct tw_err *err) TW_MUST_USE;

/* The call tree of one thread, as stored or of the selection's time range.  The selection's threads
 * are ignored. */
enum tw_status tw_query_thread_tree(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_selection *sel, struct tw_arena *a, struct tw_tree *ret,
        struct tw_err *err) TW_MUST_USE;

/* Returns whether the thread is part of the selection. */
bool tw_selection_has(const struct tw_selection *sel, const struct tw_thread_info *t);
enum tw_status tw_selection_check(
        const struct tw_trace_file *f, const struct tw_selection *sel, struct tw_err *err);
/* Sets only the threads of *ret, in the arena: "all", "" or NULL, or words separated by commas: a
 * tid, a name, or `main` for the main thread of each process. TW_NOT_FOUND if a word matches no
 * thread; with `some` it is ignored, as another trace may have that thread. */
enum tw_status tw_selection_threads(const struct tw_trace_file *f, const char *text, bool some,
        struct tw_arena *a, struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;

/* Calls `each` with the slices of one thread that overlap [from_ns, to_ns), in pre-order and
 * unclipped, those open at from_ns first; it returns false to stop. */
typedef bool (*tw_slices_fn)(void *arg, const struct tw_slice *s, size_t n);
enum tw_status tw_query_slices(struct tw_trace_file *f, uint32_t thread_id, int64_t from_ns,
        int64_t to_ns, tw_slices_fn each, void *arg, struct tw_err *err) TW_MUST_USE;

/* Methods that only wait; those from n on do not. */
struct tw_waits {
	const bool *of;
	uint32_t n;
};

static inline bool tw_waits(const struct tw_waits *w, uint32_t method)
{
	return method < w->n && w->of[method];
}

/* --- flame graphs (query_flame.c, query_grow.c) --- */

enum tw_flame_view { TW_TOP_DOWN, TW_BOTTOM_UP };
/* Running and waiting are the two parts of wall time. Where a node's CPU time is known, running is
 * that, otherwise the time outside methods that wait (decoder/symbols/names.h). A node without a
 * known CPU time has no CPU time. */
enum tw_flame_metric {
	TW_METRIC_WALL,
	TW_METRIC_COUNT,
	TW_METRIC_CPU,
	TW_METRIC_WAITING,
	TW_METRIC_RUNNING
};

struct tw_flame_node {
	uint32_t parent; /* index; node 0: 0 */
	uint32_t method; /* TW_NO_METHOD: node 0 of a whole view, or the rest */
	uint32_t depth;
	uint32_t others;     /* number of nodes merged into this one; 0: a real node */
	int64_t value, self; /* ns or calls; value = self + values of the children, always */
	uint64_t count;
	int64_t max_ns;
	uint64_t tree_nodes; /* call-tree nodes merged into it and its descendants */
};

struct tw_flame {
	/* Pre-order; siblings by falling value (top down: by falling time for every metric, so that
	 * graphs of all metrics have the same layout), the rest last. */
	struct tw_flame_node *nodes;
	uint32_t n;
	/* Below the root before truncation.  Top down: of all threads' trees; bottom up: nodes that
	 * were visited. */
	uint64_t total_nodes;
	bool partial;
};

struct tw_reshape; /* query_reshape.h */

struct tw_flame_query {
	enum tw_flame_view view;
	enum tw_flame_metric metric;
	const uint32_t *root; /* methods from the top of the view to the node to start at */
	size_t n_root;
	struct tw_waits waits; /* for TW_METRIC_RUNNING and TW_METRIC_WAITING */
	uint32_t max_nodes;    /* number of real nodes to keep */
	/* Skips the root's `skip` heaviest children. The root is reduced to the others, which are
	 * the rest of a graph that showed the skipped ones, so every node is reachable.
	 * TW_NOT_FOUND if there are fewer children. */
	uint32_t skip;
	const struct tw_reshape *steps; /* tw_query_graph applies them first */
	size_t n_steps;
	bool no_longest; /* tw_query_graph sets max_ns to 0, which takes less time for a range */
};

/* TW_NOT_FOUND if the root path does not exist. */
enum tw_status tw_query_flame(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_query_bottom_up(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err) TW_MUST_USE;

/* The graph of a selection: from the trace's summary tree if that is sufficient, otherwise from
 * call trees. */
enum tw_status tw_query_graph(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err) TW_MUST_USE;

/* --- the summary tree (query_flame.c; schema/columns.md) --- */

/* Has at most max_nodes nodes, not counting rests. */
enum tw_status tw_query_summary(const struct tw_tree_sums *trees, uint32_t n_trees,
        uint32_t max_nodes, uint32_t rest, struct tw_arena *a, struct tw_summary_tree *ret,
        struct tw_err *err) TW_MUST_USE;
/* Returns whether the summary tree gives the same result for q as the trees it was made of. */
bool tw_summary_suffices(const struct tw_summary_tree *c, const struct tw_flame_query *q);
enum tw_status tw_query_flame_of_summary(const struct tw_summary_tree *c,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err) TW_MUST_USE;

/* --- methods (query_methods.c) --- */

/* Totals per method index of a selection's trees: rows for all n_methods, count 0 if unused. */
enum tw_status tw_query_methods(const struct tw_forest *f, uint32_t n_methods, struct tw_arena *a,
        struct tw_method_info **ret, struct tw_err *err) TW_MUST_USE;

/* The self running time of each method, as defined by TW_METRIC_RUNNING. */
enum tw_status tw_query_running(const struct tw_forest *f, const struct tw_waits *waits,
        uint32_t n_methods, struct tw_arena *a, int64_t **ret, struct tw_err *err) TW_MUST_USE;

struct tw_quantile_of {
	const struct tw_method_info
	        *rows; /* result of tw_query_methods, or stored in the file, for the selection */
	uint32_t n_methods;
	unsigned percent; /* 1 to 99 */
};

/* Per method, the duration that `percent` of its calls do not exceed (nearest rank), accurate to
 * within 1/64 (1.6 %; trace/buckets.h).  In a range, calls are clipped to it.  -1: no call, or the
 * deadline passed before all were read. */
enum tw_status tw_query_quantile(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_quantile_of *of, const struct tw_deadline *deadline, struct tw_arena *a,
        int64_t **ret, struct tw_err *err) TW_MUST_USE;

enum { TW_ACTIVITY_CELLS = 128 };
/* Per 1/128 of the trace's time, the share (0..255) in which the thread had an open call that did
 * not wait; from its coarsest level. *ret_running_ns (may be NULL) is the total of that time, or
 * the CPU time of the thread's outermost calls if it is known. */
enum tw_status tw_query_activity(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_waits *waits, uint8_t ret[TW_ACTIVITY_CELLS], int64_t *ret_running_ns,
        struct tw_err *err) TW_MUST_USE;

/* --- single calls (query_calls.c) --- */

/* Single calls of a selection: durations, the longest calls, and the neighbours of
 * one.
 *
 * One pass over the selection's slices. Calls that overlap the range count with their full
 * duration. Thread: one query. */

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
