/* catalogue_trace.c - reads, lists and deletes traces; catalogue_commit_upload.c adds them. */
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue_row.h"

const char *const tw_trace_state_words[] = {
        "queued", "decoding", "ready", "failed", "archived", NULL};

enum { PARTS_MAX = TW_CATALOGUE_PARTS };

const char *tw_trace_state_word(enum tw_trace_state s)
{
	return (unsigned)s < TW_TRACE_STATES ? tw_trace_state_words[s] : "failed";
}

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_oom(err);
}

/* --- reading rows --- */

enum { COL_META = 8, COL_SUMMARY = 23, COL_ERROR = 35, COL_MARKS = 38 };

static bool read_meta(const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_meta *m)
{
	const char **texts[] = {&m->app, &m->version_name, &m->version_code, &m->build_id,
	        &m->mapping_id, &m->device, &m->os, &m->abi, &m->process, &m->scenario,
	        &m->session_id, &m->uuid, &m->labels};
	const int n = (int)(sizeof texts / sizeof *texts);

	for (int i = 0; i < n; i++) {
		*texts[i] = tw_cat_text(q, COL_META + i, a);
		if (!*texts[i])
			return false;
	}
	m->pid = (uint32_t)tw_cat_int(q, COL_META + n);
	m->started_ms = tw_cat_int(q, COL_META + n + 1);
	return true;
}

static bool read_summary(
        const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_summary *s)
{
	int at = COL_SUMMARY;

	s->format = tw_cat_text(q, at++, a);
	s->decoder_version = (uint32_t)tw_cat_int(q, at++);
	s->slices = (uint64_t)tw_cat_int(q, at++);
	s->threads = (uint32_t)tw_cat_int(q, at++);
	s->methods = (uint32_t)tw_cat_int(q, at++);
	s->max_depth = (uint32_t)tw_cat_int(q, at++);
	s->duration_ns = tw_cat_int(q, at++);
	s->input_bytes = (uint64_t)tw_cat_int(q, at++);
	s->decoded_bytes = (uint64_t)tw_cat_int(q, at++);
	s->file_bytes = (uint64_t)tw_cat_int(q, at++);
	s->losses = (uint32_t)tw_cat_int(q, at++);
	s->repairs = (uint32_t)tw_cat_int(q, at++);
	return s->format != NULL;
}

static bool read_marks(const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *r)
{
	r->title = tw_cat_text(q, COL_MARKS, a);
	r->pinned = tw_cat_int(q, COL_MARKS + 1) != 0;
	r->annotations = (uint32_t)tw_cat_int(q, COL_MARKS + 2);
	r->tags = tw_cat_text(q, COL_MARKS + 3, a);
	r->upload_kept = tw_cat_int(q, COL_MARKS + 4) != 0;
	r->kept_for = tw_cat_text(q, COL_MARKS + 5, a);
	r->anr = tw_cat_text(q, COL_MARKS + 6, a);
	r->first_anr = tw_cat_int(q, COL_MARKS + 7) != 0;
	r->counted = (enum tw_counted)tw_cat_int(q, COL_MARKS + 8);
	return r->title && r->tags && r->kept_for && r->anr;
}

bool tw_catalogue_read_row(const struct tw_cat_query *q, struct tw_arena *a, struct tw_trace_row *r)
{
	int64_t offset = tw_cat_int(q, COL_ERROR + 2);
	const char *word = tw_cat_text(q, COL_ERROR, a);
	const char *message = tw_cat_text(q, COL_ERROR + 1, a);

	*r = (struct tw_trace_row){
	        .id = tw_cat_text(q, 0, a),
	        .project_id = tw_cat_text(q, 1, a),
	        .key_id = tw_cat_text(q, 2, a),
	        .state = (enum tw_trace_state)tw_cat_int(q, 3),
	        .created_ms = tw_cat_int(q, 4),
	        .ready_ms = tw_cat_int(q, 5),
	        .tries = (uint32_t)tw_cat_int(q, 6),
	        .upload_bytes = (uint64_t)tw_cat_int(q, 7),
	};
	if (!r->id || !r->project_id || !r->key_id || !word || !message)
		return false;
	if (word[0]) {
		r->error.code = tw_status_of_word(word);
		r->error.offset = offset < 0 ? TW_NO_OFFSET : (uint64_t)offset;
		(void)snprintf(r->error.msg, sizeof r->error.msg, "%s", message);
	}
	return read_meta(q, a, &r->meta) && read_summary(q, a, &r->summary) && read_marks(q, a, r);
}

static enum tw_status get_trace(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_trace_row *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_trace_row row;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT " TW_TRACE_COLUMNS " FROM trace WHERE project_id=? AND trace_id=?", "tt",
	        project_id, trace_id);

	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q))
		st = tw_catalogue_read_row(&q, a, &row) ? TW_OK : no_memory(err);
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

	if (st != TW_OK)
		return st;
	st = get_trace(db, project_id, trace_id, a, ret, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status get_parts(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *a, struct tw_part **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_part *parts = tw_arena_alloc(a, PARTS_MAX, sizeof *parts);
	struct tw_cat_query q;
	size_t n = 0;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT part, sha256, format, bytes, found FROM part WHERE project_id=? AND "
	        "trace_id=?"
	        " ORDER BY part",
	        "tt", project_id, trace_id);

	if (st != TW_OK)
		return st;
	while (parts && n < PARTS_MAX && tw_cat_row(&q)) {
		parts[n] = (struct tw_part){tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a),
		        tw_cat_text(&q, 2, a), (uint64_t)tw_cat_int(&q, 3), tw_cat_int(&q, 4) != 0};
		if (!parts[n].part || !parts[n].sha256 || !parts[n].format)
			st = no_memory(err);
		n++;
	}
	if (!parts)
		st = no_memory(err);
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

	if (st != TW_OK)
		return st;
	st = get_parts(db, project_id, trace_id, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_part_found(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_part *part, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_lock(w, TW_ALONE_CONTENT, part->sha256, false, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err,
		        "INSERT INTO part(project_id,trace_id,part,sha256,format,bytes,found)"
		        " SELECT project_id,trace_id,?3,?4,?5,?6,1 FROM trace"
		        " WHERE project_id=?1 AND trace_id=?2 ON CONFLICT"
		        "(project_id,trace_id,part) DO UPDATE SET sha256=CASE WHEN part.found<>0 "
		        "THEN"
		        " excluded.sha256 ELSE part.sha256 END, bytes=CASE WHEN part.found<>0 THEN"
		        " excluded.bytes ELSE part.bytes END",
		        "ttttti", project_id, trace_id, part->part, part->sha256, part->format,
		        (int64_t)part->bytes);
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
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

static enum tw_status delete_rows(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	int changed = 0;
	/* in the order of those who end a job: it, its trace */
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "DELETE FROM job WHERE project_id=? AND trace_id=?", "tt", project_id, trace_id);

	if (st == TW_OK)
		st = audit_delete(db, project_id, trace_id, err);

	if (st == TW_OK)
		st = tw_cat_set_names(db, project_id, trace_id, NULL, err);
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
		st = tw_cat_exec(db, &changed, err,
		        "DELETE FROM trace WHERE project_id=? AND trace_id=?", "tt", project_id,
		        trace_id);
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	return st;
}

enum tw_status tw_catalogue_trace_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, const char ***ret_blobs, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	const char *contents[PARTS_MAX];
	struct tw_part *parts = NULL;
	size_t n = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = get_parts(w, project_id, trace_id, a, &parts, &n, err);
	if (st == TW_OK)
		st = delete_rows(w, project_id, trace_id, err);
	for (size_t i = 0; i < n; i++)
		contents[i] = parts[i].sha256;
	if (st == TW_OK)
		st = tw_cat_unused_blobs(w, contents, n, a, ret_blobs, ret_n, err);
	return tw_cat_end(c, w, st, err); /* the audit entry is written with the rows */
}
