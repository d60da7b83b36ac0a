/*
 * api_compare.h - writes a differential tree as JSON, for one trace or many.
 */
#ifndef TW_API_COMPARE_H
#define TW_API_COMPARE_H

#include "server/base/text/json_write.h"
#include "server/query/query_compare.h"

/* Writes into an open object: a column each for parent, method, other and the values of both sides,
 * and the numbers of all nodes and of returned ones. */
void tw_compare_put_tree(struct tw_json *j, const struct tw_compare *t);

#endif
