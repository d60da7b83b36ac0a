/*
 * anr.c - ANR reports: the stacks of an application's threads while it did not respond.
 *
 * Reads the text that Android writes on SIGQUIT (Dalvik to 15; several processes, native and
 * unattached threads, waiting channels), with the lines that system_server puts before it; the Play
 * console's and Crashlytics' variants; and stacks written by watchdogs inside an application, once
 * or at intervals (ANRWatchDog, Watchdog of system_server, BlockCanary).  Learned from AOSP's
 * art/runtime/thread*.cc and monitor.cc and from real dumps.
 *
 *   [Subject, memory, CPU use] { "----- pid N at DATE -----" facts thread* "----- end N -----" }
 *   { exception head, "Caused by: ..._Thread: NAME", "NAME thread stack trace:" or a time, frames }
 *
 * Lines are collected in a bounded model (anr_model.h), whatever their order.  At the end the locks
 * are followed (anr_locks.h), a verdict is determined (anr_classify.h) and everything is emitted
 * (anr_report.h): a document "anr", and each stack as a sample of its thread.  A truncated dump
 * keeps its complete parts.  Nothing here has a duration: a dump is one moment.
 */
#include "decoder/formats/format.h"

#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/formats/anr/anr_model.h"
#include "decoder/formats/anr/anr_report.h"
#include "decoder/formats/lines.h"

enum { LINE_MAX_BYTES = 1 << 16, MAX_CHANNELS = 1 << 15, SEARCH_DEPTH = 64 };

struct channel { /* a "sysTid=" line, joined with its thread at the end */
	uint64_t sys_tid;
	uint32_t dump, text;
};

struct anr {
	struct tw_lines lines;
	struct tw_anr model;
	struct tw_arena *arena;
	int64_t log_ns; /* logcat's time of the last line, -1 none */
	struct channel *channels;
	uint32_t n_channels, cap_channels;
	uint32_t channel_dump;
	bool open;       /* the last thread accepts frames */
	bool bare;       /* also frames without "at" */
	bool in_process; /* between "----- pid" and "----- end" */
	bool in_channels;
	bool placeholder;   /* the last dump is one thread that was only announced */
	bool has_first;     /* the last dump has a thread of tid 1 */
	bool lost;          /* the dump of the current lines did not fit */
	bool channels_only; /* the last dump's threads are only in its waiting channels */
};

/* --- recognition --- */

static const int scores[TW_ANR_KINDS] = {
        [TW_ANR_PROCESS] = 95,
        [TW_ANR_CHANNELS] = 95,
        [TW_ANR_DUMPING] = 95,
        [TW_ANR_THREADS] = 95,
        [TW_ANR_THREAD] = 85,
        [TW_ANR_STACK_OF] = 70,
};

static int score_of(const struct tw_anr_line *l)
{
	if (l->kind == TW_ANR_EXCEPTION)
		return l->number ? 85 : 0;
	if (l->kind == TW_ANR_CAUSE)
		return l->name.len ? 85 : 0;
	if (l->kind != TW_ANR_FACT)
		return scores[l->kind];
	if (l->fact == TW_ANR_FACT_what || l->fact == TW_ANR_FACT_watchdog)
		return 85;
	return l->fact == TW_ANR_FACT_subject ? 60 : 0;
}

static int probe(const uint8_t *head, size_t len)
{
	struct tw_str rest = {(const char *)head, len};
	bool moment = false;
	int best = 0;

	if (memchr(head, 0, len))
		return 0;
	while (rest.len && best < 95) {
		struct tw_anr_line l = tw_anr_line_parse(tw_str_split(&rest, '\n'));
		int score = score_of(&l);

		if (moment && l.kind == TW_ANR_BARE_AT)
			score = 60;
		moment = l.kind == TW_ANR_MOMENT || (moment && l.kind == TW_ANR_BLANK);
		if (score > best)
			best = score;
	}
	return best;
}

/* --- lines to the model --- */

static struct tw_anr_thread *last_thread(struct anr *s)
{
	return &s->model.threads[s->model.n_threads - 1];
}

static bool new_dump(struct anr *s, uint64_t pid, int64_t at_ns, uint64_t offset)
{
	s->open = s->bare = s->in_channels = s->has_first = s->placeholder = false;
	s->channels_only = false;
	s->lost = !tw_anr_add_dump(&s->model, pid, at_ns, offset);
	return !s->lost;
}

static void add_thread(struct anr *s, const struct tw_anr_line *l, uint64_t offset)
{
	s->open = !s->lost && tw_anr_add_thread(&s->model, l, offset);
	s->has_first = s->has_first || l->tid == 1;
	s->in_channels = false;
}

/* Removes a thread that was announced but got no frame. */
static void drop_placeholder(struct anr *s)
{
	struct tw_anr *m = &s->model;

	if (s->placeholder && m->n_threads && last_thread(s)->n_frames == 0) {
		m->n_threads--;
		m->n_dumps--;
	}
	s->placeholder = s->open = false;
}

/* Starts a watchdog's sample of one thread. */
static void new_sample(struct anr *s, struct tw_str name, int64_t at_ns, bool bare, uint64_t offset)
{
	struct tw_anr_line l = {.name = name, .attached = true};

	drop_placeholder(s);
	if (!new_dump(s, 0, at_ns, offset))
		return;
	add_thread(s, &l, offset);
	s->placeholder = s->open;
	s->bare = bare;
}

/* The previous process lacks its end line, and the lines between it and this one. */
static void end_process(struct anr *s, uint64_t offset)
{
	if (s->in_process)
		s->model.sink->ops->repair(s->model.sink, TW_REPAIR_end_mark_missing, offset, 1);
	s->in_process = true;
}

static void on_process(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	drop_placeholder(s);
	end_process(s, line->offset);
	if (new_dump(s, l->pid, l->at_ns, line->offset))
		s->model.dumps[s->model.n_dumps - 1].process = true;
}

static void on_channels(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;

	drop_placeholder(s);
	end_process(s, line->offset);
	for (uint32_t i = 1; i <= m->n_dumps && i <= SEARCH_DEPTH; i++)
		if (m->dumps[m->n_dumps - i].pid == l->pid) {
			s->channel_dump = m->n_dumps - i;
			s->in_channels = true;
			return;
		}
	if (new_dump(s, l->pid, l->at_ns, line->offset)) {
		m->dumps[m->n_dumps - 1].process = true;
		s->channel_dump = m->n_dumps - 1;
		s->in_channels = s->channels_only = true;
	}
}

static bool reserve_channel(struct anr *s)
{
	const bool fits = s->n_channels < MAX_CHANNELS;
	const bool grown = fits && TW_GROW(s->arena, s->channels, s->n_channels, s->cap_channels);

	s->model.no_memory = s->model.no_memory || (fits && !grown);
	return grown;
}

/* In the last dump; a thread may be listed repeatedly. */
static bool has_sys_tid(const struct tw_anr *m, uint64_t sys_tid)
{
	const struct tw_anr_dump *d = &m->dumps[m->n_dumps - 1];

	for (uint32_t i = 0; i < d->n_threads; i++)
		if (m->threads[d->thread + i].sys_tid == sys_tid)
			return true;
	return false;
}

static void on_channel(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;

	if (!s->in_channels)
		return;
	if (!reserve_channel(s)) {
		m->sink->ops->repair(m->sink, TW_REPAIR_note_limit, line->offset, 1);
		return;
	}
	if (s->channels_only && s->channel_dump == m->n_dumps - 1 && !has_sys_tid(m, l->sys_tid))
		(void)tw_anr_add_thread(
		        m, &(struct tw_anr_line){.sys_tid = l->sys_tid}, line->offset);
	s->channels[s->n_channels++] = (struct channel){
	        l->sys_tid, s->channel_dump, tw_anr_text(m, l->text, line->offset)};
}

static void on_fact(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;
	bool of_file = tw_anr_fact_of_file(l->fact) || m->n_dumps == 0;
	uint32_t *fact = of_file ? &m->facts[l->fact] : &m->dumps[m->n_dumps - 1].facts[l->fact];

	if (s->lost)
		return;
	if (!of_file && s->in_channels)
		fact = &m->dumps[s->channel_dump].facts[l->fact];
	if (!*fact)
		*fact = tw_anr_text(m, l->text, line->offset);
}

/* The Play console adds its own head above that of the dump. */
static bool repeats_head(struct anr *s, const struct tw_anr_line *l)
{
	struct tw_anr_thread *t = s->open ? last_thread(s) : NULL;

	if (!t || s->placeholder || l->tid == 0 || t->tid != l->tid || t->n_frames ||
	        !tw_str_eq(tw_anr_str(&s->model, t->name), l->name))
		return false;
	t->priority = l->priority;
	t->daemon = l->daemon;
	t->starting = l->starting;
	return true;
}

static void on_thread(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	if (repeats_head(s, l))
		return;
	drop_placeholder(s);
	if (s->model.n_dumps == 0 || (l->tid == 1 && s->has_first && !s->in_process))
		if (!new_dump(s, 0, s->log_ns, line->offset))
			return;
	s->bare = false;
	add_thread(s, l, line->offset);
}

static void on_ids(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)line;
	last_thread(s)->sys_tid = l->sys_tid;
	last_thread(s)->nice = l->nice;
}

static void on_times(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr_thread *t = last_thread(s);

	(void)line;
	if (l->text.len)
		t->sched_state = l->text.ptr[0];
	t->run_ns = l->run_ns;
	t->queue_ns = l->queue_ns;
	t->user_ticks = l->user_ticks;
	t->kernel_ticks = l->kernel_ticks;
}

/* A last line truncated by the end of the input would give a wrong name. */
static bool is_cut(const struct tw_line *line)
{
	return !line->ended && line->text.len && line->text.ptr[line->text.len - 1] != ')';
}

static void on_frame(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	if (is_cut(line))
		return;
	if (l->kind != TW_ANR_BARE_AT || s->bare)
		(void)tw_anr_add_frame(&s->model, l, line->offset);
}

static void on_lock(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	if (last_thread(s)->n_frames)
		(void)tw_anr_add_lock(&s->model, l, line->offset);
}

/* ART prints a repeating frame three times, and then the number of further repetitions less one. */
static void on_repeated(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	const struct tw_anr *m = &s->model;
	uint32_t n = last_thread(s)->n_frames;
	const struct tw_anr_frame *last;
	bool three;

	if (n == 0)
		return;
	last = &m->frames[m->n_frames - 1];
	three = n >= 3 && last[-1].name == last->name && last[-2].name == last->name;
	(void)tw_anr_repeat_frame(
	        &s->model, l->number < UINT32_MAX ? l->number + three : UINT32_MAX, line->offset);
}

static void on_blank(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)l, (void)line;
	s->open = last_thread(s)->n_frames == 0;
}

static void on_exception(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;

	if (s->in_process)
		return;
	if (!l->number) {
		s->open = false; /* these frames belong to something else */
		return;
	}
	if (!m->facts[TW_ANR_FACT_reason])
		m->facts[TW_ANR_FACT_reason] =
		        tw_anr_text(m, l->text.len ? l->text : line->text, line->offset);
	new_sample(s, TW_STR("main"), s->log_ns, false, line->offset);
}

static void on_cause(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;
	struct tw_anr_line thread = {.name = l->name, .text = l->text, .attached = true};

	if (s->in_process)
		return;
	if (l->name.len == 0) {
		s->open = false;
		return;
	}
	if (m->n_dumps == 0) {
		new_sample(s, l->name, s->log_ns, false, line->offset);
	} else if (s->placeholder && last_thread(s)->n_frames == 0) {
		last_thread(s)->name = tw_anr_text(m, l->name, line->offset);
		s->open = true;
	} else {
		s->placeholder = false;
		add_thread(s, &thread, line->offset);
		return;
	}
	if (s->open)
		last_thread(s)->state = tw_anr_text(m, l->text, line->offset);
}

static bool has_thread(const struct anr *s, struct tw_str name)
{
	const struct tw_anr *m = &s->model;
	const struct tw_anr_dump *d = &m->dumps[m->n_dumps - 1];

	for (uint32_t i = 0; i < d->n_threads && i < SEARCH_DEPTH; i++)
		if (tw_str_eq(tw_anr_str(m, m->threads[d->thread + i].name), name))
			return true;
	return d->n_threads >= SEARCH_DEPTH;
}

static void on_stack_of(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr_line thread = {.name = l->name, .attached = true};

	if (s->in_process)
		return;
	if (s->model.n_dumps == 0 || has_thread(s, l->name)) {
		new_sample(s, l->name, s->log_ns, true, line->offset);
		return;
	}
	s->placeholder = false;
	add_thread(s, &thread, line->offset);
	s->bare = true;
}

static void on_load(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	struct tw_anr *m = &s->model;

	if (m->facts[TW_ANR_FACT_cpu] && m->n_loads < TW_ANR_MAX_LOADS)
		m->loads[m->n_loads++] = tw_anr_text(m, l->text, line->offset);
}

static void on_end(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)l, (void)line;
	s->open = s->in_process = s->in_channels = false;
}

static void on_threads(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)line;
	if (s->model.n_dumps && !s->lost)
		s->model.dumps[s->model.n_dumps - 1].declared_threads = l->number;
}

static void on_failed(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)l;
	s->model.sink->ops->repair(s->model.sink, TW_REPAIR_sample_failed, line->offset, 1);
}

static void on_dumping(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)line;
	s->model.dumping_pid = l->pid;
}

static void on_moment(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	if (!s->in_process)
		new_sample(s, TW_STR("main"), l->at_ns, true, line->offset);
}

/* An unreadable head still ends the previous thread. */
static void on_other(struct anr *s, const struct tw_anr_line *l, const struct tw_line *line)
{
	(void)l;
	if (line->text.len && line->text.ptr[0] == '"')
		s->open = false;
	if (s->open && line->text.len && line->text.ptr[0] == ' ')
		s->model.sink->ops->repair(
		        s->model.sink, TW_REPAIR_line_malformed, line->offset, 1);
}

typedef void (*handler)(struct anr *, const struct tw_anr_line *, const struct tw_line *);

static const handler heads[TW_ANR_KINDS] = {
        [TW_ANR_OTHER] = on_other,
        [TW_ANR_PROCESS] = on_process,
        [TW_ANR_CHANNELS] = on_channels,
        [TW_ANR_END] = on_end,
        [TW_ANR_DUMPING] = on_dumping,
        [TW_ANR_THREADS] = on_threads,
        [TW_ANR_FACT] = on_fact,
        [TW_ANR_LOAD] = on_load,
        [TW_ANR_THREAD] = on_thread,
        [TW_ANR_CHANNEL] = on_channel,
        [TW_ANR_EXCEPTION] = on_exception,
        [TW_ANR_CAUSE] = on_cause,
        [TW_ANR_STACK_OF] = on_stack_of,
        [TW_ANR_MOMENT] = on_moment,
};

/* For a thread that accepts lines. */
static const handler stack_lines[TW_ANR_KINDS] = {
        [TW_ANR_BLANK] = on_blank,
        [TW_ANR_IDS] = on_ids,
        [TW_ANR_TIMES] = on_times,
        [TW_ANR_AT] = on_frame,
        [TW_ANR_BARE_AT] = on_frame,
        [TW_ANR_NATIVE] = on_frame,
        [TW_ANR_KERNEL] = on_frame,
        [TW_ANR_LOCK] = on_lock,
        [TW_ANR_REPEATED] = on_repeated,
        [TW_ANR_FAILED] = on_failed,
};

static enum tw_status each_line(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct anr *s = arg;
	struct tw_anr_line l = tw_anr_line_parse(line->text);

	if (l.at_ns >= 0 && l.kind != TW_ANR_PROCESS && l.kind != TW_ANR_CHANNELS)
		s->log_ns = l.at_ns;
	if (heads[l.kind])
		heads[l.kind](s, &l, line);
	else if (s->open && stack_lines[l.kind])
		stack_lines[l.kind](s, &l, line);
	if (s->model.no_memory)
		return tw_oom(err);
	return TW_OK;
}

/* --- the end --- */

TW_ORDER_BY(by_thread, struct channel, TW_RISING(dump), TW_RISING(sys_tid))

static uint32_t channel_of(const struct anr *s, uint32_t dump, uint64_t sys_tid)
{
	const struct channel wanted = {sys_tid, dump, 0};
	uint32_t at;

	TW_BISECT(at, s->n_channels, by_thread(&s->channels[at], &wanted) < 0);
	if (at == s->n_channels || by_thread(&s->channels[at], &wanted) != 0)
		return 0;
	return s->channels[at].text;
}

static void join_channels(struct anr *s)
{
	struct tw_anr *m = &s->model;

	TW_SORT(s->channels, s->n_channels, by_thread);
	for (uint32_t d = 0; d < m->n_dumps; d++)
		for (uint32_t i = 0; i < m->dumps[d].n_threads; i++) {
			struct tw_anr_thread *t = &m->threads[m->dumps[d].thread + i];

			t->channel = t->sys_tid ? channel_of(s, d, t->sys_tid) : 0;
		}
}

/* Threads counted in the head of a dump but not found. */
static void count_missing(const struct tw_anr *m)
{
	for (uint32_t i = 0; i < m->n_dumps; i++) {
		const struct tw_anr_dump *d = &m->dumps[i];
		uint64_t seen = (uint64_t)d->n_threads + d->threads_left_out;

		if (seen < d->declared_threads)
			m->sink->ops->repair(m->sink, TW_REPAIR_records_missing, d->offset,
			        d->declared_threads - seen);
	}
}

static enum tw_status start(void *state, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink, struct tw_err *err)
{
	struct anr *s = state;

	s->arena = a;
	s->log_ns = -1;
	if (!tw_lines_init(&s->lines, a, LINE_MAX_BYTES, each_line, s) ||
	        !tw_anr_init(&s->model, a, limits, sink))
		return tw_oom(err);
	return TW_OK;
}

static enum tw_status push(void *state, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct anr *s = state;

	return tw_lines_push(&s->lines, p, n, err);
}

static enum tw_status finish(void *state, bool cut, struct tw_err *err)
{
	struct anr *s = state;
	struct tw_anr *m = &s->model;
	enum tw_status st = tw_lines_finish(&s->lines, TW_LINES_OPEN, err);

	if (st != TW_OK)
		return st;
	drop_placeholder(s);
	join_channels(s);
	count_missing(m);
	if (m->n_threads == 0 && s->n_channels == 0 && !m->facts[TW_ANR_FACT_subject] &&
	        !m->facts[TW_ANR_FACT_reason] && !m->facts[TW_ANR_FACT_what])
		return tw_fail_at(err, TW_CORRUPT, 0,
		        "no readable thread, wait channel or reason in this ANR report");
	if (s->in_process && !cut)
		m->sink->ops->repair(m->sink, TW_REPAIR_input_truncated, s->lines.offset, 1);
	return tw_anr_emit(m, err);
}

const struct tw_format tw_format_anr = {
        .name = "anr",
        .title = "ANR report",
        .part = "trace anr",
        .probe = probe,
        .state_size = sizeof(struct anr),
        .start = start,
        .push = push,
        .finish = finish,
};
