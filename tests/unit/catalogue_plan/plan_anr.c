#include "tests/unit/catalogue_plan/plan_anr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/traces/catalogue_trace.h"

static const struct tw_rollup_filter any = {"", "", "", "", "", "", "", 0, INT32_MAX};

static void use_groups(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_anr_group *groups, group;
	struct tw_anr_slice *slices;
	struct tw_anr_exemplar *exemplars;
	struct tw_anr_sums sums;
	size_t n;

	assert_int_equal(tw_catalogue_anr_groups(c, project, &any, a, &groups, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(groups[0].count, 1);
	assert_int_equal(tw_catalogue_anr_groups_name(c, project, a, groups, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(groups[0].title, "T");
	groups[0].newest = "deleted since";
	assert_int_equal(tw_catalogue_anr_groups_name(c, project, a, groups, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(
	        tw_catalogue_anr_group(c, project, &any, groups[0].key, a, &group, NULL), TW_OK);
	assert_string_equal(group.title, "T");
	assert_int_equal(
	        tw_catalogue_anr_group(c, project, &any, "none", a, &group, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_anr_sums(c, project, &any, 7, &sums, NULL), TW_OK);
	assert_int_equal(sums.pending, 0);
	assert_int_equal(tw_catalogue_anr_sums(c, project, &any, 8, &sums, NULL), TW_OK);
	assert_int_equal(sums.pending, 1);
	assert_int_equal(
	        tw_catalogue_anr_days(c, project, &any, groups, 1, a, &slices, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	for (int by = TW_ANR_BY_VERSION; by <= TW_ANR_BY_KIND; by++) {
		assert_int_equal(tw_catalogue_anr_slices(c, project, &any, "k", (enum tw_anr_by)by,
		                         a, &slices, &n, NULL),
		        TW_OK);
		assert_int_equal(n, 1);
	}
	assert_int_equal(
	        tw_catalogue_anr_exemplars(c, project, &any, "k", a, &exemplars, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_true(exemplars[0].there);
}

static void use_locks(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	const struct tw_lock_query q = {.filter = &any, .name = ""};
	struct tw_lock_row *rows;
	size_t n;

	assert_int_equal(tw_catalogue_locks(c, project, &q, a, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].owner, "a.B.c");
	assert_int_equal(rows[0].total_ns, 5);
	for (int by_day = 0; by_day < 2; by_day++) {
		assert_int_equal(
		        tw_catalogue_lock_series(c, project, &q, by_day, a, &rows, &n, NULL),
		        TW_OK);
		assert_int_equal(n, 1);
	}
}

static void use_rules(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	static const char kind[] = TW_RULESET_ANR;
	const struct tw_ruleset first = {.value = "{}", .author = "me"};
	const struct tw_ruleset second = {.value = "[]", .author = "me"};
	struct tw_ruleset rules, *versions;
	struct tw_err err;
	size_t n;

	assert_int_equal(tw_catalogue_ruleset(c, project, kind, 0, a, &rules, NULL), TW_OK);
	assert_null(rules.value);
	assert_int_equal(tw_catalogue_ruleset_put(c, project, kind, 0, &first, NULL), TW_OK);
	assert_int_equal(tw_catalogue_ruleset_put(c, project, kind, 0, &second, &err), TW_CONFLICT);
	assert_int_equal(tw_catalogue_ruleset_put(c, project, kind, -1, &second, NULL), TW_OK);
	assert_int_equal(tw_catalogue_ruleset(c, project, kind, 1, a, &rules, NULL), TW_OK);
	assert_string_equal(rules.value, "{}");
	assert_int_equal(tw_catalogue_ruleset(c, project, kind, 3, a, &rules, &err), TW_NOT_FOUND);
	assert_int_equal(
	        tw_catalogue_ruleset_versions(c, project, kind, a, &versions, &n, NULL), TW_OK);
	assert_int_equal(n, 2);
	assert_int_equal(
	        tw_catalogue_ruleset(c, project, TW_RULESET_DETECTORS, 0, a, &rules, NULL), TW_OK);
	assert_null(rules.value);
}

static void key_all(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_anr_stale *stale;
	struct tw_anr_cause cause = {.base = "k",
	        .key = "k",
	        .kind = "io",
	        .name = "",
	        .title = "T",
	        .verdict = "v",
	        .detail = "{}"};
	size_t n;

	assert_int_equal(tw_catalogue_anr_stale(c, project, 7, 9, a, &stale, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(stale[0].n_locks, 1);
	assert_int_equal(stale[0].brief.len, 5);
	assert_int_equal(tw_catalogue_anr_keyed(c, stale, 7, &cause, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_stale(c, project, 7, 9, a, &stale, &n, NULL), TW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(tw_catalogue_anr_stale(c, project, 8, 9, a, &stale, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
}

static void count_all(struct tw_catalogue *c, const char *project)
{
	/* first all are counted, then all packed */
	for (int64_t now_ms = 0; now_ms <= INT64_MAX / 2; now_ms += INT64_MAX / 2) {
		const struct tw_anr_rollup_due due = {project, 7, now_ms, 1};
		struct tw_anr_rollup_done done = {.more = true};

		while (done.more)
			assert_int_equal(tw_catalogue_anr_rollup(c, &due, &done, NULL), TW_OK);
	}
}

void plan_use_anrs(struct tw_catalogue *c, const char *project, const char *id)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	const struct tw_lock_wait lock = {.is_main = true,
	        .raw_monitor = "m",
	        .raw_owner = "o",
	        .source = "",
	        .monitor = "m",
	        .owner = "a.B.c",
	        .holder = "w",
	        .waits = 1,
	        .timed = 1,
	        .total_ns = 5,
	        .max_ns = 5};
	struct tw_trace_row row, without;
	struct tw_anr_entry none = {.row = &without, .device_class = "", .user = ""};
	struct tw_anr_entry entry = {.row = &row,
	        .device_class = "low",
	        .user = "",
	        .anr = true,
	        .brief = {"brief", 5},
	        .locks = &lock,
	        .n_locks = 1};
	bool more = true;
	size_t n;

	assert_int_equal(tw_catalogue_trace_get(c, project, id, a, &row, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_put(c, &entry, 1, NULL), TW_OK);
	without = row;
	without.id = "none";
	assert_int_equal(tw_catalogue_anr_put(c, &none, 1, NULL), TW_OK);
	while (more) /* a day is not counted before them */
		assert_int_equal(tw_catalogue_anr_renames(c, &more, NULL), TW_OK);
	key_all(c, project, a);
	for (int counted = 0; counted < 2; counted++) {
		use_groups(c, project, a);
		use_locks(c, project, a);
		count_all(c, project);
	}
	use_rules(c, project, a);
	assert_int_equal(tw_catalogue_anr_reset(c, project, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_expire(c, INT32_MAX, &more, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_groups(
	                         c, project, &any, a, &(struct tw_anr_group *){NULL}, &n, NULL),
	        TW_OK);
	assert_int_equal(n, 0);
	tw_arena_free(a);
}
