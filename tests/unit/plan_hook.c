#include "plan_hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "catalogue_hook.h"
#include "catalogue_internal.h"
#include "catalogue_tell.h"
#include "news.h"

static void use_deliveries(
        struct tw_catalogue *c, const char *project, const char *hook, struct tw_arena *a)
{
	const struct tw_tried failed = {.at_ms = 5,
	        .error = "no",
	        .body = "b",
	        .next_ms = 6,
	        .holds_all = true,
	        .gone = true};
	const struct tw_tried came = {.at_ms = 5, .http = 200, .error = "", .body = "b"};
	enum tw_outbox_state state;
	struct tw_delivery *due;
	struct tw_logged *log;
	int64_t id;
	size_t n;

	assert_int_equal(tw_catalogue_hook_test(c, project, hook, "{}", &id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_hook_test(c, project, "none", "{}", &id, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_outbox_due(c, INT64_MAX / 2, 9, a, &due, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_outbox_tried(c, due, &failed, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_GIVEN_UP); /* a test is tried once */
	assert_int_equal(tw_catalogue_redeliver(c, project, hook, due->id, NULL), TW_OK);
	due->event = TW_HOOK_FOUND;
	assert_int_equal(tw_catalogue_outbox_tried(c, due, &failed, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_WAITS);
	assert_int_equal(tw_catalogue_outbox_tried(c, due, &came, &state, NULL), TW_OK);
	assert_int_equal(state, TW_OUTBOX_DELIVERED);
	assert_int_equal(tw_catalogue_deliveries(c, project, hook, 0, 9, a, &log, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(log[0].n_log, 3);
	assert_int_equal(tw_catalogue_redeliver(c, project, "other", due->id, NULL), TW_NOT_FOUND);
}

/* Devices can invent groups of ANRs: so many are told in an hour, each once. */
static void use_floods(
        struct tw_catalogue *c, const char *project, const char *hook, struct tw_arena *a)
{
	struct tw_logged *log;
	char id[32];
	size_t n;

	assert_int_equal(tw_cat_begin(c, NULL), TW_OK);
	for (int i = 0; i < 2 * TW_HOOK_ANRS_AN_HOUR; i++) {
		(void)snprintf(id, sizeof id, "anr.%d", i / 2 * 2);
		assert_int_equal(tw_cat_tell(c->writer, project,
		                         &(struct tw_tell){TW_HOOK_ANR, id, "{}"}, NULL),
		        TW_OK);
	}
	for (int i = 0; i < 2 * TW_HOOK_ANRS_AN_HOUR; i++) {
		(void)snprintf(id, sizeof id, "more.%d", i);
		assert_int_equal(tw_cat_tell(c->writer, project,
		                         &(struct tw_tell){TW_HOOK_ANR, id, "{}"}, NULL),
		        TW_OK);
	}
	assert_int_equal(tw_cat_end(c, TW_OK, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_deliveries(c, project, hook, 0, 100, a, &log, &n, NULL), TW_OK);
	assert_int_equal(n, TW_HOOK_ANRS_AN_HOUR + 1); /* and the one of before */
}

static void use_digests(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	const struct tw_news_of of = {project, "p", {0, INT64_MAX / 4}};
	const struct tw_news_rules to = {.webhook = true, .mail = {"a@b.c"}, .n_mail = 1};
	struct tw_news_ingest in;
	const char *const *ids;
	struct tw_delivery *due;
	bool made = true;
	size_t n;

	assert_int_equal(
	        tw_catalogue_news_made(c, project, of.period.until_ms, &made, NULL), TW_OK);
	assert_false(made);
	for (int i = 0; i < 2; i++) /* the second finds it claimed */
		assert_int_equal(tw_catalogue_news_claim(c, &of, "{}", &to, NULL), TW_OK);
	assert_int_equal(tw_catalogue_outbox_due(c, INT64_MAX / 2, 9, a, &due, &n, NULL), TW_OK);
	assert_int_equal(n, 2);
	assert_int_equal(
	        tw_catalogue_news_made(c, project, of.period.until_ms, &made, NULL), TW_OK);
	assert_true(made);
	assert_int_equal(tw_catalogue_news_ingest(c, project, of.period, &in, NULL), TW_OK);
	assert_int_equal(tw_catalogue_news_regressions(
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
	assert_true(one.paused_ms > 0); /* it said that it is gone */
	one.paused_ms = 0;
	assert_int_equal(tw_catalogue_hook_change(c, project, &one, NULL), TW_OK);
	use_floods(c, project, id, a);
	use_digests(c, project, a);
	assert_int_equal(tw_catalogue_outbox_sums(c, &sums, NULL), TW_OK);
	assert_int_equal(sums.waiting, TW_HOOK_ANRS_AN_HOUR + 2);
	assert_int_equal(tw_catalogue_outbox_expire(c, INT64_MAX / 2, NULL), TW_OK);
	assert_int_equal(tw_catalogue_outbox_sums(c, &sums, NULL), TW_OK);
	assert_int_equal(sums.waiting, 0);
	assert_int_equal(
	        tw_catalogue_regression_history(c, project, "none", a, &entries, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_hook_delete(c, project, id, NULL), TW_OK);
	tw_arena_free(a);
}
