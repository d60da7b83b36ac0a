/*
 * regression_json.h - a regression as the API, webhooks and digests tell it.
 *
 * Thread: any.
 */
#ifndef TW_REGRESSION_JSON_H
#define TW_REGRESSION_JSON_H

#include <jansson.h>

#include "server/catalogue/fleet/catalogue_regression.h"

/* NULL: no memory; json_decref is owed. */
json_t *tw_regression_json(const struct tw_regression *r);

#endif
