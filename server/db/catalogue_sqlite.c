/*
 * catalogue_sqlite.c - SQLite as the catalogue's engine.
 *
 * WAL with synchronous=FULL: a committed transaction survives power loss, and readers are not
 * blocked by a writer.
 */
#include "server/db/catalogue_sqlite.h"

#include <string.h>
#include <strings.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/db/catalogue_sums.h"
#include "server/db/commit_gate.h"

enum { STATEMENTS_MAX = 48 };   /* statements per connection: most take 2 to 10 KB */
enum { OPS_PER_CHECK = 20000 }; /* instructions of SQLite's virtual machine: about a millisecond */

/* Cache of prepared statements that are not in use, the latest first.  Preparing a statement takes
 * longer than executing it, and every trace executes the same ones. */
struct statement_cache {
	sqlite3_stmt *of[STATEMENTS_MAX];
	size_t n;
};

struct sqlite_db {
	struct tw_db db;
	sqlite3 *of;
	struct statement_cache statement_cache;
};

struct sqlite_stmt {
	struct tw_stmt stmt;
	sqlite3_stmt *of;
	bool oom; /* memory ran out for a value, which is NULL or was read as NULL */
};

sqlite3 *tw_db_sqlite(struct tw_db *db)
{
	return ((struct sqlite_db *)db)->of;
}

static sqlite3_stmt *of(struct tw_stmt *s)
{
	return ((struct sqlite_stmt *)s)->of;
}

static enum tw_status fail(struct tw_db *db, struct tw_err *err)
{
	sqlite3 *s = db ? tw_db_sqlite(db) : NULL;
	int rc = s ? sqlite3_errcode(s) & 0xFF : SQLITE_NOMEM;
	const char *why = s ? sqlite3_errmsg(s) : "out of memory";
	enum tw_status st = TW_IO;

	if (rc == SQLITE_FULL)
		st = TW_FULL;
	else if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		st = TW_BUSY;
	else if (rc == SQLITE_CONSTRAINT) /* as in PostgreSQL: the row it refers to was deleted */
		st = TW_BUSY;
	else if (rc == SQLITE_NOMEM)
		st = TW_NOMEM;
	else if (rc == SQLITE_INTERRUPT)
		return tw_fail_overdue(err);
	else if (rc == SQLITE_MISUSE || rc == SQLITE_RANGE || rc == SQLITE_ERROR)
		st = TW_BUG;
	return tw_fail(err, st, "catalogue: %s", why);
}

static enum tw_status run(struct tw_db *db, const char *sql, struct tw_err *err)
{
	return sqlite3_exec(tw_db_sqlite(db), sql, NULL, NULL, NULL) == SQLITE_OK ? TW_OK
	                                                                          : fail(db, err);
}

static bool in_transaction(const struct tw_db *db)
{
	return !sqlite3_get_autocommit(((const struct sqlite_db *)db)->of);
}

static int64_t changed(const struct tw_db *db)
{
	return sqlite3_changes(((const struct sqlite_db *)db)->of);
}

static bool conflicts(const struct tw_db *db)
{
	(void)db; /* one transaction at a time */
	return false;
}

static void close_db(struct tw_db *db)
{
	struct statement_cache *k = &((struct sqlite_db *)db)->statement_cache;

	while (k->n)
		(void)sqlite3_finalize(k->of[--k->n]);
	(void)sqlite3_close(tw_db_sqlite(db));
	tw_mem_free(db);
}

/* --- statements --- */

/* Statements are short: comparing with all takes a fraction of preparing one. */
static sqlite3_stmt *take(struct statement_cache *k, const char *sql)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(sqlite3_sql(k->of[i]), sql) == 0) {
			sqlite3_stmt *found = k->of[i];

			k->n--;
			/* NOLINTNEXTLINE(bugprone-sizeof-expression) of pointers */
			memmove(k->of + i, k->of + i + 1, (k->n - i) * sizeof *k->of);
			return found;
		}
	return NULL;
}

static void keep(struct statement_cache *k, sqlite3_stmt *s)
{
	if (k->n == STATEMENTS_MAX)
		(void)sqlite3_finalize(k->of[--k->n]);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) of pointers */
	memmove(k->of + 1, k->of, k->n * sizeof *k->of);
	k->of[0] = s;
	k->n++;
}

static enum tw_status prepare(
        struct tw_db *db, const char *sql, struct tw_stmt **ret, struct tw_err *err)
{
	struct sqlite_stmt *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return fail(NULL, err);
	s->stmt.db = db;
	s->of = take(&((struct sqlite_db *)db)->statement_cache, sql);
	if (!s->of && sqlite3_prepare_v3(tw_db_sqlite(db), sql, -1, SQLITE_PREPARE_PERSISTENT,
	                      &s->of, NULL) != SQLITE_OK) {
		tw_mem_free(s);
		return fail(db, err);
	}
	*ret = &s->stmt;
	return TW_OK;
}

/* A statement that failed may have to be prepared again, so it is not cached. */
static void drop(struct tw_stmt *s)
{
	if (of(s) && sqlite3_reset(of(s)) == SQLITE_OK) {
		(void)sqlite3_clear_bindings(of(s));
		keep(&((struct sqlite_db *)s->db)->statement_cache, of(s));
	} else
		(void)sqlite3_finalize(of(s));
	tw_mem_free(s);
}

/* A parameter that could not be bound would be NULL, and change the query. */
static void note(struct tw_stmt *s, int rc)
{
	if (rc != SQLITE_OK)
		((struct sqlite_stmt *)s)->oom = true;
}

static void bind_text(struct tw_stmt *s, int at, const char *text)
{
	note(s, sqlite3_bind_text(of(s), at, text, -1, SQLITE_TRANSIENT));
}

static void bind_int(struct tw_stmt *s, int at, int64_t v)
{
	note(s, sqlite3_bind_int64(of(s), at, v));
}

static void bind_bytes(struct tw_stmt *s, int at, struct tw_str bytes, bool stays)
{
	note(s, sqlite3_bind_blob64(of(s), at, bytes.len ? bytes.ptr : "", bytes.len,
	                stays ? SQLITE_STATIC : SQLITE_TRANSIENT));
}

static enum tw_step step(struct tw_stmt *s)
{
	int rc;

	if (((struct sqlite_stmt *)s)->oom)
		return TW_STEP_FAILED;
	rc = sqlite3_step(of(s));
	if (rc == SQLITE_ROW)
		return TW_STEP_ROW;
	return rc == SQLITE_DONE ? TW_STEP_END : TW_STEP_FAILED;
}

static void reset(struct tw_stmt *s)
{
	(void)sqlite3_reset(of(s));
	(void)sqlite3_clear_bindings(of(s));
	((struct sqlite_stmt *)s)->oom = false;
}

static int64_t to_int(struct tw_stmt *s, int col)
{
	return sqlite3_column_int64(of(s), col);
}

static const char *to_text(struct tw_stmt *s, int col)
{
	const char *text = (const char *)sqlite3_column_text(of(s), col);

	if (!text && sqlite3_column_type(of(s), col) != SQLITE_NULL)
		((struct sqlite_stmt *)s)->oom = true;
	return text;
}

static struct tw_str to_bytes(struct tw_stmt *s, int col)
{
	const void *p = sqlite3_column_blob(of(s), col);

	if (!p && sqlite3_errcode(tw_db_sqlite(s->db)) == SQLITE_NOMEM)
		((struct sqlite_stmt *)s)->oom = true;
	return (struct tw_str){p ? p : "", p ? (size_t)sqlite3_column_bytes(of(s), col) : 0};
}

static bool oom(const struct tw_stmt *s)
{
	return ((const struct sqlite_stmt *)s)->oom;
}

static const struct tw_db_engine engine = {
        .name = "sqlite",
        .close = close_db,
        .run = run,
        .in_transaction = in_transaction,
        .changed = changed,
        .fail = fail,
        .conflicts = conflicts,
        .prepare = prepare,
        .drop = drop,
        .bind_text = bind_text,
        .bind_int = bind_int,
        .bind_bytes = bind_bytes,
        .step = step,
        .reset = reset,
        .oom = oom,
        .to_int = to_int,
        .to_text = to_text,
        .to_bytes = to_bytes,
};

/* --- connections --- */

/* Reserves space for checksums at the end of each page (catalogue_sums.h), in a new catalogue and
 * in a copy. */
static void reserve_sums_bytes(struct tw_db *db)
{
	int bytes = TW_SUMS_BYTES;

	(void)sqlite3_file_control(tw_db_sqlite(db), NULL, SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

/* The bytes reserved in its pages; 0 before there are any. */
static int reserved_of(struct tw_db *db)
{
	sqlite3 *s = tw_db_sqlite(db);
	int bytes = -1;

	(void)sqlite3_exec(s, "PRAGMA schema_version", NULL, NULL, NULL); /* reads the header */
	(void)sqlite3_file_control(s, NULL, SQLITE_FCNTL_RESERVE_BYTES, &bytes);
	return bytes;
}

/* Case is ignored (ASCII).  A word's ends are compared first, without the bit in which the cases of
 * a letter differ: few texts have both at the word's distance. */
static bool occurs(const char *text, size_t n, const char *word, size_t len)
{
	enum { CASE_BIT = 0x20 };
	const size_t last = len - 1;
	const int first = word[0] | CASE_BIT, end = word[last] | CASE_BIT;

	for (size_t i = 0; i + len <= n; i++)
		if ((text[i] | CASE_BIT) == first && (text[i + last] | CASE_BIT) == end &&
		        strncasecmp(text + i, word, len) == 0)
			return true;
	return false;
}

/* has_word(word, text...): 1 if the word occurs in one of the texts, ignoring case (ASCII).  A
 * quarter of the time of a LIKE for each. */
static void has_word(sqlite3_context *context, int n, sqlite3_value **values)
{
	const char *word = (const char *)sqlite3_value_text(values[0]);
	const size_t len = (size_t)sqlite3_value_bytes(values[0]);
	bool has = false;

	for (int i = 1; word && !has && i < n; i++) {
		const size_t text_len = (size_t)sqlite3_value_bytes(values[i]);
		const char *text =
		        text_len >= len ? (const char *)sqlite3_value_text(values[i]) : NULL;

		has = text && (len == 0 || occurs(text, text_len, word, len));
	}
	sqlite3_result_int(context, has);
}

/* Interrupts the statement. */
static int is_overdue(void *arg)
{
	(void)arg;
	return tw_work_is_overdue();
}

static enum tw_status connect(
        struct sqlite_db *s, const char *path, enum tw_db_open how, struct tw_err *err)
{
	static const int flags[] = {[TW_DB_CREATE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
	        [TW_DB_WRITE] = SQLITE_OPEN_READWRITE,
	        [TW_DB_READ_ONLY] = SQLITE_OPEN_READONLY};
	const int all = flags[how] | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;

	if (how != TW_DB_READ_ONLY)
		tw_cat_need_vfs();
	if (sqlite3_open_v2(path, &s->of, all, how == TW_DB_READ_ONLY ? NULL : TW_CAT_VFS) !=
	        SQLITE_OK)
		return fail(&s->db, err);
	(void)sqlite3_busy_timeout(s->of, TW_DB_WAIT_MS);
	sqlite3_progress_handler(s->of, OPS_PER_CHECK, is_overdue, NULL);
	if (sqlite3_create_function(s->of, "has_word", -1,
	            SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL, has_word, NULL,
	            NULL) != SQLITE_OK)
		return fail(&s->db, err);
	return TW_OK;
}

void tw_db_sqlite_wait(struct tw_db *db, int ms)
{
	(void)sqlite3_busy_timeout(tw_db_sqlite(db), ms);
}

static enum tw_status configure(struct tw_db *db, int *ret_reserved, struct tw_err *err)
{
	*ret_reserved = reserved_of(db);
	reserve_sums_bytes(db);
	return run(db,
	        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
	        "PRAGMA trusted_schema=OFF; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY;"
	        "PRAGMA wal_autocheckpoint=4000", /* 16 MB: 200 single uploads */
	        err);
}

enum tw_status tw_db_sqlite_open(const char *path, enum tw_db_open how, struct tw_db **ret,
        int *ret_reserved, struct tw_err *err)
{
	struct sqlite_db *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s)
		return fail(NULL, err);
	s->db.engine = &engine;
	st = connect(s, path, how, err);
	if (st == TW_OK && ret_reserved)
		st = configure(&s->db, ret_reserved, err);
	if (st == TW_OK)
		*ret = &s->db;
	else
		close_db(&s->db);
	return st;
}
