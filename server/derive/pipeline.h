/*
 * pipeline.h - the scheduler of everything that is computed from ready traces.
 *
 * A kind of derived data is a stage: a struct in a file of its own and a line in stages.def.  The
 * scheduler runs each stage in a thread, so that a slow one does not delay the others.  Projects
 * take turns of a few traces.  A trace whose work fails is postponed with its reason and tried
 * again, later each time; so is a project.  Of several servers the holder of the lease works.
 *
 * Where a trace is in a stage is a column of its row, changed by the transaction that stores the
 * result: a kill at any point counts nothing twice and loses nothing, and neither does a server
 * that lost the lease without noticing.
 * Thread: start and stop by the owner; wake and metrics by any.
 */
#ifndef TW_PIPELINE_H
#define TW_PIPELINE_H

#include "server/base/app.h"
#include "server/base/deadline.h"
#include "server/catalogue/traces/catalogue_stage.h"
#include "server/fleet/store/fleet_store.h"
#include "server/storage/blob.h"
#include "server/trace/symbols.h"

struct tw_named_trace;

struct tw_derive_parts { /* borrowed */
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_symbols *symbols;
	struct tw_fleet_store *fleet;
	unsigned figures_days; /* sums of older days expire; 0: never */
};

struct tw_turn { /* one turn of a project */
	struct tw_runner *by;
	const char *project_id;
};

struct tw_stage {
	const char *name;   /* its label in /metrics; as marks->stage */
	unsigned depends;   /* enum tw_raised_by: what makes its results out of date */
	unsigned raises;    /* what its own results do so to */
	bool every_project; /* has a turn in each round, not only those with waiting traces */
	bool half_time;     /* it rests as long as it works */
	unsigned every_ms;  /* 0: rounds go on while there is work */
	const struct tw_stage_marks *marks; /* NULL: traces do not wait for it one by one */
	/* NULL: the state is the app. */
	enum tw_status (*open)(const struct tw_derive_parts *p, void **ret, struct tw_err *err);
	void (*close)(void *state);
	/* A little of a project's work; *ret_more: there may be more.  It ends early when
	 * tw_turn_is_over.  An error postpones the project. */
	enum tw_status (*run)(
	        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err);
	/* The same of what concerns all projects; NULL: nothing does. */
	enum tw_status (*tend)(
	        void *state, const struct tw_turn *t, bool *ret_more, struct tw_err *err);
	void (*metrics)(const void *state, struct tw_buf *out); /* NULL: none; of state NULL, too */
};

/* --- for stages --- */

/* The server stops, or another has the lease. */
bool tw_turn_is_over(const struct tw_turn *t);
/* Passes when the turn is over, and after `ms` at the latest; *ret_limit must outlive it. */
struct tw_turn_limit {
	const struct tw_turn *turn;
	int64_t until_ms;
};
struct tw_deadline tw_turn_deadline(
        const struct tw_turn *t, int64_t ms, struct tw_turn_limit *ret_limit);
/* Nothing else will run later: the work is done to its end. */
bool tw_turn_is_last(const struct tw_turn *t);
/* Traces of the project that wait for the stage. */
enum tw_status tw_turn_traces(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_named_trace **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_turn_rows(const struct tw_turn *t, uint32_t limit, struct tw_arena *a,
        struct tw_trace_row **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
struct tw_named_trace tw_turn_trace(const struct tw_trace_row *row);
void tw_turn_done(const struct tw_turn *t, uint64_t traces);
/* Work on a trace failed: it is postponed where that may pass, and given up otherwise.  Nothing
 * happens to one that is deleted, or decoded again. */
enum tw_status tw_turn_failed(const struct tw_turn *t, const struct tw_named_trace *trace,
        bool may_pass, const struct tw_err *why, struct tw_err *err) TW_MUST_USE;
/* A store or a disk that does not answer now. */
bool tw_may_pass(enum tw_status st);

/* The number of a project's rules, of whose frames are the app's, and of the code that applies them
 * (`version`, raised with it).  Above 0; 0: no memory. */
int64_t tw_rules_number(struct tw_arena *a, int version, const char *rules, const char *frames);

/* --- for the server --- */

#define STAGE(name) extern const struct tw_stage tw_stage_##name;
#include "server/derive/stages.def"
#undef STAGE
extern const struct tw_stage *const tw_stages[]; /* to a NULL: stages.def, in that order */

/* Starts all of `stages`, which tw_pipeline_stop stops; app outlives it.  `leads` is tw_lease_held;
 * tests bring another. */
enum tw_status tw_pipeline_start(struct tw_app *app, const struct tw_stage *const *stages,
        bool (*leads)(const struct tw_app *), struct tw_pipeline **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_pipeline *tw_pipeline_stop(struct tw_pipeline *p); /* NULL is fine; returns NULL */
bool tw_pipeline_leads(const struct tw_app *app);
void tw_pipeline_wake(struct tw_app *app, unsigned raised_by);
/* Appends what waits for each stage, and why; p NULL: another server works. */
enum tw_status tw_pipeline_metrics(struct tw_pipeline *p, struct tw_catalogue *c,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Runs one stage to its end, in this thread.  `step` (may be NULL) is called after each turn. */
struct tw_drain {
	void (*step)(void *arg);
	void *arg;
};
enum tw_status tw_stage_drain(const struct tw_stage *s, const struct tw_derive_parts *parts,
        const struct tw_drain *d, struct tw_err *err) TW_MUST_USE;

#endif
