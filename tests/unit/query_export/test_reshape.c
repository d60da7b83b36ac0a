/*
 * Unit tests of reshaped call trees, against the same steps taken on each path of methods by
 * itself: a tree is its paths and the time at the end of each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/query/query_reshape.h"
#include "tests/fixtures/random_tree.h"
#include "tests/unit/unit.h"

enum {
	METHODS = RANDOM_TREE_METHODS,
	NODES = 400,
	DEPTH = RANDOM_TREE_DEPTH,
	AS = METHODS,
	PATHS = NODES
};

struct path { /* of methods from the top, and the time at its end */
	uint32_t method[2 * DEPTH];
	uint32_t n;
	int64_t self_ns, cpu_ns;
	uint64_t count;
};

/* The CPU time of a node without its callees'. */
static int64_t own_cpu_of(const struct tw_tree *t, uint32_t at)
{
	int64_t own = t->nodes[at].cpu_ns;

	for (uint32_t i = at + 1; i < t->n; i++)
		if (t->nodes[i].parent == at)
			own -= t->nodes[i].cpu_ns;
	return own;
}

static uint32_t paths_of(const struct tw_tree *t, struct path *ret)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct path *p = &ret[i];

		*p = (struct path){.n = t->nodes[i].depth,
		        .self_ns = t->nodes[i].self_ns,
		        .cpu_ns = i ? own_cpu_of(t, i) : 0,
		        .count = t->nodes[i].count};
		for (uint32_t at = i, k = p->n; at; at = t->nodes[at].parent)
			p->method[--k] = t->nodes[at].method;
	}
	return t->n;
}

static void remove_at(struct path *p, uint32_t at)
{
	memmove(p->method + at, p->method + at + 1, (p->n - at - 1) * sizeof *p->method);
	p->n--;
}

/* False: the path was removed. */
static bool step_path(struct path *p, const struct tw_reshape *s)
{
	uint32_t first = 0;

	while (first < p->n && !(s->methods && tw_reshape_means(s, p->method[first])))
		first++;
	if (s->kind == TW_RESHAPE_DROP)
		return first == p->n;
	if (s->kind == TW_RESHAPE_FOLD && first + 1 < p->n)
		p->n = first + 1;
	if (s->kind == TW_RESHAPE_FOCUS) {
		bool there = first < p->n;

		for (; first && there; first--)
			remove_at(p, 0);
		return there;
	}
	for (uint32_t i = p->n; i-- > 0;) {
		bool meant = s->methods && tw_reshape_means(s, p->method[i]);

		if (s->kind == TW_RESHAPE_MERGE && meant) {
			p->count *= i + 1 < p->n;
			remove_at(p, i);
		} else if (s->kind == TW_RESHAPE_COLLAPSE && meant) {
			p->method[i] = s->as;
		}
	}
	if (s->kind == TW_RESHAPE_COLLAPSE || s->kind == TW_RESHAPE_RECURSION)
		for (uint32_t i = p->n; i-- > 1;)
			if (p->method[i] == p->method[i - 1] &&
			        (s->kind == TW_RESHAPE_RECURSION || p->method[i] == s->as))
				remove_at(p, i);
	return true;
}

static int by_path(const void *pa, const void *pb)
{
	const struct path *a = pa;
	const struct path *b = pb;

	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (a->method[i] != b->method[i])
			return a->method[i] < b->method[i] ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

/* One entry a path, those without time left out: a frame may be there for its callees only. */
static uint32_t add_up(struct path *p, uint32_t n)
{
	uint32_t out = 0;

	qsort(p, n, sizeof *p, by_path);
	for (uint32_t i = 0; i < n; i++)
		if (out && by_path(&p[out - 1], &p[i]) == 0) {
			p[out - 1].self_ns += p[i].self_ns;
			p[out - 1].cpu_ns += p[i].cpu_ns;
		} else {
			p[out++] = p[i];
		}
	n = 0;
	for (uint32_t i = 0; i < out; i++)
		if (p[i].self_ns || p[i].cpu_ns)
			p[n++] = p[i];
	return n;
}

static void check_shape(const struct tw_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		int64_t total = n->self_ns;
		uint32_t below = 1;

		for (uint32_t k = i + 1; k < t->n; k++)
			if (t->nodes[k].parent == i) {
				total += t->nodes[k].total_ns;
				below += t->nodes[k].subtree;
			}
		assert_int_equal(n->total_ns, total);
		assert_int_equal(n->subtree, below);
		assert_true(i == 0 || n->parent < i);
		assert_int_equal(n->depth, i ? t->nodes[n->parent].depth + 1 : 0);
		assert_true(i == 0 || i < n->parent + t->nodes[n->parent].subtree);
	}
}

static void check(const struct tw_tree *tree, const struct tw_reshape *steps, size_t n_steps,
        struct tw_arena *a)
{
	static struct path want[PATHS];
	static struct path got[PATHS];
	struct tw_forest f = {tree, 1};
	struct tw_forest out;
	bool partial = false;
	uint32_t n_want = 0;
	uint32_t n_got;
	uint32_t n = paths_of(tree, want);

	for (uint32_t i = 0; i < n; i++) {
		bool there = true;

		for (size_t k = 0; there && k < n_steps; k++)
			there = step_path(&want[i], &steps[k]);
		if (there)
			want[n_want++] = want[i];
	}
	assert_int_equal(
	        tw_query_reshape(&f, steps, n_steps, NULL, a, &out, &partial, NULL), TW_OK);
	check_shape(&out.trees[0]);
	n_got = paths_of(&out.trees[0], got);
	got[0].cpu_ns = own_cpu_of(&out.trees[0], 0);
	n_want = add_up(want, n_want);
	n_got = add_up(got, n_got);
	assert_int_equal(n_got, n_want);
	for (uint32_t i = 0; i < n_got; i++) {
		assert_int_equal(by_path(&got[i], &want[i]), 0);
		assert_int_equal(got[i].self_ns, want[i].self_ns);
		assert_int_equal(got[i].cpu_ns, want[i].cpu_ns);
	}
}

static void test_each_step(void **state)
{
	struct tw_arena *a = tw_arena_new(64u << 20);
	uint8_t bits[2] = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		for (int kind = TW_RESHAPE_FOCUS; kind <= TW_RESHAPE_RECURSION; kind++) {
			struct tw_tree t = random_tree(a, seed * 77, 2 + (uint32_t)seed * 6);
			struct tw_reshape s = {(enum tw_reshape_kind)kind, bits, METHODS, AS};

			bits[0] = (uint8_t)(seed * 37);
			if (kind == TW_RESHAPE_RECURSION)
				s.methods = NULL;
			check(&t, &s, 1, a);
			tw_arena_reset(a);
		}
	tw_arena_free(a);
}

static void test_steps_in_order(void **state)
{
	struct tw_arena *a = tw_arena_new(64u << 20);
	uint8_t bits[4][2];
	uint64_t r = 5;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct tw_tree t = random_tree(a, (uint64_t)round + 1000, NODES);
		struct tw_reshape s[4];

		for (int k = 0; k < 4; k++) {
			bits[k][0] = (uint8_t)(1u << random_number(&r) % 8);
			bits[k][1] = (uint8_t)(random_number(&r) % 32); /* also what steps made */
			s[k] = (struct tw_reshape){(enum tw_reshape_kind)(random_number(&r) % 6),
			        bits[k], METHODS + 4, (uint32_t)(AS + k)};
			if (s[k].kind == TW_RESHAPE_RECURSION)
				s[k].methods = NULL;
		}
		check(&t, s, (size_t)round % 4 + 1, a);
		tw_arena_reset(a);
	}
	tw_arena_free(a);
}

static void test_nothing_left(void **state)
{
	struct tw_arena *a = tw_arena_new(64u << 20);
	struct tw_tree t = random_tree(a, 3, 50);
	uint8_t all[2] = {255, 255};
	struct tw_reshape s = {TW_RESHAPE_DROP, all, METHODS, 0};
	struct tw_forest f = {&t, 1};
	struct tw_forest out;
	bool partial = false;

	(void)state;
	assert_int_equal(tw_query_reshape(&f, &s, 1, NULL, a, &out, &partial, NULL), TW_OK);
	assert_int_equal(out.trees[0].n, 1);
	assert_int_equal(out.trees[0].nodes[0].total_ns, t.nodes[0].self_ns);
	s.kind = TW_RESHAPE_MERGE; /* all of it becomes the thread's own */
	assert_int_equal(tw_query_reshape(&f, &s, 1, NULL, a, &out, &partial, NULL), TW_OK);
	assert_int_equal(out.trees[0].n, 1);
	assert_int_equal(out.trees[0].nodes[0].total_ns, t.nodes[0].total_ns);
	f.n = 0;
	assert_int_equal(tw_query_reshape(&f, &s, 1, NULL, a, &out, &partial, NULL), TW_OK);
	tw_arena_free(a);
}

static void test_memory(void **state)
{
	struct tw_arena *a = tw_arena_new(1u << 20);
	struct tw_tree t = random_tree(a, 3, 50);
	struct tw_reshape s = {.kind = TW_RESHAPE_RECURSION};
	struct tw_forest f = {&t, 1};
	struct tw_forest out;
	bool partial = false;
	struct tw_arena *small = tw_arena_new(1024);

	(void)state;
	assert_int_equal(tw_query_reshape(&f, &s, 1, NULL, small, &out, &partial, NULL), TW_NOMEM);
	tw_arena_free(small);
	tw_arena_free(a);
}

static bool pass_third(void *arg)
{
	return ++*(int *)arg > 2;
}

static void test_trees_after_the_deadline(void **state)
{
	struct tw_arena *a = tw_arena_new(1u << 20);
	struct tw_tree trees[4];
	struct tw_reshape s = {.kind = TW_RESHAPE_RECURSION};
	struct tw_forest f = {trees, 4};
	struct tw_forest out;
	bool partial = false;
	int polls = 0;
	const struct tw_deadline deadline = {pass_third, &polls};

	(void)state;
	for (int i = 0; i < 4; i++)
		trees[i] = random_tree(a, 3, 50);
	assert_int_equal(tw_query_reshape(&f, &s, 1, &deadline, a, &out, &partial, NULL), TW_OK);
	assert_int_equal(out.n, 2);
	assert_true(partial);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step),
        cmocka_unit_test(test_steps_in_order),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_trees_after_the_deadline),
};

UNIT_TESTS("reshape", tests)
