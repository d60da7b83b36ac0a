/*
 * regression_json.h - a regression as JSON, for the API, webhooks and digests.
 *
 * Thread: any.
 */
#ifndef TW_REGRESSION_JSON_H
#define TW_REGRESSION_JSON_H

#include <jansson.h>

#include "server/catalogue/fleet/catalogue_regression.h"

/* NULL: out of memory.  Free with json_decref. */
json_t *tw_regression_json(const struct tw_regression *r);

#endif
