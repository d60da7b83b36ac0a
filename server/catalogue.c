/*
 * catalogue.c - opening, migrating, connections and statements.
 *
 * WAL with synchronous=FULL: a committed transaction survives power loss, and
 * readers go on while one writes.  Migrations are numbered files applied in
 * order by PRAGMA user_version, each in its own transaction.
 */
#include "catalogue_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "embedded.h"

extern const struct tw_embedded tw_catalogue_schema[];

enum { BUSY_MS = 10000 };

int64_t tw_cat_now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum tw_status tw_cat_fail(sqlite3 *db, struct tw_err *err)
{
	int rc = db ? sqlite3_errcode(db) & 0xFF : SQLITE_NOMEM;
	const char *why = db ? sqlite3_errmsg(db) : "out of memory";
	enum tw_status st = TW_IO;

	if (rc == SQLITE_FULL)
		st = TW_FULL;
	else if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		st = TW_BUSY;
	else if (rc == SQLITE_NOMEM)
		st = TW_NOMEM;
	else if (rc == SQLITE_MISUSE || rc == SQLITE_RANGE || rc == SQLITE_ERROR)
		st = TW_BUG;
	return tw_fail(err, st, TW_NO_OFFSET, "catalogue: %s", why);
}

static enum tw_status connect(struct tw_catalogue *c, int mode, sqlite3 **ret, struct tw_err *err)
{
	const int flags = mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	sqlite3 *db = NULL;
	enum tw_status st;

	if (sqlite3_open_v2(c->path, &db, flags, NULL) != SQLITE_OK) {
		st = tw_cat_fail(db, err);
		(void)sqlite3_close(db);
		return st;
	}
	(void)sqlite3_busy_timeout(db, BUSY_MS);
	if (sqlite3_exec(db,
	            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
	            "PRAGMA trusted_schema=OFF; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY",
	            NULL, NULL, NULL) != SQLITE_OK) {
		st = tw_cat_fail(db, err);
		(void)sqlite3_close(db);
		return st;
	}
	*ret = db;
	return TW_OK;
}

static enum tw_status schema_version(sqlite3 *db, int *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, "PRAGMA user_version", "");

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? (int)tw_cat_int(&q, 0) : 0;
	return tw_cat_close(&q, err);
}

static enum tw_status apply(struct tw_catalogue *c, int number, struct tw_err *err)
{
	char set[64];

	(void)snprintf(set, sizeof set, "PRAGMA user_version=%d", number + 1);
	if (sqlite3_exec(c->writer, (const char *)tw_catalogue_schema[number].data, NULL, NULL,
	            NULL) != SQLITE_OK ||
	        sqlite3_exec(c->writer, set, NULL, NULL, NULL) != SQLITE_OK)
		return tw_cat_fail(c->writer, err);
	return TW_OK;
}

/* Two processes may start at once: the version is read again under the write lock. */
static enum tw_status migrate(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);
	int known = 0;
	int have = 0;

	if (st != TW_OK)
		return st;
	while (tw_catalogue_schema[known].name)
		known++;
	st = schema_version(c->writer, &have, err);
	if (st == TW_OK && have > known)
		st = tw_fail(err, TW_UNSUPPORTED, TW_NO_OFFSET,
		        "the catalogue has schema %d, this program knows up to %d: it was written "
		        "by a newer tracewell",
		        have, known);
	for (int i = have; st == TW_OK && i < known; i++)
		st = apply(c, i, err);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_open(const char *path, struct tw_catalogue **ret, struct tw_err *err)
{
	struct tw_catalogue *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to open the catalogue");
	(void)pthread_mutex_init(&c->write_lock, NULL);
	(void)pthread_mutex_init(&c->pool_lock, NULL);
	(void)pthread_mutex_init(&c->arrivals.lock, NULL);
	(void)pthread_cond_init(&c->arrivals.changed, NULL);
	c->arrivals.last = &c->arrivals.first;
	c->path = tw_mem_alloc(strlen(path) + 1, 1);
	if (!c->path) {
		tw_catalogue_close(c);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to open the catalogue");
	}
	memcpy(c->path, path, strlen(path) + 1);
	st = connect(c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &c->writer, err);
	if (st == TW_OK)
		st = migrate(c, err);
	if (st == TW_OK)
		*ret = c;
	else
		tw_catalogue_close(c);
	return st;
}

struct tw_catalogue *tw_catalogue_close(struct tw_catalogue *c)
{
	if (!c)
		return NULL;
	for (unsigned i = 0; i < c->n_idle; i++)
		(void)sqlite3_close(c->idle[i]);
	(void)sqlite3_close(c->writer);
	(void)pthread_mutex_destroy(&c->write_lock);
	(void)pthread_mutex_destroy(&c->pool_lock);
	(void)pthread_mutex_destroy(&c->arrivals.lock);
	(void)pthread_cond_destroy(&c->arrivals.changed);
	tw_mem_free(c->path);
	tw_mem_free(c);
	return NULL;
}

enum tw_status tw_cat_begin(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&c->write_lock);
	if (sqlite3_exec(c->writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK)
		return TW_OK;
	st = tw_cat_fail(c->writer, err);
	(void)pthread_mutex_unlock(&c->write_lock);
	return st;
}

enum tw_status tw_cat_end(struct tw_catalogue *c, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && sqlite3_exec(c->writer, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		st = tw_cat_fail(c->writer, err);
	if (st != TW_OK)
		(void)sqlite3_exec(c->writer, "ROLLBACK", NULL, NULL, NULL);
	(void)pthread_mutex_unlock(&c->write_lock);
	return st;
}

enum tw_status tw_catalogue_ping(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(
	        c->writer, NULL, err, "UPDATE project SET name=name WHERE project_id=''", "");
	return tw_cat_end(c, st, err);
}

enum tw_status tw_cat_reader(struct tw_catalogue *c, sqlite3 **ret, struct tw_err *err)
{
	sqlite3 *db = NULL;

	(void)pthread_mutex_lock(&c->pool_lock);
	if (c->n_idle)
		db = c->idle[--c->n_idle];
	(void)pthread_mutex_unlock(&c->pool_lock);
	if (db) {
		*ret = db;
		return TW_OK;
	}
	/* read-write, because the last reader of a WAL may have to recover it; only SELECTs run */
	return connect(c, SQLITE_OPEN_READWRITE, ret, err);
}

void tw_cat_done(struct tw_catalogue *c, sqlite3 *db)
{
	(void)pthread_mutex_lock(&c->pool_lock);
	if (c->n_idle < TW_CATALOGUE_READERS) {
		c->idle[c->n_idle++] = db;
		db = NULL;
	}
	(void)pthread_mutex_unlock(&c->pool_lock);
	(void)sqlite3_close(db);
}

void tw_cat_bind_text(struct tw_cat_query *q, int at, const char *text)
{
	(void)sqlite3_bind_text(q->stmt, at, text ? text : "", -1, SQLITE_TRANSIENT);
}

void tw_cat_bind_int(struct tw_cat_query *q, int at, int64_t v)
{
	(void)sqlite3_bind_int64(q->stmt, at, v);
}

static void bind_all(struct tw_cat_query *q, const char *types, va_list ap)
{
	for (int at = 1; *types; types++, at++) {
		if (*types == 't')
			tw_cat_bind_text(q, at, va_arg(ap, const char *));
		else if (*types == 'i')
			tw_cat_bind_int(q, at, va_arg(ap, int64_t));
		else
			(void)sqlite3_bind_blob(
			        q->stmt, at, va_arg(ap, const uint8_t *), 32, SQLITE_TRANSIENT);
	}
}

static enum tw_status prepare(
        struct tw_cat_query *q, sqlite3 *db, const char *sql, struct tw_err *err)
{
	*q = (struct tw_cat_query){.db = db, .rc = SQLITE_OK};
	if (sqlite3_prepare_v2(db, sql, -1, &q->stmt, NULL) != SQLITE_OK)
		return tw_cat_fail(db, err);
	return TW_OK;
}

enum tw_status tw_cat_query(struct tw_cat_query *q, sqlite3 *db, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	enum tw_status st = prepare(q, db, sql, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	bind_all(q, types, ap);
	va_end(ap);
	return TW_OK;
}

bool tw_cat_row(struct tw_cat_query *q)
{
	q->rc = sqlite3_step(q->stmt);
	return q->rc == SQLITE_ROW;
}

enum tw_status tw_cat_close(struct tw_cat_query *q, struct tw_err *err)
{
	bool fine = q->rc == SQLITE_DONE || q->rc == SQLITE_ROW || q->rc == SQLITE_OK;
	enum tw_status st = fine ? TW_OK : tw_cat_fail(q->db, err);

	(void)sqlite3_finalize(q->stmt);
	q->stmt = NULL;
	return st;
}

enum tw_status tw_cat_close_after(struct tw_cat_query *q, enum tw_status st, struct tw_err *err)
{
	enum tw_status ended = tw_cat_close(q, st == TW_OK ? err : NULL);

	return st == TW_OK ? ended : st;
}

enum tw_status tw_cat_exec(
        sqlite3 *db, int *ret_changed, struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_cat_query q;
	enum tw_status st = prepare(&q, db, sql, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	bind_all(&q, types, ap);
	va_end(ap);
	while (tw_cat_row(&q))
		continue;
	st = tw_cat_close(&q, err);
	if (st == TW_OK && ret_changed)
		*ret_changed = sqlite3_changes(db);
	return st;
}

int64_t tw_cat_int(const struct tw_cat_query *q, int col)
{
	return sqlite3_column_int64(q->stmt, col);
}

const char *tw_cat_text(const struct tw_cat_query *q, int col, struct tw_arena *a)
{
	const char *p = (const char *)sqlite3_column_text(q->stmt, col);
	size_t len = (size_t)sqlite3_column_bytes(q->stmt, col);

	return tw_arena_str(a, (struct tw_str){p ? p : "", p ? len : 0});
}

static enum tw_status referred(sqlite3 *db, const char *sha256, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* part_by_content, build_by_* */
	        "SELECT 1 FROM part WHERE sha256=?1 UNION ALL"
	        " SELECT 1 FROM build WHERE map_sha256=?1 AND map_sha256<>'' UNION ALL"
	        " SELECT 1 FROM build WHERE source_sha256=?1 AND source_sha256<>'' UNION ALL"
	        " SELECT 1 FROM build WHERE retrace_sha256=?1 AND retrace_sha256<>''"
	        " UNION ALL SELECT 1 FROM build WHERE retrace_source_sha256=?1"
	        " AND retrace_source_sha256<>'' LIMIT 1",
	        "t", sha256);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q);
	return tw_cat_close(&q, err);
}

enum tw_status tw_cat_unused_blobs(sqlite3 *db, const char *const *sha256, size_t n,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err)
{
	const char **unused = tw_arena_alloc(a, n ? n : 1, sizeof *unused);
	size_t n_unused = 0;

	for (size_t i = 0; unused && i < n; i++) {
		bool used = false;
		enum tw_status st = referred(db, sha256[i], &used, err);

		if (st != TW_OK)
			return st;
		if (!used && sha256[i][0])
			unused[n_unused++] = sha256[i];
	}
	if (!unused)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	*ret = unused;
	*ret_n = n_unused;
	return TW_OK;
}

enum tw_status tw_catalogue_has_blob(
        struct tw_catalogue *c, const char *sha256, bool *ret, struct tw_err *err)
{
	sqlite3 *db = NULL;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = referred(db, sha256, ret, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	sqlite3 *db = NULL;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, "SELECT 1 FROM trace WHERE trace_id=?", "t", trace_id);
	if (st == TW_OK) { /* trace_by_id */
		*ret = tw_cat_row(&q);
		st = tw_cat_close(&q, err);
	}
	tw_cat_done(c, db);
	return st;
}
