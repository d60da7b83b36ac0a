/*
 * Unit tests of comparing two sides, against sums over each path of methods by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/query/query_compare.h"
#include "tests/fixtures/random_tree.h"
#include "tests/unit/unit.h"

enum { METHODS = RANDOM_TREE_METHODS, DEPTH = RANDOM_TREE_DEPTH, PATHS = 4000, TRACES = 3 };

struct path { /* of methods from the top, and its time */
	uint32_t method[DEPTH];
	uint32_t n;
	struct tw_compared of[TW_SIDES];
};

struct world {
	struct tw_arena *arena;
	struct tw_forest forests[TW_SIDES][TRACES];
	struct tw_compare_side sides[TW_SIDES];
	struct path *paths; /* [0]: the top */
	uint32_t n;
};

/* --- the plainest way --- */

static struct path *find_path(struct world *w, const struct path *like)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->paths[i].n == like->n &&
		        memcmp(w->paths[i].method, like->method, like->n * sizeof(uint32_t)) == 0)
			return &w->paths[i];
	return NULL;
}

static struct path path_of(const struct tw_tree *t, uint32_t at)
{
	struct path p = {.n = t->nodes[at].depth};

	for (uint32_t i = at, k = p.n; i; i = t->nodes[i].parent)
		p.method[--k] = t->nodes[i].method;
	return p;
}

/* The same, added when it is new. */
static struct path *take_path(struct world *w, const struct path *like)
{
	struct path *p = find_path(w, like);

	if (p)
		return p;
	assert_true(w->n < PATHS);
	w->paths[w->n] = *like;
	return &w->paths[w->n++];
}

static void count_paths(struct world *w, const struct tw_tree *t, int side)
{
	for (uint32_t i = 1; i < t->n; i++) {
		struct path p = path_of(t, i);
		struct path *at = take_path(w, &p);

		at->of[side].self_ns += t->nodes[i].self_ns;
		at->of[side].count += t->nodes[i].count;
		for (; p.n > 0; p.n--)
			take_path(w, &p)->of[side].total_ns += t->nodes[i].self_ns;
		w->paths[0].of[side].total_ns += t->nodes[i].self_ns;
	}
}

/* Sides of different numbers of traces, of up to two threads each. */
static void open_world(struct world *w, uint64_t seed, uint32_t nodes)
{
	*w = (struct world){.arena = tw_arena_new((size_t)1 << 28), .n = 1};
	w->paths = tw_arena_zalloc(w->arena, PATHS, sizeof *w->paths);
	for (int side = 0; side < TW_SIDES; side++) {
		uint32_t traces = 1 + (uint32_t)(seed + (uint64_t)side) % TRACES;

		for (uint32_t i = 0; i < traces; i++) {
			struct tw_tree *t = tw_arena_alloc(w->arena, 2, sizeof *t);

			for (uint32_t k = 0; k < 1 + i % 2; k++) {
				t[k] = random_tree(w->arena, seed++ * 77, nodes);
				t[k].nodes[0].self_ns = 0;
				count_paths(w, &t[k], side);
			}
			w->forests[side][i] = (struct tw_forest){t, 1 + i % 2};
		}
		w->sides[side] = (struct tw_compare_side){w->forests[side], traces};
	}
}

static void close_world(struct world *w)
{
	tw_arena_free(w->arena);
}

static bool same(const struct tw_compared *a, const struct tw_compared *b)
{
	return a->total_ns == b->total_ns && a->self_ns == b->self_ns && a->count == b->count;
}

static double weight(const struct world *w, const struct tw_compared of[TW_SIDES])
{
	double a = (double)of[TW_SIDE_A].total_ns / w->sides[TW_SIDE_A].n_traces;
	double b = (double)of[TW_SIDE_B].total_ns / w->sides[TW_SIDE_B].n_traces;

	return a > b ? a : b;
}

/* --- the tree --- */

static struct path path_in(
        const struct tw_compare *c, uint32_t at, const uint32_t *root, uint32_t n_root)
{
	struct path p = {.n = n_root + c->nodes[at].depth};

	for (uint32_t i = 0; i < n_root; i++)
		p.method[i] = root[i];
	for (uint32_t i = at, k = p.n; i; i = c->nodes[i].parent)
		p.method[--k] = c->nodes[i].method;
	return p;
}

/* Sums hold on both sides, siblings fall, rests come last and are counted. */
static void check_shape(const struct world *w, const struct tw_compare *c, uint32_t max_nodes)
{
	struct tw_compared(*below)[TW_SIDES] = tw_arena_zalloc(w->arena, c->n, sizeof *below);
	uint32_t *last = tw_arena_zalloc(w->arena, c->n, sizeof *last);
	uint64_t hidden = 0;
	uint32_t real = 0;

	for (uint32_t i = 1; i < c->n; i++) {
		const struct tw_compare_node *n = &c->nodes[i];
		uint32_t before = last[n->parent];

		assert_true(n->parent < i);
		assert_int_equal(n->depth, c->nodes[n->parent].depth + 1);
		if (before) {
			assert_int_equal(c->nodes[before].others, 0);
			assert_true(
			        n->others || weight(w, n->of) <= weight(w, c->nodes[before].of));
		}
		last[n->parent] = i;
		real += n->others == 0;
		hidden += n->others;
		for (int s = 0; s < TW_SIDES; s++)
			below[n->parent][s].total_ns += n->of[s].total_ns;
	}
	for (uint32_t i = 0; i < c->n; i++)
		for (int s = 0; s < TW_SIDES; s++)
			assert_int_equal(c->nodes[i].of[s].total_ns,
			        c->nodes[i].of[s].self_ns + below[i][s].total_ns);
	assert_in_range(real, 0, max_nodes);
	assert_int_equal(real + hidden, c->total_nodes);
}

static void check_nodes(
        struct world *w, const struct tw_compare *c, const uint32_t *root, uint32_t n_root)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct path p = path_in(c, i, root, n_root);
		const struct path *want = c->nodes[i].others ? NULL : find_path(w, &p);

		if (c->nodes[i].others) {
			assert_int_equal(c->nodes[i].method, TW_NO_METHOD);
			continue;
		}
		assert_non_null(want);
		if (p.n)
			for (int s = 0; s < TW_SIDES; s++)
				assert_true(same(&c->nodes[i].of[s], &want->of[s]));
	}
}

/* Each returned row weighs at least as much as every omitted one. */
static void check_cut(struct world *w, const struct tw_compare *c, uint32_t max_nodes)
{
	double least = 1e18;
	uint32_t heavier = 0;

	for (uint32_t i = 1; i < c->n; i++)
		if (!c->nodes[i].others && weight(w, c->nodes[i].of) < least)
			least = weight(w, c->nodes[i].of);
	for (uint32_t i = 1; i < w->n; i++)
		heavier += weight(w, w->paths[i].of) > least;
	assert_true(heavier < max_nodes || c->total_nodes <= max_nodes);
}

static void test_tree(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct world w;
		struct tw_compare c;

		open_world(&w, seed * 10, 2 + (uint32_t)seed * 4);
		for (uint32_t max = 1; max < 4000; max = max * 3 + 1) {
			struct tw_compare_query q = {.max_nodes = max};

			assert_int_equal(
			        tw_query_compare(w.sides, &q, NULL, w.arena, &c, NULL), TW_OK);
			assert_int_equal(c.total_nodes, w.n - 1);
			for (int s = 0; s < TW_SIDES; s++)
				assert_int_equal(
				        c.nodes[0].of[s].total_ns, w.paths[0].of[s].total_ns);
			check_shape(&w, &c, max);
			check_nodes(&w, &c, NULL, 0);
			check_cut(&w, &c, max);
		}
		assert_int_equal(c.n, w.n); /* nothing was cut at last */
		close_world(&w);
	}
}

static void test_root(void **state)
{
	struct world w;
	struct tw_compare c;

	(void)state;
	open_world(&w, 5, 120);
	for (uint32_t i = 1; i < w.n; i++) {
		const struct path *p = &w.paths[i];
		struct tw_compare_query q = {p->method, p->n, 5000};

		assert_int_equal(tw_query_compare(w.sides, &q, NULL, w.arena, &c, NULL), TW_OK);
		for (int s = 0; s < TW_SIDES; s++)
			assert_true(same(&c.nodes[0].of[s], &p->of[s]));
		check_nodes(&w, &c, p->method, p->n);
		check_shape(&w, &c, 5000);
	}
	assert_int_equal(
	        tw_query_compare(w.sides, &(struct tw_compare_query){(uint32_t[]){METHODS}, 1, 5},
	                NULL, w.arena, &c, NULL),
	        TW_NOT_FOUND);
	close_world(&w);
}

/* --- methods --- */

static bool has_before(const struct path *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (p->method[i] == p->method[n])
			return true;
	return false;
}

static struct tw_compared sum_of(const struct world *w, uint32_t method, int side)
{
	struct tw_compared sum = {.count = 0};

	for (uint32_t i = 1; i < w->n; i++) {
		const struct path *p = &w->paths[i];

		if (p->method[p->n - 1] != method)
			continue;
		sum.self_ns += p->of[side].self_ns;
		sum.count += p->of[side].count;
		sum.total_ns += has_before(p, p->n - 1) ? 0 : p->of[side].total_ns;
	}
	return sum;
}

static uint32_t traces_with(const struct world *w, uint32_t method, int side)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->sides[side].n_traces; i++) {
		bool has = false;

		for (uint32_t k = 0; k < w->forests[side][i].n; k++)
			for (uint32_t j = 1; j < w->forests[side][i].trees[k].n; j++)
				has |= w->forests[side][i].trees[k].nodes[j].method == method;
		n += has;
	}
	return n;
}

static void test_methods(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world w;
		struct tw_compare_methods m;

		open_world(&w, seed * 10, 3 + (uint32_t)seed * 3);
		assert_int_equal(
		        tw_query_compare_methods(w.sides, METHODS + 3, NULL, w.arena, &m, NULL),
		        TW_OK);
		assert_in_range(m.n, 1, METHODS);
		for (uint32_t i = 0; i < m.n; i++)
			for (int s = 0; s < TW_SIDES; s++) {
				struct tw_compared want = sum_of(&w, m.list[i].method, s);

				assert_true(same(&m.list[i].of[s], &want));
				assert_int_equal(
				        m.list[i].traces[s], traces_with(&w, m.list[i].method, s));
			}
		close_world(&w);
	}
}

/* A trace of B takes 30 ns, one of A 20 ns: sums alone would show the opposite. */
static void test_per_trace(void **state)
{
	struct tw_compare_method m[] = {
	        {.method = 0, .of = {{0, 40, 4}, {0, 30, 1}}},
	        {.method = 1, .of = {{500, 0, 0}, {100, 5, 9}}},
	        {.method = 2, .of = {{6, 30, 8}, {2, 0, 0}}},
	};
	const struct tw_compare_side sides[TW_SIDES] = {{NULL, 2}, {NULL, 1}};
	const uint32_t want[][3] = {[TW_BY_SELF_CHANGE] = {2, 0, 1},
	        [TW_BY_TOTAL_CHANGE] = {1, 2, 0},
	        [TW_BY_COUNT_CHANGE] = {1, 2, 0},
	        [TW_BY_SELF_A] = {0, 2, 1},
	        [TW_BY_SELF_B] = {0, 1, 2},
	        [TW_BY_TOTAL_A] = {1, 2, 0},
	        [TW_BY_TOTAL_B] = {1, 2, 0},
	        [TW_BY_COUNT_A] = {2, 0, 1},
	        [TW_BY_COUNT_B] = {1, 0, 2},
	        [TW_BY_METHOD] = {2, 1, 0}};

	(void)state;
	assert_true(tw_compare_self_change(&m[0], sides) == 10);
	for (unsigned sort = 0; sort <= TW_BY_METHOD; sort++) {
		tw_compare_rank(m, 3, sides, (enum tw_compare_sort)sort, false);
		for (int i = 0; i < 3; i++)
			assert_int_equal(m[i].method, want[sort][i]);
	}
	tw_compare_rank(m, 3, sides, TW_BY_METHOD, true);
	assert_int_equal(m[0].method, 0);
	tw_compare_rank(m, 0, sides, TW_BY_METHOD, true);
}

/* --- what goes wrong --- */

static bool count_down(void *arg)
{
	int *left = arg;

	return (*left)-- <= 1;
}

static uint32_t trees_of(const struct world *w)
{
	uint32_t n = 0;

	for (int s = 0; s < TW_SIDES; s++)
		for (uint32_t i = 0; i < w->sides[s].n_traces; i++)
			n += w->sides[s].traces[i].n;
	return n;
}

/* The deadline is checked before each tree, so a side of many traces ends soon after it. */
static void test_deadline(void **state)
{
	const struct tw_compare_query q = {.max_nodes = 5};
	struct tw_compare_methods m;
	struct tw_compare c;
	struct world w;
	int left;
	const struct tw_deadline d = {count_down, &left};

	(void)state;
	open_world(&w, 5, 50);
	assert_true(trees_of(&w) > 2);
	for (int n = 1; n <= (int)trees_of(&w); n++) {
		left = n;
		assert_int_equal(tw_query_compare(w.sides, &q, &d, w.arena, &c, NULL), TW_DEADLINE);
		left = n;
		assert_int_equal(tw_query_compare_methods(w.sides, METHODS, &d, w.arena, &m, NULL),
		        TW_DEADLINE);
	}
	left = (int)trees_of(&w) + 1;
	assert_int_equal(tw_query_compare_methods(w.sides, METHODS, &d, w.arena, &m, NULL), TW_OK);
	close_world(&w);
}

static void test_refusals(void **state)
{
	struct tw_compare_methods m;
	struct world w;

	(void)state;
	open_world(&w, 5, 50);
	assert_int_equal(tw_query_compare_methods(w.sides, 1, NULL, w.arena, &m, NULL), TW_CORRUPT);
	close_world(&w);
}

static void test_memory(void **state)
{
	enum tw_status st = TW_NOMEM;
	struct world w;

	(void)state;
	open_world(&w, 5, 400);
	for (uint64_t n = 1; st != TW_OK; n++) {
		struct tw_arena *a = tw_arena_new((size_t)1 << 28);
		struct tw_compare_query q = {.max_nodes = 50};
		struct tw_compare_methods m;
		struct tw_compare c;

		tw_mem_fail_at(n);
		st = tw_query_compare(w.sides, &q, NULL, a, &c, NULL);
		if (st == TW_OK)
			st = tw_query_compare_methods(w.sides, METHODS, NULL, a, &m, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		tw_arena_free(a);
	}
	close_world(&w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_per_trace),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_memory),
};

UNIT_TESTS("compare", tests)
