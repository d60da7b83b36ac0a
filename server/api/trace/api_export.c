/*
 * api_export.c - a trace in other tools' formats, and links by which those tools fetch it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/auth/ticket.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/export/export.h"
#include "server/storage/blob_piece.h"

enum { NODES_MAX = 200000, QUERY_MAX = 1024 };

/* --- exports --- */

struct download { /* lives until the last byte is sent */
	struct tw_api *api;
	struct tw_trace_file *file;
	struct tw_symbols_ref *map, *retrace;
	struct tw_export *made;
	const struct tw_export_kind *kind;
};

static enum tw_status read_some(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct download *d = arg;

	return tw_export_read(d->made, out, cap, ret_n, err);
}

static void download_free(void *arg)
{
	struct download *d = arg;

	tw_export_close(d->made);
	tw_trace_file_close(d->file);
	if (d->api) {
		tw_symbols_release(d->api->symbols, d->map);
		tw_symbols_release(d->api->symbols, d->retrace);
	}
	tw_mem_free(d);
}

static const struct tw_stream_ops stream = {read_some, download_free};

static const char *const metrics[] = {"wall", "count", "cpu", NULL};
static const char *const views[] = {"top_down", "bottom_up", NULL};
static const char *const raw_kinds[] = {"sqlite", NULL};

static const struct tw_param export_params[] = {
        TW_PARAM_ENUM("metric", metrics,
                "What widths represent. `folded` supports all three, `d3` and `svg` wall and "
                "count, "
                "other formats only wall. 400 for others."),
        TW_PARAM_ENUM("view", views, "The view in `d3` and `svg`."),
        TW_PARAM_NUMBER("max_nodes", 0, 0, NODES_MAX,
                "Largest number of nodes in `d3` and `svg`; the rest becomes (other). 0 means "
                "20,000 in `d3` and 4,000 in `svg`."),
        TW_PARAM_FLAG("merged", false, "In `folded`, stacks do not start with their thread."),
        {0},
};

static const struct tw_param raw_params[] = {
        TW_PARAM_ENUM("as", raw_kinds, "An SQLite database, as export/sqlite."),
        {0},
};

static enum tw_status name_remedy(enum tw_status st, struct tw_err *err)
{
	return st == TW_FULL
	               ? tw_fail(err, st,
	                         "the server has too little disk space for this export; other "
	                         "formats need none")
	               : st;
}

static enum tw_status open_file(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	return name_remedy(tw_piece_scratch(arg, bytes, ret_fd, err), err);
}

static enum tw_status check_space(void *arg, struct tw_err *err)
{
	return name_remedy(tw_blobs_check_space(arg, 0, err), err);
}

static enum tw_status read_query(
        const struct tw_view *v, struct tw_export_query *ret, struct tw_err *err)
{
	const char *kind = tw_req_path(v->req, "kind");
	struct tw_export_query q = {
	        .kind = tw_export_kind(kind ? kind : raw_kinds[tw_req_enum(v->req, "as")]),
	        .open_file = open_file,
	        .check_space = check_space,
	        .file_arg = tw_api_of(v->req)->blobs};
	enum tw_status st;

	if (!q.kind)
		return tw_fail(err, TW_NOT_FOUND, "no such export");
	st = tw_view_selection(v, false, &q.sel, err);
	*ret = q;
	if (!kind)
		return st;
	q.metric = (enum tw_export_metric)tw_req_enum(v->req, "metric");
	q.view = (enum tw_flame_view)tw_req_enum(v->req, "view");
	q.max_nodes = (uint32_t)tw_req_number(v->req, "max_nodes");
	q.merged = tw_req_flag(v->req, "merged");
	*ret = q;
	return st;
}

static const char *title_of(const struct tw_view *v)
{
	const struct tw_trace_meta *m = &v->row.meta;
	const char *title = tw_arena_printf(tw_req_arena(v->req), "%s%s%s%s%s", m->app,
	        m->version_name[0] ? " " : "", m->version_name, m->scenario[0] ? " " : "",
	        m->scenario);

	return title && title[0] ? title : v->row.id;
}

static const char *permalink(const struct tw_view *v)
{
	const char *base = tw_api_of(v->req)->config->public_url;

	return base[0] ? tw_arena_printf(tw_req_arena(v->req), "%s/traces/%s", base, v->row.id)
	               : "";
}

static enum tw_status open_download(struct tw_view *v, struct download *d, struct tw_err *err)
{
	const struct tw_trace_meta *m = &v->row.meta;
	const struct tw_export_facts facts = {title_of(v), v->row.id, m->process, m->app,
	        m->version_name, m->build_id, m->device, m->scenario, permalink(v), m->started_ms};
	struct tw_export_query q = {.kind = NULL};
	enum tw_status st = read_query(v, &q, err);

	if (st != TW_OK)
		return st;
	d->api = tw_api_of(v->req);
	d->file = v->file; /* moves into the download */
	d->map = v->map_ref;
	d->retrace = v->retrace_ref;
	v->file = NULL;
	v->map_ref = v->retrace_ref = NULL;
	d->kind = q.kind;
	if (tw_req_path(v->req, "kind") && tw_req_flag(v->req, "sanitize"))
		tw_trace_file_sanitize(d->file);
	return tw_export_open(d->file, &v->names, &q, &facts, &d->made, err);
}

/* A file is written without a deadline, as the other kinds are sent without one.  Those are
 * produced in pieces between other queries, but a file occupies its query thread until it is
 * complete, so at most half of the threads may write one. */
static enum tw_status reply_with_file(struct tw_req *r, struct download *d, struct tw_err *err)
{
	static atomic_uint writing;
	const unsigned most = (tw_api_of(r)->config->query_threads + 1) / 2;
	struct tw_work_limit limit = tw_work_limit();
	enum tw_status st;

	limit.until_ms = 0;
	if (atomic_fetch_add(&writing, 1) < most) {
		tw_work_limit_set(limit);
		st = tw_req_reply_stream(r, d->kind->type, !d->kind->packed, &stream, d, err);
	} else {
		download_free(d);
		st = tw_fail(err, TW_BUSY,
		        "too many exports of this format are in progress: retry later");
	}
	(void)atomic_fetch_sub(&writing, 1);
	return st;
}

static enum tw_status answer(struct tw_req *r, struct tw_err *err)
{
	const char *disposition;
	const char *suffix;
	struct download *d = NULL;
	struct tw_view v;
	enum tw_status st = tw_view_open(r, &v, err);

	if (st != TW_OK)
		return st;
	d = tw_mem_zalloc(1, sizeof *d);
	if (d)
		st = open_download(&v, d, err);
	tw_view_close(&v);
	if (!d)
		return tw_oom(err);
	if (st != TW_OK) {
		download_free(d);
		return st;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) not NULL if st is TW_OK */
	suffix = d->kind->suffix;
	if (tw_trace_file_is_sanitized(d->file))
		v.row.id = "sanitized"; /* in the name of the file */
	disposition = tw_arena_printf(tw_req_arena(r), "attachment; filename=\"%s\"",
	        tw_api_file_name(r, &v.row, suffix));
	if (disposition)
		tw_req_set_header(r, "Content-Disposition", disposition);
	return d->kind->needs_file
	               ? reply_with_file(r, d, err)
	               : tw_req_reply_stream(r, d->kind->type, !d->kind->packed, &stream, d, err);
}

/* --- tickets --- */

/* "perfetto" or a kind of export: the path below the trace, and the suffix of the file's name. */
static const char *path_of_kind(struct tw_req *r, const char *kind, const char **ret_suffix)
{
	const struct tw_export_kind *k = tw_export_kind(kind);

	if (strcmp(kind, "perfetto") == 0) {
		*ret_suffix = ".perfetto-trace";
		return "perfetto";
	}
	if (!k)
		return NULL;
	*ret_suffix = k->suffix;
	return tw_arena_printf(tw_req_arena(r), "export/%s", k->name);
}

static bool is_query(const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '#')
			return false;
	return n <= QUERY_MAX;
}

static enum tw_status read_ticket_body(struct tw_req *r, const json_t *body, struct tw_ticket *t,
        const char *id, const char **ret_suffix, struct tw_err *err)
{
	const json_t *given = json_object_get(body, "query");
	const char *kind = json_string_value(json_object_get(body, "kind"));
	const char *query = given ? json_string_value(given) : "";
	const char *path = NULL;
	enum tw_status st = TW_OK;

	if (!kind || !query)
		st = tw_fail(err, TW_BAD_REQUEST,
		        "the body is {\"kind\": ..., \"query\": ...}, both texts");
	if (st == TW_OK && !is_query(query))
		st = tw_fail(err, TW_BAD_REQUEST, "query must be the query string of the export");
	if (st == TW_OK) {
		path = path_of_kind(r, kind, ret_suffix);
		st = path ? TW_OK : tw_fail(err, TW_BAD_REQUEST, "no such kind");
	}
	if (st == TW_OK) {
		t->target = tw_arena_printf(tw_req_arena(r), "/api/v1/traces/%s/%s%s%s", id, path,
		        query[0] ? "?" : "", query);
		st = t->target ? TW_OK : tw_oom(err);
	}
	return st;
}

static enum tw_status make_ticket(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const struct tw_api *api = tw_api_of(r);
	struct tw_ticket t = {.expires_ms = tw_unix_ms() + (int64_t)api->config->ticket_s * 1000};
	struct tw_trace_row row;
	const char *suffix = "";
	const char *text = "";
	const char *path;
	const char *id;
	enum tw_status st = tw_api_trace_id(r, &id, err);

	(void)snprintf(t.project_id, sizeof t.project_id, "%s", tw_api_project(r));
	if (st == TW_OK)
		st = tw_catalogue_trace_get(
		        api->catalogue, t.project_id, id, tw_req_arena(r), &row, err);
	if (st == TW_OK)
		st = read_ticket_body(r, body, &t, id, &suffix, err);
	if (st == TW_OK)
		st = tw_ticket_sign(api->ticket_key, &t, tw_req_arena(r), &text, err);
	if (st != TW_OK)
		return st;
	path = tw_arena_printf(
	        tw_req_arena(r), "/api/v1/tickets/%s/%s", text, tw_api_file_name(r, &row, suffix));
	if (!path)
		return tw_oom(err);
	return tw_req_reply_json(r, 201,
	        json_pack("{ss ss sI}", "path", path, "base", api->config->public_url, "expires_ms",
	                (json_int_t)t.expires_ms),
	        err);
}

/* Whether this is the origin of a page at `url`. */
static bool is_origin_of(const char *origin, const char *url)
{
	const char *host = strstr(url, "://");
	size_t n;

	if (!host)
		return false;
	n = (size_t)(host - url) + 3;
	n += strcspn(url + n, "/?#");
	return strlen(origin) == n && strncasecmp(origin, url, n) == 0;
}

/* Lets the configured UIs read the response, and no other origin. It is never cached, so Vary is
 * not needed. */
static void allow_origin(struct tw_req *r)
{
	const struct tw_config *c = tw_api_of(r)->config;
	const char *origin = tw_req_header(r, "Origin");

	tw_req_set_header(r, "Cache-Control", "private, no-store");
	if (origin &&
	        (is_origin_of(origin, c->perfetto_ui) || is_origin_of(origin, c->speedscope_ui) ||
	                is_origin_of(origin, c->firefox_ui)))
		tw_req_set_header(r, "Access-Control-Allow-Origin", origin);
}

static enum tw_status use_ticket(struct tw_req *r, struct tw_err *err)
{
	struct tw_caller as = {.scope = TW_SCOPE_READ};
	const char *text = tw_req_path(r, "ticket");
	struct tw_ticket t;
	bool exists = false;
	enum tw_status st;

	allow_origin(r);
	st = tw_ticket_open(
	        tw_api_of(r)->ticket_key, text ? text : "", tw_unix_ms(), tw_req_arena(r), &t, err);
	if (st == TW_OK)
		st = tw_catalogue_project_exists(tw_api_catalogue(r), t.project_id, &exists, err);
	if (st == TW_OK && !exists)
		st = tw_fail(err, TW_NO_TOKEN, "the project of this link was deleted");
	if (st != TW_OK)
		return st;
	(void)snprintf(as.project_id, sizeof as.project_id, "%s", t.project_id);
	return tw_req_forward(r, &as, t.target, err);
}

const struct tw_route tw_routes_export[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/export/{kind}", TW_NEED_READ,
                "The trace in another tool's format",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params,
                        tw_view_sanitize_params, export_params),
                .end = answer),
        TW_ROUTE("GET", "/api/v1/traces/{id}/raw", TW_NEED_READ,
                "The trace as data: calls, threads, methods and events",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params, raw_params),
                .end = answer),
        TW_ROUTE("POST", "/api/v1/traces/{id}/tickets", TW_NEED_READ,
                "Creates a link by which another tool fetches the trace, valid for minutes",
                .json = make_ticket),
        TW_ROUTE("GET", "/api/v1/tickets/{ticket}/{file}", TW_NEED_PUBLIC,
                "Downloads the file of a short-lived link", .any_params = true, .end = use_ticket),
        {0},
};
