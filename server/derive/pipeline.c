#include "server/derive/pipeline.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "server/base/age_clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/base/secret.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/trace/trace_readers.h"

enum {
	STAGES_MAX = 16,
	CHECK_EVERY_S = 60,
	/* projects per stage; beyond this, the one with the shortest wait is retried */
	POSTPONED_MAX = 64,
	POSTPONED_MS = 5000,     /* doubled with each failure */
	POSTPONED_DOUBLINGS = 7, /* about ten minutes */
	REST_MOST_MS = 2000,
	/* A round that finds one trace costs as much as one that finds many.  While traces arrive
	 * one by one, rounds begin at least this time apart, doubled each time. */
	GATHER_MS = 100,
	GATHER_MOST_MS = 800,
	GATHERED = 16,
	IDLE_MS = 2000,
	/* between two searches for other work, or for postponed traces, in a round */
	TEND_MS = 1000,
	STEP_MS = 50,
	TURN_MS = 60 * 1000, /* of a turn that has a deadline */
	ALL_EVERY_MS = 3600 * 1000
};
#define PROJECTS_BYTES ((size_t)256 << 20)

const struct tw_stage *const tw_stages[] = {
#define STAGE(name) &tw_stage_##name,
#include "server/derive/stages.def"
#undef STAGE
        NULL};

enum { DONE, POSTPONED, FAILED, ENDS }; /* result of the work on a trace */

struct postponed { /* a project whose work failed */
	char project_id[TW_ID_BYTES];
	unsigned attempts;
	int64_t until_ms; /* monotonic; 0: the slot is free */
	const char *reason;
};

struct projects { /* in the order of their ids, each once */
	struct tw_arena *arena;
	const char **ids;
	size_t n;
	uint32_t cap;
};

struct tw_runner {
	const struct tw_stage *stage;
	struct tw_derive_parts parts;
	struct tw_pipeline *of; /* NULL: tw_stage_drain */
	const struct tw_drain *drain;
	void *state;
	struct tw_periodic *thread;
	int64_t due_ms;                /* time of the next round, if every_ms is set */
	int64_t tended_ms, resumed_ms; /* monotonic */
	uint64_t began_us;             /* when the last round began */
	uint64_t gather_ms;            /* minimum time from there to the next round */
	struct tw_err *first;          /* tw_stage_drain: the first failure */
	struct projects round, next;   /* served in this round, and in the next one, also if
	                                * none of their traces waits */
	int64_t all_ms;                /* monotonic: when all projects are served again */
	int64_t entry;                 /* of the audit log: the last change that was served */
	_Atomic uint64_t traces[ENDS], spent_us;
	pthread_mutex_t lock; /* of postponed */
	struct postponed postponed[POSTPONED_MAX];
};

struct tw_pipeline {
	const struct tw_lease *lease;
	bool (*leads)(const struct tw_lease *);
	_Atomic bool stopping;
	pthread_mutex_t lock; /* of the runners' threads, as stages wake each other */
	struct tw_trace_readers *readers;
	struct tw_runner runners[STAGES_MAX];
	size_t n;
};

/* --- work on a project --- */

static bool is_over(const struct tw_runner *r)
{
	return r->of && (atomic_load(&r->of->stopping) || !r->of->leads(r->of->lease));
}

bool tw_turn_is_over(const struct tw_turn *t)
{
	return is_over(t->by);
}

static bool has_passed(void *arg)
{
	const struct tw_turn_limit *l = arg;

	return tw_turn_is_over(l->turn) || tw_monotonic_ms() >= l->until_ms;
}

struct tw_deadline tw_turn_deadline(const struct tw_turn *t, struct tw_turn_limit *ret_limit)
{
	*ret_limit = (struct tw_turn_limit){t, tw_monotonic_ms() + TURN_MS};
	return (struct tw_deadline){has_passed, ret_limit};
}

bool tw_turn_is_last(const struct tw_turn *t)
{
	return !t->by->of;
}

enum tw_status tw_turn_traces(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_named_trace **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_catalogue_stage_todo(t->by->parts.catalogue, t->by->stage->sql, t->project_id,
	        limit, a, ret, ret_n, err);
}

enum tw_status tw_turn_rows(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_trace_row **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_catalogue_stage_rows(t->by->parts.catalogue, t->by->stage->sql, t->project_id,
	        limit, a, ret, ret_n, err);
}

struct tw_named_trace tw_turn_trace(const struct tw_trace_row *row)
{
	return (struct tw_named_trace){
	        row->project_id, row->id, row->meta.build_id, row->meta.mapping_id};
}

void tw_turn_done(const struct tw_turn *t, uint64_t traces)
{
	(void)atomic_fetch_add(&t->by->traces[DONE], traces);
}

bool tw_is_temporary(enum tw_status st)
{
	return st == TW_BUSY || st == TW_IO || st == TW_FULL || st == TW_NOT_FOUND;
}

int64_t tw_rules_number(struct tw_arena *a, int version, const char *rules, const char *frames)
{
	const char *text =
	        tw_arena_printf(a, "%d\n%s\n%s", version, rules ? rules : "", frames ? frames : "");

	return text ? (int64_t)(tw_secret_bits(text) >> 2) + 1 : 0;
}

/* A file that was deleted with its row is not a failure. */
static enum tw_status is_there(
        const struct tw_runner *r, const struct tw_named_trace *t, bool *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_trace_row row;
	enum tw_status st = a ? tw_catalogue_trace_get(r->parts.catalogue, t->project_id,
	                                t->trace_id, a, &row, err)
	                      : tw_oom(err);

	*ret = st == TW_OK && row.state == TW_TRACE_READY;
	tw_arena_free(a);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

enum tw_status tw_turn_failed(const struct tw_turn *t, const struct tw_named_trace *trace,
        bool may_pass, const struct tw_err *why, struct tw_err *err)
{
	struct tw_runner *r = t->by;
	bool there = false;
	enum tw_status st = is_there(r, trace, &there, err);

	if (st != TW_OK || !there)
		return st;
	tw_log(TW_LOG_WARN, may_pass ? "stage_postponed" : "stage_failed",
	        tw_log_text("stage", r->stage->name), tw_log_text("trace", trace->trace_id),
	        tw_log_text("reason", why->msg));
	(void)atomic_fetch_add(&r->traces[may_pass ? POSTPONED : FAILED], 1);
	if (may_pass)
		return tw_catalogue_stage_postpone(r->parts.catalogue, r->stage->sql, trace,
		        tw_status_name(why->code), tw_wait_ms(), err);
	return r->stage->sql->give_up
	               ? tw_catalogue_stage_give_up(r->parts.catalogue, r->stage->sql, trace, err)
	               : TW_OK;
}

/* --- postponed projects --- */

static struct postponed *postponed_of(struct tw_runner *r, const char *project_id)
{
	struct postponed *oldest = &r->postponed[0];

	for (size_t i = 0; i < POSTPONED_MAX; i++) {
		if (r->postponed[i].until_ms && strcmp(r->postponed[i].project_id, project_id) == 0)
			return &r->postponed[i];
		if (r->postponed[i].until_ms < oldest->until_ms)
			oldest = &r->postponed[i];
	}
	return oldest;
}

static bool is_postponed(struct tw_runner *r, const char *project_id)
{
	const struct postponed *p = postponed_of(r, project_id);

	return strcmp(p->project_id, project_id) == 0 && p->until_ms > tw_monotonic_ms();
}

static void note_end(struct tw_runner *r, const char *project_id, enum tw_status st)
{
	struct postponed *p;

	(void)pthread_mutex_lock(&r->lock);
	p = postponed_of(r, project_id);
	if (strcmp(p->project_id, project_id) == 0 && st == TW_OK)
		*p = (struct postponed){.until_ms = 0};
	if (st != TW_OK) {
		const unsigned attempts = strcmp(p->project_id, project_id) == 0 ? p->attempts : 0;

		*p = (struct postponed){.attempts = attempts + (attempts < POSTPONED_DOUBLINGS),
		        .until_ms = tw_monotonic_ms() + ((int64_t)POSTPONED_MS << attempts),
		        .reason = tw_status_name(st)};
		(void)snprintf(p->project_id, sizeof p->project_id, "%s", project_id);
	}
	(void)pthread_mutex_unlock(&r->lock);
}

static void failed(struct tw_runner *r, const char *project_id, const struct tw_err *err)
{
	tw_log(TW_LOG_WARN, "stage_late", tw_log_text("stage", r->stage->name),
	        tw_log_text("project", project_id), tw_log_text("reason", err->msg));
	if (r->first && r->first->code == TW_OK)
		*r->first = *err;
}

/* --- projects to serve --- */

TW_ORDER_BY(by_id, const char *, TW_ORDER(*a, *b))

static void empty(struct projects *p)
{
	tw_arena_reset(p->arena);
	*p = (struct projects){.arena = p->arena};
}

static bool add(struct projects *p, const char *id)
{
	if (!TW_GROW(p->arena, p->ids, p->n, p->cap))
		return false;
	p->ids[p->n] = tw_arena_str(p->arena, tw_str_of(id));
	return p->ids[p->n] && ++p->n;
}

static bool add_all(struct projects *p, const char *const *ids, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!add(p, ids[i]))
			return false;
	TW_SORT(p->ids, p->n, by_id);
	for (size_t i = 0; i < p->n; i++)
		if (kept == 0 || strcmp(p->ids[kept - 1], p->ids[i]) != 0)
			p->ids[kept++] = p->ids[i];
	p->n = kept;
	return true;
}

/* In the next round. */
static void serve_all(struct tw_runner *r)
{
	r->all_ms = 0;
}

/* All projects, or those whose rules changed since. */
static enum tw_status find_projects(struct tw_runner *r, bool all, struct tw_err *err)
{
	const int64_t now = tw_monotonic_ms();
	struct tw_catalogue *c = r->parts.catalogue;
	const char *const *ids = NULL;
	int64_t entry = all ? INT64_MAX : r->entry;
	size_t n = 0;
	enum tw_status st = tw_catalogue_stage_changed(c, &entry, r->round.arena, &ids, &n, err);

	if (st == TW_OK && all)
		st = tw_catalogue_stage_projects(c, r->stage->all, r->round.arena, &ids, &n, err);
	if (st != TW_OK)
		return st;
	if (!add_all(&r->round, ids, n)) {
		empty(&r->round);
		serve_all(r);
		return tw_oom(err);
	}
	r->entry = entry;
	if (all)
		r->all_ms = now + ALL_EVERY_MS;
	return TW_OK;
}

static void begin_projects(struct tw_runner *r)
{
	const struct projects before = r->round;
	const bool all = !r->stage->sql || tw_monotonic_ms() >= r->all_ms;
	struct tw_err err;

	r->round = r->next;
	r->next = before;
	empty(&r->next);
	if (r->stage->all && find_projects(r, all, &err) != TW_OK)
		failed(r, "", &err);
}

/* Without memory for the list, all are served. */
static void serve_again(struct tw_runner *r, const char *project_id)
{
	if (r->stage->all && !add(&r->next, project_id))
		serve_all(r);
}

/* The next of the round's projects, or the next with a waiting trace; "": none. */
static bool next(struct tw_runner *r, size_t *io_at, char io_project[TW_ID_BYTES])
{
	char after[TW_ID_BYTES];
	struct tw_err err;

	memcpy(after, io_project, sizeof after);
	io_project[0] = '\0';
	if (r->stage->sql && tw_catalogue_stage_next(r->parts.catalogue, r->stage->sql, after,
	                             io_project, &err) != TW_OK) {
		failed(r, "", &err);
		return false;
	}
	while (*io_at < r->round.n && strcmp(r->round.ids[*io_at], after) <= 0)
		(*io_at)++;
	if (*io_at < r->round.n && (!io_project[0] || strcmp(r->round.ids[*io_at], io_project) < 0))
		(void)snprintf(io_project, TW_ID_BYTES, "%s", r->round.ids[*io_at]);
	return io_project[0] != '\0';
}

/* --- rounds --- */

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void rest(struct tw_runner *r, uint64_t us)
{
	const uint64_t ms = us / 1000;
	const int64_t until_ms =
	        tw_monotonic_ms() + (int64_t)(ms < REST_MOST_MS ? ms : REST_MOST_MS);

	while (tw_monotonic_ms() < until_ms && !is_over(r))
		tw_sleep_ms(STEP_MS);
}

/* Delays the round so that traces accumulate, if the previous one was recent and found few. */
static void gather(struct tw_runner *r)
{
	const uint64_t ago_us = now_us() - r->began_us;

	if (ago_us >= (uint64_t)IDLE_MS * 1000)
		r->gather_ms = GATHER_MS;
	else if (ago_us < r->gather_ms * 1000)
		rest(r, r->gather_ms * 1000 - ago_us);
	r->began_us = now_us();
}

static void note_found(struct tw_runner *r, uint64_t traces)
{
	if (traces >= GATHERED)
		r->gather_ms = 0;
	else if (traces && r->gather_ms < GATHER_MOST_MS)
		r->gather_ms = r->gather_ms ? 2 * r->gather_ms : GATHER_MS;
}

typedef enum tw_status (*work_fn)(
        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err);

/* project_id "": work that concerns all projects. */
static enum tw_status turn(
        struct tw_runner *r, work_fn work, const char *project_id, bool *ret_more)
{
	const struct tw_turn t = {r, project_id};
	const uint64_t from_us = now_us();
	bool more = false;
	struct tw_err err;
	enum tw_status st = work(r->state, &t, &more, &err);
	const uint64_t us = now_us() - from_us;

	if (project_id[0] && (more || r->stage->every_ms))
		tw_crash_point(r->stage->name);
	(void)atomic_fetch_add(&r->spent_us, us);
	if (st != TW_OK)
		failed(r, project_id, &err);
	if (project_id[0])
		note_end(r, project_id, st);
	if (more && r->of && r->stage->raises)
		tw_pipeline_wake(r->of, r->stage->raises);
	if (r->drain)
		r->drain->step(r->drain->arg);
	if (project_id[0] && r->stage->half_time && r->of)
		rest(r, us);
	*ret_more = st == TW_OK && more;
	return st;
}

/* True: some postponed traces wait again.  Traces are postponed for seconds or longer. */
static bool resume(struct tw_runner *r)
{
	const int64_t now = tw_monotonic_ms();
	bool more = false;
	struct tw_err err;

	if (!r->stage->sql || (r->of && now < r->resumed_ms + TEND_MS))
		return false;
	if (tw_catalogue_stage_resume(
	            r->parts.catalogue, r->stage->sql, tw_wait_ms(), &more, &err) != TW_OK)
		failed(r, "", &err);
	r->resumed_ms = more ? 0 : now;
	return more;
}

static bool maintain(struct tw_runner *r)
{
	const bool resumed = resume(r);
	bool more = false;

	r->tended_ms = tw_monotonic_ms();
	if (r->stage->maintain)
		(void)turn(r, r->stage->maintain, "", &more);
	return more || resumed;
}

/* True: there may be more. */
static bool serve(struct tw_runner *r, const char *project_id)
{
	bool more = false;

	if (is_postponed(r, project_id) || turn(r, r->stage->run, project_id, &more) != TW_OK ||
	        more)
		serve_again(r, project_id);
	if (more && !is_over(r) && tw_monotonic_ms() >= r->tended_ms + TEND_MS)
		(void)maintain(r);
	return more;
}

/* Serves each project once; true: there may be more. */
static bool go_round(struct tw_runner *r)
{
	char project_id[TW_ID_BYTES] = "";
	size_t at = 0;
	bool more = maintain(r);

	begin_projects(r);
	while (!is_over(r) && next(r, &at, project_id))
		more |= serve(r, project_id);
	for (; at < r->round.n; at++) /* the round was interrupted */
		if (strcmp(r->round.ids[at], project_id) > 0)
			serve_again(r, r->round.ids[at]);
	return more;
}

static void go_rounds(struct tw_periodic *p, void *arg)
{
	struct tw_runner *r = arg;
	bool more = tw_monotonic_ms() >= r->due_ms;

	(void)p;
	if (is_over(r)) /* another server may apply other rules */
		serve_all(r);
	if (!more || is_over(r))
		return;
	while (more && !is_over(r)) {
		const uint64_t before = atomic_load(&r->traces[DONE]);

		if (r->of)
			gather(r);
		more = go_round(r);
		note_found(r, atomic_load(&r->traces[DONE]) - before);
	}
	if (r->stage->every_ms && !is_over(r))
		r->due_ms = tw_monotonic_ms() + r->stage->every_ms;
}

/* --- the server's stages --- */

static enum tw_status open_stage(struct tw_runner *r, struct tw_err *err)
{
	(void)pthread_mutex_init(&r->lock, NULL);
	r->state = r->stage->open ? NULL : &r->parts;
	r->round.arena = tw_arena_new(PROJECTS_BYTES);
	r->next.arena = tw_arena_new(PROJECTS_BYTES);
	if (!r->round.arena || !r->next.arena)
		return tw_oom(err);
	return r->stage->open ? r->stage->open(&r->parts, &r->state, err) : TW_OK;
}

static void close_stage(struct tw_runner *r)
{
	if (r->stage->close && r->state)
		r->stage->close(r->state);
	tw_arena_free(r->next.arena);
	tw_arena_free(r->round.arena);
	(void)pthread_mutex_destroy(&r->lock);
}

enum tw_status tw_pipeline_start(
        const struct tw_pipeline_setup *setup, struct tw_pipeline **ret, struct tw_err *err)
{
	const unsigned check_s = tw_lease_interval_s(setup->lease, CHECK_EVERY_S);
	struct tw_pipeline *p = tw_mem_zalloc(1, sizeof *p);
	enum tw_status st = TW_OK;

	if (!p)
		return tw_oom(err);
	p->lease = setup->lease;
	p->leads = setup->leads;
	p->readers = tw_trace_readers_new();
	for (; st == TW_OK && p->n < STAGES_MAX && setup->stages[p->n]; p->n++) {
		struct tw_runner *r = &p->runners[p->n];

		r->stage = setup->stages[p->n];
		r->of = p;
		r->parts = setup->parts;
		r->parts.readers = p->readers;
		st = open_stage(r, err);
	}
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_mutex_lock(&p->lock);
	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		st = tw_periodic_start(&(struct tw_periodic_task){p->runners[i].stage->name,
		                               go_rounds, check_s * 1000},
		        &p->runners[i], &p->runners[i].thread, err);
	(void)pthread_mutex_unlock(&p->lock);
	if (st == TW_OK)
		*ret = p;
	else
		(void)tw_pipeline_stop(p);
	return st;
}

struct tw_pipeline *tw_pipeline_stop(struct tw_pipeline *p)
{
	if (!p)
		return NULL;
	atomic_store(&p->stopping, true);
	for (size_t i = 0; i < p->n; i++) {
		struct tw_periodic *thread;

		(void)pthread_mutex_lock(&p->lock);
		thread = p->runners[i].thread;
		p->runners[i].thread = NULL;
		(void)pthread_mutex_unlock(&p->lock);
		(void)tw_periodic_stop(thread);
	}
	for (size_t i = 0; i < p->n; i++)
		close_stage(&p->runners[i]);
	tw_trace_readers_free(p->readers);
	(void)pthread_mutex_destroy(&p->lock);
	tw_mem_free(p);
	return NULL;
}

void tw_pipeline_wake(struct tw_pipeline *p, unsigned raised_by)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		if (p->runners[i].stage->depends & raised_by)
			tw_periodic_wake(p->runners[i].thread);
	(void)pthread_mutex_unlock(&p->lock);
}

enum tw_status tw_stage_drain(const struct tw_stage *s, const struct tw_derive_parts *parts,
        const struct tw_drain *d, struct tw_err *err)
{
	struct tw_runner *r = tw_mem_zalloc(1, sizeof *r);
	struct tw_err first = {.code = TW_OK};
	enum tw_status st;

	if (!r)
		return tw_oom(err);
	r->stage = s;
	r->parts = *parts;
	r->drain = d;
	r->first = &first;
	st = open_stage(r, err);
	if (st == TW_OK)
		go_rounds(NULL, r);
	if (first.code != TW_OK)
		tw_err_copy(err, &first);
	close_stage(r);
	tw_mem_free(r);
	return st == TW_OK ? first.code : st;
}

/* --- progress --- */

static void write_counts(const struct tw_pipeline *p, struct tw_buf *out)
{
	static const char *const outcomes[] = {"done", "postponed", "failed"};

	for (size_t i = 0; tw_stages[i]; i++)
		for (size_t k = 0; k < ENDS; k++)
			tw_buf_printf(out,
			        "tracewell_stage_traces_total{stage=\"%s\",outcome=\"%s\"} %" PRIu64
			        "\n",
			        tw_stages[i]->name, outcomes[k],
			        p ? atomic_load(&p->runners[i].traces[k]) : 0);
	for (size_t i = 0; tw_stages[i]; i++)
		tw_buf_printf(out, "tracewell_stage_seconds_total{stage=\"%s\"} %.6f\n",
		        tw_stages[i]->name,
		        p ? (double)atomic_load(&p->runners[i].spent_us) / 1e6 : 0.0);
}

/* One line per project: usually none, at most POSTPONED_MAX. */
static void write_postponed(struct tw_runner *r, struct tw_buf *out)
{
	(void)pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < POSTPONED_MAX; i++)
		if (r->postponed[i].until_ms)
			tw_buf_printf(out,
			        "tracewell_stage_postponed_projects{stage=\"%s\",project=\"%s\","
			        "reason=\"%s\"} 1\n",
			        r->stage->name, r->postponed[i].project_id, r->postponed[i].reason);
	(void)pthread_mutex_unlock(&r->lock);
}

static void write_waiting(const struct tw_stage_waiting *w, const char *stage, struct tw_buf *out)
{
	tw_buf_printf(out,
	        "tracewell_stage_waiting_traces{stage=\"%s\",reason=\"turn\"} %" PRIu64 "\n", stage,
	        w->traces);
	for (size_t i = 0; i < w->n_why; i++)
		tw_buf_printf(out,
		        "tracewell_stage_waiting_traces{stage=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
		        stage, w->why[i].reason, w->why[i].traces);
}

enum tw_status tw_pipeline_metrics(
        struct tw_pipeline *p, struct tw_catalogue *c, struct tw_buf *out, struct tw_err *err)
{
	struct tw_stage_waiting all[STAGES_MAX] = {{0}};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && tw_stages[i]; i++)
		if (tw_stages[i]->sql)
			st = tw_catalogue_stage_waiting(c, tw_stages[i]->sql, "", &all[i], err);
	if (st != TW_OK)
		return st;
	write_counts(p, out);
	for (size_t i = 0; tw_stages[i]; i++)
		if (tw_stages[i]->sql)
			write_waiting(&all[i], tw_stages[i]->name, out);
	for (size_t i = 0; tw_stages[i]; i++)
		if (tw_stages[i]->sql)
			tw_buf_printf(out, "tracewell_stage_oldest_seconds{stage=\"%s\"} %.3f\n",
			        tw_stages[i]->name,
			        all[i].oldest_ms ? (double)(tw_wait_ms() - all[i].oldest_ms) / 1000
			                         : 0.0);
	for (size_t i = 0; p && i < p->n; i++)
		write_postponed(&p->runners[i], out);
	for (size_t i = 0; tw_stages[i]; i++)
		if (tw_stages[i]->metrics)
			tw_stages[i]->metrics(p ? p->runners[i].state : NULL, out);
	return TW_OK;
}
