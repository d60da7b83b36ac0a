/*
 * builder_write.c - writes the finished trace piece by piece.
 *
 * Tracks are joined (builder_merge.c), threads sorted, methods numbered by falling count.  Then
 * each thread is nested and its slices in pre-order are processed by builder_shape.c.  The
 * methods' sums are those of the nodes of the thread's call tree, of which there are far fewer than
 * calls; only if some calls have no node, the calls are summed one by one.  If the
 * scheduler's states of a thread are recorded but its CPU clock is not, the time on a CPU within
 * each call is the call's CPU time.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

#include "decoder/base/order.h"
#include "decoder/base/sum.h"

enum { AT_ONCE = 256 };

struct writer {
	struct tw_builder *b;
	struct tw_trace_out *out;
	struct tw_trace_info info;
	struct tw_method_info *methods; /* by table index */
	uint32_t n_methods;             /* those with a call; unused names are omitted */
	uint32_t *active;               /* how often the method is in the path */
	uint32_t *path;                 /* methods of the open calls; limits.max_depth */
	uint32_t depth;
	struct tw_shaper *shaper;
	struct tw_thread_info thread;
	uint32_t *order; /* of tracks with their own thread */
	uint32_t n_order, n_opened;
	bool timed; /* some thread's slices have times */
};

/* --- the order of threads --- */

static bool is_main(const struct track *t)
{
	return t->pid && t->tid == t->pid;
}

/* The main thread of the traced process; in a trace of many processes any main thread with
 * calls. */
static bool comes_first(const struct tw_builder *b, const struct track *t)
{
	return is_main(t) && (b->clock.pid == t->pid || (b->clock.pid == 0 && t->n));
}

struct rank {
	uint64_t n;
	uint32_t main, at;
};

TW_ORDER_BY(main_then_larger, struct rank, TW_FALLING(main), TW_FALLING(n), TW_RISING(at))

static bool order_tracks(struct writer *w)
{
	uint32_t n = w->b->n_tracks;
	struct rank *r = tw_mem_alloc(n, sizeof *r);

	w->order = tw_mem_alloc(n, sizeof *w->order);
	for (uint32_t i = 0; r && w->order && i < n; i++) {
		const struct track *t = &w->b->tracks[i];

		if (!t->merged_into)
			r[w->n_order++] = (struct rank){t->n, comes_first(w->b, t), i};
	}
	if (r && w->order) {
		TW_SORT(r, w->n_order, main_then_larger);
		for (uint32_t i = 0; i < w->n_order; i++)
			w->order[i] = r[i].at;
	}
	tw_mem_free(r);
	return r && w->order;
}

static struct tw_str name_of(const struct tw_builder *b, const struct track *t)
{
	for (uint32_t i = 0; i < b->n_names; i++)
		if (b->names[i].tid == t->tid &&
		        (b->names[i].pid == 0 || b->names[i].pid == t->pid))
			return b->names[i].name;
	return TW_STR("");
}

/* --- methods --- */

TW_ORDER_BY(falling_count, struct rank, TW_FALLING(n), TW_RISING(at))

static bool number_methods(struct writer *w)
{
	struct tw_builder *b = w->b;
	struct rank *r = tw_mem_alloc(b->n_symbols, sizeof *r);

	w->methods = tw_mem_zalloc(b->n_symbols, sizeof *w->methods);
	w->active = tw_mem_zalloc(b->n_symbols, sizeof *w->active);
	b->indexes = tw_mem_alloc(b->n_symbols, sizeof *b->indexes);
	if (!r || !w->methods || !w->active || !b->indexes) {
		tw_mem_free(r);
		return false;
	}
	for (uint32_t i = 0; i < b->n_symbols; i++)
		r[i] = (struct rank){b->symbols[i].count, 0, i};
	TW_SORT(r, b->n_symbols, falling_count);
	for (uint32_t i = 0; i < b->n_symbols; i++) {
		struct symbol *s = &b->symbols[r[i].at];

		b->indexes[r[i].at] = i;
		w->n_methods += s->count > 0;
		w->methods[i] = (struct tw_method_info){.has_id = s->has_id && !s->name.ptr,
		        .id = s->id,
		        .name = s->name,
		        .cpu_ns = -1};
	}
	tw_mem_free(r);
	return true;
}

static void leave(struct writer *w, uint32_t depth)
{
	while (w->depth > depth)
		w->active[w->path[--w->depth]]--;
}

/* Adds the calls of a node to its method.  Nodes are added in pre-order. */
static void sum_node(struct writer *w, const struct tw_tree_node *n)
{
	struct tw_method_info *m = &w->methods[n->method];

	leave(w, n->depth - 1);
	m->count += n->count;
	m->sum_ns = tw_sum_ns(m->sum_ns, n->total_ns);
	m->self_ns = tw_sum_ns(m->self_ns, n->self_ns);
	if (n->max_ns > m->max_ns)
		m->max_ns = n->max_ns;
	if (w->active[n->method]++ == 0) {
		m->total_ns = tw_sum_ns(m->total_ns, n->total_ns);
		if (n->cpu_ns >= 0)
			m->cpu_ns = tw_sum_ns(m->cpu_ns < 0 ? 0 : m->cpu_ns, n->cpu_ns);
	}
	w->path[w->depth++] = n->method;
}

/* The same for a single call. */
static void sum_slice(struct writer *w, const struct tw_slice *s)
{
	sum_node(w, &(struct tw_tree_node){.method = s->method,
	                    .depth = s->depth + 1,
	                    .count = 1,
	                    .total_ns = s->dur_ns,
	                    .self_ns = s->dur_ns,
	                    .cpu_ns = s->cpu_ns,
	                    .max_ns = s->dur_ns});
	if (s->depth) {
		struct tw_method_info *caller = &w->methods[w->path[s->depth - 1]];

		caller->self_ns = tw_sum_ns(caller->self_ns, -s->dur_ns);
	}
}

/* --- one thread --- */

static void count_slices(struct tw_thread_info *t, const struct tw_slice *s, uint32_t n)
{
	int64_t end_ns = t->end_ns;
	uint32_t max_depth = t->max_depth;

	if (t->slices == 0 && n)
		t->start_ns = s->start_ns;
	t->slices += n;
	for (uint32_t i = 0; i < n; i++) {
		if (s[i].depth + 1 > max_depth)
			max_depth = s[i].depth + 1;
		if (s[i].depth)
			continue;
		t->roots++;
		t->busy_ns += s[i].dur_ns;
		if (s[i].start_ns + s[i].dur_ns > end_ns)
			end_ns = s[i].start_ns + s[i].dur_ns;
	}
	t->max_depth = max_depth;
	t->end_ns = end_ns;
}

static enum tw_status add_to_tree(struct writer *w, struct tw_err *err)
{
	struct nest_reader slices = tw_shaper_slices(w->shaper);
	struct tw_slice s[AT_ONCE];
	enum tw_status st = TW_OK;
	uint32_t n;

	while (st == TW_OK && (n = tw_nest_read(&slices, s, AT_ONCE)) > 0) {
		count_slices(&w->thread, s, n);
		st = tw_shaper_add(w->shaper, s, n, err);
	}
	return tw_nest_read_end(&slices, st, err);
}

/* Sums the thread's calls one by one, as its tree does not have all of them. */
static enum tw_status sum_calls(struct writer *w, struct tw_err *err)
{
	struct nest_reader slices = tw_shaper_slices(w->shaper);
	struct tw_slice s[AT_ONCE];
	uint32_t n;

	while ((n = tw_nest_read(&slices, s, AT_ONCE)) > 0)
		for (uint32_t i = 0; i < n; i++)
			sum_slice(w, &s[i]);
	leave(w, 0);
	return tw_nest_read_end(&slices, TW_OK, err);
}

/* Also sums the nodes per method, unless the calls were. */
static enum tw_status finish_tree(struct writer *w, bool clipped, struct tw_err *err)
{
	struct tw_tree_node nodes[TW_NODES_AT_ONCE];
	enum tw_status st = tw_shaper_tree(w->shaper, err);
	uint32_t n = 1;

	while (st == TW_OK && n > 0) {
		st = tw_shaper_nodes(w->shaper, nodes, &n, err);
		if (st != TW_OK || clipped)
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (nodes[i].depth > 0)
				sum_node(w, &nodes[i]);
	}
	leave(w, 0);
	return st;
}

static bool has_times(const struct track *t)
{
	return t->source == TW_SOURCE_CALLS ||
	       (t->source == TW_SOURCE_SAMPLES && t->interval_ns != TW_INTERVAL_NONE);
}

/* Reads the scheduler's states if they cover the thread's calls. */
static bool take_running(const struct tw_builder *b, struct nest *nest)
{
	const struct track *t = nest->track;
	bool ok = true;

	if (t->n && !t->records.cpu && has_times(t))
		ok = tw_builder_running_of(b, t, &nest->running);
	if (!ok || !tw_running_covers(&nest->running, t->first_ns, t->last_end_ns))
		tw_running_free(&nest->running);
	return ok;
}

/* NULL past the last one. */
static struct track *ordered(const struct writer *w, uint32_t i)
{
	return i < w->n_order ? &w->b->tracks[w->order[i]] : NULL;
}

static enum tw_status open_nest(
        struct writer *w, struct track *t, struct nest *ret, struct tw_err *err)
{
	enum tw_status st = tw_shaper_nest(w->shaper, t, ordered(w, w->n_opened + 1), ret, err);

	if (st == TW_OK)
		st = tw_nest_open(ret, w->b, err);
	if (st == TW_OK && !take_running(w->b, ret))
		st = tw_oom(err);
	if (st != TW_OK)
		tw_nest_close(ret);
	return st;
}

/* Opens the next thread, if any.  Its chunks are written from now on. */
static enum tw_status open_thread(struct writer *w, struct tw_err *err)
{
	struct track *t = ordered(w, w->n_opened);
	struct nest nest;
	enum tw_status st = t ? open_nest(w, t, &nest, err) : TW_OK;

	if (st != TW_OK || !t)
		return st;
	w->info.has_cpu |= t->records.cpu || nest.running.any;
	w->timed |= t->n && has_times(t);
	return tw_shaper_take(w->shaper, &nest, ++w->n_opened, err);
}

static enum tw_status shape(struct writer *w, struct tw_err *err)
{
	bool clipped = false;
	enum tw_status st = tw_shaper_begin(w->shaper, err);

	if (st == TW_OK)
		st = add_to_tree(w, err);
	if (st == TW_OK)
		clipped = tw_shaper_clipped(w->shaper) > 0;
	if (clipped)
		st = sum_calls(w, err);
	if (st == TW_OK)
		st = tw_shaper_added(w->shaper, err);
	if (st == TW_OK)
		st = open_thread(w, err);
	if (st == TW_OK)
		st = finish_tree(w, clipped, err);
	return st == TW_OK ? tw_shaper_end(w->shaper, &w->thread, err) : st;
}

static void sum_up(struct tw_trace_info *info, const struct tw_thread_info *t)
{
	if (t->slices) {
		if (info->slices == 0 || t->start_ns < info->start_ns)
			info->start_ns = t->start_ns;
		if (t->end_ns > info->end_ns)
			info->end_ns = t->end_ns;
	}
	info->slices += t->slices;
	info->threads++;
	if (t->max_depth > info->max_depth)
		info->max_depth = t->max_depth;
}

static enum tw_status write_thread(struct writer *w, uint32_t i, struct tw_err *err)
{
	const struct track *t = ordered(w, i);
	enum tw_status st;

	w->thread = (struct tw_thread_info){
	        .thread_id = i + 1,
	        .pid = tw_pid_number(t->pid),
	        .tid = t->tid,
	        .name = name_of(w->b, t),
	        .is_main = is_main(t),
	        .source = t->source,
	        .interval_ns = t->interval_ns,
	};
	st = shape(w, err);
	sum_up(&w->info, &w->thread);
	return st;
}

/* --- the complete trace --- */

static enum tw_status write_threads(struct writer *w, struct tw_err *err)
{
	enum tw_status st = open_thread(w, err);
	uint64_t clipped = 0;

	for (uint32_t i = 0; st == TW_OK && i < w->n_order; i++)
		st = write_thread(w, i, err);
	if (st == TW_OK && w->out->ops->all_sums)
		st = w->out->ops->all_sums(w->out, w->n_methods, err);
	if (st == TW_OK)
		st = tw_shaper_finish(w->shaper, &clipped, err);
	if (clipped)
		tw_builder_repair(w->b, TW_REPAIR_call_tree_full, TW_NO_OFFSET, clipped);
	return st;
}

static enum tw_status write_notes(struct writer *w, struct tw_err *err)
{
	uint32_t *thread_ids = tw_mem_alloc(w->b->n_tracks, sizeof *thread_ids);
	enum tw_status st;

	if (!thread_ids)
		return tw_oom(err);
	for (uint32_t i = 0; i < w->n_order; i++)
		thread_ids[w->order[i]] = i + 1;
	for (uint32_t i = 0; i < w->b->n_tracks; i++)
		if (w->b->tracks[i].merged_into)
			thread_ids[i] = thread_ids[w->b->tracks[i].merged_into - 1];
	st = tw_builder_write_notes(w->b, thread_ids, w->out, err);
	tw_mem_free(thread_ids);
	return st;
}

/* Calls and the states of the trace's own input determine its span, without calls all notes. */
static bool set_span(struct writer *w)
{
	struct tw_trace_info *i = &w->info;

	if (i->slices == 0) {
		tw_builder_notes_span(w->b, &i->start_ns, &i->end_ns);
	} else if (w->timed) {
		tw_builder_states_span(w->b, &i->start_ns, &i->end_ns);
		return tw_builder_clip_states(w->b, i->start_ns, i->end_ns);
	}
	return true;
}

static enum tw_status write_rest(struct writer *w, struct tw_err *err)
{
	const struct tw_trace_out_ops *ops = w->out->ops;
	enum tw_status st = set_span(w) ? TW_OK : tw_oom(err);

	for (uint32_t i = 0; st == TW_OK && i < w->n_methods; i++)
		st = ops->method(w->out, &w->methods[i], err);
	if (st == TW_OK)
		st = write_notes(w, err);
	for (int i = 0; st == TW_OK && i < TW_REPAIR_COUNT; i++) {
		w->b->repairs[i].what = (enum tw_repair)i;
		if (w->b->repairs[i].count)
			st = ops->repair(w->out, &w->b->repairs[i], err);
	}
	w->info.pid = w->b->clock.pid;
	w->info.mono_base_ns = w->b->clock.mono_base_ns;
	w->info.boot_base_ns = w->b->clock.boot_base_ns;
	w->info.methods = w->n_methods;
	return st == TW_OK ? ops->info(w->out, &w->info, err) : st;
}

static void free_writer(struct writer *w)
{
	tw_shaper_free(w->shaper);
	tw_mem_free(w->methods);
	tw_mem_free(w->active);
	tw_mem_free(w->path);
	tw_mem_free(w->order);
	tw_mem_free(w);
}

static bool prepare(struct writer *w)
{
	w->path = tw_mem_alloc((size_t)w->b->limits.max_depth + 1, sizeof *w->path);
	w->shaper = tw_shaper_new(w->b, w->out);
	return w->path && w->shaper && order_tracks(w) && number_methods(w) &&
	       tw_builder_sort_notes(w->b) && tw_builder_link_states(w->b);
}

/* No more records are added, and their memory is also that of call trees. */
static void shrink_records(struct tw_builder *b, struct track *t)
{
	if (t->n > t->n_spilled && t->n < t->cap && !tw_builder_resize_records(b, t, t->n))
		b->status = TW_OK; /* the array remains as it was */
}

static enum tw_status close_all(struct tw_builder *b, struct tw_err *err)
{
	enum tw_status st = b->status;

	for (uint32_t i = 0; st == TW_OK && i < b->n_tracks; i++)
		st = tw_builder_close_open(b, &b->tracks[i]);
	if (st == TW_OK)
		st = tw_builder_join_tracks(b);
	for (uint32_t i = 0; st == TW_OK && i < b->n_tracks; i++)
		shrink_records(b, &b->tracks[i]);
	if (st != TW_OK) {
		b->status = st;
		return tw_builder_fail(b, err);
	}
	if (b->slices == 0 && b->n_notes == 0 && b->n_documents == 0)
		return tw_fail(err, TW_CORRUPT, "no call could be read");
	return TW_OK;
}

enum tw_status tw_builder_write(struct tw_builder *b, struct tw_trace_out *out, struct tw_err *err)
{
	enum tw_status st = close_all(b, err);
	struct writer *w;

	if (st != TW_OK)
		return st;
	w = tw_mem_zalloc(1, sizeof *w);
	if (!w)
		return tw_oom(err);
	w->b = b;
	w->out = out;
	st = prepare(w) ? write_threads(w, err) : tw_oom(err);
	if (st == TW_OK)
		st = write_rest(w, err);
	free_writer(w);
	return st;
}
