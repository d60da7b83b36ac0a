/*
 * query_weight.h - node widths of a flame graph for metrics other than wall time.
 *
 * Thread: one query.
 */
#ifndef TW_QUERY_WEIGHT_H
#define TW_QUERY_WEIGHT_H

#include "server/query/query.h"

struct tw_weights {
	int64_t **own; /* per tree and node: self value; NULL: wall time is used */
	int64_t **all; /* and the value including descendants */
};

enum tw_status tw_weigh(const struct tw_forest *f, const struct tw_flame_query *q,
        struct tw_arena *a, struct tw_weights *ret, struct tw_err *err) TW_MUST_USE;

static inline int64_t tw_weight_own(
        const struct tw_weights *w, const struct tw_forest *f, uint32_t tree, uint32_t at)
{
	return w->own ? w->own[tree][at] : f->trees[tree].nodes[at].self_ns;
}

static inline int64_t tw_weight_all(
        const struct tw_weights *w, const struct tw_forest *f, uint32_t tree, uint32_t at)
{
	return w->all ? w->all[tree][at] : f->trees[tree].nodes[at].total_ns;
}

#endif
