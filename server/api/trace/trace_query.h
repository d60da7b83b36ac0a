/*
 * trace_query.h - one query on one trace: opens the ready trace of a request, reads the request's
 * selection, and replies.
 * Thread: the one that answers the request.
 */
#ifndef TW_TRACE_QUERY_H
#define TW_TRACE_QUERY_H

#include "server/api/api.h"
#include "server/base/text/json_write.h"
#include "server/http/http.h"
#include "server/query/query_reshape.h"
#include "server/query/view.h"

struct tw_trace_row;

/* Opens the trace named in the path.  TW_NOT_FOUND; TW_CONFLICT with a message if it is not ready.
 * On success the caller frees with tw_view_close. */
enum tw_status tw_view_open(struct tw_req *r, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;
/* The same for an id of valid form. */
enum tw_status tw_view_open_id(
        struct tw_req *r, const char *id, struct tw_view *ret, struct tw_err *err) TW_MUST_USE;

/* The same for the row in *v, which is otherwise zero. */
enum tw_status tw_view_open_row(
        struct tw_req *r, struct tw_view *v, struct tw_err *err) TW_MUST_USE;

void tw_view_close(struct tw_view *v);

extern const struct tw_param tw_view_range_params[];    /* from= and to= */
extern const struct tw_param tw_view_sanitize_params[]; /* sanitize=: tw_trace_file_sanitize */
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

/* --- queries on a trace: view, memory, names, reshaping (transform=), response --- */

struct tw_trace_query {
	struct tw_view v;
	struct tw_arena *arena;
	struct tw_selection sel;
	struct tw_deadline deadline;
	struct tw_buf out;
	struct tw_json j;
	char *name;           /* TW_NAME_BYTES */
	struct tw_str *names; /* names of methods that were read; ptr NULL: not read yet */
	struct tw_reshape steps[TW_RESHAPES_MAX];
	size_t n_steps;
	struct tw_str
	        labels[TW_RESHAPES_MAX]; /* frames that steps make: methods from n_methods on */
	uint32_t n_labels;
};

/* Opens the trace, calls the route's trace_query to write to q->out, replies. */
enum tw_status tw_trace_query_handle(struct tw_req *r, struct tw_err *err) TW_MUST_USE;

/* The key "tid" of the thread with this number in the trace; null if there is none. */
void tw_trace_put_tid(struct tw_json *j, const struct tw_trace_file *f, uint32_t thread_id);
/* Each name is looked up once.  Valid as long as q. */
struct tw_str tw_trace_query_name(const struct tw_trace_query *q, uint32_t method);
/* Writes the member "descriptor": "" if unknown, or for a frame that a step made. */
void tw_trace_query_put_descriptor(struct tw_trace_query *q, uint32_t method);

/* Whether steps change the trees. */
static inline bool tw_trace_query_reshapes(const struct tw_trace_query *q)
{
	return q->n_steps > 0;
}

/* Applies the steps to *forest; unchanged if there are none.  *io_partial as for tw_query_reshape.
 */
enum tw_status tw_trace_query_reshape(struct tw_trace_query *q, struct tw_forest *forest,
        bool *io_partial, struct tw_err *err) TW_MUST_USE;

extern const struct tw_param tw_trace_query_step_params[];

#endif
