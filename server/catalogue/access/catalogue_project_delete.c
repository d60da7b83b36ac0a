/*
 * catalogue_project_delete.c - the end of a project: immediate for its keys and its people, in the
 * background for its data, and last its row.
 */
#include <stdio.h>
#include <string.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_tables.h"

enum { SQL_BYTES = 1024, ROWS_AT_ONCE = 1000 };
#define DELIVERIES "outbox WHERE project_id=? ORDER BY hook_id,delivery_id LIMIT 1000"

enum tw_status tw_catalogue_project_delete(
        struct tw_catalogue *c, const char *name, struct tw_err *err)
{
	/* sessions of its keys are deleted by their foreign key */
	static const char *const access[] = {"DELETE FROM api_key WHERE project_id=?",
	        "DELETE FROM member WHERE project_id=?", "DELETE FROM webhook WHERE project_id=?"};
	struct tw_db *w = NULL;
	char id[TW_ID_BYTES] = "";
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_project_named(w, name, id, err);
	if (st == TW_OK && !id[0])
		st = tw_fail(err, TW_NOT_FOUND, "no such project");
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, "UPDATE project SET deleted_ms=? WHERE project_id=?",
		        "it", tw_unix_ms(), id);
	for (size_t i = 0; st == TW_OK && i < sizeof access / sizeof *access; i++)
		st = tw_cat_exec(w, NULL, err, access[i], "t", id);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"project.delete", "", name, .facts = {{"id", id}}}, err);
}

enum tw_status tw_catalogue_project_exists(
        struct tw_catalogue *c, const char *project_id, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* primary key */
	        "SELECT 1 FROM project WHERE project_id=? AND deleted_ms=0", "t", project_id);

	*ret = n != 0;
	return st;
}

enum tw_status tw_catalogue_project_deleted(
        struct tw_catalogue *c, const char *after, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	return tw_cat_read_text(c, ret_id, TW_ID_BYTES, err, /* primary key */
	        "SELECT min(project_id) FROM project WHERE deleted_ms<>0 AND project_id>?", "t",
	        after);
}

enum tw_status tw_catalogue_project_ids(struct tw_catalogue *c, const char *project_id,
        enum tw_project_part part, uint32_t limit, struct tw_arena *a, const char ***ret,
        size_t *ret_n, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        [TW_PROJECT_TRACES] =
	                "SELECT trace_id FROM trace WHERE project_id=? ORDER BY trace_id LIMIT ?",
	        [TW_PROJECT_BUILDS] =
	                "SELECT build_id FROM build WHERE project_id=? ORDER BY build_id LIMIT ?"};

	return tw_cat_list(c, TW_CAT_LIST(a, limit, &tw_text_fields, ret, ret_n), err, sql[part],
	        "ti", project_id, (int64_t)limit);
}

/* Traces and builds are deleted with their files, their own rows by foreign keys; deliveries with
 * their attempts, and resumable uploads with their pieces. */
static bool is_deleted_apart(const struct tw_table *t)
{
	static const char *const names[] = {"project", "audit", "trace", "part", "small_file",
	        "build", "mapping_job", "outbox", "resumable", "resumable_piece"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(t->name, names[i]) == 0)
			return true;
	return false;
}

static bool is_of_projects(const struct tw_table *t)
{
	for (unsigned i = 0; i < t->n; i++)
		if (strcmp(t->columns[i].name, "project_id") == 0)
			return true;
	return false;
}

static void put_key(const struct tw_table *t, char out[SQL_BYTES])
{
	size_t n = 0;

	for (unsigned i = 0; i < t->n_key; i++)
		n += (size_t)snprintf(
		        out + n, SQL_BYTES - n, "%s%s", i ? "," : "", t->columns[i].name);
}

static enum tw_status delete_rows(struct tw_db *w, const struct tw_table *t, const char *project_id,
        int *ret, struct tw_err *err)
{
	char key[SQL_BYTES], sql[4 * SQL_BYTES];

	put_key(t, key);
	(void)snprintf(sql, sizeof sql,
	        "DELETE FROM %s WHERE " TW_CAT_SOME("%s", "%s WHERE project_id=?1 LIMIT %u"),
	        t->name, key, key, t->name, t->page, t->name, t->page);
	return tw_cat_exec(w, ret, err, sql, "t", project_id);
}

enum tw_status tw_catalogue_project_rows_delete(
        struct tw_catalogue *c, const char *project_id, bool *ret_any, struct tw_err *err)
{
	static const char *const outbox[] = {/* outbox_by_hook */
	        "DELETE FROM outbox_attempt WHERE delivery_id" TW_EITHER(" IN (",
	                "=ANY(ARRAY(") "SELECT delivery_id FROM " DELIVERIES TW_EITHER(")", "))"),
	        "DELETE FROM outbox WHERE " TW_CAT_SOME("delivery_id", DELIVERIES)};
	struct tw_db *w = NULL;
	int64_t n = 0;
	int deleted = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	/* attempts do not name their project, and go with their deliveries */
	for (size_t i = 0; st == TW_OK && i < sizeof outbox / sizeof *outbox; i++) {
		st = tw_cat_exec(w, &deleted, err, outbox[i], "t", project_id);
		n += deleted;
	}
	/* rows that refer to others come after these; uploads wait for the transaction, so the rest
	 * of the tables follows in the next one */
	for (unsigned i = tw_tables_all_n; st == TW_OK && n < ROWS_AT_ONCE && i-- > 0;) {
		deleted = 0;
		if (is_of_projects(&tw_tables[i]) && !is_deleted_apart(&tw_tables[i]))
			st = delete_rows(w, &tw_tables[i], project_id, &deleted, err);
		n += deleted;
	}
	/* their pieces are deleted as those of cancelled uploads */
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "UPDATE resumable SET state=2 WHERE project_id=? AND state<>2", "t",
		        project_id);
	st = tw_cat_end(c, w, st, err);
	*ret_any = st == TW_OK && n > 0;
	return st;
}

enum tw_status tw_catalogue_project_forget(
        struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_ACCESS, ""}, err,
	        "DELETE FROM project WHERE project_id=?1 AND deleted_ms<>0 AND NOT EXISTS(SELECT 1"
	        " FROM trace WHERE project_id=?1) AND NOT EXISTS(SELECT 1 FROM build WHERE"
	        " project_id=?1)",
	        "t", project_id);
}
