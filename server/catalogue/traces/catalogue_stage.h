/*
 * catalogue_stage.h - traces that wait for a stage of derived data, and those that are postponed.
 *
 * A column of `trace` has the trace's state in a stage, so the transaction that stores the result
 * also sets the state.  Only a trace whose work failed has a row in `postponed`.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_STAGE_H
#define TW_CATALOGUE_STAGE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"
#include "server/catalogue/traces/catalogue_trace.h"

struct tw_catalogue;
struct tw_named_trace;

enum { TW_STAGE_ALSO = 3 };
struct tw_stage_sql {      /* SQL for `trace`: constants of the code */
	const char *stage; /* its waiting traces: SQLite: index trace_stage_STAGE; PostgreSQL: table
	                      trace_stage */
	const char *index; /* SQLite: of the projects with waiting traces */
	const char *waits; /* condition of waiting traces; contains that of the index */
	const char *also[TW_STAGE_ALSO]; /* other rows that wait, each as TABLE WHERE CONDITION */
	const char *todo;     /* condition of all traces in the list, which may be processed again,
	                         postponed or given up; NULL: `waits` */
	const char *postpone; /* assignment that postpones a trace */
	const char *is_postponed; /* condition of postponed traces */
	const char *resume;       /* assignment that makes a postponed trace wait again */
	const char *give_up;      /* assignment that ends the attempts; NULL: the stage does it */
};
/* For a column with the values 0 waits, 1 done, 2 given up, 3 postponed; other members may follow.
 */
#define TW_STAGE_SQL(name, column, ...)                                                            \
	{                                                                                          \
		.stage = (name), .index = "trace_stage_" name,                                     \
		.waits = "state=2 AND " column "=0", .postpone = column "=3",                      \
		.is_postponed = column "=3", .resume = column "=0", .give_up = column "=2",        \
		__VA_ARGS__                                                                        \
	}

/* The first project after `after` with a waiting trace or row; "": none. */
enum tw_status tw_catalogue_stage_next(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *after, char ret[TW_ID_BYTES], struct tw_err *err) TW_MUST_USE;
/* Ids of all projects with rows in the table, a constant of the code, in order. */
enum tw_status tw_catalogue_stage_projects(struct tw_catalogue *c, const char *table,
        struct tw_arena *a, const char *const **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Ids of projects whose settings or rules were changed, by any server, or that were imported, in
 * order: by the audit log after *io_entry (INT64_MAX: none), which becomes the last entry. */
enum tw_status tw_catalogue_stage_changed(struct tw_catalogue *c, int64_t *io_entry,
        struct tw_arena *a, const char *const **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Waiting traces of a project. */
enum tw_status tw_catalogue_stage_todo(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, uint32_t limit, struct tw_arena *a, struct tw_named_trace **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* The same, their rows. */
enum tw_status tw_catalogue_stage_rows(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, uint32_t limit, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* The trace waits until a later time: five seconds, doubled with each attempt, at most six hours.
 * `reason` is a tw_status_name. */
enum tw_status tw_catalogue_stage_postpone(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const struct tw_named_trace *t, const char *reason, int64_t now_ms,
        struct tw_err *err) TW_MUST_USE;
/* The trace is not retried until it is decoded again. */
enum tw_status tw_catalogue_stage_give_up(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const struct tw_named_trace *t, struct tw_err *err) TW_MUST_USE;
/* Makes some of the postponed traces whose time has come wait again, or is later than any wait, so
 * that the clock was set back.  Their attempts are counted for a day. */
enum tw_status tw_catalogue_stage_resume(struct tw_catalogue *c, const struct tw_stage_sql *m,
        int64_t now_ms, bool *ret_more, struct tw_err *err) TW_MUST_USE;

enum { TW_STAGE_REASONS = 8 };
struct tw_stage_waiting {
	uint64_t traces;   /* waiting */
	int64_t oldest_ms; /* of them, when it was uploaded; 0: none waits */
	uint64_t postponed;
	struct {
		char reason[24];
		uint64_t traces;
	} why[TW_STAGE_REASONS]; /* of those postponed */
	size_t n_why;
};
/* project_id "": of all projects. */
enum tw_status tw_catalogue_stage_waiting(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, struct tw_stage_waiting *ret, struct tw_err *err) TW_MUST_USE;

#endif
