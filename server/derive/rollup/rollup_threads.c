/*
 * rollup_threads.c - facts of a trace by kind of thread, from its call trees.
 */
#include <string.h>

#include "server/derive/rollup/rollup_writer_int.h"

enum { KINDS_MAX = 256, THREADS_BYTES = 32 << 20 };

struct by_thread {
	const struct tw_rollup_indexing *of;
	struct tw_arena *arena, *trees; /* the latter for one call tree at a time */
	const struct tw_thread_info *threads;
	uint32_t n;
	uint32_t *kinds; /* of each thread */
	char (*names)[TW_ROLLUP_THREAD_BYTES];
	uint32_t n_kinds;
	struct tw_method_info *rows; /* by method, of the current kind */
	uint32_t *active;            /* zeros, see tw_tree_add_methods */
	struct tw_rollup_fact *facts;
};

/* Kinds beyond the limit share the last one. */
static void find_kinds(struct by_thread *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		char name[TW_ROLLUP_THREAD_BYTES];
		uint32_t k = 0;

		tw_rollup_thread_name(b->threads[i].name, b->threads[i].is_main, name);
		while (k < b->n_kinds && strcmp(b->names[k], name) != 0)
			k++;
		if (k == KINDS_MAX)
			b->names[--k][0] = '\0';
		else if (k == b->n_kinds)
			(void)memcpy(b->names[b->n_kinds++], name, sizeof name);
		b->kinds[i] = k;
	}
}

/* Methods without a number are added up as tw_rollup_bound does. */
static size_t take_facts(struct by_thread *b)
{
	struct tw_rollup_fact rest = {.method = TW_ROLLUP_OTHER, .cpu_ns = -1};
	size_t n = 0;

	for (uint32_t i = 0; i < b->of->n_methods; i++) {
		const struct tw_method_info *m = &b->rows[i];

		if (m->count && b->of->numbers[i]) {
			b->facts[n++] = (struct tw_rollup_fact){b->of->numbers[i], m->count,
			        m->total_ns, m->self_ns, m->sum_ns, m->cpu_ns, i};
		} else if (m->count) {
			rest.count += m->count;
			rest.self_ns = tw_sketch_sum(rest.self_ns, m->self_ns);
		}
	}
	rest.total_ns = rest.sum_ns = rest.self_ns;
	if (rest.count)
		b->facts[n++] = rest;
	return tw_rollup_bound(b->facts, n);
}

static enum tw_status take_kind(
        struct by_thread *b, uint32_t kind, struct tw_buf *out, struct tw_err *err)
{
	struct tw_tree tree;
	enum tw_status st = TW_OK;
	size_t n;

	memset(b->rows, 0, b->of->n_methods * sizeof *b->rows);
	for (uint32_t i = 0; st == TW_OK && i < b->n; i++) {
		if (b->kinds[i] != kind || b->threads[i].slices == 0)
			continue;
		tw_arena_reset(b->trees);
		st = tw_trace_file_tree(b->of->file, b->threads[i].thread_id, b->trees, &tree, err);
		if (st == TW_OK &&
		        !tw_tree_add_methods(&tree, b->of->n_methods, b->rows, b->active))
			st = tw_fail(err, TW_CORRUPT, "a call tree is damaged");
		if (st == TW_NOT_FOUND)
			st = TW_OK;
	}
	n = st == TW_OK ? take_facts(b) : 0;
	if (n)
		tw_rollup_write_thread(tw_str_of(b->names[kind]), b->facts, n, out);
	return st;
}

static bool reserve_space(struct by_thread *b)
{
	b->kinds = tw_arena_alloc(b->arena, (size_t)b->n + 1, sizeof *b->kinds);
	b->names = tw_arena_alloc(b->arena, KINDS_MAX, sizeof *b->names);
	b->rows = tw_arena_alloc(b->arena, (size_t)b->of->n_methods + 1, sizeof *b->rows);
	b->active = tw_arena_zalloc(b->arena, (size_t)b->of->n_methods + 1, sizeof *b->active);
	b->facts = tw_arena_alloc(b->arena, (size_t)b->of->n_methods + 1, sizeof *b->facts);
	return b->kinds && b->names && b->rows && b->active && b->facts;
}

enum tw_status tw_rollup_take_threads(struct tw_rollup_worker *f,
        const struct tw_rollup_indexing *of, struct tw_str *ret, struct tw_err *err)
{
	struct by_thread b = {.of = of,
	        .arena = tw_arena_new(TW_ROLLUP_WORKER_BYTES),
	        .trees = tw_arena_new(TW_ROLLUP_WORKER_BYTES)};
	struct tw_buf out;
	enum tw_status st = TW_OK;

	b.threads = tw_trace_file_threads(of->file, &b.n);
	tw_buf_init(&out, THREADS_BYTES);
	if (!b.arena || !b.trees || !reserve_space(&b))
		st = tw_oom(err);
	if (st == TW_OK)
		find_kinds(&b);
	for (uint32_t k = 0; st == TW_OK && k < b.n_kinds; k++)
		st = take_kind(&b, k, &out, err);
	tw_arena_free(b.trees);
	tw_arena_free(b.arena);
	if (st == TW_OK)
		return tw_rollup_copy(&out, f->arena, ret, err);
	tw_buf_done(&out);
	return st;
}
