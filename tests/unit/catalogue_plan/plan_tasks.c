#include "tests/unit/catalogue_plan/plan_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_user.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_move.h"
#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/catalogue/notify/catalogue_alert.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/catalogue/notify/catalogue_ticket.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/file_drop.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_record.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/catalogue/traces/catalogue_stage.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/derive/pipeline.h"
#include "server/derive/stages.h"

static void use_alerts(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_alert_rule r = {.name = "r",
	        .app = "",
	        .scenario = "",
	        .version_name = "",
	        .method = "",
	        .author = "me",
	        .kind = TW_ALERT_anr_spike,
	        .percentile = 95,
	        .days = 7,
	        .threshold = 2,
	        .min_traces = 1};
	struct tw_alert_rule *rules;
	struct tw_anr_spike *spikes;
	const struct tw_inbox_query inbox = {"", "", 1, 1, TW_INBOX_UNMUTED, {INT64_MAX, ""}, 1};
	struct tw_inbox_counts counts;
	struct tw_alert *alerts, alert;
	char id[TW_ID_BYTES];
	size_t n;

	assert_int_equal(tw_catalogue_alert_rule_add(c, project, &r, id, NULL), TW_OK);
	assert_int_equal(tw_catalogue_alert_rules(c, project, a, &rules, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_alert_rule_get(c, project, id, a, &r, NULL), TW_OK);
	assert_int_equal(tw_catalogue_alert_rule_change(c, project, &r, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_anr_spikes(c, project, &r, tw_unix_ms(), a, &spikes, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_alerts_of(c, project, id, a, &alerts, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_alert_get(c, project, "one", a, &alert, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_inbox_count_alerts(c, project, &inbox, &counts, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_inbox_alerts(c, project, &inbox, a, &alerts, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_alert_rule_delete(c, project, id, NULL), TW_OK);
}

static void use_triage(struct tw_catalogue *c, const char *project, struct tw_arena *a)
{
	struct tw_anr_state *states;
	struct tw_ticket *tickets, ticket;
	size_t n;

	assert_int_equal(tw_catalogue_anr_states(c, project, "", a, &states, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_states(c, project, "key", a, &states, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_tickets_due(c, INT64_MAX / 2, a, &tickets, &n, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_ticket_get(c, project, "none", a, &ticket, NULL), TW_NOT_FOUND);
	assert_int_equal(tw_catalogue_tickets_hold(c, project, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_tickets_expire(c, 1, NULL), TW_OK);
}

/* Claims several jobs of a project at once, as a group. */
static void use_groups(struct tw_catalogue *c, struct tw_arena *a)
{
	const struct tw_claim claim = {TW_QUEUE_TRACES, "me", 1000, 0};
	const struct tw_job_row *held[4];
	struct tw_job_row jobs[4];
	const char *ids[4];
	bool still[4];
	size_t n = 0;

	assert_int_equal(tw_catalogue_jobs_claim(c, &claim, 1 << 20, a, jobs, 4, &n, NULL), TW_OK);
	for (size_t i = 0; i < n; i++) {
		held[i] = &jobs[i];
		ids[i] = jobs[i].trace_id;
	}
	assert_int_equal(tw_catalogue_jobs_held(c, held, n, 0, still, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_jobs_release_except(c, TW_QUEUE_TRACES, "me", ids, n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_job_return(c, &jobs[0], NULL), TW_OK);
	assert_int_equal(tw_catalogue_jobs_leave(c, "me", NULL), TW_OK);
}

/* Statements of a server start and of background tasks. */
static void use_tasks(
        struct tw_catalogue *c, const char *project, const char *id, struct tw_arena *a)
{
	struct tw_stored_file *files;
	struct tw_capture_count *counts;
	struct tw_stored_secret *secrets;
	struct tw_file_drop *drops;
	struct tw_trace_row *rows;
	struct tw_anr_copy *copies;
	struct tw_erased *erased;
	uint64_t number;
	bool mine;
	size_t n;

	for (int i = 0; tw_stages[i]; i++)
		if (tw_stages[i]->sql)
			assert_int_equal(tw_catalogue_stage_rows(c, tw_stages[i]->sql, project, 9,
			                         a, &rows, &n, NULL),
			        TW_OK);
	assert_int_equal(tw_catalogue_record_rows(c, &number, NULL), TW_OK);
	assert_int_equal(tw_catalogue_recorded_traces(c, NULL, 1, a, &files, &n, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_recorded_traces(c, &files[n - 1], 1, a, &files, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_recorded_builds(c, NULL, 1, a, &files, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_trace_was_deleted(c, id, &mine, NULL), TW_OK);
	assert_int_equal(tw_catalogue_file_drop(c, "key", NULL), TW_OK);
	assert_int_equal(tw_catalogue_file_drops_take(c, a, &drops, &n, NULL), TW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(tw_catalogue_file_drops_done(c, drops, n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_capture_counts(c, project, 1, a, &counts, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_capture_forget(c, 1, NULL), TW_OK);
	assert_int_equal(tw_catalogue_secrets(c, a, &secrets, &n, NULL), TW_OK);
	assert_int_equal(tw_catalogue_sessions_count(c, &number, NULL), TW_OK);
	assert_int_equal(tw_catalogue_take_lease(c, "task", "me", 1000, &mine, NULL), TW_OK);
	assert_int_equal(tw_catalogue_anr_uncopied(c, 9, a, &copies, &n, NULL), TW_OK);
	for (int hidden = 0; hidden < 2; hidden++)
		assert_int_equal(tw_catalogue_erased(c, hidden, 9, a, &erased, &n, NULL), TW_OK);
}

void plan_use_tasks(struct tw_catalogue *c, const char *project, const char *id)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_resumable resumable;
	char found[TW_ID_BYTES];

	use_alerts(c, project, a);
	use_triage(c, project, a);
	use_groups(c, a);
	use_tasks(c, project, id, a);
	assert_int_equal(tw_catalogue_project_of_trace(c, id, found, NULL), TW_OK);
	assert_string_equal(found, project);
	assert_int_equal(tw_catalogue_project_find(c, "p", found, NULL), TW_OK);
	assert_int_equal(tw_catalogue_project_named(c, "p", found, NULL), TW_OK);
	assert_int_equal(
	        tw_catalogue_resumable_get(c, project, "none", a, &resumable, NULL), TW_NOT_FOUND);
	tw_arena_free(a);
}
