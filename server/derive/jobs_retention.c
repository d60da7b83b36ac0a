#include "server/derive/jobs_retention.h"

#include "server/base/audit.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/catalogue.h"
#include "server/derive/leader.h"
#include "server/derive/retention.h"
#include "server/derive/retire.h"
#include "server/http/metrics.h"

enum { AT_ONCE = 64, FAILED_MAPPING_DAYS = 30 };

/* What was deleted, pinned or queued meanwhile is no failure. */
static enum tw_status expire(struct tw_app *app, const char *project_id, const struct tw_expiry *e,
        struct tw_arena *a, struct tw_err *err)
{
	static const char *const events[] = {"trace_expired", "upload_expired", "decoded_expired"};
	enum tw_expired what = tw_expiry_what(e->why);
	enum tw_status st =
	        what == TW_EXPIRED_UPLOAD    ? tw_retire_upload(app, project_id, e->id, a, err)
	        : what == TW_EXPIRED_DECODED ? tw_retire_decoded(app, project_id, e->id, err)
	                                     : tw_retire_trace(app, project_id, e->id, a, err);

	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK) {
		tw_log(TW_LOG_INFO, events[what], tw_log_text("trace", e->id),
		        tw_log_text("why", tw_expiry_word(e->why)),
		        tw_log_number("bytes", (int64_t)e->bytes));
		tw_metrics_expired(app->metrics, what, e->bytes);
	}
	return st;
}

/* *ret_more: there may be more that is due. */
static enum tw_status some(struct tw_app *app, const char *project_id,
        const struct tw_retention *rules, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(4 << 20);
	struct tw_expiry *due = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_retention_due(app->catalogue, project_id, rules, tw_unix_ms(),
	                                AT_ONCE, a, &due, &n, err)
	                      : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = expire(app, project_id, &due[i], a, err);
	*ret_more = st == TW_OK && n > 0;
	tw_arena_free(a);
	return st;
}

static void keep_project(
        struct tw_periodic *p, struct tw_app *app, const char *project_id, struct tw_arena *a)
{
	struct tw_retention rules;
	struct tw_err err;
	bool more = true;
	enum tw_status st = tw_retention_of(app->catalogue, project_id, a, &rules, &err);

	while (st == TW_OK && more && !tw_periodic_stopping(p))
		st = some(app, project_id, &rules, &more, &err);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "retention", project_id, &err);
}

static void keep_audit(struct tw_periodic *p, struct tw_app *app)
{
	int64_t age_ms = (int64_t)app->config->audit_days * TW_DAY_MS;
	bool more = age_ms > 0;
	struct tw_err err;

	while (more && !tw_periodic_stopping(p))
		if (tw_catalogue_audit_expire(app->catalogue, tw_unix_ms() - age_ms, &more, &err) !=
		        TW_OK) {
			tw_log_err(TW_LOG_WARN, "retention", "audit", &err);
			more = false;
		}
}

/* A day more than the one that is being counted. */
static void forget_devices(struct tw_app *app)
{
	struct tw_err err;

	if (tw_catalogue_capture_forget(app->catalogue, tw_unix_ms() / TW_DAY_MS - 1, &err) !=
	        TW_OK)
		tw_log_err(TW_LOG_WARN, "retention", "capture", &err);
}

static void forget_failed_mappings(struct tw_app *app)
{
	struct tw_err err;

	if (tw_catalogue_mapping_expire(
	            app->catalogue, tw_unix_ms() - FAILED_MAPPING_DAYS * TW_DAY_MS, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "retention", "mappings", &err);
}

static void keep_all(struct tw_periodic *p, void *arg)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_project_row *projects = NULL;
	struct tw_app *app = arg;
	size_t n = 0;

	if (!tw_leads(app->leader) || tw_monotonic_ms() < app->keep_ms) {
		tw_arena_free(a);
		return;
	}
	if (app->leader) /* it is asked more often than that, so that a lead that is gained late
	                    counts */
		app->keep_ms = tw_monotonic_ms() + (int64_t)app->config->retention_every_s * 1000;
	if (a && tw_catalogue_projects(app->catalogue, a, &projects, &n, NULL) == TW_OK)
		for (size_t i = 0; i < n && !tw_periodic_stopping(p); i++)
			keep_project(p, app, projects[i].id, a);
	keep_audit(p, app);
	forget_devices(app);
	forget_failed_mappings(app);
	tw_arena_free(a);
}

enum tw_status tw_retention_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err)
{
	return tw_periodic_start(
	        &(struct tw_periodic_task){"retention", keep_all,
	                tw_leader_look_s(app->leader, app->config->retention_every_s) * 1000},
	        app, ret, err);
}
