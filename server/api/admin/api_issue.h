/*
 * api_issue.h - the issue of a regression or a group of ANRs, for the routes that show or create
 * it.
 *
 * Waits for a child process: only from routes with by_child.
 */
#ifndef TW_API_ISSUE_H
#define TW_API_ISSUE_H

#include <jansson.h>

#include "server/notify/issue.h"

struct tw_req;

/* The project's tracker (TW_SETTING_TRACKER), or the default.  Free with json_decref. */
enum tw_status tw_api_tracker(struct tw_req *r, json_t **ret, struct tw_err *err) TW_MUST_USE;

/* The issue is valid during the call. */
typedef enum tw_status tw_api_issue_fn(
        struct tw_req *r, const struct tw_issue *i, void *arg, struct tw_err *err);
/* Of the path's {regression} or {key}; TW_NOT_FOUND. */
enum tw_status tw_api_issue_regression(struct tw_req *r, enum tw_tracker tracker,
        tw_api_issue_fn *fn, void *arg, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_api_issue_group(struct tw_req *r, enum tw_tracker tracker, tw_api_issue_fn *fn,
        void *arg, struct tw_err *err) TW_MUST_USE;

#endif
