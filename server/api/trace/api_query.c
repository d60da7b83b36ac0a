/*
 * api_query.c - method tables and search over one trace.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/base/text/match.h"

enum { METHODS_MAX = 10000, CHECK_EVERY = 1024 };

/* --- methods --- */

enum sort {
	BY_SELF,
	BY_TOTAL,
	BY_SUM,
	BY_COUNT,
	BY_MAX,
	BY_NAME,
	BY_CPU,
	BY_WAITING,
	BY_P95,
	BY_RUNNING
};

struct table {         /* the requested methods */
	unsigned sort; /* enum sort */
	unsigned falling_or_rising;
	bool regex, with_p95;
	int64_t limit, offset;
	const struct tw_method_info
	        *rows; /* methods of the trace, then frames made by transform= */
	uint32_t n_rows;
	const int64_t *p95_ns;         /* NULL: not requested, or unknown */
	const int64_t *own_running_ns; /* NULL: no CPU time is known */
	struct tw_waits waits;
	bool partial;
};

struct ranked {
	uint32_t method;
	int64_t key;
	const char *name; /* for sorting by name */
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

/* Of the total time; -1 without CPU times. */
static int64_t waiting_ns(const struct tw_method_info *m)
{
	if (m->cpu_ns < 0)
		return -1;
	return m->total_ns > m->cpu_ns ? m->total_ns - m->cpu_ns : 0;
}

static int64_t p95_ns(const struct table *t, uint32_t method)
{
	return t->p95_ns ? t->p95_ns[method] : -1;
}

/* Self time minus waiting time. */
static int64_t running_ns(const struct table *t, uint32_t method)
{
	if (t->own_running_ns)
		return t->own_running_ns[method];
	return tw_waits(&t->waits, method) ? 0 : t->rows[method].self_ns;
}

static int64_t sort_key(const struct table *t, uint32_t method)
{
	const struct tw_method_info *m = &t->rows[method];
	const int64_t keys[] = {[BY_SELF] = m->self_ns,
	        [BY_TOTAL] = m->total_ns,
	        [BY_SUM] = m->sum_ns,
	        [BY_COUNT] = (int64_t)m->count,
	        [BY_MAX] = m->max_ns,
	        [BY_NAME] = 0,
	        [BY_CPU] = m->cpu_ns,
	        [BY_WAITING] = waiting_ns(m),
	        [BY_P95] = p95_ns(t, method),
	        [BY_RUNNING] = running_ns(t, method)};

	return keys[t->sort];
}

static enum tw_status method_running(struct tw_trace_query *q, struct table *t,
        const struct tw_forest *forest, struct tw_err *err)
{
	int64_t *running = NULL;
	enum tw_status st = TW_OK;

	if (tw_trace_file_info(q->v.file)->has_cpu)
		st = tw_query_running(forest, &t->waits, t->n_rows, q->arena, &running, err);
	t->own_running_ns = running;
	return st;
}

/* Rows of the whole trace are stored, except for the running time of each call path. */
static enum tw_status stored_rows(struct tw_trace_query *q, struct table *t, struct tw_err *err)
{
	const struct tw_selection whole = {.all_threads = true};
	struct tw_forest forest;
	enum tw_status st = tw_trace_file_methods(q->v.file, &t->rows, &t->n_rows, err);

	if (st != TW_OK || !tw_trace_file_info(q->v.file)->has_cpu)
		return st;
	st = tw_query_forest(q->v.file, &whole, &q->deadline, q->arena, &forest, &t->partial, err);
	return st == TW_OK ? method_running(q, t, &forest, err) : st;
}

/* Rows of threads or a range are computed from their trees. */
static enum tw_status method_rows(struct tw_trace_query *q, struct table *t, struct tw_err *err)
{
	struct tw_method_info *rows = NULL;
	struct tw_forest forest;
	enum tw_status st;

	if (q->sel.all_threads && !q->sel.ranged && !tw_trace_query_reshapes(q))
		return stored_rows(q, t, err);
	t->n_rows = q->v.n_methods + q->n_labels;
	st = tw_query_forest(q->v.file, &q->sel, &q->deadline, q->arena, &forest, &t->partial, err);
	if (st == TW_OK)
		st = tw_trace_query_reshape(q, &forest, &t->partial, err);
	if (st == TW_OK)
		st = tw_query_methods(&forest, t->n_rows, q->arena, &rows, err);
	t->rows = rows;
	return st == TW_OK ? method_running(q, t, &forest, err) : st;
}

/* transform= changes merged trees, which have no single calls. */
static enum tw_status method_p95(struct tw_trace_query *q, struct table *t, struct tw_err *err)
{
	const struct tw_quantile_of of = {t->rows, t->n_rows, 95};
	int64_t *p95 = NULL;
	enum tw_status st;

	if (!(t->with_p95 || t->sort == BY_P95) || tw_trace_query_reshapes(q))
		return TW_OK;
	st = tw_query_quantile(q->v.file, &q->sel, &of, &q->deadline, q->arena, &p95, err);
	t->p95_ns = p95;
	return st;
}

/* Frames made by transform= are numbered after the trace's methods. */
static struct tw_str name_of(const struct tw_trace_query *q, uint32_t method, bool *ret_known)
{
	*ret_known = true;
	return method < q->v.n_methods ? tw_view_name(&q->v, method, q->name, ret_known)
	                               : tw_trace_query_name(q, method);
}

static void put_method(struct tw_trace_query *q, const struct table *t, uint32_t method)
{
	const struct tw_method_info *row = &t->rows[method];
	const struct tw_method_ref *m = method < q->v.n_methods ? &q->v.methods[method] : NULL;
	bool known;
	struct tw_str name = name_of(q, method, &known);

	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "method", method);
	tw_json_key(&q->j, "id");
	if (m && !m->name)
		tw_json_int(&q->j, (int64_t)m->id);
	else
		tw_json_null(&q->j);
	tw_json_key_str(&q->j, "name", name);
	tw_trace_query_put_descriptor(q, method);
	TW_JSON_MEMBERS(&q->j, row, count, total_ns, sum_ns, self_ns);
	tw_json_key_int(&q->j, "running_ns", running_ns(t, method));
	tw_json_key_int(&q->j, "max_ns", row->max_ns);
	tw_json_key_int_or_null(&q->j, "p95_ns", p95_ns(t, method));
	tw_json_key_int_or_null(&q->j, "cpu_ns", row->cpu_ns);
	tw_json_key_int_or_null(&q->j, "waiting_ns", waiting_ns(row));
	tw_json_key_bool(&q->j, "resolved", known);
	tw_json_close(&q->j, '}');
}

/* Adds the method if it was requested; false: out of memory. */
static bool rank_one(struct tw_trace_query *q, const struct table *t, const struct tw_match *match,
        uint32_t method, struct ranked *list, uint32_t *n)
{
	struct ranked *r = &list[*n];
	struct tw_str name = {0};
	char descriptor[TW_DESCRIPTOR_BYTES];
	bool known;

	if (t->rows[method].count == 0)
		return true;
	if (match || t->sort == BY_NAME)
		name = name_of(q, method, &known);
	if (match &&
	        !tw_match_has_method(match, name, tw_view_descriptor(&q->v, method, descriptor)))
		return true;
	*r = (struct ranked){.method = method, .key = sort_key(t, method)};
	if (t->sort == BY_NAME)
		r->name = tw_arena_str(q->arena, name);
	++*n;
	return t->sort != BY_NAME || r->name;
}

static enum tw_status rank(struct tw_trace_query *q, const struct table *t, struct ranked **ret,
        uint32_t *ret_n, struct tw_err *err)
{
	const char *text = tw_req_text(q->v.req, "q");
	struct tw_match *match = NULL;
	struct ranked *list = tw_arena_alloc(q->arena, (size_t)t->n_rows + 1, sizeof *list);
	bool kept = list != NULL;
	uint32_t n = 0;
	enum tw_status st = TW_OK;

	if (text && text[0])
		st = tw_match_new(text, t->regex, &match, err);
	for (uint32_t i = 0; st == TW_OK && kept && i < t->n_rows; i++)
		kept = rank_one(q, t, match, i, list, &n);
	tw_match_free(match);
	if (st == TW_OK && !kept)
		st = tw_oom(err);
	if (st == TW_OK)
		TW_SORT(list, n, t->falling_or_rising ? rising : falling);
	*ret = list;
	*ret_n = n;
	return st;
}

static const char *const sorts[] = {[BY_SELF] = "self_ns",
        [BY_TOTAL] = "total_ns",
        [BY_SUM] = "sum_ns",
        [BY_COUNT] = "count",
        [BY_MAX] = "max_ns",
        [BY_NAME] = "name",
        [BY_CPU] = "cpu_ns",
        [BY_WAITING] = "waiting_ns",
        [BY_P95] = "p95_ns",
        [BY_RUNNING] = "running_ns",
        NULL};

static const struct tw_param methods_params[] = {
        TW_PARAM_ENUM("sort", sorts, ""),
        TW_PARAM_ENUM("order", tw_orders, ""),
        TW_PARAM_NUMBER("limit", 25, 1, METHODS_MAX, ""),
        TW_PARAM_NUMBER("offset", 0, 0, UINT32_MAX, ""),
        TW_PARAM_TEXT("q", 0,
                "Part of the name, ignoring case; with regex=true, a regular expression (PCRE2). "
                "A text with a parenthesis is also compared with parameters and type, as in "
                "`parse(java.lang.String, int): void` or `parse(String, int): void`."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_FLAG("p95", false,
                "Also returns p95_ns, for which every call of the selection is read. sort=p95_ns "
                "returns it, too."),
        {0},
};

static void put_table(
        struct tw_trace_query *q, const struct table *t, const struct ranked *list, uint32_t n)
{
	int64_t busy_ns = 0; /* the sum of self times is the time with an open call */

	for (uint32_t i = 0; i < t->n_rows; i++)
		busy_ns += t->rows[i].self_ns;
	tw_json_open(&q->j, '{');
	tw_json_key_open(&q->j, "methods", '[');
	for (int64_t i = t->offset; i < (int64_t)n && i < t->offset + t->limit; i++)
		put_method(q, t, list[i].method);
	tw_json_close(&q->j, ']');
	tw_json_key_int(&q->j, "total", n);
	tw_json_key_int(&q->j, "busy_ns", busy_ns);
	tw_json_key_bool(&q->j, "partial", t->partial);
	tw_json_close(&q->j, '}');
}

static enum tw_status answer_methods(struct tw_trace_query *q, struct tw_err *err)
{
	struct table t = {.rows = NULL};
	struct ranked *list = NULL;
	uint32_t n = 0;
	enum tw_status st;

	t.sort = (unsigned)tw_req_enum(q->v.req, "sort");
	t.falling_or_rising = (unsigned)tw_req_enum(q->v.req, "order");
	t.regex = tw_req_flag(q->v.req, "regex");
	t.with_p95 = tw_req_flag(q->v.req, "p95");
	t.limit = tw_req_number(q->v.req, "limit");
	t.offset = tw_req_number(q->v.req, "offset");
	st = tw_view_waits(&q->v, q->arena, &t.waits, err);
	if (st == TW_OK)
		st = method_rows(q, &t, err);
	if (st == TW_OK)
		st = method_p95(q, &t, err);
	if (st == TW_OK)
		st = rank(q, &t, &list, &n, err);
	if (st == TW_OK)
		put_table(q, &t, list, n);
	return st;
}

/* --- search --- */

struct found {
	uint32_t n;
	uint64_t count;
	int64_t self_ns, all_self_ns;
	bool partial;
};

static void search_all(struct tw_trace_query *q, const struct table *all,
        const struct tw_match *match, uint32_t limit, struct found *ret)
{
	for (uint32_t i = 0; i < all->n_rows && i < q->v.n_methods; i++) {
		const struct tw_method_info *m = &all->rows[i];
		struct tw_str name = tw_view_name(&q->v, i, q->name, NULL);
		char descriptor[TW_DESCRIPTOR_BYTES];

		if (i % CHECK_EVERY == 0 && tw_deadline_passed(&q->deadline)) {
			ret->partial = true;
			return;
		}
		ret->all_self_ns += m->self_ns;
		if (!tw_match_has_method(match, name, tw_view_descriptor(&q->v, i, descriptor)))
			continue;
		ret->count += m->count;
		ret->self_ns += m->self_ns;
		if (ret->n++ < limit)
			put_method(q, all, i);
	}
}

static const struct tw_param search_params[] = {
        TW_PARAM_REQUIRED("q", 0, "Text or regular expression."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_NUMBER("limit", 100, 1, METHODS_MAX, ""),
        {0},
};

static enum tw_status answer_search(struct tw_trace_query *q, struct tw_err *err)
{
	struct found found = {0};
	struct table all = {.rows = NULL};
	struct tw_match *match = NULL;
	enum tw_status st = tw_view_waits(&q->v, q->arena, &all.waits, err);

	if (st == TW_OK)
		st = stored_rows(q, &all, err);
	found.partial = all.partial;
	if (st == TW_OK)
		st = tw_match_new(
		        tw_req_text(q->v.req, "q"), tw_req_flag(q->v.req, "regex"), &match, err);
	if (st != TW_OK)
		return st;
	tw_json_open(&q->j, '{');
	tw_json_key_open(&q->j, "methods", '[');
	search_all(q, &all, match, (uint32_t)tw_req_number(q->v.req, "limit"), &found);
	tw_json_close(&q->j, ']');
	tw_json_key_int(&q->j, "total_methods", found.n);
	TW_JSON_MEMBERS(&q->j, &found, count, self_ns);
	tw_json_key(&q->j, "share");
	tw_json_double(
	        &q->j, found.all_self_ns ? (double)found.self_ns / (double)found.all_self_ns : 0.0);
	tw_json_key_bool(&q->j, "partial", found.partial);
	tw_json_close(&q->j, '}');
	tw_match_free(match);
	return TW_OK;
}

const struct tw_route tw_routes_query[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/methods", TW_NEED_READ, "Methods with their times",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params,
                        tw_trace_query_step_params, methods_params),
                .trace_query = answer_methods),
        TW_ROUTE("GET", "/api/v1/traces/{id}/search", TW_NEED_READ, "Methods by name",
                .params = TW_PARAMS(search_params), .trace_query = answer_search),
        {0},
};
