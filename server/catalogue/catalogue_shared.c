/* catalogue_shared.c - a catalogue shared by several servers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/db/catalogue_postgres.h"

enum { LEAD_MOST_MS = 5 * 60 * 1000 }; /* more than any lease */
enum { PATH_BYTES = 1500 };

enum tw_status tw_catalogue_identity(
        struct tw_catalogue *c, char *ret, size_t cap, struct tw_err *err)
{
	return tw_cat_read_text(c, ret, cap, err, "SELECT identity FROM catalogue_identity", "");
}

static enum tw_status other_folder(struct tw_err *err)
{
	return tw_fail(err, TW_CONFLICT,
	        "this catalogue's files are in another data folder (its id is in catalogue.url) or "
	        "in another store: files not found here would be decoded again or counted as "
	        "missing");
}

enum tw_status tw_catalogue_may_have_folder(
        struct tw_catalogue *c, const char *folder, const char *instead, struct tw_err *err)
{
	int64_t may = 0;
	enum tw_status st = tw_cat_read_int(c, &may, err,
	        "SELECT count(*) FROM catalogue_identity WHERE folder IN ('',?1,?2)", "tt", folder,
	        instead);

	return st == TW_OK && !may ? other_folder(err) : st;
}

enum tw_status tw_catalogue_take_folder(
        struct tw_catalogue *c, const char *folder, const char *instead, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ACCESS, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err,
		        "UPDATE catalogue_identity SET folder=?1 WHERE folder IN ('',?1,?2)", "tt",
		        folder, instead);
	if (st == TW_OK && changed == 0)
		st = other_folder(err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_hold_file(const char *path, int *ret_fd, struct tw_err *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[PATH_BYTES];
	enum tw_status st;
	int fd;

	if (snprintf(name, sizeof name, "%s.lock", path) >= (int)sizeof name)
		return tw_fail(err, TW_BAD_REQUEST, "the data folder's path is too long");
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "%.120s cannot be opened", name);
	if (fcntl(fd, F_SETLK, &lock) == 0) {
		*ret_fd = fd;
		return TW_OK;
	}
	st = errno == EACCES || errno == EAGAIN
	             ? TW_BUSY
	             : tw_fail_errno(err, TW_IO, "%.120s cannot be locked", name);
	(void)close(fd);
	return st;
}

enum tw_status tw_cat_hold_folder(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (c->serve_lock < 0)
		st = tw_catalogue_hold_file(c->path, &c->serve_lock, err);
	return st == TW_BUSY ? tw_fail(err, TW_BUSY,
	                               "a server or backup uses this data folder: stop it or wait, "
	                               "or start this server with a different data folder")
	                     : st;
}

enum tw_status tw_catalogue_serve(struct tw_catalogue *c, bool several, struct tw_err *err)
{
	enum tw_status st;

	if (tw_cat_is_sqlite(c))
		return several ? tw_fail(err, TW_BAD_REQUEST,
		                         "--several-servers requires a catalogue in PostgreSQL")
		               : tw_cat_hold_folder(c, err);
	st = tw_cat_postgres_hold(c->writers[0].db, !several, err);
	if (st == TW_BUSY && tw_postgres_is_migrated(c->writers[0].db))
		return st;
	if (st == TW_BUSY && !several)
		return tw_fail(err, TW_BUSY,
		        "another server uses this catalogue, or it does not respond: stop it, or "
		        "start all servers with --several-servers");
	if (st == TW_BUSY)
		return tw_fail(err, TW_BUSY,
		        "a server started without --several-servers uses this catalogue, or it "
		        "does not respond");
	c->shared = several && st == TW_OK;
	if (c->shared) /* the lock of an only server is held by one connection */
		tw_cat_writers_widen(c);
	return st;
}

void tw_catalogue_only_while(bool (*there)(void *arg), void *arg)
{
	static _Thread_local struct tw_cat_gate gate;

	gate = (struct tw_cat_gate){there, arg};
	tw_cat_set_gate(there ? &gate : NULL);
}

enum tw_status tw_catalogue_is_served(struct tw_catalogue *c, bool *ret, struct tw_err *err)
{
	int64_t served = 0;
	enum tw_status st = TW_OK;

	if (!tw_cat_is_sqlite(c)) /* takes and releases the lock of tw_postgres_hold */
		st = tw_cat_read_int(c, &served, err,
		        "SELECT CASE WHEN pg_try_advisory_lock(1953977199, hashtext(identity)) THEN"
		        " NOT pg_advisory_unlock(1953977199, hashtext(identity)) ELSE true END"
		        " FROM catalogue_identity",
		        "");
	*ret = served != 0;
	return st;
}

/* A lease changes its owner once it has expired, or if its end is further ahead than any lease
 * lasts, as after a fail-over to a machine whose clock is behind. */
static enum tw_status take_lease(struct tw_db *db, const char *what, const char *owner,
        int64_t lease_ms, int *ret, struct tw_err *err)
{
	int64_t now = 0;
	enum tw_status st = tw_cat_now(db, &now, err);

	if (st != TW_OK)
		return st;
	return tw_cat_exec(db, ret, err, /* primary key */
	        "INSERT INTO catalogue_lead(what,owner,until_ms) VALUES(?1,?2,?3) ON CONFLICT(what)"
	        " DO UPDATE SET owner=excluded.owner, until_ms=excluded.until_ms WHERE"
	        " catalogue_lead.owner=?2 OR catalogue_lead.until_ms<=?4 OR"
	        " catalogue_lead.until_ms>?5",
	        "ttiii", what, owner, now + lease_ms, now, now + LEAD_MOST_MS);
}

/* Not on the writer's connection, which may be busy for long; and losing a lease in a fail-over is
 * harmless, so it waits for no disk and no replica. */
static enum tw_status take_lease_async(struct tw_db *db, const char *what, const char *owner,
        int64_t lease_ms, int *ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_postgres_begin_unlocked(
	        db, " SET LOCAL lock_timeout='2s'; SET LOCAL synchronous_commit=off", err);

	if (st == TW_OK)
		st = take_lease(db, what, owner, lease_ms, ret, err);
	return st == TW_OK ? tw_db_run(db, "COMMIT", err) : st;
}

enum tw_status tw_catalogue_take_lease(struct tw_catalogue *c, const char *what, const char *owner,
        int64_t lease_ms, bool *ret, struct tw_err *err)
{
	struct tw_db *db;
	int mine = 0;
	enum tw_status st;

	*ret = true;
	if (!tw_catalogue_is_shared(c))
		return TW_OK;
	*ret = false;
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = take_lease_async(db, what, owner, lease_ms, &mine, err);
	tw_cat_done(c, db); /* rolls back an open transaction */
	*ret = st == TW_OK && mine > 0;
	return st;
}

enum tw_status tw_catalogue_unless_used(struct tw_catalogue *c, const char *sha256,
        enum tw_status (*drop)(void *arg, const char *sha256, struct tw_err *err), void *arg,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_arena *a = tw_arena_new(1 << 12);
	const char **unused = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_cat_begin(c, TW_SUBJECT_CONTENT, sha256, &w, err) : tw_oom(err);

	if (st == TW_OK) {
		st = tw_cat_unused_blobs(w, &sha256, 1, a, &unused, &n, err);
		if (st == TW_OK && n)
			st = tw_cat_may_idle(w, err);
		if (st == TW_OK && n)
			st = drop(arg, sha256, err);
		st = tw_cat_end(c, w, st, err);
	}
	tw_arena_free(a);
	return st;
}

/* --- counters ---
 *
 * Every upload and deletion changes the number of its build's traces, and uploads by a capture rule
 * that of the rule.  In PostgreSQL all of them would wait for each other at that row, so a change
 * is a row of count_delta, which readers add to the counter.  One server adds them up.
 */
enum { SUMMED_AT_ONCE = 10000 };

#define TAKE(counter)                                                                              \
	"WITH of_these AS (SELECT ctid AS at FROM count_delta WHERE counter=" counter              \
	" LIMIT ? FOR UPDATE SKIP LOCKED), taken AS (DELETE FROM count_delta WHERE ctid IN"        \
	" (SELECT at FROM of_these) RETURNING project_id, name, day, traces, devices), sums AS"    \
	" (SELECT project_id, name, day, sum(traces) AS traces, sum(devices) AS devices FROM"      \
	" taken GROUP BY 1, 2, 3) "

static enum tw_status sum(struct tw_db *db, int *ret_n, struct tw_err *err)
{
	int builds = 0, rules = 0;
	enum tw_status st = tw_cat_exec(db, &builds, err,
	        TAKE("0") "UPDATE build SET traces=build.traces+sums.traces FROM sums WHERE"
	                  " build.project_id=sums.project_id AND build.build_id=sums.name",
	        "i", (int64_t)SUMMED_AT_ONCE);

	if (st == TW_OK)
		st = tw_cat_exec(db, &rules, err,
		        TAKE("1") "INSERT INTO capture_day(project_id,rule,day,traces,devices)"
		                  " SELECT project_id,name,day,traces,devices FROM sums ON CONFLICT"
		                  " (project_id,rule,day) DO UPDATE SET"
		                  " traces=capture_day.traces+excluded.traces,"
		                  " devices=capture_day.devices+excluded.devices",
		        "i", (int64_t)SUMMED_AT_ONCE);
	*ret_n = builds + rules;
	return st;
}

enum tw_status tw_catalogue_counts_add(struct tw_catalogue *c, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t any = 0;
	int n = 1;
	enum tw_status st = tw_cat_is_sqlite(c) ? TW_OK
	                                        : tw_cat_read_int(c, &any, err, /* primary key */
	                                                  "SELECT 1 FROM count_delta LIMIT 1", "");

	while (st == TW_OK && any && n > 0) {
		st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);
		if (st == TW_OK)
			st = tw_cat_end(c, w, sum(w, &n, err), err);
	}
	return st;
}
