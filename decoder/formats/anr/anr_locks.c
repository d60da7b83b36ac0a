/*
 * anr_locks.c - the wait-for graph of one dump; see anr_locks.h.
 *
 * "held by thread" is more reliable than "- locked": a lock whose owner is in no register, or that
 * native code entered, is in no stack.  So the named owner is used first, then the thread that has
 * the object locked and has not released it by Object.wait (also if it was woken up and waits to
 * lock it again).  A thread that appears to wait for itself does not: its owner was read at another
 * moment.
 */
#include "decoder/formats/anr/anr_locks.h"

#include <stdlib.h>

#include "decoder/base/order.h"

struct key { /* maps a thread id or an object to the thread */
	uint64_t key;
	uint32_t thread;
};

struct keys {
	struct key *list;
	uint32_t n;
};

struct work {
	const struct tw_anr_node *nodes;
	const struct tw_anr_lock *locks;
	uint32_t n, n_locks;
	struct keys tids, owners;
	struct tw_anr_edge *edges;
	uint32_t *walk; /* 0: not visited, otherwise the number of the visiting walk */
	uint32_t *path;
};

TW_ORDER_BY(by_key, struct key, TW_RISING(key), TW_RISING(thread))

static void sort(struct keys *k)
{
	TW_SORT(k->list, k->n, by_key);
}

/* The first thread under the key other than `not`; TW_ANR_NONE if there is none. */
static int32_t find(const struct keys *k, uint64_t key, uint32_t not )
{
	uint32_t at;

	TW_BISECT(at, k->n, k->list[at].key < key);
	while (at < k->n && k->list[at].key == key && k->list[at].thread == not )
		at++;
	if (at == k->n || k->list[at].key != key)
		return TW_ANR_NONE;
	return (int32_t)k->list[at].thread;
}

/* In the lines [at, end) of one thread: the object that Object.wait released, or that the thread
 * waits to lock again after waking up. */
static uint64_t released_object(const struct work *w, uint32_t at, uint32_t end)
{
	for (uint32_t i = at; i < end; i++)
		if (w->locks[i].how != TW_ANR_LOCKED && w->locks[i].how != TW_ANR_SLEEPING)
			return w->locks[i].object;
	return 0;
}

static uint32_t end_of_thread(const struct work *w, uint32_t at)
{
	uint32_t end = at;

	while (end < w->n_locks && w->locks[end].thread == w->locks[at].thread)
		end++;
	return end;
}

static void collect_owners(struct work *w)
{
	for (uint32_t at = 0, end; at < w->n_locks; at = end) {
		uint64_t free;

		end = end_of_thread(w, at);
		free = released_object(w, at, end);
		for (uint32_t i = at; i < end; i++) {
			const struct tw_anr_lock *l = &w->locks[i];

			if (l->how == TW_ANR_LOCKED && l->object && l->object != free)
				w->owners.list[w->owners.n++] = (struct key){l->object, l->thread};
		}
	}
	sort(&w->owners);
}

static struct tw_anr_edge edge_of(const struct work *w, uint32_t i)
{
	const struct tw_anr_lock *l = &w->locks[i];
	struct tw_anr_edge e = {TW_ANR_NONE, (int32_t)i, false};
	bool itself = l->holder && l->holder == w->nodes[l->thread].tid;

	if (l->holder && !itself) {
		e.named = true;
		e.to = find(&w->tids, l->holder, l->thread);
		if (e.to == TW_ANR_NONE)
			e.to = TW_ANR_MISSING;
	} else if (l->object) {
		e.to = find(&w->owners, l->object, l->thread);
	}
	return e;
}

static void draw_edges(struct work *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		w->edges[i] = (struct tw_anr_edge){TW_ANR_NONE, -1, false};
	for (uint32_t i = 0; i < w->n_locks; i++) {
		const struct tw_anr_lock *l = &w->locks[i];

		if ((l->how == TW_ANR_WANTED || l->how == TW_ANR_INFLATION) &&
		        w->edges[l->thread].lock < 0)
			w->edges[l->thread] = edge_of(w, i);
	}
}

static struct tw_anr_cycle cycle_at(const struct work *w, uint32_t member)
{
	struct tw_anr_cycle c = {member, 0, true};
	uint32_t i = member;

	do {
		if (i < c.first)
			c.first = i;
		c.certain = c.certain && w->nodes[i].blocked;
		c.n++;
		i = (uint32_t)w->edges[i].to;
	} while (i != member);
	return c;
}

/* Walks from `from` to an end, to a visited thread, or around a cycle. */
static void walk(struct work *w, uint32_t from, struct tw_anr_graph *g)
{
	uint32_t n = 0;
	uint32_t at = from;
	uint32_t end;

	while (!w->walk[at]) {
		w->walk[at] = from + 1;
		w->path[n++] = at;
		if (w->edges[at].to < 0)
			break;
		at = (uint32_t)w->edges[at].to;
	}
	if (w->edges[at].to < 0) {
		end = at;
	} else if (w->walk[at] == from + 1) {
		g->cycles[g->n_cycles] = cycle_at(w, at);
		end = g->cycles[g->n_cycles++].first;
	} else {
		end = g->ends[at];
	}
	while (n)
		g->ends[w->path[--n]] = end;
}

TW_ORDER_BY(by_first, struct tw_anr_cycle, TW_RISING(first))

static void number_members(struct tw_anr_graph *g, uint32_t cycle)
{
	uint32_t i = g->cycles[cycle].first;

	do {
		g->cycle_of[i] = cycle + 1;
		i = (uint32_t)g->edges[i].to;
	} while (i != g->cycles[cycle].first);
}

static void follow(struct work *w, struct tw_anr_graph *g)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (!w->walk[i])
			walk(w, i, g);
	TW_SORT(g->cycles, g->n_cycles, by_first);
	for (uint32_t c = 0; c < g->n_cycles; c++)
		number_members(g, c);
	for (uint32_t i = 0; i < w->n; i++)
		if (g->ends[i] != i)
			g->victims[g->ends[i]]++;
}

bool tw_anr_graph(struct tw_arena *a, const struct tw_anr_node *nodes, uint32_t n,
        const struct tw_anr_lock *locks, uint32_t n_locks, struct tw_anr_graph *ret)
{
	struct work w = {.nodes = nodes, .locks = locks, .n = n, .n_locks = n_locks};
	struct tw_anr_graph g = {.n = n};
	size_t space = (size_t)n + 1; /* never empty */

	w.tids.list = tw_arena_alloc(a, space, sizeof *w.tids.list);
	w.owners.list = tw_arena_alloc(a, (size_t)n_locks + 1, sizeof *w.owners.list);
	w.edges = tw_arena_alloc(a, space, sizeof *w.edges);
	w.walk = tw_arena_zalloc(a, space, sizeof *w.walk);
	w.path = tw_arena_alloc(a, space, sizeof *w.path);
	g.cycles = tw_arena_alloc(a, space, sizeof *g.cycles);
	g.ends = tw_arena_zalloc(a, space, sizeof *g.ends);
	g.victims = tw_arena_zalloc(a, space, sizeof *g.victims);
	g.cycle_of = tw_arena_zalloc(a, space, sizeof *g.cycle_of);
	if (!w.tids.list || !w.owners.list || !w.edges || !w.walk || !w.path || !g.cycles ||
	        !g.ends || !g.victims || !g.cycle_of)
		return false;
	for (uint32_t i = 0; i < w.n; i++)
		if (w.nodes[i].tid)
			w.tids.list[w.tids.n++] = (struct key){w.nodes[i].tid, i};
	sort(&w.tids);
	collect_owners(&w);
	draw_edges(&w);
	g.edges = w.edges;
	follow(&w, &g);
	*ret = g;
	return true;
}

uint32_t tw_anr_chain(
        const struct tw_anr_graph *g, uint32_t from, uint32_t *ret_threads, uint32_t max)
{
	int32_t entry = TW_ANR_NONE; /* of the cycle that the chain leads into */
	uint32_t n = 0;

	for (int32_t at = (int32_t)from; n < max && at >= 0 && (uint32_t)at < g->n;) {
		ret_threads[n++] = (uint32_t)at;
		if (entry < 0 && g->cycle_of[at])
			entry = at;
		at = g->edges[at].to;
		if (at == entry)
			break;
	}
	return n;
}
