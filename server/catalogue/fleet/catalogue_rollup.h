/*
 * catalogue_rollup.h - rollups in the catalogue: deltas, parts, names of methods.
 *
 * A trace is counted once: one transaction marks it and adds a delta to each of its cells
 * (tw_rollup_cell).  Deltas of a cell are added to its parts in one transaction that deletes them,
 * by any server.  So a kill at any point neither loses nor double-counts.  Names are written
 * before, so that no transaction has more than TW_ROLLUP_NAMED_AT_ONCE rows and uploads never wait
 * for more. Projects are handled in turn; failures are postponed and block nothing.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_ROLLUP_H
#define TW_CATALOGUE_ROLLUP_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/clock.h" /* TW_DAY_MS */
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/stats/rollup.h"
#include "server/stats/rollup_id.h"

/* --- cells, and the ids of cells and methods --- */

/* A cell is the key of rollups: a day and the dimensions of queries. Its id, and a method's, is
 * a hash of its content, so that every process computes the same and rebuilding rollups gives
 * the same rows. */
struct tw_trace_row;

enum { TW_ROLLUP_LABELS_MAX = 4, TW_ROLLUP_CELLS_MAX = 1 + TW_ROLLUP_LABELS_MAX };
enum { TW_ROLLUP_VALUE_BYTES = 128 };

struct tw_rollup_dims {
	int64_t day; /* since 1970, UTC, by the server's clock at arrival */
	const char *app, *version_name, *build_id, *mapping_id, *scenario;
	const char *device_class, *os; /* "" in cells of a label */
	const char *label;             /* "key=value"; "" in the cell of all traces */
};

/* The one cell that every trace has, and one for each of the project's indexed labels: of the
 * trace's labels, or device, abi, process, version_code, session_id; "key=" if it has no such key,
 * so that those are counted too.  Strings are in the arena.  TW_NOMEM. */
enum tw_status tw_rollup_cells(const struct tw_trace_row *row, const char *const *labels,
        size_t n_labels, struct tw_arena *a, struct tw_rollup_dims ret[TW_ROLLUP_CELLS_MAX],
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Calls `each` for each label that a trace can be counted by, those with a name of their own column
 * first; none twice.  False: it returned false. */
bool tw_rollup_each_label(const struct tw_trace_row *row,
        bool (*each)(void *arg, const char *key, const char *value), void *arg);

/* low (under 3 GiB of memory), mid (under 6), high or unknown: from the label device_class,
 * otherwise from ram_mb. */
const char *tw_rollup_device_class(const char *labels);

/* Never 0, never negative. */
int64_t tw_rollup_cell_id(const struct tw_rollup_dims *d);

struct tw_catalogue;
struct tw_trace_row;

/* --- counting traces (catalogue_rollup.c) --- */

struct tw_rollup_naming { /* of a method */
	uint64_t id;
	const char *build_id, *mapping_id, *raw;
	const char *name, *descriptor;
	bool named; /* false: `name` is only a placeholder */
};

enum { TW_ROLLUP_NAMED_AT_ONCE = 512 };
struct tw_rollup_names { /* methods of one build and mapping */
	const char *project_id;
	const struct tw_rollup_naming *methods;
	size_t n;
	int64_t day;              /* the latest day of a trace with these methods */
	struct tw_mapping_ids by; /* the mappings that named them */
};
/* Writes missing names and updates the last day of all.  Schedules renaming if another mapping
 * arrived in the meantime. */
enum tw_status tw_catalogue_rollup_name(struct tw_catalogue *c, const struct tw_rollup_names *names,
        struct tw_err *err) TW_MUST_USE;

struct tw_rollup_reading { /* a trace to count, whose methods have names */
	const char *project_id, *trace_id;
	const struct tw_rollup_dims *cells;
	size_t n_cells;
	int64_t duration_ns;
	struct tw_str facts;            /* as written by tw_rollup_write_facts */
	struct tw_str tree;             /* as written by tw_rollup_tree_write; may be empty */
	struct tw_str posts;            /* as written by tw_index_write; may be empty */
	struct tw_str threads;          /* by tw_rollup_write_thread, for engines that keep them */
	const struct tw_trace_row *row; /* for engines that keep labels; NULL: it has none */
	struct tw_used_libraries natives; /* whose symbols named its frames */
};
/* One transaction.  Skips traces that were counted or deleted in the meantime, and those whose
 * libraries have other symbols by now: the latter are still to be counted. */
enum tw_status tw_catalogue_rollup_put(struct tw_catalogue *c, const struct tw_rollup_reading *f,
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
	const char *label; /* dims.label before tw_fleet_label_values changed it; NULL: unchanged */
	uint64_t traces;
	int64_t version;
	struct tw_str head;
	struct tw_str parts[TW_ROLLUP_METRICS]; /* the requested ones */
	struct tw_rollup_delta *deltas;
	size_t n_deltas;
};
struct tw_rollup_filter { /* "": any */
	const char *app, *version_name, *build_id, *scenario, *device_class, *os;
	const char *label; /* "": the cells of all traces; "key": all values of that label */
	int64_t first_day, last_day;
};
/* The cells of all traces of these days. */
static inline struct tw_rollup_filter tw_rollup_days(int64_t first_day, int64_t last_day)
{
	return (struct tw_rollup_filter){"", "", "", "", "", "", "", first_day, last_day};
}
enum { TW_ROLLUP_CELLS_READ = 50000 };
/* A flag among the metrics: the caller does not distinguish scenarios, device classes and systems,
 * so of the cells that differ only in these, one may get the merged parts and the others none. */
#define TW_ROLLUP_MERGED (1U << TW_ROLLUP_METRICS)
/* Cells from one snapshot, by day, with parts of the metrics whose bit is set, and with any bit
 * also the facts of deltas.  TW_TOO_LARGE beyond TW_ROLLUP_CELLS_READ cells. */
enum tw_status tw_catalogue_rollup_read(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, unsigned metrics, struct tw_arena *a,
        struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Number of traces in such cells. */
enum tw_status tw_catalogue_rollup_count(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_filter *f, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* Names of the methods, in the order of ids; name "" if missing. */
enum tw_status tw_catalogue_rollup_names(struct tw_catalogue *c, const char *project_id,
        const uint64_t *ids, size_t n, struct tw_arena *a, struct tw_rollup_naming **ret,
        struct tw_err *err) TW_MUST_USE;
/* Methods with that name, by rising id; at most TW_ROLLUP_SAME_NAME. */
enum { TW_ROLLUP_SAME_NAME = 10000 };
enum tw_status tw_catalogue_rollup_find(struct tw_catalogue *c, const char *project_id,
        const char *name, struct tw_arena *a, uint64_t **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- adding deltas to parts --- */

struct tw_rollup_due {
	const char *project_id;
	int64_t cell_id;
};
/* A cell is due if it has at least `least` deltas, and either a quarter as many as its parts
 * contain or `most`: so rewriting parts costs the same per trace at any size, and a query never
 * reads more than `most` deltas of a cell.  A cell of a day before `day` is due with any delta. */
struct tw_rollup_when {
	uint32_t least, most;
	int64_t day, now_ms;
	const char *after_project; /* start after this project */
};
enum tw_status tw_catalogue_rollup_due(struct tw_catalogue *c, const struct tw_rollup_when *when,
        uint32_t limit, struct tw_arena *a, struct tw_rollup_due **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Postpones a cell whose merge failed, longer with each attempt. */
enum tw_status tw_catalogue_rollup_postpone(struct tw_catalogue *c, const struct tw_rollup_due *of,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_rollup_load(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_rollup_cell *ret, struct tw_err *err) TW_MUST_USE;
/* Replaces the deltas in `was` with a new head and parts.  TW_CONFLICT: another server did so
 * already. */
enum tw_status tw_catalogue_rollup_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_rollup_cell *was, const struct tw_str *head,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err) TW_MUST_USE;

/* --- parts of several cells merged (catalogue_rollup_merged.c) --- */

enum { TW_MERGED_CELLS = 4096 }; /* further cells are read one by one */
struct tw_rollup_merged {        /* cells of a day that differ only by scenario, device class and
	                          * system */
	const char *project_id;
	struct tw_rollup_dims dims; /* day, app, version, build and mapping */
	int64_t due;
	uint64_t signature;
	struct tw_rollup_cell *cells; /* with parts and without deltas */
	size_t n;
};
/* Those of days before `day` with cells changed since the last merge. */
enum tw_status tw_catalogue_merged_due(struct tw_catalogue *c, int64_t day, uint32_t limit,
        struct tw_arena *a, struct tw_rollup_merged **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Reads its cells. */
enum tw_status tw_catalogue_merged_load(struct tw_catalogue *c, struct tw_rollup_merged *io,
        struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* Stores the parts of all its cells; nothing for a single cell. */
enum tw_status tw_catalogue_merged_store(struct tw_catalogue *c, const struct tw_rollup_merged *w,
        const struct tw_str parts[TW_ROLLUP_METRICS], struct tw_err *err) TW_MUST_USE;

/* --- names, expiry, recomputation (resets: catalogue_rollup_reset.c) --- */

/* The first build after `after` (NULL: the first), with *ret_n of its methods by rising id;
 * TW_NOT_FOUND: none. */
enum tw_status tw_catalogue_rollup_renames(struct tw_catalogue *c, const struct tw_rename *after,
        struct tw_arena *a, struct tw_rename *ret, struct tw_rollup_naming **ret_methods,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Stores these names and advances past the last; n 0 ends the build.  Does nothing if another
 * mapping arrived in the meantime. */
enum tw_status tw_catalogue_rollup_renamed(struct tw_catalogue *c, const struct tw_rename *of,
        const struct tw_rollup_naming *methods, size_t n, struct tw_err *err) TW_MUST_USE;

/* Deletes cells of days before `day`, and names of methods that only those used, in batches. */
enum tw_status tw_catalogue_rollup_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_rollup_reset {
	uint64_t days, traces; /* to be counted again */
	uint64_t days_kept;    /* with deleted traces: their rollups are kept */
};
/* Empties the days whose traces all still exist, one transaction per day, so that they are counted
 * again; also retries failed and postponed traces, and renames all methods. */
enum tw_status tw_catalogue_rollup_reset(struct tw_catalogue *c, const char *project_id,
        struct tw_rollup_reset *ret, struct tw_err *err) TW_MUST_USE;
/* The same for the traces of one build or mapping only, or of the builds that use a native library;
 * names are unchanged. */
enum tw_status tw_catalogue_rollup_reset_build(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_rollup_reset *ret, struct tw_err *err) TW_MUST_USE;
/* The same for an engine outside the catalogue, in which all days are counted again; build_id ""
 * means all. */
enum tw_status tw_catalogue_rollup_reset_all(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_rollup_reset *ret, struct tw_err *err) TW_MUST_USE;
/* Whether methods of the build are of expanded frames (rollup_id.h), or counted traces use it, a
 * native library's. */
enum tw_status tw_catalogue_rollup_expanded(struct tw_catalogue *c, const char *project_id,
        const char *build_id, bool *ret, struct tw_err *err) TW_MUST_USE;

#endif
