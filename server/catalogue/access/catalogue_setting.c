/* catalogue_setting.c - settings of a project. */
#include "server/base/secret.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue_internal.h"

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
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	/* two changes within a millisecond get different times */
	st = tw_cat_exec(w, NULL, err,
	        "INSERT INTO project_setting(project_id,key,value,updated_ms) VALUES(?,?,?,?)"
	        " ON CONFLICT(project_id,key) DO UPDATE SET value=excluded.value,"
	        " updated_ms=max(excluded.updated_ms, project_setting.updated_ms+1)",
	        "ttti", project_id, key, value, tw_unix_ms());
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"setting.set", project_id, key,
	                .facts = {{"value", tw_secret_is_encrypted(value) ? NULL : value}}},
	        err);
}
