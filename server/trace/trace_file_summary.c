/*
 * trace_file_summary.c - computes the summary tree of a trace (query.h) from the sums of its call
 * trees in a separate thread, while chunks and methods are stored.
 *
 * The summary tree is optional, and only saves time: if it would be about as large as the trees, or
 * there is not enough memory, none is stored.
 */

#include "decoder/base/list.h"
#include "decoder/base/relay.h"
#include "server/trace/trace_file_internal.h"

/* Eleven million nodes.  A thread's sums are added about when its calls, which are larger, are
 * freed. */
#define MAX_BYTES ((size_t)256 << 20)

struct tw_summary_maker {
	tw_summary_fn make;
	struct tw_relay *relay; /* of one slot */
	bool given_up;
	struct tw_tree_sums *trees;
	uint32_t n, cap;
	uint64_t nodes;
	uint32_t methods, summary_nodes;
	struct tw_buf summary; /* encoded; empty: none */
};

static void give_up(struct tw_summary_maker *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		tw_tree_sums_done(&m->trees[i]);
	tw_mem_free(m->trees);
	m->trees = NULL;
	m->n = m->cap = 0;
	m->given_up = true;
}

static enum tw_status make(void *arg, uint32_t slot, struct tw_err *err)
{
	struct tw_summary_maker *m = arg;
	struct tw_summary_tree summary;
	struct tw_arena *arena = tw_arena_new(MAX_BYTES);
	enum tw_status st = TW_NOMEM;

	(void)slot;
	if (arena)
		st = m->make(m->trees, m->n, TW_SUMMARY_NODES, m->methods, arena, &summary, err);
	if (st == TW_OK) {
		m->summary_nodes = summary.tree.n;
		st = tw_tree_encode(&summary.tree, &m->summary);
	}
	if (st != TW_OK)
		tw_buf_clear(&m->summary);
	tw_arena_free(arena);
	give_up(m);
	return st == TW_NOMEM ? TW_OK : st;
}

struct tw_summary_maker *tw_summary_maker_new(tw_summary_fn make_fn)
{
	struct tw_summary_maker *m = tw_mem_zalloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->make = make_fn;
	m->relay = tw_relay_new(1, make, m);
	tw_buf_init(&m->summary, SIZE_MAX / 2);
	return m->relay ? m : tw_summary_maker_free(m);
}

struct tw_summary_maker *tw_summary_maker_free(struct tw_summary_maker *m)
{
	if (!m)
		return NULL;
	tw_relay_free(m->relay);
	give_up(m);
	tw_buf_done(&m->summary);
	tw_mem_free(m);
	return NULL;
}

void tw_summary_maker_keep(struct tw_summary_maker *m, struct tw_tree_sums *sums)
{
	if (m->given_up)
		return;
	m->nodes += sums->n;
	if (m->nodes > MAX_BYTES / sizeof *sums->nodes || !TW_GROW_MEM(m->trees, m->n, m->cap)) {
		give_up(m);
		return;
	}
	m->trees[m->n++] = *sums;
	*sums = (struct tw_tree_sums){0};
}

enum tw_status tw_summary_maker_make(
        struct tw_summary_maker *m, uint32_t methods, struct tw_err *err)
{
	uint32_t slot;
	enum tw_status st;

	if (m->given_up || m->nodes < UINT64_C(2) * TW_SUMMARY_NODES)
		return TW_OK;
	m->methods = methods;
	tw_relay_start(m->relay);
	st = tw_relay_slot(m->relay, &slot, err);
	return st == TW_OK ? tw_relay_pass(m->relay, err) : st;
}

/* As another thread's tree. */
enum tw_status tw_summary_maker_store(
        struct tw_summary_maker *m, struct tw_frames *frames, struct tw_err *err)
{
	enum tw_status st = tw_relay_finish(m->relay, err);
	const struct tw_frame_info info = {.is_tree = true,
	        .chunk.thread_id = TW_SUMMARY_THREAD_ID,
	        .nodes = m->summary_nodes};

	if (st != TW_OK || !m->summary.len)
		return st;
	return tw_frames_take(frames, &info, &m->summary, err);
}
