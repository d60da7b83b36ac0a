/*
 * regress_look.h - looks through a project's rollups for what got slower, and keeps what is found.
 *
 * One scenario of one app at a time: its cells are read, put together by day, version and class of
 * device, and made into series (regress.h).  Runs beside everything else and writes only findings;
 * any process may do it at any time, twice finds the same.
 * Thread: one at a time.
 */
#ifndef TW_REGRESS_LOOK_H
#define TW_REGRESS_LOOK_H

#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/query/query.h"
#include "server/stats/regress.h"

struct tw_regress_looked {
	uint64_t series, found; /* looked at; slower */
	uint64_t fresh;         /* of them, not known before */
};

/* The rules of a project: its own, or the defaults. */
enum tw_status tw_regress_rules_of(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_regress_rules *ret, struct tw_err *err) TW_MUST_USE;
struct tw_regress_task {
	const char *project_id;
	int64_t today;               /* since 1970; not whole yet, and looked at all the same */
	struct tw_deadline deadline; /* asked between scenarios and methods */
	/* Which scenario comes first, around: another each time, so that all have their turn even
	 * when no look ends in time. */
	uint64_t turn;
};
/* TW_DEADLINE when that has passed: the scenarios before it are looked at and what they showed is
 * kept. */
enum tw_status tw_regress_look(struct tw_catalogue *c, const struct tw_regress_task *of,
        struct tw_regress_looked *ret, struct tw_err *err) TW_MUST_USE;

#endif
