/*
 * view.h - a ready trace opened for one request: its file, and the mapping that names its methods.
 */
#ifndef TW_VIEW_H
#define TW_VIEW_H

#include "app.h"
#include "catalogue.h"
#include "http.h"
#include "query.h"
#include "symbols.h"

struct tw_view {
	struct tw_req *req;
	struct tw_trace_row row;
	struct tw_trace_file *file;
	struct tw_symbols_ref *map_ref, *retrace_ref;
	struct tw_names names; /* what there is of its build's mappings */
	const struct tw_method_info *methods;
	uint32_t n_methods;
	char map_sha256[TW_SHA256_HEX], retrace_sha256[TW_SHA256_HEX]; /* "" without a mapping */
	int64_t rules_version; /* of what else the answer depends on; 0: on nothing */
};

/* Opens the trace named in the path.  TW_NOT_FOUND; TW_CONFLICT with a sentence when it is not
 * ready.  tw_view_close is owed on success. */
enum tw_status tw_view_open(struct tw_req *r, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;
/* The same of an id that is known to look like one. */
enum tw_status tw_view_open_id(
        struct tw_req *r, const char *id, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;
void tw_view_close(struct tw_view *v);

/* The name of a method of the trace, valid UTF-8, in buf when it must be put together; *ret_known
 * (may be NULL) false for ids without a mapping line. */
enum { TW_NAME_BYTES = 16384 };
struct tw_str tw_view_name(
        const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES], bool *ret_known);

/* thread= (or threads=), from=, to= of a request.  tids live in the request's arena. */
enum tw_status tw_view_selection(
        const struct tw_view *v, struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;
/* The same of one trace of several: threads that it does not have are left out. */
enum tw_status tw_view_selection_part(
        const struct tw_view *v, struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;
struct tw_deadline tw_view_deadline(const struct tw_view *v);

/* Sets ETag from the trace, the mapping and the query; true: the client has it, and was told. */
bool tw_view_unchanged(const struct tw_view *v);

/* Adds report and clock bases to the trace's JSON. */
enum tw_status tw_view_report(struct tw_req *r, const struct tw_trace_row *row, json_t *json,
        struct tw_err *err) TW_MUST_USE;

#endif
