#include "server/trace/trace_sql_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/trace/trace_sql_memory.h"

static enum tw_status fail(struct tw_trace_sql *s, struct tw_err *err)
{
	if (s->is_late)
		return tw_fail(err, TW_DEADLINE,
		        "the statement takes too long; select fewer rows or threads");
	if (tw_sql_memory_is_short())
		return tw_fail(err, TW_TOO_LARGE,
		        "the statement needs more than %lld MB of memory; select fewer rows",
		        (long long)(s->limits.memory >> 20));
	if (s->db && strncmp(sqlite3_errmsg(s->db), "no such table", 13) == 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "%.140s; the tables are slice, thread, method and call_tree",
		        sqlite3_errmsg(s->db));
	return tw_fail(
	        err, TW_BAD_REQUEST, "%.180s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static const struct {
	const char *name;
	const sqlite3_module *module;
	const char *schema;
} tables[] = {
        {"slice", &tw_sql_slice,
                "CREATE TABLE x(id INTEGER, thread_id INTEGER, ts_ns INTEGER, dur_ns INTEGER,"
                " cpu_ns INTEGER, depth INTEGER, parent_id INTEGER, name TEXT)"},
        {"thread", &tw_sql_thread,
                "CREATE TABLE x(thread_id INTEGER, tid INTEGER, name TEXT, is_main INTEGER,"
                " pid INTEGER, slices INTEGER, busy_ns INTEGER)"},
        {"method", &tw_sql_method,
                "CREATE TABLE x(method_id INTEGER, name TEXT, count INTEGER, total_ns INTEGER,"
                " sum_ns INTEGER, self_ns INTEGER, max_ns INTEGER, id INTEGER)"},
        {"call_tree", &tw_sql_call_tree,
                "CREATE TABLE x(node_id INTEGER, thread_id INTEGER, parent_id INTEGER,"
                " method_id INTEGER, name TEXT, depth INTEGER, count INTEGER, total_ns INTEGER,"
                " self_ns INTEGER, max_ns INTEGER)"},
};

enum { N_TABLES = sizeof tables / sizeof *tables };

/* argv[0] is the name of the table. */
int tw_sql_connect(
        sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret, char **why)
{
	struct tw_sql_table *t = tw_mem_zalloc(1, sizeof *t);
	int rc = t ? SQLITE_ERROR : SQLITE_NOMEM;

	(void)argc, (void)why;
	for (size_t i = 0; t && i < N_TABLES; i++)
		if (strcmp(argv[0], tables[i].name) == 0)
			rc = sqlite3_declare_vtab(db, tables[i].schema);
	if (rc != SQLITE_OK) {
		tw_mem_free(t);
		return rc;
	}
	t->sql = arg;
	*ret = &t->base;
	return SQLITE_OK;
}

int tw_sql_disconnect(sqlite3_vtab *t)
{
	tw_mem_free(t);
	return SQLITE_OK;
}

void tw_sql_name(struct tw_trace_sql *s, uint32_t method, sqlite3_context *out)
{
	char buf[TW_SQL_NAME_BYTES];
	const struct tw_method_info *m = method < s->n_methods ? &s->methods[method] : NULL;

	if (!m)
		sqlite3_result_null(out);
	else {
		const struct tw_named what = tw_method_info_named(m);

		(void)tw_names_display(&s->names, &what, buf, sizeof buf);
		sqlite3_result_text(out, buf, -1, SQLITE_TRANSIENT);
	}
}

int tw_sql_error(sqlite3_vtab *t, const struct tw_err *err)
{
	sqlite3_free(t->zErrMsg);
	t->zErrMsg = sqlite3_mprintf("%s", err->msg);
	return SQLITE_ERROR;
}

static bool add_tables(struct tw_trace_sql *s)
{
	for (size_t i = 0; i < N_TABLES; i++)
		if (sqlite3_create_module(s->db, tables[i].name, tables[i].module, s) != SQLITE_OK)
			return false;
	return true;
}

enum tw_status tw_trace_sql_open(struct tw_trace_file *file, const struct tw_names *names,
        struct tw_trace_sql **ret, struct tw_err *err)
{
	struct tw_trace_sql *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	s->file = file;
	s->names = names ? *names : (struct tw_names){NULL, NULL};
	st = tw_trace_file_inline(file, &s->names, err);
	if (st == TW_OK)
		st = tw_trace_file_methods(file, &s->methods, &s->n_methods, err);
	if (st == TW_OK &&
	        (sqlite3_open_v2(":memory:", &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
	                 NULL) != SQLITE_OK ||
	                !add_tables(s)))
		st = fail(s, err);
	if (st == TW_OK) {
		(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		(void)sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
		*ret = s;
	} else {
		tw_trace_sql_close(s);
	}
	return st;
}

/* --- limits --- */

enum { VALUE_BYTES = 1000000, SQL_BYTES = 100000, COLUMNS = 256, DEPTH = 100, CHECK_STEPS = 200 };

bool tw_sql_is_late(struct tw_trace_sql *s)
{
	s->is_late = tw_deadline_passed(s->limits.deadline);
	return s->is_late;
}

static int check_deadline(void *arg)
{
	return tw_sql_is_late(arg);
}

static int may(void *arg, int what, const char *a, const char *b, const char *db, const char *by)
{
	(void)arg, (void)db, (void)by;
	switch (what) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	/* "" is a count of rows; SQLite's own tables contain nothing of the trace */
	case SQLITE_READ:
		return strncmp(a, "sqlite_", 7) == 0 || strncmp(a, "pragma_", 7) == 0 ? SQLITE_DENY
		                                                                      : SQLITE_OK;
	case SQLITE_FUNCTION:
		/* fts3_tokenizer() returns an address, and calls one that it is given */
		return strcmp(b, "load_extension") == 0 || strcmp(b, "fts3_tokenizer") == 0
		               ? SQLITE_DENY
		               : SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

enum tw_status tw_trace_sql_limit(
        struct tw_trace_sql *s, const struct tw_sql_limits *limits, struct tw_err *err)
{
	static const struct {
		int what, most;
	} most[] = {{SQLITE_LIMIT_LENGTH, VALUE_BYTES}, {SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES},
	        {SQLITE_LIMIT_COLUMN, COLUMNS}, {SQLITE_LIMIT_EXPR_DEPTH, DEPTH},
	        {SQLITE_LIMIT_COMPOUND_SELECT, DEPTH}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	        {SQLITE_LIMIT_WORKER_THREADS, 0}, {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000}};

	s->limits = *limits;
	/* connects the tables first, which declares them: statements may not */
	if (sqlite3_exec(s->db,
	            "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8192; SELECT 1 FROM slice, "
	            "thread,"
	            " method, call_tree LIMIT 0",
	            NULL, NULL, NULL) != SQLITE_OK ||
	        tw_sql_add_bounded_functions(s) != SQLITE_OK ||
	        sqlite3_set_authorizer(s->db, may, s) != SQLITE_OK)
		return fail(s, err);
	for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
		(void)sqlite3_limit(s->db, most[i].what, most[i].most);
		(void)sqlite3_limit(s->plain, most[i].what, most[i].most);
	}
	sqlite3_progress_handler(s->db, CHECK_STEPS, check_deadline, s);
	return TW_OK;
}

struct tw_trace_sql *tw_trace_sql_close(struct tw_trace_sql *s)
{
	if (!s)
		return NULL;
	(void)sqlite3_close(s->db); /* close first: its functions hold statements of `plain` */
	(void)sqlite3_close(s->plain);
	tw_mem_free(s);
	return NULL;
}

static void read_value(sqlite3_stmt *q, int col, struct tw_sql_value *v)
{
	*v = (struct tw_sql_value){.type = TW_SQL_NULL};
	switch (sqlite3_column_type(q, col)) {
	case SQLITE_INTEGER:
		v->type = TW_SQL_INT;
		v->number = sqlite3_column_int64(q, col);
		break;
	case SQLITE_FLOAT:
		v->type = TW_SQL_REAL;
		v->real = sqlite3_column_double(q, col);
		break;
	case SQLITE_TEXT:
		v->type = TW_SQL_TEXT;
		v->text.ptr = (const char *)sqlite3_column_text(q, col);
		v->text.len = (size_t)sqlite3_column_bytes(q, col);
		break;
	case SQLITE_BLOB:
		v->type = TW_SQL_BLOB;
		v->text.ptr = sqlite3_column_blob(q, col);
		v->text.len = (size_t)sqlite3_column_bytes(q, col);
		break;
	default:
		break;
	}
}

void tw_sql_json(struct tw_json *j, const struct tw_sql_value *v)
{
	char real[32];

	switch (v->type) {
	case TW_SQL_INT:
		tw_json_int(j, v->number);
		break;
	case TW_SQL_REAL:
		(void)snprintf(real, sizeof real, "%.15g", v->real);
		tw_json_raw(j, tw_str_of(isfinite(v->real) ? real : "null"));
		break;
	case TW_SQL_TEXT:
	case TW_SQL_BLOB:
		tw_json_str(j, v->text);
		break;
	case TW_SQL_NULL:
		tw_json_null(j);
		break;
	}
}

enum { COLUMNS_MAX = 256 };

static enum tw_status step_all(
        struct tw_trace_sql *s, sqlite3_stmt *q, const struct tw_sql_out *out, struct tw_err *err)
{
	struct tw_sql_value values[COLUMNS_MAX];
	const char *names[COLUMNS_MAX];
	int n = sqlite3_column_count(q);
	enum tw_status st;
	int rc;

	if (n > COLUMNS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "more than %d columns", COLUMNS_MAX);
	for (int i = 0; i < n; i++)
		names[i] = sqlite3_column_name(q, i);
	st = out->head(out->arg, names, n);
	while (st == TW_OK && (rc = sqlite3_step(q)) != SQLITE_DONE) {
		if (rc != SQLITE_ROW)
			return fail(s, err);
		for (int i = 0; i < n; i++)
			read_value(q, i, &values[i]);
		st = out->row(out->arg, values, n);
	}
	return st == TW_OK || st == TW_CONFLICT ? TW_OK
	                                        : tw_fail(err, st, "the result cannot be written");
}

static enum tw_status run_one(
        struct tw_trace_sql *s, const char *sql, const struct tw_sql_out *out, struct tw_err *err)
{
	sqlite3_stmt *q = NULL;
	const char *rest = NULL;
	enum tw_status st;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, &rest) != SQLITE_OK)
		return fail(s, err);
	if (!q)
		return tw_fail(err, TW_BAD_REQUEST, "the statement is empty");
	if (s->limits.deadline && sqlite3_column_count(q) == 0) {
		(void)sqlite3_finalize(q);
		return tw_fail(err, TW_BAD_REQUEST, "only SELECT is possible here");
	}
	while (*rest == ' ' || *rest == '\n' || *rest == ';' || *rest == '\t')
		rest++;
	st = *rest ? tw_fail(err, TW_BAD_REQUEST, "one statement at a time")
	           : step_all(s, q, out, err);
	(void)sqlite3_finalize(q);
	return st;
}

enum tw_status tw_trace_sql_run(
        struct tw_trace_sql *s, const char *sql, const struct tw_sql_out *out, struct tw_err *err)
{
	enum tw_status st;

	if (s->limits.memory)
		tw_sql_memory_limit(s->limits.memory);
	st = run_one(s, sql, out, err);
	tw_sql_memory_unlimit();
	return st;
}
