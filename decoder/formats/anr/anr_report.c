/*
 * anr_report.c - the document "anr".
 *
 * Limited in size: threads in the chain or in a deadlock always have their frames, others as long
 * as the limit of text allows; omissions are counted where they occur.  Keys are in reading
 * order.
 */
#include "decoder/formats/anr/anr_report.h"
#include "decoder/formats/anr/anr_markup.h"

#include <stdio.h>

enum {
	VERSION = 1,
	FRAMES_MAX = 256,      /* per thread */
	FRAMES_TEXT = 6 << 20, /* bytes of frames per document */
	THREADS_MAX = 1 << 14, /* per document */
	FRAME_COST = 48
};

struct report {
	const struct tw_anr *m;
	const struct tw_anr_summary *s;
	const struct tw_anr_dump *d; /* current dump */
	const struct tw_anr_finding *f;
	const struct tw_anr_lock *locks;
	size_t text;      /* bytes of frames so far */
	uint32_t threads; /* so far */
	bool failed;      /* out of memory */
};

/* --- JSON --- */

static void put(struct report *r, json_t *o, const char *key, json_t *v)
{
	if (json_object_set_new(o, key, v) != 0)
		r->failed = true;
}

static void add(struct report *r, json_t *a, json_t *v)
{
	if (json_array_append_new(a, v) != 0)
		r->failed = true;
}

static json_t *str(struct tw_str s)
{
	return json_stringn(s.ptr, s.len);
}

static json_t *text(const struct report *r, uint32_t index)
{
	return str(tw_anr_str(r->m, index));
}

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)(v & INT64_MAX));
}

static void put_text(struct report *r, json_t *o, const char *key, uint32_t index)
{
	if (index)
		put(r, o, key, text(r, index));
}

static void put_number(struct report *r, json_t *o, const char *key, uint64_t v)
{
	if (v)
		put(r, o, key, number(v));
}

static json_t *index_or_null(uint32_t i)
{
	return i == TW_ANR_NO_INDEX ? json_null() : json_integer(i);
}

/* The displayed text, and its pieces for renaming with a mapping. */
static void put_verdict(struct report *r, json_t *o, const char *with_markup)
{
	const char *plain = tw_anr_plain(r->m->arena, with_markup);
	struct tw_str rest = tw_str_of(with_markup);
	json_t *parts = json_array();
	enum tw_anr_part kind;
	struct tw_str part;

	put(r, o, "verdict", plain ? json_string(plain) : NULL);
	while (tw_anr_next_part(&rest, &part, &kind)) {
		json_t *named;

		if (kind == TW_ANR_PART_TEXT) {
			add(r, parts, str(part));
			continue;
		}
		named = json_object();
		put(r, named, kind == TW_ANR_PART_CLASS ? "class" : "method", str(part));
		add(r, parts, named);
	}
	put(r, o, "verdict_parts", parts);
}

static json_t *hash_text(uint64_t h)
{
	char hex[20];

	(void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)h);
	return json_string(hex);
}

/* --- locks and frames --- */

static void put_object(struct report *r, json_t *o, const struct tw_anr_lock *l)
{
	char id[40];

	(void)snprintf(id, sizeof id, l->object & TW_ANR_ADDRESS ? "@0x%llx" : "0x%08llx",
	        (unsigned long long)(l->object & ~TW_ANR_ADDRESS));
	put(r, o, "id", json_string(id));
	put_text(r, o, "type", l->type);
}

static json_t *lock_json(struct report *r, const struct tw_anr_lock *l)
{
	static const char *const names[] = {
	        [TW_ANR_LOCKED] = "locked",
	        [TW_ANR_WANTED] = "wants",
	        [TW_ANR_INFLATION] = "wants",
	        [TW_ANR_WAITING] = "waits",
	        [TW_ANR_SLEEPING] = "sleeps",
	};
	json_t *o = json_object();

	put(r, o, "how", json_string(names[l->how]));
	put_object(r, o, l);
	return o;
}

/* Java frames have no kind, as nearly all frames are Java. */
static json_t *frame_json(struct report *r, uint32_t frame)
{
	const struct tw_anr_frame *f = &r->m->frames[frame];
	json_t *o = json_object();

	put(r, o, "name", text(r, f->name));
	put_text(r, o, "where", f->where);
	put_text(r, o, "build_id", f->build_id);
	if (f->kind != TW_ANR_JAVA)
		put(r, o, "kind", json_string(f->kind == TW_ANR_C ? "native" : "kernel"));
	if (f->inlined)
		put(r, o, "inlined", json_true());
	return o;
}

static json_t *frame_or_null(struct report *r, uint32_t frame)
{
	return frame == TW_ANR_NO_INDEX ? json_null() : frame_json(r, frame);
}

static size_t cost_of(const struct report *r, const struct tw_anr_thread *t)
{
	size_t cost = 0;

	for (uint32_t i = 0; i < t->n_frames && i < FRAMES_MAX; i++) {
		const struct tw_anr_frame *f = &r->m->frames[t->frame + i];

		cost += FRAME_COST + r->m->texts[f->name].len + r->m->texts[f->where].len +
		        r->m->texts[f->build_id].len;
	}
	return cost;
}

/* *at: the next lock line of the thread. */
static void put_frame_locks(
        struct report *r, json_t *o, uint32_t frame, const struct tw_anr_thread *t, uint32_t *at)
{
	json_t *list = NULL;

	for (; *at < t->lock + t->n_locks && r->m->locks[*at].frame == frame; (*at)++) {
		if (!list)
			list = json_array();
		add(r, list, lock_json(r, &r->m->locks[*at]));
	}
	if (list)
		put(r, o, "locks", list);
}

static void put_frames(struct report *r, json_t *o, const struct tw_anr_thread *t, bool wanted)
{
	size_t cost = cost_of(r, t);
	bool fits = r->text + cost <= (wanted ? 2 * FRAMES_TEXT : FRAMES_TEXT);
	uint32_t n = t->n_frames < FRAMES_MAX ? t->n_frames : FRAMES_MAX;
	json_t *list = json_array();
	uint32_t lock = t->lock;

	if (!fits)
		n = 0;
	else
		r->text += cost;
	for (uint32_t i = 0; i < n; i++) {
		json_t *f = frame_json(r, t->frame + i);

		put_frame_locks(r, f, t->frame + i, t, &lock);
		add(r, list, f);
	}
	put(r, o, "frames", list);
	put_number(r, o, "more_frames", (uint64_t)t->n_frames - n + t->frames_left_out);
}

/* --- threads --- */

static void put_wants(struct report *r, json_t *o, uint32_t thread)
{
	const struct tw_anr_edge *e = &r->f->graph.edges[thread];
	json_t *w;

	if (e->lock < 0)
		return;
	w = json_object();
	put_object(r, w, &r->locks[e->lock]);
	put_number(r, w, "holder_tid", r->locks[e->lock].holder);
	put(r, w, "holder", e->to >= 0 ? json_integer(e->to) : json_null());
	put(r, w, "named", json_boolean(e->named));
	put(r, o, "wants", w);
}

/* Each object once; not the one it waits on, which it has released. */
static void put_held(struct report *r, json_t *o, const struct tw_anr_thread *t)
{
	enum { HELD_MAX = 64 };
	const struct tw_anr_lock *l = t->n_locks ? &r->m->locks[t->lock] : NULL;
	json_t *list = json_array();
	uint64_t seen[HELD_MAX];
	unsigned n = 0;

	for (uint32_t i = 0; i < t->n_locks && n < HELD_MAX; i++) {
		bool again = false;

		for (unsigned k = 0; k < n; k++)
			again = again || seen[k] == l[i].object;
		if (again || l[i].how == TW_ANR_WANTED || l[i].how == TW_ANR_INFLATION)
			continue;
		seen[n++] = l[i].object;
		if (l[i].how == TW_ANR_LOCKED) {
			json_t *h = json_object();

			put_object(r, h, &l[i]);
			add(r, list, h);
		}
	}
	put(r, o, "held", list);
}

static void put_system(struct report *r, json_t *o, const struct tw_anr_thread *t)
{
	char letter[2] = {t->sched_state, 0};

	put_number(r, o, "sys_tid", t->sys_tid);
	if (t->priority)
		put(r, o, "priority", json_integer(t->priority));
	if (t->nice)
		put(r, o, "nice", json_integer(t->nice));
	if (t->daemon)
		put(r, o, "daemon", json_true());
	if (!t->attached)
		put(r, o, "attached", json_false());
	if (t->starting)
		put(r, o, "starting", json_true());
	if (t->sched_state >= '?' && t->sched_state <= 'z')
		put(r, o, "sched_state", json_string(letter));
	put_number(r, o, "run_ns", t->run_ns);
	put_number(r, o, "queue_ns", t->queue_ns);
	put_number(r, o, "user_ticks", t->user_ticks);
	put_number(r, o, "kernel_ticks", t->kernel_ticks);
	put_text(r, o, "channel", t->channel);
}

static json_t *thread_json(struct report *r, uint32_t i, bool wanted)
{
	const struct tw_anr_thread *t = &r->m->threads[r->d->thread + i];
	json_t *o = json_object();

	put(r, o, "name", text(r, t->name));
	put(r, o, "track", number(tw_anr_track_tid(r->m, r->d, r->f, i)));
	put_number(r, o, "tid", t->tid);
	put(r, o, "state", text(r, t->state));
	put_system(r, o, t);
	put_number(r, o, "victims", r->f->graph.victims[i]);
	put_wants(r, o, i);
	put_held(r, o, t);
	put(r, o, "top", frame_or_null(r, tw_anr_activity_frame(r->m, t)));
	put_frames(r, o, t, wanted);
	return o;
}

/* --- the chain and the cycles --- */

/* Where the owner took the lock that `lock` waits for. */
static uint32_t owner_frame(const struct report *r, const struct tw_anr_lock *lock, int32_t holder)
{
	const struct tw_anr_thread *t;

	if (holder < 0)
		return TW_ANR_NO_INDEX;
	t = &r->m->threads[r->d->thread + (uint32_t)holder];
	for (uint32_t i = t->lock; i < t->lock + t->n_locks; i++)
		if (r->m->locks[i].how == TW_ANR_LOCKED && r->m->locks[i].object == lock->object)
			return r->m->locks[i].frame;
	return TW_ANR_NO_INDEX;
}

static json_t *step_json(struct report *r, uint32_t thread)
{
	const struct tw_anr_thread *t = &r->m->threads[r->d->thread + thread];
	const struct tw_anr_edge *e = &r->f->graph.edges[thread];
	enum tw_anr_end end = tw_anr_doing(r->m, t, false, thread == r->f->main);
	const char *does = e->lock >= 0 ? "blocked" : tw_anr_end_name(end);
	json_t *o = json_object();

	put(r, o, "thread", json_integer(thread));
	put(r, o, "does", json_string(does));
	put(r, o, "frame", frame_or_null(r, tw_anr_activity_frame(r->m, t)));
	put(r, o, "app_frame", frame_or_null(r, tw_anr_app_frame(r->m, t)));
	put_wants(r, o, thread);
	if (e->lock >= 0)
		put(r, o, "owner_frame",
		        frame_or_null(r, owner_frame(r, &r->locks[e->lock], e->to)));
	return o;
}

static json_t *chain_json(struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->f->n_chain; i++)
		add(r, list, step_json(r, r->f->chain[i]));
	return list;
}

static json_t *cycle_json(struct report *r, const struct tw_anr_cycle *c)
{
	json_t *o = json_object();
	json_t *list = json_array();
	uint32_t at = c->first;

	for (uint32_t i = 0; i < c->n && i < TW_ANR_CHAIN_MAX; i++) {
		add(r, list, step_json(r, at));
		at = (uint32_t)r->f->graph.edges[at].to;
	}
	put(r, o, "certain", json_boolean(c->certain));
	put(r, o, "size", json_integer(c->n));
	put(r, o, "threads", list);
	return o;
}

static json_t *cycles_json(struct report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->f->graph.n_cycles && i < TW_ANR_CHAIN_MAX; i++)
		add(r, list, cycle_json(r, &r->f->graph.cycles[i]));
	return list;
}

/* --- dumps and report --- */

static json_t *facts_json(struct report *r, const uint32_t facts[TW_ANR_FACTS])
{
	json_t *o = json_object();

	for (int i = 0; i < TW_ANR_FACTS; i++)
		put_text(r, o, tw_anr_fact_name((enum tw_anr_fact)i), facts[i]);
	return o;
}

static bool in_chain(const struct report *r, uint32_t thread)
{
	for (uint32_t i = 0; i < r->f->n_chain; i++)
		if (r->f->chain[i] == thread)
			return true;
	return thread == r->f->culprit || r->f->graph.cycle_of[thread] != 0;
}

static void put_threads(struct report *r, json_t *o)
{
	json_t *list = json_array();
	uint32_t left_out = r->d->threads_left_out;

	for (uint32_t i = 0; i < r->d->n_threads; i++) {
		if (r->threads >= THREADS_MAX) {
			left_out += r->d->n_threads - i;
			break;
		}
		r->threads++;
		add(r, list, thread_json(r, i, in_chain(r, i)));
	}
	put(r, o, "threads", list);
	put(r, o, "threads_left_out", json_integer(left_out));
}

static json_t *dump_json(struct report *r, uint32_t dump, int64_t at_ns)
{
	json_t *o = json_object();

	r->d = &r->m->dumps[dump];
	r->f = &r->s->findings[dump];
	r->locks = r->d->n_threads && r->m->locks ? r->m->locks + r->m->threads[r->d->thread].lock
	                                          : NULL;
	put(r, o, "pid", r->d->pid ? number(r->d->pid) : json_null());
	put(r, o, "at_ns", json_integer(at_ns));
	if (r->d->at_ns >= 0)
		put(r, o, "dated", json_true());
	if (!r->d->process)
		put(r, o, "stacks_only", json_true());
	put(r, o, "facts", facts_json(r, r->d->facts));
	put_verdict(r, o, r->f->verdict);
	put(r, o, "end", json_string(tw_anr_end_name(r->f->end)));
	put(r, o, "cluster", hash_text(r->f->cluster));
	put(r, o, "main", index_or_null(r->f->main));
	put(r, o, "culprit", index_or_null(r->f->culprit));
	put(r, o, "main_frame", frame_or_null(r, r->f->main_frame));
	put(r, o, "chain", chain_json(r));
	put(r, o, "cycles", cycles_json(r));
	put_threads(r, o);
	return o;
}

static void put_head(struct report *r, json_t *o)
{
	const struct tw_anr_summary *s = r->s;
	json_t *loads = json_array();

	put(r, o, "version", json_integer(VERSION));
	put_verdict(r, o, s->verdict);
	put(r, o, "end", json_string(tw_anr_end_name(s->end)));
	put(r, o, "kind", json_string(s->kind));
	put(r, o, "cluster", hash_text(s->cluster));
	put(r, o, "waited_ms", s->waited_ms < 0 ? json_null() : json_integer(s->waited_ms));
	put(r, o, "reason", str(s->reason));
	put(r, o, "sampled", json_boolean(s->sampled));
	put(r, o, "blamed", index_or_null(s->blamed));
	put(r, o, "facts", facts_json(r, r->m->facts));
	for (uint32_t i = 0; i < r->m->n_loads; i++)
		add(r, loads, text(r, r->m->loads[i]));
	put(r, o, "loads", loads);
}

struct tw_str tw_anr_document(
        const struct tw_anr *m, const struct tw_anr_summary *s, const int64_t *times_ns)
{
	struct report r = {.m = m, .s = s};
	struct tw_str json = {NULL, 0};
	json_t *o = json_object();
	json_t *dumps = json_array();
	size_t size;
	char *out;

	put_head(&r, o);
	for (uint32_t i = 0; i < m->n_dumps; i++)
		add(&r, dumps, dump_json(&r, i, times_ns[i]));
	put(&r, o, "processes", dumps);
	size = r.failed ? 0 : json_dumpb(o, NULL, 0, JSON_COMPACT);
	out = size ? tw_arena_alloc(m->arena, size, 1) : NULL;
	if (out && json_dumpb(o, out, size, JSON_COMPACT) == size)
		json = (struct tw_str){out, size};
	json_decref(o);
	return json;
}
