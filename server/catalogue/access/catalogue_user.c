/*
 * catalogue_user.c - people and their roles in projects.
 */
#include "server/catalogue/access/catalogue_user.h"

#include <ctype.h>
#include <string.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue_internal.h"

enum tw_status tw_user_name(const char *given, char ret[TW_USER_NAME_BYTES], struct tw_err *err)
{
	size_t len = strlen(given);
	char name[TW_USER_NAME_BYTES];

	if (len == 0 || len >= sizeof name)
		return tw_fail(err, TW_BAD_REQUEST, "a user's name has 1 to %d characters",
		        TW_USER_NAME_BYTES - 1);
	for (size_t i = 0; i <= len; i++) {
		char c = given[i];

		name[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
		if (c && !(c > 0 && isalnum(c)) && !strchr("._-+@", c))
			return tw_fail_at(err, TW_BAD_REQUEST, i,
			        "a user's name is made of letters, digits and . _ - + @");
	}
	memcpy(ret, name, len + 1);
	return TW_OK;
}

static enum tw_status name_is_free(struct tw_db *db, const char *name, struct tw_err *err)
{
	int64_t taken = 0;
	enum tw_status st = tw_cat_get_int(/* unique index of name */
	        db, &taken, err, "SELECT 1 FROM \"user\" WHERE name=?", "t", name);

	if (st == TW_OK && taken)
		st = tw_fail(err, TW_CONFLICT, "user %s already exists", name);
	return st;
}

enum tw_status tw_cat_user_insert(struct tw_db *db, const char *name, const char *password,
        bool is_admin, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	int64_t now = tw_unix_ms();
	char id[TW_ID_BYTES];
	enum tw_status st = name_is_free(db, name, err);

	tw_ulid_new(now, id);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO \"user\"(user_id,name,password,is_admin,created_ms)"
		        " VALUES(?,?,?,?,?)",
		        "tttii", id, name, password, (int64_t)is_admin, now);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

enum tw_status tw_catalogue_user_add(struct tw_catalogue *c, const char *name, const char *password,
        bool is_admin, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_db *w = NULL;
	char id[TW_ID_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_user_insert(w, name, password, is_admin, id, err);
	st = tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"user.create", "", name,
	                .facts = {{"admin", is_admin ? "true" : "false"},
	                        {"password", password[0] ? "set" : "none"}}},
	        err);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

#define ACCOUNT(member) TW_FIELD(struct tw_user, member, #member, NULL)
static const struct tw_fields account_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_user, id, "user_id", NULL), ACCOUNT(name),
                ACCOUNT(password), ACCOUNT(is_admin), ACCOUNT(is_disabled));

enum tw_status tw_catalogue_user_get(
        struct tw_catalogue *c, const char *name, struct tw_user *ret, struct tw_err *err)
{
	bool found = false;
	enum tw_status st = tw_cat_read_row(c, &account_fields, NULL, ret, &found,
	        err, /* unique index of name */
	        "SELECT {columns} FROM \"user\" WHERE name=?", "t", name);

	return st == TW_OK && !found ? tw_fail(err, TW_NOT_FOUND, "no user of that name") : st;
}

/* The name for the audit log; TW_NOT_FOUND if there is no such account. */
static enum tw_status name_of(
        struct tw_db *db, const char *user_id, char ret[TW_USER_NAME_BYTES], struct tw_err *err)
{
	enum tw_status st = tw_cat_get_text(db, ret, TW_USER_NAME_BYTES, err, /* primary key */
	        "SELECT name FROM \"user\" WHERE user_id=?", "t", user_id);

	return st == TW_OK && !ret[0] ? tw_fail(err, TW_NOT_FOUND, "no such user") : st;
}

static const char *bool_text(bool is_set, bool value)
{
	return !is_set ? NULL : value ? "true" : "false";
}

enum tw_status tw_catalogue_user_change(struct tw_catalogue *c, const char *user_id,
        const struct tw_user_change *to, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char name[TW_USER_NAME_BYTES] = "";
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = name_of(w, user_id, name, err);
	if (st == TW_OK && to->password)
		st = tw_cat_exec(w, NULL, err, "UPDATE \"user\" SET password=? WHERE user_id=?",
		        "tt", to->password, user_id);
	if (st == TW_OK && to->sets_admin)
		st = tw_cat_exec(w, NULL, err, "UPDATE \"user\" SET is_admin=? WHERE user_id=?",
		        "it", (int64_t)to->is_admin, user_id);
	if (st == TW_OK && to->sets_disabled)
		st = tw_cat_exec(w, NULL, err, "UPDATE \"user\" SET is_disabled=? WHERE user_id=?",
		        "it", (int64_t)to->is_disabled, user_id);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, "DELETE FROM session WHERE user_id=?", "t", user_id);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"user.change", "", name,
	                .facts = {{"password", to->password ? "changed" : NULL},
	                        {"admin", bool_text(to->sets_admin, to->is_admin)},
	                        {"disabled", bool_text(to->sets_disabled, to->is_disabled)}}},
	        err);
}

enum tw_status tw_catalogue_user_remove(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char name[TW_USER_NAME_BYTES] = "";
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = name_of(w, user_id, name, err);
	if (st == TW_OK) /* roles and sessions are deleted by their foreign keys */
		st = tw_cat_exec(
		        w, NULL, err, "DELETE FROM \"user\" WHERE user_id=?", "t", user_id);
	return tw_cat_end_audited(c, w, st, &(struct tw_change){"user.remove", "", name}, err);
}

/* --- lists --- */

#define USER(member, column, json) TW_FIELD(struct tw_user_row, member, column, json)
static const struct tw_field user_fields[] = {
        USER(id, "u.user_id", NULL),
        USER(name, "u.name", "name"),
        USER(is_admin, "u.is_admin", "admin"),
        USER(has_password, "u.password<>''", "password"),
        USER(is_linked, "EXISTS(SELECT 1 FROM identity i WHERE i.user_id=u.user_id)", "oidc"),
        USER(is_disabled, "u.is_disabled", "disabled"),
        USER(created_ms, "u.created_ms", "created_ms"),
        USER(last_seen_ms, "u.last_seen_ms", "last_seen_ms"),
        USER(scope, "m.scope", NULL),
};
const struct tw_fields tw_user_fields = TW_FIELDS(user_fields);

enum tw_status tw_catalogue_users(struct tw_catalogue *c, const char *project_id, const char *after,
        struct tw_arena *a, struct tw_user_row **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list *l = TW_CAT_LIST(a, TW_USERS_MAX, &tw_user_fields, ret, ret_n);

	if (project_id[0]) /* member_by_project, then sorted: a handful */
		return tw_cat_list(c, l, err,
		        "SELECT {columns} FROM member m JOIN \"user\" u ON u.user_id=m.user_id"
		        " WHERE m.project_id=?1 AND u.name>?2 ORDER BY u.name LIMIT ?3",
		        "tti", project_id, after, (int64_t)TW_USERS_MAX);
	return tw_cat_list(c, l, err, /* unique index of name */
	        "SELECT {columns} FROM \"user\" u LEFT JOIN member m ON m.user_id=u.user_id"
	        " AND m.project_id='' WHERE u.name>?1 ORDER BY u.name LIMIT ?2",
	        "ti", after, (int64_t)TW_USERS_MAX);
}

/* --- roles --- */

enum tw_status tw_catalogue_member_set(struct tw_catalogue *c, const char *project_id,
        const char *user_id, enum tw_scope scope, struct tw_err *err)
{
	struct tw_db *w = NULL;
	bool leaves = scope == TW_SCOPE_PUBLIC;
	char name[TW_USER_NAME_BYTES] = "";
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = name_of(w, user_id, name, err);
	if (st == TW_OK && leaves)
		st = tw_cat_exec(w, &changed, err,
		        "DELETE FROM member WHERE user_id=? AND project_id=?", "tt", user_id,
		        project_id);
	else if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err,
		        "INSERT INTO member SELECT ?1,project_id,?3 FROM project WHERE"
		        " project_id=?2 AND deleted_ms=0 ON CONFLICT(user_id,project_id) DO UPDATE "
		        "SET"
		        " scope=excluded.scope",
		        "tti", user_id, project_id, (int64_t)scope);
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND,
		        leaves ? "the user has no role in this project" : "no such project");
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){leaves ? "member.remove" : "member.set", project_id, name,
	                .facts = {{"scope", leaves ? NULL : tw_scope_name(scope)}}},
	        err);
}
