/* api_shared.h - parts of requests and responses that several endpoints use. */
#ifndef TW_API_SHARED_H
#define TW_API_SHARED_H

#include <jansson.h>

#include "decoder/base/err.h"
#include "server/base/text/json_write.h"
#include "server/notify/issue.h"
#include "server/query/query_compare.h"

/* Of lists over many traces. */
#define TW_API_OFFSET                                                                              \
	TW_PARAM_NUMBER("offset", 0, 0, INT32_MAX,                                                 \
	        "Rows to skip. The order changes as traces and reports are counted: a row may "    \
	        "then be on two pages, or on none.")

struct tw_req;
struct tw_trace_row;
struct tw_triage;

/* --- issues and the last change of a method: only from routes with by_child --- */

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

struct tw_blame_query { /* "" where unknown */
	const char *method, *app;
	const char *base, *head; /* versions */
};

/* The response of GET /api/v1/source/blame, with why instead of commits where they cannot be found
 * out.  Contains email addresses, which people may not be shown.  The caller frees it with
 * json_decref; NULL on failure. */
enum tw_status tw_api_blame(struct tw_req *r, const struct tw_blame_query *query, json_t **ret,
        struct tw_err *err) TW_MUST_USE;

/* --- triage of regressions, ANR groups and alerts --- */

/* Reads the triage fields that a body has (status, fixed_in, owner, note, muted_until_ms); others
 * in *io are unchanged. */
enum tw_status tw_triage_read(
        const json_t *body, struct tw_triage *io, struct tw_err *err) TW_MUST_USE;

/* --- differential trees, of one trace or many --- */

/* Writes into an open object: a column each for parent, method, other and the values of both sides,
 * and the numbers of all nodes and of returned ones. */
void tw_compare_put_tree(struct tw_json *j, const struct tw_compare *t);

/* --- a trace --- */

/* Adds report and clock bases to the trace's JSON. */
enum tw_status tw_view_report(struct tw_req *r, const struct tw_trace_row *row, json_t *json,
        struct tw_err *err) TW_MUST_USE;

#endif
