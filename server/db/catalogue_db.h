/*
 * catalogue_db.h - a connection to the catalogue's database and its statements, for any engine.
 *
 * An engine fills a struct tw_db_engine (catalogue_sqlite.c, catalogue_postgres.c); its own structs
 * begin with struct tw_db and struct tw_stmt.  SQL is written once in the common dialect;
 * catalogue_postgres_dialect.h lists the constructs that are translated, and TW_EITHER gives both
 * versions of the rest.  A connection and its statements belong to one thread at a time.
 * Parameters are numbered from 1 and written ?1, ?2, or ? in order; columns are numbered from 0.
 * Text is UTF-8.
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
	/* Changes when a lost connection is replaced, as session state is lost then.  0:
	 * connections are never lost. */
	uint64_t session;
	bool adds_drops; /* transactions add the keys of files that are to be deleted */
};

struct tw_stmt {
	struct tw_db *db;
};

struct tw_db_value {
	char type; /* t, i or b: text, number, bytes */
	int64_t number;
	struct tw_str bytes; /* text ends with a NUL */
};

enum tw_step {
	TW_STEP_NEW, /* not executed yet */
	TW_STEP_ROW,
	TW_STEP_END,
	TW_STEP_FAILED
};

struct tw_db_engine {
	const char *name;
	bool has_clock; /* a clock shared by all clients of the database */
	bool is_shared; /* transactions run concurrently */
	void (*close)(struct tw_db *db);
	/* Statements without parameters and rows, one or several. */
	enum tw_status (*run)(struct tw_db *db, const char *sql, struct tw_err *err);
	/* Whether a transaction is open; some failures end one. */
	bool (*in_transaction)(const struct tw_db *db);
	/* The number of rows changed by the last statement. */
	int64_t (*changed)(const struct tw_db *db);
	/* TW_FULL, TW_BUSY, TW_NOMEM, TW_IO or TW_BUG, by the last failure; db NULL: out of memory
	 * for a connection. */
	enum tw_status (*fail)(struct tw_db *db, struct tw_err *err);
	/* Whether the last failure says that another transaction changed the same rows first. */
	bool (*conflicts)(const struct tw_db *db);

	enum tw_status (*prepare)(
	        struct tw_db *db, const char *sql, struct tw_stmt **ret, struct tw_err *err);
	void (*drop)(struct tw_stmt *s);
	void (*bind_text)(struct tw_stmt *s, int at, const char *text); /* copies */
	void (*bind_int)(struct tw_stmt *s, int at, int64_t v);
	/* stays: the bytes remain valid until the run ends and are not copied. */
	void (*bind_bytes)(struct tw_stmt *s, int at, struct tw_str bytes, bool stays);
	/* Adds a value, which is copied, to a parameter that is an array.  NULL: arrays are not
	 * supported. */
	void (*append)(struct tw_stmt *s, int at, const struct tw_db_value *v);
	enum tw_step (*step)(struct tw_stmt *s);
	/* Ends a run and clears the parameters. */
	void (*reset)(struct tw_stmt *s);
	/* Whether memory for a parameter or a column's value ran out.  The statement is then not
	 * executed: with NULL for the parameter it would be a different query. */
	bool (*oom)(const struct tw_stmt *s);

	/* Columns of the current row, valid until the next step.  SQL NULL reads as 0, as "" or no
	 * bytes; to_text returns NULL for it. */
	int64_t (*to_int)(struct tw_stmt *s, int col);
	const char *(*to_text)(struct tw_stmt *s, int col);
	struct tw_str (*to_bytes)(struct tw_stmt *s, int col);
};

/* SQL without a common form: SQLite's text, and PostgreSQL's, which SQLite reads as a comment. */
#define TW_EITHER(sqlite, postgres) "/*{*/" sqlite "/*|" postgres "}*/"

/* Follows SELECT in statements whose best plan depends on the values: PostgreSQL then plans each
 * execution. */
#define TW_DB_BY_VALUES "/*by values*/ "

/* Accepts NULL. */
void tw_db_close(struct tw_db *db);
enum tw_status tw_db_run(struct tw_db *db, const char *sql, struct tw_err *err);
int64_t tw_db_changed(const struct tw_db *db);
/* Accepts NULL. */
void tw_stmt_drop(struct tw_stmt *s);

#endif
