/*
 * rollup_tree_bytes.c - stored form of merged trees.
 *
 * All numbers are varints except those of methods (8 bytes): traces, drop, omitted_level; number of
 * kinds of threads, and the length and bytes of each name; number of methods, and their numbers,
 * rising; number of nodes, and in pre-order for each its depth (0: a thread), index of thread or
 * method, its numbers, and its number of levels; if that is one, the level, otherwise the root mean
 * square of its times per trace.  Numbers are traces, calls, self, total * 2, and if 1 is added to
 * that also CPU and own CPU. `levels` has, for each node with more than one level, in the same
 * order, each level and its numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "decoder/base/order.h"
#include "server/stats/rollup_tree.h"

enum { LEVEL_MAX = 63, LEVELS = 64 };

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, "too many call trees for one response; narrow the filter");
}

/* --- writing --- */

struct ordered { /* a node and its sort key: its parent, then its number */
	uint64_t method;
	uint32_t parent, node;
};

struct writing {
	const struct tw_rollup_tree *t;
	struct ordered *list;
	uint32_t n;
	uint32_t *first;   /* of each node's children in list, index + 1 */
	uint64_t *methods; /* numbers in use, rising */
	uint32_t n_methods;
	uint64_t *threads;
	uint32_t n_threads;
	struct tw_buf *levels;
};

TW_ORDER_BY(by_parent, struct ordered, TW_RISING(parent), TW_RISING(method))

static uint32_t unique(uint64_t *numbers, uint32_t n)
{
	uint32_t kept = 0;

	TW_SORT(numbers, n, tw_by_u64);
	for (uint32_t i = 0; i < n; i++)
		if (kept == 0 || numbers[kept - 1] != numbers[i])
			numbers[kept++] = numbers[i];
	return kept;
}

static bool put_in_order(struct writing *w)
{
	const struct tw_rollup_tree *t = w->t;

	w->list = tw_mem_alloc((size_t)t->n + 1, sizeof *w->list);
	w->first = tw_mem_zalloc((size_t)t->n + 1, sizeof *w->first);
	w->methods = tw_mem_alloc((size_t)t->n + 1, sizeof *w->methods);
	w->threads = tw_mem_alloc((size_t)t->n + 1, sizeof *w->threads);
	if (!w->list || !w->first || !w->methods || !w->threads)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_rollup_tree_node *n = &t->nodes[i];

		if (!tw_rollup_tree_keeps(t, n))
			continue;
		w->list[w->n++] = (struct ordered){n->method, n->parent, i};
		if (n->parent == TW_ROLLUP_NO_NODE)
			w->threads[w->n_threads++] = n->method;
		else
			w->methods[w->n_methods++] = n->method;
	}
	w->n_methods = unique(w->methods, w->n_methods);
	w->n_threads = unique(w->threads, w->n_threads);
	TW_SORT(w->list, w->n, by_parent);
	for (uint32_t i = w->n; i-- > 0;)
		if (w->list[i].parent != TW_ROLLUP_NO_NODE)
			w->first[w->list[i].parent] = i + 1;
	return true;
}

/* n: not found */
static uint32_t index_of(const uint64_t *numbers, uint32_t n, uint64_t number)
{
	const uint64_t *at = n ? bsearch(&number, numbers, n, sizeof number, tw_by_u64) : NULL;

	return at ? (uint32_t)(at - numbers) : n;
}

/* Of all threads, writes those in use, by number.  False: out of memory. */
static bool write_threads(const struct writing *w, struct tw_buf *out)
{
	const struct tw_rollup_tree *t = w->t;
	struct tw_str *names = tw_mem_zalloc((size_t)w->n_threads + 1, sizeof *names);

	if (!names)
		return false;
	for (uint32_t k = 0; k < t->n_threads; k++)
		names[index_of(w->threads, w->n_threads, t->threads[k].id)] = t->threads[k].name;
	(void)tw_buf_add_varint(out, w->n_threads);
	for (uint32_t i = 0; i < w->n_threads; i++) {
		(void)tw_buf_add_varint(out, names[i].len);
		(void)tw_buf_add_str(out, names[i]);
	}
	tw_mem_free(names);
	return true;
}

static void write_numbers(const struct tw_rollup_tree_sum *s, struct tw_buf *out)
{
	bool has_cpu = s->cpu_ns || s->cpu_self_ns;

	(void)tw_buf_add_varint(out, s->traces);
	(void)tw_buf_add_varint(out, s->calls);
	(void)tw_buf_add_varint(out, (uint64_t)s->self_ns);
	(void)tw_buf_add_varint(out, (uint64_t)s->total_ns << 1 | has_cpu);
	if (!has_cpu)
		return;
	(void)tw_buf_add_varint(out, (uint64_t)s->cpu_ns);
	(void)tw_buf_add_varint(out, (uint64_t)s->cpu_self_ns);
}

/* Estimates the sum of squares of the traces' times.  Those of one level differ by at most a factor
 * of two; for an even distribution it is 1/27 more than if all were equal to their mean. */
static double square_of(const struct tw_rollup_tree_sum *s)
{
	double total = (double)s->total_ns;

	if (s->traces < 2)
		return total * total;
	return total * total / (double)s->traces * (1 + 1.0 / 27);
}

static void write_levels(const struct writing *w, const struct tw_rollup_tree_node *n,
        const struct tw_rollup_tree_sum *all, struct tw_buf *out)
{
	const struct tw_rollup_tree *t = w->t;
	double square = 0;

	for (uint32_t i = n->first; i; i = t->sums[i - 1].next) {
		const struct tw_rollup_tree_sum *s = &t->sums[i - 1];

		if (s->level < t->drop)
			continue;
		square += square_of(s);
		(void)tw_buf_add_varint(w->levels, s->level);
		write_numbers(s, w->levels);
	}
	(void)tw_buf_add_varint(
	        out, (uint64_t)sqrt(square / (double)(all->traces ? all->traces : 1)));
}

static void write_node(const struct writing *w, uint32_t node, uint32_t depth, struct tw_buf *out)
{
	const struct tw_rollup_tree *t = w->t;
	const struct tw_rollup_tree_node *n = &t->nodes[node];
	const struct tw_rollup_tree_sum all = tw_rollup_tree_all(t, node);
	uint32_t levels = 0;

	for (uint32_t i = n->first; i; i = t->sums[i - 1].next)
		levels += t->sums[i - 1].level >= t->drop;
	(void)tw_buf_add_varint(out, depth);
	(void)tw_buf_add_varint(out, depth ? index_of(w->methods, w->n_methods, n->method)
	                                   : index_of(w->threads, w->n_threads, n->method));
	write_numbers(&all, out);
	(void)tw_buf_add_varint(out, levels);
	if (levels == 1)
		(void)tw_buf_add_varint(out, n->top);
	else
		write_levels(w, n, &all, out);
}

/* Writes the tree of a thread without recursion: next[d] is the list position where depth d
 * continues. */
static void write_below(const struct writing *w, uint32_t thread, struct tw_buf *out)
{
	uint32_t next[TW_ROLLUP_DEPTH_MAX + 2];
	uint32_t parent[TW_ROLLUP_DEPTH_MAX + 2];
	uint32_t depth = 1;

	write_node(w, thread, 0, out);
	parent[1] = thread;
	next[1] = w->first[thread];
	while (depth > 0) {
		uint32_t at = next[depth];

		if (at == 0 || at > w->n || w->list[at - 1].parent != parent[depth]) {
			depth--;
			continue;
		}
		next[depth]++;
		write_node(w, w->list[at - 1].node, depth, out);
		if (depth <= TW_ROLLUP_DEPTH_MAX) {
			parent[++depth] = w->list[at - 1].node;
			next[depth] = w->first[parent[depth]];
		}
	}
}

enum tw_status tw_rollup_tree_write(const struct tw_rollup_tree *t, struct tw_buf *out,
        struct tw_buf *levels, struct tw_err *err)
{
	struct writing w = {.t = t, .levels = levels};
	bool fits = put_in_order(&w);

	if (fits) {
		(void)tw_buf_add_varint(out, t->traces);
		(void)tw_buf_add_varint(out, t->drop);
		(void)tw_buf_add_varint(out, t->omitted_level);
		fits = write_threads(&w, out);
		(void)tw_buf_add_varint(out, w.n_methods);
		for (uint32_t i = 0; i < w.n_methods; i++)
			(void)tw_buf_add_u64le(out, w.methods[i]);
		(void)tw_buf_add_varint(out, w.n);
		for (uint32_t i = 0; i < w.n; i++)
			if (w.list[i].parent == TW_ROLLUP_NO_NODE)
				write_below(&w, w.list[i].node, out);
	}
	tw_mem_free(w.list);
	tw_mem_free(w.first);
	tw_mem_free(w.methods);
	tw_mem_free(w.threads);
	fits = fits && tw_buf_status(out) == TW_OK && tw_buf_status(levels) == TW_OK;
	return fits ? TW_OK : no_memory(err);
}

/* --- reading --- */

struct reading {
	struct tw_rollup_tree *t;
	const uint8_t *p, *end;
	const uint8_t *level, *levels_end;
	uint64_t *threads; /* their ids */
	uint64_t n_threads;
	const uint8_t *methods; /* 8 bytes each */
	uint64_t n_methods;
	uint32_t path[TW_ROLLUP_DEPTH_MAX + 2]; /* open nodes; TW_ROLLUP_NO_NODE: dropped */
	uint64_t depth;                         /* of the previous node, + 1 */
};

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT,
	        "the merged call trees are damaged; `tracewell rollup --rebuild` makes them "
	        "again");
}

static bool number(struct reading *r, uint64_t max, uint64_t *ret)
{
	return tw_get_varint(&r->p, r->end, ret) && *ret <= max;
}

static enum tw_status read_threads(struct reading *r, struct tw_err *err)
{
	if (!number(r, (uint64_t)(r->end - r->p), &r->n_threads))
		return damaged(err);
	r->threads = tw_arena_alloc(r->t->arena, r->n_threads + 1, sizeof *r->threads);
	if (!r->threads)
		return no_memory(err);
	for (uint64_t i = 0; i < r->n_threads; i++) {
		uint64_t len;
		uint32_t node;

		if (!number(r, TW_ROLLUP_THREAD_BYTES - 1, &len) || len > (uint64_t)(r->end - r->p))
			return damaged(err);
		node = tw_rollup_tree_thread(r->t, (struct tw_str){(const char *)r->p, len});
		if (node == TW_ROLLUP_NO_NODE)
			return no_memory(err);
		r->threads[i] = r->t->nodes[node].method;
		r->p += len;
	}
	return TW_OK;
}

static bool read_head(struct reading *r, unsigned *ret_drop)
{
	uint64_t traces, drop, omitted_level;

	if (!number(r, INT64_MAX, &traces) || !number(r, LEVEL_MAX + 1, &drop) ||
	        !number(r, LEVEL_MAX + 1, &omitted_level))
		return false;
	r->t->traces += traces;
	if (omitted_level > r->t->omitted_level)
		r->t->omitted_level = (unsigned)omitted_level;
	*ret_drop = (unsigned)drop;
	return true;
}

static bool read_methods(struct reading *r)
{
	if (!number(r, (uint64_t)(r->end - r->p) / 8, &r->n_methods) ||
	        r->n_methods * 8 > (uint64_t)(r->end - r->p))
		return false;
	r->methods = r->p;
	r->p += r->n_methods * 8;
	return true;
}

static bool read_numbers(const uint8_t **p, const uint8_t *end, struct tw_rollup_tree_sum *s)
{
	uint64_t self, total, cpu = 0, cpu_self = 0;

	if (!tw_get_varint(p, end, &s->traces) || !tw_get_varint(p, end, &s->calls) ||
	        !tw_get_varint(p, end, &self) || !tw_get_varint(p, end, &total))
		return false;
	if ((total & 1) && (!tw_get_varint(p, end, &cpu) || !tw_get_varint(p, end, &cpu_self)))
		return false;
	if (self > INT64_MAX || cpu > INT64_MAX || cpu_self > INT64_MAX || s->traces > INT64_MAX ||
	        s->calls > INT64_MAX)
		return false;
	s->self_ns = (int64_t)self;
	s->total_ns = (int64_t)(total >> 1);
	s->cpu_ns = (int64_t)cpu;
	s->cpu_self_ns = (int64_t)cpu_self;
	return true;
}

/* Reads a node's totals, and their level if it has only one. */
static bool read_all(struct reading *r, struct tw_rollup_tree_sum *ret, uint64_t *ret_levels)
{
	uint64_t level, root;

	*ret = (struct tw_rollup_tree_sum){0};
	if (!read_numbers(&r->p, r->end, ret) || !number(r, LEVELS, ret_levels) ||
	        !number(r, INT64_MAX, *ret_levels == 1 ? &level : &root))
		return false;
	if (*ret_levels != 1) {
		ret->square = (double)root * (double)root * (double)ret->traces;
		return true;
	}
	if (level > LEVEL_MAX)
		return false;
	ret->level = (uint32_t)level;
	ret->square = square_of(ret);
	return true;
}

struct node_position { /* the position of a node, which is created only if part of it is kept */
	uint32_t parent;
	bool is_thread;
	uint64_t method;
	uint32_t node;
};

/* The caller of a kept node is kept too. */
static enum tw_status take(struct reading *r, struct node_position *at,
        const struct tw_rollup_tree_sum *s, struct tw_err *err)
{
	if (!r->t->coarse && s->level < r->t->drop)
		return TW_OK;
	if (!at->is_thread && at->parent == TW_ROLLUP_NO_NODE)
		return damaged(err);
	if (at->node == TW_ROLLUP_NO_NODE)
		at->node = tw_rollup_tree_child(r->t, at->parent, at->method);
	if (at->node == TW_ROLLUP_NO_NODE || !tw_rollup_tree_add(r->t, at->node, s))
		return no_memory(err);
	return TW_OK;
}

static enum tw_status take_levels(
        struct reading *r, struct node_position *at, uint64_t levels, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint64_t i = 0; st == TW_OK && i < levels; i++) {
		struct tw_rollup_tree_sum s = {0};
		uint64_t level;

		if (!tw_get_varint(&r->level, r->levels_end, &level) || level > LEVEL_MAX ||
		        !read_numbers(&r->level, r->levels_end, &s))
			return damaged(err);
		s.level = (uint32_t)level;
		st = take(r, at, &s, err);
	}
	return st;
}

static enum tw_status read_node(struct reading *r, struct tw_err *err)
{
	struct tw_rollup_tree_sum all;
	uint64_t depth, index, levels;
	struct node_position at = {TW_ROLLUP_NO_NODE, false, 0, TW_ROLLUP_NO_NODE};
	enum tw_status st;

	if (!number(r, TW_ROLLUP_DEPTH_MAX + 1, &depth) || depth > r->depth ||
	        !number(r, UINT32_MAX, &index) || index >= (depth ? r->n_methods : r->n_threads) ||
	        !read_all(r, &all, &levels))
		return damaged(err);
	at.is_thread = depth == 0;
	at.parent = depth ? r->path[depth - 1] : TW_ROLLUP_NO_NODE;
	at.method = depth ? tw_u64le(r->methods + 8 * index) : r->threads[index];
	if (r->t->coarse)
		all.level = 0;
	st = r->t->coarse || levels == 1 ? take(r, &at, &all, err)
	                                 : take_levels(r, &at, levels, err);
	r->path[depth] = at.node;
	r->depth = depth + 1;
	return st;
}

static enum tw_status read_nodes(struct reading *r, struct tw_err *err)
{
	uint64_t nodes = 0;
	enum tw_status st = read_threads(r, err);

	if (st == TW_OK && (!read_methods(r) || !number(r, UINT32_MAX, &nodes)))
		st = damaged(err);
	for (uint64_t i = 0; st == TW_OK && i < nodes; i++)
		st = read_node(r, err);
	if (st == TW_OK && (r->p != r->end || (!r->t->coarse && r->level != r->levels_end)))
		st = damaged(err);
	return st;
}

static struct reading reading_of(struct tw_rollup_tree *t, const struct tw_rollup_written *w)
{
	const uint8_t *data = (const uint8_t *)w->data.ptr;
	const uint8_t *levels = (const uint8_t *)w->levels.ptr;

	return (struct reading){.t = t,
	        .p = data,
	        .end = data + w->data.len,
	        .level = levels,
	        .levels_end = w->levels.len ? levels + w->levels.len : levels};
}

enum tw_status tw_rollup_tree_merge(
        struct tw_rollup_tree *t, const struct tw_rollup_written *w, struct tw_err *err)
{
	struct reading r = reading_of(t, w);
	unsigned drop;

	return read_head(&r, &drop) ? read_nodes(&r, err) : damaged(err);
}

enum tw_status tw_rollup_tree_resume(
        struct tw_rollup_tree *t, const struct tw_rollup_written *w, struct tw_err *err)
{
	struct reading r = reading_of(t, w);

	return read_head(&r, &t->drop) ? read_nodes(&r, err) : damaged(err);
}
