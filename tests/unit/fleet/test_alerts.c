/* Evaluates alert rules on the test's own store: what ends an alert and what does not, and
 * rules that fail or take too long. */
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

#include "server/base/config.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/derive/stages.h"
#include "tests/unit/catalogue_fixture.h"
#include "tests/unit/unit.h"

enum { VERSIONS_MAX = 200, LIMIT_MS = 800, LEAST = 20, RULES = 3 };
#define MS ((int64_t)1000000)

static struct {
	char dir[64], project[TW_ID_BYTES];
	struct tw_catalogue *catalogue;
	struct tw_fleet_store store;
	struct tw_db *db; /* next to it */
	struct {
		char name[16];
		uint64_t traces;
		int64_t ms;
	} versions[VERSIONS_MAX];
	size_t n_versions;
	char *fails;               /* the rule of this scenario; NULL: none */
	int looks, until;          /* rules so far in this look; how many are in time */
	char taken[RULES * 4 + 1]; /* scenarios of the rules with figures */
} s;

/* --- the store --- */

static enum tw_status cells(struct tw_fleet_store *store, const struct tw_fleet_query *query,
        struct tw_arena *a, struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err)
{
	(void)store;
	s.looks++;
	if (s.fails && strcmp(s.fails, query->filter.scenario) == 0)
		return tw_fail(err, TW_BUSY, "the store is away");
	*ret = tw_arena_zalloc(a, s.n_versions + 1, sizeof **ret);
	*ret_n = s.n_versions;
	for (size_t i = 0; i < s.n_versions; i++) {
		struct tw_rollup_cell *c = &(*ret)[i];

		c->dims =
		        (struct tw_rollup_dims){.app = "shop", .version_name = s.versions[i].name};
		c->traces = s.versions[i].traces;
		c->deltas = tw_arena_zalloc(a, 1, sizeof *c->deltas);
		c->deltas->trace_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
		c->deltas->duration_ns = s.versions[i].ms * MS;
		c->n_deltas = 1;
	}
	return TW_OK;
}

static const struct tw_fleet_engine engine = {.name = "test", .cells = cells};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int setup(void **state)
{
	bool is_new;

	(void)state;
	memset(&s, 0, sizeof s);
	(void)snprintf(s.dir, sizeof s.dir, "/tmp/tw-alerts-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	s.catalogue = catalogue_in(s.dir);
	s.store = (struct tw_fleet_store){&engine, s.catalogue};
	s.db = catalogue_connect(s.dir);
	s.until = RULES;
	assert_int_equal(tw_catalogue_project(s.catalogue, "p", s.project, &is_new, NULL), TW_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(s.fails);
	tw_db_close(s.db);
	s.catalogue = tw_catalogue_close(s.catalogue);
	(void)nftw(s.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void add_rule(const char *scenario)
{
	const struct tw_alert_rule rule = {.name = scenario,
	        .app = "",
	        .scenario = scenario,
	        .version_name = "",
	        .method = "",
	        .author = "",
	        .kind = TW_ALERT_duration,
	        .percentile = 95,
	        .days = 7,
	        .threshold = (int64_t)LIMIT_MS * TW_ALERT_MICRO,
	        .min_traces = LEAST};
	char id[TW_ID_BYTES];

	assert_int_equal(
	        tw_catalogue_alert_rule_add(s.catalogue, s.project, &rule, id, NULL), TW_OK);
}

static void set_version(size_t i, const char *name, uint64_t traces, int64_t ms)
{
	(void)snprintf(s.versions[i].name, sizeof s.versions[i].name, "%s", name);
	s.versions[i].traces = traces;
	s.versions[i].ms = ms;
	s.n_versions = i + 1 > s.n_versions ? i + 1 : s.n_versions;
}

/* --- looks --- */

static bool is_late(void *arg)
{
	(void)arg;
	return s.looks >= s.until;
}

static void take(void *arg, const struct tw_alert_rule *rule, const struct tw_alert_figure *figures,
        size_t n)
{
	(void)arg, (void)figures;
	if (n)
		(void)strncat(s.taken, rule->scenario, sizeof s.taken - strlen(s.taken) - 1);
}

static enum tw_status look(size_t first, bool *ret_partial)
{
	const struct tw_deadline deadline = {is_late, NULL};
	const struct tw_alerts_listener listener = {take, NULL};

	s.looks = 0;
	s.taken[0] = '\0';
	return tw_alerts_evaluate(&s.store, s.project,
	        &(struct tw_alerts_how){first, &deadline, &listener, false}, ret_partial, NULL);
}

static void look_healthy(void)
{
	bool partial;

	s.until = RULES + 1;
	assert_int_equal(look(0, &partial), TW_OK);
	assert_false(partial);
}

/* Of the one version "1": the number of events so far, and its status. */
static void is_now(int64_t notified, enum tw_regress_status status)
{
	assert_int_equal(
	        catalogue_number(s.db, "SELECT notified FROM alert WHERE subject='1'"), notified);
	assert_int_equal(
	        catalogue_number(s.db, "SELECT status FROM alert WHERE subject='1'"), status);
}

static void a_day_later(void)
{
	catalogue_run(s.db, "UPDATE alert SET notified_ms=notified_ms-86400000");
}

static void few_traces_end_nothing(void **state)
{
	(void)state;
	add_rule("a");
	set_version(0, "1", LEAST - 1, 900);
	look_healthy();
	assert_int_equal(catalogue_number(s.db, "SELECT count(*) FROM alert"), 0);
	set_version(0, "1", LEAST, 900);
	look_healthy();
	is_now(1, TW_REGRESS_OPEN);
	set_version(0, "1", LEAST - 1, 900);
	look_healthy();
	is_now(1, TW_REGRESS_OPEN);
	assert_string_equal(s.taken, "a");
	set_version(0, "1", LEAST - 1, 500);
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
	a_day_later();
	set_version(0, "1", LEAST - 1, 900);
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
	set_version(0, "1", LEAST, 900);
	look_healthy();
	is_now(3, TW_REGRESS_RETURNED);
}

static void no_traces_end_it(void **state)
{
	(void)state;
	add_rule("a");
	set_version(0, "1", LEAST, 900);
	look_healthy();
	s.n_versions = 0;
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
	a_day_later();
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
	set_version(0, "1", LEAST, 900);
	look_healthy();
	is_now(3, TW_REGRESS_RETURNED);
}

static void larger_versions_do_not_hide_it(void **state)
{
	(void)state;
	add_rule("a");
	set_version(0, "1", LEAST, 900);
	look_healthy();
	for (size_t i = 1; i < VERSIONS_MAX; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "9.%zu", i);
		set_version(i, name, 10 * (uint64_t)LEAST, 100);
	}
	look_healthy();
	is_now(1, TW_REGRESS_OPEN);
	set_version(0, "1", LEAST, 500);
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
}

static void later_alerts_do_not_hide_it(void **state)
{
	(void)state;
	add_rule("a");
	set_version(0, "1", LEAST, 900);
	look_healthy();
	catalogue_run(s.db,
	        "INSERT INTO alert(project_id,alert_id,rule_id,app,subject,title,trace_id,"
	        "value_micro,traces,is_over,status,first_ms,last_ms) WITH RECURSIVE n(i) AS"
	        " (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) SELECT project_id,"
	        " 'other' || i, rule_id, app, 'other' || i, '', '', 1, 1, 0, 2, first_ms,"
	        " last_ms+1 FROM alert CROSS JOIN n");
	set_version(0, "1", LEAST, 500);
	look_healthy();
	is_now(2, TW_REGRESS_FIXED);
}

/* --- trying --- */

static bool is_tried_over(const char *rule_id, int64_t limit_ms)
{
	const struct tw_alert_rule rule = {.id = rule_id,
	        .name = "",
	        .app = "",
	        .scenario = "a",
	        .version_name = "",
	        .method = "",
	        .author = "",
	        .kind = TW_ALERT_duration,
	        .percentile = 95,
	        .days = 7,
	        .threshold = limit_ms * TW_ALERT_MICRO,
	        .min_traces = LEAST};
	const struct tw_deadline deadline = {is_late, NULL};
	struct tw_arena *a = tw_arena_new(TW_ALERTS_ARENA_MAX);
	struct tw_alert_figure *figures = NULL;
	size_t n = 0;
	bool over;

	s.until = RULES;
	s.looks = 0;
	assert_int_equal(
	        tw_alerts_try(&s.store, s.project, &rule, &deadline, a, &figures, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(figures[0].subject, "1");
	assert_in_range(figures[0].value / TW_ALERT_MICRO, 900 - 900 / 64, 900 + 900 / 64);
	over = figures[0].is_over;
	tw_arena_free(a);
	return over;
}

static void trying_stores_nothing(void **state)
{
	char *id;

	(void)state;
	set_version(0, "1", LEAST, 900);
	set_version(1, "2", LEAST - 1, 900);
	assert_true(is_tried_over("", 800));
	assert_false(is_tried_over("", 1000));
	assert_int_equal(catalogue_number(s.db, "SELECT count(*) FROM alert"), 0);
	add_rule("a");
	look_healthy();
	is_now(1, TW_REGRESS_OPEN);
	id = catalogue_text(s.db, "SELECT rule_id FROM alert_rule");
	assert_true(is_tried_over(id, 950)); /* not a tenth below */
	assert_false(is_tried_over("", 950));
	assert_false(is_tried_over(id, 1100));
	is_now(1, TW_REGRESS_OPEN);
	free(id);
}

/* --- rules in a row --- */

static void add_rules(void)
{
	add_rule("a");
	add_rule("b");
	add_rule("c");
	set_version(0, "1", LEAST, 900);
}

static void a_failing_rule_stops_no_other(void **state)
{
	bool partial;

	(void)state;
	add_rules();
	s.until = RULES + 1;
	s.fails = catalogue_text(s.db, "SELECT scenario FROM alert_rule ORDER BY rule_id LIMIT 1");
	assert_int_equal(look(0, &partial), TW_BUSY);
	assert_int_equal(strlen(s.taken), 2);
	assert_null(strchr(s.taken, *s.fails));
}

/* The second rule of each look is too slow. */
static void each_rule_comes_first_in_turn(void **state)
{
	char seen[RULES + 1] = "";
	bool partial;

	(void)state;
	add_rules();
	s.until = 2;
	for (size_t i = 0; i < RULES; i++) {
		assert_int_equal(look(RULES + i, &partial), TW_OK);
		assert_true(partial);
		assert_int_equal(strlen(s.taken), 1);
		assert_null(strchr(seen, *s.taken));
		(void)strncat(seen, s.taken, sizeof seen - strlen(seen) - 1);
	}
	s.until = RULES + 1;
	assert_int_equal(look(1, &partial), TW_OK);
	assert_false(partial);
	assert_int_equal(strlen(s.taken), RULES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {TEST(few_traces_end_nothing), TEST(no_traces_end_it),
        TEST(larger_versions_do_not_hide_it), TEST(later_alerts_do_not_hide_it),
        TEST(trying_stores_nothing), TEST(a_failing_rule_stops_no_other),
        TEST(each_rule_comes_first_in_turn)};

UNIT_TESTS("alerts", tests)
