#include "server/query/query_grow_int.h"

#include <stdatomic.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/thread/parallel.h"

enum {
	WANTED_BY_THREADS = 2000,
	NODES_BY_THREADS = 100000, /* a summary tree has fewer */
	UNOPENED_BY_THREADS = 1000,
	CHECK_EVERY = 16
};

/* A thread's share of the unopened nodes, and the nodes below them. */
struct share {
	struct tw_grower g;
	struct growth *all;
	uint32_t *opened;       /* g.shown nodes in the order in which they were opened */
	uint32_t *first_places; /* of the share's first nodes in the graph */
	uint32_t n_first;
	uint32_t *places; /* of all nodes that are part of the graph */
	uint32_t merged;  /* number of opened nodes that are part of the graph */
	uint64_t weight;
	bool late, failed;
	/* Published for the other threads: the number of opened nodes, and a lower bound of their
	 * values. */
	_Alignas(64) _Atomic uint32_t shown;
	_Atomic int64_t least;
};

struct growth {
	struct share shares[TW_PARALLEL_MAX];
	uint32_t n;
	uint32_t wanted;       /* number of nodes still to be opened */
	pthread_mutex_t start; /* locked until the shares are divided */
	pthread_mutex_t lock;
	_Atomic uint32_t taken;
};

/* Returns whether all nodes that the graph needs are open: enough of them are heavier than the next
 * one of this share. `shown` is read before `least`, which is then a bound for all of them. */
static bool is_needless(const struct share *s)
{
	const struct growth *all = s->all;
	const int64_t next = s->g.heap[0].value;
	uint64_t shown = 0;

	for (uint32_t i = 0; i < all->n; i++) {
		shown += atomic_load_explicit(&all->shares[i].shown, memory_order_acquire);
		if (next >= atomic_load_explicit(&all->shares[i].least, memory_order_relaxed))
			return false;
	}
	return shown >= all->wanted;
}

static void grow_share(struct share *s)
{
	struct tw_grower *g = &s->g;
	int64_t least = INT64_MAX;

	while (g->n_heap && g->shown < s->all->wanted) {
		const int64_t value = g->heap[0].value;
		uint32_t node;

		if (g->shown % CHECK_EVERY == 0 && is_needless(s))
			return;
		if (tw_deadline_passed(g->deadline)) {
			s->late = true;
			return;
		}
		node = tw_grow_pop(g);
		if (!tw_grow_open(g, node)) {
			s->late = g->late;
			s->failed = !g->late;
			return;
		}
		s->opened[g->shown++] = node;
		least = value < least ? value : least;
		atomic_store_explicit(&s->least, least, memory_order_release);
		atomic_store_explicit(&s->shown, g->shown, memory_order_release);
	}
}

static void grow_shares(void *arg)
{
	struct growth *all = arg;
	uint32_t at;

	(void)pthread_mutex_lock(&all->start);
	(void)pthread_mutex_unlock(&all->start);
	while ((at = atomic_fetch_add(&all->taken, 1)) < all->n)
		grow_share(&all->shares[at]);
}

static bool open_share(
        struct growth *all, struct share *s, struct tw_grower *from, uint32_t unopened)
{
	*s = (struct share){.all = all,
	        .least = INT64_MAX,
	        .g = {.forest = from->forest,
	                .tree_nodes = from->tree_nodes,
	                .arena = from->arena,
	                .deadline = from->deadline,
	                .expand = from->expand,
	                .sums = from->sums,
	                .leaves = from->leaves,
	                .arg = from->arg,
	                .lock = &all->lock}};
	s->opened = tw_arena_alloc(from->arena, all->wanted, sizeof *s->opened);
	s->first_places = tw_arena_alloc(from->arena, unopened, sizeof *s->first_places);
	return s->opened && s->first_places &&
	       tw_grow_reserve(&s->g, unopened + 2 * all->wanted / all->n);
}

/* A share's nodes have the order of the graph, which decides among nodes of equal value. The time
 * for a node depends on its value, or bottom up on the members that are moved to their callers. */
static void divide(struct growth *all, const struct tw_grower *g, uint32_t first)
{
	for (uint32_t i = first; i < g->n; i++) {
		const struct tw_grown *node = &g->nodes[i];
		int64_t value = node->node.value;
		struct share *s = &all->shares[0];

		if (node->opened || node->node.method == TW_NO_METHOD)
			continue;
		for (uint32_t k = 1; k < all->n; k++)
			if (all->shares[k].weight < s->weight)
				s = &all->shares[k];
		s->weight += g->leaves ? node->n_members : (uint64_t)(value > 0 ? value : 0);
		s->first_places[s->g.n] = i;
		s->g.nodes[s->g.n] = *node;
		tw_grow_push(&s->g, s->g.n++);
	}
}

/* Opens a node of the graph as the share did. */
static bool take_over(struct tw_grower *g, const struct share *s, uint32_t node)
{
	const struct tw_grown *from = &s->g.nodes[node];
	struct tw_grown *to;

	if (!tw_grow_reserve(g, from->n_children))
		return false;
	to = &g->nodes[s->places[node]];
	to->node.self = from->node.self;
	to->opened = true;
	to->first_child = g->n;
	to->n_children = from->n_children;
	for (uint32_t i = 0; i < from->n_children; i++) {
		struct tw_grown *child = &g->nodes[g->n];

		*child = s->g.nodes[from->first_child + i];
		child->opened = false;
		child->node.parent = s->places[node];
		s->places[from->first_child + i] = g->n++;
	}
	g->shown++;
	return true;
}

/* The share whose next node is the next one of the graph. */
static struct share *next_share(struct growth *all)
{
	struct share *best = NULL;
	struct tw_heap_entry most = {0, 0};

	for (uint32_t i = 0; i < all->n; i++) {
		struct share *s = &all->shares[i];
		uint32_t node;
		struct tw_heap_entry e;

		if (s->merged == s->g.shown)
			continue;
		node = s->opened[s->merged];
		e = (struct tw_heap_entry){s->g.nodes[node].node.value, s->places[node]};
		if (!best || tw_grow_is_heavier(e, most)) {
			best = s;
			most = e;
		}
	}
	return best;
}

static bool merge_shares(struct tw_grower *g, struct growth *all)
{
	struct share *s;

	for (uint32_t i = 0; i < all->n; i++) {
		s = &all->shares[i];
		s->places = tw_arena_alloc(g->arena, s->g.n + 1, sizeof *s->places);
		if (!s->places)
			return false;
		memcpy(s->places, s->first_places, s->n_first * sizeof *s->places);
	}
	for (uint32_t n = 0; n < all->wanted && (s = next_share(all)); n++)
		if (!take_over(g, s, s->opened[s->merged++]))
			return false;
	return true;
}

static bool open_shares(struct growth *all, struct tw_grower *g, uint32_t first)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (!open_share(all, &all->shares[i], g, g->n_heap))
			return false;
	divide(all, g, first);
	for (uint32_t i = 0; i < all->n; i++)
		all->shares[i].n_first = all->shares[i].g.n;
	return true;
}

enum tw_status tw_grow_by_threads(struct tw_grower *g, uint32_t first, uint32_t max_nodes,
        bool *ret_partial, struct tw_err *err)
{
	struct growth all = {.wanted = max_nodes - g->shown};
	struct tw_helper *helpers[TW_PARALLEL_MAX];
	enum tw_status st = TW_OK;
	uint32_t n = 0;

	(void)pthread_mutex_init(&all.start, NULL);
	(void)pthread_mutex_init(&all.lock, NULL);
	(void)pthread_mutex_lock(&all.start);
	while (n + 1 < tw_parallel_threads() &&
	        (helpers[n] = tw_parallel_start(grow_shares, &all)) != NULL)
		n++;
	all.n = n ? n + 1 : 0;
	if (n && !open_shares(&all, g, first)) {
		st = tw_oom(err);
		all.n = 0;
	}
	(void)pthread_mutex_unlock(&all.start);
	if (st == TW_OK)
		grow_shares(&all);
	while (n)
		tw_parallel_join(helpers[--n]);
	for (uint32_t i = 0; i < all.n; i++) {
		*ret_partial |= all.shares[i].late;
		if (all.shares[i].failed)
			st = tw_oom(err);
	}
	if (st == TW_OK && !merge_shares(g, &all))
		st = tw_oom(err);
	(void)pthread_mutex_destroy(&all.start);
	(void)pthread_mutex_destroy(&all.lock);
	return st;
}

bool tw_grow_is_divisible(const struct tw_grower *g, uint32_t max_nodes)
{
	return g->by_threads && max_nodes - g->shown >= WANTED_BY_THREADS &&
	       g->tree_nodes >= NODES_BY_THREADS && g->n_heap >= UNOPENED_BY_THREADS;
}
