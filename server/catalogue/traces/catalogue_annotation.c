/*
 * catalogue_annotation.c - annotations of traces, at a time or on a method.
 *
 * The trace's row counts its annotations, so that the limit and the list of traces need not read
 * them.
 */
#include "server/catalogue/catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "server/base/ulid.h"

/* Also fails if the trace does not exist. */
static enum tw_status count_one_more(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	int64_t have = -1;
	enum tw_status st = tw_cat_first_int(/* primary key */
	        db, &have, err, "SELECT annotations FROM trace WHERE project_id=? AND trace_id=?",
	        "tt", project_id, trace_id);

	if (st == TW_OK && have < 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	if (st == TW_OK && have >= TW_ANNOTATIONS_MAX)
		st = tw_fail(err, TW_CONFLICT,
		        "a trace has at most %d annotations; delete one that is done with",
		        TW_ANNOTATIONS_MAX);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE trace SET annotations=annotations+1 WHERE project_id=? AND "
		        "trace_id=?",
		        "tt", project_id, trace_id);
	return st;
}

enum tw_status tw_catalogue_annotation_add(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_annotation *a, char ret_id[TW_ID_BYTES],
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t now = tw_unix_ms();
	char id[TW_ID_BYTES];
	enum tw_status st = tw_ulid_new(now, id, err);

	if (st == TW_OK)
		st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);
	if (st != TW_OK)
		return st;
	st = count_one_more(w, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO annotation(project_id,trace_id,annotation_id,author,text,"
		        "created_ms,ts_ns,dur_ns,tid,method_index,method_key)"
		        " VALUES(?,?,?,?,?,?,?,?,?,?,?)",
		        "tttttiiiiit", project_id, trace_id, id, a->author, a->text, now, a->ts_ns,
		        a->dur_ns, a->tid, a->method_index, a->method_key);
	st = tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "annotation.create", project_id, trace_id, .facts = {{"annotation", id}}},
	        err);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

static bool read_row(const struct tw_cat_query *q, struct tw_arena *arena, struct tw_annotation *a)
{
	*a = (struct tw_annotation){
	        .id = tw_cat_text(q, 0, arena),
	        .author = tw_cat_text(q, 1, arena),
	        .text = tw_cat_text(q, 2, arena),
	        .created_ms = tw_cat_int(q, 3),
	        .edited_ms = tw_cat_int(q, 4),
	        .ts_ns = tw_cat_int(q, 5),
	        .dur_ns = tw_cat_int(q, 6),
	        .tid = tw_cat_int(q, 7),
	        .method_index = tw_cat_int(q, 8),
	        .method_key = tw_cat_text(q, 9, arena),
	};
	return a->id && a->author && a->text && a->method_key;
}

static enum tw_status read_all(struct tw_db *db, const char *project_id, const char *trace_id,
        struct tw_arena *arena, struct tw_annotation *rows, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	size_t n = 0;
	enum tw_status st = tw_cat_query(/* primary key */
	        &q, db, err,
	        "SELECT annotation_id,author,text,created_ms,edited_ms,ts_ns,dur_ns,tid,"
	        "method_index,method_key FROM annotation WHERE project_id=? AND trace_id=?"
	        " ORDER BY annotation_id",
	        "tt", project_id, trace_id);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && n < TW_ANNOTATIONS_MAX && tw_cat_row(&q))
		st = read_row(&q, arena, &rows[n++]) ? TW_OK : tw_oom(err);
	*ret_n = n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_annotations(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *arena, struct tw_annotation **ret, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_annotation *rows = tw_arena_alloc(arena, TW_ANNOTATIONS_MAX, sizeof *rows);
	struct tw_db *db;
	enum tw_status st;

	if (!rows)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = read_all(db, project_id, trace_id, arena, rows, ret_n, err);
	tw_cat_done(c, db);
	*ret = rows;
	return st;
}

static enum tw_status must_have_changed(enum tw_status st, int changed, struct tw_err *err)
{
	if (st == TW_OK && changed == 0)
		return tw_fail(err, TW_NOT_FOUND, "no such annotation");
	return st;
}

enum tw_status tw_catalogue_annotation_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, const char *text, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, &changed, err,
	        "UPDATE annotation SET text=?, edited_ms=?"
	        " WHERE project_id=? AND trace_id=? AND annotation_id=?",
	        "tittt", text, tw_unix_ms(), project_id, trace_id, id);
	return tw_cat_end_audited(c, w, must_have_changed(st, changed, err),
	        &(struct tw_change){
	                "annotation.edit", project_id, trace_id, .facts = {{"annotation", id}}},
	        err);
}

enum tw_status tw_catalogue_annotation_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(w, &changed, err,
	        "DELETE FROM annotation WHERE project_id=? AND trace_id=? AND annotation_id=?",
	        "ttt", project_id, trace_id, id);
	st = must_have_changed(st, changed, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET annotations=annotations-1"
		        " WHERE project_id=? AND trace_id=?",
		        "tt", project_id, trace_id);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "annotation.delete", project_id, trace_id, .facts = {{"annotation", id}}},
	        err);
}
