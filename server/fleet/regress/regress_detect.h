/*
 * regress_detect.h - detects regressions in a project's rollups and stores them.
 *
 * Scans one scenario of one app at a time: reads its cells, merges them by day, version and device
 * class, and makes series (regress.h). It writes only regressions, so it may run at any time, in
 * any process. Repeated runs give the same result. Thread: one at a time.
 */
#ifndef TW_REGRESS_DETECT_H
#define TW_REGRESS_DETECT_H

#include "server/fleet/store/fleet_store.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

struct tw_regress_detected {
	uint64_t series, found; /* examined series; regressions among them */
	uint64_t fresh;         /* newly found ones among them */
};

/* The project's rules, or the defaults. */
enum tw_status tw_regress_rules_of(struct tw_catalogue *c, const char *project_id,
        struct tw_regress_rules *ret, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_regress_setting; /* catalogue_setting.h */
struct tw_regress_task {
	const char *project_id;
	int64_t today;               /* days since 1970; the day is incomplete but included */
	struct tw_deadline deadline; /* checked between scenarios and methods */
	/* Index of the first scenario, modulo their number. Use another value each time, so that
	 * all scenarios are scanned even if every run reaches its deadline. */
	uint64_t turn;
};
/* Searches a project's rollups for regressions.  TW_DEADLINE: the results of the scenarios scanned
 * before it are stored.  TW_BUSY: another thread is searching. */
enum tw_status tw_regress_detect(struct tw_fleet_store *store, const struct tw_regress_task *of,
        struct tw_regress_detected *ret, struct tw_err *err) TW_MUST_USE;

#endif
