/*
 * query_detect.c - applies rules to the calls of a trace, thread by thread.
 *
 * Slices are in pre-order. A call that matches a rule is pushed on a stack and counted when it
 * ends. Calls around the thread's main loop are dropped.
 */
#include "server/query/detect/query_detect.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"
#include "server/query/detect/query_detect_int.h"
#include "server/query/query_slices.h"

/* --- findings of a rule --- */

/* Of equal findings the earlier is kept. */
static bool is_less(const struct tw_finding *a, const struct tw_finding *b)
{
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns < b->wall_ns;
	if (a->start_ns != b->start_ns)
		return a->start_ns > b->start_ns;
	return a->thread_id > b->thread_id;
}

static void sink_top(struct tw_finding *heap, uint32_t n)
{
	const struct tw_finding moved = heap[0];
	uint32_t at = 0;

	for (uint32_t child = 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && is_less(&heap[child + 1], &heap[child]))
			child++;
		if (!is_less(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void rise(struct tw_finding *heap, uint32_t at)
{
	const struct tw_finding moved = heap[at];

	for (; at && is_less(&moved, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = moved;
}

static void keep(const struct tw_detector *d, uint32_t rule, const struct tw_finding *f)
{
	struct tw_detect_sum *sum = &d->ret->sums[rule];
	struct tw_finding own = *f;

	own.rule = rule;
	if (sum->n_kept < d->query->keep) {
		sum->kept[sum->n_kept++] = own;
		rise(sum->kept, sum->n_kept - 1);
	} else if (sum->n_kept && is_less(&sum->kept[0], &own)) {
		sum->kept[0] = own;
		sink_top(sum->kept, sum->n_kept);
	}
}

static void cover(struct tw_detector *d, uint32_t group, const struct tw_finding *f)
{
	if (f->note || !(d->noting_groups >> group & 1))
		return;
	if (d->n_covers == TW_DETECT_COVERS_MAX) {
		d->ret->cut |= TW_CUT_CALLS;
		return;
	}
	if (!TW_GROW(d->arena, d->covers, d->n_covers, d->cap_covers)) {
		d->no_memory = true;
		return;
	}
	d->covers[d->n_covers++] = (struct tw_cover){
	        f->thread_id, group, f->start_ns, tw_sum_ns(f->start_ns, f->wall_ns)};
}

static void add(struct tw_detect_sum *sum, const struct tw_finding *f, bool reported)
{
	sum->calls++;
	sum->total_ns = tw_sum_ns(sum->total_ns, f->wall_ns);
	if (f->wall_ns > sum->max_ns)
		sum->max_ns = f->wall_ns;
	if (f->cpu_ns >= 0)
		sum->cpu_ns = tw_sum_ns(sum->cpu_ns < 0 ? 0 : sum->cpu_ns, f->cpu_ns);
	sum->found += reported;
	if (reported)
		sum->found_ns = tw_sum_ns(sum->found_ns, f->wall_ns);
}

void tw_detect_count(
        struct tw_detector *d, const struct tw_finding *f, uint64_t counted, uint64_t reported)
{
	for (uint64_t rest = counted; rest; rest &= rest - 1) {
		const uint32_t rule = tw_detect_lowest(rest);

		add(&d->ret->sums[rule], f, reported >> rule & 1);
		cover(d, d->query->rules[rule].group, f);
		if (reported >> rule & 1)
			keep(d, rule, f);
	}
}

void tw_detect_add_role_call(struct tw_detector *d, const struct tw_role_call *m)
{
	struct tw_detected *ret = d->ret;

	if (m->role == TW_CALL_MESSAGE && m->dur_ns < d->query->least_message_ns)
		return;
	if (ret->n_role_calls == TW_DETECT_ROLE_CALLS_MAX)
		ret->cut |= TW_CUT_ROLE_CALLS;
	else if (!TW_GROW(d->arena, ret->role_calls, ret->n_role_calls, d->cap_role_calls))
		d->no_memory = true;
	else
		ret->role_calls[ret->n_role_calls++] = *m;
}

/* --- the calls of a thread --- */

struct open_call {
	struct tw_finding call;
	uint64_t counted, reported, groups; /* rules; groups of the reported rules */
	uint64_t roles; /* the bit of its role; 0: none, or an enclosing call has the same role */
};

struct walk {
	struct tw_detector *d;
	const struct tw_thread_info *thread;
	uint64_t rules;         /* that apply to the thread */
	uint32_t *path;         /* methods of the open calls, by depth */
	struct open_call *open; /* path and open have space for the deepest thread */
	uint32_t n_open;
	uint64_t open_rules, reported_groups, open_roles;
};

static void close_last(struct walk *w)
{
	const struct open_call *o = &w->open[--w->n_open];

	w->open_rules &= ~o->counted;
	w->reported_groups &= ~o->groups;
	w->open_roles &= ~o->roles;
	tw_detect_count(w->d, &o->call, o->counted, o->reported);
	if (o->roles)
		tw_detect_add_role_call(w->d,
		        &(struct tw_role_call){o->call.start_ns, o->call.wall_ns, o->call.method,
		                o->call.thread_id, (uint8_t)tw_detect_lowest(o->roles)});
}

static uint32_t caller_of(const struct walk *w, uint32_t depth)
{
	while (depth-- > 0)
		if (w->d->query->is_app[w->path[depth]])
			return w->path[depth];
	return TW_NO_METHOD;
}

static void match_rules(const struct walk *w, uint64_t fits, int64_t dur_ns, struct open_call *o)
{
	for (; fits; fits &= fits - 1) {
		const uint32_t rule = tw_detect_lowest(fits);
		const struct tw_detect_spec *spec = &w->d->query->rules[rule];

		if ((w->reported_groups | o->groups) >> spec->group & 1)
			continue;
		o->counted |= UINT64_C(1) << rule;
		if (dur_ns < spec->threshold_ns)
			continue;
		o->reported |= UINT64_C(1) << rule;
		o->groups |= UINT64_C(1) << spec->group;
	}
}

static void open_one(struct walk *w, const struct tw_slice *s, uint64_t fits, uint8_t role)
{
	struct open_call o = {.roles = UINT64_C(1) << role & ~UINT64_C(1) & ~w->open_roles};

	match_rules(w, fits, s->dur_ns, &o);
	if (!o.counted && !o.roles)
		return;
	o.call = (struct tw_finding){.thread_id = w->thread->thread_id,
	        .start_ns = s->start_ns,
	        .wall_ns = s->dur_ns,
	        .cpu_ns = s->cpu_ns,
	        .method = s->method,
	        .depth = s->depth,
	        .caller = caller_of(w, s->depth)};
	w->open_rules |= o.counted;
	w->reported_groups |= o.groups;
	w->open_roles |= o.roles;
	w->open[w->n_open++] = o;
}

static void see(struct walk *w, const struct tw_slice *s)
{
	const struct tw_detect_query *query = w->d->query;
	const uint32_t method = s->method < query->n_methods ? s->method : 0;
	const uint8_t role =
	        w->thread->thread_id == query->main_id ? query->roles[method] : TW_CALL_NONE;
	uint64_t fits;

	while (w->n_open && w->open[w->n_open - 1].call.depth >= s->depth)
		close_last(w);
	w->path[s->depth] = method;
	if (query->roles[method] == TW_CALL_LOOP) {
		w->n_open = 0;
		w->open_rules = w->reported_groups = w->open_roles = 0;
	}
	fits = query->by_method[method] & w->rules & ~w->open_rules;
	if (role != TW_CALL_LOOP && (role || fits))
		open_one(w, s, fits, role);
}

static bool is_late(struct tw_detector *d)
{
	if (tw_deadline_passed(d->query->deadline))
		d->ret->cut |= TW_CUT_TIME;
	return d->ret->cut & TW_CUT_TIME;
}

static bool see_all(void *arg, const struct tw_slice *s, size_t n)
{
	struct walk *w = arg;

	for (size_t i = 0; i < n; i++) {
		if (s[i].depth >= w->thread->max_depth)
			continue; /* damaged file */
		see(w, &s[i]);
	}
	return !is_late(w->d) && !w->d->no_memory;
}

static enum tw_status walk_thread(
        struct walk *w, const struct tw_thread_info *t, struct tw_err *err)
{
	enum tw_status st;

	w->thread = t;
	w->rules = w->d->query->by_thread[t->thread_id];
	memset(w->path, 0, ((size_t)t->max_depth + 1) * sizeof *w->path);
	st = tw_query_slices(
	        w->d->file, t->thread_id, t->start_ns, tw_sum_ns(t->end_ns, 1), see_all, w, err);
	while (w->n_open)
		close_last(w);
	return st;
}

static bool is_selected(const struct tw_detector *d, const struct tw_thread_info *t)
{
	return t->slices &&
	       (d->query->by_thread[t->thread_id] || t->thread_id == d->query->main_id);
}

static bool open_walk(struct walk *w, const struct tw_thread_info *threads, uint32_t n)
{
	size_t deepest = 0;

	for (uint32_t i = 0; i < n; i++)
		if (is_selected(w->d, &threads[i]) && threads[i].max_depth > deepest)
			deepest = threads[i].max_depth;
	w->path = tw_arena_alloc(w->d->arena, deepest + 1, sizeof *w->path);
	w->open = tw_arena_alloc(w->d->arena, deepest + 1, sizeof *w->open);
	return w->path && w->open;
}

static enum tw_status walk_threads(struct tw_detector *d, struct tw_err *err)
{
	uint32_t n = 0;
	const struct tw_thread_info *threads = tw_trace_file_threads(d->file, &n);
	struct walk w = {.d = d};
	enum tw_status st = TW_OK;

	d->no_memory = !open_walk(&w, threads, n);
	for (uint32_t i = 0; st == TW_OK && !d->no_memory && i < n; i++) {
		if (!is_selected(d, &threads[i]))
			continue;
		if (is_late(d))
			break;
		st = walk_thread(&w, &threads[i], err);
	}
	return st;
}

static bool prepare(struct tw_detector *d)
{
	const struct tw_detect_query *query = d->query;

	*d->ret = (struct tw_detected){
	        .sums = tw_arena_zalloc(d->arena, query->n_rules + 1, sizeof *d->ret->sums)};
	for (size_t i = 0; d->ret->sums && i < query->n_rules; i++) {
		d->ret->sums[i].cpu_ns = -1;
		d->ret->sums[i].kept = tw_arena_alloc(
		        d->arena, (size_t)query->keep + 1, sizeof *d->ret->sums[i].kept);
		if (!d->ret->sums[i].kept)
			return false;
		if (query->rules[i].notes)
			d->noting_groups |= UINT64_C(1) << query->rules[i].group;
	}
	return d->ret->sums != NULL;
}

/* Of calls with equal begin and end, a message encloses its frame. */
TW_ORDER_BY(
        by_begin, struct tw_role_call, TW_RISING(start_ns), TW_FALLING(dur_ns), TW_FALLING(role))

enum tw_status tw_query_detect(struct tw_trace_file *f, const struct tw_detect_query *query,
        struct tw_arena *a, struct tw_detected *ret, struct tw_err *err)
{
	struct tw_detector d = {.file = f, .query = query, .arena = a, .ret = ret};
	enum tw_status st = TW_OK;

	if (prepare(&d))
		st = walk_threads(&d, err);
	else
		d.no_memory = true;
	if (st == TW_OK && !d.no_memory && !(ret->cut & TW_CUT_TIME))
		st = tw_detect_notes(&d, err);
	if (st == TW_OK && d.no_memory)
		st = tw_oom(err);
	if (st == TW_OK && ret->n_role_calls)
		TW_SORT(ret->role_calls, ret->n_role_calls, by_begin);
	return st;
}

/* --- heavy methods ---
 *
 * The path of calls with most of the time in a range of a thread.
 */

/* Nodes are in pre-order; a child begins after its parent, its sibling after its subtree. */
static uint32_t heaviest_child(const struct tw_tree *t, uint32_t at)
{
	const uint32_t end = at + t->nodes[at].subtree;
	uint32_t best = 0;

	for (uint32_t i = at + 1; i < end; i += t->nodes[i].subtree)
		if (!best || t->nodes[i].total_ns > t->nodes[best].total_ns)
			best = i;
	return best;
}

static void follow(
        const struct tw_tree *t, int64_t least_ns, const uint8_t *is_app, struct tw_heavy *ret)
{
	bool app = false;

	for (uint32_t at = heaviest_child(t, 0); at && t->nodes[at].total_ns >= least_ns;
	        at = heaviest_child(t, at)) {
		const struct tw_tree_node *node = &t->nodes[at];

		ret->leaf = node->method;
		ret->leaf_ns = node->total_ns;
		ret->leaf_self_ns = node->self_ns;
		if (app && !is_app[node->method])
			continue;
		app = app || is_app[node->method];
		ret->method = node->method;
		ret->ns = node->total_ns;
	}
}

/* A partially read range gives no result: another call may have half of the complete range. */
enum tw_status tw_query_heavy(struct tw_trace_file *f, const struct tw_heavy_query *query,
        struct tw_arena *a, struct tw_heavy *ret, bool *ret_partial, struct tw_err *err)
{
	const int64_t range_ns = query->to_ns - query->from_ns;
	const struct tw_selection sel = {.all_threads = true,
	        .ranged = true,
	        .from_ns = query->from_ns,
	        .to_ns = range_ns > 0 ? query->to_ns : tw_sum_ns(query->from_ns, 1)};
	const struct tw_range_scan scan = {.file = f,
	        .only = query->thread,
	        .sel = &sel,
	        .deadline = query->deadline,
	        .arena = a};
	struct tw_forest one;
	enum tw_status st = tw_range_trees(&scan, &one, ret_partial, err);

	*ret = (struct tw_heavy){.method = TW_NO_METHOD, .leaf = TW_NO_METHOD};
	if (st == TW_OK && !*ret_partial && one.n && one.trees[0].n > 1)
		follow(&one.trees[0], range_ns / 2 + range_ns % 2, query->is_app, ret);
	return st;
}

/* --- frames --- */

enum { ROWS_PER_CHECK = 256, DISPLAY_BYTES = 300 };

struct frames {
	const struct tw_frame_limits *limits;
	struct tw_frames *ret;
	struct tw_arena *arena;
	struct tw_str pid; /* from the note's detail; len 0: unknown */
	uint64_t rows;
	bool no_memory;
};

TW_ORDER_BY(longest_first, struct tw_frame_found, TW_FALLING(dur_ns), TW_RISING(start_ns))

/* The list has space for twice the reported number; when full, it is reduced to the longest. */
static void list(struct frames *x, const struct tw_frame_found *f)
{
	struct tw_frames *ret = x->ret;

	if (ret->n == 2 * TW_FRAMES_LISTED) {
		TW_SORT(ret->list, ret->n, longest_first);
		ret->n = TW_FRAMES_LISTED;
	}
	ret->list[ret->n++] = *f;
}

static void add_frame(struct frames *x, const struct tw_frame_found *f)
{
	x->ret->total++;
	x->ret->slow += f->dur_ns > x->limits->slow_ns;
	x->ret->frozen += f->dur_ns > x->limits->frozen_ns;
	if (f->dur_ns > x->limits->slow_ns)
		list(x, f);
}

/* --- frames from calls --- */

/* A message that draws a frame is reported as that frame. */
static bool draws(const struct tw_detected *d, uint32_t at)
{
	const struct tw_role_call *m = &d->role_calls[at];
	const int64_t end_ns = tw_sum_ns(m->start_ns, m->dur_ns);

	for (uint32_t i = at + 1; i < d->n_role_calls && d->role_calls[i].start_ns < end_ns; i++)
		if (d->role_calls[i].role == TW_CALL_FRAME &&
		        d->role_calls[i].dur_ns >= m->dur_ns / 2)
			return true;
	return false;
}

static void add_calls(struct frames *x, const struct tw_detected *d)
{
	for (uint32_t i = 0; i < d->n_role_calls; i++) {
		const struct tw_role_call *m = &d->role_calls[i];
		const struct tw_frame_found f = {
		        m->start_ns, m->dur_ns, m->method, m->role == TW_CALL_MESSAGE, ""};

		if (m->role == TW_CALL_FRAME) {
			x->ret->from = TW_FRAMES_CALLS;
			add_frame(x, &f);
		} else if (f.message && m->dur_ns > x->limits->frozen_ns && !draws(d, i)) {
			x->ret->messages++;
			list(x, &f);
		}
	}
}

/* --- frames from notes --- */

static bool detail_contains(struct tw_str detail, struct tw_str what)
{
	return tw_str_find(detail, what) < detail.len;
}

/* The detail was written by perfetto_frames.c.  Each frame of an app has two notes: expected and
 * actual. */
static bool is_frame(const struct frames *x, const struct tw_note_row *n)
{
	return n->dur_ns >= 0 && detail_contains(n->detail, TW_STR("\"actual\"")) &&
	       detail_contains(n->detail, TW_STR("\"surface\"")) &&
	       (!x->pid.len || detail_contains(n->detail, x->pid));
}

/* Truncated, as many texts may be stored before the longest frames are known. NULL: out of
 * memory. */
static const char *display_of(struct frames *x, struct tw_str text)
{
	char shown[DISPLAY_BYTES];

	(void)tw_utf8_clean(shown, sizeof shown, text);
	return tw_arena_str(x->arena, tw_str_of(shown));
}

/* Frames of other processes are skipped, but count towards the deadline check. */
static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct frames *x = arg;
	struct tw_frame_found f = {n->ts_ns, n->dur_ns, TW_NO_METHOD, false, NULL};

	(void)id;
	if (x->rows++ % ROWS_PER_CHECK == 0 && tw_deadline_passed(x->limits->deadline))
		x->ret->cut |= TW_CUT_TIME;
	if (x->ret->cut || !is_frame(x, n))
		return !x->ret->cut;
	if (x->ret->total == x->limits->most) {
		x->ret->cut |= TW_CUT_FRAMES;
		return false;
	}
	x->ret->from = TW_FRAMES_NOTES;
	f.display = n->dur_ns > x->limits->slow_ns ? display_of(x, n->text) : "";
	x->no_memory = !f.display;
	if (f.display)
		add_frame(x, &f);
	return !x->no_memory;
}

static enum tw_status add_notes(struct frames *x, struct tw_trace_file *f, struct tw_err *err)
{
	const struct tw_note_query q = {
	        .kind = TW_NOTE_frame, .to_ns = INT64_MAX, .limit = UINT32_MAX};
	const uint32_t pid = tw_trace_file_info(f)->pid;
	const char *text = pid ? tw_arena_printf(x->arena, "\"pid\":%u,", pid) : "";
	enum tw_status st;

	if (!text)
		return tw_oom(err);
	x->pid = tw_str_of(text);
	st = tw_trace_file_notes(f, &q, add_note, x, err);
	if (st == TW_OK && x->no_memory)
		st = tw_oom(err);
	return st;
}

enum tw_status tw_detect_frames(struct tw_trace_file *f, const struct tw_detected *d,
        const struct tw_frame_limits *limits, struct tw_arena *a, struct tw_frames *ret,
        struct tw_err *err)
{
	struct frames x = {.limits = limits, .ret = ret, .arena = a};
	enum tw_status st = TW_OK;

	*ret = (struct tw_frames){
	        .list = tw_arena_alloc(a, (size_t)2 * TW_FRAMES_LISTED, sizeof *ret->list)};
	if (!ret->list)
		return tw_oom(err);
	add_calls(&x, d);
	if (ret->from == TW_FRAMES_NOWHERE)
		st = add_notes(&x, f, err);
	if (st == TW_OK && ret->n)
		TW_SORT(ret->list, ret->n, longest_first);
	if (ret->n > TW_FRAMES_LISTED)
		ret->n = TW_FRAMES_LISTED;
	return st;
}
