/*
 * post.h - postings: which traces call a method, on which thread, and how long a call of it took at
 * most.
 *
 * A trace has one posting for each method and name of a thread.  Those of many
 * traces are packed: by method, in rows of their own, so that a search reads a
 * sixteenth of them.  No files, no SQL.
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
	uint64_t method; /* rollup_cell.h numbers them */
	uint32_t thread; /* index */
	int64_t max_ns;  /* its longest call there */
};
struct tw_post_thread { /* threads of one name are one */
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
/* Appends those of a trace. */
void tw_post_write(const struct tw_posts *p, struct tw_buf *out);

/* Packs rows that tw_post_write made, into rows by slot; an empty one is left out.  TW_CORRUPT when
 * one is damaged, TW_NOMEM. */
enum tw_status tw_post_pack(const struct tw_str *ones, size_t n, struct tw_arena *a,
        struct tw_str ret[TW_POST_ROWS], struct tw_err *err) TW_MUST_USE;

struct tw_post_head {    /* of a pack, or of one trace */
	const char *ids; /* TW_POST_ID characters each */
	uint32_t n;
	struct tw_post_thread *threads;
	uint32_t n_threads;
};
/* Of a row of slot TW_POST_HEAD, or of one (TW_POST_ONE) whose postings begin at *ret_rest then.
 * Borrows the row. */
enum tw_status tw_post_read_head(struct tw_str row, bool one, struct tw_arena *a,
        struct tw_post_head *ret, struct tw_str *ret_rest, struct tw_err *err) TW_MUST_USE;

/* trace and thread are indexes into the head; `which` into the methods that are looked for. */
struct tw_post_hit {
	size_t which;
	uint32_t trace, thread;
	int64_t max_ns;
};
struct tw_post_scan {
	const uint64_t *methods; /* looked for, sorted */
	size_t n;
	int64_t over_ns; /* calls longer than that */
	void (*each)(void *arg, const struct tw_post_hit *hit);
	void *arg;
};
/* Of a row of a slot below TW_POST_SLOTS, or what followed the head of one. */
enum tw_status tw_post_scan(const struct tw_post_scan *s, struct tw_str row, bool one,
        const struct tw_post_head *head, struct tw_err *err) TW_MUST_USE;

#endif
