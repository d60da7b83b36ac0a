/* Unit tests of catalogue_turn.c and backlog.c: whose turn it is, against a plain model of
 * the queue; how long one project's burst, or its huge traces, hold up another; how much may wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_commit_upload.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs_run.h"
#include "server/ingest/backlog.h"
#include "server/ingest/upload_meta.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { PROJECTS = 6, JOBS = 500, WORKERS = 3, BYTES = 1000 };

struct one { /* of the model, in the order of arrival */
	char id[TW_ID_BYTES];
	int project;
	enum { QUEUED, DECODING, DONE } state;
};

struct model {
	char dir[40];
	struct tw_catalogue *c;
	struct tw_arena *arena;
	struct tw_caller callers[PROJECTS]; /* in the order of their ids */
	struct one jobs[JOBS];
	int n;
	int served; /* project of the last claim, -1 none */
};

static int64_t now_ms; /* the decoders' clock: it advances only when a test moves it */

static int64_t read_clock(void)
{
	return now_ms;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct tw_caller *)a)->project_id,
	        ((const struct tw_caller *)b)->project_id);
}

static int setup(void **state)
{
	static struct model m;
	char name[8];
	bool is_new;

	m = (struct model){.served = -1};
	memcpy(m.dir, "/tmp/tw-turn-XXXXXX", sizeof "/tmp/tw-turn-XXXXXX");
	assert_non_null(mkdtemp(m.dir));
	m.c = catalogue_in(m.dir);
	m.c->turns[TW_QUEUE_TRACES].fair.clock_ms = read_clock;
	m.arena = tw_arena_new(64 << 20);
	for (int i = 0; i < PROJECTS; i++) {
		m.callers[i].scope = TW_SCOPE_INGEST;
		(void)snprintf(name, sizeof name, "p%d", i);
		assert_int_equal(
		        tw_catalogue_project(m.c, name, m.callers[i].project_id, &is_new, NULL),
		        TW_OK);
	}
	qsort(m.callers, PROJECTS, sizeof *m.callers, by_id);
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	struct model *m = *state;

	m->c = tw_catalogue_close(m->c);
	(void)tw_arena_free(m->arena);
	return nftw(m->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int arrive_of(struct model *m, int project, uint64_t bytes)
{
	struct tw_trace_meta meta = tw_upload_meta_none();
	const struct tw_part part = {"trace", "aa", "", bytes};
	const struct tw_arrival up = {.caller = &m->callers[project],
	        .key = "",
	        .meta = &meta,
	        .parts = &part,
	        .n_parts = 1};
	struct one *o = &m->jobs[m->n];
	bool is_new;

	assert_in_range(m->n, 0, JOBS - 1);
	assert_int_equal(tw_catalogue_trace_add(m->c, &up, o->id, &is_new, NULL), TW_OK);
	o->project = project;
	o->state = QUEUED;
	return m->n++;
}

static int arrive(struct model *m, int project)
{
	return arrive_of(m, project, BYTES);
}

static int count(const struct model *m, int project, int state)
{
	int n = 0;

	for (int i = 0; i < m->n; i++)
		n += m->jobs[i].project == project && (int)m->jobs[i].state == state;
	return n;
}

static uint64_t stands(const struct model *m, int project)
{
	uint64_t level;

	return tw_fair_level(
	        &m->c->turns[TW_QUEUE_TRACES].fair, m->callers[project].project_id, &level);
}

/* The project whose turn it is, by the words of the contract; -1 none. */
static int expected(const struct model *m)
{
	int best = -1;

	for (int step = 1; step <= PROJECTS; step++) {
		int p = (m->served + step + PROJECTS) % PROJECTS;

		if (count(m, p, QUEUED) == 0)
			continue;
		if (best < 0 || stands(m, p) < stands(m, best))
			best = p;
	}
	return best;
}

/* Claims; the model's job, -1 when there was none. */
static int claim(struct model *m)
{
	struct tw_job_row row;
	enum tw_status st = tw_catalogue_queue_claim(
	        m->c, &(struct tw_claim){.owner = "me", .lease_ms = 100000}, m->arena, &row, NULL);
	int found = 0;

	if (st == TW_NOT_FOUND)
		return -1;
	assert_int_equal(st, TW_OK);
	while (strcmp(m->jobs[found].id, row.trace_id) != 0)
		assert_in_range(++found, 0, m->n - 1);
	assert_int_equal(m->jobs[found].state, QUEUED);
	return found;
}

static int claim_and_check(struct model *m)
{
	int p = expected(m);
	int i = claim(m);

	if (p < 0) {
		assert_int_equal(i, -1);
		return -1;
	}
	assert_int_not_equal(i, -1);
	assert_int_equal(m->jobs[i].project, p);
	m->jobs[i].state = DECODING;
	m->served = p;
	return i;
}

static void finish(struct model *m, int i)
{
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_job_row job = {
	        m->callers[m->jobs[i].project].project_id, m->jobs[i].id, 1, "me"};

	assert_int_equal(tw_catalogue_job_publish(m->c, &job, &summary, NULL, NULL), TW_OK);
	m->jobs[i].state = DONE;
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

/* Random arrivals, claims and ends: each claim equals the model's. */
static void test_turns(void **state)
{
	struct model *m = *state;
	uint32_t seed = 7;
	int decoding[WORKERS] = {-1, -1, -1};

	for (int step = 0; m->n < JOBS; step++) {
		int w = (int)(next(&seed) % WORKERS);
		int burst = (int)(next(&seed) % 4);

		/* the first project sends as much as all others together */
		for (int i = 0; i < burst && m->n < JOBS; i++)
			(void)arrive(m, next(&seed) % 2 ? 0 : (int)(next(&seed) % PROJECTS));
		if (decoding[w] >= 0)
			finish(m, decoding[w]);
		now_ms += next(&seed) % 50;
		decoding[w] = claim_and_check(m);
	}
	for (int left = JOBS; left > 0; left--) { /* and to the end */
		int w = left % WORKERS;

		if (decoding[w] >= 0)
			finish(m, decoding[w]);
		decoding[w] = claim_and_check(m);
	}
}

/* Claims until the job's own, with one decoder. */
static int claims_until(struct model *m, int job, int *decoding)
{
	for (int n = 1;; n++) {
		if (*decoding >= 0)
			finish(m, *decoding);
		*decoding = claim_and_check(m);
		assert_int_not_equal(*decoding, -1);
		if (*decoding == job)
			return n;
	}
}

/* However long the others' queues, a newcomer waits for one decode of each at most. */
static void test_a_burst_delays_no_other_project(void **state)
{
	struct model *m = *state;
	int decoding;

	for (int i = 0; i < 100; i++)
		(void)arrive(m, 0);
	decoding = claim_and_check(m);
	assert_int_equal(claims_until(m, arrive(m, 3), &decoding), 1);
	for (int p = 1; p < PROJECTS - 1; p++)
		for (int i = 0; i < 40; i++)
			(void)arrive(m, p);
	for (int i = 0; i < 10; i++)
		assert_in_range(claims_until(m, arrive(m, PROJECTS - 1), &decoding), 1, PROJECTS);
	/* the tenth of a project's own waits ten turns of each, no more */
	for (int i = 0; i < 9; i++)
		(void)arrive(m, PROJECTS - 1);
	assert_in_range(claims_until(m, arrive(m, PROJECTS - 1), &decoding), 10, 10 * PROJECTS);
	finish(m, decoding);
}

/* --- shares of time --- */

enum { HUGE_MS = 10000, SMALL_MS = 100, HUGE = 20, SMALL = 150 };

struct decoder {
	int job; /* -1: idle */
	int64_t ends_ms;
};

/* The decoder that is done first, at whose end the clock is put; idle ones are now. */
static struct decoder *first_done(struct decoder *all, int n)
{
	struct decoder *d = all;

	for (int i = 1; i < n; i++)
		if (all[i].ends_ms < d->ends_ms)
			d = &all[i];
	now_ms = d->ends_ms > now_ms ? d->ends_ms : now_ms;
	return d;
}

/* Project 0 has huge traces, all others small ones; each takes the time of its kind, whatever its
 * bytes. Runs until nothing of `watched` is left; returns the time it took. */
static int64_t decode_all(struct model *m, int decoders, int watched)
{
	struct decoder all[8];
	int64_t from = now_ms;

	for (int i = 0; i < decoders; i++)
		all[i] = (struct decoder){-1, now_ms};
	while (count(m, watched, DONE) < SMALL) {
		struct decoder *d = first_done(all, decoders);

		if (d->job >= 0)
			finish(m, d->job);
		d->job = claim_and_check(m);
		d->ends_ms = now_ms + 1000;
		if (d->job >= 0)
			d->ends_ms = now_ms + (m->jobs[d->job].project ? SMALL_MS : HUGE_MS);
	}
	return now_ms - from;
}

/* k projects, one of them with huge traces that came first: those of another are done after k times
 * their own time, and a huge decode for each decoder that was at one when they came. */
static void hold_to_share(struct model *m, int decoders, int projects, uint64_t huge_bytes)
{
	int64_t own_ms = (int64_t)SMALL * SMALL_MS / decoders;
	int64_t most_ms = own_ms * projects + HUGE_MS + SMALL_MS;

	for (int i = 0; i < HUGE; i++)
		(void)arrive_of(m, 0, huge_bytes);
	for (int i = 0; i < SMALL; i++)
		for (int p = 1; p < projects; p++)
			(void)arrive_of(m, p, BYTES);
	assert_in_range(decode_all(m, decoders, projects - 1), own_ms, most_ms);
}

static void test_huge_traces_hold_up_by_their_share(void **state)
{
	hold_to_share(*state, 1, 2, HUGE * BYTES);
}

static void test_shares_of_several_decoders(void **state)
{
	hold_to_share(*state, 3, 3, HUGE * BYTES);
}

/* A small file that takes long (a bomb) does not bypass the schedule. */
static void test_shares_go_by_the_clock(void **state)
{
	hold_to_share(*state, 2, 2, BYTES);
}

/* Time used while no other project waited is not credited to later ones. */
static void test_nothing_is_saved_up(void **state)
{
	struct model *m = *state;
	int job, late;

	for (int i = 0; i < 60; i++) { /* alone, for ten minutes */
		(void)arrive(m, 0);
		job = claim_and_check(m);
		now_ms += HUGE_MS;
		finish(m, job);
		assert_int_equal(claim_and_check(m), -1);
	}
	for (int i = 0; i < 20; i++) {
		(void)arrive(m, 0);
		(void)arrive(m, 1);
	}
	late = 0;
	for (int i = 0; i < 20; i++) {
		job = claim_and_check(m);
		late += m->jobs[job].project == 1;
		now_ms += SMALL_MS;
		finish(m, job);
	}
	assert_in_range(late, 9, 11);
}

/* An expired claim is first, whichever project it belongs to, and its former holder cannot end it;
 * postponed traces are skipped. */
static void test_lapsed_and_put_off(void **state)
{
	struct model *m = *state;
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_err why = {.code = TW_FULL, .msg = "full"};
	struct tw_job_row dead, row;
	const struct tw_job_row *const both[] = {&dead, &row};
	int first = arrive(m, 0);
	bool held = true;

	(void)arrive(m, 1);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "dead", .lease_ms = -1},
	                m->arena, &dead, NULL),
	        TW_OK);
	assert_string_equal(dead.trace_id, m->jobs[first].id);
	assert_int_equal(tw_catalogue_job_held(m->c, &dead, 0, &held, NULL), TW_OK);
	assert_false(held);
	assert_int_equal(tw_catalogue_jobs_renew(m->c, NULL, 0, 10000, NULL), TW_OK); /* not it */
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "me", .lease_ms = 10000},
	                m->arena, &row, NULL),
	        TW_OK);
	assert_string_equal(row.trace_id, m->jobs[first].id);
	assert_int_equal(row.attempts, 2);
	assert_int_equal(tw_catalogue_job_publish(m->c, &dead, &summary, NULL, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_job_retry(m->c, &dead, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_job_failed(m->c, &dead, &why, NULL, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_jobs_renew(m->c, both, 2, 30000, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_held(m->c, &dead, 0, &held, NULL), TW_OK);
	assert_false(held); /* too late */
	assert_int_equal(tw_catalogue_job_held(m->c, &row, 20000, &held, NULL), TW_OK);
	assert_true(held);
	assert_int_equal(tw_catalogue_job_wait(m->c, &row, &why, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_publish(m->c, &row, &summary, NULL, NULL), TW_CONFLICT);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "me", .lease_ms = 10000},
	                m->arena, &row, NULL),
	        TW_OK);
	assert_string_equal(row.trace_id, m->jobs[1].id);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "me", .lease_ms = 10000},
	                m->arena, &row, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_jobs_leave(m->c, "dead", NULL), TW_OK); /* has nothing */
	finish(m, 1);
	assert_int_equal(tw_catalogue_jobs_recover(m->c, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "me", .lease_ms = 10000},
	                m->arena, &row, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_jobs_leave(m->c, "me", NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &(struct tw_claim){.owner = "me", .lease_ms = 10000},
	                m->arena, &row, NULL),
	        TW_OK);
	assert_int_equal(tw_catalogue_job_publish(m->c, &row, &summary, NULL, NULL), TW_OK);
}

/* A claim of at most one of each project is for one of which nothing is being decoded. */
static void test_one_of_each_project(void **state)
{
	struct model *m = *state;
	const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};
	const struct tw_claim one = {TW_QUEUE_TRACES, "me", 10000, 1};
	const struct tw_claim other = {TW_QUEUE_TRACES, "else", 10000, 1};
	const struct tw_claim lapsing = {TW_QUEUE_TRACES, "me", -1, 1};
	struct tw_job_row first, row, third;
	int ids[] = {arrive(m, 0), arrive(m, 0), arrive(m, 0)};
	int late;

	assert_int_equal(tw_catalogue_queue_claim(m->c, &one, m->arena, &first, NULL), TW_OK);
	assert_string_equal(first.trace_id, m->jobs[ids[0]].id);
	assert_int_equal(tw_catalogue_queue_claim(m->c, &one, m->arena, &row, NULL), TW_NOT_FOUND);
	late = arrive(m, 3);
	assert_int_equal(tw_catalogue_queue_claim(m->c, &one, m->arena, &row, NULL), TW_OK);
	assert_string_equal(row.trace_id, m->jobs[late].id);
	assert_int_equal(
	        tw_catalogue_queue_claim(m->c, &one, m->arena, &third, NULL), TW_NOT_FOUND);
	/* another server has separate claims */
	assert_int_equal(tw_catalogue_queue_claim(m->c, &other, m->arena, &third, NULL), TW_OK);
	assert_string_equal(third.trace_id, m->jobs[ids[1]].id);
	assert_int_equal(tw_catalogue_job_publish(m->c, &first, &summary, NULL, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_publish(m->c, &third, &summary, NULL, NULL), TW_OK);
	assert_int_equal(tw_catalogue_queue_claim(m->c, &lapsing, m->arena, &first, NULL), TW_OK);
	assert_string_equal(first.trace_id, m->jobs[ids[2]].id);
	/* one whose lease ran out is claimed again, although its project has one */
	assert_int_equal(tw_catalogue_queue_claim(m->c, &one, m->arena, &first, NULL), TW_OK);
	assert_string_equal(first.trace_id, m->jobs[ids[2]].id);
	assert_int_equal(first.attempts, 2);
}

enum { GROUP = 8 };

static size_t claim_group(struct model *m, struct tw_job_row *ret)
{
	const struct tw_claim any = {TW_QUEUE_TRACES, "me", 100000, 0};
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_jobs_claim(m->c, &any, BYTES, m->arena, ret, GROUP, &n, NULL);

	assert_true(st == TW_OK || (st == TW_NOT_FOUND && n == 0));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ret[i].n_parts, 1);
	return n;
}

static bool has_id(const struct tw_job_row *rows, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].trace_id, id) == 0)
			return true;
	return false;
}

/* Small first attempts of one project are claimed together, and returned and ended each on its own.
 */
static void test_groups(void **state)
{
	struct model *m = *state;
	const struct tw_trace_summary summaries[GROUP] = {{.slices = 1, .format = "btrace2"},
	        {.slices = 1, .format = "btrace2"}, {.slices = 1, .format = "btrace2"}};
	int small[] = {arrive(m, 1), arrive(m, 1)}, large = arrive_of(m, 1, BYTES + 1);
	int more[] = {arrive(m, 1), arrive(m, 1)}, other = arrive(m, 2);
	struct tw_job_row rows[GROUP], again[GROUP];
	enum tw_status ends[GROUP];

	assert_int_equal(claim_group(m, rows), 4);
	for (int i = 0; i < 2; i++) {
		assert_true(has_id(rows, 4, m->jobs[small[i]].id));
		assert_true(has_id(rows, 4, m->jobs[more[i]].id));
	}
	assert_int_equal(claim_group(m, again), 1);
	assert_string_equal(again[0].trace_id, m->jobs[other].id);
	assert_int_equal(
	        tw_catalogue_job_publish(m->c, &again[0], &summaries[0], NULL, NULL), TW_OK);
	assert_int_equal(claim_group(m, again), 1); /* a large one is alone */
	assert_string_equal(again[0].trace_id, m->jobs[large].id);
	assert_int_equal(
	        tw_catalogue_job_publish(m->c, &again[0], &summaries[0], NULL, NULL), TW_OK);
	assert_int_equal(claim_group(m, again), 0);

	/* two return as if they had not been claimed; one fails, and is alone from then on */
	assert_int_equal(tw_catalogue_job_return(m->c, &rows[1], NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_return(m->c, &rows[2], NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_return(m->c, &rows[2], NULL), TW_CONFLICT);
	assert_int_equal(claim_group(m, again), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(again[i].attempts, 1);
		assert_true(has_id(rows + 1, 2, again[i].trace_id));
	}
	assert_int_equal(tw_catalogue_job_retry(m->c, &rows[3], NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_return(m->c, &again[0], NULL), TW_OK);
	assert_int_equal(tw_catalogue_jobs_recover(m->c, NULL), TW_OK); /* none waits now */
	assert_int_equal(claim_group(m, rows), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rows[i].attempts, 1);
	assert_int_equal(claim_group(m, again), 1);
	assert_int_equal(again[0].attempts, 2);

	/* one of a group was deleted, the claim of another ended */
	assert_int_equal(tw_catalogue_job_return(m->c, &rows[1], NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_jobs_publish(m->c, rows, summaries, NULL, 3, ends, NULL), TW_OK);
	assert_int_equal(ends[0], TW_OK);
	assert_int_equal(ends[1], TW_CONFLICT);
	assert_int_equal(ends[2], TW_OK);
	assert_int_equal(tw_catalogue_job_return(m->c, &rows[0], NULL), TW_CONFLICT);
	assert_int_equal(claim_group(m, again), 1);
	assert_string_equal(again[0].trace_id, rows[1].trace_id);
}

/* A server queues the jobs again that it does not know it claimed. */
static void test_a_lost_reply(void **state)
{
	struct model *m = *state;
	const struct tw_claim other = {TW_QUEUE_TRACES, "else", 100000, 0};
	struct tw_job_row rows[GROUP], of_other, again[GROUP];
	const char *held[] = {NULL, NULL};
	size_t n;

	for (int i = 0; i < 4; i++)
		(void)arrive(m, 1);
	assert_int_equal(tw_catalogue_queue_claim(m->c, &other, m->arena, &of_other, NULL), TW_OK);
	n = claim_group(m, rows);
	assert_int_equal(n, 3);
	held[0] = rows[0].trace_id;
	held[1] = "unknown";
	assert_int_equal(
	        tw_catalogue_jobs_release_except(m->c, TW_QUEUE_TRACES, "me", held, 2, NULL),
	        TW_OK);
	assert_int_equal(claim_group(m, again), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(again[i].attempts, 1);
		assert_true(has_id(rows + 1, 2, again[i].trace_id));
	}
	assert_int_equal(
	        tw_catalogue_jobs_release_except(m->c, TW_QUEUE_TRACES, "me", NULL, 0, NULL),
	        TW_OK);
	assert_int_equal(claim_group(m, again), 3);
	assert_false(has_id(again, 3, of_other.trace_id));
	assert_int_equal(
	        tw_catalogue_jobs_release_except(m->c, TW_QUEUE_MAPPINGS, "me", NULL, 0, NULL),
	        TW_OK);
	assert_int_equal(claim_group(m, again), 0);
}

/* More projects than one statement reads: each is served once a round, in the order of their ids.
 */
static void test_many_projects(void **state)
{
	enum { MANY = 75 };
	struct model *m = *state;
	struct tw_caller callers[MANY] = {{.scope = TW_SCOPE_INGEST}};
	const struct tw_part part = {"trace", "aa", "", BYTES};
	struct tw_trace_meta meta = tw_upload_meta_none();
	struct tw_job_row row;
	char id[TW_ID_BYTES], name[8];
	bool is_new;

	for (int i = 0; i < MANY; i++) {
		callers[i].scope = TW_SCOPE_INGEST;
		(void)snprintf(name, sizeof name, "m%d", i);
		assert_int_equal(
		        tw_catalogue_project(m->c, name, callers[i].project_id, &is_new, NULL),
		        TW_OK);
	}
	qsort(callers, MANY, sizeof *callers, by_id);
	for (int i = 0; i < 2 * MANY; i++) {
		const struct tw_arrival up = {.caller = &callers[MANY - 1 - i % MANY],
		        .key = "",
		        .meta = &meta,
		        .parts = &part,
		        .n_parts = 1};

		assert_int_equal(tw_catalogue_trace_add(m->c, &up, id, &is_new, NULL), TW_OK);
	}
	for (int i = 0; i < 2 * MANY; i++) {
		const struct tw_trace_summary summary = {.slices = 1, .format = "btrace2"};

		assert_int_equal(tw_catalogue_queue_claim(m->c,
		                         &(struct tw_claim){.owner = "me", .lease_ms = 100000},
		                         m->arena, &row, NULL),
		        TW_OK);
		assert_string_equal(row.project_id, callers[i % MANY].project_id);
		assert_int_equal(row.n_parts, 1);
		assert_string_equal(row.parts[0].sha256, "aa");
		assert_int_equal(tw_catalogue_job_publish(m->c, &row, &summary, NULL, NULL), TW_OK);
	}
	assert_int_equal(tw_catalogue_queue_claim(m->c,
	                         &(struct tw_claim){.owner = "me", .lease_ms = 100000}, m->arena,
	                         &row, NULL),
	        TW_NOT_FOUND);
}

/* --- how much may wait --- */

static enum tw_status send(struct model *m, struct tw_backlog *b, int project)
{
	struct tw_err err;
	enum tw_status st = tw_backlog_check(b, m->callers[project].project_id, BYTES, &err);

	if (st != TW_OK) {
		assert_int_equal(st, TW_BUSY);
		return st;
	}
	(void)arrive(m, project);
	tw_backlog_added(b, m->callers[project].project_id, BYTES);
	return TW_OK;
}

static int send_all(struct model *m, struct tw_backlog *b, int project)
{
	int n = 0;

	while (send(m, b, project) == TW_OK)
		n++;
	return n;
}

static void test_bound_of_traces(void **state)
{
	struct model *m = *state;
	struct tw_backlog *b = tw_backlog_new(m->c, &(struct tw_backlog_limits){10, 1 << 30});
	int all = 0;

	assert_int_equal(send_all(m, b, 0), 5); /* half for one that bursts alone */
	assert_int_equal(send_all(m, b, 1), 3);
	for (int p = 2; p < PROJECTS; p++)
		all += send_all(m, b, p);
	assert_int_equal(all, 2);
	b = tw_backlog_free(b);
	b = tw_backlog_new(m->c, &(struct tw_backlog_limits){10, 1 << 30});
	assert_int_equal(send(m, b, 5), TW_BUSY); /* the same by recounting */
	b = tw_backlog_free(b);
	for (int i = 0; i < 5; i++)
		finish(m, claim_and_check(m));
	b = tw_backlog_new(m->c, &(struct tw_backlog_limits){10, 1 << 30});
	assert_int_equal(send(m, b, 5), TW_OK);
	assert_null(tw_backlog_free(b));
	assert_null(tw_backlog_free(NULL));
}

static void test_bound_of_bytes(void **state)
{
	struct model *m = *state;
	struct tw_backlog *b = tw_backlog_new(m->c, &(struct tw_backlog_limits){1000, 4 * BYTES});
	const char *id = m->callers[0].project_id;
	struct tw_buf out;

	assert_int_equal(tw_backlog_check(b, id, 100 * BYTES, NULL), TW_OK); /* nothing waits */
	assert_int_equal(send(m, b, 0), TW_OK);
	assert_int_equal(tw_backlog_check(b, id, 100 * BYTES, NULL), TW_BUSY);
	assert_int_equal(tw_backlog_check(b, id, UINT64_MAX, NULL), TW_BUSY);
	assert_int_equal(tw_backlog_check_again(b, id, UINT64_MAX, NULL), TW_BUSY);
	assert_int_equal(send_all(m, b, 0), 1);
	assert_int_equal(send_all(m, b, 1), 1);
	tw_buf_init(&out, 4096);
	tw_backlog_metrics(b, &out);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(strstr((char *)out.data, "tracewell_queue_bytes 3000\n"));
	assert_non_null(strstr((char *)out.data, "tracewell_queue_refused_total 4\n"));
	assert_non_null(strstr((char *)out.data, "tracewell_decode_again_refused_total 1\n"));
	tw_buf_done(&out);
	(void)tw_backlog_free(b);
}

static void test_no_memory(void **state)
{
	struct model *m = *state;
	struct tw_backlog *b = NULL;
	bool met = false;

	tw_mem_fail_at(1);
	assert_null(tw_backlog_new(m->c, &(struct tw_backlog_limits){1, 1}));
	tw_mem_fail_at(0);
	(void)arrive(m, 0);
	for (unsigned n = 1; !met; n++) { /* an uncountable queue refuses no upload */
		b = tw_backlog_new(m->c, &(struct tw_backlog_limits){1, 1 << 20});
		tw_mem_fail_at(n);
		met = tw_backlog_check(b, m->callers[0].project_id, 1, NULL) == TW_BUSY;
		tw_mem_fail_at(0);
		(void)tw_backlog_free(b);
		assert_in_range(n, 1, 100);
	}
}

/* The dispatcher waits after a claim that found nothing, but not with a job that it has returned.
 */
static void test_returned_jobs_are_claimed_immediately(void **state)
{
	struct model *m = *state;
	struct tw_jobs *j = tw_mem_zalloc(1, sizeof *j);
	struct running r = {.used = true, .jobs = j};

	assert_non_null(j);
	j->parts.catalogue = m->c;
	(void)arrive(m, 0);
	assert_int_equal(tw_catalogue_queue_claim(m->c,
	                         &(struct tw_claim){.owner = "me", .lease_ms = 100000}, m->arena,
	                         &r.job, NULL),
	        TW_OK);
	assert_int_equal(claim(m), -1);
	j->claim_ms = INT64_MAX;
	assert_true(tw_run_return(j, &r));
	assert_int_equal(j->claim_ms, 0);
	assert_int_equal(claim(m), 0);
	tw_mem_free(j);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(test_turns),
        TEST(test_a_burst_delays_no_other_project),
        TEST(test_huge_traces_hold_up_by_their_share),
        TEST(test_shares_of_several_decoders),
        TEST(test_shares_go_by_the_clock),
        TEST(test_nothing_is_saved_up),
        TEST(test_lapsed_and_put_off),
        TEST(test_one_of_each_project),
        TEST(test_groups),
        TEST(test_a_lost_reply),
        TEST(test_returned_jobs_are_claimed_immediately),
        TEST(test_many_projects),
        TEST(test_bound_of_traces),
        TEST(test_bound_of_bytes),
        TEST(test_no_memory),
};

UNIT_TESTS("claim_turn", tests)
