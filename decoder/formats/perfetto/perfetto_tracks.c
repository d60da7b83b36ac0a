#include "decoder/formats/perfetto/perfetto_tracks.h"

#include <string.h>

#include "decoder/base/hash.h"

#include "decoder/base/list.h"
#include "decoder/formats/detail.h"

enum { MAX_TRACKS = 1 << 18, FIRST = 64, MAX_HOPS = 8, NEVER_MERGE = 2 };

static const struct tw_perfetto_scope everywhere = {0, 0};

void tw_perfetto_tracks_init(struct tw_perfetto_tracks *t, struct tw_arena *a,
        const struct tw_limits *limits, struct tw_markers *markers,
        struct tw_perfetto_intern *texts)
{
	*t = (struct tw_perfetto_tracks){
	        .arena = a, .markers = markers, .texts = texts, .max_depth = limits->max_depth};
}

static void repair(struct tw_perfetto_tracks *t, enum tw_repair what, uint64_t offset)
{
	t->markers->sink->ops->repair(t->markers->sink, what, offset, 1);
}

/* --- the table --- */

static uint32_t *slot_of(const struct tw_perfetto_tracks *t, uint64_t uuid, bool of_thread_id)
{
	uint32_t mask = t->cap * 2 - 1;
	uint32_t at = (uint32_t)tw_hash_id(uuid ^ of_thread_id, t->markers->salt) & mask;

	while (t->slots[at]) {
		const struct tw_perfetto_track *k = t->list[t->slots[at] - 1].track;

		if (k->uuid == uuid && k->of_thread_id == of_thread_id)
			break;
		at = (at + 1) & mask;
	}
	return &t->slots[at];
}

static bool widen(struct tw_perfetto_tracks *t)
{
	if (!TW_WIDEN_FROM(FIRST, t->arena, t->list, t->n, t->cap, t->slots))
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		*slot_of(t, t->list[i].track->uuid, t->list[i].track->of_thread_id) = i + 1;
	return true;
}

static void set_thread(
        struct tw_perfetto_tracks *t, struct tw_perfetto_track *k, uint32_t pid, struct tw_tid *id)
{
	k->thread = id;
	k->pid = pid;
	if (id)
		tw_tids_process(&t->markers->tids, id, pid);
}

enum tw_status tw_perfetto_tracks_get(struct tw_perfetto_tracks *t, uint64_t uuid,
        bool of_thread_id, uint64_t offset, struct tw_perfetto_track **ret, struct tw_err *err)
{
	struct tw_perfetto_track *k = t->last;
	uint32_t *slot;

	*ret = k;
	if (k && k->uuid == uuid && k->of_thread_id == of_thread_id)
		return TW_OK;
	*ret = NULL;
	if (t->n == t->cap && !widen(t))
		return tw_oom(err);
	slot = slot_of(t, uuid, of_thread_id);
	if (*slot) {
		*ret = t->last = t->list[*slot - 1].track;
		return TW_OK;
	}
	if (t->n == MAX_TRACKS) {
		repair(t, TW_REPAIR_thread_limit, offset);
		return TW_OK;
	}
	k = tw_arena_zalloc(t->arena, 1, sizeof *k);
	if (!k)
		return tw_oom(err);
	k->uuid = uuid;
	k->of_thread_id = of_thread_id;
	k->multiplier = 1;
	t->list[t->n].track = k;
	*slot = ++t->n;
	if (of_thread_id)
		set_thread(t, k, (uint32_t)(uuid >> 32),
		        tw_tids_get_in(
		                &t->markers->tids, (uint32_t)(uuid >> 32), (uint32_t)uuid, offset));
	*ret = k;
	return TW_OK;
}

/* --- descriptors --- */

/* A process's name, emitted as a note the first time. */
static enum tw_status name_process(struct tw_perfetto_tracks *t, uint32_t pid, struct tw_str name,
        uint64_t offset, struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_process,
	        .dur_ns = -1,
	        .value = (int64_t)pid,
	        .offset = offset,
	        .text = name};
	uint64_t known;
	uint32_t number;

	if (pid == 0 || name.len == 0 ||
	        tw_perfetto_intern_get(t->texts, everywhere, TW_PERFETTO_PROCESS, pid, &known))
		return TW_OK;
	if (!tw_perfetto_intern_text(t->texts, name, offset, &number) ||
	        !tw_perfetto_intern_set(t->texts, everywhere, TW_PERFETTO_PROCESS, pid, number))
		return tw_oom(err);
	return tw_markers_note(t->markers, &note, err);
}

static uint32_t number_of_process(const struct tw_pb_field *f)
{
	return f->value <= INT32_MAX ? (uint32_t)f->value : 0;
}

enum tw_status tw_perfetto_tracks_process(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, uint32_t *ret_pid, struct tw_err *err)
{
	struct tw_str name = {0};
	struct tw_pb_field f;
	uint32_t pid = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			pid = number_of_process(&f);
		else if (f.number == 6 || (f.number == 2 && name.len == 0))
			name = tw_pb_str(&f);
	*ret_pid = pid;
	return name_process(t, pid, name, offset, err);
}

enum tw_status tw_perfetto_tracks_thread(struct tw_perfetto_tracks *t, struct tw_pb message,
        uint64_t offset, uint32_t *ret_pid, uint64_t *ret_tid, struct tw_err *err)
{
	struct tw_str name = {0};
	struct tw_pb_field f;
	struct tw_tid *id;

	(void)err;
	*ret_pid = 0;
	*ret_tid = 0;
	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			*ret_pid = number_of_process(&f);
		else if (f.number == 2)
			*ret_tid = f.value <= UINT32_MAX ? f.value : 0;
		else if (f.number == 5)
			name = tw_pb_str(&f);
	if (*ret_tid == 0 || *ret_pid == 0)
		return TW_OK;
	id = tw_tids_get_in(&t->markers->tids, *ret_pid, *ret_tid, offset);
	if (id)
		tw_tids_name(&t->markers->tids, id, name);
	return TW_OK;
}

/* --- the process tree --- */

static enum tw_status tree_process(
        struct tw_perfetto_tracks *t, struct tw_pb message, uint64_t offset, struct tw_err *err)
{
	struct tw_str name = {0};
	struct tw_pb_field f;
	uint32_t pid = 0;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			pid = number_of_process(&f);
		else if (f.number == 3 && name.len == 0)
			name = tw_pb_str(&f);
	if (!tw_perfetto_intern_set(
	            t->texts, everywhere, TW_PERFETTO_THREAD, pid, (uint64_t)pid << 32))
		return tw_oom(err);
	return name_process(t, pid, name, offset, err);
}

static enum tw_status tree_thread(
        struct tw_perfetto_tracks *t, struct tw_pb message, uint64_t offset, struct tw_err *err)
{
	struct tw_str name = {0};
	struct tw_pb_field f;
	uint32_t tid = 0;
	uint64_t pid = 0;
	uint32_t number;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			tid = number_of_process(&f);
		else if (f.number == 2)
			name = tw_pb_str(&f);
		else if (f.number == 3)
			pid = number_of_process(&f);
	if (!tw_perfetto_intern_text(t->texts, name, offset, &number) ||
	        !tw_perfetto_intern_set(
	                t->texts, everywhere, TW_PERFETTO_THREAD, tid, pid << 32 | number))
		return tw_oom(err);
	return TW_OK;
}

enum tw_status tw_perfetto_tracks_tree(
        struct tw_perfetto_tracks *t, struct tw_pb message, uint64_t offset, struct tw_err *err)
{
	struct tw_pb_field f;
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_pb_next(&message, &f)) {
		if (f.number == 1)
			st = tree_process(t, tw_pb_in(&f), offset, err);
		else if (f.number == 2)
			st = tree_thread(t, tw_pb_in(&f), offset, err);
	}
	return st;
}

void tw_perfetto_tracks_known(struct tw_perfetto_tracks *t, struct tw_tid *k)
{
	uint64_t known;

	if ((k->pid && k->named) ||
	        !tw_perfetto_intern_get(t->texts, everywhere, TW_PERFETTO_THREAD, k->tid, &known))
		return;
	tw_tids_process(&t->markers->tids, k, (uint32_t)(known >> 32));
	tw_tids_name(&t->markers->tids, k, tw_perfetto_intern_str(t->texts, (uint32_t)known));
}

static void read_counter(struct tw_perfetto_track *k, struct tw_pb message)
{
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 4 && f.value)
			k->multiplier = (int64_t)f.value;
		else if (f.number == 5)
			k->incremental = f.value != 0;
}

struct descriptor {
	uint64_t uuid, parent;
	struct tw_str name;
	bool apart;
	struct tw_pb_field thread, process, counter; /* number 0: not there */
};

static struct tw_str thread_name(struct tw_pb message)
{
	struct tw_str name = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 5)
			name = tw_pb_str(&f);
	return name;
}

static struct descriptor read_descriptor(struct tw_pb message)
{
	struct descriptor d = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 1)
			d.uuid = f.value;
		else if (f.number == 5)
			d.parent = f.value;
		else if (f.number == 2 || f.number == 10 || f.number == 13)
			d.name = tw_pb_str(&f);
		else if (f.number == 3)
			d.process = f;
		else if (f.number == 4)
			d.thread = f;
		else if (f.number == 8)
			d.counter = f;
		else if (f.number == 9 || f.number == 15)
			d.apart = d.apart || f.value == (f.number == 9 ? 1 : NEVER_MERGE);
	return d;
}

enum tw_status tw_perfetto_tracks_describe(
        struct tw_perfetto_tracks *t, struct tw_pb message, uint64_t offset, struct tw_err *err)
{
	struct descriptor d = read_descriptor(message);
	struct tw_perfetto_track *k;
	uint32_t pid = 0;
	uint64_t tid = 0;
	enum tw_status st = tw_perfetto_tracks_get(t, d.uuid, false, offset, &k, err);

	if (st != TW_OK || !k)
		return st;
	k->apart = k->apart || d.apart;
	if (d.parent && d.parent != d.uuid)
		k->parent = d.parent;
	if (d.name.len && !tw_perfetto_intern_text(t->texts, d.name, offset, &k->name))
		return tw_oom(err);
	k->title = k->name;
	if (!k->title && d.thread.number &&
	        !tw_perfetto_intern_text(
	                t->texts, thread_name(tw_pb_in(&d.thread)), offset, &k->title))
		return tw_oom(err);
	if (d.counter.number)
		read_counter(k, tw_pb_in(&d.counter));
	if (d.process.number)
		st = tw_perfetto_tracks_process(t, tw_pb_in(&d.process), offset, &k->pid, err);
	if (st == TW_OK && d.thread.number)
		st = tw_perfetto_tracks_thread(t, tw_pb_in(&d.thread), offset, &pid, &tid, err);
	if (tid)
		set_thread(t, k, pid, tw_tids_get_in(&t->markers->tids, pid, tid, offset));
	return st;
}

/* A track below a thread's belongs to that thread, one below a process's to that process. */
static void inherit(const struct tw_perfetto_tracks *t, struct tw_perfetto_track *k)
{
	const struct tw_perfetto_track *up = k;

	for (int hops = 0; !k->thread && up->parent && hops < MAX_HOPS; hops++) {
		uint32_t at = *slot_of(t, up->parent, false);

		if (!at)
			return;
		up = t->list[at - 1].track;
		if (!k->pid)
			k->pid = up->pid;
		k->thread = up->thread;
	}
}

struct tw_tid *tw_perfetto_tracks_owner(
        const struct tw_perfetto_tracks *t, struct tw_perfetto_track *k)
{
	inherit(t, k);
	return k->thread;
}

/* --- events --- */

/* The thread that has the calls of a track below one; NULL: none. A track that forbids merging is
 * used as its thread while nothing else has calls there, as in this server's exports. Otherwise it
 * becomes a separate thread of the process with the track's name. */
static struct tw_tid *row_of(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k)
{
	struct tw_tids *ids = &t->markers->tids;

	inherit(t, k);
	if (!k->thread || k->own)
		return k->own ? k->own : k->thread;
	if (!k->apart || !k->thread->calls_of)
		k->thread->calls_of = k;
	if (k->thread->calls_of == k)
		return k->thread;
	k->own = tw_tids_get_in(ids, k->thread->pid,
	        (uint64_t)++t->n_own << 32 | (uint32_t)k->thread->tid, TW_NO_OFFSET);
	if (!k->own)
		return k->thread;
	tw_tids_name(ids, k->own, tw_perfetto_intern_str(t->texts, k->title));
	return k->own;
}

static void see(struct tw_perfetto_tracks *t, int64_t ts_ns)
{
	if (ts_ns > t->markers->last_ns)
		t->markers->last_ns = ts_ns;
}

static void count_process(struct tw_perfetto_tracks *t, uint32_t pid)
{
	if (t->pid == 0)
		t->pid = pid;
	else if (pid && pid != t->pid)
		t->many_pids = true;
}

static void describe_track(const struct tw_perfetto_tracks *t, const struct tw_perfetto_track *k,
        struct tw_detail *ret)
{
	ret->len = 0;
	if (k->pid)
		tw_detail_int(ret, "pid", k->pid);
	tw_detail_str(ret, "track", tw_perfetto_intern_str(t->texts, k->name));
}

/* A span of a track without a thread. */
static enum tw_status emit_span_note(struct tw_perfetto_tracks *t,
        const struct tw_perfetto_track *k, const struct tw_perfetto_open *o, int64_t dur_ns,
        struct tw_err *err)
{
	struct tw_note note = {.kind = TW_NOTE_async,
	        .ts_ns = o->start_ns,
	        .dur_ns = dur_ns,
	        .offset = o->offset,
	        .text = tw_perfetto_intern_str(t->texts, o->name)};
	struct tw_detail d;

	describe_track(t, k, &d);
	note.detail = tw_detail_text(&d);
	return tw_markers_note(t->markers, &note, err);
}

static enum tw_status emit_span(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_open *o, int64_t end_ns, struct tw_err *err)
{
	int64_t dur_ns = end_ns > o->start_ns ? end_ns - o->start_ns : 0;
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = o->start_ns,
	        .dur_ns = dur_ns,
	        .cpu_ns = -1,
	        .offset = o->offset};
	struct tw_tid *row = row_of(t, k);

	if (!row)
		return emit_span_note(t, k, o, dur_ns, err);
	count_process(t, k->pid);
	ev.track = tw_tids_track(&t->markers->tids, row);
	ev.sym = tw_perfetto_intern_sym(t->texts, o->name);
	return tw_markers_event(t->markers, &ev, err);
}

/* An event without a name gets the track's. */
static bool name_of(struct tw_perfetto_tracks *t, const struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, uint32_t *ret)
{
	*ret = ev->name ? ev->name : k->name;
	return *ret ||
	       tw_perfetto_intern_text(t->texts, TW_STR("[empty slice name]"), ev->offset, ret);
}

enum tw_status tw_perfetto_tracks_begin(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err)
{
	struct tw_perfetto_open *o;
	uint32_t name;

	see(t, ev->ts_ns);
	(void)row_of(t, k);
	if (k->hidden || k->n_open >= t->max_depth) {
		repair(t, TW_REPAIR_depth_clipped, ev->offset);
		k->hidden++;
		return TW_OK;
	}
	if (!TW_GROW_FROM(8, t->arena, k->open, k->n_open, k->cap_open) ||
	        !name_of(t, k, ev, &name))
		return tw_oom(err);
	o = &k->open[k->n_open++];
	o->start_ns = ev->ts_ns;
	o->offset = ev->offset;
	o->name = name;
	return TW_OK;
}

enum tw_status tw_perfetto_tracks_end(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err)
{
	uint32_t at = k->n_open;
	enum tw_status st = TW_OK;

	see(t, ev->ts_ns);
	if (k->hidden) {
		k->hidden--;
		return TW_OK;
	}
	while (at > 0 && ev->name && k->open[at - 1].name != ev->name)
		at--;
	if (at == 0) {
		repair(t, TW_REPAIR_exit_without_enter, ev->offset);
		return TW_OK;
	}
	while (st == TW_OK && k->n_open > at) {
		k->n_open--;
		repair(t, TW_REPAIR_enter_without_exit, k->open[k->n_open].offset);
		st = emit_span(t, k, &k->open[k->n_open], ev->ts_ns, err);
	}
	k->n_open = at - 1;
	return st == TW_OK ? emit_span(t, k, &k->open[at - 1], ev->ts_ns, err) : st;
}

enum tw_status tw_perfetto_tracks_span(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, int64_t dur_ns, struct tw_err *err)
{
	struct tw_perfetto_open o = {ev->ts_ns, ev->offset, 0};

	see(t, ev->ts_ns + dur_ns);
	if (!name_of(t, k, ev, &o.name))
		return tw_oom(err);
	return emit_span(t, k, &o, ev->ts_ns + dur_ns, err);
}

static enum tw_status emit_note(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        struct tw_note *note, struct tw_err *err)
{
	struct tw_detail d;

	inherit(t, k);
	see(t, note->ts_ns);
	d.len = 0;
	if (k->thread)
		note->track = tw_tids_track(&t->markers->tids, k->thread);
	else
		describe_track(t, k, &d);
	note->detail = tw_detail_text(&d);
	return tw_markers_note(t->markers, note, err);
}

enum tw_status tw_perfetto_tracks_instant(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, struct tw_err *err)
{
	struct tw_note note = {
	        .kind = TW_NOTE_instant, .ts_ns = ev->ts_ns, .dur_ns = -1, .offset = ev->offset};
	uint32_t name;

	if (!name_of(t, k, ev, &name))
		return tw_oom(err);
	note.text = tw_perfetto_intern_str(t->texts, name);
	return emit_note(t, k, &note, err);
}

enum tw_status tw_perfetto_tracks_count(struct tw_perfetto_tracks *t, struct tw_perfetto_track *k,
        const struct tw_perfetto_event *ev, int64_t value, struct tw_err *err)
{
	struct tw_note note = {
	        .kind = TW_NOTE_counter, .ts_ns = ev->ts_ns, .dur_ns = -1, .offset = ev->offset};
	uint32_t name = k->name ? k->name : ev->name;

	if (__builtin_mul_overflow(value, k->multiplier, &value) ||
	        (k->incremental && __builtin_add_overflow(value, k->sum, &value))) {
		repair(t, TW_REPAIR_record_malformed, ev->offset);
		return TW_OK;
	}
	k->sum = value;
	note.value = value;
	note.text = tw_perfetto_intern_str(t->texts, name);
	return emit_note(t, k, &note, err);
}

/* --- the end --- */

static void name_main_threads(struct tw_perfetto_tracks *t)
{
	struct tw_tids *ids = &t->markers->tids;

	for (uint32_t i = 0; i < ids->n; i++) {
		struct tw_tid *k = &ids->list[i];
		uint64_t number;

		tw_perfetto_tracks_known(t, k);
		if (k->pid && k->tid == k->pid && !k->named &&
		        tw_perfetto_intern_get(
		                t->texts, everywhere, TW_PERFETTO_PROCESS, k->pid, &number))
			tw_tids_name(ids, k, tw_perfetto_intern_str(t->texts, (uint32_t)number));
	}
}

enum tw_status tw_perfetto_tracks_finish(struct tw_perfetto_tracks *t, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < t->n; i++) {
		struct tw_perfetto_track *k = t->list[i].track;

		while (st == TW_OK && k->n_open) {
			const struct tw_perfetto_open *o = &k->open[--k->n_open];

			repair(t, TW_REPAIR_enter_without_exit, o->offset);
			st = emit_span(t, k, o, t->markers->last_ns, err);
		}
	}
	name_main_threads(t);
	return st;
}
