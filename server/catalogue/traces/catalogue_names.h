/*
 * catalogue_names.h - numbers of names that the mappings of traces resolve, and changes by a new
 * mapping. Thread: any.
 */
#ifndef TW_CATALOGUE_NAMES_H
#define TW_CATALOGUE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/traces/catalogue_build.h"

struct tw_catalogue;

struct tw_rename { /* a build with a new mapping; what follows after_id is to be named again */
	const char *project_id, *build_id, *after_id;
	int64_t generation; /* of the mapping */
};
/* Marks some traces of a build with a new mapping as uncounted; *ret_more: call again. */
enum tw_status tw_catalogue_names_mark_stale(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_trace_names {
	struct tw_named_trace trace;
	struct tw_mapping_ids by;            /* the mappings used for the counts */
	const struct tw_name_counts *counts; /* NULL: it is not counted */
};
/* Counts of traces of one project, in one transaction; not those of a trace that was deleted, or
 * whose mappings changed since. */
enum tw_status tw_catalogue_names_set(struct tw_catalogue *c, const struct tw_trace_names *of,
        size_t n, struct tw_err *err) TW_MUST_USE;
#endif
