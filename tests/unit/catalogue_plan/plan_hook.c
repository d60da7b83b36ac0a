#include "tests/unit/catalogue_plan/plan_hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/catalogue/notify/catalogue_notify.h"
#include "server/notify/digest.h"

static const struct tw_tried came = {.at_ms = 5, .http = 200, .error = "", .body = "b"};

static void tell(struct tw_catalogue *c, const char *project, const char *id)
{
	struct tw_db *w = NULL;

	assert_int_equal(tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, NULL), TW_OK);
	assert_int_equal(
	        tw_cat_notify(w, project, &(struct tw_notice){TW_HOOK_FOUND, id, "{}"}, NULL),
	        TW_OK);
	assert_int_equal(tw_cat_end(c, w, TW_OK, NULL), TW_OK);
}

/* What goes next of the project's only hook; false: nothing is due at now_ms. */
static bool take(struct tw_catalogue *c, const char *project, int64_t now_ms, struct tw_arena *a,
        struct tw_delivery *ret)
{
	struct tw_due *due;
	size_t n;

	assert_int_equal(tw_catalogue_outbox_due(c, project, now_ms, a, &due, &n, NULL), TW_OK);
	assert_true(n <= 1);
	if (n)
		assert_int_equal(tw_catalogue_outbox_get(c, due->id, a, ret, NULL), TW_OK);
	return n == 1;
}

/* A test is tried once, one at a time. */
static void use_tests(
        struct tw_catalogue *c, const char *project, const char *hook, struct tw_arena *a)
{
	const struct tw_tried failed = {.at_ms = 5, .error = "no", .body = "b", .next_ms = 6};
	enum tw_outbox_state state;
	struct tw_delivery d;
	char at[TW_ID_BYTES];
	int64_t id;

	assert_int_equal(tw_catalogue_hook_test(c, project, hook, "{}", &id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_hook_test(c, project, hook, "{}", &id, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_redeliver(c, project, hook, id, NULL), TW_CONFLICT);
	assert_int_equal(tw_catalogue_hook_test(c, project, "none", "{}", &id, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_outbox_next(c, "", at, NULL), TW_OK);
	assert_string_equal(at, project);
	assert_int_equal(tw_catalogue_outbox_next(c, project, at, NULL), TW_OK);
	assert_string_equal(at, "");
	for (int i = 0; i < 2; i++) {
		assert_true(take(c, project, INT64_MAX / 2, a, &d));
		assert_int_equal(tw_catalogue_outbox_tried(c, &d, &failed, &state, NULL), TW_OK);
		assert_int_equal(state, TW_OUTBOX_GIVEN_UP);
		if (i == 0)
			assert_int_equal(
			        tw_catalogue_redeliver(c, project, hook, d.id, NULL), TW_OK);
	}
	assert_int_equal(tw_catalogue_outbox_get(c, 999999, a, &d, NULL), TW_NOT_FOUND);
}

/* A failing hook delays all its events; a refused event waits alone, while others are delivered. */
static void use_holding(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	const int64_t now = tw_unix_ms() + 1000, later = now + 1000, far = now + 100000;
	const struct tw_tried refused = {
	        .at_ms = now, .http = 400, .error = "400", .body = "b", .next_ms = far};
	const struct tw_tried away = {
	        .at_ms = now, .error = "away", .body = "b", .next_ms = later, .holds_all = true};
	enum tw_outbox_state state;
	struct tw_delivery d;

	tell(c, project, "r1");
	tell(c, project, "r2");
	tell(c, project, "r3");
	assert_true(take(c, project, now, a, &d));
	assert_string_equal(d.event_id, "r1");
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &refused, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_WAITS);
	assert_true(take(c, project, now, a, &d));
	assert_string_equal(d.event_id, "r2");
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &away, &state, NULL), TW_OK);
	assert_false(take(c, project, now, a, &d));
	tell(c, project, "r4");
	assert_false(take(c, project, now, a, &d));
	for (int i = 2; i <= 4; i++) { /* at `later` the first, then all are free again */
		assert_true(take(c, project, i == 2 ? later : now, a, &d));
		assert_int_equal(d.event_id[1] - '0', i);
		assert_int_equal(tw_catalogue_outbox_tried(c, &d, &came, &state, NULL), TW_OK);
		assert_int_equal(state, TW_OUTBOX_DELIVERED);
	}
	assert_false(take(c, project, later, a, &d));
	assert_true(take(c, project, far, a, &d));
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &came, &state, NULL), TW_OK);
}

static void use_deliveries(
        struct tw_catalogue *c, const char *project, const char *hook, struct tw_arena *a)
{
	const struct tw_tried refused = {
	        .at_ms = 5, .error = "550", .body = "b", .permanent = true};
	const struct tw_tried gone = {
	        .at_ms = 5, .http = 410, .error = "410", .body = "b", .gone = true};
	enum tw_outbox_state state;
	struct tw_delivery d;
	struct tw_logged *log;
	size_t n;

	use_tests(c, project, hook, a);
	use_holding(c, project, a);
	tell(c, project, "last");
	assert_true(take(c, project, INT64_MAX / 2, a, &d));
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &refused, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_GIVEN_UP);
	assert_int_equal(tw_catalogue_redeliver(c, project, hook, d.id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &came, &state, NULL), TW_OK);
	assert_int_equal(tw_catalogue_redeliver(c, project, hook, d.id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_outbox_tried(c, &d, &gone, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_WAITS);
	assert_false(take(c, project, INT64_MAX / 2, a, &d)); /* it is paused by that */
	assert_int_equal(tw_catalogue_deliveries(c, project, hook, 0, 9, a, &log, &n, NULL), TW_OK);
	assert_int_equal(n, 6);
	assert_int_equal(log[0].n_log, 3);
	assert_int_equal(tw_catalogue_redeliver(c, project, hook, log[0].id, NULL), TW_CONFLICT);
	assert_int_equal(
	        tw_catalogue_redeliver(c, project, "other", log[0].id, NULL), TW_NOT_FOUND);
}

/* Devices can invent groups of ANRs: a limited number is reported per hour, each once. */
static void use_floods(
        struct tw_catalogue *c, const char *project, const char *hook, struct tw_arena *a)
{
	struct tw_db *w = NULL;
	struct tw_logged *log;
	char id[32];
	size_t n;

	assert_int_equal(tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, NULL), TW_OK);
	for (int i = 0; i < 2 * TW_HOOK_ANRS_PER_HOUR; i++) {
		(void)snprintf(id, sizeof id, "anr.%d", i / 2 * 2);
		assert_int_equal(
		        tw_cat_notify(w, project, &(struct tw_notice){TW_HOOK_ANR, id, "{}"}, NULL),
		        TW_OK);
	}
	for (int i = 0; i < 2 * TW_HOOK_ANRS_PER_HOUR; i++) {
		(void)snprintf(id, sizeof id, "more.%d", i);
		assert_int_equal(
		        tw_cat_notify(w, project, &(struct tw_notice){TW_HOOK_ANR, id, "{}"}, NULL),
		        TW_OK);
	}
	assert_int_equal(tw_cat_end(c, w, TW_OK, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_deliveries(c, project, hook, 0, 100, a, &log, &n, NULL), TW_OK);
	assert_int_equal(n, TW_HOOK_ANRS_PER_HOUR + 6); /* and those of before */
}

static void use_digests(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	const struct tw_digest_of of = {project, "p", {0, INT64_MAX / 4}};
	const struct tw_digest_rules to = {.webhook = true, .mail = {"a@b.c"}, .n_mail = 1};
	struct tw_digest_ingest in;
	const char *const *ids;
	struct tw_due *due;
	struct tw_digest_anr *anrs;
	struct tw_digest_project *projects;
	int64_t last = 1;
	size_t n;

	assert_int_equal(
	        tw_catalogue_setting_set(c, project, TW_SETTING_DIGEST, "{}", NULL), TW_OK);
	assert_int_equal(tw_catalogue_digest_projects(c, a, &projects, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_string_equal(projects->id, project);
	assert_string_equal(projects->rules, "{}");
	assert_false(tw_catalogue_digest_made(projects, of.period.until_ms));
	for (int i = 0; i < 2; i++) /* the second finds it claimed */
		assert_int_equal(tw_catalogue_digest_claim(c, &of, "{}", &to, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_outbox_due(c, project, INT64_MAX / 2, a, &due, &n, NULL), TW_OK);
	assert_int_equal(n, 2);
	assert_int_equal(tw_catalogue_digest_projects(c, a, &projects, &n, NULL), TW_OK);
	assert_true(tw_catalogue_digest_made(projects, of.period.until_ms));
	/* at another hour of the day */
	assert_true(tw_catalogue_digest_made(projects, of.period.until_ms + 1));
	assert_false(tw_catalogue_digest_made(projects, of.period.until_ms + TW_DAY_MS));
	assert_int_equal(
	        tw_catalogue_digest_last(c, project, of.period.until_ms, &last, NULL), TW_OK);
	assert_int_equal(last, 0);
	assert_int_equal(
	        tw_catalogue_digest_last(c, project, of.period.until_ms + 1, &last, NULL), TW_OK);
	assert_int_equal(last, of.period.until_ms);
	assert_int_equal(
	        tw_catalogue_digest_anrs(c, project, of.period, a, &anrs, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_digest_ingest(c, project, of.period, &in, NULL), TW_OK);
	assert_int_equal(tw_catalogue_digest_regressions(
	                         c, project, of.period, TW_HOOK_FOUND, a, &ids, &n, NULL),
	        TW_OK);
}

void plan_use_hooks(struct tw_catalogue *c, const char *project)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	const struct tw_webhook h = {
	        .name = "h", .url = "https://a", .secret = "s", .author = "me", .events = 63};
	struct tw_regression_entry *entries;
	struct tw_outbox_sums sums;
	struct tw_webhook *rows, one;
	char id[TW_ID_BYTES];
	size_t n;

	assert_int_equal(tw_catalogue_hook_add(c, project, &h, id, NULL), TW_OK);
	use_deliveries(c, project, id, a);
	assert_int_equal(tw_catalogue_hooks(c, project, a, &rows, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_hook_get(c, project, id, a, &one, NULL), TW_OK);
	assert_true(one.paused_ms > 0); /* it responded with 410 */
	one.paused_ms = 0;
	assert_int_equal(tw_catalogue_hook_change(c, project, &one, NULL), TW_OK);
	use_floods(c, project, id, a);
	use_digests(c, project, a);
	assert_int_equal(tw_catalogue_outbox_sums(c, &sums, NULL), TW_OK);
	assert_int_equal(sums.waiting, TW_HOOK_ANRS_PER_HOUR + 3);
	assert_true(sums.oldest_ms > 0 && sums.oldest_ms <= tw_unix_ms());
	assert_int_equal(tw_catalogue_outbox_expire(c, INT64_MAX / 2, NULL), TW_OK);
	assert_int_equal(tw_catalogue_outbox_sums(c, &sums, NULL), TW_OK);
	assert_int_equal(sums.waiting, 0);
	assert_int_equal(
	        tw_catalogue_regression_history(c, project, "none", a, &entries, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_hook_delete(c, project, id, NULL), TW_OK);
	tw_arena_free(a);
}
