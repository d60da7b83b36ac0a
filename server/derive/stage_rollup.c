#include "server/derive/stage_regressions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/log.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/derive/leader.h"
#include "server/derive/rollup/rollup_writer.h"

enum { LOOK_AGAIN_S = 60, KEEP_DAYS = 400, REGRESS_MS = 3600 * 1000, TURN_MS = 60 * 1000 };

static enum tw_status first_of(
        enum tw_status st, enum tw_status other, const struct tw_err *why, struct tw_err *err)
{
	if (st == TW_OK && other != TW_OK)
		*err = *why;
	return st == TW_OK ? other : st;
}

/* One of them that fails keeps none of the others from its work. */
static enum tw_status some(
        struct tw_folder *f, struct tw_catalogue *c, bool *ret_more, struct tw_err *err)
{
	int64_t today = tw_unix_ms() / TW_DAY_MS;
	bool folded = false, renamed = false, added = false, merged = false, wide = false,
	     expired = false;
	struct tw_err why;
	enum tw_status st = tw_folder_fold(f, &folded, err), other;

	if (folded)
		tw_crash_point("rollup_folded");
	other = tw_folder_rename(f, &renamed, &why);
	st = first_of(st, other, &why, err);
	other = tw_folder_add(f, TW_ROLLUP_MOST, today, &added, &why);
	st = first_of(st, other, &why, err);
	other = tw_rollup_trees_add(c, TW_ROLLUP_TREE_DELTAS, today, &merged, &why);
	st = first_of(st, other, &why, err);
	if (!added) { /* cells of days that are over change no more */
		other = tw_rollup_wides_add(c, today, &wide, &why);
		st = first_of(st, other, &why, err);
	}
	other = tw_catalogue_rollup_expire(c, today - KEEP_DAYS, &expired, &why);
	st = first_of(st, other, &why, err);
	*ret_more = folded || renamed || added || merged || wide || expired;
	return st;
}

enum tw_status tw_rollup_job_look(struct tw_app *app, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err)
{
	enum tw_status st;

	if (atomic_exchange(&app->looking, true))
		return tw_fail(err, TW_BUSY,
		        "the server looks for what got slower already; ask again in a moment");
	st = tw_regress_look(app->catalogue, of, ret, err);
	atomic_store(&app->looking, false);
	return st;
}

struct turn { /* one project's look; none holds up the others, nor the server's end */
	struct tw_periodic *job;
	int64_t until_ms;
};

static bool is_over(void *arg)
{
	const struct turn *t = arg;

	return tw_periodic_stopping(t->job) || tw_monotonic_ms() >= t->until_ms;
}

/* Waits while somebody else looks: this one has time. */
static enum tw_status look_at(
        struct tw_periodic *p, struct tw_app *app, const char *project_id, struct tw_err *err)
{
	const struct timespec step = {.tv_nsec = 100000000};
	struct turn turn = {p, tw_monotonic_ms() + TURN_MS};
	const struct tw_regress_task task = {project_id, tw_unix_ms() / TW_DAY_MS, {is_over, &turn},
	        (uint64_t)(tw_unix_ms() / REGRESS_MS)};
	struct tw_regress_looked sums;
	enum tw_status st = tw_rollup_job_look(app, &task, &sums, err);

	while (st == TW_BUSY && !is_over(&turn)) {
		(void)nanosleep(&step, NULL);
		st = tw_rollup_job_look(app, &task, &sums, err);
	}
	return st;
}

/* The project behind the one that was looked at last; "" behind the last. */
static enum tw_status next_project(struct tw_app *app, char ret[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new((size_t)4 << 20);
	struct tw_project_row *projects = NULL;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_projects(app->catalogue, a, &projects, &n, err) : tw_oom(err);

	ret[0] = '\0';
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(projects[i].id, app->look_turn) > 0 &&
		        (!ret[0] || strcmp(projects[i].id, ret) < 0))
			(void)snprintf(ret, TW_ID_BYTES, "%s", projects[i].id);
	tw_arena_free(a);
	return st;
}

/* What got slower in the next project, each once an hour; false: that is done. */
static bool look_for_slower(struct tw_periodic *p, struct tw_app *app)
{
	char project_id[TW_ID_BYTES];
	struct tw_err err;
	enum tw_status st;

	if (tw_monotonic_ms() < app->look_ms)
		return false;
	st = next_project(app, project_id, &err);
	(void)snprintf(app->look_turn, sizeof app->look_turn, "%s", project_id);
	if (st == TW_OK && project_id[0])
		st = look_at(p, app, project_id, &err);
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "regressions_late", project_id, &err);
	if (!project_id[0])
		app->look_ms = tw_monotonic_ms() + REGRESS_MS;
	return project_id[0] != '\0';
}

/* One project is looked through between rounds, however many traces come; the rest when none do. */
static void fold_all(struct tw_periodic *p, void *arg)
{
	struct tw_app *app = arg;
	bool more = true;
	struct tw_err err;

	while (more && !tw_periodic_stopping(p) && tw_leads(app->leader)) {
		int64_t start_ms = tw_monotonic_ms();
		enum tw_status st = some(app->folder, app->catalogue, &more, &err);

		tw_folder_spent(app->folder, (uint64_t)(tw_monotonic_ms() - start_ms));
		if (st != TW_OK) {
			tw_log_err(TW_LOG_WARN, "rollups_late", "counting traces", &err);
			more = false; /* it is tried again later */
		}
		tw_periodic_wake(app->findings); /* detectors look at what is counted */
		if (tw_leads(app->leader))
			(void)look_for_slower(p, app);
	}
	while (!tw_periodic_stopping(p) && tw_leads(app->leader) && look_for_slower(p, app))
		;
}

enum tw_status tw_rollup_job_start(struct tw_app *app, struct tw_periodic **ret, struct tw_err *err)
{
	const struct tw_folder_parts parts = {app->catalogue, app->blobs, app->symbols};

	app->folder = tw_folder_new(&parts);
	if (!app->folder)
		return tw_oom(err);
	return tw_periodic_start(&(struct tw_periodic_task){"rollup", fold_all,
	                                 tw_leader_look_s(app->leader, LOOK_AGAIN_S) * 1000},
	        app, ret, err);
}

enum tw_status tw_rollup_job_metrics(
        const struct tw_app *app, struct tw_buf *out, struct tw_err *err)
{
	const struct tw_folder_counts n = tw_folder_counts(app->folder);
	struct tw_rollup_waiting w;
	enum tw_status st = tw_catalogue_rollup_waiting(app->catalogue, &w, err);
	int64_t age_ms;

	if (st != TW_OK)
		return st;
	age_ms = w.oldest_ms ? tw_unix_ms() - w.oldest_ms : 0;
	tw_buf_printf(out,
	        "# TYPE tracewell_rollup_folded_total counter\n"
	        "tracewell_rollup_folded_total %" PRIu64 "\n"
	        "# TYPE tracewell_rollup_unreadable_total counter\n"
	        "tracewell_rollup_unreadable_total %" PRIu64 "\n"
	        "# TYPE tracewell_rollup_put_off_total counter\n"
	        "tracewell_rollup_put_off_total %" PRIu64 "\n"
	        "# TYPE tracewell_rollup_cells_total counter\n"
	        "tracewell_rollup_cells_total{outcome=\"added\"} %" PRIu64 "\n"
	        "tracewell_rollup_cells_total{outcome=\"failed\"} %" PRIu64 "\n",
	        n.folded, n.unreadable, n.put_off, n.cells, n.cells_failed);
	tw_buf_printf(out,
	        "# TYPE tracewell_rollup_seconds_total counter\n"
	        "tracewell_rollup_seconds_total %.3f\n"
	        "# TYPE tracewell_rollup_waiting_traces gauge\n"
	        "tracewell_rollup_waiting_traces %" PRIu64 "\n"
	        "# TYPE tracewell_rollup_put_off_traces gauge\n"
	        "tracewell_rollup_put_off_traces %" PRIu64 "\n"
	        "# TYPE tracewell_rollup_oldest_seconds gauge\n"
	        "tracewell_rollup_oldest_seconds %.3f\n",
	        (double)n.spent_ms / 1000, w.traces, w.put_off,
	        age_ms > 0 ? (double)age_ms / 1000 : 0.0);
	return TW_OK;
}
