/*
 * catalogue_rows.c - one statement for many rows.
 *
 * PostgreSQL runs it once: each parameter is an array, and the rows are their unnesting.  SQLite,
 * where a statement costs no round trip, runs it once per row.
 */
#include "server/catalogue/catalogue_internal.h"

#include <stdarg.h>
#include <string.h>

#include "decoder/base/buf.h"

enum { SQL_BYTES = 8 << 10, ROWS_MOST = 4096 };
#define BYTES_MOST ((size_t)8 << 20)
#define ROWS       "{rows}"

static bool as_arrays(const struct tw_cat_rows *r)
{
	return r->db->engine->append != NULL;
}

static const char *array_of(char type)
{
	return type == 'i' ? "BIGINT[]" : type == 't' ? "TEXT[]" : "BYTEA[]";
}

/* In both dialects, as TW_EITHER. */
static void write_source(const char *types, struct tw_buf *out)
{
	const size_t n = strlen(types);

	for (size_t i = 1; i <= n; i++)
		(void)tw_buf_printf(out, "%s?%zu AS c%zu", i > 1 ? "," : "/*{*/(SELECT ", i, i);
	for (size_t i = 1; i <= n; i++)
		(void)tw_buf_printf(out, "%sCAST(?%zu AS %s)", i > 1 ? "," : ") r/*|unnest(", i,
		        array_of(types[i - 1]));
	for (size_t i = 1; i <= n; i++)
		(void)tw_buf_printf(out, "%sc%zu", i > 1 ? "," : ") r(", i);
	(void)tw_buf_printf(out, ")}*/");
}

static enum tw_status prepare(struct tw_cat_rows *r, struct tw_err *err)
{
	const char *const rows_at = strstr(r->sql, ROWS);
	struct tw_buf text;
	enum tw_status st;

	tw_buf_init(&text, SQL_BYTES);
	(void)tw_buf_add(&text, r->sql, (size_t)(rows_at - r->sql));
	write_source(r->types, &text);
	(void)tw_buf_printf(&text, "%s", rows_at + strlen(ROWS));
	(void)tw_buf_add_u8(&text, 0);
	st = tw_buf_status(&text) == TW_OK
	             ? r->db->engine->prepare(r->db, (const char *)text.data, &r->stmt, err)
	             : tw_oom(err);
	tw_buf_done(&text);
	return st;
}

static enum tw_status run(struct tw_cat_rows *r, struct tw_err *err)
{
	struct tw_cat_query q = {.db = r->db, .stmt = r->stmt, .prepared = &r->stmt};
	enum tw_status st = TW_OK;

	tw_cat_count_statement();
	while (st == TW_OK && tw_cat_row(&q))
		if (r->take)
			st = r->take(r->arg, &q, err);
	st = tw_cat_close_after(&q, st, err);
	if (st == TW_OK)
		r->changed += tw_db_changed(r->db);
	r->n = 0;
	r->bytes = 0;
	return st;
}

static void put(struct tw_cat_rows *r, int at, const struct tw_db_value *v)
{
	const struct tw_db_engine *e = r->db->engine;

	r->bytes += v->bytes.len;
	if (e->append)
		e->append(r->stmt, at, v);
	else if (v->type == 'i')
		e->bind_int(r->stmt, at, v->number);
	else if (v->type == 't')
		e->bind_text(r->stmt, at, v->bytes.ptr);
	else
		e->bind_bytes(r->stmt, at, v->bytes, true);
}

enum tw_status tw_cat_rows_add(struct tw_cat_rows *r, struct tw_err *err, ...)
{
	enum tw_status st = r->stmt ? TW_OK : prepare(r, err);
	va_list ap;

	if (st != TW_OK)
		return st;
	va_start(ap, err);
	for (int i = 0; r->types[i]; i++) {
		struct tw_db_value v = {.type = r->types[i]};

		if (v.type == 'i')
			v.number = va_arg(ap, int64_t);
		else if (v.type == 't')
			v.bytes = tw_str_of(va_arg(ap, const char *));
		else
			v.bytes = *va_arg(ap, const struct tw_str *);
		put(r, i + 1, &v);
	}
	va_end(ap);
	r->n++;
	return as_arrays(r) && r->n < ROWS_MOST && r->bytes < BYTES_MOST ? TW_OK : run(r, err);
}

enum tw_status tw_cat_rows_end(struct tw_cat_rows *r, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && r->n)
		st = run(r, err);
	tw_stmt_drop(r->stmt);
	r->stmt = NULL;
	r->n = 0;
	return st;
}
