/*
 * api_regression.h - routes of regressions that are in separate files.
 */
#ifndef TW_API_REGRESSION_H
#define TW_API_REGRESSION_H

#include "server/http/http.h"

enum tw_status tw_regression_get_trend(struct tw_req *r, struct tw_err *err);

#endif
