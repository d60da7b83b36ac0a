/*
 * post.h - search index entries: the traces that call a method, on which thread, and the longest
 * call.
 *
 * A trace has one entry per method and thread name.  The entries of many traces are packed by
 * method into separate rows, so that a search reads a sixteenth of them.  No files, no SQL.
 * Thread: any.
 */
#ifndef TW_POST_H
#define TW_POST_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { TW_POST_SLOTS = 16, TW_POST_HEAD = 16, TW_POST_ONE = 17, TW_POST_ROWS = 17 };
enum { TW_POST_ID = 26, TW_POST_THREAD_BYTES = 64, TW_POST_THREADS_MAX = 1024 };

static inline unsigned tw_post_slot(uint64_t method)
{
	return (unsigned)(method % TW_POST_SLOTS);
}

struct tw_post {
	uint64_t method; /* numbered as in rollup_cell.h */
	uint32_t thread; /* index */
	int64_t max_ns;  /* its longest call there */
};
struct tw_post_thread { /* threads with equal names are merged */
	bool is_main;
	struct tw_str name;
};
struct tw_posts {             /* borrowed */
	const char *trace_id; /* TW_POST_ID characters */
	const struct tw_post_thread *threads;
	uint32_t n_threads;
	struct tw_post *posts; /* sorted by tw_post_write */
	size_t n;
};
/* Appends the entries of one trace. */
void tw_post_write(const struct tw_posts *p, struct tw_buf *out);

/* Packs rows written by tw_post_write into rows by slot; empty rows are omitted.  TW_CORRUPT if one
 * is damaged, TW_NOMEM. */
enum tw_status tw_post_pack(const struct tw_str *ones, size_t n, struct tw_arena *a,
        struct tw_str ret[TW_POST_ROWS], struct tw_err *err) TW_MUST_USE;

struct tw_post_head {    /* of a pack, or of one trace */
	const char *ids; /* TW_POST_ID characters each */
	uint32_t n;
	struct tw_post_thread *threads;
	uint32_t n_threads;
};
/* Reads a row of slot TW_POST_HEAD, or of one trace (TW_POST_ONE), whose entries then begin at
 * *ret_rest.  Borrows the row. */
enum tw_status tw_post_read_head(struct tw_str row, bool one, struct tw_arena *a,
        struct tw_post_head *ret, struct tw_str *ret_rest, struct tw_err *err) TW_MUST_USE;

/* trace and thread are indexes into the head; `which` is an index into the searched methods. */
struct tw_post_hit {
	size_t which;
	uint32_t trace, thread;
	int64_t max_ns;
};
struct tw_post_scan {
	const uint64_t *methods; /* searched, sorted */
	size_t n;
	int64_t over_ns; /* only calls longer than this */
	void (*each)(void *arg, const struct tw_post_hit *hit);
	void *arg;
};
/* Scans a row of a slot below TW_POST_SLOTS, or the rest after the head of a single trace. */
enum tw_status tw_post_scan(const struct tw_post_scan *s, struct tw_str row, bool one,
        const struct tw_post_head *head, struct tw_err *err) TW_MUST_USE;

#endif
