/* catalogue_trace.c - reads, lists and deletes traces; catalogue_commit_upload.c adds them. */
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"

#include <stdio.h>

const char *const tw_trace_state_names[] = {
        "queued", "decoding", "ready", "failed", "archived", NULL};

enum { PARTS_MAX = TW_CATALOGUE_PARTS };

const char *tw_trace_state_name(enum tw_trace_state s)
{
	return (unsigned)s < TW_TRACE_STATES ? tw_trace_state_names[s] : "failed";
}

/* --- the row --- */

#define META(member, json) TW_FIELD(struct tw_trace_meta, member, #member, json)
static const struct tw_field meta_fields[] = {
        META(app, "app"),
        META(version_name, "version_name"),
        META(version_code, "version_code"),
        META(build_id, "build_id"),
        META(mapping_id, "mapping_id"),
        META(device, "device"),
        META(os, "os"),
        META(abi, "abi"),
        META(process, "process"),
        META(pid, "pid"),
        META(scenario, "scenario"),
        META(started_ms, "started_ms"),
        META(recorded_ms, "recorded_ms"),
        META(session_id, "session_id"),
        META(uuid, "uuid"),
        TW_FIELD(struct tw_trace_meta, labels, "labels", "labels", .shape = TW_SHAPE_OBJECT),
};
const struct tw_fields tw_trace_meta_fields = TW_FIELDS(meta_fields);

#define SUMMARY(member) TW_FIELD(struct tw_trace_summary, member, #member, #member)
static const struct tw_field summary_fields[] = {
        SUMMARY(slices),
        SUMMARY(threads),
        SUMMARY(methods),
        SUMMARY(max_depth),
        SUMMARY(duration_ns),
        SUMMARY(input_bytes),
        SUMMARY(decoded_bytes),
        SUMMARY(file_bytes),
        SUMMARY(format),
        SUMMARY(decoder_version),
        SUMMARY(losses),
        SUMMARY(repairs),
};
const struct tw_fields tw_trace_summary_fields = TW_FIELDS(summary_fields);

static const char *const counted_names[] = {"waiting", "counted", "unreadable", "postponed", NULL};

#define TAGS                                                                                       \
	"(SELECT " TW_EITHER("json_group_array(tag)",                                              \
	        "coalesce(json_agg(tag ORDER BY tag),'[]')::text") " FROM trace_tag t" OF_TRACE    \
	                                                           ")"
#define OF_TRACE " WHERE t.project_id=trace.project_id AND t.trace_id=trace.trace_id"

/* The name that a rule gave the cause, otherwise its title. */
#define ANR_TITLE                                                                                  \
	"CASE WHEN anr='' THEN '' ELSE coalesce((SELECT CASE WHEN t.name<>'' THEN t.name"          \
	" ELSE t.title END FROM anr t" OF_TRACE "),'') END"

/* The group of its cause; rules and mappings may move it to another. */
#define ANR_GROUP                                                                                  \
	"CASE WHEN anr='' THEN '' ELSE coalesce((SELECT t.key FROM anr t" OF_TRACE "),'') END"

#define ROW(member, column, json) TW_FIELD(struct tw_trace_row, member, column, json)
static const struct tw_field row_fields[] = {
        ROW(id, "trace_id", "id"),
        ROW(project_id, "project_id", NULL),
        ROW(key_id, "key_id", NULL),
        TW_FIELD(struct tw_trace_row, state, TW_CAT_TRACE_STATE, "state",
                .names = tw_trace_state_names),
        ROW(created_ms, "created_ms", "created_ms"),
        ROW(ready_ms, "ready_ms", "ready_ms"),
        ROW(attempts, "attempts", "attempts"),
        ROW(upload_bytes, "upload_bytes", "upload_bytes"),
        ROW(has_upload, "has_upload", "has_upload"),
        TW_FIELD_OF_GROUP(struct tw_trace_row, meta, &tw_trace_meta_fields, "meta"),
        TW_FIELD_OF_GROUP(struct tw_trace_row, summary, &tw_trace_summary_fields, "summary"),
        ROW(title, "title", "title"),
        ROW(pinned, "pinned", "pinned"),
        ROW(exempt_reason, "exempt_reason", "exempt_reason"),
        ROW(anr, "anr", "anr"),
        ROW(anr_group, ANR_GROUP, "anr_group"),
        ROW(anr_title, ANR_TITLE, "anr_title"),
        ROW(first_anr, TW_TRACE_IS_FIRST, "first_anr"),
        TW_FIELD(struct tw_trace_row, tags, TAGS, "tags", .shape = TW_SHAPE_LIST),
        ROW(annotations, "annotations", "annotations"),
        TW_FIELD(struct tw_trace_row, counted, "rollup_state", "rollup_state",
                .names = counted_names),
};
const struct tw_fields tw_trace_fields = TW_FIELDS(row_fields);

bool tw_cat_read_trace(const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *r)
{
	const int at = tw_row_read(q, 0, &tw_trace_fields, a, r);
	int64_t offset;

	r->error = (struct tw_err){.code = TW_OK};
	if (at >= 0 && tw_cat_str(q, at) && tw_cat_str(q, at)[0]) {
		offset = tw_cat_int(q, at + 2);
		r->error.code = tw_status_of_name(tw_cat_str(q, at));
		(void)snprintf(r->error.msg, sizeof r->error.msg, "%s", tw_cat_str(q, at + 1));
		r->error.offset = offset < 0 ? TW_NO_OFFSET : (uint64_t)offset;
	}
	return at >= 0;
}

static enum tw_status get_trace(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_trace_row *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_trace_row row = {.id = NULL};
	enum tw_status st = tw_cat_query_fields(&q, db, &tw_trace_fields, err, /* primary key */
	        "SELECT " TW_CAT_TRACE_COLUMNS " FROM trace WHERE project_id=? AND trace_id=?",
	        "tt", project_id, trace_id);

	if (tw_cat_row(&q))
		st = tw_cat_read_trace(&q, a, &row) ? TW_OK : tw_oom(err);
	else if (tw_cat_at_end(&q))
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	st = tw_cat_close_after(&q, st, err);
	if (st == TW_OK)
		*ret = row;
	return st;
}

enum tw_status tw_catalogue_trace_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_trace_row *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = get_trace(db, project_id, trace_id, a, ret, err);
	tw_cat_done(c, db);
	return st;
}

#define PART(member) TW_FIELD(struct tw_part, member, #member, NULL)
static const struct tw_field part_fields[] = {
        PART(part), PART(sha256), PART(format), PART(bytes), PART(found)};
static const struct tw_fields fields_of_part = TW_FIELDS(part_fields);

static enum tw_status get_parts(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_part **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_part *parts = tw_arena_alloc(a, PARTS_MAX, sizeof *parts);
	struct tw_cat_query q;
	size_t n = 0;
	enum tw_status st = tw_cat_query_fields(&q, db, &fields_of_part, err, /* primary key */
	        "SELECT {columns} FROM part WHERE project_id=? AND trace_id=? ORDER BY part", "tt",
	        project_id, trace_id);

	while (parts && st == TW_OK && n < PARTS_MAX && tw_cat_row(&q))
		if (tw_row_read(&q, 0, &fields_of_part, a, &parts[n++]) < 0)
			st = tw_oom(err);
	if (!parts)
		st = tw_oom(err);
	*ret = parts;
	*ret_n = n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_trace_parts(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_part **ret, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = get_parts(db, project_id, trace_id, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_part_found(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_part *part, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st == TW_OK)
		st = tw_cat_lock(w, TW_SUBJECT_CONTENT, part->sha256, false, err);
	if (st == TW_OK)
		st = tw_cat_change(w, "no such trace", err,
		        "INSERT INTO part(project_id,trace_id,part,sha256,format,bytes,found)"
		        " SELECT project_id,trace_id,?3,?4,?5,?6,1 FROM trace WHERE"
		        " project_id=?1 AND trace_id=?2 ON CONFLICT(project_id,trace_id,part) DO"
		        " UPDATE SET sha256=CASE WHEN part.found<>0 THEN excluded.sha256 ELSE"
		        " part.sha256 END, bytes=CASE WHEN part.found<>0 THEN excluded.bytes"
		        " ELSE part.bytes END",
		        "ttttti", project_id, trace_id, part->part, part->sha256, part->format,
		        (int64_t)part->bytes);
	return tw_cat_end(c, w, st, err);
}

/* --- deleting --- */

/* Records its properties and uploader: nothing else of a deleted trace remains. */
static enum tw_status audit_delete(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* primary key */
	        &q, db, err,
	        "SELECT app, scenario, device, key_id, CAST(created_ms AS TEXT) FROM trace"
	        " WHERE project_id=? AND trace_id=?" TW_CAT_FOR_UPDATE,
	        "tt", project_id, trace_id);
	const char *was[5] = {NULL};

	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q)) {
		for (int i = 0; i < 5; i++)
			was[i] = tw_cat_str(&q, i);
		st = tw_cat_audit(db,
		        &(struct tw_change){"trace.delete", project_id, trace_id,
		                .facts = {{"app", was[0]}, {"scenario", was[1]}, {"device", was[2]},
		                        {"sent_by", was[3]}, {"created_ms", was[4]}}},
		        err);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status delete_rows(struct tw_db *db, const char *project_id, const char *trace_id,
        bool erase, unsigned *ret_small, struct tw_err *err)
{
	/* locks in the same order as the end of a job: the job, its trace */
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "DELETE FROM job WHERE project_id=? AND trace_id=?", "tt", project_id, trace_id);

	if (st == TW_OK)
		st = tw_cat_small_drop(db, trace_id, TW_CAT_SMALL_ALL, ret_small, err);
	/* its rows in another engine must be erased */
	if (st == TW_OK && erase)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "INSERT INTO fleet_erase(project_id,trace_id,day)"
		        " SELECT project_id, trace_id, recorded_ms/?3 FROM trace WHERE "
		        "project_id=?1"
		        " AND trace_id=?2 AND EXISTS(SELECT 1 FROM fleet_engine)"
		        " ON CONFLICT DO NOTHING",
		        "tti", project_id, trace_id, (int64_t)TW_DAY_MS);
	if (st == TW_OK)
		st = audit_delete(db, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_cat_clear_names(db, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        TW_EITHER("UPDATE build SET traces=traces-1 WHERE project_id=?1 AND"
		                  " traces>0 AND build_id=(SELECT build_id FROM trace WHERE"
		                  " project_id=?1 AND trace_id=?2)",
		                "INSERT INTO count_delta(project_id,counter,name,day,trace_id,"
		                "traces,devices) SELECT project_id,0,build_id,0,trace_id,-1,0 FROM"
		                " trace WHERE project_id=?1 AND trace_id=?2 AND build_id<>''"),
		        "tt", project_id, trace_id);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* finding_by_trace */
		        "DELETE FROM finding WHERE project_id=? AND trace_id=?", "tt", project_id,
		        trace_id);
	if (st == TW_OK)
		st = tw_cat_change(db, "no such trace", err,
		        "DELETE FROM trace WHERE project_id=? AND trace_id=?", "tt", project_id,
		        trace_id);
	return st;
}

/* Adds the contents of its parts that are files to `contents`. */
static enum tw_status delete_trace(struct tw_db *w, const char *project_id, const char *trace_id,
        bool erase, struct tw_arena *a, const char **contents, size_t *io_n, struct tw_err *err)
{
	struct tw_part *parts = NULL;
	size_t n = 0;
	unsigned small = 0;
	enum tw_status st = get_parts(w, project_id, trace_id, a, &parts, &n, err);

	if (st == TW_OK)
		st = delete_rows(w, project_id, trace_id, erase, &small, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (parts[i].found || !(small & TW_CAT_SMALL_UPLOAD))
			contents[(*io_n)++] = parts[i].sha256;
	if (st == TW_OK && !(small & TW_CAT_SMALL_UPLOAD))
		st = tw_cat_record_drop(w, trace_id, err);
	if (st == TW_OK && !(small & TW_CAT_SMALL_DECODED))
		st = tw_cat_trace_drop(w, trace_id, err);
	return st;
}

static enum tw_status delete_one(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, bool erase, struct tw_arena *a, struct tw_blob_list *ret,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	const char *contents[PARTS_MAX];
	size_t n = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = delete_trace(w, project_id, trace_id, erase, a, contents, &n, err);
	if (st == TW_OK)
		st = tw_cat_unused_blobs(w, contents, n, a, &ret->sha256, &ret->n, err);
	return tw_cat_end(c, w, st, err); /* the audit entry is written with the rows */
}

enum tw_status tw_catalogue_traces_delete(struct tw_catalogue *c, const char *project_id,
        const char *const *trace_ids, size_t n, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	const char **contents = tw_arena_alloc(a, n * PARTS_MAX + 1, sizeof *contents);
	size_t n_contents = 0;
	enum tw_status st;

	if (!contents)
		return tw_oom(err);
	st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);
	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < n; i++) { /* in the order of ids, as locks are */
		st = tw_cat_lock(w, TW_SUBJECT_TRACE, trace_ids[i], true, err);
		if (st == TW_OK)
			st = delete_trace(
			        w, project_id, trace_ids[i], false, a, contents, &n_contents, err);
		if (st == TW_NOT_FOUND)
			st = TW_OK;
	}
	if (st == TW_OK)
		st = tw_cat_unused_blobs(
		        w, contents, n_contents, a, &ret_unused->sha256, &ret_unused->n, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_trace_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	return delete_one(c, project_id, trace_id, false, a, ret_unused, err);
}

enum tw_status tw_catalogue_trace_erase(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_blob_list *ret_unused,
        struct tw_err *err)
{
	return delete_one(c, project_id, trace_id, true, a, ret_unused, err);
}
