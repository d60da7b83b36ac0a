/*
 * trace_sql_functions.c - SQL functions that can run for long.
 *
 * SQLite checks the deadline between instructions, and a call of a function is one instruction.
 * One call of trim() with two values of 1 MB compares 10^12 characters, and json_set() recurses
 * once for each name of a path.  So functions whose time or stack depth depends on more than the
 * sum of their arguments' sizes are replaced by ones that first check the deadline and the
 * arguments, and then call SQLite's at a second connection.
 */
#include "server/trace/trace_sql_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
	ARGS_MAX = 127,       /* SQLite's own limit */
	COST_MAX = 100000000, /* characters that may be compared: about 0.3 s */
	FORMAT_BYTES = 1000,
	WIDTH_DIGITS = 4,
	PATH_BYTES = 1000, /* of JSON: a stack of 100 kB */
	CALL_BYTES = 2048,
	JSON_SUBTYPE = 'J'
};

/* Widths and precisions are numbers of few digits. */
static bool is_format_short(int n, sqlite3_value **args)
{
	const char *at = n > 0 ? (const char *)sqlite3_value_text(args[0]) : NULL;

	if (at && strlen(at) > FORMAT_BYTES)
		return false;
	while (at && (at = strchr(at, '%'))) {
		size_t len = strspn(++at, "-+ #!0,123456789*.l");
		unsigned digits = 0;

		for (size_t i = 0; i < len; i++) {
			digits = isdigit((unsigned char)at[i]) ? digits + 1 : 0;
			if (at[i] == '*' || digits > WIDTH_DIGITS)
				return false;
		}
		at += len + (at[len] != '\0');
	}
	return true;
}

static bool is_product_small(int n, sqlite3_value **args)
{
	return n < 2 ||
	       (int64_t)sqlite3_value_bytes(args[0]) * sqlite3_value_bytes(args[1]) <= COST_MAX;
}

/* Arguments are a value, and then paths and values in turn. */
static bool are_paths_short(int n, sqlite3_value **args)
{
	for (int i = 1; i < n; i += 2)
		if (sqlite3_value_bytes(args[i]) > PATH_BYTES)
			return false;
	return true;
}

/* Some exist only in versions of SQLite after 3.40. */
static const struct function {
	const char *name;
	bool (*is_cheap)(int n, sqlite3_value **args);
} functions[] = {
        {"format", is_format_short},
        {"glob", is_product_small},
        {"instr", is_product_small},
        {"json_array_insert", are_paths_short},
        {"json_insert", are_paths_short},
        {"json_patch", is_product_small},
        {"json_pretty", is_product_small},
        {"json_replace", are_paths_short},
        {"json_set", are_paths_short},
        {"jsonb_array_insert", are_paths_short},
        {"jsonb_insert", are_paths_short},
        {"jsonb_patch", is_product_small},
        {"jsonb_replace", are_paths_short},
        {"jsonb_set", are_paths_short},
        {"like", is_product_small},
        {"ltrim", is_product_small},
        {"printf", is_format_short},
        {"replace", is_product_small},
        {"rtrim", is_product_small},
        {"trim", is_product_small},
        {"unhex", is_product_small},
};

struct bounded_function { /* a replaced function */
	struct tw_trace_sql *sql;
	const struct function *of;
	sqlite3_stmt *original; /* calls SQLite's */
	int n;                  /* its arguments */
	bool is_json[ARGS_MAX];
};

static bool is_json(sqlite3_value *v)
{
	return sqlite3_value_subtype(v) == JSON_SUBTYPE;
}

static bool is_prepared(const struct bounded_function *c, int n, sqlite3_value **args)
{
	bool same = c->original && c->n == n;

	for (int i = 0; same && i < n; i++)
		same = c->is_json[i] == is_json(args[i]);
	return same;
}

/* A parameter has no subtype: json() restores it. */
static bool prepare(struct bounded_function *c, int n, sqlite3_value **args)
{
	char text[CALL_BYTES];
	int len = snprintf(text, sizeof text, "SELECT %s(", c->of->name);

	for (int i = 0; i < n; i++) {
		c->is_json[i] = is_json(args[i]);
		len += snprintf(text + len, sizeof text - (size_t)len, "%s%s", i ? "," : "",
		        c->is_json[i] ? "json(?)" : "?");
	}
	(void)snprintf(text + len, sizeof text - (size_t)len, ")");
	(void)sqlite3_finalize(c->original);
	c->original = NULL;
	c->n = n;
	return sqlite3_prepare_v2(c->sql->plain, text, -1, &c->original, NULL) == SQLITE_OK;
}

/* LIKE without a prepared statement takes a fifth of the time; queries compare every call's name.
 */
static bool is_plain_like(const struct bounded_function *c, int n, sqlite3_value **args)
{
	return n == 2 && strcmp(c->of->name, "like") == 0 &&
	       sqlite3_value_type(args[0]) == SQLITE_TEXT &&
	       sqlite3_value_type(args[1]) == SQLITE_TEXT &&
	       sqlite3_value_bytes(args[0]) <=
	               sqlite3_limit(c->sql->plain, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1);
}

static void match_like(sqlite3_context *out, sqlite3_value **args)
{
	const char *pattern = (const char *)sqlite3_value_text(args[0]);
	const char *text = (const char *)sqlite3_value_text(args[1]);

	if (pattern && text)
		sqlite3_result_int(out, sqlite3_strlike(pattern, text, 0) == 0);
	else
		sqlite3_result_error_nomem(out);
}

static void set_result(sqlite3_context *out, sqlite3_value *v)
{
	sqlite3_result_value(out, v);
	if (is_json(v))
		sqlite3_result_subtype(out, JSON_SUBTYPE);
}

static void call_original(
        struct bounded_function *c, sqlite3_context *out, int n, sqlite3_value **args)
{
	int rc = SQLITE_OK;

	if (!is_prepared(c, n, args) && !prepare(c, n, args)) {
		sqlite3_result_error(out, sqlite3_errmsg(c->sql->plain), -1);
		return;
	}
	for (int i = 0; i < n && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_value(c->original, i + 1, args[i]);
	if (rc == SQLITE_OK && sqlite3_step(c->original) == SQLITE_ROW)
		set_result(out, sqlite3_column_value(c->original, 0));
	else
		sqlite3_result_error(out, sqlite3_errmsg(c->sql->plain), -1);
	(void)sqlite3_reset(c->original);
	(void)sqlite3_clear_bindings(c->original);
}

static void call_bounded(sqlite3_context *out, int n, sqlite3_value **args)
{
	struct bounded_function *c = sqlite3_user_data(out);

	if (tw_sql_is_late(c->sql))
		sqlite3_result_error_code(out, SQLITE_INTERRUPT);
	else if (n > ARGS_MAX || !c->of->is_cheap(n, args))
		sqlite3_result_error(out,
		        "a function's arguments are too many or too long, or its format has '*' or "
		        "a width above 9999",
		        -1);
	else if (is_plain_like(c, n, args))
		match_like(out, args);
	else
		call_original(c, out, n, args);
}

static void free_function(void *arg)
{
	struct bounded_function *c = arg;

	(void)sqlite3_finalize(c->original);
	tw_mem_free(c);
}

static bool exists(sqlite3 *db, const char *name)
{
	sqlite3_stmt *q = NULL;
	bool found = sqlite3_prepare_v2(db, "SELECT 1 FROM pragma_function_list WHERE name=?", -1,
	                     &q, NULL) == SQLITE_OK &&
	             sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
	             sqlite3_step(q) == SQLITE_ROW;

	(void)sqlite3_finalize(q);
	return found;
}

static int replace_one(struct tw_trace_sql *s, const struct function *f)
{
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_SUBTYPE;
	struct bounded_function *c = tw_mem_zalloc(1, sizeof *c);

	if (!c)
		return SQLITE_NOMEM;
#ifdef SQLITE_RESULT_SUBTYPE
	flags |= SQLITE_RESULT_SUBTYPE;
#endif
	*c = (struct bounded_function){.sql = s, .of = f};
	return sqlite3_create_function_v2(
	        s->db, f->name, -1, flags, c, call_bounded, NULL, NULL, free_function);
}

int tw_sql_add_bounded_functions(struct tw_trace_sql *s)
{
	int rc = sqlite3_open_v2(
	        ":memory:", &s->plain, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

	for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++)
		if (exists(s->plain, functions[i].name))
			rc = replace_one(s, &functions[i]);
	return rc;
}
