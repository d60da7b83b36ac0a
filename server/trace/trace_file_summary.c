/*
 * trace_file_summary.c - computes the summary tree of a trace (query.h) from its call trees while
 * they are stored.
 *
 * The summary tree is optional, and only saves time: if it would be about as large as the trees, or
 * there is not enough memory, none is stored.
 */

#include <zstd.h>

#include "server/trace/trace_file_internal.h"

enum { ZSTD_LEVEL = 3 };
/* 4.7 M nodes.  A thread's tree is added after the thread's calls, which are larger, were freed. */
#define MAX_BYTES ((size_t)256 << 20)

struct tw_summary_maker {
	tw_summary_fn make;
	bool given_up;
	struct tw_tree *trees;
	struct tw_arena **arenas; /* of the trees */
	uint32_t n, cap;
	uint64_t nodes;
};

struct tw_summary_maker *tw_summary_maker_new(tw_summary_fn make)
{
	struct tw_summary_maker *m = tw_mem_zalloc(1, sizeof *m);

	if (m)
		m->make = make;
	return m;
}

static void give_up(struct tw_summary_maker *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		tw_arena_free(m->arenas[i]);
	tw_mem_free(m->trees);
	tw_mem_free(m->arenas);
	m->trees = NULL;
	m->arenas = NULL;
	m->n = m->cap = 0;
	m->given_up = true;
}

struct tw_summary_maker *tw_summary_maker_free(struct tw_summary_maker *m)
{
	if (!m)
		return NULL;
	give_up(m);
	tw_mem_free(m);
	return NULL;
}

static bool make_room(struct tw_summary_maker *m)
{
	uint32_t cap = m->cap ? 2 * m->cap : 16;
	struct tw_tree *trees;
	struct tw_arena **arenas;

	if (m->n < m->cap)
		return true;
	trees = tw_mem_resize(m->trees, cap, sizeof *trees);
	m->trees = trees ? trees : m->trees;
	arenas = trees ? tw_mem_resize(m->arenas, cap, sizeof(struct tw_arena *)) : NULL;
	m->arenas = arenas ? arenas : m->arenas;
	m->cap = arenas ? cap : m->cap;
	return arenas != NULL;
}

void tw_summary_maker_keep(
        struct tw_summary_maker *m, const struct tw_tree *tree, struct tw_arena **arena)
{
	if (m->given_up)
		return;
	m->nodes += tree->n;
	if (m->nodes > MAX_BYTES / sizeof *tree->nodes || !make_room(m)) {
		give_up(m);
		return;
	}
	m->trees[m->n] = *tree;
	m->arenas[m->n++] = *arena;
	*arena = NULL;
}

static enum tw_status insert(
        sqlite3 *db, const struct tw_tree *t, const struct tw_buf *frame, struct tw_err *err)
{
	sqlite3_stmt *s = NULL;
	int rc;

	if (sqlite3_prepare_v2(db, "INSERT INTO trace_tree VALUES(?,?,?)", -1, &s, NULL) !=
	        SQLITE_OK)
		return tw_trace_sql_fail(db, "writing a crown", err);
	(void)sqlite3_bind_int64(s, 1, TW_SUMMARY_THREAD_ID);
	(void)sqlite3_bind_int64(s, 2, t->n);
	(void)sqlite3_bind_blob64(s, 3, frame->data, frame->len, SQLITE_STATIC);
	rc = sqlite3_step(s);
	(void)sqlite3_finalize(s);
	return rc == SQLITE_DONE ? TW_OK : tw_trace_sql_fail(db, "writing a crown", err);
}

static enum tw_status pack(const struct tw_tree *t, struct tw_buf *frame, struct tw_err *err)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	struct tw_buf payload;
	enum tw_status st = z ? TW_OK : TW_NOMEM;

	tw_buf_init(&payload, SIZE_MAX / 2);
	if (st == TW_OK)
		st = tw_tree_encode(t, &payload);
	if (st == TW_OK)
		st = tw_buf_reserve(frame, ZSTD_compressBound(payload.len));
	if (st == TW_OK) {
		(void)ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		(void)ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
		frame->len = ZSTD_compress2(z, frame->data, frame->cap, payload.data, payload.len);
	}
	if (st == TW_OK && ZSTD_isError(frame->len))
		st = tw_fail(err, TW_BUG, "zstd: %s", ZSTD_getErrorName(frame->len));
	tw_buf_done(&payload);
	(void)ZSTD_freeCCtx(z);
	return st;
}

enum tw_status tw_summary_maker_store(
        struct tw_summary_maker *m, sqlite3 *db, uint32_t methods, struct tw_err *err)
{
	const struct tw_forest forest = {m->trees, m->n};
	struct tw_summary_tree summary;
	struct tw_arena *arena;
	struct tw_buf frame;
	enum tw_status st;

	if (m->given_up || m->nodes < UINT64_C(2) * TW_SUMMARY_NODES)
		return TW_OK;
	tw_buf_init(&frame, SIZE_MAX / 2);
	arena = tw_arena_new(MAX_BYTES);
	st = arena ? m->make(&forest, TW_SUMMARY_NODES, methods, arena, &summary, err) : TW_NOMEM;
	if (st == TW_OK)
		st = pack(&summary.tree, &frame, err);
	if (st == TW_OK)
		st = insert(db, &summary.tree, &frame, err);
	tw_arena_free(arena);
	tw_buf_done(&frame);
	give_up(m);
	return st == TW_NOMEM ? TW_OK : st;
}
