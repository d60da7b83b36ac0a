/*
 * jobs_claim.c - claims of servers that share a catalogue: short, renewed, and lost when they were
 * not in time.
 *
 * Who is alone claims for as long as a decode may take, and queues what was claimed before it
 * started.
 */
#include "catalogue.h"
#include "clock.h"
#include "jobs_internal.h"
#include "log.h"

enum { SHARED_MS = 30000, RENEW_MS = 8000, PUBLISH_MS = 10000, ALONE_SLACK_MS = 60000 };

int64_t tw_jobs_lease_ms(const struct tw_app *app)
{
	return tw_catalogue_is_shared(app->catalogue)
	               ? SHARED_MS
	               : (int64_t)app->config->worker_wall_s * 1000 + ALONE_SLACK_MS;
}

void tw_jobs_renew(
        struct tw_app *app, const struct tw_job_row *const *jobs, size_t n, int64_t *io_next_ms)
{
	const int64_t now = tw_monotonic_ms();
	struct tw_err err;

	if (now < *io_next_ms || !tw_catalogue_is_shared(app->catalogue))
		return;
	*io_next_ms = now + RENEW_MS;
	if (tw_catalogue_jobs_renew(app->catalogue, jobs, n, SHARED_MS, &err) == TW_OK)
		return;
	*io_next_ms = now;
	tw_log_err(TW_LOG_WARN, "claims_not_renewed", app->node, &err);
}

/* Once a file is in its place no other server may put its own there. */
enum tw_status tw_jobs_still_held(
        struct tw_app *app, const struct tw_job_row *job, struct tw_err *err)
{
	bool held = true;
	enum tw_status st = TW_OK;

	if (tw_catalogue_is_shared(app->catalogue))
		st = tw_catalogue_job_held(app->catalogue, job, PUBLISH_MS, &held, err);
	if (st == TW_OK && !held)
		st = tw_fail(err, TW_CONFLICT, TW_NO_OFFSET,
		        "the claim had run out, and another server has the trace");
	return st;
}

void tw_jobs_leave(struct tw_app *app)
{
	struct tw_err err;

	if (tw_catalogue_is_shared(app->catalogue) &&
	        tw_catalogue_jobs_leave(app->catalogue, app->node, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "claims_kept", app->node, &err);
}
