/*
 * trace_sql_functions.c - SQL functions that can run for long.
 *
 * SQLite checks the deadline between instructions, and a call of a function is one instruction.
 * One call of trim() with two values of 1 MB compares 10^12 characters.  So functions whose time
 * grows with the product of their arguments, or with a number in one, are replaced by ones that
 * first check the deadline and the arguments, and then call SQLite's at a second connection.
 */
#include "server/trace/trace_sql_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
	ARGS_MAX = 20,
	COST_MAX = 100000000, /* characters that may be compared: about 0.3 s */
	FORMAT_BYTES = 1000,
	WIDTH_DIGITS = 4,
	CALL_BYTES = 256
};

static const char *const names[] = {"format", "glob", "instr", "json_patch", "like", "ltrim",
        "printf", "replace", "rtrim", "trim"};

struct call { /* one of them */
	struct tw_trace_sql *sql;
	const char *name;
	sqlite3_stmt *own; /* calls SQLite's */
	int n;             /* its arguments */
};

static bool prepare(struct call *c, int n)
{
	char text[CALL_BYTES];
	int len = snprintf(text, sizeof text, "SELECT %s(", c->name);

	for (int i = 0; i < n; i++)
		len += snprintf(text + len, sizeof text - (size_t)len, i ? ",?" : "?");
	(void)snprintf(text + len, sizeof text - (size_t)len, ")");
	(void)sqlite3_finalize(c->own);
	c->own = NULL;
	c->n = n;
	return sqlite3_prepare_v2(c->sql->plain, text, -1, &c->own, NULL) == SQLITE_OK;
}

/* Each width and precision is a number of few digits. */
static bool is_format_short(const char *format)
{
	unsigned digits = 0;

	if (!format || strchr(format, '*'))
		return !format;
	for (const char *at = format; *at && digits <= WIDTH_DIGITS; at++)
		digits = isdigit((unsigned char)*at) ? digits + 1 : 0;
	return digits <= WIDTH_DIGITS && strlen(format) <= FORMAT_BYTES;
}

static bool is_cheap(const struct call *c, int n, sqlite3_value **args)
{
	if (n > 0 && (strcmp(c->name, "printf") == 0 || strcmp(c->name, "format") == 0))
		return is_format_short((const char *)sqlite3_value_text(args[0]));
	return n < 2 ||
	       (int64_t)sqlite3_value_bytes(args[0]) * sqlite3_value_bytes(args[1]) <= COST_MAX;
}

/* Queries compare the name of each call: without a statement, in a fifth of the time. */
static void match(sqlite3_context *out, sqlite3_value **args)
{
	const char *pattern = (const char *)sqlite3_value_text(args[0]);
	const char *text = (const char *)sqlite3_value_text(args[1]);

	if (pattern && text)
		sqlite3_result_int(out, sqlite3_strlike(pattern, text, 0) == 0);
}

static void call_own(struct call *c, sqlite3_context *out, int n, sqlite3_value **args)
{
	int rc = SQLITE_OK;

	if (!(c->own && c->n == n) && !prepare(c, n)) {
		sqlite3_result_error(out, sqlite3_errmsg(c->sql->plain), -1);
		return;
	}
	for (int i = 0; i < n && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_value(c->own, i + 1, args[i]);
	if (rc == SQLITE_OK && sqlite3_step(c->own) == SQLITE_ROW)
		sqlite3_result_value(out, sqlite3_column_value(c->own, 0));
	else
		sqlite3_result_error(out, sqlite3_errmsg(c->sql->plain), -1);
	(void)sqlite3_reset(c->own);
	(void)sqlite3_clear_bindings(c->own);
}

static void run(sqlite3_context *out, int n, sqlite3_value **args)
{
	struct call *c = sqlite3_user_data(out);

	if (tw_sql_check_limits(c->sql))
		sqlite3_result_error_code(out, SQLITE_INTERRUPT);
	else if (n > ARGS_MAX || !is_cheap(c, n, args))
		sqlite3_result_error(
		        out, "the arguments of a function are too many or too long", -1);
	else if (n == 2 && strcmp(c->name, "like") == 0)
		match(out, args);
	else
		call_own(c, out, n, args);
}

static void free_call(void *arg)
{
	struct call *c = arg;

	(void)sqlite3_finalize(c->own);
	tw_mem_free(c);
}

int tw_sql_bound_functions(struct tw_trace_sql *s)
{
	int rc = sqlite3_open_v2(
	        ":memory:", &s->plain, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

	for (size_t i = 0; i < sizeof names / sizeof *names && rc == SQLITE_OK; i++) {
		struct call *c = tw_mem_zalloc(1, sizeof *c);

		if (!c)
			return SQLITE_NOMEM;
		*c = (struct call){.sql = s, .name = names[i]};
		rc = sqlite3_create_function_v2(s->db, names[i], -1,
		        SQLITE_UTF8 | SQLITE_DETERMINISTIC, c, run, NULL, NULL, free_call);
	}
	return rc;
}
