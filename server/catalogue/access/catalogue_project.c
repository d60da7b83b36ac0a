/*
 * catalogue_project.c - projects.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/catalogue_files.h"

#include <stdio.h>
#include <string.h>

#include "server/base/secret.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/db/catalogue_sqlite.h"

static enum tw_status find_project(
        struct tw_db *db, const char *name, char ret_id[TW_ID_BYTES], bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* unique index of name */
	        &q, db, err, "SELECT project_id FROM project WHERE name=?", "t", name);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q);
	if (*ret)
		(void)snprintf(ret_id, TW_ID_BYTES, "%s", tw_cat_str(&q, 0));
	return tw_cat_close(&q, err);
}

enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = tw_unix_ms();
	char id[TW_ID_BYTES];
	bool found = false;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = find_project(w, name, id, &found, err);
	if (st == TW_OK && !found)
		st = tw_ulid_new(now, id, err);
	if (st == TW_OK && !found)
		st = tw_cat_exec(
		        w, NULL, err, "INSERT INTO project VALUES(?,?,?)", "tti", id, name, now);
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
	bool found = false;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = find_project(db, name, ret_id, &found, err);
	tw_cat_done(c, db);
	return st == TW_OK && !found ? tw_fail(err, TW_NOT_FOUND, "no such project") : st;
}

enum tw_status tw_catalogue_project_of_trace(
        struct tw_catalogue *c, const char *trace_id, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	ret_id[0] = '\0';
	st = tw_cat_query(/* trace_by_id */
	        &q, db, err, "SELECT project_id FROM trace WHERE trace_id=?", "t", trace_id);
	if (st == TW_OK && tw_cat_row(&q))
		(void)snprintf(ret_id, TW_ID_BYTES, "%s", tw_cat_str(&q, 0));
	if (st == TW_OK)
		st = tw_cat_close(&q, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status count_projects(struct tw_db *db, size_t *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, "SELECT count(*) FROM project", "");

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (size_t)tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static enum tw_status read_projects(struct tw_db *db, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_project_row *rows;
	size_t n = 0;
	size_t cap = 0;
	enum tw_status st = count_projects(db, &cap, err);

	if (st != TW_OK)
		return st;
	rows = tw_arena_alloc(a, cap, sizeof *rows);
	if (!rows)
		return tw_oom(err);
	st = tw_cat_query(&q, db, err,
	        "SELECT project_id, name, created_ms FROM project ORDER BY project_id", "");
	while (n < cap && tw_cat_row(&q)) {
		rows[n] = (struct tw_project_row){
		        tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a), tw_cat_int(&q, 2)};
		if (!rows[n].id || !rows[n].name)
			st = tw_oom(err);
		n++;
	}
	*ret = rows;
	*ret_n = n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = read_projects(db, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

/* *ret_n: their number, *ret_known: how many of them c has too. */
static enum tw_status compare_projects(struct tw_catalogue *c, struct tw_db *other, size_t *ret_n,
        size_t *ret_known, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, other, err, "SELECT project_id FROM project", "");

	while (st == TW_OK && tw_cat_row(&q)) {
		int64_t n = 0;

		st = tw_cat_first_int(c->writers[0].db, &n, err,
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

/* --- settings of a project --- */

enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	*ret = NULL;
	*ret_updated_ms = 0;
	st = tw_cat_query(/* primary key */
	        &q, db, err,
	        "SELECT value, updated_ms FROM project_setting WHERE project_id=? AND key=?", "tt",
	        project_id, key);
	if (st == TW_OK) {
		if (tw_cat_row(&q)) {
			*ret = tw_cat_text(&q, 0, a);
			*ret_updated_ms = tw_cat_int(&q, 1);
		}
		st = tw_cat_close(&q, err);
	}
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err)
{
	/* two changes within a millisecond get different times */
	return tw_cat_run(c,
	        &(struct tw_cat_alone){TW_ALONE_ACCESS, "",
	                .change = &(struct tw_change){"setting.set", project_id, key,
	                        .facts = {{"value",
	                                tw_secret_is_encrypted(value) ? NULL : value}}}},
	        err,
	        "INSERT INTO project_setting(project_id,key,value,updated_ms) VALUES(?,?,?,?)"
	        " ON CONFLICT(project_id,key) DO UPDATE SET value=excluded.value,"
	        " updated_ms=max(excluded.updated_ms, project_setting.updated_ms+1)",
	        "ttti", project_id, key, value, tw_unix_ms());
}
