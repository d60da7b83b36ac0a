/*
 * catalogue_found.h - findings of detectors in the catalogue.
 *
 * A trace is marked with the number of the rules that inspected it, in the transaction that stores
 * their findings.  Traces with another number or none are pending, so changed rules need no reset
 * and a kill loses nothing.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_FOUND_H
#define TW_CATALOGUE_FOUND_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/catalogue/traces/catalogue_names.h"

struct tw_catalogue;
struct tw_trace_row;

/* Ready traces of a project that are counted in rollups and were not inspected by rules with this
 * number (> 0): never inspected ones first, then the newest. */
enum tw_status tw_catalogue_found_todo(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint32_t limit, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Number of pending traces, including postponed ones. */
enum tw_status tw_catalogue_found_waiting(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint64_t *ret, struct tw_err *err) TW_MUST_USE;

struct tw_found_trace {
	struct tw_named_trace of;
	struct tw_mapping_ids by;           /* mappings in use during the inspection */
	const struct tw_rollup_dims *cells; /* rollup cells in which the findings are stored, if
	                                     * they exist */
	size_t n_cells;
	struct tw_str data;             /* as written by tw_found_write */
	const struct tw_trace_row *row; /* as in struct tw_rollup_reading */
	struct tw_libraries libraries;  /* whose symbols named its frames */
};
/* Replaces the findings of n traces of a project in one transaction: in the same cells, or in those
 * of a trace's cells that exist if its day was counted again.  Stores nothing for a trace that was
 * deleted or has a new mapping or symbols. */
enum tw_status tw_catalogue_found_put(struct tw_catalogue *c, const struct tw_found_trace *of,
        size_t n, int64_t number, struct tw_err *err) TW_MUST_USE;
struct tw_found_reading { /* reads the findings of cells from one snapshot */
	const char *project_id;
	const struct tw_rollup_cell *const *cells;
	size_t n;
	enum tw_status (*take)(
	        void *arg, const char *trace_id, struct tw_str data, struct tw_err *err);
	void *arg;
};
enum tw_status tw_catalogue_found_read(
        struct tw_catalogue *c, const struct tw_found_reading *r, struct tw_err *err) TW_MUST_USE;

#endif
