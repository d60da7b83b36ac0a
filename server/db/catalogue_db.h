/*
 * catalogue_db.h - a connection to the catalogue's database and its statements, whatever engine
 * keeps them.
 *
 * An engine fills a struct tw_db_engine (catalogue_sqlite.c, catalogue_postgres.c).  Its own
 * structs begin with struct tw_db and struct tw_stmt.  SQL is written once, in what both know; what
 * catalogue_postgres_dialect.h lists is turned, and the rest is given in both by TW_EITHER.  A
 * connection and its statements belong to one thread at a time.  Places of values count from 1 and
 * are written ?1, ?2 or ? in order; columns count from 0.  Text is UTF-8.
 */
#ifndef TW_CATALOGUE_DB_H
#define TW_CATALOGUE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

struct tw_db_engine;

struct tw_db {
	const struct tw_db_engine *engine;
	/* Another wherever a connection that was lost is made anew: what was the session's is gone.
	 * 0: none is ever lost. */
	uint64_t session;
};

struct tw_stmt {
	struct tw_db *db;
};

enum tw_step {
	TW_STEP_NEW, /* not stepped yet */
	TW_STEP_ROW,
	TW_STEP_END,
	TW_STEP_FAILED
};

struct tw_db_engine {
	const char *name;
	bool has_clock; /* that goes for all who ask it */
	void (*close)(struct tw_db *db);
	/* Statements without values and rows, one or several. */
	enum tw_status (*run)(struct tw_db *db, const char *sql, struct tw_err *err);
	/* Is a transaction open?  Some failures end one. */
	bool (*in_transaction)(const struct tw_db *db);
	/* How many rows the last statement changed. */
	int64_t (*changed)(const struct tw_db *db);
	/* TW_FULL, TW_BUSY, TW_NOMEM, TW_CORRUPT, TW_IO or TW_BUG by what failed last; NULL: there
	 * is no connection for want of memory. */
	enum tw_status (*fail)(struct tw_db *db, struct tw_err *err);

	/* stays: it is run many times. */
	enum tw_status (*prepare)(struct tw_db *db, const char *sql, bool stays,
	        struct tw_stmt **ret, struct tw_err *err);
	void (*drop)(struct tw_stmt *s);
	void (*bind_text)(struct tw_stmt *s, int at, const char *text); /* copies */
	void (*bind_int)(struct tw_stmt *s, int at, int64_t v);
	/* stays: the bytes outlive the run, nothing is copied. */
	void (*bind_bytes)(struct tw_stmt *s, int at, struct tw_str bytes, bool stays);
	enum tw_step (*step)(struct tw_stmt *s);
	/* Ends a run; values are forgotten. */
	void (*reset)(struct tw_stmt *s);
	/* Was there no memory for a value, bound or of a row?  It is not stepped then: with NULL in
	 * its place it would be another question. */
	bool (*lacked)(const struct tw_stmt *s);

	/* Of the row stepped to; what they give is good until the next step.  NULL is 0, "" and no
	 * bytes; text gives NULL for it. */
	int64_t (*to_int)(struct tw_stmt *s, int col);
	const char *(*to_text)(struct tw_stmt *s, int col);
	struct tw_str (*to_bytes)(struct tw_stmt *s, int col);
};

/* What has no words that both engines know: SQLite's, and PostgreSQL's, which SQLite takes for a
 * comment. */
#define TW_EITHER(sqlite, postgres) "/*{*/" sqlite "/*|" postgres "}*/"

/* NULL is none. */
void tw_db_close(struct tw_db *db);
enum tw_status tw_db_run(struct tw_db *db, const char *sql, struct tw_err *err);
int64_t tw_db_changed(const struct tw_db *db);
/* NULL is none. */
void tw_stmt_drop(struct tw_stmt *s);

#endif
