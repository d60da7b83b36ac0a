/*
 * api_build.c - builds and their mappings: method ids to names, and R8's.
 *
 * An uploaded mapping is stored unchanged and queued; a limited child process compiles it
 * (jobs_map.c). Until that succeeds the previous mapping remains in use. A request may wait for the
 * result without a thread (http_wait.h).
 */
#include <string.h>

#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/text/json.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/jobs.h"
#include "server/decode/jobs_store.h"
#include "server/http/http_wait.h"
#include "server/ingest/upload_meta.h"
#include "server/storage/blob.h"
#include "server/trace/symbols.h"

/* WAITING_BODIES: most bytes in a project's queue, as a multiple of the largest body. */
enum { WAIT_S = 10, WAIT_MOST_S = 60, WAITING_BODIES = 4 };

struct mapping {
	const char *build_id;
	enum tw_mapping_kind kind;
	struct tw_blob_writer *writer;
	uint64_t bytes;
	int64_t wait_s, until_ms; /* monotonic; time to wait for the compilation */
	bool is_stored;           /* the body is stored and queued, or already in use */
	char source[TW_SHA256_HEX];
	char job_id[TW_ID_BYTES]; /* "": the mapping was already in use */
};

static const char *file_of(const struct mapping *m)
{
	static const char *const files[] = {
	        "methodMapping.txt", "R8's or ProGuard's mapping.txt", "a .so with its symbols"};

	return files[m->kind];
}

static uint64_t max_mapping(const struct tw_config *config)
{
	return config->max_body_bytes;
}

static enum tw_status build_id_of(struct tw_req *r, const char **ret, struct tw_err *err)
{
	const char *id = tw_req_path(r, "build_id");
	enum tw_status st = tw_check_text("build_id", id, err);

	if (st == TW_OK)
		*ret = id;
	return st;
}

/* Symbols of a native library have separate builds. */
static enum tw_status check_kind(
        const char *build_id, enum tw_mapping_kind kind, struct tw_err *err)
{
	const bool is_native = tw_str_starts(tw_str_of(build_id), TW_STR(TW_NATIVE_BUILD));
	char clean[TW_BUILD_ID_HEX];
	const char *id = is_native ? build_id + strlen(TW_NATIVE_BUILD) : "";

	if (kind != TW_MAPPING_SYMBOLS)
		return !is_native ? TW_OK
		                  : tw_fail(err, TW_BAD_REQUEST,
		                            "builds of native libraries (elf:...) have symbols,"
		                            " and no other mapping");
	if (tw_build_id_clean(tw_str_of(id), clean) && strcmp(clean, id) == 0)
		return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST,
	        "symbols belong to build elf:ID, where ID is the library's build id in lower-case "
	        "hex digits (readelf -n)");
}

/* Refuses before anything is stored, and before a client that sent Expect: 100-continue sends the
 * body. */
static enum tw_status has_space(const struct tw_req *r, const struct mapping *m, struct tw_err *err)
{
	const uint64_t declared = tw_req_content_length(r);
	struct tw_api *api = tw_api_of(r);

	return tw_catalogue_mapping_has_space(api->catalogue,
	        &(struct tw_mapping_sent){.project_id = tw_api_project(r),
	                .build_id = m->build_id,
	                .kind = m->kind,
	                .bytes = declared == UINT64_MAX ? 0 : declared,
	                .waiting_bytes_most = WAITING_BODIES * max_mapping(api->config)},
	        err);
}

static const struct tw_param wait_params[] = {
        TW_PARAM_NUMBER("wait", WAIT_S, 0, WAIT_MOST_S,
                "Seconds to wait for the end of the compilation. 0 returns as soon as the mapping "
                "is stored and queued. At most 32 requests of a project wait; further ones return "
                "202 immediately."),
        {0},
};

static enum tw_status begin(struct tw_req *r, enum tw_mapping_kind kind, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	struct mapping *m = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *m);
	enum tw_status st;

	if (!m)
		return tw_oom(err);
	tw_req_set_state(r, m);
	m->kind = kind;
	st = build_id_of(r, &m->build_id, err);
	if (st == TW_OK)
		st = check_kind(m->build_id, kind, err);
	m->wait_s = tw_req_number(r, "wait");
	if (st == TW_OK && tw_req_content_length(r) == 0)
		st = tw_fail_at(err, TW_BAD_REQUEST, 0, "the body is empty: send %s", file_of(m));
	if (st == TW_OK)
		st = has_space(r, m, err);
	return st == TW_OK ? tw_blob_begin(api->blobs, api->config->max_body_bytes, &m->writer, err)
	                   : st;
}

static enum tw_status begin_mapping(struct tw_req *r, struct tw_err *err)
{
	return begin(r, TW_MAPPING_METHODS, err);
}

static enum tw_status begin_retrace(struct tw_req *r, struct tw_err *err)
{
	return begin(r, TW_MAPPING_RETRACE, err);
}

static enum tw_status begin_symbols(struct tw_req *r, struct tw_err *err)
{
	return begin(r, TW_MAPPING_SYMBOLS, err);
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

static enum tw_status get_build(
        struct tw_req *r, const char *build_id, struct tw_build_row *ret, struct tw_err *err)
{
	return tw_catalogue_build_get(
	        tw_api_catalogue(r), tw_api_project(r), build_id, tw_req_arena(r), ret, err);
}

/* The build's image of the same upload if it is readable; "": compile it again. */
static const char *known_image(struct tw_req *r)
{
	const struct mapping *m = tw_req_state(r);
	const bool retrace = m->kind == TW_MAPPING_RETRACE;
	struct tw_symbols_ref *ref;
	struct tw_build_row row;
	const char *image;

	if (get_build(r, m->build_id, &row, NULL) != TW_OK)
		return "";
	image = retrace ? row.retrace.sha256 : row.map_sha256;
	if (!*image ||
	        strcmp(retrace ? row.retrace.source_sha256 : row.source_sha256, m->source) != 0 ||
	        tw_symbols_acquire(tw_api_of(r)->symbols, image, &ref, NULL) != TW_OK)
		return "";
	tw_symbols_release(tw_api_of(r)->symbols, ref);
	return image;
}

/* Call between tw_blob_use_begin and tw_blob_use_end. */
static enum tw_status store(struct tw_req *r, struct tw_blob_list *ret_unused, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_api *api = tw_api_of(r);
	struct tw_mapping_sent sent = {.project_id = tw_api_project(r),
	        .build_id = m->build_id,
	        .kind = m->kind,
	        .source_sha256 = m->source,
	        .bytes = m->bytes,
	        /* Keys of scope ingest are shipped in apps, so anybody may have them: they may add
	         * a missing mapping or repeat the current one, but not replace it. */
	        .may_replace = tw_req_caller(r)->scope != TW_SCOPE_INGEST,
	        .waiting_bytes_most = WAITING_BODIES * max_mapping(api->config)};
	struct tw_needed_blobs needed = {api->catalogue, api->blobs, {m->source, NULL}, false};
	enum tw_status st = tw_blob_commit(m->writer, m->source, err);

	if (st != TW_OK)
		return st;
	m->writer = NULL;
	sent.known_image = known_image(r);
	tw_need_blobs(&needed);
	st = tw_catalogue_mapping_add(
	        api->catalogue, &sent, tw_req_arena(r), m->job_id, ret_unused, err);
	return tw_end_need_blobs(&needed, st, err);
}

static enum tw_status store_and_queue(struct tw_req *r, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_api *api = tw_api_of(r);
	struct tw_blob_list unused = {NULL, 0};
	enum tw_status st;

	if (m->bytes == 0)
		return tw_fail_at(err, TW_BAD_REQUEST, 0, "the body is empty: send %s", file_of(m));
	tw_blob_use_begin(api->blobs);
	st = store(r, &unused, err);
	tw_blob_use_end(api->blobs);
	if (st != TW_OK) {
		if (m->source[0])
			tw_store_drop_orphan_blob(api->store_job, m->source);
		return st;
	}
	tw_record_build(api->recorder, tw_api_project(r), m->build_id);
	tw_crash_point("mapping_queued");
	tw_store_drop_blobs(api->store_job, &unused);
	if (api->jobs)
		tw_jobs_wake_compilers(api->jobs);
	m->is_stored = true;
	m->until_ms = tw_monotonic_ms() + m->wait_s * 1000;
	return TW_OK;
}

static json_t *offset_json(int64_t at)
{
	return at < 0 ? json_null() : json_integer((json_int_t)at);
}

/* The counts of the mapping in use, and the number of its build's traces. */
static enum tw_status reply_counts(
        struct tw_req *r, const struct tw_build_row *row, struct tw_err *err)
{
	const struct mapping *m = tw_req_state(r);
	const struct tw_build_retrace *t = &row->retrace;
	json_t *o =
	        m->kind == TW_MAPPING_RETRACE
	                ? json_pack("{ss ss sI ss sI sI sI so}", "build_id", row->build_id, "state",
	                          "ready", "traces", (json_int_t)row->traces, "id", t->id,
	                          "classes", (json_int_t)t->classes, "methods",
	                          (json_int_t)t->methods, "malformed", (json_int_t)t->malformed,
	                          "first_malformed", offset_json(t->first_malformed))
	                : json_pack("{ss ss sI ss sI sI sI so}", "build_id", row->build_id, "state",
	                          "ready", "traces", (json_int_t)row->traces, "version",
	                          row->map_version, "entries", (json_int_t)row->entries,
	                          "duplicates", (json_int_t)row->duplicates, "malformed",
	                          (json_int_t)row->malformed, "first_malformed",
	                          offset_json(row->first_malformed));

	return tw_req_reply_json(r, 200, o, err);
}

static enum tw_status reply_end(struct tw_req *r, const struct tw_build_row *row,
        const struct tw_mapping_upload *u, struct tw_err *err)
{
	const struct mapping *m = tw_req_state(r);
	const bool retrace = m->kind == TW_MAPPING_RETRACE;
	const bool mine = strcmp(u->job_id, m->job_id) == 0;
	const char *in_use = retrace ? row->retrace.source_sha256 : row->source_sha256;

	if (mine && u->state == TW_MAPPING_FAILED) {
		enum tw_status st = tw_status_of_name(u->error_status);

		return tw_fail_at(err, st == TW_OK ? TW_BUG : st,
		        u->error_offset < 0 ? TW_NO_OFFSET : (uint64_t)u->error_offset, "%s",
		        u->error_message);
	}
	if (*m->job_id && mine)
		return tw_req_reply_json(r, 202,
		        json_pack("{ss ss sI}", "build_id", row->build_id, "state",
		                tw_mapping_state_names[u->state], "traces",
		                (json_int_t)row->traces),
		        err);
	if (strcmp(in_use, m->source) == 0)
		return reply_counts(r, row, err);
	return tw_fail(
	        err, TW_CONFLICT, "a later upload replaced this mapping of build %s", m->build_id);
}

static enum tw_status end_mapping(struct tw_req *r, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	const struct tw_mapping_upload *u;
	struct tw_build_row row;
	enum tw_status st = m->is_stored ? TW_OK : store_and_queue(r, err);

	if (st == TW_OK)
		st = get_build(r, m->build_id, &row, err);
	if (st != TW_OK)
		return st;
	u = m->kind == TW_MAPPING_RETRACE ? &row.retrace.upload : &row.upload;
	if (*m->job_id && strcmp(u->job_id, m->job_id) == 0 && u->state != TW_MAPPING_FAILED &&
	        tw_monotonic_ms() < m->until_ms && tw_req_wait(r))
		return TW_OK;
	return reply_end(r, &row, u, err);
}

/* --- commits --- */

static enum tw_status store_commit(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *given = json_object_get(body, "commit");
	const char *id;
	char commit[TW_COMMIT_BYTES] = "";
	enum tw_status st = build_id_of(r, &id, err);

	if (st == TW_OK && (!json_is_string(given) || json_object_size(body) != 1))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "the body must be {\"commit\": \"7 to 64 hex digits\"}");
	if (st == TW_OK && json_string_length(given))
		st = tw_upload_meta_commit(json_string_value(given), commit, err);
	if (st == TW_OK)
		st = tw_catalogue_commit_set(
		        tw_api_catalogue(r), tw_api_project(r), id, commit, err);
	if (st == TW_OK)
		tw_record_build(tw_api_of(r)->recorder, tw_api_project(r), id);
	return st == TW_OK ? tw_req_reply_json(r, 200,
	                             json_pack("{s:s, s:s}", "build_id", id, "commit", commit), err)
	                   : st;
}

/* --- builds as JSON --- */

/* A failed upload that could not have replaced the mapping in use is not shown: its key may have
 * leaked. */
static struct tw_mapping_upload shown(struct tw_mapping_upload u, bool in_use)
{
	if (u.state == TW_MAPPING_FAILED && in_use && !u.may_replace)
		u = (struct tw_mapping_upload){.state = TW_MAPPING_READY, .error_status = ""};
	return u;
}

/* null, the error of a failed upload, or why a queued one was postponed. */
static json_t *error_json(const struct tw_mapping_upload *u)
{
	return *u->error_status ? json_pack("{ss ss so}", "status", u->error_status, "message",
	                                  u->error_message, "offset", offset_json(u->error_offset))
	                        : json_null();
}

/* Whether a mapping is in use, and the result of the last upload. */
static int set_upload(json_t *o, struct tw_mapping_upload last, bool in_use)
{
	const struct tw_mapping_upload u = shown(last, in_use);

	return json_object_set_new(o, "mapping", json_boolean(in_use)) |
	       json_object_set_new(o, "state", json_string(tw_mapping_state_names[u.state])) |
	       json_object_set_new(o, "error", error_json(&u));
}

static json_t *build_json(const struct tw_build_row *b)
{
	json_t *o = tw_row_json(&tw_build_fields, b);

	return tw_json_complete(o, set_upload(o, b->upload, *b->map_sha256 != '\0') |
	                                   set_upload(json_object_get(o, "retrace"),
	                                           b->retrace.upload, *b->retrace.sha256 != '\0'));
}

static const struct tw_param builds_params[] = {
        TW_PARAM_NUMBER("limit", 100, 1, 500, ""),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        {0},
};

static enum tw_status list_builds(struct tw_req *r, struct tw_err *err)
{
	struct tw_build_row *rows;
	const char *cursor;
	json_t *list;
	size_t n;
	enum tw_status st = tw_catalogue_builds(tw_api_catalogue(r), tw_api_project(r),
	        (uint32_t)tw_req_number(r, "limit"), tw_req_text_or_empty(r, "cursor"),
	        tw_req_arena(r), &rows, &n, &cursor, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, build_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{so so}", "builds", list, "next_cursor",
	                *cursor ? json_string(cursor) : json_null()),
	        err);
}

/* The share of methods in the build's newest trace that the mappings name; null without a ready
 * trace. */
static json_t *latest_json(struct tw_req *r, const char *build_id)
{
	const struct tw_trace_filter filter = {
	        .of = {{TW_BY_build_id, build_id}, {TW_BY_state, "ready"}},
	        .limit = 1,
	        .cursor = ""};
	struct tw_trace_row *rows = NULL;
	const char *cursor;
	uint64_t total;
	size_t n = 0;
	json_t *seen = json_object();
	json_t *latest = json_null();
	struct tw_err why;

	if (tw_catalogue_traces(tw_api_catalogue(r), tw_api_project(r), &filter, tw_req_arena(r),
	            &rows, &n, &cursor, &total, &why) == TW_OK &&
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
		st = tw_catalogue_build_get(
		        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);
	if (st != TW_OK)
		return st;
	o = build_json(&row);
	(void)json_object_set_new(o, "latest", latest_json(r, id));
	return tw_req_reply_json(r, 200, o, err);
}

#define PUT_MAPPING(of, begins, what)                                                              \
	TW_ROUTE("PUT", "/api/v1/builds/{build_id}/" of, TW_NEED_INGEST, what,                     \
	        .params = TW_PARAMS(wait_params), .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,         \
	        .upload = true, .max_body = max_mapping, .begin = (begins), .body = mapping_body,  \
	        .end = end_mapping, .abort = abort_mapping)

const struct tw_route tw_routes_build[] = {
        PUT_MAPPING("methods", begin_mapping, "Sets the method mapping of a build"),
        PUT_MAPPING("retrace", begin_retrace, "Sets R8's or ProGuard's mapping of a build"),
        PUT_MAPPING("symbols", begin_symbols, "Sets the symbols of a native library"),
        TW_ROUTE("PUT", "/api/v1/builds/{build_id}/commit", TW_NEED_INGEST,
                "Sets the commit of a build", .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,
                .json = store_commit),
        TW_ROUTE("GET", "/api/v1/builds", TW_NEED_READ, "Builds with a mapping or named by a trace",
                .params = TW_PARAMS(builds_params), .roles = TW_ROLE_INGEST | TW_ROLE_QUERY,
                .end = list_builds),
        TW_ROUTE("GET", "/api/v1/builds/{build_id}", TW_NEED_READ, "One build",
                .roles = TW_ROLE_INGEST | TW_ROLE_QUERY, .end = one_build),
        {0},
};
