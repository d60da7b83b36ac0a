/*
 * api_query.c - method tables and search over one trace.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "match.h"
#include "question.h"

enum { METHODS_MAX = 10000 };

/* --- methods --- */

struct ranked {
	uint32_t method;
	int64_t key;
	const char *name; /* sorting by name */
};

static int falling(const void *pa, const void *pb)
{
	const struct ranked *a = pa;
	const struct ranked *b = pb;

	if (a->name)
		return -strcmp(a->name, b->name);
	if (a->key != b->key)
		return a->key < b->key ? 1 : -1;
	return a->method < b->method ? -1 : a->method > b->method;
}

static int rising(const void *pa, const void *pb)
{
	return -falling(pa, pb);
}

/* Of all its calls; -1: no CPU time is known. */
static int64_t waiting_ns(const struct tw_method_info *m)
{
	if (m->cpu_ns < 0)
		return -1;
	return m->sum_ns > m->cpu_ns ? m->sum_ns - m->cpu_ns : 0;
}

static int64_t sort_key(const struct tw_method_info *m, unsigned by)
{
	const int64_t keys[] = {m->self_ns, m->total_ns, m->sum_ns, (int64_t)m->count, m->max_ns, 0,
	        m->cpu_ns, waiting_ns(m)};

	return keys[by];
}

/* Rows of the whole trace are stored; those of threads or a range come from their tree. */
static enum tw_status method_rows(struct tw_question *q, const struct tw_method_info **ret,
        bool *ret_partial, struct tw_err *err)
{
	struct tw_method_info *rows = NULL;
	struct tw_forest forest;
	enum tw_status st;

	*ret_partial = false;
	if (q->sel.all_threads && !q->sel.ranged && !tw_question_reshapes(q)) {
		*ret = q->v.methods;
		return TW_OK;
	}
	st = tw_query_forest(q->v.file, &q->sel, &q->deadline, q->arena, &forest, ret_partial, err);
	if (st == TW_OK)
		st = tw_question_reshape(q, &forest, err);
	if (st == TW_OK)
		st = tw_query_methods(&forest, q->v.n_methods + q->n_labels, q->arena, &rows, err);
	*ret = rows;
	return st;
}

/* Frames that reshaping made come after the trace's own methods. */
static struct tw_str name_of(const struct tw_question *q, uint32_t method, bool *ret_known)
{
	*ret_known = true;
	return method < q->v.n_methods ? tw_view_name(&q->v, method, q->name, ret_known)
	                               : tw_question_name(q, method);
}

/* null: not known. */
static void put_ns(struct tw_question *q, const char *key, int64_t ns)
{
	tw_json_key(&q->j, key);
	if (ns >= 0)
		tw_json_int(&q->j, ns);
	else
		tw_json_null(&q->j);
}

static void put_method(struct tw_question *q, const struct tw_method_info *row, uint32_t method)
{
	const struct tw_method_info *m = method < q->v.n_methods ? &q->v.methods[method] : NULL;
	bool known;
	struct tw_str name = name_of(q, method, &known);

	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "method", method);
	tw_json_key(&q->j, "id");
	if (m && m->has_id)
		tw_json_int(&q->j, (int64_t)m->id);
	else
		tw_json_null(&q->j);
	tw_json_key_str(&q->j, "name", name);
	tw_json_key_int(&q->j, "count", (int64_t)row->count);
	tw_json_key_int(&q->j, "total_ns", row->total_ns);
	tw_json_key_int(&q->j, "sum_ns", row->sum_ns);
	tw_json_key_int(&q->j, "self_ns", row->self_ns);
	tw_json_key_int(&q->j, "max_ns", row->max_ns);
	put_ns(q, "cpu_ns", row->cpu_ns);
	put_ns(q, "waiting_ns", waiting_ns(row));
	tw_json_key_bool(&q->j, "resolved", known);
	tw_json_close(&q->j, '}');
}

static enum tw_status rank(struct tw_question *q, const struct tw_method_info *rows, unsigned by,
        struct ranked **ret, uint32_t *ret_n, struct tw_err *err)
{
	enum { BY_NAME = 5 };
	const char *text = tw_req_query(q->v.req, "q");
	struct tw_match *match = NULL;
	const uint32_t n_rows = q->v.n_methods + q->n_labels;
	struct ranked *list = tw_arena_alloc(q->arena, n_rows + 1, sizeof *list);
	bool known;
	uint32_t n = 0;
	enum tw_status st = list ? tw_match_new(text ? text : "", false, &match, err)
	                         : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");

	for (uint32_t i = 0; st == TW_OK && i < n_rows; i++) {
		struct tw_str name = {0};

		if (rows[i].count == 0)
			continue;
		if (by == BY_NAME || (text && text[0]))
			name = name_of(q, i, &known);
		if (text && text[0] && !tw_match_has(match, name))
			continue;
		list[n].method = i; /* NOLINT(clang-analyzer-core.NullDereference) st tells */
		list[n].key = sort_key(&rows[i], by);
		list[n].name = by == BY_NAME ? tw_arena_str(q->arena, name) : NULL;
		if (by == BY_NAME && !list[n].name)
			st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
		n++;
	}
	tw_match_free(match);
	*ret = list;
	*ret_n = n;
	return st;
}

static enum tw_status answer_methods(struct tw_question *q, struct tw_err *err)
{
	static const char *const sorts[] = {"self_ns", "total_ns", "sum_ns", "count", "max_ns",
	        "name", "cpu_ns", "waiting_ns", NULL};
	static const char *const orders[] = {"desc", "asc", NULL};
	const struct tw_req *r = q->v.req;
	const struct tw_method_info *rows = NULL;
	struct ranked *list = NULL;
	uint32_t n = 0;
	unsigned by = 0;
	unsigned order = 0;
	int64_t limit = 0;
	int64_t offset = 0;
	int64_t busy_ns = 0; /* self times add up to the time in which calls were open */
	bool partial = false;
	enum tw_status st = tw_question_one_of(r, "sort", sorts, &by, err);

	if (st == TW_OK)
		st = tw_question_one_of(r, "order", orders, &order, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "limit", 25, 1, METHODS_MAX, &limit, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "offset", 0, 0, UINT32_MAX, &offset, err);
	if (st == TW_OK)
		st = method_rows(q, &rows, &partial, err);
	if (st == TW_OK)
		st = rank(q, rows, by, &list, &n, err);
	if (st != TW_OK)
		return st;
	if (n)
		qsort(list, n, sizeof *list, order ? rising : falling);
	for (uint32_t i = 0; i < q->v.n_methods + q->n_labels; i++)
		busy_ns += rows[i].self_ns;
	tw_json_open(&q->j, '{');
	tw_json_key(&q->j, "methods");
	tw_json_open(&q->j, '[');
	for (int64_t i = offset; i < (int64_t)n && i < offset + limit; i++)
		put_method(q, &rows[list[i].method], list[i].method);
	tw_json_close(&q->j, ']');
	tw_json_key_int(&q->j, "total", n);
	tw_json_key_int(&q->j, "busy_ns", busy_ns);
	tw_json_key_bool(&q->j, "partial", partial);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

static enum tw_status methods(struct tw_req *r, struct tw_err *err)
{
	return tw_question_run(r, answer_methods, err);
}

/* --- search --- */

struct found {
	uint32_t n;
	uint64_t count;
	int64_t self_ns, all_self_ns;
};

static void search_all(
        struct tw_question *q, const struct tw_match *match, uint32_t limit, struct found *ret)
{
	for (uint32_t i = 0; i < q->v.n_methods; i++) {
		const struct tw_method_info *m = &q->v.methods[i];
		struct tw_str name = tw_view_name(&q->v, i, q->name, NULL);

		ret->all_self_ns += m->self_ns;
		if (!tw_match_has(match, name))
			continue;
		ret->count += m->count;
		ret->self_ns += m->self_ns;
		if (ret->n++ < limit)
			put_method(q, m, i);
	}
}

static enum tw_status answer_search(struct tw_question *q, struct tw_err *err)
{
	const char *text = tw_req_query(q->v.req, "q");
	struct found found = {0};
	struct tw_match *match = NULL;
	bool regex = false;
	int64_t limit = 0;
	enum tw_status st = tw_req_query_bool(q->v.req, "regex", false, &regex, err);

	if (st == TW_OK)
		st = tw_req_query_i64(q->v.req, "limit", 100, 1, METHODS_MAX, &limit, err);
	if (st == TW_OK && (!text || !text[0]))
		st = tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "q= says what to look for");
	if (st == TW_OK)
		st = tw_match_new(text, regex, &match, err);
	if (st != TW_OK)
		return st;
	tw_json_open(&q->j, '{');
	tw_json_key(&q->j, "methods");
	tw_json_open(&q->j, '[');
	search_all(q, match, (uint32_t)limit, &found);
	tw_json_close(&q->j, ']');
	tw_json_key_int(&q->j, "total_methods", found.n);
	tw_json_key_int(&q->j, "count", (int64_t)found.count);
	tw_json_key_int(&q->j, "self_ns", found.self_ns);
	tw_json_key(&q->j, "share");
	tw_json_double(
	        &q->j, found.all_self_ns ? (double)found.self_ns / (double)found.all_self_ns : 0.0);
	tw_json_close(&q->j, '}');
	tw_match_free(match);
	return TW_OK;
}

static enum tw_status search(struct tw_req *r, struct tw_err *err)
{
	return tw_question_run(r, answer_search, err);
}

const struct tw_route tw_routes_query[] = {
        {.method = "GET",
                .path = "/api/v1/traces/{id}/methods",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = methods,
                .summary = "totals per method"},
        {.method = "GET",
                .path = "/api/v1/traces/{id}/search",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = search,
                .summary = "methods whose name matches"},
        {0},
};
