/*
 * stage_regressions.c - searches each project's rollups for regressions once an hour.
 */

#include "server/base/clock.h"
#include "server/derive/pipeline.h"
#include "server/fleet/regress_detect.h"

enum { EVERY_MS = 3600 * 1000 };

/* Waits while a request searches, as this thread has time. */
static enum tw_status run(
        void *state, const struct tw_turn *turn, bool *ret_more, struct tw_err *err)
{
	const struct tw_derive_parts *parts = state;
	struct tw_turn_limit limit;
	const struct tw_deadline deadline = tw_turn_deadline(turn, &limit);
	const struct tw_regress_task task = {turn->project_id, tw_unix_ms() / TW_DAY_MS, deadline,
	        (uint64_t)(tw_unix_ms() / EVERY_MS)};
	struct tw_regress_detected sums;
	enum tw_status st = tw_regress_detect(parts->fleet, &task, &sums, err);

	while (st == TW_BUSY && !tw_deadline_passed(&deadline)) {
		tw_sleep_ms(100);
		st = tw_regress_detect(parts->fleet, &task, &sums, err);
	}
	*ret_more = false;
	return st;
}

/* Rollups change all the time, so changes do not wake this stage. */
const struct tw_stage tw_stage_regressions = {
        .name = "regressions", .every_ms = EVERY_MS, .all = "project", .run = run};
