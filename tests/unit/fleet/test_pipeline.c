/* The scheduler of derived data: turns of projects, what fails is postponed, stopping, and a lease
 * that is lost in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/config.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { PROJECTS = 3, TURNS_MAX = 200, DAY0 = 20000 };

static struct {
	char dir[64], projects[PROJECTS][TW_ID_BYTES];
	struct tw_catalogue *catalogue;
	struct tw_db *db; /* next to it */
	struct tw_pipeline *pipeline;
	_Atomic int left[PROJECTS]; /* turns with work; below 0: it fails */
	_Atomic size_t n_turns;
	_Atomic int turns[TURNS_MAX]; /* whose they were */
	_Atomic bool leads, blocks, blocked;
	_Atomic int raised, tended, asked; /* asked: of leads() */
} s;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int setup(void **state)
{
	static const char *const names[] = {"p", "q", "r"};
	bool is_new;

	(void)state;
	memset(&s, 0, sizeof s);
	(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-pipeline-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	s.catalogue = catalogue_in(s.dir);
	s.db = catalogue_connect(s.dir);
	for (int i = 0; i < PROJECTS; i++)
		assert_int_equal(
		        tw_catalogue_project(s.catalogue, names[i], s.projects[i], &is_new, NULL),
		        TW_OK);
	qsort(s.projects, PROJECTS, TW_ID_BYTES, by_id);
	s.leads = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	s.pipeline = tw_pipeline_stop(s.pipeline);
	tw_db_close(s.db);
	s.catalogue = tw_catalogue_close(s.catalogue);
	(void)nftw(s.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static bool leads(const struct tw_lease *lease)
{
	(void)lease;
	s.asked++;
	return s.leads;
}

static void wait_a_little(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* --- a stage that counts its turns --- */

static int index_of(const char *project_id)
{
	for (int i = 0; i < PROJECTS; i++)
		if (strcmp(s.projects[i], project_id) == 0)
			return i;
	return -1;
}

static enum tw_status run_counted(
        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err)
{
	const int i = index_of(t->project_id);

	assert_ptr_equal(((const struct tw_derive_parts *)state)->catalogue, s.catalogue);
	if (s.left[i] == 0)
		return TW_OK;
	if (s.n_turns < TURNS_MAX)
		s.turns[s.n_turns++] = i;
	if (s.left[i] < 0) {
		*ret_more = true; /* which a failure does not count for */
		return tw_fail(err, TW_BUSY, "the store is away");
	}
	while (s.blocks && !tw_turn_is_over(t)) {
		s.blocked = true;
		wait_a_little();
	}
	*ret_more = true;
	s.left[i]--;
	return TW_OK;
}

static enum tw_status maintain_counted(
        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err)
{
	(void)state, (void)ret_more, (void)err;
	assert_string_equal(t->project_id, "");
	s.tended++;
	return TW_OK;
}

static const struct tw_stage counted = {.name = "counted",
        .depends = TW_RAISED_BY_DECODER,
        .raises = TW_RAISED_BY_ROLLUP,
        .all = "project",
        .run = run_counted,
        .maintain = maintain_counted};

static enum tw_status run_raised(
        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err)
{
	(void)state, (void)t, (void)ret_more, (void)err;
	s.raised++;
	return TW_OK;
}

static const struct tw_stage follows = {
        .name = "follows", .depends = TW_RAISED_BY_ROLLUP, .all = "project", .run = run_raised};

static void start(const struct tw_stage *const *stages)
{
	assert_int_equal(
	        tw_pipeline_start(&(struct tw_pipeline_setup){.parts = {.catalogue = s.catalogue},
	                                  .stages = stages,
	                                  .leads = leads},
	                &s.pipeline, NULL),
	        TW_OK);
}

static void start_counted(void)
{
	static const struct tw_stage *const stages[] = {&counted, NULL};

	start(stages);
}

static void wait_for(int a, int b, int c)
{
	while (s.left[0] != a || s.left[1] != b || s.left[2] != c)
		wait_a_little();
}

/* --- tests --- */

/* One with a hundred turns to do takes no more of them than the others while those have any. */
static void test_projects_take_turns(void **state)
{
	(void)state;
	s.left[0] = 100;
	s.left[1] = 3;
	s.left[2] = 2;
	start_counted();
	wait_for(0, 0, 0);
	assert_int_equal(s.n_turns, 105);
	for (int i = 0; i < 8; i++)
		assert_int_equal(s.turns[i], i < 6 ? i % 3 : i - 6);
	for (int i = 8; i < 105; i++)
		assert_int_equal(s.turns[i], 0);
	assert_true(s.tended >= 100); /* in each round */
}

static enum tw_status open_fails(
        const struct tw_derive_parts *parts, void **ret, struct tw_err *err)
{
	(void)parts, (void)ret;
	return tw_fail(err, TW_IO, "refused");
}

static void test_a_stage_that_cannot_start(void **state)
{
	static const struct tw_stage refused = {.name = "refused", .open = open_fails};
	static const struct tw_stage *const stages[] = {&counted, &refused, NULL};
	struct tw_pipeline *p = NULL;

	(void)state;
	assert_int_equal(
	        tw_pipeline_start(&(struct tw_pipeline_setup){.parts = {.catalogue = s.catalogue},
	                                  .stages = stages,
	                                  .leads = leads},
	                &p, NULL),
	        TW_IO);
	assert_null(p);
}

/* A project that fails delays no other, and is not tried again at once. */
static void test_what_fails_is_postponed(void **state)
{
	struct tw_buf out;

	(void)state;
	s.left[0] = -1;
	s.left[1] = 5;
	s.left[2] = 1;
	start_counted();
	wait_for(-1, 0, 0);
	for (int i = 0; i < 3; i++) { /* also when it is woken */
		int tended = s.tended;

		tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
		while (s.tended == tended)
			wait_a_little();
	}
	assert_int_equal(s.n_turns, 7);
	assert_int_equal(s.turns[0], 0);
	tw_buf_init(&out, 1 << 16);
	assert_int_equal(tw_pipeline_metrics(s.pipeline, s.catalogue, &out, NULL), TW_OK);
	assert_int_equal(tw_buf_add_u8(&out, 0), TW_OK);
	assert_non_null(strstr((const char *)out.data,
	        "tracewell_stage_postponed_projects{stage=\"counted\",project=\""));
	assert_non_null(strstr((const char *)out.data, "reason=\"busy\"} 1"));
	tw_buf_done(&out);
}

static void test_a_stop_does_not_wait_for_the_rest(void **state)
{
	(void)state;
	s.left[0] = s.left[1] = 50;
	s.blocks = true;
	start_counted();
	while (!s.blocked)
		wait_a_little();
	s.pipeline = tw_pipeline_stop(s.pipeline);
	assert_int_equal(s.n_turns, 1);
	assert_int_equal(s.left[0], 49);
}

/* The turn ends, no other begins, and work resumes once the lease is back. */
static void test_a_lost_lease_ends_the_turn(void **state)
{
	(void)state;
	s.left[0] = s.left[1] = 3;
	s.blocks = true;
	start_counted();
	while (!s.blocked)
		wait_a_little();
	s.leads = false;
	while (s.left[0] != 2)
		wait_a_little();
	s.blocks = false;
	for (int i = 0; i < 5; i++) {
		const int asked = s.asked;

		tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
		while (s.asked == asked)
			wait_a_little();
	}
	assert_int_equal(s.n_turns, 1);
	s.leads = true;
	tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
	wait_for(0, 0, 0);
	assert_int_equal(s.n_turns, 6);
}

static void test_stages_wake_those_that_depend_on_them(void **state)
{
	static const struct tw_stage *const stages[] = {&counted, &follows, NULL};
	int before;

	(void)state;
	start(stages);
	while (s.tended < 1 || s.raised < PROJECTS)
		wait_a_little();
	before = s.raised;
	s.left[1] = 1;
	tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
	wait_for(0, 0, 0);
	while (s.raised == before)
		wait_a_little();
}

/* After the start, only projects with waiting traces, changed rules or more work are served. */
static void test_idle_projects_are_not_served(void **state)
{
	static struct tw_stage of_traces;
	static const struct tw_stage *const stages[] = {&of_traces, NULL};

	(void)state;
	of_traces = counted;
	of_traces.sql = tw_stage_rollup.sql;
	for (int i = 0; i < PROJECTS; i++)
		s.left[i] = 1;
	start(stages);
	wait_for(0, 0, 0);
	for (int i = 0; i < 2; i++) { /* a complete round: they have no more work */
		const int tended = s.tended;

		tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
		while (s.tended == tended)
			wait_a_little();
	}
	for (int i = 0; i < PROJECTS; i++)
		s.left[i] = 2;
	assert_int_equal(
	        tw_catalogue_setting_set(s.catalogue, s.projects[1], "frames", "{}", NULL), TW_OK);
	tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
	wait_for(2, 0, 2);
	assert_true(sim_rows(s.db, s.projects[2], 0, 1, DAY0));
	tw_pipeline_wake(s.pipeline, TW_RAISED_BY_DECODER);
	wait_for(2, 0, 0);
}

/* --- traces --- */

static enum tw_status run_traces(
        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_named_trace *traces = NULL;
	struct tw_err why;
	size_t n = 0;
	enum tw_status st = tw_turn_traces(t, 2, a, &traces, &n, err);

	(void)state;
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		const bool may_pass = s.n_turns++ % 2 == 0;

		(void)tw_fail(&why, may_pass ? TW_IO : TW_CORRUPT, "it cannot be read");
		st = tw_turn_failed(t, &traces[i], tw_is_temporary(why.code), &why, err);
	}
	*ret_more = n > 0;
	tw_arena_free(a);
	return st;
}

/* A trace that fails leaves the queue: for a while, or for good. */
static void test_traces_that_fail_leave_the_queue(void **state)
{
	struct tw_stage failing = {.name = "rollup", .sql = tw_stage_rollup.sql, .run = run_traces};
	const struct tw_derive_parts parts = {.catalogue = s.catalogue};
	struct tw_stage_waiting w;

	(void)state;
	assert_true(sim_rows(s.db, s.projects[0], 0, 6, DAY0));
	assert_true(sim_rows(s.db, s.projects[2], 6, 10, DAY0));
	assert_int_equal(tw_stage_drain(&failing, &parts, NULL, NULL), TW_OK);
	assert_int_equal(s.n_turns, 10);
	assert_int_equal(tw_catalogue_stage_waiting(s.catalogue, failing.sql, "", &w, NULL), TW_OK);
	assert_int_equal(w.traces, 0);
	assert_int_equal(w.postponed, 5);
	assert_string_equal(w.why[0].reason, tw_status_name(TW_IO));
	assert_int_equal(
	        catalogue_number(s.db, "SELECT count(*) FROM trace WHERE rollup_state=2"), 5);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_projects_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_fails_is_postponed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stage_that_cannot_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_does_not_wait_for_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lost_lease_ends_the_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(
                test_stages_wake_those_that_depend_on_them, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_projects_are_not_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_traces_that_fail_leave_the_queue, setup, teardown),
};

UNIT_TESTS("pipeline", tests)
