/*
 * api_sql.c - a SELECT over the calls of one trace.
 *
 * The tables are those of `tracewell sql` (trace_sql.h). A statement can only read the trace, and
 * has the limits of any query: deadline, memory, rows and bytes.
 */
#include <string.h>

#include "server/api/trace/trace_query.h"
#include "server/base/text/json_write.h"
#include "server/export/export.h"
#include "server/trace/trace_sql.h"

enum { ROWS_MAX = 100000, ROWS = 1000, BODY_MAX = 16 << 20, MEMORY = 128 << 20, SQL_MAX = 60000 };

struct answer {
	struct tw_buf out;
	struct tw_json j;
	int64_t rows, limit;
	bool csv, truncated;
};

/* --- JSON: {"columns":[],"rows":[[]],"truncated"} --- */

static enum tw_status json_head(void *arg, const char *const *names, int n)
{
	struct answer *a = arg;

	tw_json_open(&a->j, '{');
	tw_json_key_open(&a->j, "columns", '[');
	for (int i = 0; i < n; i++)
		tw_json_str(&a->j, tw_str_of(names[i]));
	tw_json_close(&a->j, ']');
	tw_json_key_open(&a->j, "rows", '[');
	return tw_buf_status(&a->out);
}

/* TW_CONFLICT: the limit of rows is reached. */
static enum tw_status has_space(struct answer *a)
{
	if (a->rows++ < a->limit && a->out.len < BODY_MAX / 2)
		return TW_OK;
	a->truncated = true;
	return TW_CONFLICT;
}

static enum tw_status json_row(void *arg, const struct tw_sql_value *v, int n)
{
	struct answer *a = arg;

	if (has_space(a) != TW_OK)
		return TW_CONFLICT;
	tw_json_open(&a->j, '[');
	for (int i = 0; i < n; i++)
		tw_sql_json(&a->j, &v[i]);
	tw_json_close(&a->j, ']');
	return tw_buf_status(&a->out);
}

/* --- CSV --- */

static enum tw_status csv_head(void *arg, const char *const *names, int n)
{
	struct answer *a = arg;

	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&a->out, ',');
		tw_csv_text(&a->out, tw_str_of(names[i]));
	}
	(void)tw_buf_add(&a->out, "\r\n", 2);
	return tw_buf_status(&a->out);
}

static enum tw_status csv_row(void *arg, const struct tw_sql_value *v, int n)
{
	struct answer *a = arg;

	if (has_space(a) != TW_OK)
		return TW_CONFLICT;
	for (int i = 0; i < n; i++) {
		if (i)
			(void)tw_buf_add_u8(&a->out, ',');
		if (v[i].type == TW_SQL_INT)
			(void)tw_buf_printf(&a->out, "%lld", (long long)v[i].number);
		else if (v[i].type == TW_SQL_REAL)
			(void)tw_buf_printf(&a->out, "%.15g", v[i].real);
		else if (v[i].type != TW_SQL_NULL)
			tw_csv_text(&a->out, v[i].text);
	}
	(void)tw_buf_add(&a->out, "\r\n", 2);
	return tw_buf_status(&a->out);
}

/* --- the request --- */

static bool prefers_csv(const struct tw_req *r)
{
	return tw_req_media_weight(r, "text/csv") > tw_req_media_weight(r, "application/json");
}

static enum tw_status read_request(struct tw_req *r, const json_t *body, struct answer *a,
        const char **ret_sql, struct tw_err *err)
{
	const json_t *limit = json_object_get(body, "limit");
	const char *format = json_string_value(json_object_get(body, "format"));
	const size_t known = json_object_size(body) - (limit ? 1 : 0) -
	                     (json_object_get(body, "format") ? 1 : 0);

	a->limit = limit ? json_integer_value(limit) : ROWS;
	a->csv = json_object_get(body, "format") ? format && strcmp(format, "csv") == 0
	                                         : prefers_csv(r);
	*ret_sql = json_string_value(json_object_get(body, "sql"));
	if (!*ret_sql || known != 1)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the body must have sql, a text; limit and format are optional");
	if (strlen(*ret_sql) > SQL_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "sql is longer than %d bytes", SQL_MAX);
	if (a->limit < 1 || a->limit > ROWS_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "limit is from 1 to %d rows", ROWS_MAX);
	if (json_object_get(body, "format") && !a->csv && (!format || strcmp(format, "json") != 0))
		return tw_fail(err, TW_BAD_REQUEST, "format is json or csv");
	return TW_OK;
}

static enum tw_status run(struct tw_view *v, struct answer *a, const char *sql, struct tw_err *err)
{
	const struct tw_sql_out out = {
	        a->csv ? csv_head : json_head, a->csv ? csv_row : json_row, a};
	const struct tw_deadline deadline = tw_view_deadline(v);
	const struct tw_sql_limits limits = {&deadline, MEMORY};
	struct tw_trace_sql *s = NULL;
	enum tw_status st = tw_trace_sql_open(v->file, &v->names, &s, err);

	if (st == TW_OK)
		st = tw_trace_sql_limit(s, &limits, err);
	if (st == TW_OK)
		st = tw_trace_sql_run(s, sql, &out, err);
	tw_trace_sql_close(s);
	return st;
}

static enum tw_status reply(struct tw_req *r, struct answer *a, struct tw_err *err)
{
	if (a->csv) {
		tw_req_set_header(r, "Tracewell-Truncated", a->truncated ? "1" : "0");
		return tw_req_reply_buf(r, 200, "text/csv; charset=utf-8", true, &a->out, err);
	}
	tw_json_close(&a->j, ']');
	tw_json_key_bool(&a->j, "truncated", a->truncated);
	tw_json_close(&a->j, '}');
	return tw_req_reply_buf(r, 200, "application/json", true, &a->out, err);
}

static enum tw_status query(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct answer a = {.rows = 0};
	struct tw_view v;
	const char *sql;
	enum tw_status st = read_request(r, body, &a, &sql, err);

	if (st == TW_OK)
		st = tw_view_open(r, &v, err);
	if (st != TW_OK)
		return st;
	tw_buf_init(&a.out, BODY_MAX);
	a.j = tw_json_to(&a.out);
	st = run(&v, &a, sql, err);
	tw_view_close(&v);
	if (st == TW_OK)
		return reply(r, &a, err);
	tw_buf_done(&a.out);
	return st;
}

const struct tw_route tw_routes_sql[] = {
        TW_ROUTE("POST", "/api/v1/traces/{id}/sql", TW_NEED_READ,
                "Runs a SELECT over the trace's calls", .read_only = true, .json = query),
        {0},
};
