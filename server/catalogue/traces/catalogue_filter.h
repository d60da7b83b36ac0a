/*
 * catalogue_filter.h - saved filters of a project.  Thread: any.
 */
#ifndef TW_CATALOGUE_FILTER_H
#define TW_CATALOGUE_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;
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

/* --- builds and mappings (catalogue_build.c) --- */

#endif
