/* catalogue_setting.c - settings of a project. */
#include "server/catalogue/access/catalogue_setting.h"

#include <stdatomic.h>

#include "decoder/base/hash.h"
#include "server/base/log.h"
#include "server/base/secret.h"
#include "server/catalogue/catalogue_internal.h"

#define ARENA_MAX ((size_t)64 << 20)

struct setting {
	const char *value;
	int64_t updated_ms;
};

static const struct tw_fields setting_fields =
        TW_FIELDS_OF(TW_FIELD(struct setting, value, "value", NULL),
                TW_FIELD(struct setting, updated_ms, "updated_ms", NULL));

enum tw_status tw_catalogue_setting_get(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, const char **ret, int64_t *ret_updated_ms,
        struct tw_err *err)
{
	struct setting s = {NULL, 0};
	enum tw_status st = tw_cat_read_row(c, &setting_fields, a, &s, NULL, err, /* primary key */
	        "SELECT {columns} FROM project_setting WHERE project_id=? AND key=?", "tt",
	        project_id, key);

	*ret = s.value;
	*ret_updated_ms = s.updated_ms;
	return st;
}

enum tw_status tw_catalogue_setting_set(struct tw_catalogue *c, const char *project_id,
        const char *key, const char *value, struct tw_err *err)
{
	/* two changes within a millisecond get different times */
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_ACCESS, "",
	                .change = &(struct tw_change){"setting.set", project_id, key,
	                        .facts = {{"value",
	                                tw_secret_is_encrypted(value) ? NULL : value}}}},
	        err,
	        "INSERT INTO project_setting(project_id,key,value,updated_ms) VALUES(?,?,?,?)"
	        " ON CONFLICT(project_id,key) DO UPDATE SET value=excluded.value,"
	        " updated_ms=max(excluded.updated_ms, project_setting.updated_ms+1)",
	        "ttti", project_id, key, value, tw_unix_ms());
}

/* --- documents --- */

enum tw_status tw_setting_parse(
        const char *text, tw_setting_check *check, json_t **ret, struct tw_err *err)
{
	json_error_t why;
	json_t *doc = json_loads(text, 0, &why);
	enum tw_status st;

	if (!doc && json_error_code(&why) == json_error_out_of_memory)
		return tw_oom(err);
	if (!doc)
		return tw_fail(err, TW_BAD_REQUEST, "it is not JSON: %s", why.text);
	st = check(doc, err);
	if (st == TW_OK)
		*ret = doc;
	else
		json_decref(doc);
	return st;
}

/* Whether this invalid text was not logged yet.  After LOGGED texts, further ones are not. */
static bool is_new(uint64_t text)
{
	enum { LOGGED = 64 };
	static _Atomic uint64_t logged[LOGGED];

	for (size_t i = 0; i < LOGGED; i++) {
		uint64_t at = 0;

		if (atomic_compare_exchange_strong(&logged[i], &at, text))
			return true;
		if (at == text)
			return false;
	}
	return false;
}

enum tw_status tw_setting_of_text(const char *project_id, const struct tw_setting *of,
        const char *text, json_t **ret, struct tw_err *err)
{
	struct tw_err why;
	uint64_t seed;
	enum tw_status st;

	*ret = NULL;
	if (!text)
		return TW_OK;
	st = tw_setting_parse(text, of->check, ret, &why);
	if (st == TW_OK)
		return TW_OK;
	if (st != TW_BAD_REQUEST) {
		tw_err_copy(err, &why);
		return st;
	}
	seed = tw_hash_str(tw_str_of(of->key), tw_hash_str(tw_str_of(project_id), 0));
	if (is_new(tw_hash_str(tw_str_of(text), seed) | 1))
		tw_log(TW_LOG_WARN, "setting_invalid", tw_log_text("project", project_id),
		        tw_log_text("setting", of->key), tw_log_text("reason", why.msg));
	return TW_OK;
}

enum tw_status tw_setting_load(struct tw_catalogue *c, const char *project_id,
        const struct tw_setting *of, json_t **ret, int64_t *ret_updated_ms, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_MAX);
	const char *text = NULL;
	enum tw_status st =
	        a ? tw_catalogue_setting_get(c, project_id, of->key, a, &text, ret_updated_ms, err)
	          : tw_oom(err);

	*ret = NULL;
	if (st == TW_OK)
		st = tw_setting_of_text(project_id, of, text, ret, err);
	tw_arena_free(a);
	return st;
}

/* --- all of them --- */

/* primary keys */
#define ALL(condition)                                                                             \
	"SELECT project.name, s.key, s.value FROM project, project_setting s WHERE"                \
	" s.project_id=project.project_id AND project.deleted_ms=0" condition " UNION ALL"         \
	" SELECT project.name, r.kind, r.value FROM project, ruleset r WHERE"                      \
	" r.project_id=project.project_id AND project.deleted_ms=0" condition " AND r.version="    \
	"(SELECT max(o.version) FROM ruleset o WHERE o.project_id=r.project_id AND"                \
	" o.kind=r.kind)"

static enum tw_status report_all(
        struct tw_cat_query *q, tw_setting_each *each, void *arg, struct tw_err *err)
{
	while (tw_cat_row(q))
		each(arg, tw_cat_str(q, 0), tw_cat_str(q, 1), tw_cat_str(q, 2));
	return tw_cat_close(q, err);
}

enum tw_status tw_catalogue_settings(struct tw_catalogue *c, const char *project_id,
        tw_setting_each *each, void *arg, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, ALL(" AND project.project_id=?1"), "t", project_id);
	if (st == TW_OK)
		st = report_all(&q, each, arg, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_read_settings(
        const char *path, tw_setting_each *each, void *arg, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db = NULL;
	enum tw_status st = tw_cat_inspect(path, &db, err);

	if (st == TW_OK)
		st = tw_cat_query(&q, db, err, ALL(""), "");
	if (st == TW_OK)
		st = report_all(&q, each, arg, err);
	tw_db_close(db);
	return st;
}
