#include "server/api/trace/view_open.h"

#include <stdio.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/http/metrics.h"
#include "server/ingest/backlog.h"
#include "server/query/view.h"
#include "server/storage/blob.h"
#include "server/trace/trace_readers.h"

enum { PATH_BYTES = 1500 };

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

static enum tw_status open_row(struct tw_req *r, struct tw_view *v, struct tw_err *err)
{
	enum tw_status st;

	v->req = r;
	if (v->row.state != TW_TRACE_READY)
		return not_ready(&v->row, err);
	st = open_mappings(v, err);
	if (st == TW_OK)
		st = open_file(v, err);
	if (st != TW_OK)
		tw_view_close(v);
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
		tw_metrics_healed(api->metrics);
		st = tw_catalogue_trace_requeue(api->catalogue, seen->project_id, seen->id, err);
		tw_jobs_wake(api->jobs);
	}
	return st;
}

/* Readers can cause decodes, so they are limited by the queue and the disk's free space. */
static enum tw_status has_room(struct tw_req *r, const struct tw_trace_row *row, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	char wait[16];
	enum tw_status st = tw_blobs_check_room(api->blobs, err);

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
		st = has_room(r, &now, err);
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
	st = open_row(r, &v, err);
	if (st == TW_OK)
		*ret = v;
	else if (st != TW_CONFLICT)
		st = fail_open(r, &v.row, st, err);
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

static bool time_is_up(void *arg)
{
	return tw_req_ms_left(arg) == 0;
}

struct tw_deadline tw_view_deadline(const struct tw_view *v)
{
	return (struct tw_deadline){time_is_up, v->req};
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

enum tw_status tw_view_reply(const struct tw_view *v, struct tw_buf *json, struct tw_err *err)
{
	if (time_is_up(v->req))
		tw_req_unset_header(v->req, "ETag");
	return tw_req_reply_buf(v->req, 200, "application/json", true, json, err);
}

/* --- report --- */

struct share {
	uint64_t ids, resolved, slices, resolved_slices;
};

static struct share count_names(
        const struct tw_view *v, const struct tw_method_info *methods, uint32_t n)
{
	struct share s = {0};
	struct tw_method_name name;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &methods[i];
		bool known =
		        !m->has_id || (v->names.map && tw_map_find(v->names.map, m->id, &name));

		s.ids++;
		s.slices += m->count;
		s.resolved += known;
		s.resolved_slices += known ? m->count : 0;
	}
	return s;
}

static json_t *warning(const struct tw_view *v, const struct share *s)
{
	const char *build = v->row.meta.build_id;

	if (s->resolved_slices * 2 >= s->slices)
		return json_null();
	if (!build[0])
		return json_string(
		        "Method names are missing: the upload named no build. Send traces with "
		        "build_id=... and upload the build's methodMapping.txt with PUT "
		        "/api/v1/builds/{build_id}/methods.");
	if (!v->names.map)
		return json_sprintf(
		        "Method names are missing: no mapping was uploaded for build %s. "
		        "Send its methodMapping.txt with PUT /api/v1/builds/%s/methods; "
		        "this trace will then show names without being sent again.",
		        build, build);
	return json_sprintf(
	        "Only %llu of %llu method ids are in the mapping of build %s: it is "
	        "probably the mapping of another build. Send the right methodMapping.txt "
	        "with PUT /api/v1/builds/%s/methods.",
	        (unsigned long long)s->resolved, (unsigned long long)s->ids, build, build);
}

static json_t *names_json(const struct tw_view *v, const struct tw_method_info *methods, uint32_t n)
{
	struct share s = count_names(v, methods, n);

	return json_pack("{sb sb ss sI sI sI sI so}", "mapping", v->names.map != NULL, "retrace",
	        v->names.retrace != NULL, "build_id", v->row.meta.build_id, "ids",
	        (json_int_t)s.ids, "resolved", (json_int_t)s.resolved, "slices",
	        (json_int_t)s.slices, "resolved_slices", (json_int_t)s.resolved_slices, "warning",
	        warning(v, &s));
}

static json_t *repairs_json(const struct tw_view *v)
{
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(v->file, &n);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_repair_info *info = tw_repair_info(r[i].what);

		(void)json_array_append_new(list,
		        json_pack("{ss ss sI so ss}", "name", info->name, "kind", info->kind_word,
		                "count", (json_int_t)r[i].count, "first_offset",
		                r[i].first_offset == TW_NO_OFFSET
		                        ? json_null()
		                        : json_integer((json_int_t)r[i].first_offset),
		                "meaning", info->meaning));
	}
	return list;
}

static bool keep_system(void *arg, struct tw_str kind, struct tw_str json)
{
	json_t **ret = arg;

	if (!tw_str_eq(kind, TW_STR("system")))
		return true;
	*ret = json_loadb(json.ptr, json.len, 0, NULL);
	return false;
}

/* The merge report of the device's system trace; null without one. */
static json_t *system_json(const struct tw_view *v)
{
	json_t *system = NULL;

	if (tw_trace_file_documents(v->file, keep_system, &system, NULL) != TW_OK || !system)
		return json_null();
	return system;
}

enum tw_status tw_view_report(
        struct tw_req *r, const struct tw_trace_row *row, json_t *json, struct tw_err *err)
{
	struct tw_view v = {.req = r, .row = *row};
	const struct tw_method_info *methods = NULL;
	const struct tw_trace_info *i;
	enum tw_status st = open_row(r, &v, err);
	json_t *report;
	uint32_t n = 0;

	if (st != TW_OK)
		return st;
	st = tw_trace_file_methods(v.file, &methods, &n, err);
	if (st != TW_OK) {
		tw_view_close(&v);
		return st;
	}
	i = tw_trace_file_info(v.file);
	report = json_pack("{so so so}", "repairs", repairs_json(&v), "names",
	        names_json(&v, methods, n), "system", system_json(&v));
	if (!report || json_object_set_new(json, "report", report) != 0 ||
	        json_object_set_new(json, "start_ns", json_integer(i->start_ns)) != 0 ||
	        json_object_set_new(json, "end_ns", json_integer(i->end_ns)) != 0 ||
	        json_object_set_new(json, "mono_base_ns", json_integer(i->mono_base_ns)) != 0 ||
	        json_object_set_new(json, "boot_base_ns", json_integer(i->boot_base_ns)) != 0 ||
	        json_object_set_new(json, "has_cpu", json_boolean(i->has_cpu)) != 0)
		st = tw_oom(err);
	tw_view_close(&v);
	return st;
}
