/*
 * view_open.h - opens the ready trace of a request, and reads the request's selection.
 * Thread: the one that answers the request.
 */
#ifndef TW_VIEW_OPEN_H
#define TW_VIEW_OPEN_H

#include "server/api/api.h"
#include "server/http/http.h"
#include "server/query/view.h"

struct tw_trace_row;

/* Opens the trace named in the path.  TW_NOT_FOUND; TW_CONFLICT with a message if it is not ready.
 * On success the caller frees with tw_view_close. */
enum tw_status tw_view_open(struct tw_req *r, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;
/* The same for an id of valid form. */
enum tw_status tw_view_open_id(
        struct tw_req *r, const char *id, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;

void tw_view_close(struct tw_view *v);

extern const struct tw_param tw_view_range_params[]; /* from= and to= */
/* thread=, from= and to= of a request, in its arena.  Of one trace of several (`some`) threads that
 * it does not have are left out. */
enum tw_status tw_view_selection(const struct tw_view *v, bool some, struct tw_selection *ret,
        struct tw_err *err) TW_MUST_USE;
#define TW_VIEW_TIME_MAX (INT64_C(1) << 61)
/* A range of time from parameters with these names; fails if they are in the wrong order. */
enum tw_status tw_view_times(const struct tw_req *r, const char *from, const char *to,
        struct tw_selection *ret, struct tw_err *err) TW_MUST_USE;
/* thread= alone. */
enum tw_status tw_view_threads(const struct tw_view *v, bool some, struct tw_selection *ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_deadline tw_view_deadline(const struct tw_view *v);

/* Sets ETag from the trace, the mapping and the query; true: the client has it, and 304 was
 * sent. */
bool tw_view_unchanged(const struct tw_view *v);
/* Replies with the buffer's JSON and takes its memory.  Without ETag if the query deadline has
 * passed: the response may be incomplete, and a repeated request may return more.  The file may be
 * closed. */
enum tw_status tw_view_reply(
        const struct tw_view *v, struct tw_buf *json, struct tw_err *err) TW_MUST_USE;

/* Adds report and clock bases to the trace's JSON. */
enum tw_status tw_view_report(struct tw_req *r, const struct tw_trace_row *row, json_t *json,
        struct tw_err *err) TW_MUST_USE;

#endif
