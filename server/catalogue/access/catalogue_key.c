/*
 * catalogue_key.c - keys of projects: permissions, expiry, last use.
 *
 * A key keeps its id and name when its secret is replaced; for a time both secrets are valid, so
 * that clients in the field keep working.  A key is looked up with every request, so a revocation
 * takes effect immediately.
 */
#include "server/catalogue/catalogue_internal.h"

#include <string.h>

#include "server/catalogue/access/catalogue_key.h"

enum { SEEN_EVERY_MS = 60000 };

struct found { /* a row of api_key, found by one of its secrets */
	struct tw_caller caller;
	int64_t seen_ms, ends_ms, revoked_ms; /* ends_ms 0: no expiry */
	bool old;                             /* found by the secret from before the last
	                                       * rotation */
};

enum tw_status tw_catalogue_key_add(struct tw_catalogue *c, const struct tw_key_new *k,
        char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = tw_unix_ms();
	char id[TW_ID_BYTES], ends[TW_NUMBER_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st != TW_OK)
		return st;
	tw_ulid_new(now, id);
	st = tw_cat_exec(w, NULL, err,
	        "INSERT INTO api_key(project_id,key_id,name,scope,hash,created_ms,expires_ms)"
	        " VALUES(?,?,?,?,?,?,?)",
	        "tttihii", k->project_id, id, k->name, (int64_t)k->scope, k->hash, now,
	        k->expires_ms);
	st = tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"key.create", k->project_id, id,
	                .facts = {{"name", k->name}, {"scope", tw_scope_name(k->scope)},
	                        {"expires_ms", tw_cat_number(k->expires_ms, ends)}}},
	        err);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

/* --- lookup by secret --- */

#define FOUND(member) TW_FIELD(struct found, member, "", NULL)
static const struct tw_fields found_fields =
        TW_FIELDS_OF(FOUND(caller.scope), FOUND(caller.project_id), FOUND(caller.key_id),
                FOUND(seen_ms), FOUND(ends_ms), FOUND(revoked_ms), FOUND(old));

static enum tw_status find_by_hash(
        struct tw_db *db, const uint8_t hash[32], struct found *ret, struct tw_err *err)
{
	bool found = false;
	enum tw_status st = tw_cat_get_row(db, &found_fields, NULL, ret, &found,
	        err, /* unique indexes of hash and old_hash */
	        "SELECT scope, project_id, key_id, last_seen_ms, expires_ms, revoked_ms, 0"
	        " FROM api_key WHERE hash=?1 UNION ALL"
	        " SELECT scope, project_id, key_id, old_seen_ms,"
	        " CASE WHEN expires_ms>0 THEN min(expires_ms,old_until_ms) ELSE old_until_ms END,"
	        " revoked_ms, 1 FROM api_key WHERE old_hash=?1",
	        "h", hash);

	return st == TW_OK && !found ? tw_fail(err, TW_NO_TOKEN,
	                                       "unknown key: check that it is complete and was "
	                                       "created on this server")
	                             : st;
}

/* The client has the secret, so the error may say why it no longer works. */
static enum tw_status check_validity(const struct found *f, int64_t now, struct tw_err *err)
{
	if (f->revoked_ms)
		return tw_fail(err, TW_NO_TOKEN,
		        "the key was revoked; ask an admin of the project for another");
	if (f->ends_ms == 0 || now < f->ends_ms)
		return TW_OK;
	return tw_fail(err, TW_NO_TOKEN,
	        f->old ? "the key was rotated and its old secret has ended; ask an admin of the "
	                 "project for the new one"
	               : "the key has expired; ask an admin of the project for another");
}

/* Best effort: the key must work, without delay, even if this cannot be recorded. */
static void note_seen(struct tw_catalogue *c, const struct found *f, const char *from, int64_t now)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin_soon(c, &w, NULL);

	if (st != TW_OK)
		return;
	st = tw_cat_exec(w, NULL, NULL,
	        "UPDATE api_key SET last_seen_ms=?1, seen_from=?2,"
	        " old_seen_ms=CASE WHEN ?3<>0 THEN ?1 ELSE old_seen_ms END"
	        " WHERE project_id=?4 AND key_id=?5",
	        "ititt", now, from, (int64_t)f->old, f->caller.project_id, f->caller.key_id);
	(void)tw_cat_end(c, w, st, NULL);
}

enum tw_status tw_catalogue_key_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *from, struct tw_caller *ret, struct tw_err *err)
{
	int64_t now = tw_unix_ms();
	struct found found = {.seen_ms = 0};
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = find_by_hash(db, hash, &found, err);
	tw_cat_done(c, db);
	if (st == TW_OK)
		st = check_validity(&found, now, err);
	if (st != TW_OK)
		return st;
	if (now - found.seen_ms > SEEN_EVERY_MS)
		note_seen(c, &found, from, now);
	*ret = found.caller;
	ret->ends_ms = found.ends_ms;
	return TW_OK;
}

/* --- lists --- */

#define KEY(member, column, json) TW_FIELD(struct tw_key_row, member, column, json)
static const struct tw_field key_fields[] = {
        KEY(id, "key_id", "id"),
        KEY(project_id, "project_id", NULL),
        KEY(name, "name", "name"),
        TW_FIELD(struct tw_key_row, scope, "scope", "scope", .names = tw_scope_names),
        KEY(created_ms, "created_ms", "created_ms"),
        KEY(last_seen_ms, "last_seen_ms", "last_used_ms"),
        KEY(revoked_ms, "revoked_ms", "revoked_ms"),
        KEY(expires_ms, "expires_ms", "expires_ms"),
        KEY(seen_from, "seen_from", "last_used_address"),
        KEY(rotated_ms, "rotated_ms", "rotated_ms"),
        KEY(old_until_ms, "old_until_ms", "old_expires_ms"),
        KEY(old_seen_ms, "old_seen_ms", "old_last_used_ms"),
};
const struct tw_fields tw_key_fields = TW_FIELDS(key_fields);

enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, const char *before,
        uint32_t limit, struct tw_arena *a, struct tw_key_row **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, limit, &tw_key_fields, ret, ret_n),
	        err, /* primary key; "~" sorts after every id */
	        "SELECT {columns} FROM api_key WHERE project_id=? AND key_id<?"
	        " ORDER BY key_id DESC LIMIT ?",
	        "tti", project_id, before[0] ? before : "~", (int64_t)limit);
}

static const char no_key[] = "the project has no valid key with this id";

enum tw_status tw_catalogue_key_get(struct tw_catalogue *c, const char *project_id,
        const char *key_id, struct tw_arena *a, struct tw_key_row *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &tw_key_fields, ret, no_key), err, /* primary key */
	        "SELECT {columns} FROM api_key WHERE project_id=? AND key_id=? AND revoked_ms=0",
	        "tt", project_id, key_id);
}

/* --- rotation and revocation --- */

int64_t tw_key_old_until(const struct tw_key_row *row, int64_t until_ms)
{
	return row->expires_ms > 0 && row->expires_ms < until_ms ? row->expires_ms : until_ms;
}

enum tw_status tw_catalogue_key_rotate(struct tw_catalogue *c, const struct tw_key_new *k,
        const char *key_id, int64_t old_until_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char until[TW_NUMBER_BYTES], ends[TW_NUMBER_BYTES];
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_change(w, no_key, err,
		        "UPDATE api_key SET old_hash=hash, old_until_ms=?1, old_seen_ms=0,"
		        " hash=?2, rotated_ms=?3, expires_ms=?4"
		        " WHERE project_id=?5 AND key_id=?6 AND revoked_ms=0",
		        "ihiitt", old_until_ms, k->hash, tw_unix_ms(), k->expires_ms, k->project_id,
		        key_id);
	/* sessions begun with the old secret may be a thief's */
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE session SET expires_ms=min(expires_ms,?)"
		        " WHERE project_id=? AND key_id=?",
		        "itt", old_until_ms, k->project_id, key_id);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"key.rotate", k->project_id, key_id,
	                .facts = {{"old_expires_ms", tw_cat_number(old_until_ms, until)},
	                        {"expires_ms", tw_cat_number(k->expires_ms, ends)}}},
	        err);
}

enum tw_status tw_catalogue_key_revoke(
        struct tw_catalogue *c, const char *project_id, const char *key_id, struct tw_err *err)
{
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_ACCESS, "", .missing = no_key,
	                .change = &(struct tw_change){"key.revoke", project_id, key_id}},
	        err,
	        "UPDATE api_key SET revoked_ms=?"
	        " WHERE project_id=? AND key_id=? AND revoked_ms=0",
	        "itt", tw_unix_ms(), project_id, key_id);
}
