/*
 * fleet_search.h - finds calls that took longer than a threshold in many traces.
 *
 * Independent of HTTP and SQL. The caller passes rows of the search index, and the longest calls
 * are kept. The index does not identify a call and its callers; they are read from the trace
 * files. Thread: one query, one thread.
 */
#ifndef TW_FLEET_SEARCH_H
#define TW_FLEET_SEARCH_H

#include "server/catalogue/fleet/catalogue_search_index.h"
#include "server/query/query.h"

enum { TW_SEARCH_HITS_MAX = 2000 };

struct tw_search_found { /* the longest call of a method on a thread of a trace, from the index */
	char trace_id[TW_INDEX_ID + 1];
	char thread[TW_INDEX_THREAD_BYTES + 1];
	bool is_main;
	uint32_t cell, which; /* indexes of cells and of methods */
	int64_t max_ns;
	const struct tw_rollup_dims *dims; /* of the trace; set at the end */
};

struct tw_search {
	/* the query; methods by number */
	const struct tw_rollup_naming *methods;
	size_t n_methods;
	const uint64_t *numbers; /* of the methods */
	const char *thread;      /* name; "main" matches the main thread too; NULL: any */
	int64_t over_ns;
	struct tw_arena *arena;         /* separate arena of the current cell */
	struct tw_arena *results_arena; /* of the results' dimensions */
	/* results */
	uint64_t matches;              /* number of combinations of method, thread and trace */
	struct tw_search_found *found; /* capacity 2 * TW_SEARCH_HITS_MAX */
	size_t n;
	/* current position */
	size_t cell, cell_next; /* 0: none yet */
	struct tw_search_pack *packs;
	size_t n_packs;
	uint32_t cap_packs;
	const struct tw_search_pack *pack;
};

/* The callback for tw_index_query.each, with the search as arg. */
enum tw_status tw_search_row(
        void *arg, size_t cell, unsigned slot, const struct tw_index_row *row, struct tw_err *err);
/* Longest first, at most TW_SEARCH_HITS_MAX. */
void tw_search_sort(struct tw_search *s);

/* --- in a file (fleet_search_call.c) --- */

struct tw_search_path { /* required callers; methods by number */
	bool wanted;
	const struct tw_rollup_naming *ancestors;
	size_t n;
};
struct tw_search_call {
	bool there; /* false: no call is longer than the threshold, or the deadline passed */
	uint64_t tid;
	int64_t start_ns, dur_ns;
	uint32_t depth;
};
struct tw_search_query { /* borrowed */
	const struct tw_rollup_naming *method;
	const struct tw_search_found *found;
	const struct tw_search_path *path;
	int64_t over_ns;
	const struct tw_deadline *deadline;
};
/* The longest matching call in its file, below one of the ancestors. */
enum tw_status tw_search_find_call(struct tw_trace_file *file, const struct tw_search_query *query,
        struct tw_search_call *ret, struct tw_err *err) TW_MUST_USE;

#endif
