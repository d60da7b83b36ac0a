/*
 * query_slices.h - finds the chunks and slices of a thread in a time range.
 *
 * Chunks of a thread are in time order and carry the stack that was open at their begin.  For a
 * range, the open stack of the first chunk comes before the slices of this and the following
 * chunks.
 * Thread: one query.
 */
#ifndef TW_QUERY_SLICES_H
#define TW_QUERY_SLICES_H

#include "server/query/query.h"

/* Zero-length calls at the begin of the range are in it, unless their caller ended there. */
struct tw_range_walk {
	int64_t from_ns, to_ns;
	uint32_t depth; /* limit for the next slice: it is not deeper */
};

/* Moves *at to the next slice of the range.  Returns the number of consecutive slices from there
 * that are in the range; 0: none up to n. */
size_t tw_range_run(struct tw_range_walk *w, const struct tw_slice *s, size_t n, size_t *at);

/* If all slices of the chunk are in the range, as with most chunks: moves the walk past them and
 * returns true. */
bool tw_range_has_chunk(
        struct tw_range_walk *w, const struct tw_chunk_info *i, const struct tw_chunk *c);

/* The chunks of a thread that may overlap the range. */
enum tw_status tw_range_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_range_walk *w, const struct tw_chunk_row **ret, uint32_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- chunks in order (query_chunks.c) --- */

/* Called in the caller's thread with the i-th chunk; returns false to stop. */
typedef bool (*tw_chunk_fn)(void *arg, uint32_t i, const struct tw_chunk *c);

/* Calls `each` with the chunk of each row, in order.  Free cores decode the next chunks. */
enum tw_status tw_each_chunk(struct tw_trace_file *f, const struct tw_chunk_row *rows, uint32_t n,
        tw_chunk_fn each, void *arg, struct tw_err *err) TW_MUST_USE;

/* --- call trees (query_range.c) --- */

struct tw_range_scan {
	struct tw_trace_file *file;
	const struct tw_thread_info *only; /* NULL: the threads of the selection */
	const struct tw_selection *sel;
	const struct tw_deadline *deadline;
	struct tw_arena *arena;
	/* Longest calls and CPU times are not needed and are undefined; siblings have no order. */
	bool sums_only;
};

/* Trees of a range that are read as they were built: for those, the tree has no nodes but their
 * number, and the builder has them. */
struct tw_grown_forest {
	struct tw_forest forest;
	struct tw_tree_builder **builders; /* by tree; NULL: the tree has nodes */
};

/* One call tree per thread with slices in the range, clipped to it, or as stored if the selection
 * contains the complete thread; computed in parallel on the free cores. */
enum tw_status tw_range_trees(const struct tw_range_scan *query, struct tw_forest *ret,
        bool *ret_partial, struct tw_err *err) TW_MUST_USE;
/* The same unsorted, for graphs that show few of the nodes. */
enum tw_status tw_range_grown(const struct tw_range_scan *query, struct tw_grown_forest *ret,
        bool *ret_partial, struct tw_err *err) TW_MUST_USE;
void tw_grown_forest_free(struct tw_grown_forest *f);

#endif
