#include "server/catalogue/access/catalogue_identity.h"

#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue_internal.h"

struct account {
	char id[TW_ID_BYTES], name[TW_USER_NAME_BYTES];
	bool is_admin, is_disabled;
};

#define ACCOUNT(member) TW_FIELD(struct account, member, "u." #member, NULL)
static const struct tw_fields account_fields =
        TW_FIELDS_OF(TW_FIELD(struct account, id, "u.user_id", NULL), ACCOUNT(name),
                ACCOUNT(is_admin), ACCOUNT(is_disabled));

static enum tw_status by_identity(struct tw_db *db, const struct tw_identity *who,
        struct account *ret, bool *ret_there, struct tw_err *err)
{
	return tw_cat_get_row(db, &account_fields, NULL, ret, ret_there, err, /* primary keys */
	        "SELECT {columns} FROM identity i JOIN \"user\" u ON u.user_id=i.user_id"
	        " WHERE i.issuer=? AND i.subject=?",
	        "tt", who->issuer, who->subject);
}

static enum tw_status by_id(struct tw_db *db, const char *user_id, struct account *ret,
        bool *ret_there, struct tw_err *err)
{
	return tw_cat_get_row(db, &account_fields, NULL, ret, ret_there, err, /* primary key */
	        "SELECT {columns} FROM \"user\" u WHERE u.user_id=?", "t", user_id);
}

static struct tw_actor actor_of(const struct account *a)
{
	struct tw_actor who = *tw_actor_get();

	who.kind = "user";
	who.id = a->id;
	who.name = a->name;
	return who;
}

static enum tw_status end_as(
        enum tw_identity_end why, enum tw_identity_end *ret_end, enum tw_status st)
{
	*ret_end = why;
	return st;
}

/* --- roles --- */

/* The id of the project, and the person's role in it. */
static enum tw_status read_role(struct tw_db *db, const char *project, const char *user_id,
        char ret_id[TW_ID_BYTES], enum tw_scope *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* project_by_name, primary key */
	        "SELECT p.project_id, coalesce(m.scope,0) FROM project p LEFT JOIN member m"
	        " ON m.project_id=p.project_id AND m.user_id=?2"
	        " WHERE p.name=?1 AND p.deleted_ms=0",
	        "tt", project, user_id);

	ret_id[0] = '\0';
	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q)) {
		(void)snprintf(ret_id, TW_ID_BYTES, "%s", tw_cat_str(&q, 0));
		*ret = (enum tw_scope)tw_cat_int(&q, 1);
	}
	return tw_cat_close(&q, err);
}

static enum tw_status set_role(
        struct tw_db *db, const struct account *a, const struct tw_grant *g, struct tw_err *err)
{
	bool leaves = g->scope == TW_SCOPE_PUBLIC;
	struct tw_actor by = actor_of(a);
	enum tw_scope before = TW_SCOPE_PUBLIC;
	char project[TW_ID_BYTES];
	enum tw_status st = read_role(db, g->project, a->id, project, &before, err);

	if (st != TW_OK || !project[0] || before == g->scope)
		return st;
	if (leaves)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM member WHERE user_id=? AND project_id=?", "tt", a->id,
		        project);
	else
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO member VALUES(?,?,?)"
		        " ON CONFLICT(user_id,project_id) DO UPDATE SET scope=excluded.scope",
		        "tti", a->id, project, (int64_t)g->scope);
	if (st != TW_OK)
		return st;
	return tw_cat_audit(db,
	        &(struct tw_change){leaves ? "member.remove" : "member.set", project, a->name, &by,
	                .facts = {{"scope", leaves ? NULL : tw_scope_name(g->scope)},
	                        {"by", "provider"}}},
	        err);
}

static enum tw_status set_server_admin(
        struct tw_db *db, struct account *a, bool is_admin, struct tw_err *err)
{
	struct tw_actor by = actor_of(a);
	enum tw_status st;

	if (a->is_admin == is_admin)
		return TW_OK;
	st = tw_cat_exec(db, NULL, err, "UPDATE \"user\" SET is_admin=? WHERE user_id=?", "it",
	        (int64_t)is_admin, a->id);
	if (st != TW_OK)
		return st;
	a->is_admin = is_admin;
	return tw_cat_audit(db,
	        &(struct tw_change){"user.change", "", a->name, &by,
	                .facts = {{"admin", is_admin ? "true" : "false"}, {"by", "provider"}}},
	        err);
}

static enum tw_status give(struct tw_db *db, struct account *a, const struct tw_grant *grants,
        size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < n && st == TW_OK; i++)
		st = grants[i].project[0]
		             ? set_role(db, a, &grants[i], err)
		             : set_server_admin(db, a, grants[i].scope == TW_SCOPE_SERVER, err);
	return st;
}

/* --- the account --- */

static enum tw_status insert_identity(struct tw_db *db, const struct tw_identity *who,
        const struct account *a, const struct tw_actor *by, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, "INSERT INTO identity VALUES(?,?,?,?)",
	        "ttti", who->issuer, who->subject, a->id, tw_unix_ms());

	if (st != TW_OK)
		return st;
	return tw_cat_audit(db,
	        &(struct tw_change){"identity.link", "", a->name, by,
	                .facts = {{"issuer", who->issuer}, {"subject", who->subject}}},
	        err);
}

static enum tw_status has_identity(
        struct tw_db *db, const char *user_id, const char *issuer, bool *ret, struct tw_err *err)
{
	int64_t has = 0;
	enum tw_status st = tw_cat_get_int(db, &has, err, /* identity_by_user */
	        "SELECT 1 FROM identity WHERE user_id=? AND issuer=?", "tt", user_id, issuer);

	if (st == TW_OK)
		*ret = has != 0;
	return st;
}

static enum tw_status linked(enum tw_identity_end *ret_end, struct tw_err *err)
{
	return end_as(TW_IDENTITY_LINKED, ret_end,
	        tw_fail(err, TW_CONFLICT,
	                "the person is linked to another account here, or the account to another "
	                "person"));
}

/* A person who signed out, or was signed out, after requesting the link does not get it. */
static enum tw_status check_requester(struct tw_db *db, const struct tw_identity *who,
        enum tw_identity_end *ret_end, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = TW_OK;

	if (who->requested_by)
		st = tw_cat_get_int(db, &there, err, /* primary key */
		        "SELECT 1 FROM session WHERE hash=?1 AND user_id=?2 AND expires_ms>?3"
		        " AND seen_ms+idle_ms>?3",
		        "hti", who->requested_by, who->user_id, tw_unix_ms());
	if (st == TW_OK && !there)
		return end_as(TW_IDENTITY_OVER, ret_end,
		        tw_fail(err, TW_DENIED, "the session that requested the link has ended"));
	return st;
}

/* Links to the account that requested it, which was signed in by password. */
static enum tw_status link_account(struct tw_db *db, const struct tw_identity *who,
        struct account *ret, enum tw_identity_end *ret_end, struct tw_err *err)
{
	struct tw_actor by;
	bool there = false, has = false;
	enum tw_status st = by_id(db, who->user_id, ret, &there, err);

	if (st == TW_OK && !there)
		return end_as(TW_IDENTITY_UNKNOWN, ret_end,
		        tw_fail(err, TW_DENIED, "the account no longer exists"));
	if (st == TW_OK)
		st = check_requester(db, who, ret_end, err);
	if (st == TW_OK)
		st = has_identity(db, ret->id, who->issuer, &has, err);
	if (st == TW_OK && has)
		return linked(ret_end, err);
	by = actor_of(ret);
	return st == TW_OK ? insert_identity(db, who, ret, &by, err) : st;
}

static enum tw_status make_account(struct tw_db *db, const struct tw_identity *who,
        struct account *ret, enum tw_identity_end *ret_end, struct tw_err *err)
{
	struct tw_actor by;
	enum tw_status st;

	if (!who->may_be_new)
		return end_as(TW_IDENTITY_UNKNOWN, ret_end,
		        tw_fail(err, TW_DENIED, "no account is linked to it"));
	if (!*who->name)
		return end_as(TW_IDENTITY_NO_NAME, ret_end,
		        tw_fail(err, TW_DENIED, "the provider sends no valid account name"));
	st = tw_cat_user_insert(db, who->name, "", false, ret->id, err);
	if (st == TW_CONFLICT)
		*ret_end = TW_IDENTITY_NAME_TAKEN;
	if (st != TW_OK)
		return st;
	(void)snprintf(ret->name, sizeof ret->name, "%s", who->name);
	by = actor_of(ret);
	st = tw_cat_audit(db,
	        &(struct tw_change){"user.create", "", ret->name, &by,
	                .facts = {{"admin", "false"}, {"password", "none"}}},
	        err);
	if (st == TW_OK)
		st = insert_identity(db, who, ret, &by, err);
	return st == TW_OK ? give(db, ret, who->first, who->n_first, err) : st;
}

static enum tw_status find_account(struct tw_db *db, const struct tw_identity *who,
        struct account *ret, enum tw_identity_end *ret_end, struct tw_err *err)
{
	bool there = false;
	enum tw_status st = by_identity(db, who, ret, &there, err);

	if (st == TW_OK && there && *who->user_id && strcmp(ret->id, who->user_id) != 0)
		return linked(ret_end, err);
	if (st == TW_OK && !there && *who->user_id)
		st = link_account(db, who, ret, ret_end, err);
	else if (st == TW_OK && !there)
		st = make_account(db, who, ret, ret_end, err);
	if (st == TW_OK && ret->is_disabled)
		return end_as(TW_IDENTITY_DISABLED, ret_end,
		        tw_fail(err, TW_DENIED, "the account %s is disabled", ret->name));
	return st;
}

/* --- sign-in --- */

static enum tw_status sign_in(struct tw_db *db, const struct tw_identity *who,
        const struct tw_session *s, enum tw_identity_end *ret_end, struct tw_err *err)
{
	struct account a = {.is_admin = false};
	struct tw_session of_account = *s;
	enum tw_status st = find_account(db, who, &a, ret_end, err);

	if (st == TW_OK)
		st = give(db, &a, who->grants, who->n_grants, err);
	of_account.user_id = a.id;
	return st == TW_OK ? tw_cat_session_add(db, &of_account, err) : st;
}

enum tw_status tw_catalogue_identity_sign_in(struct tw_catalogue *c, const struct tw_identity *who,
        const struct tw_session *s, enum tw_identity_end *ret_end, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	*ret_end = TW_IDENTITY_FAILED;
	if (st == TW_OK)
		st = tw_cat_end(c, w, sign_in(w, who, s, ret_end, err), err);
	if (st == TW_OK)
		*ret_end = TW_IDENTITY_SIGNED_IN;
	return st;
}

static enum tw_status set(
        struct tw_db *db, const struct account *a, const struct tw_identity *to, struct tw_err *err)
{
	enum tw_identity_end end;
	struct account other;
	bool there = false;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* identity_by_user */
	        "DELETE FROM identity WHERE user_id=? AND issuer=?", "tt", a->id, to->issuer);

	if (st == TW_OK) /* ends sessions begun through the old link */
		st = tw_cat_exec(db, NULL, err, "DELETE FROM session WHERE user_id=?", "t", a->id);
	if (st == TW_OK && !*to->subject)
		return tw_cat_audit(db,
		        &(struct tw_change){
		                "identity.unlink", "", a->name, .facts = {{"issuer", to->issuer}}},
		        err);
	if (st == TW_OK)
		st = by_identity(db, to, &other, &there, err);
	if (st == TW_OK && there)
		return linked(&end, err);
	return st == TW_OK ? insert_identity(db, to, a, NULL, err) : st;
}

enum tw_status tw_catalogue_identity_set(struct tw_catalogue *c, const char *user_id,
        const char *issuer, const char *subject, struct tw_err *err)
{
	struct tw_db *w = NULL;
	const struct tw_identity to = {.issuer = issuer, .subject = subject};
	struct account a = {.is_admin = false};
	bool there = false;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = by_id(w, user_id, &a, &there, err);
	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no such user");
	if (st == TW_OK)
		st = set(w, &a, &to, err);
	return tw_cat_end(c, w, st, err);
}

static enum tw_status drop(struct tw_db *db, const char *user_id, struct tw_err *err)
{
	struct account a = {.is_admin = false};
	bool there = false;
	enum tw_status st = by_id(db, user_id, &a, &there, err);

	if (st == TW_OK) /* identity_by_user */
		st = tw_cat_change(db, "the account is not linked to a provider", err,
		        "DELETE FROM identity WHERE user_id=?", "t", user_id);
	if (st == TW_OK)
		st = tw_cat_exec(
		        db, NULL, err, "DELETE FROM session WHERE user_id=?", "t", user_id);
	return st == TW_OK
	               ? tw_cat_audit(db, &(struct tw_change){"identity.unlink", "", a.name}, err)
	               : st;
}

enum tw_status tw_catalogue_identity_drop(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	return st == TW_OK ? tw_cat_end(c, w, drop(w, user_id, err), err) : st;
}

enum tw_status tw_catalogue_identity_has(struct tw_catalogue *c, const char *user_id,
        const char *issuer, bool *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = has_identity(db, user_id, issuer, ret, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status bound_used(struct tw_db *db, int64_t now, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* signin_used_by_end */
	        "DELETE FROM signin_used WHERE until_ms<=?", "i", now);

	if (st == TW_OK)
		st = tw_cat_get_int(db, &n, err, "SELECT count(*) FROM signin_used", ""); /* few */
	if (st == TW_OK && n >= TW_SIGNINS_USED)
		st = tw_cat_exec(db, NULL, err, /* signin_used_by_end */
		        "DELETE FROM signin_used WHERE id_prefix IN (SELECT id_prefix FROM "
		        "signin_used"
		        " ORDER BY until_ms LIMIT 1)",
		        "");
	return st;
}

enum tw_status tw_catalogue_signin_use(struct tw_catalogue *c, const char *id_prefix,
        int64_t until_ms, bool *ret_first, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = 0;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(w, &now, err);
	if (st == TW_OK)
		st = bound_used(w, now, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err,
		        "INSERT INTO signin_used(id_prefix,until_ms) VALUES(?,?) ON CONFLICT "
		        "(id_prefix) DO"
		        " NOTHING",
		        "ti", id_prefix, until_ms);
	*ret_first = changed > 0;
	return tw_cat_end(c, w, st, err);
}
