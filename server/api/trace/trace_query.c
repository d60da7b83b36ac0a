#include "server/api/trace/trace_query.h"

#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/http/metrics.h"
#include "server/ingest/backlog.h"
#include "server/query/detect/frame_rules.h"
#include "server/storage/blob.h"
#include "server/trace/trace_readers.h"

static enum tw_status not_ready(const struct tw_trace_row *row, struct tw_err *err)
{
	if (row->state == TW_TRACE_FAILED)
		return tw_fail_at(err, TW_CONFLICT, row->error.offset,
		        "this trace could not be decoded: %.150s", row->error.msg);
	return tw_fail(err, TW_CONFLICT,
	        "this trace is still being decoded (%s%s%.120s); retry in a moment",
	        tw_trace_state_name(row->state), row->error.msg[0] ? ": " : "", row->error.msg);
}

/* Without a readable mapping the trace is shown without names. A mapping that is temporarily
 * unavailable is an error to be retried. */
static enum tw_status acquire(struct tw_view *v, char sha256[TW_SHA256_HEX],
        struct tw_symbols_ref **ret, struct tw_err *err)
{
	struct tw_err why;
	enum tw_status st = tw_symbols_acquire(tw_api_of(v->req)->symbols, sha256, ret, &why);

	if (st == TW_OK)
		return st;
	*ret = NULL;
	if (st == TW_BUSY || st == TW_NOMEM) {
		tw_err_copy(err, &why);
		return st;
	}
	tw_log_err(TW_LOG_ERROR, "mapping_unreadable", v->row.meta.build_id, &why);
	sha256[0] = '\0';
	return TW_OK;
}

static enum tw_status open_mappings(struct tw_view *v, struct tw_err *err)
{
	const struct tw_named_trace of = {
	        v->row.project_id, v->row.id, v->row.meta.build_id, v->row.meta.mapping_id};
	struct tw_mapping_ids ids;
	enum tw_status st = tw_catalogue_mappings(
	        tw_api_catalogue(v->req), &of, tw_req_arena(v->req), &ids, err);

	if (st != TW_OK)
		return st;
	memcpy(v->map_sha256, ids.map, sizeof v->map_sha256);
	memcpy(v->retrace_sha256, ids.retrace, sizeof v->retrace_sha256);
	st = acquire(v, v->map_sha256, &v->map_ref, err);
	if (st == TW_OK)
		st = acquire(v, v->retrace_sha256, &v->retrace_ref, err);
	if (st != TW_OK)
		return st;
	v->names = (struct tw_names){
	        tw_symbols_map(v->map_ref), tw_symbols_retrace(v->retrace_ref), NULL};
	return TW_OK;
}

static enum tw_status inline_frames(struct tw_view *v, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(v->req);
	struct tw_names names = v->names;
	enum tw_status st = tw_natives_open(api->catalogue, api->symbols, v->row.project_id,
	        v->file, tw_req_arena(v->req), &v->natives, err);

	names.natives = &v->natives.natives;
	return st == TW_OK ? tw_trace_file_inline(v->file, &names, err) : st;
}

static enum tw_status open_file(struct tw_view *v, struct tw_err *err)
{
	const int64_t until = tw_monotonic_ms() + (int64_t)tw_req_ms_left(v->req);
	enum tw_status st =
	        tw_trace_stored_open_by(tw_api_of(v->req)->blobs, v->row.id, until, &v->file, err);

	if (st == TW_OK)
		st = inline_frames(v, err);
	if (st == TW_OK)
		st = tw_trace_file_method_refs(v->file, &v->methods, &v->n_methods, err);
	return st;
}

/* Whether the file could not be opened because the trace was deleted. */
static bool is_gone(struct tw_req *r, const char *id)
{
	struct tw_trace_row row;
	struct tw_err why;

	return tw_catalogue_trace_get(tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r),
	               &row, &why) == TW_NOT_FOUND;
}

/* The decoded file is damaged: queues the trace for decoding from its upload, unless a concurrent
 * request did. */
static enum tw_status requeue_damaged(
        struct tw_req *r, const struct tw_trace_row *seen, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	struct tw_trace_row now;
	enum tw_status st = tw_catalogue_trace_get(
	        api->catalogue, seen->project_id, seen->id, tw_req_arena(r), &now, err);

	if (st == TW_OK && now.state == TW_TRACE_READY && now.ready_ms == seen->ready_ms) {
		tw_log(TW_LOG_WARN, "trace_file_damaged", tw_log_text("trace", seen->id),
		        tw_log_text("action", "decoding it again"));
		tw_metrics_file_repaired(api->metrics);
		st = tw_catalogue_trace_requeue(api->catalogue, seen->project_id, seen->id, err);
		tw_jobs_wake(api->jobs);
	}
	return st;
}

/* Readers can cause decodes, so they are limited by the queue and the disk's free space. */
static enum tw_status has_space(
        struct tw_req *r, const struct tw_trace_row *row, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	char wait[16];
	enum tw_status st = tw_blobs_check_space(api->blobs, 0, err);

	if (st == TW_FULL)
		return tw_fail(err, TW_FULL,
		        "only the upload of this trace is stored, and the disk has no space to "
		        "decode it again");
	if (st == TW_OK && api->backlog)
		st = tw_backlog_check_again(api->backlog, row->project_id, row->upload_bytes, err);
	if (st == TW_BUSY) {
		(void)snprintf(wait, sizeof wait, "%d", TW_BACKLOG_RETRY_S);
		tw_req_set_header(r, "Retry-After", wait);
	}
	return st;
}

/* Opening an archived trace queues it for decoding; of concurrent requests only the first does. */
static enum tw_status requeue_archived(
        struct tw_req *r, const struct tw_trace_row *seen, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	struct tw_trace_row now;
	enum tw_status st = tw_catalogue_trace_get(
	        api->catalogue, seen->project_id, seen->id, tw_req_arena(r), &now, err);

	if (st == TW_OK && now.state == TW_TRACE_ARCHIVED) {
		st = has_space(r, &now, err);
		if (st == TW_OK)
			st = tw_catalogue_trace_requeue(
			        api->catalogue, seen->project_id, seen->id, err);
		if (st == TW_OK && api->backlog)
			tw_backlog_added(api->backlog, seen->project_id, now.upload_bytes);
		tw_jobs_wake(api->jobs);
	}
	if (st != TW_OK)
		return st;
	return tw_fail(err, TW_CONFLICT,
	        "only the upload of this trace is stored; it is being decoded again, retry in a "
	        "moment");
}

static bool is_file_bad(enum tw_status st)
{
	return st == TW_CORRUPT || st == TW_UNSUPPORTED || st == TW_NOT_FOUND;
}

static enum tw_status fail_open(
        struct tw_req *r, const struct tw_trace_row *row, enum tw_status st, struct tw_err *err)
{
	if (is_gone(r, row->id))
		return tw_fail(err, TW_NOT_FOUND, "this trace was deleted");
	if (!is_file_bad(st))
		return st;
	if (!row->has_upload)
		return tw_fail(err, TW_NOT_FOUND,
		        "this trace is lost: its decoded file is damaged, and its upload was not "
		        "stored");
	st = requeue_damaged(r, row, err);
	if (st != TW_OK)
		return st;
	return tw_fail(err, TW_BUSY,
	        "the decoded file of this trace was damaged; it is being decoded again from its "
	        "upload, retry in a moment");
}

enum tw_status tw_view_open_row(struct tw_req *r, struct tw_view *v, struct tw_err *err)
{
	enum tw_status st;

	v->req = r;
	if (v->row.state != TW_TRACE_READY)
		return not_ready(&v->row, err);
	st = open_mappings(v, err);
	if (st == TW_OK)
		st = open_file(v, err);
	if (st == TW_OK)
		return st;
	tw_view_close(v);
	return fail_open(r, &v->row, st, err);
}

enum tw_status tw_view_open_id(
        struct tw_req *r, const char *id, struct tw_view *ret, struct tw_err *err)
{
	struct tw_view v = {.req = r};
	enum tw_status st = tw_catalogue_trace_get(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &v.row, err);

	if (st == TW_OK && v.row.state == TW_TRACE_ARCHIVED)
		st = requeue_archived(r, &v.row, err);
	if (st != TW_OK)
		return st;
	st = tw_view_open_row(r, &v, err);
	if (st == TW_OK)
		*ret = v;
	return st;
}

enum tw_status tw_view_open(struct tw_req *r, struct tw_view *ret, struct tw_err *err)
{
	const char *id;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	return st == TW_OK ? tw_view_open_id(r, id, ret, err) : st;
}

void tw_view_close(struct tw_view *v)
{
	if (v->file && tw_trace_file_is_damaged(v->file)) {
		(void)tw_trace_forget(tw_api_of(v->req)->blobs, v->row.id);
		(void)requeue_damaged(v->req, &v->row, NULL);
	}
	v->file = tw_trace_file_close(v->file);
	tw_natives_close(tw_api_of(v->req)->symbols, &v->natives);
	tw_symbols_release(tw_api_of(v->req)->symbols, v->map_ref);
	tw_symbols_release(tw_api_of(v->req)->symbols, v->retrace_ref);
	v->map_ref = v->retrace_ref = NULL;
	v->names = (struct tw_names){NULL, NULL, NULL};
}

enum tw_status tw_view_threads(
        const struct tw_view *v, bool some, struct tw_selection *ret, struct tw_err *err)
{
	return tw_selection_threads(
	        v->file, tw_api_thread(v->req), some, tw_req_arena(v->req), ret, err);
}

const struct tw_param tw_view_range_params[] = {
        TW_PARAM_OPTIONAL_NUMBER("from", 0, TW_VIEW_TIME_MAX, "Start of a time range in ns."),
        TW_PARAM_OPTIONAL_NUMBER("to", 0, TW_VIEW_TIME_MAX, "End of a time range in ns."),
        {0},
};

const struct tw_param tw_view_sanitize_params[] = {
        TW_PARAM_FLAG("sanitize", false,
                "Removes private data: texts of events, counters, documents, other processes, the "
                "device, the date, the trace's id and the system trace. Names of threads are "
                "shortened to their first word, and names of calls end before a web address."),
        {0},
};

enum tw_status tw_view_times(const struct tw_req *r, const char *from, const char *to,
        struct tw_selection *ret, struct tw_err *err)
{
	struct tw_selection s = {.from_ns = tw_req_number_or(r, from, 0),
	        .to_ns = tw_req_number_or(r, to, TW_VIEW_TIME_MAX),
	        .ranged = tw_req_text(r, from) || tw_req_text(r, to)};

	if (s.ranged && s.from_ns >= s.to_ns)
		return tw_fail(err, TW_BAD_REQUEST, "%s must be less than %s", from, to);
	*ret = s;
	return TW_OK;
}

enum tw_status tw_view_selection(
        const struct tw_view *v, bool some, struct tw_selection *ret, struct tw_err *err)
{
	enum tw_status st = tw_view_times(v->req, "from", "to", ret, err);

	return st == TW_OK ? tw_view_threads(v, some, ret, err) : st;
}

struct tw_deadline tw_view_deadline(const struct tw_view *v)
{
	return tw_api_deadline(v->req);
}

/* The URL identifies the query, so the ETag covers trace, decoder, mapping and symbols. */
bool tw_view_unchanged(const struct tw_view *v)
{
	char tag[192];

	(void)snprintf(tag, sizeof tag, "%s-%s-%u-%.16s-%.16s-%llx-%llx", TW_VERSION, v->row.id,
	        v->row.summary.decoder_version, v->map_sha256, v->retrace_sha256,
	        (unsigned long long)v->natives.version, (unsigned long long)v->rules_version);
	return tw_req_reply_unchanged(v->req, tag);
}

/* Replies with the buffer's JSON and takes its memory.  Without ETag if the query deadline has
 * passed: the response may be incomplete, and a repeated request may return more.  The file may be
 * closed. */
static enum tw_status reply_json(const struct tw_view *v, struct tw_buf *json, struct tw_err *err)
{
	if (tw_req_ms_left(v->req) == 0)
		tw_req_unset_header(v->req, "ETag");
	return tw_req_reply_buf(v->req, 200, "application/json", true, json, err);
}

/* --- queries on a trace --- */

#define BODY_MAX  ((size_t)512 << 20)
#define ARENA_MAX ((size_t)1 << 30)

static enum tw_status open_query(struct tw_req *r, struct tw_trace_query *q, struct tw_err *err)
{
	enum tw_status st = tw_view_open(r, &q->v, err);

	if (st != TW_OK)
		return st;
	tw_buf_init(&q->out, BODY_MAX);
	q->j = tw_json_to(&q->out);
	q->deadline = tw_view_deadline(&q->v);
	q->arena = tw_arena_new(ARENA_MAX);
	q->name = q->arena ? tw_arena_alloc(q->arena, TW_NAME_BYTES, 1) : NULL;
	q->names = q->name ? tw_arena_zalloc(q->arena, q->v.n_methods + 1, sizeof *q->names) : NULL;
	return q->names ? tw_view_selection(&q->v, false, &q->sel, err) : tw_oom(err);
}

static enum tw_status reply(struct tw_trace_query *q,
        enum tw_status (*answer)(struct tw_trace_query *q, struct tw_err *err), struct tw_err *err)
{
	static const char type[] = "application/json";
	enum tw_status st;

	if (tw_req_reply_cached(q->v.req, type))
		return TW_OK;
	st = answer(q, err);
	if (st != TW_OK)
		return st;
	if (tw_deadline_passed(&q->deadline))
		return reply_json(&q->v, &q->out, err);
	return tw_req_reply_and_cache(q->v.req, type, &q->out, err);
}

void tw_trace_put_tid(struct tw_json *j, const struct tw_trace_file *f, uint32_t thread_id)
{
	uint32_t n;
	const struct tw_thread_info *threads = tw_trace_file_threads(f, &n);

	tw_json_key_int_or_null(
	        j, "tid", thread_id && thread_id <= n ? (int64_t)threads[thread_id - 1].tid : -1);
}

struct tw_str tw_trace_query_name(const struct tw_trace_query *q, uint32_t method)
{
	struct tw_str name;
	char *copy;

	if (method >= q->v.n_methods)
		return method - q->v.n_methods < q->n_labels ? q->labels[method - q->v.n_methods]
		                                             : TW_STR("");
	if (q->names[method].ptr)
		return q->names[method];
	name = tw_view_name(&q->v, method, q->name, NULL);
	copy = tw_arena_str(q->arena, name);
	if (!copy)
		return name;
	return q->names[method] = (struct tw_str){copy, name.len};
}

void tw_trace_query_put_descriptor(struct tw_trace_query *q, uint32_t method)
{
	tw_json_key_str(&q->j, "descriptor", tw_view_descriptor(&q->v, method, q->name));
}

enum tw_status tw_trace_query_reshape(
        struct tw_trace_query *q, struct tw_forest *forest, bool *io_partial, struct tw_err *err)
{
	struct tw_forest from = *forest;

	if (!q->n_steps)
		return TW_OK;
	return tw_query_reshape(
	        &from, q->steps, q->n_steps, &q->deadline, q->arena, forest, io_partial, err);
}

/* --- reshaped graphs --- */

static uint8_t *new_set(const struct tw_trace_query *q, struct tw_reshape *step)
{
	uint8_t *set;

	step->n_methods = q->v.n_methods + q->n_labels;
	set = tw_arena_zalloc(q->arena, step->n_methods / 8 + 1, 1);
	step->methods = set;
	return set;
}

static void select_method(uint8_t *set, uint32_t method)
{
	set[method >> 3] |= (uint8_t)(1u << (method & 7));
}

static enum tw_status one_method(
        struct tw_trace_query *q, struct tw_str text, struct tw_reshape *step, struct tw_err *err)
{
	uint8_t *set = new_set(q, step);
	uint64_t method = 0;

	if (!set)
		return tw_oom(err);
	if (!tw_str_u64(text, UINT32_MAX, &method) || method >= step->n_methods)
		return tw_fail(err, TW_BAD_REQUEST, "transform: this trace has no method %.*s",
		        (int)(text.len % 100), text.ptr);
	select_method(set, (uint32_t)method);
	return TW_OK;
}

static enum tw_status library(struct tw_trace_query *q, struct tw_str beginning,
        struct tw_reshape *step, struct tw_err *err)
{
	uint8_t *set = new_set(q, step);
	char label[TW_FRAME_RULE_BYTES + 3];
	char *copy;

	if (beginning.len == 0 || beginning.len > TW_FRAME_RULE_BYTES)
		return tw_fail(err, TW_BAD_REQUEST,
		        "transform: library: needs a prefix of a name, up to %d bytes",
		        TW_FRAME_RULE_BYTES);
	(void)snprintf(label, sizeof label, "[%.*s]", (int)beginning.len, beginning.ptr);
	copy = tw_arena_str(q->arena, tw_str_of(label));
	if (!set || !copy)
		return tw_oom(err);
	for (uint32_t i = 0; i < step->n_methods; i++)
		if (tw_frame_begins(tw_trace_query_name(q, i), beginning))
			select_method(set, i);
	step->as = q->v.n_methods + q->n_labels;
	q->labels[q->n_labels++] = tw_str_of(copy);
	return TW_OK;
}

static enum tw_status app_only(
        struct tw_trace_query *q, struct tw_reshape *step, int64_t *ret_version, struct tw_err *err)
{
	const struct tw_frame_rules *rules = NULL;
	uint8_t *set = new_set(q, step);
	enum tw_status st;

	if (!set)
		return tw_oom(err);
	st = tw_frame_rules_of(tw_api_catalogue(q->v.req), q->v.row.project_id, q->arena, &rules,
	        ret_version, err);
	for (uint32_t i = 0; st == TW_OK && i < step->n_methods; i++)
		if (!tw_frame_rules_app(rules, tw_trace_query_name(q, i)))
			select_method(set, i);
	return st;
}

static enum tw_status read_step(
        struct tw_trace_query *q, struct tw_str text, int64_t *ret_version, struct tw_err *err)
{
	static const struct {
		const char *word;
		enum tw_reshape_kind kind;
	} of_methods[] = {{"focus", TW_RESHAPE_FOCUS}, {"drop", TW_RESHAPE_DROP},
	        {"merge", TW_RESHAPE_MERGE}, {"fold", TW_RESHAPE_FOLD}};
	struct tw_reshape *step = &q->steps[q->n_steps];
	struct tw_str word = tw_str_split(&text, ':');

	if (q->n_steps == TW_RESHAPES_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "transform: at most %d steps", TW_RESHAPES_MAX);
	q->n_steps++;
	for (size_t i = 0; i < sizeof of_methods / sizeof *of_methods; i++)
		if (tw_str_eq(word, tw_str_of(of_methods[i].word))) {
			step->kind = of_methods[i].kind;
			return one_method(q, text, step, err);
		}
	if (tw_str_eq(word, TW_STR("library"))) {
		step->kind = TW_RESHAPE_COLLAPSE;
		return library(q, text, step, err);
	}
	if (tw_str_eq(word, TW_STR("app"))) {
		step->kind = TW_RESHAPE_MERGE;
		return app_only(q, step, ret_version, err);
	}
	step->kind = TW_RESHAPE_RECURSION;
	if (tw_str_eq(word, TW_STR("recursion")))
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "transform: unknown step %.*s; the steps are focus, drop, merge, fold, library, "
	        "recursion, app",
	        (int)(word.len % 100), word.ptr);
}

const struct tw_param tw_trace_query_step_params[] = {
        TW_PARAM_TEXT("transform", 4096,
                "Up to 32 steps, separated by commas, applied in order to the calls before "
                "they are counted: focus:METHOD (only its outermost calls and what they call), "
                "drop:METHOD (without its calls and everything they call), merge:METHOD (its time "
                "and callees become its caller's), fold:METHOD (the time of its callees becomes "
                "its own), library:NAME (methods whose name starts with NAME as one frame, which "
                "is a method after the trace's last), recursion (a method that calls itself as one "
                "frame), app (only the app's frames, by the project's rules: /api/v1/frames). "
                "METHOD is a method's index."),
        {0},
};

/* Reads transform= into q->steps.  If steps depend on the project's rules,
 * *ret_version identifies those; otherwise it is unchanged. */
static enum tw_status read_steps(struct tw_trace_query *q, int64_t *ret_version, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(tw_req_text_or_empty(q->v.req, "transform"));
	enum tw_status st = TW_OK;

	while (st == TW_OK && rest.len)
		st = read_step(q, tw_str_split(&rest, ','), ret_version, err);
	return st;
}

/* --- running a query --- */

enum tw_status tw_trace_query_handle(struct tw_req *r, struct tw_err *err)
{
	struct tw_trace_query q = {.n_steps = 0};
	enum tw_status st = open_query(r, &q, err);

	if (st == TW_OK)
		st = read_steps(&q, &q.v.rules_version, err);
	if (st == TW_OK && !tw_view_unchanged(&q.v))
		st = reply(&q, tw_req_route(r)->trace_query, err);
	if (q.v.file)
		tw_view_close(&q.v);
	tw_arena_free(q.arena);
	tw_buf_done(&q.out);
	return st;
}
