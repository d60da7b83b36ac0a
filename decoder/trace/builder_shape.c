/*
 * builder_shape.c - turns a thread's slices into chunks, mip levels and the call tree.
 *
 * In a large trace two threads read the slices: the caller's adds them to the call tree, the other
 * one turns them into chunks and mip levels and delivers everything in order.  Slices are not
 * passed between the threads, as that would take longer than reading them twice.  Both read a long
 * thread at the same time; the slices of a short one are read after its tree is finished, so that
 * the other thread is woken once.  Before it writes the chunks of a thread, the other one moves the
 * records of the next long thread to pre-order.  The output is identical to the byte either way.
 *
 * A finished tree is read node by node.  The caller's thread encodes the nodes and passes on their
 * sums as it reads them, so a sorted tree is never stored in memory.
 */
#include "decoder/base/relay.h"
#include "decoder/trace/builder_internal.h"

enum { SLOTS = 16, AT_ONCE = 512, READ_AT_ONCE = 1 << 16 };

/* A trace thread is long if it has 1/LONG_SHARE of the slices from which two threads write a
 * trace. */
enum { LONG_SHARE = 32 };

/* A longer thread may have more call paths: a node takes about as much memory as this many
 * records. */
enum { TREE_SHARE = 16 };

struct part {                /* of a thread's output */
	struct track *moved; /* its records are to be moved; NULL: the part is output */
	uint32_t thread_id;
	struct nest nest;
	bool chunks;     /* are written from the nest */
	bool ends;       /* and the nest is closed */
	uint64_t passed; /* parts that were passed on when the chunks were; not of all */
	/* ends: */
	struct tw_thread_info thread;
	struct tw_buf tree; /* encoded */
	uint32_t nodes;
};

struct ahead {                     /* the next long thread, whose records the other thread moves */
	const struct track *track; /* NULL: none */
	uint64_t passed;           /* parts that were passed on with it */
	struct nest nest;          /* set by the other thread */
};

struct tw_shaper {
	const struct tw_builder *builder;
	struct tw_trace_out *out;
	/* used by the caller: */
	struct tw_relay *relay;
	struct part parts[SLOTS];
	struct part taken; /* the last one of the next thread */
	struct part part;  /* the last one of the current thread, until it is complete */
	struct tw_tree_builder *tree;
	struct tw_tree_encoder *encoder;
	struct tw_tree_sums sums;
	bool freed; /* the records of a long thread: their memory suffices for what trees need */
	_Atomic uint64_t added; /* number of records read for trees */
	uint64_t clipped;
	struct ahead ahead;
	/* used to deliver a part: */
	_Atomic uint64_t read; /* number of records read for chunks; approximate */
	struct tw_buf payload;
	struct chunker chunker;
	struct mip mips[TW_MIP_LEVELS];
	uint32_t n_mips, n_mips_ready;
};

/* --- delivery --- */

static enum tw_status begin_mips(struct tw_shaper *s, const struct part *p)
{
	int64_t thresholds_ns[TW_MIP_LEVELS];

	s->n_mips = tw_mip_plan(p->nest.track, thresholds_ns);
	for (uint32_t i = 0; i < s->n_mips; i++) {
		struct mip *m = &s->mips[i];

		if (i >= s->n_mips_ready) {
			enum tw_status st = tw_chunker_init(&m->chunker, &s->payload, s->out);

			s->n_mips_ready++;
			if (st != TW_OK)
				return st;
		}
		m->threshold_ns = thresholds_ns[i];
		m->running = false;
		tw_chunker_start(&m->chunker, p->thread_id, i + 1, m->threshold_ns);
	}
	return TW_OK;
}

static enum tw_status add_slices(
        struct tw_shaper *s, const struct tw_slice *slices, uint32_t n, struct tw_err *err)
{
	enum tw_status st = tw_chunker_add(&s->chunker, slices, n, err);

	return st == TW_OK ? tw_mips_add(s->mips, s->n_mips, slices, n, err) : st;
}

static enum tw_status write_chunks(struct tw_shaper *s, const struct part *p, struct tw_err *err)
{
	struct nest_reader reader = {.nest = &p->nest, .builder = s->builder};
	struct tw_slice slices[AT_ONCE];
	const uint64_t before = s->read;
	const uint64_t end = before + p->nest.track->n;
	enum tw_status st = begin_mips(s, p);
	uint32_t n;

	if (st != TW_OK)
		return tw_oom(err);
	tw_chunker_start(&s->chunker, p->thread_id, 0, 0);
	while (st == TW_OK && (n = tw_nest_read(&reader, slices, AT_ONCE)) > 0) {
		st = add_slices(s, slices, n, err);
		if (before + reader.at < s->read + READ_AT_ONCE)
			continue;
		s->read = before + reader.at;
		/* A short thread before this one may be read later.  It has fewer records, so
		 * `added` reaches the end only with this thread's. */
		if (s->added >= end)
			tw_nest_drop(&p->nest, reader.at);
	}
	s->read = end;
	st = tw_nest_read_end(&reader, st, err);
	if (st == TW_OK)
		st = tw_chunker_flush(&s->chunker, err);
	for (uint32_t i = 0; st == TW_OK && i < s->n_mips; i++)
		st = tw_mip_finish(&s->mips[i], err);
	return st;
}

static enum tw_status deliver(void *arg, uint32_t slot, struct tw_err *err)
{
	struct tw_shaper *s = arg;
	struct part *p = &s->parts[slot];
	enum tw_status st;

	if (p->moved) {
		tw_nest_move(&s->ahead.nest, p->moved);
		return TW_OK;
	}
	st = p->chunks ? write_chunks(s, p, err) : TW_OK;
	if (!p->ends)
		return st;
	tw_nest_close(&p->nest);
	if (st == TW_OK)
		st = s->out->ops->tree(s->out, p->thread.thread_id, p->nodes, &p->tree, err);
	tw_buf_done(&p->tree);
	return st == TW_OK ? s->out->ops->thread(s->out, &p->thread, err) : st;
}

/* --- the caller's side --- */

static bool is_shared(const struct tw_builder *b)
{
	return b->slices >= b->shared_from;
}

struct tw_shaper *tw_shaper_new(const struct tw_builder *b, struct tw_trace_out *out)
{
	struct tw_shaper *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->builder = b;
	s->out = out;
	tw_buf_init(&s->payload, SIZE_MAX / 2);
	s->relay = tw_relay_new(SLOTS, deliver, s);
	s->encoder = tw_tree_encoder_new();
	if (!s->relay || !s->encoder || tw_chunker_init(&s->chunker, &s->payload, out) != TW_OK)
		return tw_shaper_free(s);
	if (is_shared(b))
		tw_relay_start(s->relay);
	return s;
}

static void free_part(struct part *p)
{
	if (p->ends)
		tw_nest_close(&p->nest);
	tw_buf_done(&p->tree);
}

struct tw_shaper *tw_shaper_free(struct tw_shaper *s)
{
	if (!s)
		return NULL;
	tw_relay_free(s->relay);
	for (uint32_t i = 0; i < SLOTS; i++)
		free_part(&s->parts[i]);
	free_part(&s->taken);
	free_part(&s->part);
	tw_nest_close(&s->ahead.nest);
	tw_chunker_done(&s->chunker);
	for (uint32_t i = 0; i < s->n_mips_ready; i++)
		tw_chunker_done(&s->mips[i].chunker);
	tw_tree_builder_free(s->tree);
	tw_tree_encoder_free(s->encoder);
	tw_tree_sums_done(&s->sums);
	tw_buf_done(&s->payload);
	tw_mem_free(s);
	return NULL;
}

static bool is_long(const struct tw_shaper *s, const struct track *t)
{
	return t->n >= s->builder->shared_from / LONG_SHARE;
}

/* Passes a part on, or frees it.  *ret_passed: the number of parts passed on by then. */
static enum tw_status pass_part(
        struct tw_shaper *s, struct part *part, uint64_t *ret_passed, struct tw_err *err)
{
	uint32_t slot;
	enum tw_status st = tw_relay_slot(s->relay, &slot, err);

	if (st != TW_OK) {
		free_part(part);
		return st;
	}
	s->parts[slot] = *part;
	*ret_passed = tw_relay_passed(s->relay) + 1;
	return tw_relay_pass(s->relay, err);
}

static enum tw_status move_ahead(struct tw_shaper *s, struct track *t, struct tw_err *err)
{
	struct part part = {.moved = t};

	s->ahead.track = t;
	return pass_part(s, &part, &s->ahead.passed, err);
}

enum tw_status tw_shaper_nest(struct tw_shaper *s, struct track *t, struct track *next,
        struct nest *ret, struct tw_err *err)
{
	const bool is_ahead = s->ahead.track == t;
	enum tw_status st = TW_OK;

	if (is_ahead) {
		st = tw_relay_wait(s->relay, s->ahead.passed, err);
		*ret = s->ahead.nest;
		s->ahead = (struct ahead){0};
	}
	if (st == TW_OK && next && is_long(s, next) && is_shared(s->builder))
		st = move_ahead(s, next, err);
	if (!is_ahead)
		tw_nest_move(ret, t);
	return st;
}

enum tw_status tw_shaper_take(
        struct tw_shaper *s, const struct nest *nest, uint32_t thread_id, struct tw_err *err)
{
	struct part chunks = {.thread_id = thread_id, .nest = *nest, .chunks = true};

	s->taken = (struct part){.thread_id = thread_id, .nest = *nest, .ends = true};
	tw_buf_init(&s->taken.tree, SIZE_MAX / 2);
	s->taken.chunks = !is_long(s, nest->track);
	return s->taken.chunks ? TW_OK : pass_part(s, &chunks, &s->taken.passed, err);
}

static enum tw_status begin_tree(struct tw_shaper *s, struct tw_err *err)
{
	const struct tw_limits *l = &s->builder->limits;
	uint64_t max_nodes = l->max_tree_nodes + s->part.nest.track->n / TREE_SHARE;

	if (s->tree)
		tw_tree_builder_reset(s->tree, max_nodes);
	else
		s->tree = tw_tree_builder_new(max_nodes);
	return s->tree ? TW_OK : tw_oom(err);
}

enum tw_status tw_shaper_begin(struct tw_shaper *s, struct tw_err *err)
{
	s->part = s->taken;
	s->taken = (struct part){0};
	return begin_tree(s, err);
}

struct nest_reader tw_shaper_slices(const struct tw_shaper *s)
{
	return (struct nest_reader){.nest = &s->part.nest, .builder = s->builder};
}

enum tw_status tw_shaper_add(
        struct tw_shaper *s, const struct tw_slice *slices, uint32_t n, struct tw_err *err)
{
	return tw_tree_builder_add(s->tree, slices, n) == TW_OK ? TW_OK : tw_oom(err);
}

uint64_t tw_shaper_clipped(const struct tw_shaper *s)
{
	return tw_tree_builder_clipped(s->tree);
}

static enum tw_status free_records(struct tw_shaper *s, struct tw_err *err)
{
	enum tw_status st = tw_relay_wait(s->relay, s->part.passed, err);

	if (st == TW_OK) {
		tw_nest_close(&s->part.nest);
		s->freed = true;
	}
	return st;
}

enum tw_status tw_shaper_added(struct tw_shaper *s, struct tw_err *err)
{
	s->added += s->part.nest.track->n;
	/* memory is for the loaded records of one long thread at a time */
	return s->part.nest.loaded && !s->part.chunks ? free_records(s, err) : TW_OK;
}

/* All records are in memory until those of the first long thread are freed.  The other thread frees
 * the remaining ones as it reads them, while the tree is encoded. */
static bool must_wait(const struct tw_shaper *s)
{
	return !s->part.chunks && !s->freed && s->read + s->part.nest.track->n / 2 < s->added;
}

enum tw_status tw_shaper_tree(struct tw_shaper *s, struct tw_err *err)
{
	const uint32_t n = tw_tree_builder_nodes(s->tree);
	enum tw_status st = must_wait(s) ? free_records(s, err) : TW_OK;

	if (st != TW_OK)
		return st;
	s->freed |= !s->part.chunks;
	s->part.nodes = n;
	if ((s->out->ops->sums && !tw_tree_sums_begin(&s->sums, n)) ||
	        tw_tree_builder_end(s->tree) != TW_OK ||
	        tw_tree_encoder_begin(s->encoder, n) != TW_OK)
		return tw_oom(err);
	s->clipped += tw_shaper_clipped(s);
	return TW_OK;
}

enum tw_status tw_shaper_nodes(struct tw_shaper *s, struct tw_tree_node nodes[TW_NODES_AT_ONCE],
        uint32_t *ret_n, struct tw_err *err)
{
	int64_t longest_callee_ns[TW_NODES_AT_ONCE];
	const uint32_t n =
	        tw_tree_builder_read(s->tree, nodes, longest_callee_ns, TW_NODES_AT_ONCE);

	tw_tree_encoder_add(s->encoder, nodes, longest_callee_ns, n);
	if (s->sums.nodes && !tw_tree_sums_add(&s->sums, nodes, n))
		return tw_oom(err);
	*ret_n = n;
	return TW_OK;
}

static enum tw_status end_tree(struct tw_shaper *s, struct tw_err *err)
{
	if (tw_tree_encoder_end(s->encoder, &s->part.tree) != TW_OK)
		return tw_oom(err);
	if (s->sums.nodes) {
		tw_tree_sums_end(&s->sums);
		s->out->ops->sums(s->out, &s->sums);
		tw_tree_sums_done(&s->sums);
	}
	return TW_OK;
}

enum tw_status tw_shaper_end(
        struct tw_shaper *s, const struct tw_thread_info *thread, struct tw_err *err)
{
	enum tw_status st = end_tree(s, err);
	struct part part = s->part;
	uint64_t passed;

	if (st != TW_OK)
		return st;
	part.thread = *thread;
	s->part = (struct part){0};
	return pass_part(s, &part, &passed, err);
}

enum tw_status tw_shaper_finish(struct tw_shaper *s, uint64_t *ret_clipped, struct tw_err *err)
{
	*ret_clipped = s->clipped;
	return tw_relay_finish(s->relay, err);
}
