/* catalogue_build.c - builds and their mappings. */
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/page_cursor.h"
#include "server/catalogue/storage/catalogue_files.h"

#include <stdio.h>
#include <string.h>

#define RETRACE(member, column, json) TW_FIELD(struct tw_build_retrace, member, column, json)
#define NAMES(member, column, json)   TW_FIELD(struct tw_build_names, member, column, json)
#define BUILD(member, column, json)   TW_FIELD(struct tw_build_row, member, column, json)

const char *const tw_mapping_state_names[] = {
        "none", "queued", "compiling", "ready", "failed", NULL};

const char *const tw_mapping_kind_words[] = {"methods", "retrace", "symbols"};

/* The last upload, which has a row of mapping_job until it is in use. */
#define UPLOAD_FIELDS(job, image)                                                                  \
	{                                                                                          \
		TW_FIELD(struct tw_mapping_upload, state,                                          \
		        "CASE WHEN " job ".job_id IS NULL THEN CASE WHEN " image                   \
		        "='' THEN 0 ELSE 3 END WHEN " job ".claimed=0 THEN 1 WHEN " job            \
		        ".claimed=1 THEN 2 ELSE 4 END",                                            \
		        NULL),                                                                     \
		        TW_FIELD(struct tw_mapping_upload, job_id, job ".job_id", NULL),           \
		        TW_FIELD(struct tw_mapping_upload, error_status, job ".error_status",      \
		                NULL),                                                             \
		        TW_FIELD(struct tw_mapping_upload, error_message, job ".error_message",    \
		                NULL),                                                             \
		        TW_FIELD(struct tw_mapping_upload, error_offset,                           \
		                "coalesce(" job ".error_offset,-1)", NULL),                        \
		        TW_FIELD(struct tw_mapping_upload, may_replace, job ".may_replace", NULL), \
	}
static const struct tw_field methods_upload[] = UPLOAD_FIELDS("m", "map_sha256");
static const struct tw_field retrace_upload[] = UPLOAD_FIELDS("r", "retrace_sha256");
static const struct tw_fields methods_upload_fields = TW_FIELDS(methods_upload);
static const struct tw_fields retrace_upload_fields = TW_FIELDS(retrace_upload);

static const struct tw_field retrace[] = {
        RETRACE(sha256, "retrace_sha256", NULL),
        RETRACE(source_sha256, "retrace_source_sha256", NULL),
        RETRACE(id, "retrace_id", "id"),
        RETRACE(classes, "retrace_classes", "classes"),
        RETRACE(methods, "retrace_methods", "methods"),
        RETRACE(malformed, "retrace_malformed", "malformed"),
        RETRACE(first_malformed, "retrace_first_malformed", NULL),
        RETRACE(updated_ms, "retrace_ms", "updated_ms"),
        TW_FIELD_OF_GROUP(struct tw_build_retrace, upload, &retrace_upload_fields, NULL),
};
static const struct tw_fields retrace_fields = TW_FIELDS(retrace);

static const struct tw_field names[] = {
        NAMES(traces, "names_traces", "traces"),
        NAMES(lacking, "names_lacking", "unresolved_traces"),
        NAMES(sum.ids, "names_ids", "ids"),
        NAMES(sum.resolved, "names_resolved", "resolved"),
        NAMES(sum.slices, "names_slices", "slices"),
        NAMES(sum.resolved_slices, "names_resolved_slices", "resolved_slices"),
};
static const struct tw_fields names_fields = TW_FIELDS(names);

static const struct tw_field build[] = {
        BUILD(build_id, "build.build_id", "build_id"),
        BUILD(map_sha256, "map_sha256", NULL),
        BUILD(source_sha256, "build.source_sha256", NULL),
        BUILD(entries, "entries", "entries"),
        BUILD(malformed, "malformed", "malformed"),
        BUILD(duplicates, "duplicates", "duplicates"),
        BUILD(first_malformed, "first_malformed", NULL),
        BUILD(map_version, "map_version", "map_version"),
        BUILD(updated_ms, "updated_ms", "updated_ms"),
        BUILD(traces,
                "traces+coalesce((SELECT sum(d.traces) FROM count_delta d WHERE"
                " d.project_id=build.project_id AND d.counter=0 AND d.name=build.build_id),0)",
                "traces"),
        BUILD(app, "app", "app"),
        BUILD(version_name, "version_name", "version_name"),
        BUILD(commit, "commit_id", "commit"),
        TW_FIELD_OF_GROUP(struct tw_build_row, upload, &methods_upload_fields, NULL),
        TW_FIELD_OF_GROUP(struct tw_build_row, retrace, &retrace_fields, "retrace"),
        TW_FIELD_OF_GROUP(struct tw_build_row, names, &names_fields, "names"),
};
const struct tw_fields tw_build_fields = TW_FIELDS(build);

#define SENT_OF(name, kind)                                                                        \
	" LEFT JOIN mapping_job " name " ON " name ".project_id=build.project_id AND " name        \
	".build_id=build.build_id AND " name ".kind" kind
#define BUILDS " FROM build" SENT_OF("m", "<>1") SENT_OF("r", "=1")

enum { LIMIT_MAX = 500 };

enum tw_status tw_cat_build_get(struct tw_db *db, const char *project_id, const char *build_id,
        struct tw_arena *a, struct tw_build_row *ret, bool *ret_found, struct tw_err *err)
{
	return tw_cat_get_row(db, &tw_build_fields, a, ret, ret_found,
	        err, /* primary key; mapping_job_by_build, twice */
	        "SELECT {columns}" BUILDS " WHERE build.project_id=? AND build.build_id=?", "tt",
	        project_id, build_id);
}

static enum tw_status put(
        struct tw_db *db, const char *project_id, const struct tw_build_row *r, struct tw_err *err)
{
	int64_t now = tw_unix_ms();

	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO build(project_id,build_id,created_ms,map_sha256,source_sha256,"
	        "map_version,entries,malformed,duplicates,updated_ms,first_malformed)"
	        " VALUES(?,?,?,?,?,?,?,?,?,?,?)"
	        " ON CONFLICT(project_id,build_id) DO UPDATE SET map_sha256=excluded.map_sha256,"
	        " source_sha256=excluded.source_sha256, map_version=excluded.map_version,"
	        " entries=excluded.entries, malformed=excluded.malformed,"
	        " duplicates=excluded.duplicates, updated_ms=excluded.updated_ms,"
	        " first_malformed=excluded.first_malformed",
	        "ttitttiiiii", project_id, r->build_id, now, r->map_sha256, r->source_sha256,
	        r->map_version, (int64_t)r->entries, (int64_t)r->malformed, (int64_t)r->duplicates,
	        now, r->first_malformed);
}

static enum tw_status put_retrace(
        struct tw_db *db, const char *project_id, const struct tw_build_row *r, struct tw_err *err)
{
	const struct tw_build_retrace *t = &r->retrace;
	int64_t now = tw_unix_ms();

	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO build(project_id,build_id,created_ms,retrace_sha256,"
	        "retrace_source_sha256,retrace_id,retrace_classes,retrace_methods,"
	        "retrace_malformed,retrace_ms,retrace_first_malformed)"
	        " VALUES(?,?,?,?,?,?,?,?,?,?,?)"
	        " ON CONFLICT(project_id,build_id) DO UPDATE SET "
	        "retrace_sha256=excluded.retrace_sha256,"
	        " retrace_source_sha256=excluded.retrace_source_sha256,"
	        " retrace_id=excluded.retrace_id, retrace_classes=excluded.retrace_classes,"
	        " retrace_methods=excluded.retrace_methods,"
	        " retrace_malformed=excluded.retrace_malformed, retrace_ms=excluded.retrace_ms,"
	        " retrace_first_malformed=excluded.retrace_first_malformed",
	        "ttitttiiiii", project_id, r->build_id, now, t->sha256, t->source_sha256, t->id,
	        (int64_t)t->classes, (int64_t)t->methods, (int64_t)t->malformed, now,
	        t->first_malformed);
}

/* Checks all four blobs of the previous row: those still in use are not returned. */
enum tw_status tw_cat_build_put(struct tw_db *db, const struct tw_mapping_sent *of,
        const struct tw_build_row *row, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	static const char *const stages[] = {"names", "rollup", "anr"};
	struct tw_build_row before = {.map_sha256 = "",
	        .source_sha256 = "",
	        .retrace = {.sha256 = "", .source_sha256 = ""}};
	const char *const image =
	        of->kind == TW_MAPPING_RETRACE ? row->retrace.sha256 : row->map_sha256;
	bool found = false;
	enum tw_status st = tw_cat_lock(db, TW_SUBJECT_CONTENT, image, false, err);

	if (st == TW_OK)
		st = tw_cat_build_get(db, of->project_id, row->build_id, a, &before, &found, err);
	if (st == TW_OK)
		st = (of->kind == TW_MAPPING_RETRACE ? put_retrace : put)(
		        db, of->project_id, row, err);
	for (size_t i = 0; st == TW_OK && i < sizeof stages / sizeof *stages; i++)
		st = tw_cat_rename(db, stages[i], of->project_id, row->build_id, err);
	if (st == TW_OK)
		st = tw_cat_unused_blobs(db,
		        (const char *const[]){before.map_sha256, before.source_sha256,
		                before.retrace.sha256, before.retrace.source_sha256},
		        4, a, &ret_unused->sha256, &ret_unused->n, err);
	return st;
}

/* --- deleting --- */

enum { FILES_MAX = 7 }; /* four of the build, and an upload of each kind */

static enum tw_status read_files(struct tw_db *db, const char *project_id, const char *build_id,
        struct tw_arena *a, const char *ret[FILES_MAX], size_t *ret_n, struct tw_err *err)
{
#define FILE_OF(column, table)                                                                     \
	"SELECT " column " FROM " table " WHERE project_id=?1 AND build_id=?2"
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key, mapping_job_by_build */
	        FILE_OF("map_sha256", "build") " UNION " FILE_OF(
	                "source_sha256", "build") " UNION " FILE_OF("retrace_sha256",
	                "build") " UNION " FILE_OF("retrace_source_sha256",
	                "build") " UNION " FILE_OF("source_sha256", "mapping_job"),
	        "tt", project_id, build_id);

	*ret_n = 0;
	while (st == TW_OK && *ret_n < FILES_MAX && tw_cat_row(&q))
		if (!(ret[(*ret_n)++] = tw_cat_text(&q, 0, a)))
			st = tw_oom(err);
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_build_delete(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	const char *files[FILES_MAX];
	struct tw_db *w = NULL;
	size_t n = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_BUILD, build_id, &w, err);

	if (st == TW_OK)
		st = read_files(w, project_id, build_id, a, files, &n, err);
	if (st == TW_OK)
		st = tw_cat_change(w, "no such build", err,
		        "DELETE FROM build WHERE project_id=? AND build_id=?", "tt", project_id,
		        build_id);
	if (st == TW_OK)
		st = tw_cat_unused_blobs(w, files, n, a, &ret_unused->sha256, &ret_unused->n, err);
	if (st == TW_OK)
		st = tw_cat_build_record_drop(w, project_id, build_id, err);
	return tw_cat_end(c, w, st, err);
}

/* --- native libraries --- */

static bool set_image(const struct tw_cat_query *q, struct tw_libraries *io, struct tw_arena *a)
{
	const char *id = tw_cat_str(q, 0);

	for (size_t i = 0; i < io->n; i++)
		if (strcmp(io->builds[i], id) == 0) {
			io->images[i] = tw_cat_text(q, 1, a);
			return io->images[i] != NULL;
		}
	return true;
}

static enum tw_status read_images(struct tw_db *db, const char *project_id, struct tw_arena *a,
        struct tw_libraries *io, struct tw_err *err)
{
	const char *list = tw_cat_texts(db, io->builds, io->n, a);
	struct tw_cat_query q;
	enum tw_status st;

	io->images = tw_arena_alloc(a, io->n + 1, sizeof *io->images);
	if (!list || !io->images)
		return tw_oom(err);
	for (size_t i = 0; i < io->n; i++)
		io->images[i] = "";
	st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT build_id, map_sha256 FROM build WHERE project_id=?1 AND"
	        " build_id" TW_CAT_AMONG_TEXTS("?2"),
	        "tt", project_id, list);
	while (st == TW_OK && tw_cat_row(&q))
		if (!set_image(&q, io, a))
			st = tw_oom(err);
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_library_images(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_libraries *io, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = read_images(db, project_id, a, io, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_cat_has_images(struct tw_db *db, const char *project_id,
        const struct tw_libraries *of, bool *ret, struct tw_err *err)
{
	struct tw_libraries now = {of->builds, NULL, of->n};
	struct tw_arena *a = tw_arena_new(1 << 20);
	enum tw_status st = a ? read_images(db, project_id, a, &now, err) : tw_oom(err);

	if (st == TW_OK)
		*ret = true;
	for (size_t i = 0; st == TW_OK && i < of->n; i++)
		*ret = *ret && strcmp(of->images[i], now.images[i]) == 0;
	tw_arena_free(a);
	return st;
}

enum tw_status tw_cat_add_libraries(struct tw_db *db, const char *project_id,
        const struct tw_used_libraries *used, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "ttti",
	        .sql = "INSERT INTO build_library(project_id,library,build_id,seen_day) SELECT"
	               " c1,c2,c3,c4 FROM {rows} WHERE 1=1 ON"
	               " CONFLICT(project_id,library,build_id) DO UPDATE SET"
	               " seen_day=max(build_library.seen_day,excluded.seen_day)"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < used->of.n; i++)
		st = tw_cat_rows_add(
		        &rows, err, project_id, used->of.builds[i], used->build_id, used->day);
	return tw_cat_rows_end(&rows, st, err);
}

/* --- reading --- */

enum tw_status tw_catalogue_build_get(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_build_row *ret, struct tw_err *err)
{
	struct tw_build_row row;
	bool found = false;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = tw_cat_build_get(db, project_id, build_id, a, &row, &found, err);
	tw_cat_done(c, db);
	if (st == TW_OK && !found)
		return tw_fail(err, TW_NOT_FOUND, "no trace or mapping was sent for this build");
	if (st == TW_OK)
		*ret = row;
	return st;
}

struct page {
	struct tw_build_row *rows;
	size_t n, limit;
	const char *cursor;
	int64_t last_created;
};

static enum tw_status list(struct tw_db *db, const char *project_id, const char *cursor,
        struct tw_arena *a, struct page *p, struct tw_err *err)
{
	struct tw_page_cursor before = {INT64_MAX, ""};
	struct tw_cat_query q;
	int at;
	enum tw_status st = tw_page_cursor_read(cursor, &before, err);

	if (st == TW_OK)
		st = tw_cat_query_fields(&q, db, &tw_build_fields, err, /* build_by_age */
		        "SELECT {columns},created_ms" BUILDS " WHERE build.project_id=? AND"
		        " (created_ms, build.build_id) < (?, ?) ORDER BY created_ms DESC,"
		        " build.build_id DESC LIMIT ?",
		        "titi", project_id, before.number, before.id, (int64_t)p->limit + 1);
	if (st != TW_OK)
		return st;
	p->cursor = "";
	while (st == TW_OK && tw_cat_row(&q)) {
		if (p->n == p->limit) {
			p->cursor =
			        tw_page_cursor_text(a, p->last_created, p->rows[p->n - 1].build_id);
			st = p->cursor ? TW_OK : tw_oom(err);
			break;
		}
		at = tw_row_read(&q, 0, &tw_build_fields, a, &p->rows[p->n++]);
		if (at < 0)
			st = tw_oom(err);
		else
			p->last_created = tw_cat_int(&q, at);
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_builds(struct tw_catalogue *c, const char *project_id, uint32_t limit,
        const char *cursor, struct tw_arena *a, struct tw_build_row **ret, size_t *ret_n,
        const char **ret_cursor, struct tw_err *err)
{
	struct page p = {.limit = limit && limit < LIMIT_MAX ? limit : LIMIT_MAX};
	struct tw_db *db;
	enum tw_status st;

	p.rows = tw_arena_alloc(a, p.limit, sizeof *p.rows);
	if (!p.rows)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = list(db, project_id, cursor ? cursor : "", a, &p, err);
	tw_cat_done(c, db);
	if (st == TW_OK) {
		*ret = p.rows;
		*ret_n = p.n;
		*ret_cursor = p.cursor;
	}
	return st;
}

enum tw_status tw_catalogue_build_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret, struct tw_err *err)
{
	*ret = "";
	return tw_cat_read_row(c, &tw_text_fields, a, ret, NULL, err, /* build_by_age */
	        "SELECT build_id FROM (SELECT build_id, version_name, app FROM build WHERE"
	        " project_id=?1 ORDER BY created_ms DESC, build_id DESC LIMIT 5000) of_project"
	        " WHERE version_name=?2 AND (?3='' OR app=?3) LIMIT 1",
	        "ttt", project_id, of->version_name, of->app);
}

/* --- the source revision of builds --- */

enum tw_status tw_catalogue_commit_set(struct tw_catalogue *c, const char *project_id,
        const char *build_id, const char *commit, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_BUILD, build_id,
	                .change = &(struct tw_change){"build.commit", project_id, build_id,
	                        .facts = {{"commit", commit}}}},
	        err,
	        "INSERT INTO build(project_id,build_id,created_ms,commit_id,commit_set)"
	        " VALUES(?,?,?,?,?) ON CONFLICT (project_id,build_id) DO UPDATE SET "
	        "commit_id=excluded.commit_id,"
	        " commit_set=excluded.commit_set",
	        "ttiti", project_id, build_id, tw_unix_ms(), commit, (int64_t)(*commit != 0));
}

/* A version's revision is the one set for its builds by the build system: values from devices are
 * not trusted, and if two builds differ (variants, or two apps without a filter) it is unknown. */
enum tw_status tw_catalogue_commit_of(struct tw_catalogue *c, const char *project_id,
        const struct tw_release *of, struct tw_arena *a, const char **ret, struct tw_err *err)
{
	struct tw_cat_list l = {
	        .arena = a, .limit = 2, .row_bytes = sizeof *ret, .fields = &tw_text_fields};
	enum tw_status st;

	if (*of->build_id)
		st = tw_cat_list(c, &l, err, /* primary key */
		        "SELECT commit_id FROM build WHERE project_id=? AND build_id=?", "tt",
		        project_id, of->build_id);
	else
		st = tw_cat_list(c, &l, err, /* build_with_commit */
		        "SELECT DISTINCT commit_id FROM build WHERE project_id=?1 AND"
		        " version_name=?2 AND commit_set=1 AND (?3='' OR app=?3) LIMIT 2",
		        "ttt", project_id, of->version_name, of->app);
	if (st == TW_OK)
		*ret = l.n == 1 ? *(const char **)l.rows : "";
	return st;
}

/* --- mappings of a trace --- */

static enum tw_status take_mappings(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_mapping_ids *ids, struct tw_err *err)
{
	struct tw_build_row row;
	enum tw_status st;

	if ((ids->map[0] && ids->retrace[0]) || !build_id[0])
		return TW_OK;
	st = tw_catalogue_build_get(c, project_id, build_id, a, &row, err);
	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK && !ids->map[0])
		(void)snprintf(ids->map, sizeof ids->map, "%s", row.map_sha256);
	if (st == TW_OK && !ids->retrace[0])
		(void)snprintf(ids->retrace, sizeof ids->retrace, "%s", row.retrace.sha256);
	return st;
}

enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err)
{
	struct tw_mapping_ids ids = {"", ""};
	enum tw_status st = take_mappings(c, of->project_id, of->mapping_id, a, &ids, err);

	if (st == TW_OK)
		st = take_mappings(c, of->project_id, of->build_id, a, &ids, err);
	if (st == TW_OK)
		*ret = ids;
	return st;
}
