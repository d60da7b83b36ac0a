/* event_log.c - the remembering sink; see event_log.h. */
#include "event_log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/bundle.h"

static struct event_log *log_of(struct tw_sink *s)
{
	return (struct event_log *)(void *)s;
}

static uint32_t log_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	(void)s, (void)pid, (void)kind;
	return (uint32_t)tid + 1;
}

uint32_t event_log_method(uint64_t id)
{
	return id < UINT32_MAX ? (uint32_t)id + 1 : (uint32_t)(id * 0x9E3779B97F4A7C15u >> 32) | 1;
}

static uint32_t log_method(struct tw_sink *s, uint64_t id)
{
	(void)s;
	return event_log_method(id);
}

uint32_t event_log_name(struct tw_str name)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
	return h | 1;
}

static uint32_t log_name(struct tw_sink *s, struct tw_str name)
{
	(void)s;
	return event_log_name(name);
}

static void log_method_name(struct tw_sink *s, uint64_t id, struct tw_str name)
{
	struct tw_buf *b = &log_of(s)->names;

	(void)tw_buf_printf(b, "method %llu ", (unsigned long long)id);
	(void)tw_buf_add_str(b, name);
	(void)tw_buf_add_u8(b, '\n');
}

static enum tw_status log_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	struct event_log *log = log_of(s);

	if (log->n + n > log->cap) {
		size_t cap = (log->n + n) * 2;
		struct tw_event *p = tw_mem_resize(log->events, cap, sizeof *p);

		if (!p)
			return tw_oom(err);
		log->events = p;
		log->cap = cap;
	}
	memcpy(log->events + log->n, ev, n * sizeof *ev);
	log->n += n;
	return TW_OK;
}

static void log_thread(struct tw_sink *s, uint32_t pid, uint64_t tid, struct tw_str name)
{
	struct event_log *log = log_of(s);

	(void)pid;
	(void)tw_buf_printf(&log->names, "%llu ", (unsigned long long)tid);
	(void)tw_buf_add_str(&log->names, name);
	(void)tw_buf_add_u8(&log->names, '\n');
}

static void log_process(struct tw_sink *s, uint64_t tid, uint32_t pid)
{
	(void)tw_buf_printf(&log_of(s)->names, "process %llu %u\n", (unsigned long long)tid, pid);
}

static void log_transaction(
        struct tw_sink *s, struct tw_str interface, uint64_t code, struct tw_str name)
{
	struct tw_buf *b = &log_of(s)->names;

	(void)tw_buf_add_str(b, interface);
	(void)tw_buf_printf(b, " transaction %llu ", (unsigned long long)code);
	(void)tw_buf_add_str(b, name);
	(void)tw_buf_add_u8(b, '\n');
}

/* One code is known, so that renaming shows. */
static struct tw_str log_transaction_name(struct tw_sink *s, struct tw_str interface, uint64_t code)
{
	(void)s;
	return tw_str_eq(interface, TW_STR("a.b.IKnown")) && code == 7 ? TW_STR("TRANSACTION_known")
	                                                               : TW_STR("");
}

static void log_clock(struct tw_sink *s, const struct tw_clock *clock)
{
	log_of(s)->clock = *clock;
}

static void log_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct event_log *log = log_of(s);

	if (log->counts[what] == 0)
		log->offsets[what] = offset;
	log->counts[what] += n;
}

static void log_source(
        struct tw_sink *s, uint32_t track, enum tw_source source, int64_t interval_ns)
{
	(void)tw_buf_printf(&log_of(s)->names, "source %u %s %lld\n", track,
	        tw_slice_source_name(source), (long long)interval_ns);
}

/* Emitted JSON must parse as JSON, whatever bytes it contains. */
static void check_json(struct event_log *log, struct tw_str json)
{
	json_t *o = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(o)) {
		(void)fprintf(stderr, "no JSON object: %.*s\n", (int)json.len, json.ptr);
		log->bad_json = true;
	}
	json_decref(o);
}

static enum tw_status log_note(struct tw_sink *s, const struct tw_note *n, struct tw_err *err)
{
	struct tw_buf *b = &log_of(s)->names;

	(void)err;
	if (n->detail.len)
		check_json(log_of(s), n->detail);
	(void)tw_buf_printf(b, "note %s %u %lld %lld %lld %llu ", tw_note_info(n->kind)->name,
	        n->track, (long long)n->ts_ns, (long long)n->dur_ns, (long long)n->value,
	        (unsigned long long)n->offset);
	(void)tw_buf_add_str(b, n->text);
	(void)tw_buf_add_u8(b, ' ');
	(void)tw_buf_add_str(b, n->detail);
	(void)tw_buf_add_u8(b, '\n');
	return TW_OK;
}

static enum tw_status log_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct tw_buf *b = &log_of(s)->names;

	(void)err;
	check_json(log_of(s), json);
	(void)tw_buf_printf(b, "document %s ", kind);
	(void)tw_buf_add_str(b, json);
	(void)tw_buf_add_u8(b, '\n');
	return TW_OK;
}

static const struct tw_sink_ops ops = {
        .track = log_track,
        .method = log_method,
        .name = log_name,
        .method_name = log_method_name,
        .events = log_events,
        .thread_name = log_thread,
        .thread_process = log_process,
        .transaction = log_transaction,
        .transaction_name = log_transaction_name,
        .clock = log_clock,
        .source = log_source,
        .note = log_note,
        .document = log_document,
        .repair = log_repair,
};

uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1Du;
}

static size_t piece(uint64_t seed, uint64_t *state, size_t left)
{
	uint64_t r;
	size_t n;

	if (seed == 0)
		return left;
	if (seed == 1)
		return 1;
	r = test_random(state);
	n = (r >> 8) % ((r & 3) == 0 ? 7 : (r & 3) == 1 ? 40 : 5000) + 1;
	return n < left ? n : left;
}

static void open_log(struct event_log *log)
{
	*log = (struct event_log){.sink = {&ops}};
	tw_buf_init(&log->names, 16 << 20);
	tw_buf_init(&log->kept, 16 << 20);
}

void event_log_run(
        struct event_log *log, const void *p, size_t n, uint64_t seed, const struct tw_limits *l)
{
	struct tw_limits limits = l ? *l : tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
	struct tw_decoder *d;

	open_log(log);
	d = a ? tw_decoder_new(a, &limits, NULL, NULL, &log->sink) : NULL;
	log->status = d ? TW_OK : TW_NOMEM;
	for (size_t at = 0; log->status == TW_OK && at < n;) {
		size_t step = piece(seed, &state, n - at);

		log->status = tw_decoder_push(d, (const uint8_t *)p + at, step, &log->err);
		at += step;
	}
	if (log->status == TW_OK)
		log->status = tw_decoder_finish(d, &log->err);
	if (d) {
		log->format = tw_decoder_format(d);
		log->bytes = tw_decoder_bytes(d);
	}
	tw_decoder_free(d);
	tw_arena_free(a);
}

struct fed { /* an input that is read again and again */
	const uint8_t *p;
	size_t n;
	uint64_t seed, state;
	struct event_log *log;
};

static enum tw_status feed(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	struct fed *f = arg;
	enum tw_status st = TW_OK;

	for (size_t at = 0; st == TW_OK && at < f->n;) {
		size_t step = piece(f->seed, &f->state, f->n - at);

		st = push(to, f->p + at, step, err);
		at += step;
	}
	return st;
}

static void log_side(void *arg, enum tw_bundle_side what)
{
	const struct fed *f = arg;

	(void)tw_buf_printf(&f->log->names, "side %d\n", (int)what);
}

static enum tw_status log_kept(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	const struct fed *f = arg;

	(void)err;
	return tw_buf_add(&f->log->kept, p, n);
}

void event_log_run_bundle(
        struct event_log *log, const void *p, size_t n, uint64_t seed, const struct tw_limits *l)
{
	struct tw_limits limits = l ? *l : tw_limits_default();
	struct fed f = {p, n, seed, seed * 0x9E3779B97F4A7C15u + 1, log};
	struct tw_bundle_task task = {
	        .limits = &limits, .arg = &f, .feed = feed, .side = log_side, .keep = log_kept};

	open_log(log);
	task.sink = &log->sink;
	task.arena = tw_arena_new(256 << 20);
	log->status = task.arena ? tw_bundle_decode(&task, &log->format, &log->bytes, &log->err)
	                         : TW_NOMEM;
	tw_arena_free(task.arena);
}

void event_log_done(struct event_log *log)
{
	tw_mem_free(log->events);
	tw_buf_done(&log->names);
	tw_buf_done(&log->kept);
}

void event_log_run_cut(
        struct event_log *log, const void *p, size_t n, const struct tw_limits *limits)
{
	event_log_run(log, p, n, 0, limits);
	for (uint64_t seed = 1; seed < 6; seed++) {
		struct event_log other;
		const char *differs;

		event_log_run(&other, p, n, seed, limits);
		differs = event_log_differs(log, &other);
		if (differs) {
			(void)fprintf(stderr, "seed %llu: %s differs\n", (unsigned long long)seed,
			        differs);
			abort();
		}
		event_log_done(&other);
	}
}

const char *event_log_run_starved(const void *p, size_t n)
{
	for (uint64_t at = 1; at < 10000; at++) {
		struct event_log log;
		enum tw_status st;
		bool all;

		tw_mem_fail_at(at);
		event_log_run(&log, p, n, 0, NULL);
		all = tw_mem_count() < at;
		tw_mem_fail_at(0);
		st = log.status;
		event_log_done(&log);
		if (all)
			return st == TW_OK ? NULL : "a run with all its memory failed";
		if (st != TW_NOMEM && st != TW_OK)
			return "a failed allocation was reported as another error";
	}
	return "there is no end of allocations";
}

const char *event_log_text(struct event_log *log)
{
	if (log->names.len == 0 || log->names.data[log->names.len - 1])
		(void)tw_buf_add_u8(&log->names, 0);
	return (const char *)log->names.data;
}

bool event_log_same(const struct tw_event *a, const struct tw_event *b)
{
	return a->ts_ns == b->ts_ns && a->dur_ns == b->dur_ns && a->cpu_ns == b->cpu_ns &&
	       a->offset == b->offset && a->track == b->track && a->sym == b->sym &&
	       a->kind == b->kind;
}

static bool same_clock(const struct tw_clock *a, const struct tw_clock *b)
{
	return a->pid == b->pid && a->mono_base_ns == b->mono_base_ns &&
	       a->boot_base_ns == b->boot_base_ns && a->session_ns == b->session_ns &&
	       a->some_base_ns == b->some_base_ns;
}

static const char *repairs_differ(const struct event_log *a, const struct event_log *b)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		if (a->counts[i] != b->counts[i] ||
		        (a->counts[i] && a->offsets[i] != b->offsets[i]))
			return tw_repair_info((enum tw_repair)i)->name;
	return NULL;
}

static bool same_bytes(const struct tw_buf *a, const struct tw_buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

const char *event_log_differs(const struct event_log *a, const struct event_log *b)
{
	if (a->status != b->status)
		return "status";
	if (a->status != TW_OK &&
	        (a->err.offset != b->err.offset || strcmp(a->err.msg, b->err.msg)))
		return "error";
	if (a->format != b->format)
		return "format";
	if (a->bad_json || b->bad_json)
		return "JSON that is none";
	if (a->n != b->n)
		return "number of events";
	for (size_t i = 0; i < a->n; i++)
		if (!event_log_same(&a->events[i], &b->events[i]))
			return "event";
	if (!same_clock(&a->clock, &b->clock))
		return "clock";
	if (!same_bytes(&a->kept, &b->kept))
		return "what is kept";
	return same_bytes(&a->names, &b->names) ? repairs_differ(a, b) : "thread names";
}

uint64_t event_log_repairs(const struct event_log *log)
{
	uint64_t sum = 0;

	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		sum += log->counts[i];
	return sum;
}

void btrace2_header(struct tw_buf *b, uint32_t pid, uint64_t boot, uint64_t mono, uint64_t session)
{
	(void)tw_buf_add_u32le(b, 5);
	(void)tw_buf_add_u32le(b, pid);
	(void)tw_buf_add_u64le(b, boot);
	(void)tw_buf_add_u64le(b, mono);
	(void)tw_buf_add_u64le(b, session);
}

void btrace2_record(struct tw_buf *b, uint64_t start, uint64_t dur, uint64_t tid, uint64_t mid)
{
	(void)tw_buf_add_u64le(b, start << 19 | dur >> 26);
	(void)tw_buf_add_u64le(b, (dur & 0x3FFFFFF) << 38 | tid << 23 | mid);
}
