#include "server/derive/jobs_found.h"

#include <inttypes.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/derive/leader.h"
#include "server/derive/stage_findings.h"

enum { LOOK_AGAIN_S = 60, REST_MOST_MS = 2000, STEP_MS = 50 };

/* As long as the work took: looking at a fleet again takes half a core, however long that lasts. */
static void rest(struct tw_periodic *p, int64_t ms)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
	const int64_t until = tw_monotonic_ms() + (ms < REST_MOST_MS ? ms : REST_MOST_MS);

	while (tw_monotonic_ms() < until && !tw_periodic_stopping(p))
		(void)nanosleep(&step, NULL);
}

static void look_at_all(struct tw_periodic *p, void *arg)
{
	struct tw_app *app = arg;
	bool more = true;
	struct tw_err err;

	while (more && !tw_periodic_stopping(p) && tw_leads(app->leader)) {
		const int64_t from_ms = tw_monotonic_ms();

		if (tw_finder_look(app->finder, &more, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "findings_late", "looking at traces", &err);
			break; /* it is tried again later */
		}
		rest(p, tw_monotonic_ms() - from_ms);
	}
}

enum tw_status tw_found_job_start(struct tw_app *app, struct tw_periodic **ret, struct tw_err *err)
{
	const struct tw_folder_parts parts = {app->catalogue, app->blobs, app->symbols};

	app->finder = tw_finder_new(&parts);
	if (!app->finder)
		return tw_oom(err);
	return tw_periodic_start(&(struct tw_periodic_task){"findings", look_at_all,
	                                 tw_leader_look_s(app->leader, LOOK_AGAIN_S) * 1000},
	        app, ret, err);
}

void tw_found_job_metrics(const struct tw_app *app, struct tw_buf *out)
{
	const struct tw_finder_counts n = tw_finder_counts(app->finder);

	tw_buf_printf(out,
	        "# TYPE tracewell_findings_traces_total counter\n"
	        "tracewell_findings_traces_total{outcome=\"looked\"} %" PRIu64 "\n"
	        "tracewell_findings_traces_total{outcome=\"unreadable\"} %" PRIu64 "\n"
	        "# TYPE tracewell_findings_seconds_total counter\n"
	        "tracewell_findings_seconds_total %.6f\n",
	        n.looked, n.unreadable, (double)n.spent_us / 1e6);
}
