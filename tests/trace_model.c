/* trace_model.c - made-up traces and a log of what became of them; see trace_model.h. */
#include "trace_model.h"
#include "decoder/formats/sink.h"

#include <string.h>

#include "event_log.h"

struct drawing {
	struct model *m;
	const struct model_shape *shape;
	uint64_t state;
	int64_t now;
	uint64_t tid;
	size_t limit;
};

static uint64_t pick(struct drawing *d, uint64_t below)
{
	return (test_random(&d->state) >> 16) % below;
}

static void pass_time(struct drawing *d)
{
	d->now += d->shape->no_ties + (int64_t)pick(d, 3);
	if (pick(d, 16) == 0)
		d->now += (int64_t)pick(d, 100000);
}

static void draw_call(struct drawing *d, int64_t parent, uint32_t depth)
{
	static const uint64_t more[] = {0, 30, 60, 80, 90};
	struct model *m = d->m;
	size_t at = m->n++;
	uint64_t chance = more[pick(d, 5)];
	struct model_slice *s = &m->slices[at];
	struct tw_event ev = {.cpu_ns = -1, .offset = at, .track = (uint32_t)(d->tid - MODEL_PID)};

	*s = (struct model_slice){
	        d->tid, d->now, 0, parent, (uint32_t)pick(d, MODEL_METHODS), depth};
	ev.sym = s->method_id;
	ev.ts_ns = d->now;
	ev.kind = TW_EV_BEGIN;
	m->pairs[m->n_pairs++] = ev;
	pass_time(d);
	while (m->n < d->limit && depth + 1 < d->shape->max_depth && pick(d, 100) < chance) {
		size_t child = m->n;

		draw_call(d, (int64_t)at, depth + 1);
		/* a call of no length could as well be inside its right neighbour */
		d->now += (m->slices[child].dur_ns == 0) + (int64_t)pick(d, 2);
	}
	pass_time(d);
	s->dur_ns = d->now - s->start_ns;
	ev.ts_ns = d->now;
	ev.kind = TW_EV_END;
	m->pairs[m->n_pairs++] = ev;
	ev.kind = TW_EV_SLICE;
	ev.ts_ns = s->start_ns;
	ev.dur_ns = s->dur_ns;
	m->records[m->n_records++] = ev;
}

void model_make(struct model *m, const struct model_shape *shape)
{
	struct drawing d = {.m = m, .shape = shape, .state = shape->seed};
	size_t cap = (size_t)shape->threads * shape->per_thread;

	*m = (struct model){.threads = shape->threads};
	m->slices = tw_mem_alloc(cap, sizeof *m->slices);
	m->records = tw_mem_alloc(cap, sizeof *m->records);
	m->pairs = tw_mem_alloc(cap, 2 * sizeof *m->pairs);
	for (uint32_t i = 0; i < shape->threads; i++) {
		d.tid = MODEL_PID + i;
		d.now = (int64_t)pick(&d, 1000);
		d.limit = m->n + shape->per_thread / (i + 1);
		while (m->n < d.limit) {
			draw_call(&d, MODEL_NO_PARENT, 0);
			d.now += 1 + (int64_t)pick(&d, 50);
		}
	}
}

void model_done(struct model *m)
{
	tw_mem_free(m->slices);
	tw_mem_free(m->records);
	tw_mem_free(m->pairs);
}

static void shuffle(struct tw_event *ev, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = (test_random(state) >> 16) % i;
		struct tw_event t = ev[i - 1];

		ev[i - 1] = ev[k];
		ev[k] = t;
	}
}

/* Emits the next few events of a thread that still has some; false when all are emitted. */
static bool tell_some(struct tw_sink *sink, const struct tw_event *ev, size_t n, size_t *at,
        uint64_t *state, uint32_t threads)
{
	uint32_t track = (uint32_t)((test_random(state) >> 16) % threads);
	size_t budget = (test_random(state) >> 16) % 300 + 1;
	struct tw_event batch[300];
	size_t k = 0;

	for (size_t i = at[track]; i < n && k < budget; i++) {
		at[track] = i + 1;
		if (ev[i].track != track)
			continue;
		batch[k] = ev[i];
		batch[k].track = sink->ops->track(sink, MODEL_PID, MODEL_PID + track, TW_TID_FULL);
		batch[k].sym = sink->ops->method(sink, ev[i].sym);
		if (ev[i].kind == TW_EV_END && i % 2)
			batch[k].sym = 0; /* whatever is on top */
		k++;
	}
	if (k)
		(void)sink->ops->events(sink, batch, k, NULL);
	for (uint32_t i = 0; i < threads; i++)
		if (at[i] < n)
			return true;
	return false;
}

enum tw_status model_tell(
        const struct model *m, struct tw_sink *sink, enum model_form form, struct tw_err *err)
{
	const struct tw_event *from = form == MODEL_PAIRS ? m->pairs : m->records;
	size_t n = form == MODEL_PAIRS ? m->n_pairs : m->n;
	struct tw_event *ev = tw_mem_alloc(n, sizeof *ev);
	size_t *at = tw_mem_zalloc(m->threads, sizeof *at);
	uint64_t state = m->n * 2 + 1;
	enum tw_status st = ev && at ? TW_OK : TW_NOMEM;

	sink->ops->clock(sink, &(struct tw_clock){MODEL_PID, 5000, 9000, 0});
	if (st == TW_OK) {
		memcpy(ev, from, n * sizeof *ev);
		if (form == MODEL_SHUFFLED)
			shuffle(ev, n, &state);
		while (tell_some(sink, ev, n, at, &state, m->threads))
			continue;
		st = sink->ops->events(sink, NULL, 0, err); /* a failure is sticky */
	}
	tw_mem_free(at);
	tw_mem_free(ev);
	return st;
}

/* --- the log --- */

static struct trace_log *log_of(struct tw_trace_out *out)
{
	return (struct trace_log *)(void *)out;
}

/* Makes space for one element after n: arrays double, as a sanitizer copies each resized one. */
static bool grow(void **p, size_t n, size_t size)
{
	void *q;

	if (n & (n - 1)) /* the capacity is the next power of two */
		return true;
	q = tw_mem_resize(*p, n ? 2 * n : 1, size);
	if (q)
		*p = q;
	return q != NULL;
}

static struct tw_slice *copy_slices(struct trace_log *log, const struct tw_slice *s, size_t n)
{
	struct tw_slice *copy = tw_arena_alloc(log->arena, n + 1, sizeof *copy);

	if (copy && n)
		memcpy(copy, s, n * sizeof *copy);
	return copy;
}

static enum tw_status log_chunk(struct tw_trace_out *out, const struct tw_chunk_info *info,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	struct trace_log *log = log_of(out);
	struct tw_chunk c;
	enum tw_status st;

	tw_chunk_init(&c);
	st = tw_chunk_decode(&c, payload, len, info->start_ns, err);
	if (st == TW_OK && (c.n != info->slices || c.n_open != info->open))
		st = TW_BUG;
	if (st == TW_OK && !grow((void **)&log->chunks, log->n_chunks, sizeof *log->chunks))
		st = TW_NOMEM;
	if (st == TW_OK)
		log->chunks[log->n_chunks++] = (struct trace_log_chunk){
		        *info, copy_slices(log, c.open, c.n_open), copy_slices(log, c.slices, c.n)};
	tw_chunk_done(&c);
	return st;
}

static enum tw_status log_tree(struct tw_trace_out *out, uint32_t thread_id,
        const struct tw_tree *tree, struct tw_arena **arena, const uint8_t *payload, size_t len,
        struct tw_err *err)
{
	struct trace_log *log = log_of(out);
	enum tw_status st;

	if (!grow((void **)&log->trees, thread_id - 1, sizeof *log->trees))
		return TW_NOMEM;
	st = tw_tree_decode(payload, len, log->arena, &log->trees[thread_id - 1], err);
	(void)arena;
	if (st != TW_OK)
		return st;
	/* it is read as it was */
	return log->trees[thread_id - 1].n == tree->n &&
	                       memcmp(log->trees[thread_id - 1].nodes, tree->nodes,
	                               tree->n * sizeof *tree->nodes) == 0
	               ? TW_OK
	               : TW_BUG;
}

static enum tw_status log_thread(
        struct tw_trace_out *out, const struct tw_thread_info *t, struct tw_err *err)
{
	struct trace_log *log = log_of(out);

	(void)err;
	if (t->thread_id != log->n_threads + 1)
		return TW_BUG;
	if (!grow((void **)&log->threads, log->n_threads, sizeof *log->threads))
		return TW_NOMEM;
	log->threads[log->n_threads] = *t;
	log->threads[log->n_threads++].name.ptr = tw_arena_str(log->arena, t->name);
	return TW_OK;
}

static enum tw_status log_method(
        struct tw_trace_out *out, const struct tw_method_info *m, struct tw_err *err)
{
	struct trace_log *log = log_of(out);

	(void)err;
	if (!grow((void **)&log->methods, log->n_methods, sizeof *log->methods))
		return TW_NOMEM;
	log->methods[log->n_methods] = *m;
	log->methods[log->n_methods++].name.ptr = tw_arena_str(log->arena, m->name);
	return TW_OK;
}

static enum tw_status log_notes(
        struct tw_trace_out *o, const struct tw_note_row *rows, size_t n, struct tw_err *err)
{
	struct trace_log *log = log_of(o);

	(void)err;
	for (size_t i = 0; i < n; i++) {
		if (!grow((void **)&log->notes, log->n_notes, sizeof *log->notes))
			return TW_NOMEM;
		log->notes[log->n_notes] = rows[i];
		log->notes[log->n_notes].text.ptr = tw_arena_str(log->arena, rows[i].text);
		log->notes[log->n_notes++].detail = TW_STR("");
	}
	return TW_OK;
}

static enum tw_status log_document(
        struct tw_trace_out *o, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)kind, (void)json, (void)err;
	((struct trace_log *)(void *)o)->documents++;
	return TW_OK;
}

static enum tw_status log_repair(
        struct tw_trace_out *out, const struct tw_repair_count *r, struct tw_err *err)
{
	(void)err;
	log_of(out)->repairs[r->what] = r->count;
	log_of(out)->first_offsets[r->what] = r->first_offset;
	return TW_OK;
}

static enum tw_status log_info(
        struct tw_trace_out *out, const struct tw_trace_info *info, struct tw_err *err)
{
	(void)err;
	log_of(out)->info = *info;
	return TW_OK;
}

void trace_log_init(struct trace_log *log)
{
	static const struct tw_trace_out_ops ops = {log_chunk, log_tree, log_thread, log_method,
	        log_notes, log_document, log_repair, log_info};

	*log = (struct trace_log){.out = {&ops}, .arena = tw_arena_new((size_t)1 << 30)};
}

void trace_log_done(struct trace_log *log)
{
	tw_mem_free(log->chunks);
	tw_mem_free(log->trees);
	tw_mem_free(log->threads);
	tw_mem_free(log->methods);
	tw_mem_free(log->notes);
	tw_arena_free(log->arena);
}

const struct tw_thread_info *trace_log_thread(const struct trace_log *log, uint64_t tid)
{
	for (size_t i = 0; i < log->n_threads; i++)
		if (log->threads[i].tid == tid)
			return &log->threads[i];
	return NULL;
}

struct tw_slice *trace_log_slices(
        struct trace_log *log, uint32_t thread_id, uint32_t level, size_t *ret_n)
{
	struct tw_slice *all;
	size_t n = 0;

	for (size_t i = 0; i < log->n_chunks; i++)
		if (log->chunks[i].info.thread_id == thread_id &&
		        log->chunks[i].info.level == level)
			n += log->chunks[i].info.slices;
	all = tw_arena_alloc(log->arena, n + 1, sizeof *all);
	*ret_n = all ? n : 0;
	n = 0;
	for (size_t i = 0; all && i < log->n_chunks; i++) {
		const struct trace_log_chunk *c = &log->chunks[i];

		if (c->info.thread_id != thread_id || c->info.level != level)
			continue;
		memcpy(all + n, c->slices, c->info.slices * sizeof *all);
		n += c->info.slices;
	}
	return all;
}
