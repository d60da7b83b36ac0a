/*
 * stage_rollup.c - counts traces in the rollups, names their methods after a mapping is uploaded,
 * merges cells and deletes old ones.
 */

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/metric.h"
#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/derive/pipeline.h"
#include "server/derive/rollup/rollup_writer_int.h"

static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	return tw_rollup_worker_count(state, turn, ret_more, err);
}

/* --- deleted traces, in an engine that can subtract them --- */

/* Hidden immediately; their rows are removed once an hour, as that rewrites large files. */
enum { ERASED_AT_ONCE = 256, ERASE_EVERY_MS = 3600000 };

static enum tw_status erase_some(struct tw_rollup_worker *f, bool hidden,
        enum tw_status (*by)(
                struct tw_fleet_store *, const struct tw_erased *, size_t, struct tw_err *),
        size_t *ret_n, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_erased *of = NULL;
	enum tw_status st = a ? tw_catalogue_erased(f->parts.catalogue, hidden, ERASED_AT_ONCE, a,
	                                &of, ret_n, err)
	                      : tw_oom(err);

	if (st == TW_OK && *ret_n)
		st = by(f->parts.fleet, of, *ret_n, err);
	if (st == TW_OK && *ret_n)
		st = tw_catalogue_erased_done(f->parts.catalogue, hidden, of, *ret_n, err);
	tw_arena_free(a);
	return st;
}

static enum tw_status erase(struct tw_rollup_worker *f, bool *ret_more, struct tw_err *err)
{
	const struct tw_fleet_engine *engine = f->parts.fleet->engine;
	const int64_t now = tw_monotonic_ms();
	size_t n = 0;
	enum tw_status st;

	if (!engine->hide)
		return TW_OK;
	st = erase_some(f, false, engine->hide, &n, err);
	*ret_more = n == ERASED_AT_ONCE;
	if (st != TW_OK || *ret_more || now < f->erase_ms)
		return st;
	st = erase_some(f, true, engine->erase, &n, err);
	*ret_more = n == ERASED_AT_ONCE;
	if (st == TW_OK && n && !*ret_more)
		f->erase_ms = now + ERASE_EVERY_MS;
	return st;
}

static enum tw_status purge(struct tw_rollup_worker *f, struct tw_err *err)
{
	struct tw_fleet_store *fleet = f->parts.fleet;
	const int64_t now = tw_monotonic_ms();
	enum tw_status st = TW_OK;

	if (!fleet->engine->purge)
		return TW_OK;
	if (f->purge_ms && now >= f->purge_ms)
		st = fleet->engine->purge(fleet, err);
	if (!f->purge_ms || (st == TW_OK && now >= f->purge_ms))
		f->purge_ms = now + ERASE_EVERY_MS;
	return st;
}

static enum tw_status expire(struct tw_rollup_worker *f, bool *ret_more, struct tw_err *err)
{
	const struct tw_derive_parts *p = &f->parts;

	if (!p->figures_days)
		return TW_OK;
	return p->fleet->engine->expire(
	        p->fleet, tw_age_ms() / TW_DAY_MS - p->figures_days, ret_more, err);
}

/* If one of the tasks fails, the others still run. */
static enum tw_status maintain(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	enum { TASKS = 7 };
	const bool last = tw_turn_is_last(turn); /* merges the last delta too */
	const int64_t today = tw_unix_ms() / TW_DAY_MS, day = last ? 0 : today;
	struct tw_catalogue *c = ((struct tw_rollup_worker *)state)->parts.catalogue;
	bool more[TASKS] = {false};
	struct tw_err why[TASKS];
	enum tw_status st[TASKS];

	st[0] = tw_rollup_worker_rename(state, &more[0], &why[0]);
	st[1] = tw_rollup_worker_add(
	        state, last ? 1 : TW_ROLLUP_DELTAS_MAX, day, &more[1], &why[1]);
	st[2] = tw_rollup_trees_add(
	        c, last ? 1 : TW_ROLLUP_TREE_DELTAS_MAX, day, &more[2], &why[2]);
	st[3] = more[1] ? TW_OK /* cells of past days no longer change */
	                : tw_rollup_merged_add(c, today, &more[3], &why[3]);
	st[4] = last ? TW_OK : expire(state, &more[4], &why[4]);
	st[5] = erase(state, &more[5], &why[5]);
	st[6] = purge(state, &why[6]);
	for (int i = 0; i < TASKS; i++)
		*ret_more = *ret_more || more[i];
	for (int i = 0; i < TASKS; i++)
		if (st[i] != TW_OK) {
			tw_err_copy(err, &why[i]);
			return st[i];
		}
	return TW_OK;
}

static void metrics(const void *state, struct tw_buf *out)
{
	const struct tw_rollup_worker *f = state;
	const struct tw_rollup_worker_counts n = tw_rollup_worker_counts(f);
	struct tw_fleet_requests requests = {0, 0, 0};

	tw_metric(out, "tracewell_rollup_cells_total{outcome=\"added\"}", n.cells);
	tw_metric(out, "tracewell_rollup_cells_total{outcome=\"failed\"}", n.cells_failed);
	if (f && f->parts.fleet->engine->requests)
		requests = f->parts.fleet->engine->requests(f->parts.fleet);
	tw_metric(
	        out, "tracewell_analytics_requests_total{outcome=\"answered\"}", requests.answered);
	tw_metric(out, "tracewell_analytics_requests_total{outcome=\"refused\"}", requests.refused);
	tw_metric(out, "tracewell_analytics_requests_total{outcome=\"unanswered\"}",
	        requests.unanswered);
}

static void close_rollup(void *state)
{
	(void)tw_rollup_worker_free(state);
}

static enum tw_status open_rollup(const struct tw_derive_parts *p, void **ret, struct tw_err *err)
{
	*ret = tw_rollup_worker_new(p);
	return *ret ? TW_OK : tw_oom(err);
}

static const struct tw_stage_sql sql = TW_STAGE_SQL("rollup", "rollup_state");

const struct tw_stage tw_stage_rollup = {.name = "rollup",
        .depends = TW_RAISED_BY_DECODER | TW_RAISED_BY_MAPPING,
        .raises = TW_RAISED_BY_ROLLUP,
        .sql = &sql,
        .open = open_rollup,
        .close = close_rollup,
        .run = run,
        .maintain = maintain,
        .metrics = metrics};
