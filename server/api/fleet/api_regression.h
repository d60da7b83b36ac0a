/*
 * api_regression.h - the fields of a triage in a request.
 */
#ifndef TW_API_REGRESSION_H
#define TW_API_REGRESSION_H

#include <jansson.h>

#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/http/http.h"

/* Reads the triage fields that a body has (status, fixed_in, owner, note, muted_until_ms); others
 * in *io are unchanged. */
enum tw_status tw_triage_read(
        const json_t *body, struct tw_triage *io, struct tw_err *err) TW_MUST_USE;

#endif
