/* Regressions of a simulated fleet are found in its rollups, stored once, and follow changes of
 * state by users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/catalogue/notify/catalogue_notify.h"
#include "server/fleet/regress_detect.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { TRACES = 3000, DAY0 = 20000, TODAY = DAY0 + SIM_DAYS - 1 };

struct session {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *c;
	struct tw_fleet_store *store;
	struct tw_db *db; /* next to it */
	struct tw_arena *arena;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	static struct session s;
	bool is_new;

	s = (struct session){.dir = "/dev/shm/tw-regress-XXXXXX"};
	if (!mkdtemp(s.dir)) {
		(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-regress-XXXXXX");
		assert_non_null(mkdtemp(s.dir));
	}
	s.c = catalogue_in(s.dir);
	assert_int_equal(tw_catalogue_project(s.c, "p", s.project, &is_new, NULL), TW_OK);
	s.store = tw_fleet_embedded_new(s.c);
	assert_non_null(s.store);
	s.db = catalogue_connect(s.dir);
	assert_true(sim_load(s.c, s.db, s.project, 0, TRACES, DAY0));
	s.arena = tw_arena_new(64 << 20);
	/* the method is one of two hundred: its share of a start is small */
	assert_int_equal(tw_catalogue_setting_set(s.c, s.project, TW_SETTING_REGRESSIONS,
	                         "{\"min_share\": 0}", NULL),
	        TW_OK);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	s->store = tw_fleet_store_free(s->store);
	tw_db_close(s->db);
	s->c = tw_catalogue_close(s->c);
	tw_arena_free(s->arena);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static const struct tw_regression_query live = {"", "", "", "", "",
        1U << TW_REGRESS_OPEN | 1U << TW_REGRESS_ACKNOWLEDGED | 1U << TW_REGRESS_RETURNED, 0};

static size_t query(
        struct session *s, const struct tw_regression_query *q, struct tw_regression **ret)
{
	size_t n = 0;

	tw_arena_reset(s->arena);
	assert_int_equal(tw_catalogue_regressions(s->c, s->project, q, TW_REGRESSIONS_MAX, "",
	                         s->arena, ret, &n, NULL, NULL),
	        TW_OK);
	return n;
}

static enum tw_status look(struct session *s, struct tw_regress_detected *ret)
{
	const struct tw_regress_task task = {s->project, TODAY, {NULL, NULL}, 0};

	return tw_regress_detect(s->store, &task, ret, NULL);
}

static bool soon(void *arg)
{
	unsigned *left = arg;

	return (*left)-- == 0;
}

static void test_a_detection_ends_in_time(void **state)
{
	struct session *s = *state;
	unsigned left = 10;
	const struct tw_regress_task task = {s->project, TODAY, {soon, &left}, 0};
	struct tw_regress_detected sums;
	struct tw_err err;

	assert_int_equal(tw_regress_detect(s->store, &task, &sums, &err), TW_DEADLINE);
	assert_true(sums.series > 0 && sums.series <= 11);
}

static void test_the_slower_method_is_found(void **state)
{
	struct session *s = *state;
	struct tw_regression_query q = live;
	struct tw_regress_detected sums;
	struct tw_regression *rows;
	size_t n;

	assert_int_equal(look(s, &sums), TW_OK);
	assert_true(sums.series > 300); /* two scenarios, two hundred methods each */
	assert_int_equal(sums.found, sums.fresh);
	q.method = "com.app.C0.m7";
	n = query(s, &q, &rows);
	assert_int_equal(n, 2); /* a scenario each */
	for (size_t i = 0; i < n; i++) {
		const struct tw_regress_found *f = &rows[i].of;

		assert_string_equal(f->base, "8.3.1");
		assert_string_equal(f->head, "8.3.2");
		assert_true(f->shift.low < 0.4 && f->shift.high > 0.4);
		assert_int_equal(rows[i].status, TW_REGRESS_OPEN);
		assert_int_equal(strlen(f->after_trace), TW_ROLLUP_ID);
	}
	assert_int_equal(query(s, &live, &rows), 2); /* and nothing else */
}

static void test_looking_again_finds_the_same(void **state)
{
	struct session *s = *state;
	struct tw_regress_detected sums;
	struct tw_regression *rows;

	assert_int_equal(look(s, &sums), TW_OK);
	assert_int_equal(sums.fresh, 0);
	assert_int_equal(sums.found, 2);
	assert_int_equal(query(s, &live, &rows), 2);
}

static enum tw_status triage_one(
        struct session *s, const char *project, const char *id, const struct tw_triage *what)
{
	return tw_catalogue_triage(
	        s->c, project, &(struct tw_triage_item){TW_TRIAGE_REGRESSION, id, *what}, 1, NULL);
}

/* One item that does not exist leaves the others unchanged, with their history. */
static void test_triage_changes_all_or_none(void **state)
{
	struct session *s = *state;
	const struct tw_triage fixed = {TW_REGRESS_FIXED, "9", "bob", "", 0};
	struct tw_regression *rows, one;
	struct tw_triage_item items[] = {{TW_TRIAGE_REGRESSION, "", fixed},
	        {TW_TRIAGE_ALERT, "none", fixed}, {TW_TRIAGE_ANR, "none", fixed}};
	char id[TW_ID_BYTES];

	assert_true(query(s, &live, &rows) > 0);
	(void)snprintf(id, sizeof id, "%s", rows[0].id);
	items[0].id = id;
	for (size_t other = 1; other < 3; other++) {
		items[1] = items[other];
		assert_int_equal(
		        tw_catalogue_triage(s->c, s->project, items, 2, NULL), TW_NOT_FOUND);
		assert_int_equal(
		        tw_catalogue_regression_get(s->c, s->project, id, s->arena, &one, NULL),
		        TW_OK);
		assert_int_equal(one.status, TW_REGRESS_OPEN);
		assert_string_equal(one.owner, "");
	}
}

static void test_decisions_of_people_stay(void **state)
{
	struct session *s = *state;
	struct tw_triage triage = {TW_REGRESS_ACKNOWLEDGED, "", "ann", "looking", 5000};
	struct tw_regression_query q = live;
	struct tw_regress_detected sums;
	struct tw_regression *rows, one;
	char id[TW_ID_BYTES];

	(void)query(s, &live, &rows);
	(void)snprintf(id, sizeof id, "%s", rows[0].id);
	assert_int_equal(triage_one(s, s->project, id, &triage), TW_OK);
	assert_int_equal(triage_one(s, s->project, "none", &triage), TW_NOT_FOUND);
	assert_int_equal(triage_one(s, "other", id, &triage), TW_NOT_FOUND);
	assert_int_equal(look(s, &sums), TW_OK);
	assert_int_equal(
	        tw_catalogue_regression_get(s->c, s->project, id, s->arena, &one, NULL), TW_OK);
	assert_int_equal(one.status, TW_REGRESS_ACKNOWLEDGED);
	assert_string_equal(one.owner, "ann");
	q.owner = "ann";
	assert_int_equal(query(s, &q, &rows), 1);
	q.unmuted_at_ms = 4999;
	assert_int_equal(query(s, &q, &rows), 0);
	q.unmuted_at_ms = 5000;
	assert_int_equal(query(s, &q, &rows), 1);
}

static struct tw_regress_found finding(const char *base, const char *head, int64_t day)
{
	return (struct tw_regress_found){.app = "a",
	        .scenario = "s",
	        .method = "m",
	        .descriptor = "",
	        .base = base,
	        .head = head,
	        .day = day,
	        .percentile = 50,
	        .before_ns = 10,
	        .after_ns = 20,
	        .fixed_in = ""};
}

static void keep(struct session *s, const struct tw_regress_found *f, uint64_t fresh)
{
	uint64_t n = 0;

	assert_int_equal(tw_catalogue_regression_store(s->c, s->project, f, 1, &n, NULL), TW_OK);
	assert_int_equal(n, fresh);
}

static void test_fixed_and_back(void **state)
{
	struct session *s = *state;
	struct tw_regression_query q = {"", "", "m", "", "", 15, 0};
	struct tw_regress_found f = finding("1", "2", 100);
	struct tw_regression *rows;

	keep(s, &f, 1);
	f.fixed_in = "3";
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_FIXED);
	assert_string_equal(rows[0].of.fixed_in, "3");
	f = finding("3", "4", 120);
	keep(s, &f, 1);
	assert_int_equal(query(s, &q, &rows), 2);
	assert_int_equal(rows[0].status, TW_REGRESS_RETURNED);
	assert_string_equal(rows[0].earlier, rows[1].id);
}

static size_t reported(struct session *s, const char *id, struct tw_regression_entry **ret)
{
	size_t n = 0;

	assert_int_equal(
	        tw_catalogue_regression_history(s->c, s->project, id, s->arena, ret, &n, NULL),
	        TW_OK);
	return n;
}

static void test_who_opens_it_again_is_not_overruled(void **state)
{
	struct session *s = *state;
	const struct tw_triage open = {TW_REGRESS_OPEN, "5", "", "", 0};
	struct tw_regression_query q = {"", "", "n", "", "", 15, 0};
	struct tw_regress_found f = finding("3", "4", 400);
	struct tw_regression_entry *entries;
	struct tw_regression *rows;
	char id[TW_ID_BYTES];

	f.method = "n";
	keep(s, &f, 1);
	f.fixed_in = "5";
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	(void)snprintf(id, sizeof id, "%s", rows[0].id);
	assert_int_equal(reported(s, id, &entries), 2);
	assert_string_equal(entries[0].author, "tracewell");
	assert_string_equal(entries[0].version, "5");
	assert_int_equal(entries[0].event, TW_HOOK_FIXED);
	assert_int_equal(triage_one(s, s->project, id, &open), TW_OK);
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_OPEN);
	assert_int_equal(reported(s, id, &entries), 3);
	f.fixed_in = "6"; /* it was there when it was opened again, and passes first today */
	f.fixed_from = 420;
	keep(s, &f, 0);
	f.fixed_in = "5";
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_OPEN);
	assert_int_equal(reported(s, id, &entries), 3);
	f.fixed_in = "7"; /* a version that comes after it is news */
	f.fixed_from = tw_unix_ms() / TW_DAY_MS;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_FIXED);
}

static void test_a_persons_version_stays(void **state)
{
	struct session *s = *state;
	const struct tw_triage mine = {TW_REGRESS_FIXED, "8.4-rc1", "", "", 0};
	struct tw_regression_query q = {"", "", "o", "", "", 15, 0};
	struct tw_regress_found f = finding("3", "4", 400);
	struct tw_regression_entry *entries;
	struct tw_regression *rows;
	char id[TW_ID_BYTES];

	f.method = "o";
	keep(s, &f, 1);
	assert_int_equal(query(s, &q, &rows), 1);
	(void)snprintf(id, sizeof id, "%s", rows[0].id);
	assert_int_equal(triage_one(s, s->project, id, &mine), TW_OK);
	f.fixed_in = "5";
	f.fixed_from = tw_unix_ms() / TW_DAY_MS;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_string_equal(rows[0].of.fixed_in, "8.4-rc1");
	assert_int_equal(reported(s, id, &entries), 2);
}

/* The day moves by some from look to look. */
static void test_days_that_were_reported(void **state)
{
	struct session *s = *state;
	const struct tw_triage open = {TW_REGRESS_OPEN, "", "", "", 0};
	struct tw_regression_query q = {"", "", "p", "", "", 15, 0};
	struct tw_regress_found f = finding("", "", 400);
	struct tw_regression *rows;
	char id[TW_ID_BYTES];

	f.method = "p";
	keep(s, &f, 1);
	f.fixed_day = 410;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_FIXED);
	(void)snprintf(id, sizeof id, "%s", rows[0].id);
	assert_int_equal(triage_one(s, s->project, id, &open), TW_OK);
	f.fixed_day = 412;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_OPEN);
	f.fixed_day = tw_unix_ms() / TW_DAY_MS + 1;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), 1);
	assert_int_equal(rows[0].status, TW_REGRESS_FIXED);
}

static void test_days_that_are_near_are_one(void **state)
{
	struct session *s = *state;
	struct tw_regression_query q = {"", "", "m", "", "", 15, 0};
	struct tw_regress_found f = finding("", "", 300);
	struct tw_regression *rows;
	size_t before = query(s, &q, &rows);

	keep(s, &f, 1);
	f.day = 302;
	keep(s, &f, 0);
	assert_int_equal(query(s, &q, &rows), before + 1);
	assert_int_equal(rows[0].of.day, 302);
	f.day = 310;
	keep(s, &f, 1);
}

/* Of a hundred days, in how many has the interval the true quantile in it; days without one are not
 * counted. */
static unsigned covered(uint64_t seed, unsigned traces, unsigned percent, unsigned *ret_days)
{
	static struct tw_sketch s;
	const int64_t truth = 10000000 + 100000 * (int64_t)percent;
	unsigned in = 0;

	*ret_days = 0;
	for (unsigned day = 0; day < 400; day++) {
		struct tw_trend_quantile q;

		tw_sketch_clear(&s);
		for (unsigned i = 0; i < traces; i++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			tw_sketch_add(&s, 10000000 + (int64_t)((seed >> 33) % 10000001));
		}
		q = tw_trend_quantile_of(&s, percent);
		if (q.low < 0)
			continue;
		++*ret_days; /* within the width of a bucket */
		in += (double)q.low <= (double)truth * (1 + TW_SKETCH_ERROR) &&
		      (double)q.high >= (double)truth * (1 - TW_SKETCH_ERROR);
	}
	return in;
}

static void test_intervals_of_days(void **state)
{
	static const struct {
		unsigned traces, percentile;
	} cases[] = {{20, 50}, {35, 50}, {200, 50}, {1000, 50}, {150, 95}, {1000, 95}};
	unsigned days;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned in = covered(i + 1, cases[i].traces, cases[i].percentile, &days);

		assert_int_equal(days, 400);
		if (in < 368) /* 95 of 100, less four errors of counting so */
			fail_msg("%u of 400 for p%u of %u", in, cases[i].percentile,
			        cases[i].traces);
	}
	(void)covered(9, 5, 50, &days); /* five values are too few for a median, and 40 for a p95 */
	assert_int_equal(days, 0);
	(void)covered(9, 40, 95, &days);
	assert_int_equal(days, 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_detection_ends_in_time),
        cmocka_unit_test(test_the_slower_method_is_found),
        cmocka_unit_test(test_looking_again_finds_the_same),
        cmocka_unit_test(test_triage_changes_all_or_none),
        cmocka_unit_test(test_decisions_of_people_stay),
        cmocka_unit_test(test_fixed_and_back),
        cmocka_unit_test(test_who_opens_it_again_is_not_overruled),
        cmocka_unit_test(test_a_persons_version_stays),
        cmocka_unit_test(test_days_that_were_reported),
        cmocka_unit_test(test_days_that_are_near_are_one),
        cmocka_unit_test(test_intervals_of_days),
};

UNIT_TESTS_WITH("regress_detect", tests, setup, teardown)
