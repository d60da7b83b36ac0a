/*
 * api_fleet_flame.c - one flame graph of all filtered traces, from merged call trees.
 *
 * Times are sums over the traces; divide by of_traces for times per trace.
 */
#include "server/api/api.h"
#include "server/api/fleet/api_fleet_tree.h"
#include "server/query/query.h"

struct asked {
	struct tw_flame_query query;
	unsigned cpu;
	struct tw_rollup_tree merged;
	struct tw_fleet_taking taking;
	struct tw_fleet_graph graph;
	struct tw_flame flame;
};

static const char *const views[] = {"top_down", "bottom_up", NULL};
static const char *const metrics[] = {"wall", "cpu", NULL};

const struct tw_param tw_fleet_flame_params[] = {
        TW_PARAM_ENUM("view", views, "From threads down, or from methods up to their callers."),
        TW_PARAM_ENUM("metric", metrics, ""),
        {0},
};

static enum tw_status read_query(
        const struct tw_fleet_question *q, struct asked *a, struct tw_err *err)
{
	a->cpu = (unsigned)tw_req_enum(q->req, "metric");
	a->query.view = (enum tw_flame_view)tw_req_enum(q->req, "view");
	a->query.max_nodes = (uint32_t)tw_req_number_or(
	        q->req, "max_nodes", tw_api_of(q->req)->config->flame_nodes);
	return tw_fleet_read_root(q, &a->query.root, &a->query.n_root, err);
}

static enum tw_status merge(struct tw_fleet_question *q, struct asked *a, struct tw_err *err)
{
	const struct tw_rollup_tree *trees[] = {&a->merged};
	const struct tw_rollup_cell **cells =
	        tw_arena_alloc(q->arena, q->n_cells + 1, sizeof(const struct tw_rollup_cell *));
	struct tw_rollup_tree named;
	enum tw_status st;

	if (!cells)
		return tw_oom(err);
	for (size_t i = 0; i < q->n_cells; i++)
		cells[i] = &q->cells[i];
	a->merged.arena = a->graph.paths.arena = q->arena;
	st = tw_fleet_read_trees(
	        q, &(struct tw_fleet_cells_of){cells, q->n_cells, q->n_cells}, &a->merged, err);
	if (st == TW_OK)
		st = tw_fleet_take_names(q, trees, 1, &a->taking, err);
	if (st == TW_OK)
		st = tw_fleet_tree_read(&a->merged, &a->taking.reading, q->arena, &named, err);
	if (st == TW_OK)
		st = tw_fleet_graph_add(&a->graph, TW_SIDE_A, &named, 1, a->merged.traces, err);
	return st;
}

static enum tw_status grow(struct tw_fleet_question *q, struct asked *a, struct tw_err *err)
{
	struct tw_summary_tree crown = {.rest = a->taking.names.n};
	const struct tw_forest one = {&crown.tree, 1};
	enum tw_status st = tw_fleet_graph_tree(
	        &a->graph, TW_SIDE_A, a->cpu != 0, crown.rest, q->arena, &crown.tree, err);

	if (st != TW_OK)
		return st;
	if (a->query.view == TW_BOTTOM_UP)
		return tw_query_bottom_up(&one, &a->query, NULL, q->arena, &a->flame, err);
	return tw_query_flame_of_summary(&crown, &a->query, NULL, q->arena, &a->flame, err);
}

/* --- the response --- */

static bool is_rest(const struct asked *a, const struct tw_flame_node *n)
{
	return n->others || n->method == a->taking.names.n;
}

enum field { PARENT, METHOD, OTHER, VALUE, SELF, COUNT, TRACES, FIELDS };

static int64_t field_of(const struct asked *a, const struct tw_flame_node *n, enum field which)
{
	const int64_t values[FIELDS] = {[PARENT] = n->parent,
	        [METHOD] = n->method < a->taking.names.n ? (int64_t)n->method : -1,
	        [OTHER] = n->others ? n->others : is_rest(a, n),
	        [VALUE] = n->value,
	        [SELF] = n->self,
	        [COUNT] = is_rest(a, n) ? 0 : (int64_t)n->count,
	        [TRACES] = n->method == TW_NO_METHOD && !n->others ? (int64_t)a->merged.traces
	                                                           : n->max_ns};

	return values[which];
}

static bool put_columns(struct tw_fleet_question *q, const struct asked *a)
{
	static const char *const keys[FIELDS] = {
	        "parent", "method", "other", "value", "self", "count", "in_traces"};
	const struct tw_flame *f = &a->flame;
	uint8_t *used = tw_arena_zalloc(q->arena, (size_t)a->taking.names.n + 1, 1);
	int64_t shown = 0;

	for (uint32_t i = 0; used && i < f->n; i++) {
		if (f->nodes[i].method < a->taking.names.n)
			used[f->nodes[i].method] = 1;
		shown += i > 0 && !is_rest(a, &f->nodes[i]);
	}
	if (!used)
		return false;
	tw_fleet_put_names(q, &a->taking.names, used);
	for (int k = 0; k < FIELDS; k++) {
		tw_json_key(&q->j, keys[k]);
		tw_json_open(&q->j, '[');
		for (uint32_t i = 0; i < f->n; i++)
			tw_json_int(&q->j, field_of(a, &f->nodes[i], (enum field)k));
		tw_json_close(&q->j, ']');
	}
	tw_json_key_int(&q->j, "total_nodes", (int64_t)f->total_nodes);
	tw_json_key_int(&q->j, "shown_nodes", shown);
	return true;
}

static void put_threads(struct tw_fleet_question *q, const struct asked *a)
{
	tw_json_key(&q->j, "threads");
	tw_json_open(&q->j, '[');
	for (uint32_t i = 0; i < a->taking.names.n_threads; i++)
		tw_json_str(&q->j, a->taking.names.names[i]);
	tw_json_close(&q->j, ']');
}

static enum tw_status answer_flame(struct tw_fleet_question *q, struct tw_err *err)
{
	struct asked *a = tw_arena_zalloc(q->arena, 1, sizeof *a);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	st = read_query(q, a, err);
	if (st == TW_OK)
		st = tw_fleet_read(q, 0, 0, err);
	if (st == TW_OK)
		st = merge(q, a, err);
	if (st == TW_OK)
		st = grow(q, a, err);
	if (st != TW_OK)
		return st;
	tw_fleet_put_head(q);
	tw_json_key_int(&q->j, "of_traces", (int64_t)a->merged.traces);
	tw_json_key_int(&q->j, "omitted_below_ns", tw_fleet_omitted_below_ns(&a->merged));
	tw_json_key_bool(&q->j, "app_only", a->taking.app_only);
	put_threads(q, a);
	if (!put_columns(q, a))
		return tw_oom(err);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

enum tw_status tw_fleet_get_flame(struct tw_req *r, struct tw_err *err)
{
	return tw_fleet_run(r, answer_flame, err);
}
