/*
 * pipeline.h - the scheduler of everything that is computed from ready traces.
 *
 * Each kind of derived data is a stage: a struct in a separate file and a line in stages.def.  The
 * scheduler runs each stage in a thread, so that a slow one does not delay the others, and serves
 * projects in rotation, a few traces at a time: those with waiting traces, or whose rules were
 * changed, by the audit log.  So idle projects cost nothing.  A trace whose work fails is postponed
 * with its reason and retried, later each time; so is a project.  With several servers, the holder
 * of the lease works.
 *
 * The progress of a trace in a stage is a column of its row, changed by the transaction that stores
 * the result.  So a crash at any point, or a lease lost without noticing, neither loses a trace nor
 * counts one twice.
 * Thread: start and stop by the owner; wake and metrics by any.
 */
#ifndef TW_PIPELINE_H
#define TW_PIPELINE_H

#include "server/base/clock.h"
#include "server/catalogue/traces/catalogue_stage.h"
#include "server/derive/lease.h"
#include "server/fleet/store/fleet_store.h"
#include "server/storage/blob.h"
#include "server/trace/symbols.h"

struct tw_named_trace;
struct tw_pipeline;

/* What makes derived data out of date; bits. */
enum tw_raised_by {
	TW_RAISED_BY_DECODER = 1,
	TW_RAISED_BY_MAPPING = 2,
	TW_RAISED_BY_RULES = 4,
	TW_RAISED_BY_ROLLUP = 8
};

struct tw_derive_parts { /* borrowed */
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_symbols *symbols;
	struct tw_trace_readers *readers; /* NULL: none */
	struct tw_fleet_store *fleet;
	unsigned figures_days; /* rollups of older days expire; 0: never */
	bool sends_mail;       /* mail is configured */
};

struct tw_turn { /* work of a stage on one project */
	struct tw_runner *by;
	const char *project_id;
};

struct tw_stage {
	const char *name;  /* its label in /metrics; as sql->stage */
	unsigned depends;  /* enum tw_raised_by: events that make its results outdated */
	unsigned raises;   /* events that its own results cause */
	bool half_time;    /* pauses for as long as it works */
	unsigned every_ms; /* 0: rounds continue while there is work */
	const struct tw_stage_sql *sql; /* NULL: it processes no single traces */
	/* Projects with rows in this table are served after the start, then once an hour, or in
	 * each round if sql is NULL; and whenever their rules change.  NULL: only projects with
	 * waiting traces are served. */
	const char *all;
	/* NULL: the state is the parts. */
	enum tw_status (*open)(const struct tw_derive_parts *p, void **ret, struct tw_err *err);
	void (*close)(void *state);
	/* Does a small part of a project's work; *ret_more: there may be more.  Ends early when
	 * tw_turn_is_over.  An error postpones the project. */
	enum tw_status (*run)(
	        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err);
	/* The same for work that concerns all projects; NULL: there is none. */
	enum tw_status (*maintain)(
	        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err);
	/* NULL: none; accepts a NULL state */
	void (*metrics)(const void *state, struct tw_buf *out);
};

/* --- for stages --- */

/* The server stops, or another server has the lease. */
bool tw_turn_is_over(const struct tw_turn *t);
/* A deadline that passes when tw_turn_is_over, and after a minute at the latest; *ret_limit must
 * outlive it. */
struct tw_turn_limit {
	const struct tw_turn *turn;
	int64_t until_ms;
};
struct tw_deadline tw_turn_deadline(const struct tw_turn *t, struct tw_turn_limit *ret_limit);
/* True if no later round follows: all work must be completed. */
bool tw_turn_is_last(const struct tw_turn *t);
/* The project's traces that wait for the stage. */
enum tw_status tw_turn_traces(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_named_trace **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_turn_rows(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_trace_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
struct tw_named_trace tw_turn_trace(const struct tw_trace_row *row);
void tw_turn_done(const struct tw_turn *t, uint64_t traces);
/* Work on a trace failed: it is postponed if the error may be temporary, otherwise given up.  No
 * effect on a trace that was deleted or decoded again. */
enum tw_status tw_turn_failed(const struct tw_turn *t, const struct tw_named_trace *trace,
        bool may_pass, const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* Whether the error may be temporary: a store or disk that does not respond. */
bool tw_is_temporary(enum tw_status st);

/* A number that identifies a project's rules, its app frame patterns and the version of the code
 * that applies them.  Above 0; 0: out of memory. */
int64_t tw_rules_number(struct tw_arena *a, int version, const char *rules, const char *frames);

/* --- for the server --- */

#define STAGE(name) extern const struct tw_stage tw_stage_##name;
#include "server/derive/stages.def"
#undef STAGE
extern const struct tw_stage *const tw_stages[]; /* NULL-terminated, in the order of stages.def */

/* Runs `stages` while this server has the lease.  `readers` of the parts are its own. */
struct tw_pipeline_setup {
	struct tw_derive_parts parts;
	const struct tw_stage *const *stages;        /* tw_stages, except in tests */
	const struct tw_lease *lease;                /* NULL: there are no other servers */
	bool (*leads)(const struct tw_lease *lease); /* tw_lease_held, except in tests */
};
/* Stop it with tw_pipeline_stop, also after a failure. */
enum tw_status tw_pipeline_start(const struct tw_pipeline_setup *setup, struct tw_pipeline **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_pipeline *tw_pipeline_stop(struct tw_pipeline *p); /* accepts NULL; returns NULL */
/* Wakes the stages whose results are out of date; p NULL: another server works. */
void tw_pipeline_wake(struct tw_pipeline *p, unsigned raised_by);
/* Appends the backlog of each stage and the reasons for delays; p NULL: another server works. */
enum tw_status tw_pipeline_metrics(struct tw_pipeline *p, struct tw_catalogue *c,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Runs one stage in this thread until nothing is left.  `step` (may be NULL) is called after each
 * project. */
struct tw_drain {
	void (*step)(void *arg);
	void *arg;
};
enum tw_status tw_stage_drain(const struct tw_stage *s, const struct tw_derive_parts *parts,
        const struct tw_drain *d, struct tw_err *err) TW_MUST_USE;

#endif
