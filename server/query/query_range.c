/*
 * query_range.c - call trees of a time range, or as stored, read by several threads.
 *
 * Each thread of the trace is a lane: its chunks that overlap the range. Lanes are split into parts
 * of about the same size, at least one per lane. Worker threads take the parts, the largest first.
 * Each part builds a separate tree:
 *
 *      lane    |open| chunk | chunk | chunk |open| chunk | chunk |
 *      part     counts ---------------------  enters  -----------
 *
 * Calls that are open where a later part begins are counted by the part in which they began; the
 * later part only enters them. The worker that finishes a lane's last part merges its trees. Sums
 * and maxima do not depend on where a lane was split, and finishing sorts every tree in the same
 * way. After the deadline, a lane keeps its parts up to the first incomplete one, as a single scan
 * would.
 *
 * A graph that shows few of the nodes reads the trees in their builders, linked instead of sorted.
 *
 * If the range contains the complete thread, or no range is selected, the lane has one part: its
 * tree is read from the file.  If the range is most of a thread, and the longest calls are not
 * needed, the parts build the tree of the calls outside, and one more part reads the stored tree
 * (query_outside.h).
 *
 * The file and the arena may be used by one thread at a time, so a lock protects reading a chunk's
 * stored bytes and allocating a finished tree.
 *
 * The CPU time of a call that is cut by an edge of the range is its running time within it, by the
 * states of the scheduler, at most that of the whole call; unknown if the trace has none or one
 * thread is requested.
 */
#include "server/query/query_slices.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "decoder/trace/running.h"
#include "server/base/thread/parallel.h"
#include "server/query/query_outside.h"

/* Space for the tree of a thread with more calls is made before it is built. */
enum { FEW_CALLS = 1 << 12 };
/* Reading this many stored nodes takes about as long as reading a chunk. */
enum { NODES_PER_CHUNK = 1 << 15 };

struct lane {
	uint32_t thread_id;
	const struct tw_chunk_row *rows; /* NULL: the tree is read as stored */
	uint32_t n;                      /* chunks; for a stored tree, only orders the work */
	bool outside;                    /* the parts build the tree of the calls outside */
	uint64_t calls;                  /* of the complete thread */
	uint64_t nodes;                  /* the tree has hardly more; 0: few or unknown */
	uint32_t first_part, n_parts;
	_Atomic uint32_t left; /* parts that are not done */
	const struct tw_running *running;
	struct tw_tree tree; /* set when all parts are done; n 0: the deadline passed before */
	struct tw_tree_builder *grown; /* has the tree's nodes; NULL: they are sorted */
};

struct part {
	struct lane *lane;
	uint32_t first, end; /* of the lane's chunks; for a stored tree, their difference only
	                      * orders the work */
	struct tw_tree_builder *tree;
	bool stored;   /* reads the stored tree, in addition to the other parts */
	bool complete; /* read completely */
};

struct scan {
	const struct tw_range_scan *query;
	bool unsorted; /* trees remain in their builders */
	struct lane *lanes;
	uint32_t n_lanes;
	struct tw_running *running; /* by thread id, within the range; NULL: no CPU times */
	uint32_t n_running;
	uint32_t n_methods; /* of the trace; set if a lane has `outside` */
	struct part *parts; /* by lane and time */
	struct part **queue;
	uint32_t n_parts;
	_Atomic uint32_t next; /* next part of the queue */
	_Atomic bool stop;     /* the deadline passed, or a scan failed */
	pthread_mutex_t lock;  /* protects the file, the arena, and the members below */
	uint64_t nodes;        /* total nodes of all trees being built */
	bool partial;
	enum tw_status status; /* the first failure */
	struct tw_err err;
};

/* State of one worker thread. */
struct worker {
	struct scan *scan;
	struct tw_unpacker *unpacker;
	struct tw_buf frame;
	struct tw_chunk chunk;
};

/* --- one part --- */

static enum tw_status read_chunk(
        struct worker *h, const struct tw_chunk_row *row, struct tw_err *err)
{
	struct scan *s = h->scan;
	enum tw_status st;

	tw_buf_clear(&h->frame);
	(void)pthread_mutex_lock(&s->lock);
	st = tw_trace_file_chunk_raw(s->query->file, row->chunk_id, &h->frame, err);
	(void)pthread_mutex_unlock(&s->lock);
	if (st != TW_OK)
		return st;
	return tw_unpacker_chunk(h->unpacker, tw_buf_str(&h->frame), row, &h->chunk, err);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct tw_slice cut(
        const struct tw_range_walk *w, const struct tw_running *running, const struct tw_slice *s)
{
	struct tw_slice c = *s;
	int64_t end = s->start_ns + s->dur_ns;
	uint32_t at = 0;

	if (end <= w->to_ns && c.start_ns >= w->from_ns)
		return c;
	if (end > w->to_ns)
		end = w->to_ns;
	if (c.start_ns < w->from_ns)
		c.start_ns = w->from_ns;
	c.dur_ns = end - c.start_ns;
	if (c.cpu_ns < 0 || !running || !running->any)
		c.cpu_ns = -1;
	else
		c.cpu_ns = least(c.cpu_ns, tw_running_within(running, c.start_ns, end, &at));
	return c;
}

static enum tw_status add_cut(struct tw_tree_builder *b, struct tw_range_walk *w,
        const struct tw_running *running, const struct tw_slice *s, size_t n)
{
	enum tw_status st = TW_OK;
	size_t run;

	for (size_t at = 0; st == TW_OK && (run = tw_range_run(w, s, n, &at)) > 0; at += run)
		for (size_t i = at; st == TW_OK && i < at + run; i++) {
			struct tw_slice c = cut(w, running, &s[i]);

			st = tw_tree_builder_add(b, &c, 1);
		}
	return st;
}

/* Enters open calls that overlap the range, without counting them again. */
static enum tw_status enter_open(
        struct tw_tree_builder *b, struct tw_range_walk *w, const struct tw_chunk *c)
{
	size_t at = 0;
	size_t run = tw_range_run(w, c->open, c->n_open, &at);

	return tw_tree_builder_enter(b, c->open + at, run);
}

static enum tw_status add_chunk(struct tw_tree_builder *b, struct tw_range_walk *w,
        const struct tw_running *running, const struct tw_chunk_info *i, const struct tw_chunk *c)
{
	if (!tw_range_has_chunk(w, i, c))
		return add_cut(b, w, running, c->slices, c->n);
	return tw_tree_builder_add(b, c->slices, c->n);
}

/* Checks the memory limit after trees have grown. */
static enum tw_status account(struct scan *s, uint64_t grown, struct tw_err *err)
{
	bool fits;

	(void)pthread_mutex_lock(&s->lock);
	s->nodes += grown;
	fits = s->nodes < SIZE_MAX / sizeof(struct tw_tree_node) &&
	       tw_arena_fits(s->query->arena, (size_t)s->nodes * sizeof(struct tw_tree_node));
	(void)pthread_mutex_unlock(&s->lock);
	return fits ? TW_OK : tw_oom(err);
}

static enum tw_status add_inside(
        const struct worker *h, const struct part *p, uint32_t i, struct tw_range_walk *w)
{
	const struct lane *l = p->lane;
	enum tw_status st = TW_OK;

	if (i == 0)
		st = add_cut(p->tree, w, l->running, h->chunk.open, h->chunk.n_open);
	else if (i == p->first)
		st = enter_open(p->tree, w, &h->chunk);
	if (st == TW_OK)
		st = add_chunk(p->tree, w, l->running, &l->rows[i].info, &h->chunk);
	return st;
}

/* The i-th chunk of the part's lane. */
static enum tw_status scan_chunk(struct worker *h, const struct part *p, uint32_t i,
        struct tw_range_walk *w, struct tw_err *err)
{
	uint32_t before = tw_tree_builder_nodes(p->tree);
	enum tw_status grown;
	enum tw_status st = read_chunk(h, &p->lane->rows[i], err);

	if (st != TW_OK)
		return st;
	grown = p->lane->outside ? tw_outside_add(p->tree, h->scan->query->sel, &h->chunk)
	                         : add_inside(h, p, i, w);
	if (grown == TW_NOMEM)
		return tw_oom(err);
	if (grown != TW_OK)
		return tw_fail(err, TW_CORRUPT, "the trace file is damaged (slices)");
	return account(h->scan, tw_tree_builder_nodes(p->tree) - before, err);
}

static void check_deadline(struct scan *s)
{
	if (!tw_deadline_passed(s->query->deadline))
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->partial = true;
	(void)pthread_mutex_unlock(&s->lock);
	atomic_store(&s->stop, true);
}

static struct tw_tree_node *room_for(struct scan *s, uint32_t n)
{
	struct tw_tree_node *nodes;

	(void)pthread_mutex_lock(&s->lock);
	nodes = tw_arena_alloc(s->query->arena, n, sizeof *nodes);
	(void)pthread_mutex_unlock(&s->lock);
	return nodes;
}

static enum tw_status read_stored(struct worker *h, struct lane *l, struct tw_err *err)
{
	struct scan *s = h->scan;
	struct tw_tree t = {NULL, 0};
	enum tw_status st;

	tw_buf_clear(&h->frame);
	(void)pthread_mutex_lock(&s->lock);
	st = tw_trace_file_tree_raw(s->query->file, l->thread_id, &h->frame, err);
	(void)pthread_mutex_unlock(&s->lock);
	if (st == TW_OK)
		st = tw_unpacker_tree(h->unpacker, tw_buf_str(&h->frame), &t.n, err);
	if (st != TW_OK)
		return st;
	t.nodes = room_for(s, t.n);
	st = t.nodes ? tw_unpacker_tree_into(h->unpacker, t.nodes, err) : tw_oom(err);
	if (st == TW_OK)
		l->tree = t;
	return st;
}

/* About as many calls as the chunk has in the range. */
static uint64_t calls_within(const struct tw_selection *sel, const struct tw_chunk_info *c)
{
	const int64_t from_ns = sel->from_ns > c->start_ns ? sel->from_ns : c->start_ns;
	const int64_t to_ns = least(sel->to_ns, c->end_ns);

	if (to_ns - from_ns >= c->end_ns - c->start_ns)
		return c->slices;
	return to_ns < from_ns ? 0
	                       : (uint64_t)((double)c->slices * (double)(to_ns - from_ns) /
	                                    (double)(c->end_ns - c->start_ns));
}

/* A tree has at most one node per call in the range, hardly more than the thread's stored tree, and
 * for a few of the thread's calls seldom more than twice their share of it.  The trees of the
 * lane's other parts are merged into the first part's.  If the space is refused, the tree grows as
 * it is built, as it may be much smaller. */
static void reserve_nodes(const struct scan *s, const struct part *p)
{
	const struct lane *l = p->lane;
	const uint32_t end = p->first == 0 ? l->n : p->end;
	uint64_t calls = 1;
	double nodes = (double)l->nodes;

	for (uint32_t i = p->first; i < end; i++)
		calls += l->outside ? l->rows[i].info.slices
		                    : calls_within(s->query->sel, &l->rows[i].info);
	if (2 * calls < l->calls)
		nodes *= 2 * (double)calls / (double)l->calls;
	(void)tw_tree_builder_reserve(p->tree, (double)calls < nodes ? calls : (uint64_t)nodes);
}

static enum tw_status scan_part(struct worker *h, struct part *p, struct tw_err *err)
{
	struct scan *s = h->scan;
	const struct tw_selection *sel = s->query->sel;
	struct tw_range_walk w = {sel->from_ns, sel->to_ns, 0};
	enum tw_status st = TW_OK;
	uint32_t i = p->first;

	if (!p->lane->rows || p->stored) {
		st = read_stored(h, p->lane, err);
		p->complete = st == TW_OK;
		if (st == TW_OK && sel->ranged)
			check_deadline(s);
		return st;
	}
	p->tree = tw_tree_builder_new(UINT32_MAX);
	if (!p->tree)
		return tw_oom(err);
	reserve_nodes(s, p);
	for (; st == TW_OK && i < p->end && !atomic_load(&s->stop); i++) {
		st = scan_chunk(h, p, i, &w, err);
		if (st == TW_OK)
			check_deadline(s);
	}
	p->complete = i == p->end;
	return st;
}

/* --- one lane --- */

/* Merges the trees of a lane's parts into the first, up to the first part that is not complete. */
static enum tw_status join_parts(struct scan *s, const struct lane *l, struct tw_err *err)
{
	struct part *parts = &s->parts[l->first_part];
	bool complete = parts[0].complete;
	enum tw_status st = TW_OK;

	for (uint32_t i = 1; st == TW_OK && complete && i < l->n_parts && parts[i].tree; i++) {
		st = tw_tree_builder_add_grown(parts[0].tree, parts[i].tree);
		complete = parts[i].complete;
	}
	for (uint32_t i = 1; i < l->n_parts; i++)
		parts[i].tree = tw_tree_builder_free(parts[i].tree);
	return st == TW_OK ? TW_OK : tw_oom(err);
}

/* If the deadline passed before all parts were read, nothing is left of the lane. */
static enum tw_status subtract_parts(struct scan *s, struct lane *l, struct tw_err *err)
{
	struct part *parts = &s->parts[l->first_part];
	enum tw_status st;

	for (uint32_t i = 0; i < l->n_parts; i++)
		if (!parts[i].complete) {
			l->tree.n = 0;
			return TW_OK;
		}
	st = join_parts(s, l, err);
	if (st == TW_OK && tw_tree_builder_link(parts[0].tree) != TW_OK)
		st = tw_oom(err);
	if (st == TW_OK)
		st = tw_outside_subtract(&l->tree, parts[0].tree, s->n_methods, err);
	parts[0].tree = tw_tree_builder_free(parts[0].tree);
	return st;
}

static enum tw_status finish_lane(struct scan *s, struct lane *l, struct tw_err *err)
{
	struct part *p = &s->parts[l->first_part];
	struct tw_tree_node *nodes;
	enum tw_status st;
	uint32_t n;

	if (l->outside)
		return subtract_parts(s, l, err);
	if (!p->tree) /* as stored, or the deadline passed before it was started */
		return TW_OK;
	st = join_parts(s, l, err);
	if (st != TW_OK)
		return st;
	n = tw_tree_builder_nodes(p->tree);
	if (s->unsorted) {
		if (tw_tree_builder_link(p->tree) != TW_OK)
			return tw_oom(err);
		l->tree.n = n;
		l->grown = p->tree;
		p->tree = NULL;
		return TW_OK;
	}
	nodes = room_for(s, n);
	if (!nodes || tw_tree_builder_finish_into(p->tree, nodes) != TW_OK)
		return tw_oom(err);
	l->tree = (struct tw_tree){nodes, n};
	p->tree = tw_tree_builder_free(p->tree);
	return TW_OK;
}

/* --- CPU time of calls that are cut --- */

static bool add_state(void *arg, uint64_t id, const struct tw_note_row *note)
{
	struct scan *s = arg;

	(void)id;
	if (tw_deadline_passed(s->query->deadline)) {
		s->partial = true;
		atomic_store(&s->stop, true);
	} else if (note->thread_id < s->n_running &&
	           !tw_running_add(&s->running[note->thread_id], note->ts_ns, note->dur_ns,
	                   tw_str_eq(note->text, TW_STR("running")))) {
		s->status = TW_NOMEM;
	}
	return s->status == TW_OK && !s->partial;
}

static enum tw_status read_running(struct scan *s, struct tw_err *err)
{
	const struct tw_note_query q = {.kind = TW_NOTE_state,
	        .from_ns = s->query->sel->from_ns,
	        .to_ns = s->query->sel->to_ns,
	        .limit = UINT32_MAX};
	enum tw_status st;
	uint32_t n;

	/* callers take one thread after the other: each would read the states of all */
	if (!s->query->sel->ranged || s->query->only || s->query->sums_only ||
	        !tw_trace_file_info(s->query->file)->has_cpu)
		return TW_OK;
	(void)tw_trace_file_threads(s->query->file, &n);
	s->running = tw_arena_zalloc(s->query->arena, (size_t)n + 1, sizeof *s->running);
	if (!s->running)
		return tw_oom(err);
	s->n_running = n + 1;
	st = tw_trace_file_notes(s->query->file, &q, add_state, s, err);
	return st == TW_OK && s->status != TW_OK ? tw_oom(err) : st;
}

/* --- the complete scan --- */

static void fail(struct scan *s, enum tw_status st, const struct tw_err *err)
{
	(void)pthread_mutex_lock(&s->lock);
	if (s->status == TW_OK) {
		s->status = st;
		s->err = *err;
	}
	(void)pthread_mutex_unlock(&s->lock);
	atomic_store(&s->stop, true);
}

static bool has_failed(struct scan *s)
{
	bool failed;

	(void)pthread_mutex_lock(&s->lock);
	failed = s->status != TW_OK;
	(void)pthread_mutex_unlock(&s->lock);
	return failed;
}

static void take_part(struct worker *h, struct part *p)
{
	struct scan *s = h->scan;
	struct tw_err err;
	enum tw_status st = TW_OK;

	if (!atomic_load(&s->stop))
		st = scan_part(h, p, &err);
	if (st != TW_OK)
		fail(s, st, &err);
	st = TW_OK;
	if (atomic_fetch_sub(&p->lane->left, 1) == 1 && !has_failed(s))
		st = finish_lane(s, p->lane, &err);
	if (st != TW_OK)
		fail(s, st, &err);
}

static void work(void *arg)
{
	struct scan *s = arg;
	struct worker h = {.scan = s, .unpacker = tw_unpacker_new()};
	struct tw_err err;
	uint32_t at;

	tw_buf_init(&h.frame, SIZE_MAX / 2);
	tw_chunk_init(&h.chunk);
	if (!h.unpacker)
		fail(s, tw_oom(&err), &err);
	while (h.unpacker && (at = atomic_fetch_add(&s->next, 1)) < s->n_parts)
		take_part(&h, s->queue[at]);
	tw_chunk_done(&h.chunk);
	tw_buf_done(&h.frame);
	tw_unpacker_free(h.unpacker);
}

/* Whether the stored trees equal those of a scan: they have all call paths, and the mapping
 * replaces no frame by inlined methods on read. */
static bool stored_are_complete(const struct tw_trace_file *f)
{
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (r[i].what == TW_REPAIR_call_tree_full)
			return false;
	return !tw_trace_file_is_inlined(f);
}

/* The end is exclusive: a zero-length call at to_ns is outside the range. */
static bool contains(const struct tw_selection *sel, const struct tw_thread_info *t)
{
	return t->start_ns >= sel->from_ns && t->end_ns < sel->to_ns;
}

/* A tree that lacks call paths may have had twice as many. */
static uint64_t stored_nodes(const struct scan *s, const struct tw_thread_info *t, bool complete)
{
	const uint64_t n = tw_trace_file_tree_nodes(s->query->file, t->thread_id);

	return complete ? n : 2 * n;
}

/* Changes a lane to build the tree of the calls outside, if that takes less time. */
static enum tw_status find_outside(struct scan *s, struct lane *l, struct tw_err *err)
{
	const struct tw_method_ref *methods;
	enum tw_status st = tw_outside_chunks(s->query->file, l->thread_id, s->query->sel, l->nodes,
	        s->query->arena, &l->rows, &l->n, err);

	l->outside = st == TW_OK;
	if (st == TW_OK)
		st = tw_trace_file_method_refs(s->query->file, &methods, &s->n_methods, err);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status open_lanes(struct scan *s, uint64_t *ret_chunks, struct tw_err *err)
{
	const struct tw_selection *sel = s->query->sel;
	const struct tw_range_walk w = {sel->from_ns, sel->to_ns, 0};
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(s->query->file, &n);
	bool complete = stored_are_complete(s->query->file);
	enum tw_status st = TW_OK;

	s->lanes = tw_arena_alloc(s->query->arena, (size_t)n + 1, sizeof *s->lanes);
	if (!s->lanes)
		return tw_oom(err);
	for (uint32_t i = 0; st == TW_OK && i < n; i++) {
		struct lane *l = &s->lanes[s->n_lanes];
		bool selected = s->query->only ? s->query->only->thread_id == t[i].thread_id
		                               : tw_selection_has(sel, &t[i]);

		if (!selected || !t[i].slices)
			continue;
		*l = (struct lane){.thread_id = t[i].thread_id,
		        .n = (uint32_t)(t[i].slices / TW_CHUNK_SLICES) + 1,
		        .calls = t[i].slices,
		        .running =
		                t[i].thread_id < s->n_running ? &s->running[t[i].thread_id] : NULL};
		if (sel->ranged && !(complete && contains(sel, &t[i])))
			st = tw_range_chunks(
			        s->query->file, t[i].thread_id, &w, &l->rows, &l->n, err);
		if (st == TW_OK && l->rows && t[i].slices > FEW_CALLS)
			l->nodes = stored_nodes(s, &t[i], complete);
		if (st == TW_OK && l->nodes && complete && s->query->sums_only)
			st = find_outside(s, l, err);
		if (st == TW_OK && l->n) {
			*ret_chunks += l->n;
			s->n_lanes++;
		}
	}
	return st;
}

/* Splits lanes into parts so that `workers` threads have about equal work. */
static void count_parts(struct scan *s, uint64_t chunks, unsigned workers)
{
	uint64_t share = (chunks + workers - 1) / workers;

	for (uint32_t i = 0; i < s->n_lanes; i++) {
		struct lane *l = &s->lanes[i];
		uint64_t n = workers > 1 && l->rows ? (l->n + share / 2) / share : 1;

		l->first_part = s->n_parts;
		l->n_parts = (n ? (uint32_t)n : 1) + l->outside;
		l->left = l->n_parts;
		s->n_parts += l->n_parts;
	}
}

static int larger_first(const void *pa, const void *pb)
{
	const struct part *a = *(struct part *const *)pa;
	const struct part *b = *(struct part *const *)pb;
	uint32_t n_a = a->end - a->first;
	uint32_t n_b = b->end - b->first;

	if (n_a != n_b)
		return n_a > n_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

static bool cut_parts(struct scan *s)
{
	s->parts = tw_arena_zalloc(s->query->arena, (size_t)s->n_parts + 1, sizeof *s->parts);
	s->queue = tw_arena_alloc(s->query->arena, (size_t)s->n_parts + 1, sizeof(struct part *));
	if (!s->parts || !s->queue)
		return false;
	for (uint32_t i = 0, k = 0; i < s->n_lanes; i++)
		for (uint64_t n = 0; n < s->lanes[i].n_parts; n++, k++) {
			struct lane *l = &s->lanes[i];
			const uint32_t scans = l->n_parts - l->outside;

			s->parts[k] = (struct part){.lane = l,
			        .first = (uint32_t)(l->n * n / scans),
			        .end = (uint32_t)(l->n * (n + 1) / scans)};
			if (n == scans)
				s->parts[k] = (struct part){.lane = l,
				        .end = (uint32_t)(l->nodes / NODES_PER_CHUNK) + 1,
				        .stored = true};
			s->queue[k] = &s->parts[k];
		}
	if (s->n_parts)
		qsort(s->queue, s->n_parts, sizeof(struct part *), larger_first);
	return true;
}

static enum tw_status plan(struct scan *s, unsigned workers, struct tw_err *err)
{
	uint64_t chunks = 0;
	enum tw_status st = read_running(s, err);

	if (st == TW_OK)
		st = open_lanes(s, &chunks, err);
	if (st != TW_OK)
		return st;
	count_parts(s, chunks, workers);
	return cut_parts(s) ? TW_OK : tw_oom(err);
}

static enum tw_status gather(const struct scan *s, struct tw_grown_forest *ret, struct tw_err *err)
{
	const size_t most = (size_t)s->n_lanes + 1;
	struct tw_tree *trees = tw_arena_alloc(s->query->arena, most, sizeof *trees);
	struct tw_tree_builder **builders =
	        tw_arena_alloc(s->query->arena, most, sizeof(struct tw_tree_builder *));
	uint32_t n = 0;

	if (!trees || !builders)
		return tw_oom(err);
	for (uint32_t i = 0; i < s->n_lanes; i++) {
		if (!s->lanes[i].tree.n)
			continue;
		builders[n] = s->lanes[i].grown;
		s->lanes[i].grown = NULL;
		trees[n++] = s->lanes[i].tree;
	}
	*ret = (struct tw_grown_forest){{trees, n}, builders};
	return TW_OK;
}

static enum tw_status run(struct scan *s, unsigned workers, struct tw_err *err)
{
	if (workers > s->n_parts)
		workers = s->n_parts;
	if (workers)
		tw_parallel_for(workers, work, s);
	for (uint32_t i = 0; i < s->n_parts; i++)
		tw_tree_builder_free(s->parts[i].tree);
	if (s->status != TW_OK)
		tw_err_copy(err, &s->err);
	return tw_trace_file_noted(s->query->file, s->status);
}

static enum tw_status trees(const struct tw_range_scan *query, bool unsorted,
        struct tw_grown_forest *ret, bool *ret_partial, struct tw_err *err)
{
	struct scan s = {.query = query, .unsorted = unsorted, .status = TW_OK};
	unsigned workers = tw_parallel_threads();
	enum tw_status st;

	(void)pthread_mutex_init(&s.lock, NULL);
	st = plan(&s, workers, err);
	if (st == TW_OK)
		st = run(&s, workers, err);
	if (st == TW_OK)
		st = gather(&s, ret, err);
	if (st == TW_OK)
		*ret_partial = s.partial;
	for (uint32_t i = 0; i < s.n_lanes; i++)
		tw_tree_builder_free(s.lanes[i].grown);
	for (uint32_t i = 0; i < s.n_running; i++)
		tw_running_free(&s.running[i]);
	(void)pthread_mutex_destroy(&s.lock);
	return st;
}

enum tw_status tw_range_trees(const struct tw_range_scan *query, struct tw_forest *ret,
        bool *ret_partial, struct tw_err *err)
{
	struct tw_grown_forest f;
	enum tw_status st = trees(query, false, &f, ret_partial, err);

	if (st == TW_OK)
		*ret = f.forest;
	return st;
}

enum tw_status tw_range_grown(const struct tw_range_scan *query, struct tw_grown_forest *ret,
        bool *ret_partial, struct tw_err *err)
{
	return trees(query, true, ret, ret_partial, err);
}

void tw_grown_forest_free(struct tw_grown_forest *f)
{
	for (uint32_t i = 0; i < f->forest.n; i++)
		f->builders[i] = tw_tree_builder_free(f->builders[i]);
}
