/*
 * search_index.h - search index entries: the traces that call a method, on which thread, and the
 * longest call.
 *
 * A trace has one entry per method and thread name.  The entries of many traces are packed by
 * method into separate rows, so that a search reads a sixteenth of them.  No files, no SQL.
 * Thread: any.
 */
#ifndef TW_SEARCH_INDEX_H
#define TW_SEARCH_INDEX_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"

enum { TW_INDEX_SLOTS = 16, TW_INDEX_HEAD = 16, TW_INDEX_ONE = 17, TW_INDEX_ROWS = 17 };
enum { TW_INDEX_ID = 26, TW_INDEX_THREAD_BYTES = 64, TW_INDEX_THREADS_MAX = 1024 };

static inline unsigned tw_index_slot(uint64_t method)
{
	return (unsigned)(method % TW_INDEX_SLOTS);
}

struct tw_index_entry {
	uint64_t method; /* numbered as in rollup_id.h */
	uint32_t thread; /* index */
	int64_t max_ns;  /* its longest call there */
};
struct tw_index_thread { /* threads with equal names are merged */
	bool is_main;
	struct tw_str name;
};
struct tw_index_entries {     /* borrowed */
	const char *trace_id; /* TW_INDEX_ID characters */
	const struct tw_index_thread *threads;
	uint32_t n_threads;
	struct tw_index_entry *posts; /* sorted by tw_index_write */
	size_t n;
};
/* Appends the entries of one trace. */
void tw_index_write(const struct tw_index_entries *p, struct tw_buf *out);

/* Packs rows written by tw_index_write into rows by slot; empty rows are omitted.  TW_CORRUPT if
 * one is damaged, TW_NOMEM. */
enum tw_status tw_index_pack(const struct tw_str *ones, size_t n, struct tw_arena *a,
        struct tw_str ret[TW_INDEX_ROWS], struct tw_err *err) TW_MUST_USE;

struct tw_index_head {   /* of a pack, or of one trace */
	const char *ids; /* TW_INDEX_ID characters each */
	uint32_t n;
	struct tw_index_thread *threads;
	uint32_t n_threads;
};
/* Reads a row of slot TW_INDEX_HEAD, or of one trace (TW_INDEX_ONE), whose entries then begin at
 * *ret_rest.  Borrows the row. */
enum tw_status tw_index_read_head(struct tw_str row, bool one, struct tw_arena *a,
        struct tw_index_head *ret, struct tw_str *ret_rest, struct tw_err *err) TW_MUST_USE;

/* The entries of a single trace one by one, from the rest after its head: *rest is advanced; false:
 * the end, or rest->ptr is NULL and it is damaged. */
bool tw_index_next(
        struct tw_str *rest, const struct tw_index_head *head, struct tw_index_entry *ret);

/* trace and thread are indexes into the head; `which` is an index into the searched methods. */
struct tw_index_hit {
	size_t which;
	uint32_t trace, thread;
	int64_t max_ns;
};
struct tw_index_scan {
	const uint64_t *methods; /* searched, sorted */
	size_t n;
	int64_t over_ns; /* only calls longer than this */
	void (*each)(void *arg, const struct tw_index_hit *hit);
	void *arg;
};
/* Scans a row of a slot below TW_INDEX_SLOTS, or the rest after the head of a single trace. */
enum tw_status tw_index_scan(const struct tw_index_scan *s, struct tw_str row, bool one,
        const struct tw_index_head *head, struct tw_err *err) TW_MUST_USE;

#endif
