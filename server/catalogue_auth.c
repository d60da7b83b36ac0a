/*
 * catalogue_auth.c - projects, keys, sign-in links, sessions.
 */
#include "catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "ulid.h"

enum { SEEN_EVERY_MS = 60000 };

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
}

static enum tw_status find_project(
        sqlite3 *db, const char *name, char ret_id[TW_ID_BYTES], bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(/* unique index of name */
	        &q, db, err, "SELECT project_id FROM project WHERE name=?", "t", name);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q);
	if (*ret)
		(void)snprintf(
		        ret_id, TW_ID_BYTES, "%s", (const char *)sqlite3_column_text(q.stmt, 0));
	return tw_cat_close(&q, err);
}

enum tw_status tw_catalogue_project(struct tw_catalogue *c, const char *name,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	char id[TW_ID_BYTES];
	bool found = false;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = find_project(c->writer, name, id, &found, err);
	if (st == TW_OK && !found)
		st = tw_ulid_new(now, id, err);
	if (st == TW_OK && !found)
		st = tw_cat_exec(c->writer, NULL, err, "INSERT INTO project VALUES(?,?,?)", "tti",
		        id, name, now);
	st = tw_cat_end(c, st, err);
	if (st == TW_OK) {
		memcpy(ret_id, id, TW_ID_BYTES);
		*ret_new = !found;
	}
	return st;
}

static enum tw_status count_rows(
        sqlite3 *db, size_t *ret, struct tw_err *err, const char *sql, const char *arg)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, sql, arg ? "t" : "", arg);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (size_t)tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static enum tw_status read_projects(sqlite3 *db, struct tw_arena *a, struct tw_project_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_project_row *rows;
	size_t n = 0;
	size_t cap = 0;
	enum tw_status st = count_rows(db, &cap, err, "SELECT count(*) FROM project", NULL);

	if (st != TW_OK)
		return st;
	rows = tw_arena_alloc(a, cap, sizeof *rows);
	if (!rows)
		return no_memory(err);
	st = tw_cat_query(&q, db, err,
	        "SELECT project_id, name, created_ms FROM project ORDER BY project_id", "");
	if (st != TW_OK)
		return st;
	while (n < cap && tw_cat_row(&q)) {
		rows[n] = (struct tw_project_row){
		        tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a), tw_cat_int(&q, 2)};
		if (!rows[n].id || !rows[n].name)
			st = no_memory(err);
		n++;
	}
	*ret = rows;
	*ret_n = n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_projects(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_project_row **ret, size_t *ret_n, struct tw_err *err)
{
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_projects(db, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_key_add(struct tw_catalogue *c, const char *project_id,
        enum tw_scope scope, const char *name, const uint8_t hash[32], char ret_id[TW_ID_BYTES],
        struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	char id[TW_ID_BYTES];
	enum tw_status st = tw_ulid_new(now, id, err);

	if (st == TW_OK)
		st = tw_cat_begin(c, err);
	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err,
	        "INSERT INTO api_key(project_id,key_id,name,scope,hash,created_ms) "
	        "VALUES(?,?,?,?,?,?)",
	        "tttihi", project_id, id, name, (int64_t)scope, hash, now);
	st = tw_cat_end(c, st, err);
	if (st == TW_OK)
		memcpy(ret_id, id, TW_ID_BYTES);
	return st;
}

static enum tw_status look_up_key(sqlite3 *db, const uint8_t hash[32], struct tw_caller *ret,
        int64_t *ret_seen_ms, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* unique index of hash */
	        "SELECT scope, project_id, key_id, last_seen_ms FROM api_key"
	        " WHERE hash=? AND revoked_ms=0",
	        "h", hash);

	if (st != TW_OK)
		return st;
	if (!tw_cat_row(&q)) {
		st = tw_cat_close(&q, err);
		return st == TW_OK ? tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		                             "the key is unknown or was revoked")
		                   : st;
	}
	ret->scope = (enum tw_scope)tw_cat_int(&q, 0);
	(void)snprintf(
	        ret->project_id, TW_ID_BYTES, "%s", (const char *)sqlite3_column_text(q.stmt, 1));
	(void)snprintf(
	        ret->key_id, TW_ID_BYTES, "%s", (const char *)sqlite3_column_text(q.stmt, 2));
	*ret_seen_ms = tw_cat_int(&q, 3);
	return tw_cat_close(&q, err);
}

/* Best effort: a key must work even when this cannot be noted. */
static void note_seen(struct tw_catalogue *c, const struct tw_caller *k, int64_t now)
{
	enum tw_status st = tw_cat_begin(c, NULL);

	if (st != TW_OK)
		return;
	st = tw_cat_exec(c->writer, NULL, NULL,
	        "UPDATE api_key SET last_seen_ms=? WHERE project_id=? AND key_id=?", "itt", now,
	        k->project_id, k->key_id);
	(void)tw_cat_end(c, st, NULL);
}

enum tw_status tw_catalogue_key_find(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_caller *ret, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	struct tw_caller found = {0};
	int64_t seen = 0;
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = look_up_key(db, hash, &found, &seen, err);
	tw_cat_done(c, db);
	if (st != TW_OK)
		return st;
	if (now - seen > SEEN_EVERY_MS)
		note_seen(c, &found, now);
	*ret = found;
	return TW_OK;
}

static enum tw_status read_keys(sqlite3 *db, const char *project_id, struct tw_arena *a,
        struct tw_key_row **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_key_row *rows;
	size_t n = 0;
	size_t cap = 0;
	enum tw_status st = count_rows(
	        db, &cap, err, "SELECT count(*) FROM api_key WHERE project_id=?", project_id);

	if (st != TW_OK)
		return st;
	rows = tw_arena_alloc(a, cap, sizeof *rows);
	if (!rows)
		return no_memory(err);
	st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT key_id, project_id, name, scope, created_ms, last_seen_ms, revoked_ms"
	        " FROM api_key WHERE project_id=? ORDER BY key_id",
	        "t", project_id);
	if (st != TW_OK)
		return st;
	while (n < cap && tw_cat_row(&q)) {
		rows[n] = (struct tw_key_row){.id = tw_cat_text(&q, 0, a),
		        .project_id = tw_cat_text(&q, 1, a),
		        .name = tw_cat_text(&q, 2, a),
		        .scope = (enum tw_scope)tw_cat_int(&q, 3),
		        .created_ms = tw_cat_int(&q, 4),
		        .last_seen_ms = tw_cat_int(&q, 5),
		        .revoked_ms = tw_cat_int(&q, 6)};
		if (!rows[n].id || !rows[n].project_id || !rows[n].name)
			st = no_memory(err);
		n++;
	}
	*ret = rows;
	*ret_n = n;
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_keys(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        struct tw_key_row **ret, size_t *ret_n, struct tw_err *err)
{
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_keys(db, project_id, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_key_revoke(
        struct tw_catalogue *c, const char *project_id, const char *key_id, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err,
	        "UPDATE api_key SET revoked_ms=?"
	        " WHERE project_id=? AND key_id=? AND revoked_ms=0",
	        "itt", tw_cat_now_ms(), project_id, key_id);
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such key in use");
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_link_add(
        struct tw_catalogue *c, const uint8_t hash[32], int64_t expires_ms, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err, "DELETE FROM signin_link WHERE expires_ms<=?", "i",
	        tw_cat_now_ms());
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err, "INSERT INTO signin_link VALUES(?,?)", "hi",
		        hash, expires_ms);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_link_use(struct tw_catalogue *c, const uint8_t link_hash[32],
        const uint8_t session_hash[32], int64_t expires_ms, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err,
	        "DELETE FROM signin_link WHERE hash=? AND expires_ms>?", "hi", link_hash, now);
	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		        "this sign-in link is unknown, was used already or has expired");
	if (st == TW_OK)
		st = tw_cat_exec(
		        c->writer, NULL, err, "DELETE FROM session WHERE expires_ms<=?", "i", now);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err, "INSERT INTO session VALUES(?,?,?)", "hii",
		        session_hash, now, expires_ms);
	return tw_cat_end(c, st, err);
}

static enum tw_status read_session(sqlite3 *db, const uint8_t hash[32], const char *project,
        struct tw_caller *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary keys */
	        "SELECT (SELECT project_id FROM project WHERE ?2='' OR project_id=?2"
	        " ORDER BY project_id LIMIT 1) FROM session WHERE hash=?1 AND expires_ms>?3",
	        "hti", hash, project, tw_cat_now_ms());

	if (st != TW_OK)
		return st;
	*ret = (struct tw_caller){.scope = TW_SCOPE_ADMIN};
	if (!tw_cat_row(&q)) {
		st = tw_cat_close(&q, err);
		return st == TW_OK ? tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		                             "not signed in, or the session has expired")
		                   : st;
	}
	if (sqlite3_column_type(q.stmt, 0) != SQLITE_NULL)
		(void)snprintf(ret->project_id, TW_ID_BYTES, "%s",
		        (const char *)sqlite3_column_text(q.stmt, 0));
	st = tw_cat_close(&q, err);
	if (st == TW_OK && project[0] && !ret->project_id[0])
		st = tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such project");
	return st;
}

enum tw_status tw_catalogue_session_find(struct tw_catalogue *c, const uint8_t hash[32],
        const char *project, struct tw_caller *ret, struct tw_err *err)
{
	struct tw_caller found;
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_session(db, hash, project ? project : "", &found, err);
	tw_cat_done(c, db);
	if (st == TW_OK)
		*ret = found;
	return st;
}

enum tw_status tw_catalogue_session_end(
        struct tw_catalogue *c, const uint8_t hash[32], struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err, "DELETE FROM session WHERE hash=?", "h", hash);
	return tw_cat_end(c, st, err);
}
