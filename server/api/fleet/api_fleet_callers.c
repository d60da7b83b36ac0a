/*
 * api_fleet_callers.c - callers and callees of a method in the filtered traces, from merged call
 * trees.
 */
#include "server/api/api.h"
#include "server/api/fleet/api_fleet_tree.h"

enum { LIMIT_MAX = 1000, LIMIT = 20 };

struct asked {
	const char *name;
	int64_t limit;
	struct tw_rollup_tree merged, named;
	struct tw_fleet_taking taking;
	struct tw_fleet_callers found;
};

const struct tw_param tw_fleet_callers_params[] = {
        TW_PARAM_REQUIRED("name", 0, "Name of the method, as in /api/v1/fleet/methods."),
        TW_PARAM_NUMBER(
                "limit", LIMIT, 1, LIMIT_MAX, "Number of callers, and of callees, by time."),
        {0},
};

static enum tw_status read_tree(struct tw_fleet_question *q, struct asked *a, struct tw_err *err)
{
	const struct tw_rollup_tree *trees[] = {&a->merged};
	const struct tw_rollup_cell **cells =
	        tw_arena_alloc(q->arena, q->n_cells + 1, sizeof(const struct tw_rollup_cell *));
	enum tw_status st;

	if (!cells)
		return tw_oom(err);
	for (size_t i = 0; i < q->n_cells; i++)
		cells[i] = &q->cells[i];
	a->merged.arena = q->arena;
	st = tw_fleet_read_trees(
	        q, &(struct tw_fleet_cells_of){cells, q->n_cells, q->n_cells}, &a->merged, err);
	if (st == TW_OK)
		st = tw_fleet_take_names(q, trees, 1, &a->taking, err);
	return st == TW_OK ? tw_fleet_tree_read(
	                             &a->merged, &a->taking.reading, q->arena, &a->named, err)
	                   : st;
}

/* The methods of all builds that have this name now. */
static enum tw_status find(struct tw_fleet_question *q, struct asked *a, struct tw_err *err)
{
	uint8_t *wanted = tw_arena_zalloc(q->arena, (size_t)a->taking.names.n + 1, 1);
	uint64_t *ids = NULL;
	size_t n = 0;
	enum tw_status st;

	if (!wanted)
		return tw_oom(err);
	st = tw_catalogue_rollup_find(
	        tw_api_catalogue(q->req), tw_api_project(q->req), a->name, q->arena, &ids, &n, err);
	if (st == TW_OK && n == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no counted trace has a method of that name");
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		uint32_t number = tw_fleet_number(&a->taking.names, ids[i]);

		if (number != TW_NO_METHOD)
			wanted[number] = 1;
	}
	return st == TW_OK ? tw_fleet_callers(
	                             &a->named, wanted, a->taking.names.n, q->arena, &a->found, err)
	                   : st;
}

static void put_list(struct tw_fleet_question *q, const struct asked *a, const char *key,
        const struct tw_fleet_near *list, size_t n)
{
	const struct tw_fleet_names *names = &a->taking.names;
	const double all = (double)a->found.all.total_ns;

	tw_json_key(&q->j, key);
	tw_json_open(&q->j, '[');
	for (size_t i = 0; i < n && i < (size_t)a->limit; i++) {
		tw_json_open(&q->j, '{');
		tw_json_key_str(&q->j, "name", names->names[list[i].number]);
		tw_fleet_put_text(q, "descriptor", names->descriptors[list[i].number]);
		tw_json_key_bool(&q->j, "thread", list[i].number < names->n_threads);
		tw_json_key_int(&q->j, "total_ns", list[i].total_ns);
		tw_json_key(&q->j, "share");
		tw_json_double(&q->j, all > 0 ? (double)list[i].total_ns / all : 0);
		tw_json_key_int(&q->j, "calls", (int64_t)list[i].calls);
		tw_json_key_int(&q->j, "in_traces", (int64_t)list[i].traces);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static void put_all(struct tw_fleet_question *q, const struct asked *a)
{
	const struct tw_fleet_callers *f = &a->found;

	tw_fleet_put_head(q);
	tw_fleet_put_text(q, "name", a->name);
	tw_json_key_int(&q->j, "of_traces", (int64_t)a->merged.traces);
	tw_json_key_int(&q->j, "omitted_below_ns", tw_fleet_omitted_below_ns(&a->merged));
	tw_json_key_bool(&q->j, "app_only", a->taking.app_only);
	tw_json_key_int(&q->j, "total_ns", f->all.total_ns);
	tw_json_key_int(&q->j, "self_ns", f->self_ns);
	tw_json_key_int(&q->j, "calls", (int64_t)f->all.calls);
	tw_json_key_int(&q->j, "callers_total", (int64_t)f->n_callers);
	put_list(q, a, "callers", f->callers, f->n_callers);
	tw_json_key_int(&q->j, "callees_total", (int64_t)f->n_callees);
	put_list(q, a, "callees", f->callees, f->n_callees);
	tw_json_close(&q->j, '}');
}

static enum tw_status answer_callers(struct tw_fleet_question *q, struct tw_err *err)
{
	struct asked *a = tw_arena_zalloc(q->arena, 1, sizeof *a);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	a->name = tw_req_text(q->req, "name");
	a->limit = tw_req_number(q->req, "limit");
	st = tw_fleet_read(q, 0, 0, err);
	if (st == TW_OK)
		st = read_tree(q, a, err);
	if (st == TW_OK)
		st = find(q, a, err);
	if (st == TW_OK)
		put_all(q, a);
	return st;
}

enum tw_status tw_fleet_get_callers(struct tw_req *r, struct tw_err *err)
{
	return tw_fleet_run(r, answer_callers, err);
}
