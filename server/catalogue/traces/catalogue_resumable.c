#include "server/catalogue/traces/catalogue_resumable.h"

#include <inttypes.h>

#include "server/catalogue/catalogue_internal.h"

#define OF_HOLD " WHERE project_id=? AND resumable_id=? AND owner=?"

/* A change of one row waits only for writers of the same row, and only briefly: a server that
 * stalls in the middle must not block an event loop of another.  PostgreSQL uses a separate
 * connection for this. */
enum {
	HOLD_MOST_MS = 5 * 60 * 1000, /* more than any hold */
	HOLD_AGE_MS = 60 * 60 * 1000
};

static enum tw_status begin_with(
        struct tw_catalogue *c, const char *settings, struct tw_db **ret, struct tw_err *err)
{
	enum tw_status st;

	if (tw_cat_is_sqlite(c))
		return tw_cat_begin(c, TW_SUBJECT_NONE, "", ret, err);
	st = tw_cat_reader(c, ret, err);
	if (st != TW_OK)
		return st;
	st = tw_cat_postgres_begin_unlocked(*ret, settings, err);
	if (st != TW_OK)
		tw_cat_done(c, *ret);
	return st;
}

#define LOCK_TIMEOUT " SET LOCAL lock_timeout='1s'"
/* For changes that may be lost in a crash of the database and need no sync of disk or replica:
 * holds, and uploads without bytes.  A later durable change makes them durable. */
#define ASYNC_COMMIT LOCK_TIMEOUT "; SET LOCAL synchronous_commit=off"
/* Locks a row that all uploads of the project need: PostgreSQL ends the transaction after 0.5 s
 * idle, so that a frozen server does not block the others. */
#define IDLE_TIMEOUT ASYNC_COMMIT "; SET LOCAL idle_in_transaction_session_timeout='500ms'"

static enum tw_status begin(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	return begin_with(c, LOCK_TIMEOUT, ret, err);
}

static enum tw_status begin_lightly(struct tw_catalogue *c, struct tw_db **ret, struct tw_err *err)
{
	return begin_with(c, ASYNC_COMMIT, ret, err);
}

static enum tw_status end(
        struct tw_catalogue *c, struct tw_db *db, enum tw_status st, struct tw_err *err)
{
	if (tw_cat_is_sqlite(c))
		return tw_cat_end(c, db, st, err);
	if (st == TW_OK)
		st = tw_db_run(db, "COMMIT", err);
	tw_cat_done(c, db); /* rolls back an open transaction */
	return st;
}

/* --- reading --- */

#define ROW(member, column) TW_FIELD(struct tw_resumable, member, column, NULL)
static const struct tw_fields row_fields = TW_FIELDS_OF(ROW(id, "resumable_id"),
        ROW(project_id, "project_id"), ROW(key_id, "key_id"), ROW(trace_id, "trace_id"),
        ROW(key, "idempotency_key"), ROW(bytes, "bytes"), ROW(arrived, "arrived"),
        ROW(pieces, "pieces"), ROW(expires_ms, "expires_ms"), ROW(metadata, "metadata"));

static enum tw_status not_found(struct tw_err *err)
{
	return tw_fail(err, TW_NOT_FOUND,
	        "no such upload: it was deleted, expired or never existed; start a new one");
}

static enum tw_status get(struct tw_db *db, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_resumable *ret, struct tw_err *err)
{
	int64_t now = 0;
	bool there = false;
	enum tw_status st = tw_cat_now(db, &now, err);

	if (st == TW_OK)
		st = tw_cat_get_row(db, &row_fields, a, ret, &there, err, /* primary key */
		        "SELECT {columns} FROM resumable WHERE project_id=? AND resumable_id=?"
		        " AND state<2 AND expires_ms>?",
		        "tti", project_id, id, now);
	return st == TW_OK && !there ? not_found(err) : st;
}

enum tw_status tw_catalogue_resumable_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = get(db, project_id, id, a, ret, err);
	tw_cat_done(c, db);
	return st;
}

static const struct tw_fields piece_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_resumable_piece, start, "start", NULL),
                TW_FIELD(struct tw_resumable_piece, bytes, "bytes", NULL),
                TW_FIELD(struct tw_resumable_piece, sha256, "sha256", NULL),
                TW_FIELD(struct tw_resumable_piece, object, "object", NULL));

enum tw_status tw_catalogue_resumable_pieces(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable_piece **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_RESUMABLE_PIECES + 1, &piece_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM resumable_piece WHERE project_id=? AND resumable_id=? ORDER "
	        "BY start",
	        "tt", project_id, id);
}

struct open_uploads {
	uint64_t n, bytes;
};

static const struct tw_fields open_fields = TW_FIELDS_OF(
        TW_FIELD(struct open_uploads, n, "", NULL), TW_FIELD(struct open_uploads, bytes, "", NULL));

enum tw_status tw_catalogue_resumable_refers_to(
        struct tw_catalogue *c, const char *object, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_read_int(c, &n, err, /* resumable_piece_by_object */
	        "SELECT 1 FROM resumable_piece WHERE object=?", "t", object);

	*ret = st != TW_OK || n != 0;
	return st;
}

enum tw_status tw_catalogue_resumables_open(
        struct tw_catalogue *c, uint64_t *ret_n, uint64_t *ret_bytes, struct tw_err *err)
{
	struct open_uploads open = {0};
	enum tw_status st = tw_cat_read_row(c, &open_fields, NULL, &open, NULL,
	        err, /* resumable_open: as many as keys may have open */
	        "SELECT count(*), coalesce(sum(arrived),0) FROM resumable WHERE state=0", "");

	*ret_n = open.n;
	*ret_bytes = open.bytes;
	return st;
}

/* --- creation --- */

static enum tw_status check_limits(struct tw_db *db, const struct tw_resumable *u,
        const struct tw_resumable_limits *limits, int64_t now, struct tw_err *err)
{
	struct open_uploads open = {0};
	enum tw_status st =
	        tw_cat_get_row(db, &open_fields, NULL, &open, NULL, err, /* resumable_open */
	                "SELECT count(*), coalesce(sum(bytes),0) FROM resumable WHERE project_id=?"
	                " AND key_id=? AND state=0 AND expires_ms>?",
	                "tti", u->project_id, u->key_id, now);

	if (st == TW_OK && open.n >= limits->count)
		st = tw_fail(err, TW_RATE,
		        "%" PRIu64
		        " uploads of this key are incomplete; complete or delete one first",
		        open.n);
	else if (st == TW_OK && (u->bytes > limits->bytes || open.bytes > limits->bytes - u->bytes))
		st = tw_fail(err, TW_RATE,
		        "this key's unfinished uploads may have %" PRIu64
		        " bytes together; finish or delete one first",
		        limits->bytes);
	return st;
}

/* One at a time per project, so that two servers do not use the same quota. */
static enum tw_status lock_project(
        struct tw_db *db, const char *project_id, int64_t *ret_now, struct tw_err *err)
{
	enum tw_status st;

	if (!db->engine->is_shared)
		return tw_cat_now(db, ret_now, err);
	*ret_now = 0;
	st = tw_cat_get_int(db, ret_now, err, /* primary key */
	        "SELECT " TW_CAT_DATABASE_MS " FROM project WHERE project_id=? FOR NO KEY UPDATE",
	        "t", project_id);
	return st == TW_OK && *ret_now == 0 ? tw_fail(err, TW_NOT_FOUND, "no such project") : st;
}

enum tw_status tw_catalogue_resumable_add(struct tw_catalogue *c, struct tw_resumable *u,
        const struct tw_resumable_limits *limits, struct tw_err *err)
{
	int64_t now = 0;
	struct tw_db *db;
	enum tw_status st = begin_with(c, IDLE_TIMEOUT, &db, err);

	if (st != TW_OK)
		return st;
	st = lock_project(db, u->project_id, &now, err);
	u->expires_ms = now + limits->keep_ms;
	if (st == TW_OK)
		st = check_limits(db, u, limits, now, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO resumable(project_id,resumable_id,key_id,idempotency_key,"
		        "metadata,bytes,expires_ms) VALUES(?,?,?,?,?,?,?)",
		        "tttttii", u->project_id, u->id, u->key_id, u->key, u->metadata,
		        (int64_t)u->bytes, u->expires_ms);
	return end(c, db, st, err);
}

/* --- holds --- */

static enum tw_status hold(struct tw_db *db, const struct tw_resumable_hold *h, int64_t lease_ms,
        struct tw_arena *a, struct tw_resumable *ret, struct tw_err *err)
{
	int64_t now = 0;
	int changed = 0;
	enum tw_status st = tw_cat_now(db, &now, err);

	if (st == TW_OK)
		st = tw_cat_exec(db, &changed, err, /* primary key */
		        "UPDATE resumable SET owner=?, until_ms=? WHERE project_id=? AND"
		        " resumable_id=? AND state<2 AND expires_ms>? AND (until_ms<=? OR"
		        " until_ms>?)",
		        "tittiii", h->owner, now + lease_ms, h->project_id, h->id, now, now,
		        now + HOLD_MOST_MS);
	if (st == TW_OK)
		st = get(db, h->project_id, h->id, a, ret, err);
	/* a trace's upload is not written: its pieces may be being deleted */
	if (st == TW_OK && !changed && !ret->trace_id[0])
		st = tw_fail(err, TW_LOCKED,
		        "another request is writing this upload; retry in a moment");
	return st;
}

enum tw_status tw_catalogue_resumable_hold(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, int64_t lease_ms, struct tw_arena *a,
        struct tw_resumable *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = begin_lightly(c, &db, err);

	return st == TW_OK ? end(c, db, hold(db, h, lease_ms, a, ret, err), err) : st;
}

static enum tw_status renew_one(struct tw_catalogue *c, const struct tw_resumable_hold *h,
        int64_t lease_ms, struct tw_err *err)
{
	int64_t now = 0;
	struct tw_db *db;
	enum tw_status st = begin_lightly(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(db, &now, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE resumable SET until_ms=?" OF_HOLD, "ittt", now + lease_ms,
		        h->project_id, h->id, h->owner);
	return end(c, db, st, err);
}

/* A row locked by a write must not make the other holds expire. */
enum tw_status tw_catalogue_resumables_renew(struct tw_catalogue *c,
        const struct tw_resumable_hold *holds, size_t n, int64_t lease_ms, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	struct tw_err why;

	for (size_t i = 0; i < n; i++) {
		enum tw_status of_one = renew_one(c, &holds[i], lease_ms, &why);

		if (of_one == TW_OK)
			continue;
		st = of_one;
		tw_err_copy(err, &why);
	}
	return st;
}

static enum tw_status lost(struct tw_err *err)
{
	return tw_fail(
	        err, TW_LOCKED, "another server continued this upload; get its offset with HEAD");
}

/* --- changes under a hold --- */

static enum tw_status advance(struct tw_db *db, const struct tw_resumable_hold *h,
        const struct tw_resumable_piece *p, int64_t until_ms, int64_t expires_ms,
        struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err, /* primary key */
	        "UPDATE resumable SET arrived=arrived+?, pieces=pieces+1, until_ms=?,"
	        " expires_ms=?" OF_HOLD " AND state=0 AND arrived=? AND bytes-arrived>=?",
	        "iiitttii", (int64_t)p->bytes, until_ms, expires_ms, h->project_id, h->id, h->owner,
	        (int64_t)p->start, (int64_t)p->bytes);

	if (st == TW_OK && !changed)
		return lost(err);
	if (st == TW_OK && until_ms == 0)
		st = tw_cat_exec(db, NULL, err, "UPDATE resumable SET owner=''" OF_HOLD, "ttt",
		        h->project_id, h->id, h->owner);
	return st;
}

/* A sweep would take a piece written long before its row for an orphan. */
static enum tw_status check_hold(
        struct tw_db *db, const struct tw_resumable_hold *h, int64_t now, struct tw_err *err)
{
	int64_t held = 0;
	enum tw_status st = tw_cat_get_int(db, &held, err, /* primary key */
	        "SELECT 1 FROM resumable" OF_HOLD " AND until_ms>?", "ttti", h->project_id, h->id,
	        h->owner, now - HOLD_AGE_MS);

	return st == TW_OK && !held ? lost(err) : st;
}

enum tw_status tw_catalogue_resumable_append(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const struct tw_resumable_piece *p, int64_t lease_ms,
        int64_t keep_ms, struct tw_err *err)
{
	int64_t now = 0;
	struct tw_db *db;
	enum tw_status st = begin(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(db, &now, err);
	if (st == TW_OK)
		st = check_hold(db, h, now, err);
	if (st == TW_OK)
		st = advance(db, h, p, lease_ms ? now + lease_ms : 0, now + keep_ms, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, "INSERT INTO resumable_piece VALUES(?,?,?,?,?,?)",
		        "ttiitt", h->project_id, h->id, (int64_t)p->start, (int64_t)p->bytes,
		        p->sha256, p->object);
	return end(c, db, st, err);
}

static enum tw_status done(struct tw_db *db, const struct tw_resumable_hold *h,
        const char *trace_id, int64_t keep_ms, struct tw_err *err)
{
	int64_t now = 0, same = 0;
	int changed = 0;
	enum tw_status st = tw_cat_now(db, &now, err);

	if (st == TW_OK)
		st = tw_cat_exec(db, &changed, err, /* primary key */
		        "UPDATE resumable SET state=1, trace_id=?, expires_ms=?, owner='',"
		        " until_ms=0" OF_HOLD " AND state=0",
		        "tittt", trace_id, now + keep_ms, h->project_id, h->id, h->owner);
	if (st != TW_OK || changed)
		return st;
	st = tw_cat_get_int(db, &same, err, /* primary key */
	        "SELECT 1 FROM resumable WHERE project_id=? AND resumable_id=? AND trace_id=?",
	        "ttt", h->project_id, h->id, trace_id);
	return st == TW_OK && !same ? lost(err) : st;
}

enum tw_status tw_catalogue_resumable_done(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const char *trace_id, int64_t keep_ms,
        struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = begin(c, &db, err);

	return st == TW_OK ? end(c, db, done(db, h, trace_id, keep_ms, err), err) : st;
}

enum tw_status tw_catalogue_resumable_drop(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err)
{
	int changed = 0;
	struct tw_db *db;
	enum tw_status st = begin(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(db, &changed, err, /* primary key */
	        "UPDATE resumable SET state=2, owner='', until_ms=0" OF_HOLD, "ttt", h->project_id,
	        h->id, h->owner);
	if (st == TW_OK && !changed)
		st = lost(err);
	return end(c, db, st, err);
}

enum tw_status tw_catalogue_resumable_release(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = begin_lightly(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE resumable SET owner='', until_ms=0" OF_HOLD, "ttt", h->project_id, h->id,
	        h->owner);
	return end(c, db, st, err);
}

/* --- deletion --- */

static const struct tw_fields unclean_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_resumable_hold, project_id, "project_id", NULL),
                TW_FIELD(struct tw_resumable_hold, id, "resumable_id", NULL));

/* Expired ones are counted once, by the server that marks them. */
static enum tw_status take_unclean(struct tw_db *db, struct tw_resumable_hold *io, int64_t now,
        int64_t lease_ms, bool *ret_expired, struct tw_err *err)
{
	bool found = false;
	int changed = 0, expired = 0;
	enum tw_status st =
	        tw_cat_get_row(db, &unclean_fields, NULL, io, &found, err, /* resumable_to_clean */
	                "SELECT {columns} FROM resumable WHERE state>0 AND (state=2 OR"
	                " pieces>0) AND until_ms<=? AND until_ms<=? LIMIT 1",
	                "ii", now, now);

	if (st == TW_OK && !found)
		st = tw_cat_get_row(db, &unclean_fields, NULL, io, &found,
		        err, /* resumable_by_end */
		        "SELECT {columns} FROM resumable WHERE expires_ms<=? AND"
		        " until_ms<=? ORDER BY expires_ms LIMIT 1",
		        "ii", now, now);
	if (st == TW_OK && found) /* primary key */
		st = tw_cat_exec(db, &expired, err,
		        "UPDATE resumable SET state=2 WHERE project_id=? AND resumable_id=? AND"
		        " state=0 AND expires_ms<=? AND until_ms<=?",
		        "ttii", io->project_id, io->id, now, now);
	if (st == TW_OK && found) /* primary key */
		st = tw_cat_exec(db, &changed, err,
		        "UPDATE resumable SET owner=?, until_ms=? WHERE project_id=? AND"
		        " resumable_id=? AND until_ms<=? AND (state>0 OR expires_ms<=?)",
		        "tittii", io->owner, now + lease_ms, io->project_id, io->id, now, now);
	*ret_expired = expired > 0;
	return st == TW_OK && !changed ? tw_fail(err, TW_NOT_FOUND, "none") : st;
}

enum tw_status tw_catalogue_resumable_clean(struct tw_catalogue *c, struct tw_resumable_hold *io,
        int64_t lease_ms, bool *ret_expired, struct tw_err *err)
{
	int64_t now = 0;
	struct tw_db *db;
	enum tw_status st = begin(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_now(db, &now, err);
	if (st == TW_OK)
		st = take_unclean(db, io, now, lease_ms, ret_expired, err);
	return end(c, db, st, err);
}

static enum tw_status cleaned(
        struct tw_db *db, const struct tw_resumable_hold *h, struct tw_err *err)
{
	int64_t now = 0;
	int mine = 0;
	enum tw_status st = tw_cat_now(db, &now, err);

	if (st == TW_OK) /* primary key, as of all that follow */
		st = tw_cat_exec(db, &mine, err,
		        "UPDATE resumable SET pieces=0, owner='', until_ms=0 WHERE project_id=? AND"
		        " resumable_id=? AND (state>0 OR expires_ms<=?)",
		        "tti", h->project_id, h->id, now);
	/* otherwise the upload is no longer written to, whichever server deletes its pieces */
	if (st == TW_OK && !mine)
		return lost(err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM resumable_piece WHERE project_id=? AND resumable_id=?", "tt",
		        h->project_id, h->id);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM resumable WHERE project_id=? AND resumable_id=? AND (state=2"
		        " OR expires_ms<=?)",
		        "tti", h->project_id, h->id, now);
	return st;
}

enum tw_status tw_catalogue_resumable_cleaned(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = begin(c, &db, err);

	return st == TW_OK ? end(c, db, cleaned(db, h, err), err) : st;
}
