#include "server/fleet/fleet_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/order.h"

enum tw_status tw_fleet_trees(
        const struct tw_tree_cell *cells, size_t n, struct tw_rollup_tree *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	t->coarse = true;
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const struct tw_tree_cell *c = &cells[i];

		if (c->tree.data.len)
			st = tw_rollup_tree_merge(t, &c->tree, err);
		for (size_t k = 0; st == TW_OK && k < c->n_deltas; k++) {
			const struct tw_rollup_written one = {c->deltas[k].data, {"", 0}};

			st = tw_rollup_tree_merge(t, &one, err);
		}
	}
	return st;
}

/* --- names --- */

enum tw_status tw_fleet_tree_ids(const struct tw_rollup_tree *const *trees, size_t n,
        struct tw_arena *a, uint64_t **ret, size_t *ret_n, struct tw_err *err)
{
	uint64_t *ids;
	size_t all = 0, used = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		all += trees[i]->n;
	ids = tw_arena_alloc(a, all + 1, sizeof *ids);
	if (!ids)
		return tw_tree_fail_too_large(err);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < trees[i]->n; k++)
			if (trees[i]->nodes[k].parent != TW_ROLLUP_NO_NODE)
				ids[used++] = trees[i]->nodes[k].method;
	TW_SORT(ids, used, tw_by_u64);
	for (size_t i = 0; i < used; i++)
		if (i == 0 || ids[i] != ids[kept - 1])
			ids[kept++] = ids[i];
	*ret = ids;
	*ret_n = kept;
	return TW_OK;
}

struct named { /* an id, and its index before sorting */
	struct tw_str name;
	const char *descriptor;
	uint64_t id;
	bool is_thread;
	uint32_t number;
};

TW_ORDER_BY(by_name, struct named, TW_FALLING(is_thread), TW_RISING(name), TW_RISING(descriptor))

TW_ORDER_BY(by_id, struct named, TW_RISING(id))

static size_t list_threads(const struct tw_rollup_tree *const *trees, size_t n, struct named *list)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < trees[i]->n_threads; k++)
			list[used++] = (struct named){
			        trees[i]->threads[k].name, "", trees[i]->threads[k].id, true, 0};
	return used;
}

static enum tw_status number_all(struct named *list, size_t n, struct tw_arena *a,
        struct tw_fleet_names *ret, struct tw_err *err)
{
	struct tw_str *names = tw_arena_alloc(a, n + 1, sizeof *names);
	const char **descriptors = tw_arena_alloc(a, n + 1, sizeof *descriptors);
	uint64_t *ids = tw_arena_alloc(a, n + 1, sizeof *ids);
	uint32_t *numbers = tw_arena_alloc(a, n + 1, sizeof *numbers);

	*ret = (struct tw_fleet_names){
	        .names = names, .descriptors = descriptors, .ids = ids, .numbers = numbers};
	if (!names || !descriptors || !ids || !numbers)
		return tw_tree_fail_too_large(err);
	TW_SORT(list, n, by_name);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_name(&list[i - 1], &list[i]) != 0) {
			ret->n_threads += list[i].is_thread;
			descriptors[ret->n] = list[i].descriptor;
			names[ret->n++] = list[i].name;
		}
		list[i].number = ret->n - 1;
	}
	TW_SORT(list, n, by_id);
	for (size_t i = 0; i < n; i++) {
		if (i && list[i].id == list[i - 1].id)
			continue; /* trees of several cells may each have this thread */
		ids[ret->n_ids] = list[i].id;
		numbers[ret->n_ids++] = list[i].number;
	}
	return TW_OK;
}

enum tw_status tw_fleet_tree_names(const struct tw_rollup_tree *const *trees, size_t n,
        const struct tw_rollup_naming *namings, size_t n_ids, struct tw_arena *a,
        struct tw_fleet_names *ret, struct tw_err *err)
{
	size_t all = n_ids, used;
	struct named *list;

	for (size_t i = 0; i < n; i++)
		all += trees[i]->n_threads;
	list = all < UINT32_MAX ? tw_arena_alloc(a, all + 1, sizeof *list) : NULL;
	if (!list)
		return tw_tree_fail_too_large(err);
	used = list_threads(trees, n, list);
	for (size_t i = 0; i < n_ids; i++) {
		list[used] = (struct named){tw_fleet_name(&namings[i], a), namings[i].descriptor,
		        namings[i].id, false, 0};
		if (!list[used++].name.ptr)
			return tw_tree_fail_too_large(err);
	}
	return number_all(list, used, a, ret, err);
}

uint32_t tw_fleet_number(const struct tw_fleet_names *names, uint64_t id)
{
	const uint64_t *at = bsearch(&id, names->ids, names->n_ids, sizeof *names->ids, tw_by_u64);

	return at ? names->numbers[at - names->ids] : TW_NO_METHOD;
}

/* --- reading trees with filters --- */

enum { ABOVE_FOCUS = TW_ROLLUP_NO_NODE - 1 };

struct reading {
	const struct tw_rollup_tree *from;
	const struct tw_fleet_reading *how;
	struct tw_rollup_tree *to;
	uint32_t *map; /* by node: the node that has its calls; TW_ROLLUP_NO_NODE: none */
	bool *moved;   /* by node: its path lost frames, so another path of the same trace may
	                  become equal to it */
	bool *joined;  /* by node of `to`: it has calls of a moved path */
};

enum part { ALL, OWN, ALL_AS_OWN };

/* Sum of squares of x + y: at most the square of the sum of both roots (Cauchy-Schwarz). It is
 * exact if each trace has either x or y, and otherwise understates no variance. */
static double square_of_both(double x, double y)
{
	return x + y + 2 * sqrt(x * y);
}

static bool take_sums(const struct reading *r, uint32_t node, enum part part, uint32_t to)
{
	const struct tw_rollup_tree *t = r->from;
	bool fits = true;

	for (uint32_t i = t->nodes[node].first; fits && i; i = t->sums[i - 1].next) {
		struct tw_rollup_tree_sum s = t->sums[i - 1];

		if (part == OWN)
			s = (struct tw_rollup_tree_sum){.level = s.level,
			        .self_ns = s.self_ns,
			        .cpu_self_ns = s.cpu_self_ns};
		if (part == ALL_AS_OWN) {
			s.self_ns = s.total_ns;
			s.cpu_self_ns = s.cpu_ns;
		}
		if (s.square > 0 && (r->moved[node] || r->joined[to])) {
			const double before = tw_rollup_tree_all(r->to, to).square;

			s.square = square_of_both(before, s.square) - before;
			r->joined[to] = true;
		}
		fits = tw_rollup_tree_add(r->to, to, &s);
	}
	return fits;
}

static bool is_selected(const struct tw_fleet_reading *how, uint32_t thread)
{
	return how->thread == TW_NO_METHOD || (how->thread == thread) != how->others;
}

static bool read_node(struct reading *r, uint32_t at)
{
	const struct tw_rollup_tree_node *n = &r->from->nodes[at];
	const struct tw_fleet_focus *focus = &r->how->focus;
	const bool is_thread = n->parent == TW_ROLLUP_NO_NODE;
	uint32_t number = tw_fleet_number(r->how->names, n->method);
	uint32_t to = is_thread ? TW_ROLLUP_NO_NODE : r->map[n->parent];
	const bool on = !is_thread && focus->on && focus->on[number];
	const bool foreign = !is_thread && !on && r->how->foreign && r->how->foreign[number];

	r->map[at] = TW_ROLLUP_NO_NODE;
	if (!n->first || (is_thread ? !is_selected(r->how, number) : to == TW_ROLLUP_NO_NODE))
		return true;
	if (focus->on && !focus->callers && !on && (is_thread || to == ABOVE_FOCUS)) {
		r->map[at] = ABOVE_FOCUS;
		return true;
	}
	r->moved[at] = foreign || to == ABOVE_FOCUS || (!is_thread && r->moved[n->parent]);
	if (to == ABOVE_FOCUS)
		to = TW_ROLLUP_NO_NODE;
	if (focus->callers && !is_thread &&
	        r->to->nodes[to].method == (uint64_t)focus->number + 1) {
		r->map[at] = to; /* its time is the method's already */
		return true;
	}
	if (on)
		number = focus->number;
	r->map[at] = foreign ? to : tw_rollup_tree_child(r->to, to, (uint64_t)number + 1);
	return r->map[at] != TW_ROLLUP_NO_NODE && take_sums(r, at,
	                                                  foreign                ? OWN
	                                                  : on && focus->callers ? ALL_AS_OWN
	                                                                         : ALL,
	                                                  r->map[at]);
}

enum tw_status tw_fleet_tree_read(const struct tw_rollup_tree *t, const struct tw_fleet_reading *r,
        struct tw_arena *a, struct tw_rollup_tree *ret, struct tw_err *err)
{
	struct reading of = {t, r, ret, tw_arena_alloc(a, (size_t)t->n + 1, sizeof *of.map),
	        tw_arena_zalloc(a, (size_t)t->n + 1, sizeof *of.moved),
	        tw_arena_zalloc(a, (size_t)t->n + 1, sizeof *of.joined)};

	*ret = (struct tw_rollup_tree){
	        .arena = a, .coarse = true, .traces = t->traces, .omitted_level = t->omitted_level};
	if (!of.map || !of.moved || !of.joined)
		return tw_tree_fail_too_large(err);
	for (uint32_t i = 0; i < t->n; i++)
		if (!read_node(&of, i))
			return tw_tree_fail_too_large(err);
	return TW_OK;
}

/* --- callers ---
 *
 * Callers and callees of a method in a merged call tree.
 */

enum { INSIDE = 1, COUNTED = 2 }; /* a call of the method is open; one of its callees is open */

struct adding {
	const struct tw_rollup_tree *t;
	const uint8_t *wanted;
	struct tw_fleet_near *callers, *callees; /* by number */
	uint8_t *state;                          /* of each node: INSIDE, COUNTED */
	struct tw_fleet_callers *sums;
};

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

TW_ORDER_BY(by_time, struct tw_fleet_near, TW_FALLING(total_ns), TW_RISING(number))

/* Leaves the methods that occur, longest time first. */
static size_t pack(struct tw_fleet_near *list, uint32_t n)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		list[i].number = i;
		if (list[i].traces)
			list[kept++] = list[i];
	}
	TW_SORT(list, kept, by_time);
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
		return tw_tree_fail_too_large(err);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->nodes[i].first)
			add_node(&of, i);
	ret->n_callers = pack(of.callers, n);
	ret->n_callees = pack(of.callees, n);
	return TW_OK;
}
