/*
 * regress_look.h - detects regressions in a project's rollups and stores them.
 *
 * Handles one scenario of one app at a time: its cells are read, merged by day, version and device
 * class, and made into series (regress.h).  Runs in parallel with everything else and writes only
 * regressions; any process may run it at any time, and repeated runs give the same result. Thread:
 * one at a time.
 */
#ifndef TW_REGRESS_LOOK_H
#define TW_REGRESS_LOOK_H

#include "server/fleet/store/fleet_store.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

struct tw_regress_looked {
	uint64_t series, found; /* examined series; regressions among them */
	uint64_t fresh;         /* of these, newly found */
};

/* The project's rules, or the defaults. */
enum tw_status tw_regress_rules_of(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_regress_rules *ret, struct tw_err *err) TW_MUST_USE;
struct tw_regress_task {
	const char *project_id;
	int64_t today;               /* days since 1970; the day is incomplete but included */
	struct tw_deadline deadline; /* checked between scenarios and methods */
	/* The scenario to start with, modulo their number.  Use another value each time, so that
	 * all scenarios are examined even if no run ends before its deadline. */
	uint64_t turn;
};
/* TW_DEADLINE if the deadline passed: the results of the scenarios before it are stored. */
enum tw_status tw_regress_look(struct tw_fleet_store *store, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err) TW_MUST_USE;

#endif
