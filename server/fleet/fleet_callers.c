/*
 * fleet_callers.c - callers and callees of a method in a merged call tree.
 */
#include <stdlib.h>

#include "server/fleet/fleet_tree.h"

enum { INSIDE = 1, COUNTED = 2 }; /* a call of the method is open; one of its callees is open */

struct adding {
	const struct tw_rollup_tree *t;
	const uint8_t *wanted;
	struct tw_fleet_near *callers, *callees; /* by number */
	uint8_t *state;                          /* of each node: INSIDE, COUNTED */
	struct tw_fleet_callers *sums;
};

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_TOO_LARGE,
	        "too many call trees for one response; narrow the filter or the time range");
}

static uint32_t number_at(const struct tw_rollup_tree *t, uint32_t node)
{
	return (uint32_t)(t->nodes[node].method - 1);
}

static void add_near(struct tw_fleet_near *to, const struct tw_rollup_tree_sum *s)
{
	to->total_ns = tw_sketch_sum(to->total_ns, s->total_ns);
	to->calls += s->calls;
	if (s->traces > to->traces)
		to->traces = s->traces;
}

/* Only outermost calls: nested calls of the same method would count twice. */
static void add_node(struct adding *a, uint32_t node)
{
	const struct tw_rollup_tree_sum s = tw_rollup_tree_all(a->t, node);
	const uint32_t parent = a->t->nodes[node].parent, number = number_at(a->t, node);
	const bool is_thread = parent == TW_ROLLUP_NO_NODE;
	const uint8_t above = is_thread ? 0 : a->state[parent];
	const bool is_it = !is_thread && a->wanted[number];

	a->state[node] = above;
	if (is_it) {
		a->sums->all.calls += s.calls;
		a->sums->self_ns = tw_sketch_sum(a->sums->self_ns, s.self_ns);
		a->state[node] |= INSIDE;
	}
	if (is_it && !(above & INSIDE)) {
		const uint64_t calls = a->sums->all.calls;

		add_near(&a->callers[number_at(a->t, parent)], &s);
		add_near(&a->sums->all, &s);
		a->sums->all.calls = calls;
	}
	if (!is_it && (above & INSIDE) && !(above & COUNTED) &&
	        a->wanted[number_at(a->t, parent)]) {
		add_near(&a->callees[number], &s);
		a->state[node] |= COUNTED;
	}
}

static int by_time(const void *pa, const void *pb)
{
	const struct tw_fleet_near *a = pa;
	const struct tw_fleet_near *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Leaves the methods that occur, longest time first. */
static size_t pack(struct tw_fleet_near *list, uint32_t n)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		list[i].number = i;
		if (list[i].traces)
			list[kept++] = list[i];
	}
	if (kept)
		qsort(list, kept, sizeof *list, by_time);
	return kept;
}

enum tw_status tw_fleet_callers(const struct tw_rollup_tree *t, const uint8_t *wanted, uint32_t n,
        struct tw_arena *a, struct tw_fleet_callers *ret, struct tw_err *err)
{
	struct adding of = {t, wanted, tw_arena_zalloc(a, (size_t)n + 1, sizeof *of.callers),
	        tw_arena_zalloc(a, (size_t)n + 1, sizeof *of.callees),
	        tw_arena_zalloc(a, (size_t)t->n + 1, 1), ret};

	*ret = (struct tw_fleet_callers){.callers = of.callers, .callees = of.callees};
	if (!of.callers || !of.callees || !of.state)
		return no_memory(err);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->nodes[i].first)
			add_node(&of, i);
	ret->n_callers = pack(of.callers, n);
	ret->n_callees = pack(of.callees, n);
	return TW_OK;
}
