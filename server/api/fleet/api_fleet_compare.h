/*
 * api_fleet_compare.h - a comparison of two sides of the fleet: the request and its result.
 *
 * Thread: one request.
 */
#ifndef TW_API_FLEET_COMPARE_H
#define TW_API_FLEET_COMPARE_H

#include "server/api/fleet/api_fleet_tree.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/fleet_compare.h"

/* Of methods, in the cells of both sides. */
#define TW_COMPARED_METRICS (1U << TW_ROLLUP_SELF | 1U << TW_ROLLUP_WALL | 1U << TW_ROLLUP_CALLS)

struct tw_compared_side {
	const char *label; /* "8.3.1", "trace 01…", or the filter as text */
	struct tw_rollup_filter filter;
	struct tw_fleet_query query; /* of its cells */
	struct tw_fleet_cells cells;
	const char *trace_id; /* of a side that is one trace; NULL */
	struct tw_rollup_worker *folder;
	struct tw_rollup_reading folding; /* of that trace */
};
struct tw_compared_scenario {
	const char *name;
	struct tw_mix mix;
	struct tw_compared_stat stats[TW_COMPARE_STATS];
};
struct tw_comparison {
	struct tw_fleet_request *q;
	struct tw_compared_side sides[TW_SIDES];
	struct tw_mix mix; /* of everything compared */
	struct tw_compared_scenario *scenarios;
	size_t n_scenarios;
	struct tw_compared_method *methods;
	size_t n_methods;
	struct tw_stratum_rollup *rollups;    /* one per stratum */
	const char *method;                   /* for which quantiles were requested; "" */
	const struct tw_compared_method *one; /* its result; NULL: on neither side */
	struct tw_compared_stat one_stats[TW_COMPARE_STATS];
	const char *sentence;
};

/* Compares the methods of both sides' cells in c->mix, for which only `q` is needed besides:
 * largest change of self time first. */
enum tw_status tw_comparison_methods(struct tw_comparison *c, struct tw_err *err) TW_MUST_USE;
/* The summary sentence, and the complete comparison as Markdown (api_fleet_compare_text.c). */
enum tw_status tw_comparison_describe(struct tw_comparison *c, struct tw_err *err) TW_MUST_USE;
void tw_comparison_markdown(const struct tw_comparison *c, struct tw_buf *out);
/* "merged trees of both" (api_fleet_compare_tree.c). */
enum tw_status tw_comparison_put_tree(struct tw_comparison *c, struct tw_err *err) TW_MUST_USE;

#endif
