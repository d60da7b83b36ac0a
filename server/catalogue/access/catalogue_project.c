/*
 * catalogue_project.c - projects.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"

#include <string.h>

#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/db/catalogue_sqlite.h"

/* project_by_name */
#define PROJECT_BY_NAME "SELECT project_id FROM project WHERE name=? AND deleted_ms=0"

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
	st = tw_cat_begin(c, TW_ALONE_ACCESS, "", &w, err);
	if (st == TW_OK)
		st = tw_cat_get_text(w, id, sizeof id, err, PROJECT_BY_NAME, "t", name);
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
	enum tw_status st =
	        tw_cat_read_text(c, ret_id, TW_ID_BYTES, err, PROJECT_BY_NAME, "t", name);

	return st == TW_OK && !ret_id[0] ? tw_fail(err, TW_NOT_FOUND, "no such project") : st;
}

enum tw_status tw_catalogue_project_of_trace(
        struct tw_catalogue *c, const char *trace_id, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	return tw_cat_read_text(c, ret_id, TW_ID_BYTES, err, /* trace_by_id */
	        "SELECT project_id FROM trace WHERE trace_id=?", "t", trace_id);
}

#define PROJECT(member, column) TW_FIELD(struct tw_project_row, member, column, NULL)
static const struct tw_fields project_fields = TW_FIELDS_OF(
        PROJECT(id, "project_id"), PROJECT(name, "name"), PROJECT(created_ms, "created_ms"));

static enum tw_status count_projects(struct tw_catalogue *c, size_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, "SELECT count(*) FROM project", "");

	*ret = (size_t)n;
	return st;
}

enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	size_t n = 0;
	enum tw_status st = count_projects(c, &n, err);

	if (st != TW_OK)
		return st;
	return tw_cat_list(c, TW_CAT_LIST(a, n, &project_fields, ret, ret_n), err,
	        "SELECT {columns} FROM project WHERE deleted_ms=0 ORDER BY project_id", "");
}

enum tw_status tw_catalogue_user_projects(struct tw_catalogue *c, const char *user_id,
        struct tw_arena *a, struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	size_t n = 0;
	enum tw_status st = count_projects(c, &n, err); /* at least as many */

	if (st != TW_OK)
		return st;
	return tw_cat_list(c, TW_CAT_LIST(a, n, &project_fields, ret, ret_n),
	        err, /* primary keys */
	        "SELECT {columns} FROM project WHERE project_id IN (SELECT project_id FROM member"
	        " WHERE user_id=?) ORDER BY project_id",
	        "t", user_id);
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

enum tw_status tw_catalogue_is_strange(
        struct tw_catalogue *c, const char *path, bool *ret, struct tw_err *err)
{
	struct tw_db *other;
	size_t n = 0, known = 0;
	enum tw_status st = tw_db_sqlite_open(path, TW_DB_LOOK, &other, NULL, err);

	if (st != TW_OK)
		return st;
	st = compare_projects(c, other, &n, &known, err);
	tw_db_close(other);
	*ret = n > 0 && known == 0;
	return st;
}
