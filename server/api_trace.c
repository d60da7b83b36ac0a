/* Traces of a project: lists, filter menus, one, deletion. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "app.h"
#include "blob.h"
#include "log.h"
#include "view.h"

enum { MAX_PATH_BYTES = 1200 };

static const char *query_or_empty(const struct tw_req *r, const char *name)
{
	const char *value = tw_req_query(r, name);

	return value ? value : "";
}

static enum tw_status parse_order(
        const struct tw_req *r, struct tw_trace_filter *f, struct tw_err *err)
{
	static const char *const sorts[] = {"created", "duration", "slices", "bytes", NULL};
	static const char *const orders[] = {"desc", "asc", NULL};
	const char *sort = tw_req_query(r, "sort");
	const char *order = tw_req_query(r, "order");
	unsigned word = 0;
	enum tw_status st = sort ? tw_api_pick("sort", sort, sorts, &word, err) : TW_OK;

	f->sort = (enum tw_trace_sort)word;
	word = 0;
	if (st == TW_OK && order)
		st = tw_api_pick("order", order, orders, &word, err);
	f->ascending = word == 1;
	return st;
}

static enum tw_status parse_filter(
        const struct tw_req *r, struct tw_trace_filter *ret, struct tw_err *err)
{
	static const char *const states[] = {"", "queued", "decoding", "ready", "failed", NULL};
	struct tw_trace_filter f = {
	        .app = query_or_empty(r, "app"),
	        .version_name = query_or_empty(r, "version_name"),
	        .build_id = query_or_empty(r, "build_id"),
	        .device = query_or_empty(r, "device"),
	        .os = query_or_empty(r, "os"),
	        .scenario = query_or_empty(r, "scenario"),
	        .state = query_or_empty(r, "state"),
	        .process = query_or_empty(r, "process"),
	        .text = query_or_empty(r, "q"),
	        .cursor = query_or_empty(r, "cursor"),
	};
	int64_t limit = 50;
	unsigned state;
	enum tw_status st = tw_api_pick("state", f.state, states, &state, err);

	if (st == TW_OK)
		st = tw_req_query_i64(r, "limit", 50, 1, 500, &limit, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "since", 0, 0, INT64_MAX, &f.since_ms, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "until", 0, 0, INT64_MAX, &f.until_ms, err);
	if (st == TW_OK)
		st = parse_order(r, &f, err);
	f.limit = (uint32_t)limit;
	if (st == TW_OK)
		*ret = f;
	return st;
}

static enum tw_status list_traces(struct tw_req *r, struct tw_err *err)
{
	struct tw_trace_filter filter;
	struct tw_trace_row *rows;
	const char *cursor;
	uint64_t total;
	json_t *list;
	size_t n;
	enum tw_status st = parse_filter(r, &filter, err);

	if (st == TW_OK)
		st = tw_catalogue_traces(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        &filter, tw_req_arena(r), &rows, &n, &cursor, &total, err);
	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, tw_api_trace(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{so sI so}", "traces", list, "total", (json_int_t)total, "cursor",
	                *cursor ? json_string(cursor) : json_null()),
	        err);
}

static enum tw_status facets(struct tw_req *r, struct tw_err *err)
{
	static const char *const columns[] = {"app", "version_name", "build_id", "device", "os",
	        "scenario", "state", "process", NULL};
	const char *column = query_or_empty(r, "column");
	struct tw_facet *rows;
	json_t *list;
	size_t n;
	unsigned which;
	enum tw_status st = tw_api_pick("column", column, columns, &which, err);

	if (st == TW_OK)
		st = tw_catalogue_facets(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        column, tw_req_arena(r), &rows, &n, err);
	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_pack("{ss sI}", "value", rows[i].value,
		                                          "count", (json_int_t)rows[i].count));
	return tw_req_reply_json(
	        r, 200, json_pack("{ss so}", "column", column, "values", list), err);
}

static enum tw_status one_trace(struct tw_req *r, struct tw_err *err)
{
	struct tw_trace_row row;
	const char *id;
	json_t *json;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_trace_get(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        id, tw_req_arena(r), &row, err);
	if (st != TW_OK)
		return st;
	json = tw_api_trace(&row);
	if (row.state == TW_TRACE_READY) {
		st = tw_view_report(r, &row, json, err);
		if (st != TW_OK) {
			json_decref(json);
			return st;
		}
	}
	return tw_req_reply_json(r, 200, json, err);
}

/* The row first: a crash in between leaves files that the next start's sweep removes. */
static enum tw_status delete_trace(struct tw_req *r, struct tw_err *err)
{
	struct tw_app *app = tw_req_app(r);
	char path[MAX_PATH_BYTES];
	const char **blobs = NULL;
	const char *id;
	size_t n = 0;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	if (st != TW_OK)
		return st;
	(void)pthread_rwlock_wrlock(&app->blob_use);
	st = tw_catalogue_trace_delete(
	        app->catalogue, tw_req_caller(r)->project_id, id, tw_req_arena(r), &blobs, &n, err);
	if (st == TW_OK)
		tw_api_drop_blobs(app, blobs, n);
	(void)pthread_rwlock_unlock(&app->blob_use);
	if (st != TW_OK)
		return st;
	if (tw_trace_path(app->blobs, id, path, sizeof path, err) == TW_OK)
		(void)unlink(path);
	tw_log(TW_LOG_INFO, "trace_deleted", tw_log_text("trace", id),
	        tw_log_text("by", tw_req_caller(r)->key_id));
	return tw_req_reply_empty(r, 204, err);
}

const struct tw_route tw_routes_trace[] = {
        {.method = "GET",
                .path = "/api/v1/traces",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = list_traces,
                .summary = "Traces by filter, in pages"},
        {.method = "GET",
                .path = "/api/v1/facets",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = facets,
                .summary = "Values of a column with counts, for filter menus"},
        {.method = "GET",
                .path = "/api/v1/traces/{id}",
                .scope = TW_SCOPE_READ,
                .ingest_too = true,
                .slow = true,
                .end = one_trace,
                .summary = "State, metadata, summary and report"},
        {.method = "DELETE",
                .path = "/api/v1/traces/{id}",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = delete_trace,
                .summary = "Deletes a trace and its uploads"},
        {0},
};
