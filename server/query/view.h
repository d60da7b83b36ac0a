/*
 * view.h - a ready trace opened for one request: its file, and the mapping that names its methods.
 */
#ifndef TW_VIEW_H
#define TW_VIEW_H

#include "server/catalogue/catalogue.h"
#include "server/query/query.h"
#include "server/trace/symbols.h"

struct tw_req;

struct tw_view {
	struct tw_req *req;
	struct tw_trace_row row;
	struct tw_trace_file *file;
	struct tw_symbols_ref *map_ref, *retrace_ref;
	struct tw_names names; /* what there is of its build's mappings */
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	char map_sha256[TW_SHA256_HEX], retrace_sha256[TW_SHA256_HEX]; /* "" without a mapping */
	int64_t rules_version; /* of what else the answer depends on; 0: on nothing */
};

/* The name of a method of the trace, valid UTF-8, in buf when it must be put together; *ret_known
 * (may be NULL) false for ids without a mapping line. */
enum { TW_NAME_BYTES = 16384 };
struct tw_str tw_view_name(
        const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES], bool *ret_known);

#endif
