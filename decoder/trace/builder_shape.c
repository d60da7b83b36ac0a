/*
 * builder_shape.c - turns a thread's slices into chunks, mip levels and the call tree.
 *
 * The walk that finds the slices fills batches and adds them to the call tree, about half of the
 * work; the other half, chunks and mip levels, is done in order in a separate thread if the trace
 * is large enough.  A batch fits a core's cache; the ring of batches bridges the time in which the
 * walk sorts the next thread.  The output goes to the trace_out in that thread, and is identical to
 * the byte either way.
 */
#include "decoder/base/relay.h"
#include "decoder/trace/builder_internal.h"

enum { BATCH = 2048, SLOTS = 16, WORTH_A_THREAD = 1 << 16 };

/* A longer thread may have more call paths: a node takes about as much memory as this many
 * records. */
enum { TREE_SHARE = 16 };

struct batch { /* of one thread */
	struct tw_slice *slices;
	uint32_t n;
	bool begins, ends;
	/* begins: */
	uint32_t thread_id, n_levels;
	int64_t thresholds_ns[TW_MIP_LEVELS];
	/* ends: */
	struct tw_thread_info thread;
	struct tw_tree tree;
	struct tw_arena *arena; /* of the tree */
};

struct tw_shaper {
	const struct tw_limits *limits;
	struct tw_trace_out *out;
	/* used by the walk: */
	struct tw_relay *relay;
	struct batch batches[SLOTS];
	struct batch *filled; /* NULL: none yet */
	struct tw_tree_builder *tree;
	uint64_t clipped;
	/* used by the processing: */
	struct tw_buf payload;
	struct chunker chunker;
	struct mip mips[TW_MIP_LEVELS];
	uint32_t n_mips, n_mips_ready;
};

/* --- processing --- */

static enum tw_status begin_mips(struct tw_shaper *s, const struct batch *b)
{
	s->n_mips = b->n_levels;
	for (uint32_t i = 0; i < s->n_mips; i++) {
		struct mip *m = &s->mips[i];

		if (i >= s->n_mips_ready) {
			enum tw_status st = tw_chunker_init(&m->chunker, &s->payload, s->out);

			s->n_mips_ready++;
			if (st != TW_OK)
				return st;
		}
		m->threshold_ns = b->thresholds_ns[i];
		m->running = false;
		tw_chunker_start(&m->chunker, b->thread_id, i + 1, m->threshold_ns);
	}
	return TW_OK;
}

static enum tw_status begin_thread(struct tw_shaper *s, const struct batch *b, struct tw_err *err)
{
	tw_chunker_start(&s->chunker, b->thread_id, 0, 0);
	return begin_mips(s, b) == TW_OK ? TW_OK : tw_oom(err);
}

static enum tw_status add_slices(struct tw_shaper *s, const struct batch *b, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (b->n)
		st = tw_chunker_add(&s->chunker, b->slices, b->n, err);
	for (uint32_t i = 0; st == TW_OK && i < s->n_mips; i++)
		st = tw_mip_add(&s->mips[i], b->slices, b->n, err);
	return st;
}

static enum tw_status write_tree(struct tw_shaper *s, struct batch *b, struct tw_err *err)
{
	enum tw_status st;

	tw_buf_clear(&s->payload);
	if (tw_tree_encode(&b->tree, &s->payload) == TW_OK)
		st = s->out->ops->tree(s->out, b->thread.thread_id, &b->tree, &b->arena,
		        s->payload.data, s->payload.len, err);
	else
		st = tw_oom(err);
	b->arena = tw_arena_free(b->arena);
	return st;
}

static enum tw_status end_thread(struct tw_shaper *s, struct batch *b, struct tw_err *err)
{
	enum tw_status st = tw_chunker_flush(&s->chunker, err);

	for (uint32_t i = 0; st == TW_OK && i < s->n_mips; i++)
		st = tw_mip_finish(&s->mips[i], err);
	if (st == TW_OK)
		st = write_tree(s, b, err);
	return st == TW_OK ? s->out->ops->thread(s->out, &b->thread, err) : st;
}

static enum tw_status shape(void *arg, uint32_t slot, struct tw_err *err)
{
	struct tw_shaper *s = arg;
	struct batch *b = &s->batches[slot];
	enum tw_status st = b->begins ? begin_thread(s, b, err) : TW_OK;

	if (st == TW_OK)
		st = add_slices(s, b, err);
	return st == TW_OK && b->ends ? end_thread(s, b, err) : st;
}

/* --- interface of the walk --- */

struct tw_shaper *tw_shaper_new(const struct tw_builder *b, struct tw_trace_out *out)
{
	bool beside = b->slices >= WORTH_A_THREAD;
	struct tw_shaper *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->limits = &b->limits;
	s->out = out;
	tw_buf_init(&s->payload, SIZE_MAX / 2);
	s->relay = tw_relay_new(beside ? SLOTS : 1, shape, s);
	if (!s->relay || tw_chunker_init(&s->chunker, &s->payload, out) != TW_OK)
		return tw_shaper_free(s);
	if (beside)
		tw_relay_start(s->relay);
	return s;
}

struct tw_shaper *tw_shaper_free(struct tw_shaper *s)
{
	if (!s)
		return NULL;
	tw_relay_free(s->relay);
	for (uint32_t i = 0; i < SLOTS; i++) {
		tw_mem_free(s->batches[i].slices);
		tw_arena_free(s->batches[i].arena);
	}
	tw_chunker_done(&s->chunker);
	for (uint32_t i = 0; i < s->n_mips_ready; i++)
		tw_chunker_done(&s->mips[i].chunker);
	tw_tree_builder_free(s->tree);
	tw_buf_done(&s->payload);
	tw_mem_free(s);
	return NULL;
}

static enum tw_status open_batch(struct tw_shaper *s, struct tw_err *err)
{
	uint32_t slot;
	enum tw_status st = tw_relay_slot(s->relay, &slot, err);
	struct batch *b;

	if (st != TW_OK)
		return st;
	b = &s->batches[slot];
	if (!b->slices)
		b->slices = tw_mem_alloc(BATCH, sizeof *b->slices);
	if (!b->slices)
		return tw_oom(err);
	b->n = 0;
	b->begins = b->ends = false;
	s->filled = b;
	return TW_OK;
}

enum tw_status tw_shaper_begin(
        struct tw_shaper *s, const struct track *t, uint32_t thread_id, struct tw_err *err)
{
	uint64_t max_nodes = s->limits->max_tree_nodes + t->n / TREE_SHARE;
	enum tw_status st = open_batch(s, err);

	if (st != TW_OK)
		return st;
	s->filled->begins = true;
	s->filled->thread_id = thread_id;
	s->filled->n_levels = tw_mip_plan(t, s->filled->thresholds_ns);
	if (s->tree)
		tw_tree_builder_reset(s->tree, max_nodes);
	else
		s->tree = tw_tree_builder_new(max_nodes);
	return s->tree ? TW_OK : tw_oom(err);
}

enum tw_status tw_shaper_room(
        struct tw_shaper *s, struct tw_slice **ret, uint32_t *ret_room, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (s->filled->n == BATCH) {
		st = tw_relay_pass(s->relay, err);
		if (st == TW_OK)
			st = open_batch(s, err);
	}
	*ret = s->filled->slices + s->filled->n;
	*ret_room = BATCH - s->filled->n;
	return st;
}

enum tw_status tw_shaper_add(struct tw_shaper *s, uint32_t n, struct tw_err *err)
{
	struct batch *b = s->filled;

	if (tw_tree_builder_add(s->tree, b->slices + b->n, n) != TW_OK)
		return tw_oom(err);
	b->n += n;
	return TW_OK;
}

uint64_t tw_shaper_clipped(const struct tw_shaper *s)
{
	return tw_tree_builder_clipped(s->tree);
}

enum tw_status tw_shaper_tree(struct tw_shaper *s, struct tw_tree *ret, struct tw_err *err)
{
	struct batch *b = s->filled;
	enum tw_status st = TW_NOMEM;

	b->arena = tw_arena_new(s->limits->max_memory_bytes);
	if (b->arena)
		st = tw_tree_builder_finish(s->tree, b->arena, &b->tree);
	if (st != TW_OK)
		return tw_oom(err);
	*ret = b->tree;
	s->clipped += tw_shaper_clipped(s);
	return TW_OK;
}

enum tw_status tw_shaper_end(
        struct tw_shaper *s, const struct tw_thread_info *thread, struct tw_err *err)
{
	s->filled->ends = true;
	s->filled->thread = *thread;
	return tw_relay_pass(s->relay, err);
}

enum tw_status tw_shaper_finish(struct tw_shaper *s, uint64_t *ret_clipped, struct tw_err *err)
{
	*ret_clipped = s->clipped;
	return tw_relay_finish(s->relay, err);
}
