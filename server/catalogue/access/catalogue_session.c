/*
 * catalogue_session.c - sessions and one-time sign-in links.
 *
 * A session is looked up with every request of the page, so that its end (timeout, sign-out, a
 * removed role, a revoked key) takes effect immediately.
 */
#include "server/catalogue/access/catalogue_user.h"

#include "server/catalogue/catalogue_internal.h"

enum { SEEN_EVERY_MS = 60000 };

struct found { /* a row of session with its person */
	struct tw_caller caller;
	bool is_admin;
	int64_t seen_ms, idle_ms;
};

static enum tw_status over(struct tw_err *err)
{
	return tw_fail(err, TW_NO_TOKEN, "not signed in, or the session is over; sign in again");
}

struct holder { /* the owner of a session, for the audit log */
	char user_id[TW_ID_BYTES], name[TW_USER_NAME_BYTES];
	char project_id[TW_ID_BYTES], key_id[TW_ID_BYTES];
	struct tw_actor actor;
};

static const struct tw_fields holder_fields =
        TW_FIELDS_OF(TW_FIELD(struct holder, user_id, "s.user_id", NULL),
                TW_FIELD(struct holder, name, "u.name", NULL),
                TW_FIELD(struct holder, project_id, "s.project_id", NULL),
                TW_FIELD(struct holder, key_id, "s.key_id", NULL));

static enum tw_status read_holder(struct tw_db *db, const uint8_t hash[32], struct holder *ret,
        bool *ret_there, struct tw_err *err)
{
	enum tw_status st = tw_cat_get_row(db, &holder_fields, NULL, ret, ret_there,
	        err, /* primary keys */
	        "SELECT {columns} FROM session s LEFT JOIN \"user\" u ON u.user_id=s.user_id"
	        " WHERE s.hash=?",
	        "h", hash);

	ret->actor = (struct tw_actor){.kind = "link", .id = "", .name = ""};
	if (ret->user_id[0])
		ret->actor =
		        (struct tw_actor){.kind = "user", .id = ret->user_id, .name = ret->name};
	else if (ret->key_id[0])
		ret->actor = (struct tw_actor){.kind = "key", .id = ret->key_id, .name = ""};
	return st;
}

/* The actor of a sign-in or sign-out is only known from the session. */
static enum tw_status audit_session(struct tw_db *db, const char *action, const uint8_t hash[32],
        const char *how, struct tw_err *err)
{
	struct holder h = {.name = ""};
	bool there = false;
	enum tw_status st = read_holder(db, hash, &h, &there, err);

	if (st != TW_OK || !there)
		return st;
	return tw_cat_audit(db,
	        &(struct tw_change){action, h.project_id, h.actor.name[0] ? h.name : h.key_id,
	                &h.actor, .facts = {{"how", how}}},
	        err);
}

static enum tw_status insert_session(
        struct tw_db *db, const struct tw_session *s, int64_t now, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO session VALUES(?1,nullif(?2,''),nullif(?3,''),nullif(?4,''),?5,?5,?6,"
	        "?7)",
	        "htttiii", s->hash, s->user_id, s->project_id, s->key_id, now, s->idle_ms,
	        s->expires_ms);

	if (st == TW_OK && s->how)
		st = audit_session(db, "session.start", s->hash, s->how, err);
	return st;
}

enum tw_status tw_cat_session_add(struct tw_db *db, const struct tw_session *s, struct tw_err *err)
{
	int64_t now = tw_unix_ms();
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "DELETE FROM session WHERE expires_ms<=?1 OR seen_ms+idle_ms<=?1", "i", now);

	if (st == TW_OK && s->replaces)
		st = tw_cat_exec(
		        db, NULL, err, "DELETE FROM session WHERE hash=?", "h", s->replaces);
	if (st == TW_OK && s->user_id[0])
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE \"user\" SET last_seen_ms=? WHERE user_id=?", "it", now,
		        s->user_id);
	return st == TW_OK ? insert_session(db, s, now, err) : st;
}

enum tw_status tw_catalogue_session_add(
        struct tw_catalogue *c, const struct tw_session *s, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	return st == TW_OK ? tw_cat_end(c, w, tw_cat_session_add(w, s, err), err) : st;
}

enum tw_status tw_catalogue_link_add(
        struct tw_catalogue *c, const uint8_t hash[32], int64_t expires_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char ends[TW_NUMBER_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, "DELETE FROM signin_link WHERE expires_ms<=?", "i",
		        tw_unix_ms());
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, "INSERT INTO signin_link VALUES(?,?)", "hi", hash,
		        expires_ms);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"link.create", "", "",
	                .facts = {{"expires_ms", tw_cat_number(expires_ms, ends)}}},
	        err);
}

enum tw_status tw_catalogue_link_use(struct tw_catalogue *c, const uint8_t link_hash[32],
        const struct tw_session *s, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err,
		        "DELETE FROM signin_link WHERE hash=? AND expires_ms>?", "hi", link_hash,
		        tw_unix_ms());
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NO_TOKEN,
		        "this sign-in link is unknown, was used already or has expired");
	if (st == TW_OK)
		st = tw_cat_session_add(w, s, err);
	return tw_cat_end(c, w, st, err);
}

#define FOUND(member, column) TW_FIELD(struct found, member, column, NULL)
static const struct tw_fields session_fields = TW_FIELDS_OF(FOUND(caller.user_id, "s.user_id"),
        FOUND(caller.project_id, "s.project_id"), FOUND(caller.key_id, "s.key_id"),
        FOUND(seen_ms, "s.seen_ms"), FOUND(idle_ms, "s.idle_ms"), FOUND(caller.name, "u.name"),
        FOUND(is_admin, "u.is_admin"));
static const struct tw_fields person_fields = TW_FIELDS_OF(FOUND(caller.user_id, "user_id"),
        FOUND(caller.name, "name"), FOUND(is_admin, "is_admin"), FOUND(seen_ms, "last_seen_ms"));

static enum tw_status read_session(
        struct tw_db *db, const uint8_t hash[32], struct found *ret, struct tw_err *err)
{
	bool there = false;
	enum tw_status st = tw_cat_get_row(db, &session_fields, NULL, ret, &there,
	        err, /* primary keys */
	        "SELECT {columns} FROM session s LEFT JOIN \"user\" u ON u.user_id=s.user_id"
	        " WHERE s.hash=?1 AND s.expires_ms>?2 AND s.seen_ms+s.idle_ms>?2"
	        " AND coalesce(u.is_disabled,0)=0",
	        "hi", hash, tw_unix_ms());

	return st == TW_OK && !there ? over(err) : st;
}

static enum tw_status key_scope(struct tw_db *db, struct tw_caller *caller, struct tw_err *err)
{
	int64_t scope = caller->scope;
	enum tw_status st = tw_cat_get_int(db, &scope, err, /* primary key */
	        "SELECT scope FROM api_key WHERE project_id=? AND key_id=? AND revoked_ms=0"
	        " AND (expires_ms=0 OR expires_ms>?)",
	        "tti", caller->project_id, caller->key_id, tw_unix_ms());

	caller->scope = (enum tw_scope)scope;
	return st == TW_OK && caller->scope == TW_SCOPE_PUBLIC ? over(err) : st;
}

#define CALLER(member, column) TW_FIELD(struct tw_caller, member, column, NULL)
static const struct tw_fields admin_fields = TW_FIELDS_OF(CALLER(project_id, "project_id"));
static const struct tw_fields member_fields =
        TW_FIELDS_OF(CALLER(project_id, "project_id"), CALLER(scope, "scope"));

/* The requested project, or the first in which the person has a role. */
static enum tw_status choose_project(struct tw_db *db, bool is_admin, const char *project,
        struct tw_caller *caller, struct tw_err *err)
{
	bool there;
	enum tw_status st;

	caller->scope = is_admin ? TW_SCOPE_SERVER : TW_SCOPE_PUBLIC;
	if (is_admin) /* primary key */
		st = tw_cat_get_row(db, &admin_fields, NULL, caller, &there, err,
		        "SELECT {columns} FROM project WHERE (?1='' OR project_id=?1)"
		        " AND deleted_ms=0 ORDER BY project_id LIMIT 1",
		        "t", project);
	else /* primary key */
		st = tw_cat_get_row(db, &member_fields, NULL, caller, &there, err,
		        "SELECT {columns} FROM member WHERE user_id=?1"
		        " AND (?2='' OR project_id=?2) ORDER BY project_id LIMIT 1",
		        "tt", caller->user_id, project);
	if (st == TW_OK && project[0] && !caller->project_id[0])
		st = tw_fail(err, TW_NOT_FOUND, "no such project");
	return st;
}

static enum tw_status find_session(struct tw_db *db, const uint8_t hash[32], const char *project,
        struct found *ret, struct tw_err *err)
{
	enum tw_status st = read_session(db, hash, ret, err);
	struct tw_caller *caller = &ret->caller;

	if (st != TW_OK)
		return st;
	if (caller->key_id[0])
		return key_scope(db, caller, err);
	return choose_project(db, ret->is_admin || !caller->user_id[0], project, caller, err);
}

static enum tw_status set_person_seen(struct tw_db *db, const struct found *f, int64_t now)
{
	if (!f->caller.user_id[0])
		return TW_OK;
	return tw_cat_exec(db, NULL, NULL, "UPDATE \"user\" SET last_seen_ms=? WHERE user_id=?",
	        "it", now, f->caller.user_id);
}

/* Best effort: the request is served even if this cannot be recorded. */
static void note_seen(struct tw_catalogue *c, const uint8_t hash[32], const struct found *f)
{
	struct tw_db *w = NULL;
	int64_t now = tw_unix_ms();
	enum tw_status st;

	if (now - f->seen_ms <= SEEN_EVERY_MS && now - f->seen_ms <= f->idle_ms / 4)
		return;
	if (tw_cat_begin_soon(c, &w, NULL) != TW_OK)
		return;
	st = tw_cat_exec(
	        w, NULL, NULL, "UPDATE session SET seen_ms=? WHERE hash=?", "ih", now, hash);
	if (st == TW_OK)
		st = set_person_seen(w, f, now);
	(void)tw_cat_end(c, w, st, NULL);
}

enum tw_status tw_catalogue_session_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *project, struct tw_caller *ret, struct tw_err *err)
{
	struct found found = {.is_admin = false};
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = find_session(db, hash, project ? project : "", &found, err);
	tw_cat_done(c, db);
	if (st != TW_OK)
		return st;
	note_seen(c, hash, &found);
	*ret = found.caller;
	return TW_OK;
}

static enum tw_status read_person(
        struct tw_db *db, const char *name, struct found *ret, struct tw_err *err)
{
	bool there = false;
	enum tw_status st = tw_cat_get_row(db, &person_fields, NULL, ret, &there,
	        err, /* unique index of name */
	        "SELECT {columns} FROM \"user\" WHERE name=? AND is_disabled=0", "t", name);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_DENIED,
		        "you are signed in as %.64s, whose account does not exist or is disabled; "
		        "ask an admin",
		        name);
	return st;
}

/* Best effort, as for a session. */
static void note_person_seen(struct tw_catalogue *c, const struct found *f)
{
	struct tw_db *w = NULL;
	int64_t now = tw_unix_ms();

	if (now - f->seen_ms > SEEN_EVERY_MS && tw_cat_begin_soon(c, &w, NULL) == TW_OK)
		(void)tw_cat_end(c, w, set_person_seen(w, f, now), NULL);
}

enum tw_status tw_catalogue_user_caller(struct tw_catalogue *c, const char *name,
        const char *project, struct tw_caller *ret, struct tw_err *err)
{
	struct found found = {.is_admin = false};
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = read_person(db, name, &found, err);
	if (st == TW_OK)
		st = choose_project(db, found.is_admin, project, &found.caller, err);
	tw_cat_done(c, db);
	if (st != TW_OK)
		return st;
	note_person_seen(c, &found);
	*ret = found.caller;
	return TW_OK;
}

enum tw_status tw_catalogue_session_end(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = audit_session(w, "session.end", hash, NULL, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, "DELETE FROM session WHERE hash=?", "h", hash);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_sessions_end(
        struct tw_catalogue *c, const char *user_id, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_ACCESS, "",
	                .change = &(struct tw_change){"session.end_all", "", tw_actor_get()->name}},
	        err, "DELETE FROM session WHERE user_id=?", "t", user_id);
}

enum tw_status tw_catalogue_sessions_count(
        struct tw_catalogue *c, uint64_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* a handful per person */
	        "SELECT count(*) FROM session WHERE expires_ms>?1 AND seen_ms+idle_ms>?1", "i",
	        tw_unix_ms());

	*ret = (uint64_t)n;
	return st;
}
