/* `tracewell rollup`: updates rollups, ANR groups and locks, or computes them again. */
#include <inttypes.h>
#include <stdio.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_rollup_tree.h"
#include "server/catalogue/traces/catalogue_stage.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/derive/pipeline.h"
#include "server/fleet/store/fleet_open.h"

enum { ARENA_BYTES = 4 << 20 };

static enum tw_status reset_all(
        struct tw_fleet_store *store, struct tw_rollup_reset *sums, struct tw_err *err)
{
	struct tw_catalogue *c = store->catalogue;
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_project_row *projects = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_catalogue_projects(c, a, &projects, &n, err) : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		struct tw_rollup_reset one;

		st = store->engine->reset(store, projects[i].id, "", &one, err);
		if (st == TW_OK)
			st = tw_catalogue_anr_reset(c, projects[i].id, err);
		if (st != TW_OK)
			break;
		sums->days += one.days;
		sums->traces += one.traces;
		sums->days_kept += one.days_kept;
	}
	tw_arena_free(a);
	return st;
}

static enum tw_status count_pending(struct tw_catalogue *c, struct tw_stage_waiting *ret,
        uint64_t *ret_trees, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_stage_waiting(c, tw_stage_rollup.sql, "", ret, err);

	return st == TW_OK ? tw_catalogue_trees_postponed(c, ret_trees, err) : st;
}

struct progress {
	struct tw_progress bar;
	struct tw_catalogue *catalogue;
	uint64_t all;
};

static void step(void *arg)
{
	struct progress *p = arg;
	struct tw_stage_waiting w;
	uint64_t trees;

	if (p->bar.what && count_pending(p->catalogue, &w, &trees, NULL) == TW_OK)
		tw_progress_at(&p->bar, p->all > w.traces ? p->all - w.traces : 0, 0);
}

/* Runs all pending work, up to the last delta. */
static enum tw_status run_pending(
        struct tw_fleet_store *store, struct tw_blobs *blobs, struct tw_err *err)
{
	static const struct tw_stage *const stages[] = {
	        &tw_stage_rollup, &tw_stage_anr, &tw_stage_findings};
	struct tw_catalogue *c = store->catalogue;
	struct tw_symbols *symbols = tw_symbols_new(blobs);
	const struct tw_derive_parts parts = {
	        .catalogue = c, .blobs = blobs, .symbols = symbols, .fleet = store};
	struct progress p = {tw_progress_of("rollup: traces"), c, 0};
	const struct tw_drain drain = {step, &p};
	struct tw_stage_waiting w;
	uint64_t trees;
	enum tw_status st = symbols ? count_pending(c, &w, &trees, err) : tw_oom(err);

	p.bar.total = p.all = st == TW_OK ? w.traces : 0;
	for (size_t i = 0; st == TW_OK && i < sizeof stages / sizeof *stages; i++)
		st = tw_stage_drain(stages[i], &parts, i == 0 ? &drain : NULL, err);
	tw_progress_clear(&p.bar);
	tw_symbols_free(symbols);
	return st;
}

static enum tw_status print_json(
        struct tw_catalogue *c, const struct tw_rollup_reset *sums, struct tw_err *err)
{
	struct tw_stage_waiting w;
	struct tw_cli_line line;
	struct tw_json *j;
	uint64_t trees;
	enum tw_status st = count_pending(c, &w, &trees, err);

	if (st != TW_OK)
		return st;
	j = tw_cli_line(&line);
	TW_JSON_MEMBERS(j, sums, days, traces, days_kept);
	tw_json_key_int(j, "postponed", (int64_t)w.postponed);
	tw_json_key_int(j, "trees_postponed", (int64_t)trees);
	return tw_cli_line_end(&line, err);
}

static void print_left(uint64_t n, const char *what)
{
	if (n)
		(void)fprintf(stderr,
		        "left %" PRIu64 " %s; the server retries with increasing delays\n", n,
		        what);
}

/* Failed traces are postponed so that the others are processed; reports them. */
static enum tw_status report_postponed(struct tw_catalogue *c, struct tw_err *err)
{
	struct tw_stage_waiting w;
	uint64_t trees;
	enum tw_status st = count_pending(c, &w, &trees, err);

	if (st != TW_OK)
		return st;
	print_left(w.postponed, "traces that could not be read");
	print_left(trees, "call trees that could not be merged");
	return TW_OK;
}

int tw_cli_rollup(int argc, char **argv)
{
	const char *data = "./data";
	bool rebuild = false, json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "rebuild", .on = &rebuild}, {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_rollup_reset sums = {0};
	struct tw_catalogue *catalogue = NULL;
	struct tw_blobs *blobs = NULL;
	struct tw_fleet_store *store = NULL;
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	st = tw_cli_data_open(data, &catalogue, &blobs, &err);
	if (st == TW_OK)
		st = tw_fleet_open_recorded(catalogue, data, &store, &err);
	if (st == TW_OK && rebuild)
		st = reset_all(store, &sums, &err);
	if (st == TW_OK)
		st = run_pending(store, blobs, &err);
	if (st == TW_OK)
		st = json ? print_json(catalogue, &sums, &err) : report_postponed(catalogue, &err);
	(void)tw_fleet_store_free(store);
	tw_catalogue_close(catalogue);
	tw_blobs_close(blobs);
	if (st != TW_OK)
		return tw_cli_failed("rollup", &err);
	if (rebuild && !json) {
		(void)fprintf(stderr, "recounted %" PRIu64 " days of %" PRIu64 " traces\n",
		        sums.days, sums.traces);
		if (sums.days_kept)
			(void)fprintf(stderr,
			        "%" PRIu64 " days unchanged: some of their traces were deleted\n",
			        sums.days_kept);
	}
	return TW_EXIT_OK;
}
