/*
 * query_flame.c - flame graphs from the call trees of the selected threads: widths of nodes, top
 * down, bottom up, and the stored summary tree, which suffices for most graphs of a whole trace.
 *
 * query_grow.c opens the nodes.
 */

#include <stdatomic.h>

#include "decoder/base/sum.h"
#include "server/base/thread/parallel.h"
#include "server/query/query.h"
#include "server/query/query_grow.h"
#include "server/query/query_reshape.h"
#include "server/query/query_slices.h"

/* --- widths of nodes ---
 *
 * A call tree stores CPU time including callees; a node's self value is the difference to the
 * callees'. Both clocks are read at slightly different moments, so a negative difference is set to
 * 0.
 */

struct weights {
	int64_t **own; /* per tree and node: self value; NULL: wall time is used */
	int64_t **all; /* and the value including descendants */
};

static int64_t weight_own(
        const struct weights *w, const struct tw_forest *f, uint32_t tree, uint32_t at)
{
	return w->own ? w->own[tree][at] : f->trees[tree].nodes[at].self_ns;
}

static int64_t weight_all(
        const struct weights *w, const struct tw_forest *f, uint32_t tree, uint32_t at)
{
	return w->all ? w->all[tree][at] : f->trees[tree].nodes[at].total_ns;
}

static int64_t at_least_0(int64_t v)
{
	return v > 0 ? v : 0;
}

static void own_calls(const struct tw_tree *t, int64_t *own)
{
	for (uint32_t i = 0; i < t->n; i++)
		own[i] = (int64_t)t->nodes[i].count;
}

static void own_cpu(const struct tw_tree *t, int64_t *own)
{
	for (uint32_t i = 0; i < t->n; i++)
		own[i] = at_least_0(t->nodes[i].cpu_ns);
	for (uint32_t i = 1; i < t->n; i++)
		own[t->nodes[i].parent] -= at_least_0(t->nodes[i].cpu_ns);
	for (uint32_t i = 0; i < t->n; i++)
		own[i] = at_least_0(own[i]);
}

/* The CPU time may exceed the wall time: both clocks are read one after the other. */
static void own_running(const struct tw_tree *t, const struct tw_waits *waits, int64_t *own)
{
	own_cpu(t, own);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tw_tree_node *n = &t->nodes[i];
		int64_t self = at_least_0(n->self_ns);

		if (n->cpu_ns < 0)
			own[i] = tw_waits(waits, n->method) ? 0 : self;
		else if (own[i] > self)
			own[i] = self;
	}
}

static void own_waiting(const struct tw_tree *t, const struct tw_waits *waits, int64_t *own)
{
	own_running(t, waits, own);
	for (uint32_t i = 0; i < t->n; i++)
		own[i] = at_least_0(t->nodes[i].self_ns) - own[i];
}

static void weigh_tree(
        const struct tw_tree *t, const struct tw_flame_query *q, int64_t *own, int64_t *all)
{
	if (q->metric == TW_METRIC_CPU)
		own_cpu(t, own);
	else if (q->metric == TW_METRIC_RUNNING)
		own_running(t, &q->waits, own);
	else if (q->metric == TW_METRIC_WAITING)
		own_waiting(t, &q->waits, own);
	else
		own_calls(t, own);
	for (uint32_t i = 0; i < t->n; i++)
		all[i] = own[i];
	for (uint32_t i = t->n; i-- > 1;)
		all[t->nodes[i].parent] += all[i];
}

static enum tw_status weigh(const struct tw_forest *f, const struct tw_flame_query *q,
        struct tw_arena *a, struct weights *ret, struct tw_err *err)
{
	struct weights w = {NULL, NULL};

	if (q->metric != TW_METRIC_WALL) {
		w.own = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *w.own);
		w.all = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *w.all);
		if (!w.own || !w.all)
			return tw_oom(err);
	}
	for (uint32_t k = 0; w.own && k < f->n; k++) {
		w.own[k] = tw_arena_alloc(a, f->trees[k].n, sizeof **w.own);
		w.all[k] = tw_arena_alloc(a, f->trees[k].n, sizeof **w.all);
		if (!w.own[k] || !w.all[k])
			return tw_oom(err);
		weigh_tree(&f->trees[k], q, w.own[k], w.all[k]);
	}
	*ret = w;
	return TW_OK;
}

enum tw_status tw_query_running(const struct tw_forest *f, const struct tw_waits *waits,
        uint32_t n_methods, struct tw_arena *a, int64_t **ret, struct tw_err *err)
{
	int64_t *sums = tw_arena_zalloc(a, (size_t)n_methods + 1, sizeof *sums);
	uint32_t most = 0;
	int64_t *own;

	for (uint32_t k = 0; k < f->n; k++)
		most = f->trees[k].n > most ? f->trees[k].n : most;
	own = tw_arena_alloc(a, (size_t)most + 1, sizeof *own);
	if (!sums || !own)
		return tw_oom(err);
	for (uint32_t k = 0; k < f->n; k++) {
		const struct tw_tree *t = &f->trees[k];

		own_running(t, waits, own);
		for (uint32_t i = 0; i < t->n; i++)
			if (t->nodes[i].method < n_methods)
				sums[t->nodes[i].method] =
				        tw_sum_ns(sums[t->nodes[i].method], own[i]);
	}
	*ret = sums;
	return TW_OK;
}

/* --- top down --- */

enum { CHECK_EVERY = 4096 };

/* Input of tw_grow: call trees, or the summary tree. */
struct flame_input {
	struct weights w;
	const struct tw_summary_tree *summary; /* the summary tree; NULL: threads' trees */
	/* by node of the summary tree: number of call-tree nodes merged into it and its
	 * descendants */
	uint64_t *merged_nodes;
	/* by tree: has its nodes as they were built; NULL: the forest has them. NULL for all */
	struct tw_tree_builder *const *builders;
};

static const struct tw_tree_builder *builder_of(const struct flame_input *w, uint32_t tree)
{
	return w->builders ? w->builders[tree] : NULL;
}

static struct tw_grow_member member_of(
        const struct tw_forest *f, const struct flame_input *w, uint32_t tree, uint32_t at)
{
	const struct tw_tree_node *n = &f->trees[tree].nodes[at];
	bool rest = w->summary && n->method == w->summary->rest;

	return (struct tw_grow_member){
	        .tree = tree,
	        .at = at,
	        .method = rest ? TW_NO_METHOD : n->method,
	};
}

/* The time of its own is computed when the node is opened, as it takes all callees. */
static struct tw_grow_sums linked_sums(const struct tw_tree_builder *b, uint32_t node)
{
	const struct tw_linked_node n = tw_tree_builder_linked(b, node);

	return (struct tw_grow_sums){
	        .value = n.total_ns,
	        .max_ns = n.max_ns,
	        .order = n.total_ns,
	        .count = n.count,
	        .hidden = n.subtree,
	};
}

static struct tw_grow_sums sums_of(const struct tw_grower *g, const struct tw_grow_member *m)
{
	const struct flame_input *w = g->arg;
	const struct tw_tree_builder *b = builder_of(w, m->tree);
	const struct tw_tree_node *n;

	if (b)
		return linked_sums(b, m->at);
	n = &g->forest->trees[m->tree].nodes[m->at];
	return (struct tw_grow_sums){
	        .value = weight_all(&w->w, g->forest, m->tree, m->at),
	        .self = weight_own(&w->w, g->forest, m->tree, m->at),
	        .max_ns = n->max_ns,
	        .order = n->total_ns,
	        .count = n->count,
	        .hidden = w->summary ? w->merged_nodes[m->at] : n->subtree,
	};
}

/* Counts first: a node may have a million children, and growing the list by doubling would be the
 * largest allocation of the request. */
static uint32_t count_callees(
        const struct tw_grower *g, const struct tw_grow_member *members, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree_builder *b = builder_of(g->arg, members[i].tree);
		const struct tw_tree_node *nodes = g->forest->trees[members[i].tree].nodes;
		const uint32_t *list;
		uint32_t end;

		if (b) {
			k += tw_tree_builder_children(b, members[i].at, &list);
			continue;
		}
		end = members[i].at + nodes[members[i].at].subtree;
		for (uint32_t child = members[i].at + 1; child < end; child += nodes[child].subtree)
			k++;
	}
	return k;
}

/* Returns the number of callees, or UINT32_MAX if it is late. */
static uint32_t put_callees(
        struct tw_grower *g, const struct tw_grow_member *m, uint32_t k, struct tw_grow_member *to)
{
	const struct tw_tree *t = &g->forest->trees[m->tree];
	const uint32_t end = m->at + t->nodes[m->at].subtree;
	uint32_t n = 0;

	for (uint32_t child = m->at + 1; child < end; child += t->nodes[child].subtree) {
		if ((k + n) % CHECK_EVERY == 0 && tw_grow_is_late(g, k + n))
			return UINT32_MAX;
		to[n++] = member_of(g->forest, g->arg, m->tree, child);
	}
	return n;
}

/* The same for a tree as it was built; *ret_self is the node's own time. */
static uint32_t put_linked(struct tw_grower *g, const struct tw_tree_builder *b,
        const struct tw_grow_member *m, uint32_t k, struct tw_grow_member *to, int64_t *ret_self)
{
	const uint32_t *list;
	const uint32_t n = tw_tree_builder_children(b, m->at, &list);
	int64_t self_ns = tw_tree_builder_linked(b, m->at).total_ns;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_linked_node callee = tw_tree_builder_linked(b, list[i]);

		if ((k + i) % CHECK_EVERY == 0 && tw_grow_is_late(g, k + i))
			return UINT32_MAX;
		to[i] = (struct tw_grow_member){m->tree, list[i], callee.method};
		self_ns = tw_sum_ns(self_ns, -callee.total_ns);
	}
	*ret_self = self_ns;
	return n;
}

/* NOLINTBEGIN(readability-non-const-parameter) the type is tw_expand_fn */
static bool callees(struct tw_grower *g, const struct tw_grow_member *members, uint32_t n,
        struct tw_grow_member **ret, uint32_t *ret_n, int64_t *ret_self)
/* NOLINTEND(readability-non-const-parameter) */
{
	uint32_t most = count_callees(g, members, n);
	struct tw_grow_member *found = tw_grow_alloc(g, most ? most : 1, sizeof *found);
	uint32_t k = 0;

	if (!found)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree_builder *b = builder_of(g->arg, members[i].tree);
		int64_t self_ns = 0;
		uint32_t more = b ? put_linked(g, b, &members[i], k, found + k, &self_ns)
		                  : put_callees(g, &members[i], k, found + k);

		if (more == UINT32_MAX)
			return false;
		k += more;
		*ret_self += self_ns;
	}
	*ret = found;
	*ret_n = k;
	return true;
}

static enum tw_status grow_down(const struct tw_forest *f, struct flame_input *w,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	struct tw_grower g = {.forest = f,
	        .arena = a,
	        .deadline = deadline,
	        .expand = callees,
	        .sums = sums_of,
	        .arg = w,
	        .knows_total = true,
	        .by_threads = true};
	struct tw_grow_member *roots = tw_arena_alloc(a, f->n ? f->n : 1, sizeof *roots);
	enum tw_status st = weigh(f, q, a, &w->w, err);

	if (st != TW_OK)
		return st;
	if (!roots)
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++) {
		roots[i] = (struct tw_grow_member){i, 0, TW_NO_METHOD};
		g.tree_nodes += f->trees[i].n;
	}
	return tw_grow(&g, q, roots, f->n, ret, err);
}

enum tw_status tw_query_flame(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct flame_input w = {.summary = NULL};

	return grow_down(f, &w, q, deadline, a, ret, err);
}

enum tw_status tw_query_flame_of_summary(const struct tw_summary_tree *c,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	const struct tw_tree *t = &c->tree;
	struct flame_input w = {
	        .summary = c, .merged_nodes = tw_arena_alloc(a, t->n, sizeof *w.merged_nodes)};
	struct tw_forest one = {t, 1};

	if (!w.merged_nodes)
		return tw_oom(err);
	for (uint32_t i = 0; i < t->n; i++)
		w.merged_nodes[i] = t->nodes[i].cpu_ns > 0 ? (uint64_t)t->nodes[i].cpu_ns : 0;
	for (uint32_t i = t->n; i-- > 1;)
		w.merged_nodes[t->nodes[i].parent] += w.merged_nodes[i];
	return grow_down(&one, &w, q, deadline, a, ret, err);
}

/* --- bottom up ---
 *
 * Level one contains the methods by self time (or calls). Below a method are its callers, each
 * with the part of that time spent in calls from it. The complete inverted tree can be far larger
 * than the call trees, so only the displayed part is computed.
 */

/* The caller and method of a node, in 8 bytes: steps towards the callers visit nodes in random
 * order, and call trees are far larger than a cache.  Nodes are numbered across all trees. */
struct caller {
	uint32_t at; /* NO_CALLER: the thread */
	uint32_t method;
};

#define NO_CALLER UINT32_MAX
enum { AHEAD = 8 };

/* Moves members to their callers, in place; time of members without a caller becomes self time. */
static bool callers(struct tw_grower *g, const struct tw_grow_member *members, uint32_t n,
        struct tw_grow_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	/* of this grower's arena */
	struct tw_grow_member *up = (struct tw_grow_member *)(uintptr_t)members;
	const struct caller *of = g->arg;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct caller caller = of[up[i].at];

		if (i + AHEAD < n)
			__builtin_prefetch(&of[up[i + AHEAD].at]);
		if (caller.at == NO_CALLER) {
			*ret_self += g->leaves[up[i].tree].value;
			continue;
		}
		up[kept] = up[i];
		up[kept].at = caller.at;
		up[kept++].method = caller.method;
	}
	*ret = up;
	*ret_n = kept;
	return true;
}

/* The first step leads from the root to the methods themselves. A thread's own time, which
 * reshaping may leave, has no method. */
static bool methods_then_callers(struct tw_grower *g, const struct tw_grow_member *members,
        uint32_t n, struct tw_grow_member **ret, uint32_t *ret_n, int64_t *ret_self)
{
	/* of this grower's arena */
	struct tw_grow_member *kept = (struct tw_grow_member *)(uintptr_t)members;
	uint32_t k = 0;

	g->expand = callers;
	for (uint32_t i = 0; i < n; i++) {
		if (members[i].method == TW_NO_METHOD)
			*ret_self += g->leaves[members[i].tree].value;
		else if (k++ < i)
			kept[k - 1] = members[i];
	}
	*ret = kept;
	*ret_n = k;
	return true;
}

enum { NODES_PER_HELPER = 1 << 15 };

/* All nodes of all trees as members, sorted by method if it is below `methods`.  Threads list runs
 * of nodes, first to count them, then to place them. */
struct listing {
	const struct tw_forest *forest;
	const struct weights *weights;
	struct tw_grow_member *members;
	struct tw_grow_leaf *leaves; /* of the members, in the same order */
	struct caller *callers;
	uint32_t methods;
	struct run {
		uint32_t from, end; /* of all nodes */
		uint32_t *next;     /* by method, the last one for all others: a count, then the
		                     * index of a member */
	} runs[TW_PARALLEL_MAX];
	uint32_t n_runs;
	void (*each)(struct listing *l, struct run *r, uint32_t tree, uint32_t first);
	_Atomic uint32_t taken; /* runs */
};

static bool is_member(const struct listing *l, uint32_t tree, uint32_t node)
{
	/* methods without self time were called too */
	return node || weight_own(l->weights, l->forest, tree, 0) != 0;
}

static uint32_t slot_of(const struct listing *l, uint32_t method)
{
	return method < l->methods ? method : l->methods;
}

/* The nodes of the run in a tree whose first node is `first`. */
static uint32_t run_from(const struct run *r, uint32_t first)
{
	return r->from > first ? r->from - first : 0;
}

static uint32_t run_end(const struct run *r, uint32_t first, uint32_t n)
{
	return r->end < first + n ? (r->end > first ? r->end - first : 0) : n;
}

static void count_members(struct listing *l, struct run *r, uint32_t tree, uint32_t first)
{
	const struct tw_tree *t = &l->forest->trees[tree];

	for (uint32_t i = run_from(r, first), end = run_end(r, first, t->n); i < end; i++)
		if (is_member(l, tree, i))
			r->next[slot_of(l, t->nodes[i].method)]++;
}

static void put_members(struct listing *l, struct run *r, uint32_t tree, uint32_t first)
{
	const struct tw_tree *t = &l->forest->trees[tree];
	const struct tw_tree_node *nodes = t->nodes;

	for (uint32_t i = run_from(r, first), end = run_end(r, first, t->n); i < end; i++) {
		uint32_t parent = nodes[i].parent;

		l->callers[first + i] =
		        parent ? (struct caller){first + parent, nodes[parent].method}
		               : (struct caller){NO_CALLER, TW_NO_METHOD};
		if (is_member(l, tree, i)) {
			uint32_t at = r->next[slot_of(l, nodes[i].method)]++;

			l->members[at] = (struct tw_grow_member){at, first + i, nodes[i].method};
			l->leaves[at] =
			        (struct tw_grow_leaf){weight_own(l->weights, l->forest, tree, i),
			                nodes[i].max_ns, nodes[i].count};
		}
	}
}

static void take_runs(void *arg)
{
	struct listing *l = arg;
	uint32_t at;

	while ((at = atomic_fetch_add(&l->taken, 1)) < l->n_runs)
		for (uint32_t k = 0, first = 0; k < l->forest->n; k++) {
			l->each(l, &l->runs[at], k, first);
			first += l->forest->trees[k].n;
		}
}

static void in_runs(struct listing *l,
        void (*each)(struct listing *l, struct run *r, uint32_t tree, uint32_t first))
{
	l->each = each;
	atomic_store(&l->taken, 0);
	tw_parallel_for(l->n_runs, take_runs, l);
}

static bool cut_runs(struct listing *l, uint32_t nodes, struct tw_arena *a)
{
	uint32_t most = tw_parallel_threads();

	l->n_runs = nodes / NODES_PER_HELPER < most ? nodes / NODES_PER_HELPER : most;
	l->n_runs += l->n_runs == 0;
	for (uint32_t i = 0; i < l->n_runs; i++) {
		struct run *r = &l->runs[i];

		r->from = (uint32_t)((uint64_t)nodes * i / l->n_runs);
		r->end = (uint32_t)((uint64_t)nodes * (i + 1) / l->n_runs);
		r->next = tw_arena_zalloc(a, (size_t)l->methods + 1, sizeof *r->next);
		if (!r->next)
			return false;
	}
	return true;
}

/* Returns the number of members. */
static uint32_t list_members(struct listing *l)
{
	uint32_t n = 0;

	in_runs(l, count_members);
	for (uint32_t i = 0; i <= l->methods; i++)
		for (uint32_t k = 0; k < l->n_runs; k++) {
			uint32_t count = l->runs[k].next[i];

			l->runs[k].next[i] = n;
			n += count;
		}
	in_runs(l, put_members);
	return n;
}

/* One past the highest method of all nodes. */
static uint32_t count_methods(const struct tw_forest *f)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		for (uint32_t i = 0; i < f->trees[k].n; i++)
			if (f->trees[k].nodes[i].method >= n &&
			        f->trees[k].nodes[i].method != TW_NO_METHOD)
				n = f->trees[k].nodes[i].method + 1;
	return n;
}

enum tw_status tw_query_bottom_up(const struct tw_forest *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	struct tw_grower g = {.forest = f,
	        .arena = a,
	        .deadline = deadline,
	        .expand = methods_then_callers,
	        .by_threads = true};
	struct weights w;
	struct listing l = {.forest = f, .weights = &w, .methods = count_methods(f)};
	uint64_t nodes = 0;
	uint32_t n;
	enum tw_status st = weigh(f, q, a, &w, err);

	if (st != TW_OK)
		return st;
	for (uint32_t k = 0; k < f->n; k++)
		nodes += f->trees[k].n;
	if (l.methods / 8 > nodes) /* a damaged file; the members are sorted later */
		l.methods = 0;
	l.members = nodes < UINT32_MAX ? tw_arena_alloc(a, nodes + 1, sizeof *l.members) : NULL;
	l.leaves = l.members ? tw_arena_alloc(a, nodes + 1, sizeof *l.leaves) : NULL;
	l.callers = l.leaves ? tw_arena_alloc(a, nodes + 1, sizeof *l.callers) : NULL;
	if (!l.callers || !cut_runs(&l, (uint32_t)nodes, a))
		return tw_oom(err);
	n = list_members(&l);
	g.tree_nodes = nodes;
	g.arg = l.callers;
	g.leaves = l.leaves;
	return tw_grow(&g, q, l.members, n, ret, err);
}

/* --- the summary tree ---
 *
 * It is the result of the largest query, stored as a call tree. Nodes omitted below a node are one
 * child of it with the method `rest`, so every sum is correct. A graph is built best first, so a
 * graph with at most as many nodes as the summary tree has the same nodes and values.
 */

static struct tw_tree tree_of(const struct tw_flame *f, uint32_t rest, struct tw_arena *a)
{
	struct tw_tree t = {tw_arena_alloc(a, f->n, sizeof *t.nodes), f->n};

	if (!t.nodes)
		return t;
	t.nodes[0] = (struct tw_tree_node){.method = TW_NO_METHOD, .subtree = 1, .cpu_ns = -1};
	for (uint32_t i = 1; i < f->n; i++) {
		const struct tw_flame_node *n = &f->nodes[i];

		t.nodes[i] = (struct tw_tree_node){
		        .parent = n->parent,
		        .method = n->others ? rest : n->method,
		        .subtree = 1,
		        .depth = n->depth,
		        .count = n->count,
		        .total_ns = n->value,
		        .self_ns = n->value,
		        .cpu_ns = (int64_t)n->tree_nodes,
		        .max_ns = n->max_ns,
		};
	}
	for (uint32_t i = f->n; i-- > 1;) {
		struct tw_tree_node *parent = &t.nodes[t.nodes[i].parent];

		parent->subtree += t.nodes[i].subtree;
		if (t.nodes[i].parent == 0) {
			parent->total_ns = tw_sum_ns(parent->total_ns, t.nodes[i].total_ns);
			continue;
		}
		parent->self_ns = tw_sum_ns(parent->self_ns, -t.nodes[i].total_ns);
		parent->cpu_ns -= (int64_t)f->nodes[i].tree_nodes; /* without descendants */
	}
	return t;
}

/* The trees of g. */
static const struct tw_tree_sums *summed_trees(const struct tw_grower *g)
{
	return g->arg;
}

static const struct tw_node_sums *node_sums(
        const struct tw_grower *g, const struct tw_grow_member *m)
{
	return &summed_trees(g)[m->tree].nodes[m->at];
}

static struct tw_grow_sums summary_sums(const struct tw_grower *g, const struct tw_grow_member *m)
{
	const struct tw_node_sums *n = node_sums(g, m);
	struct tw_grow_sums sums = {
	        .value = n->total_ns,
	        .max_ns = n->max_ns,
	        .order = n->total_ns,
	        .count = n->count,
	        .hidden = n->subtree,
	};

	if (n->count == TW_WIDE_SUMS) {
		const struct tw_wide_sums *wide =
		        tw_tree_sums_wide(&summed_trees(g)[m->tree], m->at);

		sums.count = wide->count;
		sums.max_ns = wide->max_ns;
	}
	return sums;
}

static uint32_t count_summary_callees(
        const struct tw_grower *g, const struct tw_grow_member *members, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_node_sums *node = node_sums(g, &members[i]);
		const struct tw_node_sums *end = node + node->subtree;

		for (node++; node < end; node += node->subtree)
			k++;
	}
	return k;
}

/* NOLINTBEGIN(readability-non-const-parameter) the type is tw_expand_fn */
static bool summary_callees(struct tw_grower *g, const struct tw_grow_member *members, uint32_t n,
        struct tw_grow_member **ret, uint32_t *ret_n, int64_t *ret_self)
/* NOLINTEND(readability-non-const-parameter) */
{
	uint32_t most = count_summary_callees(g, members, n);
	struct tw_grow_member *found = tw_grow_alloc(g, most ? most : 1, sizeof *found);
	uint32_t k = 0;

	(void)ret_self;
	for (uint32_t i = 0; found && i < n; i++) {
		const struct tw_node_sums *nodes = summed_trees(g)[members[i].tree].nodes;
		uint32_t end = members[i].at + nodes[members[i].at].subtree;

		for (uint32_t at = members[i].at + 1; at < end; at += nodes[at].subtree)
			found[k++] = (struct tw_grow_member){members[i].tree, at, nodes[at].method};
	}
	*ret = found;
	*ret_n = k;
	return found != NULL;
}

static enum tw_status grow_summary(const struct tw_tree_sums *trees, uint32_t n_trees,
        uint32_t max_nodes, struct tw_arena *a, struct tw_flame *ret, struct tw_err *err)
{
	const struct tw_flame_query whole = {.max_nodes = max_nodes};
	struct tw_grower g = {.arena = a,
	        .expand = summary_callees,
	        .sums = summary_sums,
	        .arg = trees,
	        .knows_total = true,
	        .sorts_rests = true};
	struct tw_grow_member *roots = tw_arena_alloc(a, n_trees, sizeof *roots);

	if (!roots)
		return tw_oom(err);
	for (uint32_t i = 0; i < n_trees; i++) {
		roots[i] = (struct tw_grow_member){i, 0, TW_NO_METHOD};
		g.tree_nodes += trees[i].n;
	}
	return tw_grow(&g, &whole, roots, n_trees, ret, err);
}

enum tw_status tw_query_summary(const struct tw_tree_sums *trees, uint32_t n_trees,
        uint32_t max_nodes, uint32_t rest, struct tw_arena *a, struct tw_summary_tree *ret,
        struct tw_err *err)
{
	struct tw_flame flame;
	enum tw_status st = grow_summary(trees, n_trees, max_nodes, a, &flame, err);

	if (st != TW_OK)
		return st;
	*ret = (struct tw_summary_tree){tree_of(&flame, rest, a), rest};
	return ret->tree.nodes ? TW_OK : tw_oom(err);
}

bool tw_summary_suffices(const struct tw_summary_tree *c, const struct tw_flame_query *q)
{
	uint32_t real = 0;

	if (q->view != TW_TOP_DOWN || q->metric != TW_METRIC_WALL || q->n_root || q->skip)
		return false;
	for (uint32_t i = 1; i < c->tree.n; i++)
		real += c->tree.nodes[i].method != c->rest;
	return real >= q->max_nodes;
}

/* Returns whether every thread with calls is selected, with all its calls. */
static bool is_complete(const struct tw_trace_file *f, const struct tw_selection *sel)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (t[i].slices && !tw_selection_has(sel, &t[i]))
			return false;
	return !sel->ranged;
}

/* TW_NOT_FOUND if the trace has no summary tree, or it is not sufficient. */
static enum tw_status from_summary(struct tw_trace_file *f, const struct tw_flame_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_flame *ret,
        struct tw_err *err)
{
	const struct tw_method_ref *methods;
	struct tw_summary_tree c = {.rest = 0};
	enum tw_status st = TW_NOT_FOUND;

	if (q->max_nodes <= TW_SUMMARY_NODES && q->view == TW_TOP_DOWN)
		st = tw_trace_file_method_refs(f, &methods, &c.rest, err);
	if (st == TW_OK)
		st = tw_trace_file_tree(f, TW_SUMMARY_THREAD_ID, a, &c.tree, err);
	if (st == TW_OK && !tw_summary_suffices(&c, q))
		st = TW_NOT_FOUND;
	return st == TW_OK ? tw_query_flame_of_summary(&c, q, deadline, a, ret, err) : st;
}

/* Whether the graph needs neither longest calls nor CPU times. */
static bool needs_sums_only(const struct tw_trace_file *f, const struct tw_flame_query *q)
{
	return q->no_longest && (q->metric == TW_METRIC_WALL || q->metric == TW_METRIC_COUNT ||
	                                !tw_trace_file_info(f)->has_cpu);
}

/* The graph of a range shows few nodes of its trees, which therefore remain as they are built. */
static enum tw_status graph_of_range(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	const struct tw_range_scan scan = {.file = f,
	        .sel = sel,
	        .deadline = deadline,
	        .arena = a,
	        .sums_only = needs_sums_only(f, q)};
	struct tw_grown_forest trees;
	struct flame_input w = {.summary = NULL};
	bool partial = false;
	enum tw_status st = tw_range_grown(&scan, &trees, &partial, err);

	if (st != TW_OK)
		return st;
	w.builders = trees.builders;
	st = grow_down(&trees.forest, &w, q, deadline, a, ret, err);
	tw_grown_forest_free(&trees);
	if (st == TW_OK)
		ret->partial |= partial;
	return st;
}

static enum tw_status graph_of_trees(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	const struct tw_range_scan scan = {
	        .file = f, .sel = sel, .deadline = deadline, .arena = a, .sums_only = true};
	struct tw_forest forest;
	bool partial = false;
	enum tw_status st = sel->ranged && needs_sums_only(f, q)
	                            ? tw_range_trees(&scan, &forest, &partial, err)
	                            : tw_query_forest(f, sel, deadline, a, &forest, &partial, err);

	if (st == TW_OK && q->n_steps) {
		const struct tw_forest whole = forest;

		st = tw_query_reshape(
		        &whole, q->steps, q->n_steps, deadline, a, &forest, &partial, err);
	}
	if (st == TW_OK && q->view == TW_BOTTOM_UP)
		st = tw_query_bottom_up(&forest, q, deadline, a, ret, err);
	else if (st == TW_OK)
		st = tw_query_flame(&forest, q, deadline, a, ret, err);
	if (st == TW_OK)
		ret->partial |= partial;
	return st;
}

enum tw_status tw_query_graph(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_flame_query *q, const struct tw_deadline *deadline, struct tw_arena *a,
        struct tw_flame *ret, struct tw_err *err)
{
	enum tw_status st = tw_selection_check(f, sel, err);

	if (st != TW_OK)
		return st;
	st = is_complete(f, sel) && q->n_steps == 0 ? from_summary(f, q, deadline, a, ret, err)
	                                            : TW_NOT_FOUND;
	if (st == TW_NOT_FOUND && sel->ranged && q->view == TW_TOP_DOWN &&
	        q->metric == TW_METRIC_WALL && q->n_steps == 0)
		st = graph_of_range(f, sel, q, deadline, a, ret, err);
	else if (st == TW_NOT_FOUND)
		st = graph_of_trees(f, sel, q, deadline, a, ret, err);
	for (uint32_t i = 0; st == TW_OK && q->no_longest && i < ret->n; i++)
		ret->nodes[i].max_ns = 0;
	return st;
}
