/*
 * catalogue_list.h - lists of traces by filter, and the values to filter by.  Thread: any.
 */
#ifndef TW_CATALOGUE_LIST_H
#define TW_CATALOGUE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;
struct tw_trace_row;

enum tw_trace_sort { TW_SORT_CREATED, TW_SORT_DURATION, TW_SORT_SLICES, TW_SORT_BYTES };
enum tw_trace_by { /* server/catalogue/traces/filters.def */
#define COLUMN(name)                   TW_BY_##name,
#define FILTER(name, kind, about, sql) TW_BY_##name,
#include "server/catalogue/traces/filters.def"
#undef COLUMN
#undef FILTER
	TW_TRACE_BYS
};
enum { TW_TRACE_CONDITIONS_MAX = 32 };

struct tw_trace_filter {
	struct { /* all hold; the first without a value ends them, "" is any */
		enum tw_trace_by by;
		const char *value; /* as in a query */
	} of[TW_TRACE_CONDITIONS_MAX + 1];
	enum tw_trace_sort sort;
	bool ascending;
	uint32_t limit;     /* ≤ 500 */
	const char *cursor; /* from the previous page; "" the first */
};
/* Adds a condition by its name; any other name changes nothing. */
enum tw_status tw_trace_filter_add(struct tw_trace_filter *f, const char *name, const char *value,
        struct tw_err *err) TW_MUST_USE;
/* Counting stops there: on a large project it would take longer than reading a page. */
enum { TW_TRACE_TOTAL_MAX = 10000 };
/* ret_cursor "" when there are no more.  *ret_total is at most TW_TRACE_TOTAL_MAX + 1, which means
 * more than TW_TRACE_TOTAL_MAX. */
enum tw_status tw_catalogue_traces(struct tw_catalogue *c, const char *project_id,
        const struct tw_trace_filter *f, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, const char **ret_cursor, uint64_t *ret_total,
        struct tw_err *err) TW_MUST_USE;
/* Distinct values with counts, for filter menus. `column`: a COLUMN of filters.def, state, tag or
 * label. At most 200, most frequent first, of the newest 100,000 traces; version_code, os, abi and
 * state of the newest 50,000, labels of the newest 2,000. */
struct tw_facet {
	const char *value;
	uint64_t count;
};
enum tw_status tw_catalogue_facets(struct tw_catalogue *c, const char *project_id,
        const char *column, struct tw_arena *a, struct tw_facet **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* --- saved filters of a project --- */

struct tw_fields; /* catalogue_row.h: the JSON of rows */

enum { TW_FILTER_NAME_BYTES = 100, TW_FILTER_QUERY_BYTES = 2000, TW_FILTERS_MAX = 100 };

struct tw_filter_row {
	const char *name, *query, *author;
	int64_t updated_ms;
};
extern const struct tw_fields tw_filter_fields;
enum tw_status tw_catalogue_filters(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_filter_row **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
/* Sets or replaces the filter of that name (updated_ms is ignored).  TW_CONFLICT if the project has
 * TW_FILTERS_MAX others. */
enum tw_status tw_catalogue_filter_set(struct tw_catalogue *c, const char *project_id,
        const struct tw_filter_row *row, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_filter_delete(struct tw_catalogue *c, const char *project_id,
        const char *name, struct tw_err *err) TW_MUST_USE;

#endif
