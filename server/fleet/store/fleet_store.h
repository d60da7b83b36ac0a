/*
 * fleet_store.h - where the sums of many traces are stored: one interface, two engines.
 *
 * The embedded engine keeps rollup cells in the catalogue (fleet_embedded.c).  ClickHouse keeps
 * rows per trace and sums them per query (fleet_clickhouse.h).  Both return cells, call trees,
 * search results and findings in the same form, so everything above is shared: names, comparisons,
 * intervals, regressions and JSON.  Names of methods, and which traces are counted, are in the
 * catalogue with either engine.
 * Thread: any.
 */
#ifndef TW_FLEET_STORE_H
#define TW_FLEET_STORE_H

#include "server/catalogue/fleet/catalogue_engine.h"
#include "server/catalogue/fleet/catalogue_found.h"
#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/fleet/fleet.h"
#include "server/fleet/fleet_search.h"
#include "server/stats/rollup_tree.h"

#define TW_FLEET_OTHERS "others" /* a kind of thread: every one but main */

struct tw_fleet_query { /* borrowed */
	const char *project_id;
	struct tw_rollup_filter filter;
	const char *label_key;     /* the label of TW_DIM_LABEL; NULL or "": that of filter.label */
	const char *const *labels; /* more "key=value" filters; needs any_label */
	size_t n_labels;
	const char *thread; /* methods on this kind of thread; NULL: on all; needs `threads` */
	unsigned metrics;   /* a bit per metric of methods; 0: durations alone */
	unsigned dims;      /* enum tw_fleet_dim: cells that differ only by others may be merged */
	const uint64_t *only; /* methods, sorted; NULL: all.  A hint: others may be returned too */
	size_t n_only;
	int64_t until_ms; /* monotonic; 0: no deadline */
	uint64_t state;   /* an engine's own, see there; 0: the latest */
	/* Includes deleted traces, as their ANRs remain counted.  Only for numbers of traces: an
	 * engine may lack the times of deleted ones. */
	bool with_deleted;
};

struct tw_fleet_cells_of { /* a subset of the cells that an engine returned for the same query */
	const struct tw_rollup_cell *const *list;
	size_t n;
	size_t of_all; /* total number of cells in the result */
};

struct tw_fleet_findings {
	enum tw_status (*take)(
	        void *arg, const char *trace_id, struct tw_str data, struct tw_err *err);
	void *arg;
};

struct tw_fleet_requests {
	uint64_t answered, refused, unanswered;
};

struct tw_fleet_store;

struct tw_fleet_engine {
	const char *name;
	bool any_label; /* can filter and group by every label, not only by counted ones */
	bool threads;   /* stores methods by kind of thread too */
	uint32_t batch; /* number of traces of a project that are best written together */

	/* Counts traces whose methods have names, and marks them in the catalogue. Traces that were
	 * counted or deleted during the call are skipped; a repeat after a failure counts none
	 * twice. */
	enum tw_status (*put)(struct tw_fleet_store *s, const struct tw_rollup_reading *of,
	        size_t n, struct tw_err *err);
	/* Stores names of methods. */
	enum tw_status (*name_methods)(
	        struct tw_fleet_store *s, const struct tw_rollup_names *names, struct tw_err *err);
	/* Stores names that a mapping changed, before the catalogue does. NULL: the engine stores
	 * no names. */
	enum tw_status (*rename)(struct tw_fleet_store *s, const char *project_id,
	        const struct tw_rollup_naming *methods, size_t n, struct tw_err *err);
	/* Replaces the findings of traces, as tw_catalogue_found_put. */
	enum tw_status (*put_found)(struct tw_fleet_store *s, const struct tw_found_trace *of,
	        size_t n, int64_t number, struct tw_err *err);
	/* Replaces copies of ANRs and lock waits; the originals are in the catalogue. NULL: the
	 * engine has no copies. */
	enum tw_status (*put_anrs)(struct tw_fleet_store *s, const struct tw_anr_copy *of, size_t n,
	        struct tw_err *err);
	/* Deleted traces: `hide` excludes them from all results of queries without with_deleted,
	 * `erase` removes their rows.  NULL: they remain counted. */
	enum tw_status (*hide)(
	        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err);
	enum tw_status (*erase)(
	        struct tw_fleet_store *s, const struct tw_erased *of, size_t n, struct tw_err *err);

	/* Removes all rows of a project.  NULL: they are in the catalogue. */
	enum tw_status (*drop_project)(
	        struct tw_fleet_store *s, const char *project_id, struct tw_err *err);

	/* Cells by day, with heads, and with parts of the requested metrics.  TW_TOO_LARGE. */
	enum tw_status (*cells)(struct tw_fleet_store *s, const struct tw_fleet_query *query,
	        struct tw_arena *a, struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err);
	/* Number of traces of the filter. */
	enum tw_status (*count)(struct tw_fleet_store *s, const struct tw_fleet_query *query,
	        uint64_t *ret, struct tw_err *err);
	/* Adds the call trees of each of n sets of cells to its tree, which has an arena and is
	 * made coarse. */
	enum tw_status (*trees)(struct tw_fleet_store *s, const struct tw_fleet_query *query,
	        const struct tw_fleet_cells_of *of, size_t n, struct tw_rollup_tree *to,
	        struct tw_err *err);
	/* The longest calls of io's methods: sets found and matches. */
	enum tw_status (*search)(struct tw_fleet_store *s, const struct tw_fleet_query *query,
	        const struct tw_rollup_cell *cells, size_t n, struct tw_search *io,
	        struct tw_err *err);
	/* Passes the findings of each trace of these cells to `take`, until it fails. */
	enum tw_status (*found)(struct tw_fleet_store *s, const struct tw_fleet_query *query,
	        const struct tw_fleet_cells_of *of, const struct tw_fleet_findings *to,
	        struct tw_err *err);

	/* Schedules the project's traces for counting again. If build_id is not "": only those of
	 * that build or mapping. */
	enum tw_status (*reset)(struct tw_fleet_store *s, const char *project_id,
	        const char *build_id, struct tw_rollup_reset *ret, struct tw_err *err);
	/* Deletes rows of days before `day`, in small steps. */
	enum tw_status (*expire)(
	        struct tw_fleet_store *s, int64_t day, bool *ret_more, struct tw_err *err);
	/* Removes rows that newer ones replaced. NULL: rows are replaced where they are. */
	enum tw_status (*purge)(struct tw_fleet_store *s, struct tw_err *err);
	/* Number of requests to another server; NULL: it sends none. */
	struct tw_fleet_requests (*requests)(struct tw_fleet_store *s);
	void (*free)(struct tw_fleet_store *s);
};

struct tw_fleet_store { /* the first member of an engine's own struct */
	const struct tw_fleet_engine *engine;
	struct tw_catalogue *catalogue; /* borrowed */
	_Atomic bool detecting;         /* tw_regress_detect is running */
};

/* The engine inside the catalogue. NULL: out of memory. */
struct tw_fleet_store *tw_fleet_embedded_new(struct tw_catalogue *c);
/* NULL is fine; returns NULL */
struct tw_fleet_store *tw_fleet_store_free(struct tw_fleet_store *s);

#endif
