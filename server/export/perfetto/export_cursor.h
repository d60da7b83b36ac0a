/*
 * export_cursor.h - the begins and ends of one thread in time order, a chunk at a time.
 *
 * At equal times ends come before begins, inner ends before outer ones, outer begins before inner
 * ones.  Calls deeper than max_depth are omitted with both their edges and counted.  For a range,
 * calls that overlap it are returned, clipped to it.  Memory: one decoded chunk and the open stack,
 * with read-ahead two chunks.
 */
#ifndef TW_EXPORT_CURSOR_H
#define TW_EXPORT_CURSOR_H

#include "server/trace/trace_file.h"

struct tw_edge {
	int64_t ts_ns;
	int64_t cpu_ns; /* begin: of the call; -1 if unknown or the call is clipped */
	uint32_t method;
	bool begin;
};

struct tw_cursor {
	struct tw_trace_file *file;
	const struct tw_chunk_row *rows; /* level 0 */
	uint32_t n_rows, row;
	int64_t from_ns, to_ns;
	struct tw_chunk chunk;
	const struct tw_slice *slices; /* of the chunk: its open stack first, then its own */
	size_t n, at;
	bool in_open;
	struct tw_read_ahead *ahead;         /* that decodes into `next`; NULL: none */
	struct tw_chunk next;                /* decoded ahead, */
	const struct tw_chunk_row *next_row; /* of this row; NULL: none */
	int64_t *ends;                       /* of the open calls, max_depth of them */
	uint32_t *methods;
	uint32_t depth, max_depth;
	uint64_t clipped;
	bool done;
	int64_t next_ns; /* of the next edge; INT64_MAX when done */
};

/* For [from_ns, to_ns) of trace time.  The caller frees with tw_cursor_close, also on failure. */
enum tw_status tw_cursor_open_range(struct tw_cursor *c, struct tw_trace_file *f,
        uint32_t thread_id, uint32_t max_depth, int64_t from_ns, int64_t to_ns,
        struct tw_err *err) TW_MUST_USE;
/* The next edge; c->done must be false. */
enum tw_status tw_cursor_next(
        struct tw_cursor *c, struct tw_edge *ret, struct tw_err *err) TW_MUST_USE;
/* Instead of edges: the next call, clipped to the range, callers before callees. c->done must be
 * false. */
enum tw_status tw_cursor_next_slice(
        struct tw_cursor *c, struct tw_slice *ret, struct tw_err *err) TW_MUST_USE;
/* After calls of the current list, from `at` on, were entered and left by the caller: `at`,
 * `depth`, `ends` and `methods` are set. */
enum tw_status tw_cursor_reposition(struct tw_cursor *c, struct tw_err *err) TW_MUST_USE;
void tw_cursor_close(struct tw_cursor *c);

/* Decodes a cursor's next chunk in a helper thread while its current one is read: one chunk at a
 * time, for cursors of the same file. */
struct tw_read_ahead;
/* NULL: out of memory. */
struct tw_read_ahead *tw_read_ahead_new(void);
/* After its cursors are closed.  Accepts NULL; returns NULL. */
struct tw_read_ahead *tw_read_ahead_free(struct tw_read_ahead *a);
bool tw_read_ahead_is_busy(struct tw_read_ahead *a);
/* Whether the cursor has a next chunk that is worth a thread and not decoded yet. */
bool tw_cursor_wants_ahead(const struct tw_cursor *c);
/* If a helper thread is available; not while it is busy. */
void tw_read_ahead_start(struct tw_read_ahead *a, struct tw_cursor *c);

#endif
