/*
 * compare_sides.h - what a request compares: A and B, opened, their methods numbered in common.
 *
 * A side is traces of the caller's project, named by their ids (`a=`, `b=`); other
 * ways to choose them come down to the same struct.  A method is one method on
 * both sides when it has one name.  One that no mapping names is told apart by its
 * build, for the same id means another method in another build.
 * Thread: one request.
 */
#ifndef TW_COMPARE_SIDES_H
#define TW_COMPARE_SIDES_H

#include "server/catalogue/catalogue.h"
#include "server/http/http.h"
#include "server/query/query_compare.h"

enum { TW_SIDE_TRACES_MAX = 16 };

struct tw_side_trace {
	struct tw_trace_row row;
	const struct tw_str *names; /* of its methods, by index */
	uint32_t n_names;
	uint32_t n_named; /* whose name is known */
	struct tw_forest forest;
};

struct tw_sides {
	struct tw_side_trace *traces[TW_SIDES];
	struct tw_compare_side side[TW_SIDES];
	const struct tw_str *names; /* by common number, in their order */
	uint32_t n_names;
	struct tw_deadline deadline;
};

/* a=, b= and thread= of the request.  All is in the arena, except the texts of the rows, which live
 * as long as the request.  TW_NOT_FOUND, TW_CONFLICT (not decoded), TW_BAD_REQUEST, TW_DEADLINE
 * (asked before each trace) in words. */
enum tw_status tw_sides_open(
        struct tw_req *r, struct tw_arena *a, struct tw_sides *ret, struct tw_err *err) TW_MUST_USE;

#endif
