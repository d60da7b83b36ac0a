/*
 * compare_sides.h - the two sides of a comparison, A and B: opened, with a common numbering of
 * methods.
 *
 * A side is a list of traces of the caller's project, given by ids (`a=`, `b=`), whole or of a
 * time range and some threads.  A method is the
 * same on both sides if its name is.  A method without a mapping is kept apart by build, because
 * the same id means another method in another build. Thread: one request.
 */
#ifndef TW_COMPARE_SIDES_H
#define TW_COMPARE_SIDES_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/http/http.h"
#include "server/query/query_compare.h"

enum { TW_SIDE_TRACES_MAX = 16 };

struct tw_side_trace {
	struct tw_trace_row row;
	const struct tw_str *names; /* of its methods, by index */
	uint32_t n_names;
	uint32_t n_named; /* number of those with a known name */
	struct tw_forest forest;
};

struct tw_sides {
	struct tw_side_trace *traces[TW_SIDES];
	struct tw_compare_side side[TW_SIDES];
	const struct tw_str *names; /* by common number */
	uint32_t n_names;
	struct tw_deadline deadline;
};

/* What tw_sides_open reads, besides tw_api_thread_params. */
extern const struct tw_param tw_sides_params[];

/* Reads the sides' parameters and thread= of the request.  All is in the arena, except the texts of
 * the rows, which are valid during the request.  Errors with a message: TW_NOT_FOUND, TW_CONFLICT
 * (not decoded), TW_BAD_REQUEST, TW_DEADLINE (checked before each trace). */
enum tw_status tw_sides_open(
        struct tw_req *r, struct tw_arena *a, struct tw_sides *ret, struct tw_err *err) TW_MUST_USE;

#endif
