/*
 * trace_file_summary.c - computes the summary tree of a trace (query.h) from its call trees while
 * they are stored.
 *
 * The summary tree is optional, and only saves time: if it would be about as large as the trees, or
 * there is not enough memory, none is stored.
 */

#include "server/trace/trace_file_internal.h"

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

/* As another thread's tree. */
static enum tw_status store(struct tw_frames *frames, const struct tw_tree *t, struct tw_err *err)
{
	const struct tw_frame_info info = {
	        .is_tree = true, .chunk.thread_id = TW_SUMMARY_THREAD_ID, .nodes = t->n};
	struct tw_buf payload;
	enum tw_status st;

	tw_buf_init(&payload, SIZE_MAX / 2);
	st = tw_tree_encode(t, &payload);
	if (st == TW_OK)
		st = tw_frames_add(frames, &info, payload.data, payload.len, err);
	tw_buf_done(&payload);
	return st;
}

enum tw_status tw_summary_maker_store(
        struct tw_summary_maker *m, struct tw_frames *frames, uint32_t methods, struct tw_err *err)
{
	const struct tw_forest forest = {m->trees, m->n};
	struct tw_summary_tree summary;
	struct tw_arena *arena;
	enum tw_status st;

	if (m->given_up || m->nodes < UINT64_C(2) * TW_SUMMARY_NODES)
		return TW_OK;
	arena = tw_arena_new(MAX_BYTES);
	st = arena ? m->make(&forest, TW_SUMMARY_NODES, methods, arena, &summary, err) : TW_NOMEM;
	if (st == TW_OK)
		st = store(frames, &summary.tree, err);
	tw_arena_free(arena);
	give_up(m);
	return st == TW_NOMEM ? TW_OK : st;
}
