/*
 * api_flame.c - flame graphs of one trace, nested and as columns.
 */
#include <inttypes.h>

#include "decoder/base/order.h"
#include "decoder/base/sum.h"
#include "server/api/api.h"
#include "server/api/trace/trace_query.h"

enum { ROOT_MAX = 4096, NODES_MAX = 200000 };

static enum tw_status read_root(
        const struct tw_trace_query *q, struct tw_flame_query *f, struct tw_err *err)
{
	const char *text = tw_req_text(q->v.req, "root");
	struct tw_str rest = tw_str_of(text ? text : "");
	uint32_t *path = tw_arena_alloc(q->arena, ROOT_MAX, sizeof *path);

	if (!path)
		return tw_oom(err);
	while (rest.len) {
		uint64_t method = 0;

		if (f->n_root == ROOT_MAX ||
		        !tw_str_u64(tw_str_split(&rest, '.'), UINT32_MAX, &method))
			return tw_fail(err, TW_BAD_REQUEST,
			        "root is method indexes with dots between them, not %.60s", text);
		path[f->n_root++] = (uint32_t)method;
	}
	f->root = path;
	return TW_OK;
}

static const char *const views[] = {"top_down", "bottom_up", NULL};
static const char *const metrics[] = {"wall", "count", "cpu", "waiting", "running", NULL};
static const char *const formats[] = {"json", "columns", NULL};

static const struct tw_param flame_params[] = {
        TW_PARAM_ENUM("view", views, ""),
        TW_PARAM_ENUM("metric", metrics,
                "What widths represent: wall time, calls, CPU time, or the two parts of wall time, "
                "running and waiting. Where CPU time is known, running is CPU time, otherwise the "
                "time outside methods that only wait (decoder/symbols/waits.def). 400 for cpu when "
                "the trace has no CPU time."),
        TW_PARAM_ENUM("format", formats, ""),
        TW_PARAM_TEXT("root", 0,
                "Method indexes from the top of the view, with dots between them: drill-down."),
        TW_PARAM_OPTIONAL_NUMBER("max_nodes", 1, NODES_MAX,
                "The rest becomes (other). --flame-nodes sets the default."),
        TW_PARAM_NUMBER("digits", 0, 0, 9,
                "With format=columns: rounds times, for smaller responses, to the largest power of "
                "ten that is at most 10^-digits of the lightest node. The value of each node is "
                "accurate to within one such unit. 0: exact. Numbers of calls are always exact."),
        TW_PARAM_NUMBER("skip", 0, 0, UINT32_MAX,
                "Omits that many of the root's heaviest children and returns the others below an "
                "(other) root: the content of (other) in a response that showed this many. 404 "
                "when the root has no more children."),
        {0},
};

static enum tw_status read_flame_query(const struct tw_trace_query *q, struct tw_flame_query *ret,
        bool *ret_columns, struct tw_err *err)
{
	const struct tw_req *r = q->v.req;
	const int metric = tw_req_enum(r, "metric");
	enum tw_status st = TW_OK;

	if (st == TW_OK && metric == TW_METRIC_CPU && !tw_trace_file_info(q->v.file)->has_cpu)
		st = tw_fail(err, TW_BAD_REQUEST, "metric: this trace has no CPU times");
	if (st != TW_OK)
		return st;
	*ret = (struct tw_flame_query){.view = (enum tw_flame_view)tw_req_enum(r, "view"),
	        .metric = (enum tw_flame_metric)metric,
	        .max_nodes = (uint32_t)tw_req_number_or(
	                r, "max_nodes", tw_api_of(r)->config->flame_nodes),
	        .skip = (uint32_t)tw_req_number(r, "skip"),
	        .steps = q->steps,
	        .n_steps = q->n_steps};
	*ret_columns = tw_req_enum(r, "format") == 1;
	ret->no_longest = *ret_columns; /* they have none */
	st = metric == TW_METRIC_WAITING || metric == TW_METRIC_RUNNING
	             ? tw_view_waits(&q->v, q->arena, &ret->waits, err)
	             : TW_OK;
	return st == TW_OK ? read_root(q, ret, err) : st;
}

static struct tw_str root_name(const struct tw_trace_query *q)
{
	const struct tw_thread_info *only = NULL;
	const char *text;
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
	text = only ? tw_arena_printf(q->arena, "thread %" PRIu64, only->tid) : NULL;
	return text ? tw_str_of(text) : TW_STR("thread");
}

static struct tw_str node_name(const struct tw_trace_query *q, const struct tw_flame_node *n)
{
	if (n->others)
		return TW_STR("(other)");
	if (n->method == TW_NO_METHOD)
		return root_name(q);
	return tw_trace_query_name(q, n->method);
}

static void put_node(struct tw_trace_query *q, const struct tw_flame_node *n)
{
	tw_json_open(&q->j, '{');
	tw_json_key_str(&q->j, "name", node_name(q, n));
	if (!n->others && n->method != TW_NO_METHOD)
		tw_trace_query_put_descriptor(q, n->method);
	TW_JSON_MEMBERS(&q->j, n, value, self, count);
	if (n->others) {
		tw_json_key_int(&q->j, "other", n->others);
	} else if (n->method != TW_NO_METHOD) {
		TW_JSON_MEMBERS(&q->j, n, method, max_ns);
	}
}

static void put_totals(struct tw_trace_query *q, const struct tw_flame *f)
{
	uint64_t shown = 0;

	for (uint32_t i = 1; i < f->n; i++)
		shown += f->nodes[i].others == 0;
	tw_json_key_int(&q->j, "total_nodes", (int64_t)f->total_nodes);
	tw_json_key_int(&q->j, "shown_nodes", (int64_t)shown);
	tw_json_key_bool(&q->j, "partial", f->partial);
}

static void put_nested(struct tw_trace_query *q, const struct tw_flame *f)
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
		tw_json_key_open(&q->j, "children", '[');
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

/* A name of the nodes and how many nodes have it. */
struct used_name {
	uint32_t slot; /* method, or one of the two after the last method */
	uint32_t first, nodes;
};

/* The most frequent names first: their indexes have the fewest digits. */
TW_ORDER_BY(by_use, struct used_name, TW_FALLING(nodes), TW_RISING(first))

static void put_numbers(struct tw_trace_query *q, const char *key, const int64_t *v, uint32_t n)
{
	tw_json_key_open(&q->j, key, '[');
	for (uint32_t i = 0; i < n; i++)
		tw_json_int(&q->j, v[i]);
	tw_json_close(&q->j, ']');
}

enum { COLUMN_OTHER_METHOD = -2, COLUMN_ROOT_METHOD = -1 };

/* The names, their methods, and the index of each node's name. */
static bool put_name_columns(struct tw_trace_query *q, const struct tw_flame *f, int64_t *values)
{
	const uint32_t n_methods = q->v.n_methods + q->n_labels;
	struct used_name *used = tw_arena_alloc(q->arena, n_methods + 2, sizeof *used);
	uint32_t *number = tw_arena_zalloc(q->arena, n_methods + 2, sizeof *number);
	uint32_t *slots = tw_arena_alloc(q->arena, f->n, sizeof *slots);
	int64_t *methods = tw_arena_alloc(q->arena, n_methods + 2, sizeof *methods);
	uint32_t n = 0;

	if (!used || !number || !slots || !methods)
		return false;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct tw_flame_node *node = &f->nodes[i];

		slots[i] = node->others                   ? n_methods
		           : node->method == TW_NO_METHOD ? n_methods + 1
		                                          : node->method;
		if (number[slots[i]] == 0) {
			used[n] = (struct used_name){.slot = slots[i], .first = i};
			number[slots[i]] = ++n;
		}
		used[number[slots[i]] - 1].nodes++;
	}
	TW_SORT(used, n, by_use);
	tw_json_key_open(&q->j, "names", '[');
	for (uint32_t k = 0; k < n; k++) {
		tw_json_str(&q->j, node_name(q, &f->nodes[used[k].first]));
		number[used[k].slot] = k;
		methods[k] = used[k].slot < n_methods    ? (int64_t)used[k].slot
		             : used[k].slot == n_methods ? COLUMN_OTHER_METHOD
		                                         : COLUMN_ROOT_METHOD;
	}
	tw_json_close(&q->j, ']');
	put_numbers(q, "methods", methods, n);
	for (uint32_t i = 0; i < f->n; i++)
		values[i] = number[slots[i]];
	put_numbers(q, "name", values, f->n);
	return true;
}

/* The largest power of ten of which the lightest node has 10^digits. Most digits of a self time are
 * noise that no compression removes. */
static int64_t unit_of(const struct tw_flame *f, unsigned digits)
{
	int64_t least = INT64_MAX;
	int64_t unit = 1;

	for (uint32_t i = 1; i < f->n; i++)
		if (!f->nodes[i].others && f->nodes[i].value < least)
			least = f->nodes[i].value;
	if (least == INT64_MAX)
		return 1;
	for (unsigned i = 0; i < digits; i++)
		least /= 10;
	while (least / 10 >= unit)
		unit *= 10;
	return unit;
}

/* Rounds the sum of all nodes up to each one, so that errors do not add up: the value of a node is
 * the difference of two such sums. */
static void put_self(
        struct tw_trace_query *q, const struct tw_flame *f, int64_t unit, int64_t *values)
{
	int64_t exact = 0;
	int64_t rounded = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		int64_t before = rounded;

		exact = tw_sum_ns(exact, f->nodes[i].self);
		rounded = exact / unit + (exact % unit >= unit - unit / 2);
		values[i] = rounded - before;
	}
	tw_json_key_int(&q->j, "unit", unit);
	put_numbers(q, "self", values, f->n);
}

/* In pre-order. */
static enum tw_status put_columns(
        struct tw_trace_query *q, const struct tw_flame *f, int64_t unit, struct tw_err *err)
{
	int64_t *values = tw_arena_alloc(q->arena, f->n, sizeof *values);
	uint32_t n_others = 0;

	tw_json_open(&q->j, '{');
	if (!values || !put_name_columns(q, f, values))
		return tw_oom(err);
	for (uint32_t i = 0; i < f->n; i++)
		values[i] = 0;
	for (uint32_t i = 1; i < f->n; i++)
		values[f->nodes[i].parent]++;
	put_numbers(q, "children", values, f->n);
	put_self(q, f, unit, values);
	for (uint32_t i = 0; i < f->n; i++)
		values[i] = (int64_t)f->nodes[i].count;
	put_numbers(q, "count", values, f->n);
	for (uint32_t i = 0; i < f->n; i++)
		if (f->nodes[i].others)
			values[n_others++] = f->nodes[i].others;
	put_numbers(q, "other", values, n_others);
	put_totals(q, f);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

static enum tw_status answer_flame(struct tw_trace_query *q, struct tw_err *err)
{
	struct tw_flame_query fq;
	struct tw_flame f;
	const unsigned digits = (unsigned)tw_req_number(q->v.req, "digits");
	int64_t unit = 1;
	bool columns;
	enum tw_status st = read_flame_query(q, &fq, &columns, err);

	if (st == TW_OK)
		st = tw_query_graph(q->v.file, &q->sel, &fq, &q->deadline, q->arena, &f, err);
	if (st != TW_OK)
		return st;
	if (columns && digits && fq.metric != TW_METRIC_COUNT)
		unit = unit_of(&f, digits);
	if (columns)
		return put_columns(q, &f, unit, err);
	put_nested(q, &f);
	return TW_OK;
}

const struct tw_route tw_routes_flame[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/flame", TW_NEED_READ, "Flame graph",
                .params = TW_PARAMS(tw_api_thread_params, tw_view_range_params,
                        tw_trace_query_step_params, flame_params),
                .trace_query = answer_flame),
        {0},
};
