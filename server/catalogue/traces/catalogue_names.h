/*
 * catalogue_names.h - which mappings name a trace's methods, and how many names they resolve.
 * Thread: any.
 */
#ifndef TW_CATALOGUE_NAMES_H
#define TW_CATALOGUE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

struct tw_catalogue;
struct tw_name_counts;

struct tw_named_trace {
	const char *project_id, *trace_id, *build_id, *mapping_id;
};
struct tw_rename { /* a build with a new mapping; what follows after_id is to be named again */
	const char *project_id, *build_id, *after_id;
	int64_t generation; /* of the mapping */
};
/* Marks some traces of a build with a new mapping as uncounted; *ret_more: call again. */
enum tw_status tw_catalogue_names_mark(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err) TW_MUST_USE;

struct tw_mapping_ids { /* compiled images, "" none */
	char map[65], retrace[65];
};
struct tw_trace_names {
	struct tw_named_trace trace;
	struct tw_mapping_ids by;            /* the mappings used for the counts */
	const struct tw_name_counts *counts; /* NULL: it is not counted */
};
/* Counts of traces of one project, in one transaction; not those of a trace that was deleted, or
 * whose mappings changed since. */
enum tw_status tw_catalogue_names_set(struct tw_catalogue *c, const struct tw_trace_names *of,
        size_t n, struct tw_err *err) TW_MUST_USE;
/* The mappings of a trace (`trace_id` is ignored): those of mapping_id if that is a build with a
 * mapping, otherwise those of build_id. */
enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err) TW_MUST_USE;

#endif
