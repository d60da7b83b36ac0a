/*
 * api_compare.h - a differential tree as JSON, the same wherever it comes from.
 */
#ifndef TW_API_COMPARE_H
#define TW_API_COMPARE_H

#include "server/base/text/json_write.h"
#include "server/query/query_compare.h"

/* Within an object: a column for each of parent, method, other and the numbers of both sides, and
 * how many nodes there are and are shown. */
void tw_compare_put_tree(struct tw_json *j, const struct tw_compare *t);

#endif
