/*
 * query_weight.c - calls, CPU time and waiting time of call-tree nodes.
 *
 * A call tree stores CPU time including callees; a node's self value is the difference to the
 * callees'. Both clocks are read at slightly different moments, so a negative difference is set to
 * 0.
 */
#include "server/query/query_weight.h"

#include "decoder/base/sum.h"

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

enum tw_status tw_weigh(const struct tw_forest *f, const struct tw_flame_query *q,
        struct tw_arena *a, struct tw_weights *ret, struct tw_err *err)
{
	struct tw_weights w = {NULL, NULL};

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
