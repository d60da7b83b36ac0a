/*
 * catalogue.c - opening, connections and statements.
 *
 * WAL with synchronous=FULL: a committed transaction survives power loss, and
 * readers go on while one writes.
 */
#include "catalogue_internal.h"

#include <stdarg.h>
#include <string.h>

#include "catalogue_sums.h"

enum { BUSY_MS = 10000 };

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

void tw_cat_reserve_room(sqlite3 *db)
{
	int room = TW_SUMS_BYTES;

	(void)sqlite3_file_control(db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &room);
}

int tw_cat_room(sqlite3 *db)
{
	int room = -1;

	(void)sqlite3_exec(db, "PRAGMA schema_version", NULL, NULL, NULL); /* reads the header */
	(void)sqlite3_file_control(db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &room);
	return room;
}

static enum tw_status connect(
        struct tw_catalogue *c, int mode, sqlite3 **ret, int *ret_room, struct tw_err *err)
{
	const int flags = mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	sqlite3 *db = NULL;
	enum tw_status st;

	if (sqlite3_open_v2(c->path, &db, flags, TW_CAT_VFS) != SQLITE_OK) {
		st = tw_cat_fail(db, err);
		(void)sqlite3_close(db);
		return st;
	}
	(void)sqlite3_busy_timeout(db, BUSY_MS);
	*ret_room = tw_cat_room(db);
	tw_cat_reserve_room(db);
	if (sqlite3_exec(db,
	            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
	            "PRAGMA trusted_schema=OFF; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY;"
	            "PRAGMA wal_autocheckpoint=4000", /* 16 MB: 200 uploads one by one */
	            NULL, NULL, NULL) != SQLITE_OK) {
		st = tw_cat_fail(db, err);
		(void)sqlite3_close(db);
		return st;
	}
	*ret = db;
	return TW_OK;
}

enum tw_status tw_catalogue_open(const char *path, struct tw_catalogue **ret, struct tw_err *err)
{
	struct tw_catalogue *c = tw_mem_zalloc(1, sizeof *c);
	int room = 0;
	enum tw_status st;

	if (!c)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to open the catalogue");
	(void)pthread_mutex_init(&c->write_lock, NULL);
	(void)pthread_mutex_init(&c->pool_lock, NULL);
	(void)pthread_mutex_init(&c->arrivals.lock, NULL);
	(void)pthread_cond_init(&c->arrivals.changed, NULL);
	c->arrivals.last = &c->arrivals.first;
	tw_fair_init(&c->fair);
	c->path = tw_mem_alloc(strlen(path) + 1, 1);
	if (!c->path) {
		tw_catalogue_close(c);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to open the catalogue");
	}
	memcpy(c->path, path, strlen(path) + 1);
	tw_cat_need_vfs();
	st = connect(c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &c->writer, &room, err);
	if (st == TW_OK)
		st = tw_cat_upgrade(c, room, err);
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
	for (int i = 0; i < TW_KEPT_N; i++)
		(void)sqlite3_finalize(c->arrivals.kept[i]);
	(void)sqlite3_close(c->writer);
	(void)pthread_mutex_destroy(&c->write_lock);
	(void)pthread_mutex_destroy(&c->pool_lock);
	(void)pthread_mutex_destroy(&c->arrivals.lock);
	(void)pthread_cond_destroy(&c->arrivals.changed);
	tw_fair_done(&c->fair);
	tw_mem_free(c->path);
	tw_mem_free(c);
	return NULL;
}

enum tw_status tw_cat_begin_as(struct tw_catalogue *c, const char *sql, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&c->write_lock);
	if (sqlite3_exec(c->writer, sql, NULL, NULL, NULL) == SQLITE_OK)
		return TW_OK;
	st = tw_cat_fail(c->writer, err);
	(void)pthread_mutex_unlock(&c->write_lock);
	return st;
}

enum tw_status tw_cat_begin(struct tw_catalogue *c, struct tw_err *err)
{
	return tw_cat_begin_as(c, "BEGIN IMMEDIATE", err);
}

void tw_catalogue_stop_record(struct tw_catalogue *c)
{
	c->unrecorded = true;
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

enum tw_status tw_cat_reader_new(struct tw_catalogue *c, sqlite3 **ret, struct tw_err *err)
{
	int room;

	/* read-write, because the last reader of a WAL may have to recover it; only SELECTs run */
	return connect(c, SQLITE_OPEN_READWRITE, ret, &room, err);
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
	return tw_cat_reader_new(c, ret, err);
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

/* They outlive the query: nothing is copied. */
static void bind_bytes(struct tw_cat_query *q, int at, const struct tw_str *bytes)
{
	(void)sqlite3_bind_blob64(
	        q->stmt, at, bytes->len ? bytes->ptr : "", bytes->len, SQLITE_STATIC);
}

static void bind_all(struct tw_cat_query *q, const char *types, va_list ap)
{
	for (int at = 1; *types; types++, at++) {
		if (*types == 't')
			tw_cat_bind_text(q, at, va_arg(ap, const char *));
		else if (*types == 'i')
			tw_cat_bind_int(q, at, va_arg(ap, int64_t));
		else if (*types == 'b')
			bind_bytes(q, at, va_arg(ap, const struct tw_str *));
		else
			(void)sqlite3_bind_blob(
			        q->stmt, at, va_arg(ap, const uint8_t *), 32, SQLITE_TRANSIENT);
	}
}

static enum tw_status prepare(struct tw_cat_query *q, sqlite3 *db, sqlite3_stmt **kept,
        const char *sql, struct tw_err *err)
{
	*q = (struct tw_cat_query){
	        .db = db, .kept = kept, .stmt = kept ? *kept : NULL, .rc = SQLITE_OK};
	if (!q->stmt && sqlite3_prepare_v3(db, sql, -1, kept ? SQLITE_PREPARE_PERSISTENT : 0,
	                        &q->stmt, NULL) != SQLITE_OK)
		return tw_cat_fail(db, err);
	if (kept)
		*kept = q->stmt;
	return TW_OK;
}

enum tw_status tw_cat_query(struct tw_cat_query *q, sqlite3 *db, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	enum tw_status st = prepare(q, db, NULL, sql, err);
	va_list ap;

	va_start(ap, types);
	if (st == TW_OK)
		bind_all(q, types, ap);
	va_end(ap);
	return st;
}

enum tw_status tw_cat_query_kept(struct tw_cat_query *q, sqlite3 *db, sqlite3_stmt **kept,
        struct tw_err *err, const char *sql, const char *types, ...)
{
	enum tw_status st = prepare(q, db, kept, sql, err);
	va_list ap;

	va_start(ap, types);
	if (st == TW_OK)
		bind_all(q, types, ap);
	va_end(ap);
	return st;
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

	if (q->kept) {
		(void)sqlite3_reset(q->stmt);
		(void)sqlite3_clear_bindings(q->stmt);
	} else {
		(void)sqlite3_finalize(q->stmt);
	}
	q->stmt = NULL;
	return st;
}

enum tw_status tw_cat_close_after(struct tw_cat_query *q, enum tw_status st, struct tw_err *err)
{
	enum tw_status ended = tw_cat_close(q, st == TW_OK ? err : NULL);

	return st == TW_OK ? ended : st;
}

enum tw_status tw_cat_first_int(
        sqlite3 *db, int64_t *io, struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_cat_query q;
	enum tw_status st = prepare(&q, db, NULL, sql, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	bind_all(&q, types, ap);
	va_end(ap);
	if (tw_cat_row(&q))
		*io = tw_cat_int(&q, 0);
	return tw_cat_close(&q, err);
}

static enum tw_status read_list(struct tw_cat_query *q, struct tw_cat_list *l, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && l->n < l->limit && tw_cat_row(q))
		if (!l->read(q, l->arena, (char *)l->rows + l->n++ * l->row_bytes))
			st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	return tw_cat_close_after(q, st, err);
}

enum tw_status tw_cat_list(struct tw_catalogue *c, struct tw_cat_list *l, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q;
	sqlite3 *db = NULL;
	enum tw_status st;
	va_list ap;

	l->n = 0;
	l->rows = tw_arena_alloc(l->arena, l->limit, l->row_bytes);
	if (!l->rows)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = prepare(&q, db, NULL, sql, err);
	va_start(ap, types);
	if (st == TW_OK)
		bind_all(&q, types, ap);
	va_end(ap);
	if (st == TW_OK)
		st = read_list(&q, l, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status run_to_end(struct tw_cat_query *q, struct tw_err *err)
{
	while (tw_cat_row(q))
		continue;
	return tw_cat_close(q, err);
}

enum tw_status tw_cat_exec(
        sqlite3 *db, int *ret_changed, struct tw_err *err, const char *sql, const char *types, ...)
{
	struct tw_cat_query q;
	enum tw_status st = prepare(&q, db, NULL, sql, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	bind_all(&q, types, ap);
	va_end(ap);
	st = run_to_end(&q, err);
	if (st == TW_OK && ret_changed)
		*ret_changed = sqlite3_changes(db);
	return st;
}

enum tw_status tw_cat_exec_kept(sqlite3 *db, sqlite3_stmt **kept, struct tw_err *err,
        const char *sql, const char *types, ...)
{
	struct tw_cat_query q;
	enum tw_status st = prepare(&q, db, kept, sql, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, types);
	bind_all(&q, types, ap);
	va_end(ap);
	return run_to_end(&q, err);
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

static enum tw_status is_there(struct tw_catalogue *c, const char *sql, const char *trace_id,
        bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	sqlite3 *db = NULL;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, sql, "t", trace_id); /* trace_by_id */
	if (st == TW_OK) {
		*ret = tw_cat_row(&q);
		st = tw_cat_close(&q, err);
	}
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_has_trace(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	return is_there(c, "SELECT 1 FROM trace WHERE trace_id=?", trace_id, ret, err);
}

enum tw_status tw_catalogue_has_decoded(
        struct tw_catalogue *c, const char *trace_id, bool *ret, struct tw_err *err)
{
	return is_there(c, "SELECT 1 FROM trace WHERE trace_id=? AND state<>4", trace_id, ret, err);
}
