/*
 * api_build.c - builds and their method mappings.
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
#include "jobs.h"

struct mapping {
	const char *build_id;
	struct tw_blob_writer *writer;
	uint64_t bytes;
};

static json_t *mapping_place(uint64_t offset)
{
	return offset == TW_NO_OFFSET ? json_null() : json_integer((json_int_t)offset);
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

static enum tw_status begin_mapping(struct tw_req *r, struct tw_err *err)
{
	struct tw_app *app = tw_req_app(r);
	struct mapping *m = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *m);
	enum tw_status st;

	if (!m)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "out of memory");
	tw_req_set_state(r, m);
	st = build_id_of(r, &m->build_id, err);
	if (st == TW_OK && tw_req_content_length(r) == 0)
		st = tw_fail(err, TW_BAD_REQUEST, 0, "the body is empty: send methodMapping.txt");
	return st == TW_OK ? tw_blob_begin(app->blobs, app->config->max_body_bytes, &m->writer, err)
	                   : st;
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

/* Called with blob_use held for reading. */
static enum tw_status compile_and_record(struct tw_req *r, struct tw_map_stats *ret_stats,
        const char ***ret_unused, size_t *ret_n, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_app *app = tw_req_app(r);
	char source[TW_SHA256_HEX];
	char image[TW_SHA256_HEX];
	uint64_t bytes;
	enum tw_status st = tw_blob_commit(m->writer, source, &bytes, err);

	if (st != TW_OK)
		return st;
	m->writer = NULL;
	st = tw_jobs_run_map(app->jobs, source, image, ret_stats, err);
	if (st != TW_OK)
		return st;
	return tw_catalogue_build_set(app->catalogue, tw_req_caller(r)->project_id,
	        &(struct tw_build_row){
	                .build_id = m->build_id,
	                .map_sha256 = image,
	                .source_sha256 = source,
	                .map_version = ret_stats->version,
	                .entries = ret_stats->entries,
	                .malformed = ret_stats->malformed,
	                .duplicates = ret_stats->duplicates,
	                .app = "",
	                .version_name = "",
	        },
	        tw_req_arena(r), ret_unused, ret_n, err);
}

/* Between the row and this another upload may have named the same content again: ask anew. */
static void drop_unused(struct tw_app *app, const char *const *blobs, size_t n)
{
	(void)pthread_rwlock_wrlock(&app->blob_use);
	for (size_t i = 0; i < n; i++) {
		bool used = true;

		if (tw_catalogue_has_blob(app->catalogue, blobs[i], &used, NULL) == TW_OK && !used)
			tw_api_drop_blobs(app, &blobs[i], 1);
	}
	(void)pthread_rwlock_unlock(&app->blob_use);
}

static enum tw_status end_mapping(struct tw_req *r, struct tw_err *err)
{
	struct mapping *m = tw_req_state(r);
	struct tw_app *app = tw_req_app(r);
	struct tw_map_stats stats;
	struct tw_build_row row;
	const char **unused = NULL;
	size_t n_unused = 0;
	enum tw_status st;

	if (m->bytes == 0)
		return tw_fail(err, TW_BAD_REQUEST, 0, "the body is empty: send methodMapping.txt");
	(void)pthread_rwlock_rdlock(&app->blob_use);
	st = compile_and_record(r, &stats, &unused, &n_unused, err);
	(void)pthread_rwlock_unlock(&app->blob_use);
	if (st != TW_OK)
		return st;
	drop_unused(app, unused, n_unused);
	st = tw_catalogue_build_get(app->catalogue, tw_req_caller(r)->project_id, m->build_id,
	        tw_req_arena(r), &row, err);
	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{ss sI sI sI so ss sI}", "build_id", m->build_id, "entries",
	                (json_int_t)stats.entries, "duplicates", (json_int_t)stats.duplicates,
	                "malformed", (json_int_t)stats.malformed, "first_malformed",
	                mapping_place(stats.first_malformed), "version", stats.version, "traces",
	                (json_int_t)row.traces),
	        err);
}

static json_t *build_json(const struct tw_build_row *b)
{
	return json_pack("{ss sb sI sI sI ss sI sI ss ss}", "build_id", b->build_id, "mapping",
	        *b->map_sha256 != '\0', "entries", (json_int_t)b->entries, "malformed",
	        (json_int_t)b->malformed, "duplicates", (json_int_t)b->duplicates, "map_version",
	        b->map_version, "updated_ms", (json_int_t)b->updated_ms, "traces",
	        (json_int_t)b->traces, "app", b->app, "version_name", b->version_name);
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

static enum tw_status one_build(struct tw_req *r, struct tw_err *err)
{
	struct tw_build_row row;
	const char *id;
	enum tw_status st = build_id_of(r, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_build_get(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        id, tw_req_arena(r), &row, err);
	return st == TW_OK ? tw_req_reply_json(r, 200, build_json(&row), err) : st;
}

const struct tw_route tw_routes_build[] = {
        {.method = "PUT",
                .path = "/api/v1/builds/{build_id}/methods",
                .scope = TW_SCOPE_INGEST,
                .slow = true,
                .upload = true,
                .max_body = max_mapping,
                .begin = begin_mapping,
                .body = mapping_body,
                .end = end_mapping,
                .abort = abort_mapping,
                .summary = "Sets the method mapping of a build"},
        {.method = "GET",
                .path = "/api/v1/builds",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = list_builds,
                .summary = "Builds with a mapping or named by a trace"},
        {.method = "GET",
                .path = "/api/v1/builds/{build_id}",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = one_build,
                .summary = "One build"},
        {0},
};
