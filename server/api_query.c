/*
 * api_query.c - flame graphs, method tables and search over one trace.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "json_write.h"
#include "match.h"
#include "view.h"

#define BODY_MAX  ((size_t)256 << 20)
#define ARENA_MAX ((size_t)1 << 30)
enum { ROOT_MAX = 4096, NODES_MAX = 200000, METHODS_MAX = 10000, TEXT_MAX = 512 };

/* One query: its view, its own memory, its answer. */
struct query {
	struct tw_view v;
	struct tw_arena *arena;
	struct tw_selection sel;
	struct tw_deadline deadline;
	struct tw_buf out;
	struct tw_json j;
	char *name;           /* TW_NAME_BYTES */
	struct tw_str *names; /* of methods met before; ptr NULL: not yet */
};

static enum tw_status query_open(struct tw_req *r, struct query *q, struct tw_err *err)
{
	enum tw_status st = tw_view_open(r, &q->v, err);

	if (st != TW_OK)
		return st;
	tw_buf_init(&q->out, BODY_MAX);
	q->j = tw_json_to(&q->out);
	q->deadline = tw_view_deadline(&q->v);
	q->arena = tw_arena_new(ARENA_MAX);
	q->name = q->arena ? tw_arena_alloc(q->arena, TW_NAME_BYTES, 1) : NULL;
	q->names = q->name ? tw_arena_zalloc(q->arena, q->v.n_methods + 1, sizeof *q->names) : NULL;
	return q->names ? tw_view_selection(&q->v, &q->sel, err)
	                : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
}

static void query_close(struct query *q)
{
	if (q->v.file)
		tw_view_close(&q->v);
	tw_arena_free(q->arena);
	tw_buf_done(&q->out);
}

/* Opens, lets `answer` write into q->out, replies. */
static enum tw_status run_query(struct tw_req *r,
        enum tw_status (*answer)(struct query *q, struct tw_err *err), struct tw_err *err)
{
	struct query q = {0};
	enum tw_status st = query_open(r, &q, err);

	if (st == TW_OK && tw_view_unchanged(&q.v)) {
		query_close(&q);
		return TW_OK;
	}
	if (st == TW_OK)
		st = answer(&q, err);
	if (st == TW_OK && tw_buf_status(&q.out) != TW_OK)
		st = tw_fail(err, TW_TOO_LARGE, TW_NO_OFFSET, "the answer is too large");
	if (st == TW_OK)
		st = tw_req_reply_buf(r, 200, "application/json", true, &q.out, err);
	query_close(&q);
	return st;
}

/* --- flame --- */

static enum tw_status one_of(const struct tw_req *r, const char *name, const char *const *words,
        unsigned *ret, struct tw_err *err)
{
	const char *text = tw_req_query(r, name);

	*ret = 0;
	if (!text)
		return TW_OK;
	for (unsigned i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return TW_OK;
		}
	return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "%s does not know %s", name, text);
}

static enum tw_status read_root(const struct query *q, struct tw_flame_query *f, struct tw_err *err)
{
	const char *text = tw_req_query(q->v.req, "root");
	struct tw_str rest = tw_str_of(text ? text : "");
	uint32_t *path = tw_arena_alloc(q->arena, ROOT_MAX, sizeof *path);

	if (!path)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	while (rest.len) {
		uint64_t method = 0;

		if (f->n_root == ROOT_MAX ||
		        !tw_str_u64(tw_str_split(&rest, '.'), UINT32_MAX, &method))
			return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
			        "root is method indexes with dots between them");
		path[f->n_root++] = (uint32_t)method;
	}
	f->root = path;
	return TW_OK;
}

static enum tw_status read_flame_query(
        const struct query *q, struct tw_flame_query *ret, bool *ret_columns, struct tw_err *err)
{
	static const char *const views[] = {"top_down", "bottom_up", NULL};
	static const char *const metrics[] = {"wall", "count", NULL};
	static const char *const formats[] = {"json", "columns", NULL};
	const struct tw_req *r = q->v.req;
	unsigned view = 0;
	unsigned metric = 0;
	unsigned format = 0;
	int64_t max_nodes = 0;
	int64_t skip = 0;
	enum tw_status st = one_of(r, "view", views, &view, err);

	if (st == TW_OK)
		st = one_of(r, "metric", metrics, &metric, err);
	if (st == TW_OK)
		st = one_of(r, "format", formats, &format, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "max_nodes", tw_req_app(r)->config->flame_nodes, 1,
		        NODES_MAX, &max_nodes, err);
	if (st == TW_OK)
		st = tw_req_query_i64(r, "skip", 0, 0, UINT32_MAX, &skip, err);
	if (st != TW_OK)
		return st;
	*ret = (struct tw_flame_query){.view = (enum tw_flame_view)view,
	        .metric = (enum tw_flame_metric)metric,
	        .max_nodes = (uint32_t)max_nodes,
	        .skip = (uint32_t)skip};
	*ret_columns = format == 1;
	return read_root(q, ret, err);
}

/* A flame graph names the same methods again and again: each is looked up once. */
static struct tw_str method_name(const struct query *q, uint32_t method)
{
	struct tw_str name;
	char *copy;

	if (method >= q->v.n_methods)
		return TW_STR("");
	if (q->names[method].ptr)
		return q->names[method];
	name = tw_view_name(&q->v, method, q->name, NULL);
	copy = tw_arena_str(q->arena, name);
	if (!copy)
		return name;
	return q->names[method] = (struct tw_str){copy, name.len};
}

static struct tw_str root_name(const struct query *q)
{
	const struct tw_thread_info *only = NULL;
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(q->v.file, &n);

	for (uint32_t i = 0; i < n; i++)
		if (tw_selection_has(&q->sel, &t[i])) {
			if (only)
				return q->sel.all_threads ? TW_STR("all threads")
				                          : TW_STR("selected threads");
			only = &t[i];
		}
	if (only && only->name.len)
		return only->name;
	return TW_STR("thread");
}

static struct tw_str node_name(const struct query *q, const struct tw_flame_node *n)
{
	if (n->others)
		return TW_STR("(other)");
	if (n->method == TW_NO_METHOD)
		return root_name(q);
	return method_name(q, n->method);
}

static void put_node(struct query *q, const struct tw_flame_node *n)
{
	tw_json_open(&q->j, '{');
	tw_json_key_str(&q->j, "name", node_name(q, n));
	tw_json_key_int(&q->j, "value", n->value);
	tw_json_key_int(&q->j, "self", n->self);
	tw_json_key_int(&q->j, "count", (int64_t)n->count);
	if (n->others) {
		tw_json_key_int(&q->j, "other", n->others);
	} else if (n->method != TW_NO_METHOD) {
		tw_json_key_int(&q->j, "method", n->method);
		tw_json_key_int(&q->j, "max_ns", n->max_ns);
	}
}

static void put_totals(struct query *q, const struct tw_flame *f)
{
	uint64_t shown = 0;

	for (uint32_t i = 1; i < f->n; i++)
		shown += f->nodes[i].others == 0;
	tw_json_key_int(&q->j, "total_nodes", (int64_t)f->total_nodes);
	tw_json_key_int(&q->j, "shown_nodes", (int64_t)shown);
	tw_json_key_bool(&q->j, "partial", f->partial);
}

static void put_nested(struct query *q, const struct tw_flame *f)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct tw_flame_node *n = &f->nodes[i];
		bool parent = i + 1 < f->n && f->nodes[i + 1].depth > n->depth;

		for (; depth > n->depth; depth--) {
			tw_json_close(&q->j, ']');
			tw_json_close(&q->j, '}');
		}
		put_node(q, n);
		if (i == 0)
			put_totals(q, f);
		tw_json_key(&q->j, "children");
		tw_json_open(&q->j, '[');
		if (parent) {
			depth++;
		} else {
			tw_json_close(&q->j, ']');
			tw_json_close(&q->j, '}');
		}
	}
	for (; depth; depth--) {
		tw_json_close(&q->j, ']');
		tw_json_close(&q->j, '}');
	}
}

static int64_t field(const struct tw_flame_node *n, int which)
{
	switch (which) {
	case 0:
		return n->parent;
	case 1:
		return n->value;
	case 2:
		return n->self;
	case 3:
		return (int64_t)n->count;
	case 4:
		return n->method == TW_NO_METHOD ? -1 : (int64_t)n->method;
	default:
		return n->others;
	}
}

/* Names by order of appearance: a method's number in the list, or -1. */
static bool put_name_columns(struct query *q, const struct tw_flame *f)
{
	uint32_t *number = tw_arena_zalloc(q->arena, q->v.n_methods + 2, sizeof *number);
	uint32_t *of = tw_arena_alloc(q->arena, f->n, sizeof *of);
	uint32_t n = 0;

	if (!number || !of)
		return false;
	tw_json_key(&q->j, "names");
	tw_json_open(&q->j, '[');
	for (uint32_t i = 0; i < f->n; i++) {
		const struct tw_flame_node *node = &f->nodes[i];
		uint32_t slot = node->others                   ? q->v.n_methods
		                : node->method == TW_NO_METHOD ? q->v.n_methods + 1
		                                               : node->method;

		if (number[slot] == 0) {
			tw_json_str(&q->j, node_name(q, node));
			number[slot] = ++n;
		}
		of[i] = number[slot] - 1;
	}
	tw_json_close(&q->j, ']');
	tw_json_key(&q->j, "name");
	tw_json_open(&q->j, '[');
	for (uint32_t i = 0; i < f->n; i++)
		tw_json_int(&q->j, of[i]);
	tw_json_close(&q->j, ']');
	return true;
}

static enum tw_status put_columns(struct query *q, const struct tw_flame *f, struct tw_err *err)
{
	static const char *const keys[] = {"parent", "value", "self", "count", "method", "other"};

	tw_json_open(&q->j, '{');
	if (!put_name_columns(q, f))
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	for (int k = 0; k < 6; k++) {
		tw_json_key(&q->j, keys[k]);
		tw_json_open(&q->j, '[');
		for (uint32_t i = 0; i < f->n; i++)
			tw_json_int(&q->j, field(&f->nodes[i], k));
		tw_json_close(&q->j, ']');
	}
	put_totals(q, f);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

static enum tw_status answer_flame(struct query *q, struct tw_err *err)
{
	struct tw_flame_query fq;
	struct tw_flame f;
	bool columns;
	enum tw_status st = read_flame_query(q, &fq, &columns, err);

	if (st == TW_OK)
		st = tw_query_graph(q->v.file, &q->sel, &fq, &q->deadline, q->arena, &f, err);
	if (st != TW_OK)
		return st;
	if (columns)
		return put_columns(q, &f, err);
	put_nested(q, &f);
	return TW_OK;
}

static enum tw_status flame(struct tw_req *r, struct tw_err *err)
{
	return run_query(r, answer_flame, err);
}

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

static int64_t sort_key(const struct tw_method_info *m, unsigned by)
{
	const int64_t keys[] = {
	        m->self_ns, m->total_ns, m->sum_ns, (int64_t)m->count, m->max_ns, 0, m->cpu_ns};

	return keys[by];
}

/* Rows of the whole trace are stored; those of threads or a range come from their tree. */
static enum tw_status method_rows(
        struct query *q, const struct tw_method_info **ret, bool *ret_partial, struct tw_err *err)
{
	struct tw_method_info *rows = NULL;
	struct tw_forest forest;
	enum tw_status st;

	*ret_partial = false;
	if (q->sel.all_threads && !q->sel.ranged) {
		*ret = q->v.methods;
		return TW_OK;
	}
	st = tw_query_forest(q->v.file, &q->sel, &q->deadline, q->arena, &forest, ret_partial, err);
	if (st == TW_OK)
		st = tw_query_methods(&forest, q->v.n_methods, q->arena, &rows, err);
	*ret = rows;
	return st;
}

static void put_method(struct query *q, const struct tw_method_info *row, uint32_t method)
{
	const struct tw_method_info *m = &q->v.methods[method];
	bool known;
	struct tw_str name = tw_view_name(&q->v, method, q->name, &known);

	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "method", method);
	tw_json_key(&q->j, "id");
	if (m->has_id)
		tw_json_int(&q->j, (int64_t)m->id);
	else
		tw_json_null(&q->j);
	tw_json_key_str(&q->j, "name", name);
	tw_json_key_int(&q->j, "count", (int64_t)row->count);
	tw_json_key_int(&q->j, "total_ns", row->total_ns);
	tw_json_key_int(&q->j, "sum_ns", row->sum_ns);
	tw_json_key_int(&q->j, "self_ns", row->self_ns);
	tw_json_key_int(&q->j, "max_ns", row->max_ns);
	tw_json_key(&q->j, "cpu_ns");
	if (row->cpu_ns >= 0)
		tw_json_int(&q->j, row->cpu_ns);
	else
		tw_json_null(&q->j);
	tw_json_key_bool(&q->j, "resolved", known);
	tw_json_close(&q->j, '}');
}

static enum tw_status rank(struct query *q, const struct tw_method_info *rows, unsigned by,
        struct ranked **ret, uint32_t *ret_n, struct tw_err *err)
{
	enum { BY_NAME = 5 };
	const char *text = tw_req_query(q->v.req, "q");
	struct tw_match *match = NULL;
	struct ranked *list = tw_arena_alloc(q->arena, q->v.n_methods + 1, sizeof *list);
	uint32_t n = 0;
	enum tw_status st = list ? tw_match_new(text ? text : "", false, &match, err)
	                         : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");

	for (uint32_t i = 0; st == TW_OK && i < q->v.n_methods; i++) {
		struct tw_str name = {0};

		if (rows[i].count == 0)
			continue;
		if (by == BY_NAME || (text && text[0]))
			name = tw_view_name(&q->v, i, q->name, NULL);
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

static enum tw_status answer_methods(struct query *q, struct tw_err *err)
{
	static const char *const sorts[] = {
	        "self_ns", "total_ns", "sum_ns", "count", "max_ns", "name", "cpu_ns", NULL};
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
	enum tw_status st = one_of(r, "sort", sorts, &by, err);

	if (st == TW_OK)
		st = one_of(r, "order", orders, &order, err);
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
	for (uint32_t i = 0; i < q->v.n_methods; i++)
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
	return run_query(r, answer_methods, err);
}

/* --- search --- */

struct found {
	uint32_t n;
	uint64_t count;
	int64_t self_ns, all_self_ns;
};

static void search_all(
        struct query *q, const struct tw_match *match, uint32_t limit, struct found *ret)
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

static enum tw_status answer_search(struct query *q, struct tw_err *err)
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
	return run_query(r, answer_search, err);
}

const struct tw_route tw_routes_query[] = {
        {.method = "GET",
                .path = "/api/v1/traces/{id}/flame",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = flame,
                .summary = "merged flame graph of threads and a time range"},
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
