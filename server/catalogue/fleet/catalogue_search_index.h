/*
 * catalogue_search_index.h - the search index (stats/search_index.h) in the catalogue: first one
 * row per trace and cell, packed when the cell's rollup is computed.
 *
 * Thread: any.
 */
#ifndef TW_CATALOGUE_SEARCH_INDEX_H
#define TW_CATALOGUE_SEARCH_INDEX_H

#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/stats/search_index.h"

struct tw_index_row {
	int64_t pack;
	struct tw_str data;
};
/* At most `limit` unpacked rows of traces, up to this many bytes in total: two of the largest
 * fit. */
enum { TW_INDEX_PACK_BYTES = 16 << 20 };
enum tw_status tw_catalogue_index_loose(struct tw_catalogue *c, const struct tw_rollup_due *of,
        uint32_t limit, struct tw_arena *a, struct tw_index_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Replaces these n rows with `rows`.  TW_CONFLICT: another server did so already. */
enum tw_status tw_catalogue_index_pack(struct tw_catalogue *c, const struct tw_rollup_due *of,
        const struct tw_index_row *loose, size_t n, const struct tw_str rows[TW_INDEX_ROWS],
        struct tw_err *err) TW_MUST_USE;

struct tw_index_query {
	const char *project_id;
	const struct tw_rollup_cell *cells;
	size_t n_cells;
	uint32_t slots; /* a bit per requested slot */
	/* Called first with the heads of a cell, then its unpacked traces, then slots by number.
	 * `data` is borrowed for the call. */
	enum tw_status (*each)(void *arg, size_t cell, unsigned slot,
	        const struct tw_index_row *row, struct tw_err *err);
	void *arg;
};
/* Reads the rows from one snapshot. */
enum tw_status tw_catalogue_index_read(
        struct tw_catalogue *c, const struct tw_index_query *query, struct tw_err *err) TW_MUST_USE;

/* Finds methods whose names `fits` accepts: their ids with all known details, at most `limit`, by
 * id.  *ret_all: there are no more.  `fits` is called once per name. */
struct tw_index_names {
	const char *project_id;
	const char *name; /* only this name; NULL: any */
	enum tw_status (*fits)(void *arg, const char *name, bool *ret_fits, struct tw_err *err);
	void *arg;
	uint32_t limit;
};
enum tw_status tw_catalogue_index_names(struct tw_catalogue *c, const struct tw_index_names *of,
        struct tw_arena *a, struct tw_rollup_naming **ret, size_t *ret_n, bool *ret_all,
        struct tw_err *err) TW_MUST_USE;

/* Reads names of a project's methods: each name once, by the alphabet (raw ""); then, with `raw`,
 * those that have another name in their traces, in any order and possibly several times.  Stops
 * when `each` sets *io_more to false. */
struct tw_method_names {
	const char *project_id;
	bool raw;
	enum tw_status (*each)(
	        void *arg, const char *name, const char *raw, bool *io_more, struct tw_err *err);
	void *arg;
};
enum tw_status tw_catalogue_method_names(
        struct tw_catalogue *c, const struct tw_method_names *of, struct tw_err *err) TW_MUST_USE;

#endif
