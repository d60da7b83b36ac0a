/*
 * catalogue_rollup.h - rollups as the catalogue keeps them: deltas, parts, names of methods.
 *
 * A trace is folded once: in one transaction it is marked and leaves a delta in
 * each of its cells (rollup_cell.h).  Deltas of a cell are added into its parts
 * in one transaction that deletes them, by whoever comes first.  So a kill at any
 * point counts nothing twice and loses nothing.  Names are written before, so that
 * no transaction is longer than TW_ROLLUP_NAMED_AT_ONCE rows, and ingest never
 * waits for more.  Projects take turns; what fails is put off and holds up nothing.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_ROLLUP_H
#define TW_CATALOGUE_ROLLUP_H

#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/rollup_cell.h"
#include "server/stats/rollup.h"

/* --- folding (catalogue_rollup.c) --- */

struct tw_rollup_naming { /* of a method */
	uint64_t id;
	const char *build_id, *mapping_id, *raw;
	const char *name, *descriptor;
	bool named; /* false: `name` says only that it is not known */
};

enum { TW_ROLLUP_NAMED_AT_ONCE = 512 };
struct tw_rollup_names { /* of methods of one build and mapping */
	const char *project_id;
	const struct tw_rollup_naming *methods;
	size_t n;
	int64_t day;              /* no trace that has them is of a later one */
	struct tw_mapping_ids by; /* what named them */
};
/* Writes those that are not there; all that are there are seen on that day.  Has them named again
 * when another mapping came meanwhile. */
enum tw_status tw_catalogue_rollup_name(struct tw_catalogue *c, const struct tw_rollup_names *names,
        struct tw_err *err) TW_MUST_USE;

struct tw_rollup_folding { /* a trace to be counted, whose methods have names */
	const char *project_id, *trace_id;
	const struct tw_rollup_dims *cells;
	size_t n_cells;
	int64_t duration_ns;
	struct tw_str facts; /* as tw_rollup_write_facts wrote them */
	struct tw_str tree;  /* as tw_rollup_tree_write wrote it; empty: it has none */
	struct tw_str posts; /* as tw_post_write wrote them; may be empty */
};
/* All in one transaction.  Those that were folded or deleted meanwhile are passed over. */
enum tw_status tw_catalogue_rollup_fold(struct tw_catalogue *c, const struct tw_rollup_folding *f,
        size_t n, struct tw_err *err) TW_MUST_USE;

/* --- reading (catalogue_rollup_read.c) --- */

struct tw_rollup_delta {
	const char *trace_id;
	int64_t duration_ns;
	struct tw_str facts;
};
struct tw_rollup_cell {
	int64_t cell_id;
	struct tw_rollup_dims dims;
	uint64_t traces;
	int64_t version;
	struct tw_str head;
	struct tw_str parts[TW_ROLLUP_METRICS]; /* those that were asked for */
	struct tw_rollup_delta *deltas;
	size_t n_deltas;
};
struct tw_rollup_filter { /* "": any */
	const char *app, *version_name, *build_id, *scenario, *device_class, *os;
	const char *label; /* "": the cells that every trace has; "key": all values of that label */
	int64_t first_day, last_day;
};
enum { TW_ROLLUP_CELLS_READ = 50000 };
/* Among the metrics: whoever asks does not tell apart scenarios, classes and systems, so one of the
 * cells that differ by nothing else may have the parts of all of them, and the others none. */
#define TW_ROLLUP_WIDE (1U << TW_ROLLUP_METRICS)
/* What they hold at one moment, by day; parts of the metrics whose bit is set, and with any of them
 * the facts of deltas.  TW_TOO_LARGE when it is more than TW_ROLLUP_CELLS_READ cells. */
enum tw_status tw_catalogue_rollup_read(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, unsigned metrics, struct tw_arena *a,
        struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* How many traces such cells count. */
enum tw_status tw_catalogue_rollup_count(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* What the methods are called, in the order of ids; name "" of one that is not there. */
enum tw_status tw_catalogue_rollup_names(struct tw_catalogue *c, const char *project_id,
        const uint64_t *ids, size_t n, struct tw_arena *a, struct tw_rollup_naming **ret,
        struct tw_err *err) TW_MUST_USE;
/* Methods of that name, by rising id; at most TW_ROLLUP_SAME_NAME. */
enum { TW_ROLLUP_SAME_NAME = 10000 };
enum tw_status tw_catalogue_rollup_find(struct tw_catalogue *c, const char *project_id,
        const char *name, struct tw_arena *a, uint64_t **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- adding deltas into parts (catalogue_rollup_add.c) --- */

struct tw_rollup_due {
	const char *project_id;
	int64_t cell_id;
};
/* A cell is due when it has `least` deltas, and a quarter of what its parts hold or `most`: so
 * making parts anew costs the same for each trace, however large they are, and a question never
 * reads more than `most` deltas of a cell.  And with any when it is of a day before `day`. */
struct tw_rollup_when {
	uint32_t least, most;
	int64_t day, now_ms;
	const char *after_project; /* of the projects behind it */
};
enum tw_status tw_catalogue_rollup_due(struct tw_catalogue *c, const struct tw_rollup_when *when,
        uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* It could not be added up: it is tried again, later each time. */
enum tw_status tw_catalogue_rollup_put_off(struct tw_catalogue *c, const struct tw_rollup_due *of,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_rollup_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_rollup_cell *ret, struct tw_err *err) TW_MUST_USE;
/* Puts what `was` held into its new head and parts.  TW_CONFLICT: somebody else did meanwhile. */
enum tw_status tw_catalogue_rollup_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_cell *was, const struct tw_str *head,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err) TW_MUST_USE;

/* --- parts of many cells in one (catalogue_rollup_wide.c) --- */

enum { TW_WIDE_CELLS = 4096 }; /* those beyond are read one by one */
struct tw_rollup_wide {        /* cells of a day that differ only by scenario, class and system */
	const char *project_id;
	struct tw_rollup_dims dims; /* day, app, version, build and mapping */
	int64_t due;
	uint64_t sign;
	struct tw_rollup_cell *cells; /* with parts and without deltas */
	size_t n;
};
/* Those of days before `day` of which cells changed since. */
enum tw_status tw_catalogue_wides_due(struct tw_catalogue *c, int64_t day, uint32_t limit,
        struct tw_arena *a, struct tw_rollup_wide **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Reads its cells. */
enum tw_status tw_catalogue_wide_load(struct tw_catalogue *c, struct tw_rollup_wide *io,
        struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* The parts of all of its cells; of one cell alone nothing is kept. */
enum tw_status tw_catalogue_wide_store(struct tw_catalogue *c, const struct tw_rollup_wide *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err) TW_MUST_USE;

/* --- names, age, making again (catalogue_rollup_name.c, catalogue_rollup_reset.c) --- */

struct tw_rollup_rename { /* a build whose mapping came */
	const char *project_id, *build_id;
	int64_t after_id;
	int64_t generation; /* of the mapping */
};
/* The first behind `after` (NULL: of all), and *ret_n methods of it to be looked at, by rising id;
 * TW_NOT_FOUND: there is no such build. */
enum tw_status tw_catalogue_rollup_renames(struct tw_catalogue *c,
        const struct tw_rollup_rename *after, struct tw_arena *a, struct tw_rollup_rename *ret,
        struct tw_rollup_naming **ret_methods, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Gives them these names and goes on behind the last; n 0 ends it.  Nothing when another mapping
 * came meanwhile. */
enum tw_status tw_catalogue_rollup_renamed(struct tw_catalogue *c,
        const struct tw_rollup_rename *of, const struct tw_rollup_naming *methods, size_t n,
        struct tw_err *err) TW_MUST_USE;

/* Deletes cells of days before `day`, and names of methods that only those used, a few at a time.
 */
enum tw_status tw_catalogue_rollup_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_reset {
	uint64_t days, traces; /* to be counted again */
	uint64_t days_kept;    /* with traces that are gone: what they counted stays */
};
/* Empties the days of which every trace is still there, in a transaction each, so that they are
 * folded again; has traces that were given up or put off tried again, and all methods named again.
 */
enum tw_status tw_catalogue_rollup_reset(struct tw_catalogue *c, const char *project_id,
        struct tw_rollup_reset *ret, struct tw_err *err) TW_MUST_USE;

#endif
