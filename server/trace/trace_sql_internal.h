/*
 * trace_sql_internal.h - shared by the connection (trace_sql.c), its functions
 * (trace_sql_functions.c), the small tables (trace_sql_tables.c) and slices (trace_sql_slice.c).
 */
#ifndef TW_TRACE_SQL_INTERNAL_H
#define TW_TRACE_SQL_INTERNAL_H

#include <sqlite3.h>

#include "server/trace/trace_sql.h"

enum { TW_SQL_NAME_BYTES = 16384 };

struct tw_trace_sql {
	sqlite3 *db;
	sqlite3 *plain; /* with limits: calls SQLite's functions; otherwise NULL */
	struct tw_trace_file *file;
	struct tw_names names;
	const struct tw_method_info *methods;
	uint32_t n_methods;
	struct tw_sql_limits limits; /* deadline NULL: none */
	bool is_late;
};

struct tw_sql_table {      /* the connection's state of each virtual table */
	sqlite3_vtab base; /* first member */
	struct tw_trace_sql *sql;
};

/* xConnect of every table. */
int tw_sql_connect(
        sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret, char **why);
int tw_sql_disconnect(sqlite3_vtab *t);
void tw_sql_name(struct tw_trace_sql *s, uint32_t method, sqlite3_context *out);
/* Whether the deadline has ended the statement. */
bool tw_sql_is_late(struct tw_trace_sql *s);
/* Replaces functions that can run for long.  Returns SQLite's code. */
int tw_sql_add_bounded_functions(struct tw_trace_sql *s);
/* Sets the error where SQLite reads it. */
int tw_sql_error(sqlite3_vtab *t, const struct tw_err *err);

extern const sqlite3_module tw_sql_slice, tw_sql_thread, tw_sql_method, tw_sql_call_tree;

#endif
