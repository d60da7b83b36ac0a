/*
 * catalogue_annotation.c - annotations of traces, at a time or on a method.
 *
 * The trace's row counts its annotations, so that the limit and the list of traces need not read
 * them.
 */
#include "server/catalogue/traces/catalogue_annotation.h"

#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue_internal.h"

#define ROW(member, column, json, ...)                                                             \
	TW_FIELD(struct tw_annotation, member, column, json, __VA_ARGS__)
static const struct tw_field row_fields[] = {
        ROW(id, "annotation_id", "id"),
        ROW(author, "author", "author"),
        ROW(text, "text", "text"),
        ROW(created_ms, "created_ms", "created_ms"),
        ROW(edited_ms, "edited_ms", "updated_ms"),
        ROW(ts_ns, "ts_ns", "ts_ns", .shape = TW_SHAPE_OR_NULL),
        ROW(dur_ns, "dur_ns", "dur_ns"),
        ROW(tid, "tid", "tid", .shape = TW_SHAPE_OR_NULL),
        ROW(method_index, "method_index", NULL),
        ROW(method_key, "method_key", NULL),
};
const struct tw_fields tw_annotation_fields = TW_FIELDS(row_fields);

/* Also fails if the trace does not exist. */
static enum tw_status count_one_more(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	int64_t have = -1;
	enum tw_status st = tw_cat_get_int(/* primary key */
	        db, &have, err, "SELECT annotations FROM trace WHERE project_id=? AND trace_id=?",
	        "tt", project_id, trace_id);

	if (st == TW_OK && have < 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	if (st == TW_OK && have >= TW_ANNOTATIONS_MAX)
		st = tw_fail(err, TW_CONFLICT,
		        "a trace has at most %d annotations; delete one first", TW_ANNOTATIONS_MAX);
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
	struct tw_annotation made = *a;
	char id[TW_ID_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	tw_ulid_new(now, id);
	made.id = id;
	made.created_ms = now;
	made.edited_ms = 0;
	st = count_one_more(w, project_id, trace_id, err);
	if (st == TW_OK)
		st = tw_cat_write(w, &(struct tw_cat_written){&tw_annotation_fields, &made, NULL},
		        err,
		        "INSERT INTO annotation(project_id,trace_id,{columns})"
		        " VALUES(?1,?2,{values})",
		        "tt", project_id, trace_id);
	st = tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "annotation.create", project_id, trace_id, .facts = {{"annotation", id}}},
	        err);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

enum tw_status tw_catalogue_annotations(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *arena, struct tw_annotation **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c,
	        TW_CAT_LIST(arena, TW_ANNOTATIONS_MAX, &tw_annotation_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM annotation"
	        " WHERE project_id=? AND trace_id=? ORDER BY annotation_id",
	        "tt", project_id, trace_id);
}

static const char no_annotation[] = "no such annotation";

enum tw_status tw_catalogue_annotation_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, const char *text, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_TRACE, trace_id, .missing = no_annotation,
	                .change = &(struct tw_change){"annotation.edit", project_id, trace_id,
	                        .facts = {{"annotation", id}}}},
	        err,
	        "UPDATE annotation SET text=?, edited_ms=?"
	        " WHERE project_id=? AND trace_id=? AND annotation_id=?",
	        "tittt", text, tw_unix_ms(), project_id, trace_id, id);
}

enum tw_status tw_catalogue_annotation_delete(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const char *id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st == TW_OK)
		st = tw_cat_change(w, no_annotation, err,
		        "DELETE FROM annotation WHERE project_id=? AND trace_id=? AND "
		        "annotation_id=?",
		        "ttt", project_id, trace_id, id);
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

/* --- title, pin and tags --- */

#define ADD_TAG                                                                                    \
	"INSERT INTO trace_tag(project_id,trace_id,tag) VALUES(?,?,?) ON CONFLICT DO NOTHING"
#define REMOVE_TAG "DELETE FROM trace_tag WHERE project_id=? AND trace_id=? AND tag=?"

static enum tw_status each_tag(struct tw_db *db, const char *sql, const char *project_id,
        const char *id, const struct tw_tag_list *list, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < list->n; i++)
		st = tw_cat_exec(db, NULL, err, sql, "ttt", project_id, id, list->tags[i]);
	return st;
}

static enum tw_status count_tags(
        struct tw_db *db, const char *project_id, const char *id, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT count(*) FROM trace_tag WHERE project_id=? AND trace_id=?", "tt",
	        project_id, id);

	if (st == TW_OK && n > TW_TAGS_MAX)
		st = tw_fail(err, TW_CONFLICT, "a trace has at most %d tags", TW_TAGS_MAX);
	return st;
}

static enum tw_status edit_tags(struct tw_db *db, const char *project_id, const char *id,
        const struct tw_trace_edit *m, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (m->sets_tags)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM trace_tag WHERE project_id=? AND trace_id=?", "tt", project_id,
		        id);
	if (st == TW_OK)
		st = each_tag(db, ADD_TAG, project_id, id, &m->tags, err);
	if (st == TW_OK)
		st = each_tag(db, ADD_TAG, project_id, id, &m->add_tags, err);
	if (st == TW_OK)
		st = each_tag(db, REMOVE_TAG, project_id, id, &m->remove_tags, err);
	return st == TW_OK && m->add_tags.n > 0 ? count_tags(db, project_id, id, err) : st;
}

static enum tw_status must_exist(
        struct tw_db *db, const char *project_id, const char *id, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(/* primary key */
	        db, &there, err, "SELECT 1 FROM trace WHERE project_id=? AND trace_id=?", "tt",
	        project_id, id);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace");
	return st;
}

enum { TAGS_BYTES = TW_TAGS_MAX * (TW_TAG_BYTES + 1) + 1 };

/* Separated by commas, which tags do not contain. */
static const char *join_tags(const struct tw_tag_list *list, char out[TAGS_BYTES])
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->n && len < TAGS_BYTES; i++)
		len += (size_t)snprintf(
		        out + len, TAGS_BYTES - len, "%s%s", i ? "," : "", list->tags[i]);
	return out;
}

enum tw_status tw_catalogue_trace_edit(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_trace_edit *m, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char tags[TAGS_BYTES], added[TAGS_BYTES], removed[TAGS_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = must_exist(w, project_id, trace_id, err);
	if (st == TW_OK && m->title)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET title=? WHERE project_id=? AND trace_id=?", "ttt",
		        m->title, project_id, trace_id);
	if (st == TW_OK && m->sets_pinned)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET pinned=? WHERE project_id=? AND trace_id=?", "itt",
		        (int64_t)m->pinned, project_id, trace_id);
	if (st == TW_OK)
		st = edit_tags(w, project_id, trace_id, m, err);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"trace.edit", project_id, trace_id,
	                .facts = {{"title", m->title},
	                        {"pinned", !m->sets_pinned ? NULL
	                                   : m->pinned     ? "true"
	                                                   : "false"},
	                        {"tags", m->sets_tags ? join_tags(&m->tags, tags) : NULL},
	                        {"add_tags", m->add_tags.n ? join_tags(&m->add_tags, added) : NULL},
	                        {"remove_tags", m->remove_tags.n
	                                                ? join_tags(&m->remove_tags, removed)
	                                                : NULL}}},
	        err);
}
