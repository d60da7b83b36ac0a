/*
 * catalogue_project.c - projects.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"

#include <string.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/db/catalogue_sqlite.h"

enum tw_status tw_cat_project_named(
        struct tw_db *db, const char *name, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	return tw_cat_get_text(db, ret_id, TW_ID_BYTES, err, /* project_by_name */
	        "SELECT project_id FROM project WHERE name=? AND deleted_ms=0", "t", name);
}

enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = tw_unix_ms();
	char id[TW_ID_BYTES] = "";
	bool found;
	enum tw_status st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) /* no URL could name it */
		return tw_fail(err, TW_BAD_REQUEST, "a project cannot be named . or ..");
	st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);
	if (st == TW_OK)
		st = tw_cat_project_named(w, name, id, err);
	found = id[0] != '\0';
	if (!found)
		tw_ulid_new(now, id);
	if (st == TW_OK && !found)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO project(project_id,name,created_ms) VALUES(?,?,?)", "tti", id,
		        name, now);
	if (st == TW_OK && !found)
		st = tw_cat_audit(w, &(struct tw_change){"project.create", id, name}, err);
	st = tw_cat_end(c, w, st, err);
	if (st == TW_OK) {
		memcpy(ret_id, id, TW_ID_BYTES);
		*ret_new = !found;
	}
	return st;
}

enum tw_status tw_catalogue_project_named(
        struct tw_catalogue *c, const char *name, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = tw_cat_project_named(db, name, ret_id, err);
	tw_cat_done(c, db);
	return st == TW_OK && !ret_id[0] ? tw_fail(err, TW_NOT_FOUND, "no such project") : st;
}

enum tw_status tw_catalogue_project_of_trace(
        struct tw_catalogue *c, const char *trace_id, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	return tw_cat_read_text(c, ret_id, TW_ID_BYTES, err, /* trace_by_id */
	        "SELECT project_id FROM trace WHERE trace_id=?", "t", trace_id);
}

#define PROJECT(member, column, json) TW_FIELD(struct tw_project_row, member, column, json)
const struct tw_fields tw_project_fields = TW_FIELDS_OF(PROJECT(id, "project_id", "id"),
        PROJECT(name, "name", "name"), PROJECT(created_ms, "created_ms", "created_ms"));

enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_catalogue_projects_after(c, "", "", UINT32_MAX, a, ret, ret_n, err);
}

enum tw_status tw_catalogue_projects_after(struct tw_catalogue *c, const char *user_id,
        const char *after, uint32_t limit, struct tw_arena *a, struct tw_project_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	if (!user_id[0])
		return tw_cat_list(c, TW_CAT_LIST(a, limit, &tw_project_fields, ret, ret_n),
		        err, /* primary key */
		        "SELECT {columns} FROM project WHERE deleted_ms=0 AND project_id>?"
		        " ORDER BY project_id LIMIT ?",
		        "ti", after, (int64_t)limit);
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &tw_project_fields, ret, ret_n),
	        err, /* primary keys */
	        "SELECT {columns} FROM member m JOIN project USING (project_id)"
	        " WHERE m.user_id=? AND m.project_id>? AND deleted_ms=0 ORDER BY m.project_id"
	        " LIMIT ?",
	        "tti", user_id, after, (int64_t)limit);
}

enum tw_status tw_catalogue_project_get(struct tw_catalogue *c, const char *user_id,
        const char *project_id, struct tw_arena *a, struct tw_project_row *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &tw_project_fields, ret, "no such project"),
	        err, /* primary keys */
	        "SELECT {columns} FROM project WHERE project_id=?1 AND deleted_ms=0 AND (?2='' OR"
	        " EXISTS(SELECT 1 FROM member m WHERE m.user_id=?2 AND m.project_id=?1))",
	        "tt", project_id, user_id);
}

/* *ret_n: their number, *ret_known: how many of them c has too. */
static enum tw_status compare_projects(struct tw_catalogue *c, struct tw_db *other, size_t *ret_n,
        size_t *ret_known, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, other, err, "SELECT project_id FROM project", "");

	while (st == TW_OK && tw_cat_row(&q)) {
		int64_t n = 0;

		st = tw_cat_get_int(c->writers[0].db, &n, err,
		        "SELECT count(*) FROM project WHERE project_id=?", "t", tw_cat_str(&q, 0));
		*ret_known += n > 0;
		++*ret_n;
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_shares_no_project(
        struct tw_catalogue *c, const char *path, bool *ret, struct tw_err *err)
{
	struct tw_db *other;
	size_t n = 0, known = 0;
	enum tw_status st = tw_db_sqlite_open(path, TW_DB_READ_ONLY, &other, NULL, err);

	if (st != TW_OK)
		return st;
	st = compare_projects(c, other, &n, &known, err);
	tw_db_close(other);
	*ret = n > 0 && known == 0;
	return st;
}
