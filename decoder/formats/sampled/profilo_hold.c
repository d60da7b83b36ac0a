#include "decoder/formats/sampled/profilo_hold.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/formats/sampled/samples.h"

enum { MAX_MARKERS = 4 << 20, FIRST = 256 };

struct marker {
	int64_t begin_ns, end_ns;
	uint64_t offset;
	uint32_t thread; /* index */
	uint32_t below;  /* the marker that was open before it */
	uint32_t text;   /* index + 1; 0: no name yet */
	uint16_t kind, fallback;
};

struct thread {
	uint32_t tid;
	uint32_t open; /* innermost marker, TW_PROFILO_NO_MARKER none */
	bool sampled;
};

struct tw_profilo_hold {
	struct tw_arena *arena;
	struct tw_limits limits;
	struct tw_sink *sink;
	struct tw_list threads, markers, texts;
	struct tw_list closed; /* markers in the order of their ends */
	struct tw_samples *samples;
	uint32_t *thread_slots, *text_slots; /* index + 1 by hash */
	uint32_t n_thread_slots, n_text_slots;
	struct tw_str fallbacks[64];
	uint32_t n_fallbacks;
};

static struct thread *thread_at(const struct tw_profilo_hold *h, uint32_t i)
{
	return (struct thread *)h->threads.items + i;
}

static struct marker *marker_at(const struct tw_profilo_hold *h, uint32_t i)
{
	return (struct marker *)h->markers.items + i;
}

static struct tw_str *text_at(const struct tw_profilo_hold *h, uint32_t i)
{
	return (struct tw_str *)h->texts.items + i;
}

struct tw_profilo_hold *tw_profilo_hold_new(
        struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink)
{
	struct tw_profilo_hold *h = tw_arena_zalloc(a, 1, sizeof *h);

	if (!h)
		return NULL;
	h->arena = a;
	h->limits = *limits;
	h->sink = sink;
	for (h->n_thread_slots = 64; h->n_thread_slots / 2 < limits->max_threads;)
		h->n_thread_slots *= 2;
	h->thread_slots = tw_arena_zalloc(a, h->n_thread_slots, sizeof *h->thread_slots);
	h->samples = tw_samples_new(a, limits, sink);
	return h->thread_slots && h->samples ? h : NULL;
}

/* *ret NULL: at the limit, which is counted. */
static enum tw_status thread_of(struct tw_profilo_hold *h, uint32_t tid, uint64_t offset,
        struct thread **ret, struct tw_err *err)
{
	uint32_t at = (uint32_t)tw_hash_id(tid, h->limits.hash_salt) & (h->n_thread_slots - 1);
	struct thread *t;

	for (; h->thread_slots[at]; at = (at + 1) & (h->n_thread_slots - 1)) {
		*ret = thread_at(h, h->thread_slots[at] - 1);
		if ((*ret)->tid == tid)
			return TW_OK;
	}
	*ret = NULL;
	if (h->threads.n >= h->limits.max_threads) {
		h->sink->ops->repair(h->sink, TW_REPAIR_thread_limit, offset, 1);
		return TW_OK;
	}
	t = tw_list_add(&h->threads, h->arena, sizeof *t);
	if (!t)
		return tw_oom(err);
	*t = (struct thread){tid, TW_PROFILO_NO_MARKER, false};
	h->thread_slots[at] = h->threads.n;
	*ret = t;
	return TW_OK;
}

static uint32_t number_of(const struct tw_profilo_hold *h, const struct thread *t)
{
	return (uint32_t)(t - (struct thread *)h->threads.items);
}

/* --- frames --- */

enum tw_status tw_profilo_hold_frame(
        struct tw_profilo_hold *h, const struct tw_profilo_frame *f, struct tw_err *err)
{
	uint32_t track = h->sink->ops->track(h->sink, f->pid, f->tid, TW_TID_FULL);
	const struct tw_sample_piece piece = {.track = track,
	        .ts_ns = f->ts_ns,
	        .offset = f->offset,
	        .first = tw_samples_frames(h->samples),
	        .n = 1,
	        .joins = true};
	struct thread *t;
	enum tw_status st = thread_of(h, f->tid, f->offset, &t, err);

	if (st != TW_OK || !t || track == 0)
		return st;
	t->sampled = true;
	st = tw_samples_frame(h->samples, h->sink->ops->method(h->sink, f->method), f->offset, err);
	if (st != TW_OK || tw_samples_frames(h->samples) == piece.first)
		return st; /* at the limit: a sample without its frames would end others */
	return tw_samples_add(h->samples, &piece, err);
}

/* --- markers --- */

static uint16_t fallback_of(struct tw_profilo_hold *h, struct tw_str name)
{
	for (uint32_t i = 0; i < h->n_fallbacks; i++)
		if (tw_str_eq(h->fallbacks[i], name))
			return (uint16_t)i;
	if (h->n_fallbacks < sizeof h->fallbacks / sizeof *h->fallbacks) {
		const char *copy = tw_arena_str(h->arena, name);

		if (copy) {
			h->fallbacks[h->n_fallbacks] = (struct tw_str){copy, name.len};
			return (uint16_t)h->n_fallbacks++;
		}
	}
	return 0; /* more types than expected: use the first's name */
}

enum tw_status tw_profilo_hold_begin(struct tw_profilo_hold *h,
        const struct tw_profilo_marker *marker, uint32_t *ret, struct tw_err *err)
{
	enum tw_status st;
	struct thread *t;
	struct marker *m;

	if (h->markers.n >= MAX_MARKERS || h->markers.n >= h->limits.max_slices) {
		h->sink->ops->repair(h->sink, TW_REPAIR_slice_limit, marker->offset, 1);
		*ret = TW_PROFILO_NO_MARKER;
		return TW_OK;
	}
	st = thread_of(h, marker->tid, marker->offset, &t, err);
	if (st != TW_OK || !t) {
		*ret = TW_PROFILO_NO_MARKER;
		return st;
	}
	m = tw_list_add(&h->markers, h->arena, sizeof *m);
	if (!m)
		return tw_oom(err);
	*m = (struct marker){.begin_ns = marker->ts_ns,
	        .end_ns = -1,
	        .offset = marker->offset,
	        .thread = number_of(h, t),
	        .below = t->open,
	        .kind = (uint16_t)marker->kind,
	        .fallback = fallback_of(h, marker->name)};
	*ret = t->open = h->markers.n - 1;
	return TW_OK;
}

static enum tw_status close_marker(
        struct tw_profilo_hold *h, struct thread *t, int64_t end_ns, struct tw_err *err)
{
	struct marker *m = marker_at(h, t->open);
	uint32_t *closed = tw_list_add(&h->closed, h->arena, sizeof *closed);

	if (!closed)
		return tw_oom(err);
	*closed = t->open;
	m->end_ns = end_ns > m->begin_ns ? end_ns : m->begin_ns;
	t->open = m->below;
	return TW_OK;
}

enum tw_status tw_profilo_hold_end(struct tw_profilo_hold *h,
        const struct tw_profilo_marker *marker, uint32_t *ret, struct tw_err *err)
{
	struct thread *t;
	enum tw_status st = thread_of(h, marker->tid, marker->offset, &t, err);

	*ret = TW_PROFILO_NO_MARKER;
	if (st != TW_OK || !t)
		return st;
	if (t->open == TW_PROFILO_NO_MARKER) {
		h->sink->ops->repair(h->sink, TW_REPAIR_exit_without_enter, marker->offset, 1);
		return TW_OK;
	}
	*ret = t->open;
	return close_marker(h, t, marker->ts_ns, err);
}

/* --- names --- */

static uint32_t *text_slot(const struct tw_profilo_hold *h, struct tw_str s)
{
	uint32_t at = (uint32_t)tw_hash_str(s, h->limits.hash_salt) & (h->n_text_slots - 1);

	while (h->text_slots[at] && !tw_str_eq(*text_at(h, h->text_slots[at] - 1), s))
		at = (at + 1) & (h->n_text_slots - 1);
	return &h->text_slots[at];
}

static bool widen_texts(struct tw_profilo_hold *h)
{
	uint32_t n = h->n_text_slots ? h->n_text_slots * 2 : 4 * FIRST;
	uint32_t *slots;

	if (h->texts.n < h->n_text_slots / 2)
		return true;
	slots = tw_arena_zalloc(h->arena, n, sizeof *slots);
	if (!slots)
		return false;
	h->text_slots = slots;
	h->n_text_slots = n;
	for (uint32_t i = 0; i < h->texts.n; i++)
		*text_slot(h, *text_at(h, i)) = i + 1;
	return true;
}

enum tw_status tw_profilo_hold_name(
        struct tw_profilo_hold *h, uint32_t marker, struct tw_str name, struct tw_err *err)
{
	struct marker *m = marker_at(h, marker);
	uint32_t *slot;
	struct tw_str *t;
	char *copy;

	if (m->text)
		return TW_OK;
	if (name.len > h->limits.max_name_bytes) {
		h->sink->ops->repair(h->sink, TW_REPAIR_name_cut, m->offset, 1);
		name.len = h->limits.max_name_bytes;
	}
	if (!widen_texts(h))
		return tw_oom(err);
	slot = text_slot(h, name);
	if (!*slot) {
		copy = tw_arena_str(h->arena, name);
		t = copy ? tw_list_add(&h->texts, h->arena, sizeof *t) : NULL;
		if (!t)
			return tw_oom(err);
		*t = (struct tw_str){copy, name.len};
		*slot = h->texts.n;
	}
	m->text = *slot;
	return TW_OK;
}

static struct tw_str name_of(const struct tw_profilo_hold *h, const struct marker *m)
{
	if (m->text)
		return *text_at(h, m->text - 1);
	return m->fallback < h->n_fallbacks ? h->fallbacks[m->fallback] : TW_STR("?");
}

/* --- output --- */

static enum tw_status emit_marker(
        struct tw_profilo_hold *h, const struct marker *m, uint32_t pid, struct tw_err *err)
{
	const struct thread *t = thread_at(h, m->thread);
	uint32_t track = h->sink->ops->track(h->sink, pid, t->tid, TW_TID_FULL);
	const struct tw_note note = {.kind = (enum tw_note_kind)m->kind,
	        .track = track,
	        .ts_ns = m->begin_ns,
	        .dur_ns = m->end_ns - m->begin_ns,
	        .value = m->kind == TW_NOTE_section ? 0 : -1,
	        .offset = m->offset,
	        .text = name_of(h, m)};
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = m->begin_ns,
	        .dur_ns = m->end_ns - m->begin_ns,
	        .cpu_ns = -1,
	        .offset = m->offset,
	        .track = track};

	if (track == 0)
		return TW_OK;
	if (t->sampled)
		return h->sink->ops->note(h->sink, &note, err);
	ev.sym = h->sink->ops->name(h->sink, name_of(h, m));
	return ev.sym ? h->sink->ops->events(h->sink, &ev, 1, err) : TW_OK;
}

enum tw_status tw_profilo_hold_emit(
        struct tw_profilo_hold *h, uint32_t pid, int64_t end_ns, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < h->threads.n; i++) {
		struct thread *t = thread_at(h, i);

		while (st == TW_OK && t->open != TW_PROFILO_NO_MARKER) {
			h->sink->ops->repair(h->sink, TW_REPAIR_enter_without_exit,
			        marker_at(h, t->open)->offset, 1);
			st = close_marker(h, t, end_ns, err);
		}
	}
	for (uint32_t i = 0; st == TW_OK && i < h->closed.n; i++)
		st = emit_marker(h, marker_at(h, ((uint32_t *)h->closed.items)[i]), pid, err);
	return st == TW_OK ? tw_samples_emit(h->samples, 0, err) : st;
}
