/*
 * catalogue_found.h - what detectors found in traces, as the catalogue keeps it.
 *
 * A trace is marked with the number of the rules that looked at it, in the
 * transaction that keeps what they found: what carries another number, or none, is
 * to be looked at.  So changed rules reset nothing, and a kill loses nothing.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_FOUND_H
#define TW_CATALOGUE_FOUND_H

#include "server/catalogue/catalogue.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

/* Ready and folded traces of a project that rules of another number looked at, or none: those that
 * nobody looked at first, the newest of them before others.  number > 0. */
enum tw_status tw_catalogue_found_todo(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint32_t limit, struct tw_arena *a, const char ***ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* How many there are, with those that are put off. */
enum tw_status tw_catalogue_found_waiting(struct tw_catalogue *c, const char *project_id,
        int64_t number, uint64_t *ret, struct tw_err *err) TW_MUST_USE;

struct tw_found_trace {
	struct tw_named_trace of;
	struct tw_mapping_ids by;           /* that named it while it was looked at */
	const struct tw_rollup_dims *cells; /* of rollups, in which it is kept if they are there */
	size_t n_cells;
	struct tw_str data; /* as tw_found_write wrote it */
};
/* In place of what was kept before, in the same cells, or those of its cells that are there where
 * its day was counted again.  Of a trace that is gone, or that another
 * mapping names meanwhile, nothing is kept. */
enum tw_status tw_catalogue_found_put(struct tw_catalogue *c, const struct tw_found_trace *t,
        int64_t number, struct tw_err *err) TW_MUST_USE;
struct tw_found_reading { /* cells, of which each row is told; all of one moment */
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
