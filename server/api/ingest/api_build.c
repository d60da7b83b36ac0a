/*
 * api_build.c - builds and their mappings: method ids to names, and R8's.
 *
 * A mapping is stored as it came, compiled by a limited child process into an
 * image for look-ups, and only then named by a row: whatever goes wrong before
 * leaves the earlier mapping in use.
 */
#include <pthread.h>
#include <string.h>

#include "api.h"
#include "app.h"
#include "blob.h"
#include "blob_use.h"
#include "jobs.h"
#include "jobs_names.h"
#include "jobs_store.h"
#include "upload_meta.h"
#include "view.h"

struct mapping {
	const char *build_id;
	bool retrace; /* R8's, not the method mapping */
	struct tw_blob_writer *writer;
	uint64_t bytes;
	json_t *summary; /* of the child that compiled it */
};

static const char *file_of(const struct mapping *m)
{
	return m->retrace ? "R8's or ProGuard's mapping.txt" : "methodMapping.txt";
}

static uint64_t max_mapping(const struct tw_app *app)
{
	return app->config->max_body_bytes;
}

static enum tw_status build_id_of(struct tw_req *r, const char **ret, struct tw_err *err)
{
	const char *id = tw_req_path(r, "build_id");
	enum tw_status st = tw_api_check_text("build_id", id, err);

	if (st == TW_OK)
		*ret = id;
	return st;
}

static enum tw_status begin(struct tw_req *r, bool retrace, struct tw_err *err)
{
	struct tw_app *app = tw_req_app(r);
	struct mapping *m = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *m);
	enum tw_status st;

	if (!m)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	tw_req_set_state(r, m);
	m->retrace = retrace;
	st = build_id_of(r, &m->build_id, err);
	if (st == TW_OK && tw_req_content_length(r) == 0)
		st = tw_fail(err, TW_BAD_REQUEST, 0, "the body is empty: send %s", file_of(m));
	return st == TW_OK ? tw_blob_begin(app->blobs, app->config->max_body_bytes, &m->writer, err)
	                   : st;
}

static enum tw_status begin_mapping(struct tw_req *r, struct tw_err *err)
{
	return begin(r, false, err);
}

static enum tw_status begin_retrace(struct tw_req *r, struct tw_err *err)
{
	return begin(r, true, err);
}

static enum tw_status mapping_body(struct tw_req *r, const void *p, size_t n, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);

	m->bytes += n;
	return tw_blob_write(m->writer, p, n, err);
}

static void abort_mapping(struct tw_req *r)
{
	struct mapping *m = tw_req_state(r);

	if (m)
		m->writer = tw_blob_discard(m->writer);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static enum tw_status record(struct tw_req *r, const char *source, const char *image,
        struct tw_blob_list *ret_unused, struct tw_err *err)
{
	const struct mapping *m = tw_req_state(r);
	struct tw_catalogue *c = tw_req_app(r)->catalogue;
	const char *project_id = tw_req_caller(r)->project_id;
	const json_t *s = m->summary;
	const struct tw_build_row row = {
	        .build_id = m->build_id,
	        .map_sha256 = image,
	        .source_sha256 = source,
	        .map_version = text_of(s, "version"),
	        .entries = number_of(s, "entries"),
	        .malformed = number_of(s, "malformed"),
	        .duplicates = number_of(s, "duplicates"),
	        .app = "",
	        .version_name = "",
	        .retrace = {.sha256 = image,
	                .source_sha256 = source,
	                .id = text_of(s, "id"),
	                .classes = number_of(s, "classes"),
	                .methods = number_of(s, "methods"),
	                .malformed = number_of(s, "malformed")},
	};

	if (m->retrace)
		return tw_catalogue_build_set_retrace(
		        c, project_id, &row, tw_req_arena(r), ret_unused, err);
	return tw_catalogue_build_set(c, project_id, &row, tw_req_arena(r), ret_unused, err);
}

/*
 * A key of the ingest scope stands in apps and leaks: it gives a build the mapping that it lacks,
 * or the same one again, and replaces none, or whoever takes it out of an app could take the names
 * from all traces.
 */
static enum tw_status may_set(struct tw_req *r, const char *image, struct tw_err *err)
{
	const struct mapping *m = tw_req_state(r);
	struct tw_build_row row;
	const char *there;
	enum tw_status st;

	if (tw_req_caller(r)->scope != TW_SCOPE_INGEST)
		return TW_OK;
	st = tw_catalogue_build_get(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
	        m->build_id, tw_req_arena(r), &row, err);
	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	there = m->retrace ? row.retrace.sha256 : row.map_sha256;
	if (!there || !*there || strcmp(there, image) == 0)
		return TW_OK;
	return tw_fail(err, TW_DENIED, TW_NO_OFFSET,
	        "build %s has another mapping already: replacing it wants a key of scope write",
	        m->build_id);
}

/* Called with blob_use held for reading. */
static enum tw_status compile_and_record(
        struct tw_req *r, struct tw_blob_list *ret_unused, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_app *app = tw_req_app(r);
	char source[TW_SHA256_HEX];
	char image[TW_SHA256_HEX];
	struct tw_needed_blobs needed;
	enum tw_status st = tw_blob_commit(m->writer, source, err);

	if (st != TW_OK)
		return st;
	m->writer = NULL;
	st = tw_jobs_run_map(
	        app->jobs, m->retrace ? "retrace" : "map", source, image, &m->summary, err);
	if (st == TW_OK)
		st = may_set(r, image, err);
	if (st != TW_OK)
		return st;
	needed = (struct tw_needed_blobs){app, {source, image}, false};
	tw_api_need_blobs(&needed);
	return tw_api_end_need(&needed, record(r, source, image, ret_unused, err), err);
}

/* Between the row and this another upload may have named the same content again: ask anew. */
static void drop_unused(struct tw_app *app, const struct tw_blob_list *blobs)
{
	tw_blob_drop_begin(app);
	for (size_t i = 0; i < blobs->n; i++) {
		const char *sha256 = blobs->sha256[i];
		bool used = true;

		if (tw_catalogue_has_blob(app->catalogue, sha256, &used, NULL) == TW_OK && !used)
			tw_store_drop_blobs(app, &sha256, 1);
	}
	tw_blob_drop_end(app);
}

/* What the child counted, with the build and how many traces it names now. */
static enum tw_status reply_counts(
        struct tw_req *r, const struct tw_build_row *row, struct tw_err *err)
{
	const struct mapping *m = tw_req_state(r);
	json_t *o = json_copy(m->summary);
	json_int_t at = json_integer_value(json_object_get(o, "first_malformed"));

	(void)json_object_del(o, "lines");
	(void)json_object_set_new(o, "first_malformed", at < 0 ? json_null() : json_integer(at));
	(void)json_object_set_new(o, "build_id", json_string(m->build_id));
	if (json_object_set_new(o, "traces", json_integer((json_int_t)row->traces)) != 0) {
		json_decref(o);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	}
	return tw_req_reply_json(r, 200, o, err);
}

static enum tw_status end_mapping(struct tw_req *r, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_app *app = tw_req_app(r);
	struct tw_build_row row;
	struct tw_blob_list unused = {NULL, 0};
	enum tw_status st;

	if (m->bytes == 0)
		return tw_fail(err, TW_BAD_REQUEST, 0, "the body is empty: send %s", file_of(m));
	tw_blob_use_begin(app);
	st = compile_and_record(r, &unused, err);
	tw_blob_use_end(app);
	if (st == TW_OK) {
		tw_periodic_wake(app->names);
		tw_periodic_wake(app->rollup);
		tw_periodic_wake(app->hangs);
		tw_periodic_wake(app->findings);
		drop_unused(app, &unused);
		st = tw_catalogue_build_get(app->catalogue, tw_req_caller(r)->project_id,
		        m->build_id, tw_req_arena(r), &row, err);
	}
	if (st == TW_OK)
		st = reply_counts(r, &row, err);
	json_decref(m->summary);
	m->summary = NULL;
	return st;
}

/* --- commits --- */

static enum tw_status store_commit(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *said = json_object_get(body, "commit");
	const char *id;
	char commit[TW_COMMIT_BYTES] = "";
	enum tw_status st = build_id_of(r, &id, err);

	if (st == TW_OK && (!json_is_string(said) || json_object_size(body) != 1))
		st = tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "the body is {\"commit\": \"7 to 64 hex digits\"} and nothing else");
	if (st == TW_OK && json_string_length(said))
		st = tw_upload_meta_commit(json_string_value(said), commit, err);
	if (st == TW_OK)
		st = tw_catalogue_commit_set(
		        tw_req_app(r)->catalogue, tw_req_caller(r)->project_id, id, commit, err);
	return st == TW_OK ? tw_req_reply_json(r, 200,
	                             json_pack("{s:s, s:s}", "build_id", id, "commit", commit), err)
	                   : st;
}

static enum tw_status put_commit(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, store_commit, err);
}

/* --- what is told --- */

static json_t *build_json(const struct tw_build_row *b)
{
	const struct tw_build_retrace *t = &b->retrace;
	const struct tw_build_names *n = &b->names;

	return json_pack(
	        "{ss sb sI sI sI ss sI sI ss ss ss s{sb ss sI sI sI sI} s{sI sI sI sI sI sI}}",
	        "build_id", b->build_id, "mapping", *b->map_sha256 != '\0', "entries",
	        (json_int_t)b->entries, "malformed", (json_int_t)b->malformed, "duplicates",
	        (json_int_t)b->duplicates, "map_version", b->map_version, "updated_ms",
	        (json_int_t)b->updated_ms, "traces", (json_int_t)b->traces, "app", b->app,
	        "version_name", b->version_name, "commit", b->commit, "retrace", "mapping",
	        *t->sha256 != '\0', "id", t->id, "classes", (json_int_t)t->classes, "methods",
	        (json_int_t)t->methods, "malformed", (json_int_t)t->malformed, "updated_ms",
	        (json_int_t)t->updated_ms, "names", "traces", (json_int_t)n->traces, "lacking",
	        (json_int_t)n->lacking, "ids", (json_int_t)n->sum.ids, "resolved",
	        (json_int_t)n->sum.resolved, "slices", (json_int_t)n->sum.slices, "resolved_slices",
	        (json_int_t)n->sum.resolved_slices);
}

static enum tw_status list_builds(struct tw_req *r, struct tw_err *err)
{
	const char *from = tw_req_query(r, "cursor");
	struct tw_build_row *rows;
	const char *cursor;
	int64_t limit;
	json_t *list;
	size_t n;
	enum tw_status st = tw_req_query_i64(r, "limit", 100, 1, 500, &limit, err);

	if (st == TW_OK)
		st = tw_catalogue_builds(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        (uint32_t)limit, from ? from : "", tw_req_arena(r), &rows, &n, &cursor,
		        err);
	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, build_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{so so}", "builds", list, "cursor",
	                *cursor ? json_string(cursor) : json_null()),
	        err);
}

/* How much of its newest trace the build's mappings name; null while it has no ready trace. */
static json_t *latest_json(struct tw_req *r, const char *build_id)
{
	const struct tw_trace_filter filter = {
	        .build_id = build_id, .state = "ready", .limit = 1, .cursor = ""};
	struct tw_trace_row *rows = NULL;
	const char *cursor;
	uint64_t total;
	size_t n = 0;
	json_t *seen = json_object();
	json_t *latest = json_null();
	struct tw_err why;

	if (tw_catalogue_traces(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id, &filter,
	            tw_req_arena(r), &rows, &n, &cursor, &total, &why) == TW_OK &&
	        n == 1 && tw_view_report(r, &rows[0], seen, &why) == TW_OK) {
		latest = json_deep_copy(json_object_get(json_object_get(seen, "report"), "names"));
		(void)json_object_del(latest, "warning");
		(void)json_object_del(latest, "build_id");
		(void)json_object_set_new(latest, "trace_id", json_string(rows[0].id));
	}
	json_decref(seen);
	return latest;
}

static enum tw_status one_build(struct tw_req *r, struct tw_err *err)
{
	struct tw_build_row row;
	const char *id;
	enum tw_status st = build_id_of(r, &id, err);
	json_t *o;

	if (st == TW_OK)
		st = tw_catalogue_build_get(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        id, tw_req_arena(r), &row, err);
	if (st != TW_OK)
		return st;
	o = build_json(&row);
	(void)json_object_set_new(o, "latest", latest_json(r, id));
	return tw_req_reply_json(r, 200, o, err);
}

const struct tw_route tw_routes_build[] = {
        {.method = "PUT",
                .path = "/api/v1/builds/{build_id}/methods",
                .slow = true,
                .upload = true,
                .worked = true,
                .max_body = max_mapping,
                .begin = begin_mapping,
                .body = mapping_body,
                .end = end_mapping,
                .abort = abort_mapping,
                .summary = "Sets the method mapping of a build"},
        {.method = "PUT",
                .path = "/api/v1/builds/{build_id}/retrace",
                .slow = true,
                .upload = true,
                .worked = true,
                .max_body = max_mapping,
                .begin = begin_retrace,
                .body = mapping_body,
                .end = end_mapping,
                .abort = abort_mapping,
                .summary = "Sets R8's or ProGuard's mapping of a build"},
        {.method = "PUT",
                .path = "/api/v1/builds/{build_id}/commit",
                .slow = true,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = put_commit,
                .summary = "Say which commit a build is made of"},
        {.method = "GET",
                .path = "/api/v1/builds",
                .slow = true,
                .end = list_builds,
                .summary = "Builds with a mapping or named by a trace"},
        {.method = "GET",
                .path = "/api/v1/builds/{build_id}",
                .slow = true,
                .end = one_build,
                .summary = "One build"},
        {0},
};
