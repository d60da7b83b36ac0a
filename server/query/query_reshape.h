/*
 * query_reshape.h - transforms call trees for display: without some methods, only below one, a
 * library as one frame.
 *
 * Each step rewrites whole trees, so that sums of a flame graph of the result are correct at any
 * depth and in both directions.  Siblings of one method may occur separately in the result;
 * query_grow.h joins them again. Thread: one query.
 */
#ifndef TW_QUERY_RESHAPE_H
#define TW_QUERY_RESHAPE_H

#include "server/query/query.h"

enum tw_reshape_kind {
	TW_RESHAPE_FOCUS, /* only the outermost calls of the methods, and what they call */
	TW_RESHAPE_DROP,  /* calls of the methods are removed with all their callees and time */
	/* calls of the methods are merged into their callers' own time and callees */
	TW_RESHAPE_MERGE,
	TW_RESHAPE_FOLD, /* callees of the methods, and all below, become the methods' own time */
	TW_RESHAPE_COLLAPSE, /* methods that call each other are one frame, called `as` */
	TW_RESHAPE_RECURSION /* a method that calls itself is one frame */
};

enum { TW_RESHAPES_MAX = 32 };

struct tw_reshape {
	enum tw_reshape_kind kind;
	const uint8_t *methods; /* one bit per method, lowest first; unused for RECURSION */
	uint32_t n_methods;     /* number of bits; methods beyond are not selected */
	uint32_t as;            /* for COLLAPSE: an unused method index */
};

static inline bool tw_reshape_means(const struct tw_reshape *r, uint32_t method)
{
	return method < r->n_methods && (r->methods[method >> 3] >> (method & 7) & 1);
}

/* Applies the steps in order, on copies of the trees.  CPU time follows wall time.  After the
 * deadline further trees are omitted and *io_partial is set. */
enum tw_status tw_query_reshape(const struct tw_forest *f, const struct tw_reshape *steps, size_t n,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_forest *ret,
        bool *io_partial, struct tw_err *err) TW_MUST_USE;

#endif
