#include "server/api/fleet/api_fleet_tree.h"

#include <inttypes.h>

#include "server/api/api.h"
#include "server/export/export.h"
#include "server/export/pprof_write.h"
#include "server/query/detect/frame_rules.h"
#include "server/query/query.h"

enum { ROOT_MAX = 4096, NODES_MAX = 200000 };

enum tw_status tw_fleet_read_trees(struct tw_fleet_request *q, const struct tw_fleet_cells_of *of,
        size_t n, struct tw_rollup_tree *ret, struct tw_err *err)
{
	struct tw_fleet_store *store = tw_fleet_store_of(q);

	return store->engine->trees(store, &q->query, of, n, ret, err);
}

/* --- names --- */

static enum tw_status mark_foreign(
        struct tw_fleet_request *q, struct tw_fleet_taking *t, struct tw_err *err)
{
	const struct tw_frame_rules *rules = NULL;
	uint8_t *foreign = tw_arena_zalloc(q->arena, (size_t)t->names.n + 1, 1);
	int64_t version;
	enum tw_status st =
	        foreign ? tw_frame_rules_of(tw_api_catalogue(q->req), tw_api_project(q->req),
	                          q->arena, &rules, &version, err)
	                : tw_oom(err);

	for (uint32_t i = t->names.n_threads; st == TW_OK && foreign && i < t->names.n; i++)
		foreign[i] = !tw_frame_rules_app(rules, t->names.names[i]);
	t->reading.foreign = foreign;
	return st;
}

static enum tw_status pick_thread(
        const struct tw_fleet_request *q, struct tw_fleet_taking *t, struct tw_err *err)
{
	const char *text = tw_api_thread(q->req);

	t->reading.thread = TW_NO_METHOD;
	if (!text || !text[0] || strcmp(text, "all") == 0 || t->names.n == 0)
		return TW_OK;
	t->reading.others = strcmp(text, TW_FLEET_OTHERS) == 0;
	for (uint32_t i = 0; i < t->names.n_threads; i++)
		if (tw_str_eq(t->names.names[i], tw_str_of(t->reading.others ? "main" : text)))
			t->reading.thread = i;
	if (t->reading.thread != TW_NO_METHOD || t->reading.others)
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "none of these traces has threads called %.60s; the response without thread= lists "
	        "the names, with # for digits, as in pool-#-thread-#",
	        text);
}

static const char *const frames[] = {"all", "app", NULL};

const struct tw_param tw_fleet_taking_params[] = {
        TW_PARAM_ENUM("frames", frames,
                "`app` returns only the app's frames, by the project's rules (/api/v1/frames); the "
                "time of "
                "others belongs to their callers."),
        TW_PARAM_TEXT("thread", 0,
                "Only one kind of thread: `main`, `others` (all except main), or a name with # for "
                "digits."),
        TW_PARAM_TEXT("threads", 0, "The same as thread."),
        {0},
};

enum tw_status tw_fleet_take_names(struct tw_fleet_request *q,
        const struct tw_rollup_tree *const *trees, size_t n, struct tw_fleet_taking *ret,
        struct tw_err *err)
{
	struct tw_rollup_naming *namings = NULL;
	uint64_t *ids = NULL;
	size_t n_ids = 0;
	enum tw_status st = tw_fleet_tree_ids(trees, n, q->arena, &ids, &n_ids, err);

	*ret = (struct tw_fleet_taking){.app_only = tw_req_enum(q->req, "frames") == 1};
	if (st == TW_OK)
		st = tw_catalogue_rollup_names(tw_api_catalogue(q->req), tw_api_project(q->req),
		        ids, n_ids, q->arena, &namings, err);
	if (st == TW_OK)
		st = tw_fleet_tree_names(trees, n, namings, n_ids, q->arena, &ret->names, err);
	if (st == TW_OK)
		st = pick_thread(q, ret, err);
	if (st == TW_OK && ret->app_only)
		st = mark_foreign(q, ret, err);
	ret->reading.names = &ret->names;
	return st;
}

const struct tw_param tw_fleet_root_params[] = {
        TW_PARAM_TEXT("focus", 0,
                "Limits the graph to the calls of the method with this name, merged: top down "
                "with their callees, bottom up with their callers."),
        TW_PARAM_TEXT("root", 0,
                "Methods from the top of the view (with `focus`, below its method) to the node to "
                "start at, with dots between them."),
        TW_PARAM_OPTIONAL_NUMBER("max_nodes", 1, NODES_MAX,
                "Largest number of nodes in the response. --flame-nodes sets the default."),
        {0},
};

enum tw_status tw_fleet_read_focus(struct tw_fleet_request *q, bool callers,
        struct tw_fleet_taking *taking, struct tw_err *err)
{
	const struct tw_fleet_names *names = &taking->names;
	const struct tw_str name = tw_str_of(tw_req_text_or_empty(q->req, "focus"));
	uint8_t *on = tw_arena_zalloc(q->arena, (size_t)names->n + 1, 1);
	uint32_t number = TW_NO_METHOD;

	if (!name.len)
		return TW_OK;
	if (!on)
		return tw_oom(err);
	for (uint32_t i = names->n; i-- > names->n_threads;)
		if (tw_str_eq(names->names[i], name)) {
			on[i] = 1;
			number = i; /* overloads are merged into the first */
		}
	if (number == TW_NO_METHOD)
		return tw_fail(err, TW_NOT_FOUND, "no counted trace has a method of that name");
	taking->reading.focus = (struct tw_fleet_focus){on, number, callers};
	return TW_OK;
}

enum tw_status tw_fleet_read_root(const struct tw_fleet_request *q,
        const struct tw_fleet_taking *taking, const uint32_t **ret, size_t *ret_n,
        struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(q->req, "root");
	struct tw_str rest = tw_str_of(text);
	uint32_t *path = tw_arena_alloc(q->arena, ROOT_MAX, sizeof *path);
	size_t n = 0;

	if (!path)
		return tw_oom(err);
	if (taking->reading.focus.on)
		path[n++] = taking->reading.focus.number;
	while (rest.len) {
		uint64_t number = 0;

		if (n == ROOT_MAX || !tw_str_u64(tw_str_split(&rest, '.'), UINT32_MAX, &number))
			return tw_fail(err, TW_BAD_REQUEST,
			        "root is method numbers with dots between them, not %.60s", text);
		path[n++] = (uint32_t)number;
	}
	*ret = path;
	*ret_n = n;
	return TW_OK;
}

void tw_fleet_put_names(
        struct tw_fleet_request *q, const struct tw_fleet_names *names, const uint8_t *used)
{
	tw_json_key_open(&q->j, "names", '[');
	for (uint32_t i = 0; i < names->n; i++) {
		if (!used[i])
			continue;
		tw_json_open(&q->j, '{');
		tw_json_key_int(&q->j, "method", i);
		tw_json_key_str(&q->j, "name", names->names[i]);
		tw_json_key_text(&q->j, "descriptor", names->descriptors[i]);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

/* Nodes shorter than this (ns) in a trace may be missing. */
static int64_t omitted_below_ns(const struct tw_rollup_tree *t)
{
	return t->omitted_level ? INT64_C(1) << (t->omitted_level < 63 ? t->omitted_level - 1 : 62)
	                        : 0;
}

/* --- callers ---
 *
 * Callers and callees of a method in the filtered traces, from merged call trees.
 */

enum { LIMIT_MAX = 1000, LIMIT = 20 };

struct callers {
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

/* Merges the trees of all cells and reads the method names. */
static enum tw_status read_tree(struct tw_fleet_request *q, struct tw_rollup_tree *ret_merged,
        struct tw_fleet_taking *ret_taking, struct tw_err *err)
{
	const struct tw_rollup_tree *trees[] = {ret_merged};
	const struct tw_rollup_cell **cells =
	        tw_arena_alloc(q->arena, q->n_cells + 1, sizeof(const struct tw_rollup_cell *));
	enum tw_status st;

	if (!cells)
		return tw_oom(err);
	for (size_t i = 0; i < q->n_cells; i++)
		cells[i] = &q->cells[i];
	ret_merged->arena = q->arena;
	st = tw_fleet_read_trees(
	        q, &(struct tw_fleet_cells_of){cells, q->n_cells, q->n_cells}, 1, ret_merged, err);
	return st == TW_OK ? tw_fleet_take_names(q, trees, 1, ret_taking, err) : st;
}

/* The methods of all builds that have this name now. */
static enum tw_status find(struct tw_fleet_request *q, struct callers *a, struct tw_err *err)
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

static void put_list(struct tw_fleet_request *q, const struct callers *a, const char *key,
        const struct tw_fleet_near *list, size_t n)
{
	const struct tw_fleet_names *names = &a->taking.names;
	const double all = (double)a->found.all.total_ns;

	tw_json_key_open(&q->j, key, '[');
	for (size_t i = 0; i < n && i < (size_t)a->limit; i++) {
		tw_json_open(&q->j, '{');
		tw_json_key_str(&q->j, "name", names->names[list[i].number]);
		tw_json_key_text(&q->j, "descriptor", names->descriptors[list[i].number]);
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

static void put_all(struct tw_fleet_request *q, const struct callers *a)
{
	const struct tw_fleet_callers *f = &a->found;

	tw_fleet_put_head(q);
	tw_json_key_text(&q->j, "name", a->name);
	tw_json_key_int(&q->j, "of_traces", (int64_t)a->merged.traces);
	tw_json_key_int(&q->j, "omitted_below_ns", omitted_below_ns(&a->merged));
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

enum tw_status tw_fleet_write_callers(struct tw_fleet_request *q, struct tw_err *err)
{
	struct callers *a = tw_arena_zalloc(q->arena, 1, sizeof *a);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	a->name = tw_req_text(q->req, "name");
	a->limit = tw_req_number(q->req, "limit");
	st = tw_fleet_read(q, 0, 0, err);
	if (st == TW_OK)
		st = read_tree(q, &a->merged, &a->taking, err);
	if (st == TW_OK)
		st = tw_fleet_tree_read(&a->merged, &a->taking.reading, q->arena, &a->named, err);
	if (st == TW_OK)
		st = find(q, a, err);
	if (st == TW_OK)
		put_all(q, a);
	return st;
}

/* --- flame graphs ---
 *
 * One flame graph of all filtered traces.  Times are sums over the traces; divide by of_traces for
 * times per trace.
 */

struct flame {
	struct tw_flame_query query;
	unsigned cpu;
	enum { AS_JSON, AS_FOLDED, AS_PPROF } format;
	struct tw_rollup_tree merged;
	struct tw_fleet_taking taking;
	struct tw_fleet_graph graph;
	struct tw_flame flame;
};

static const char *const views[] = {"top_down", "bottom_up", NULL};
static const char *const metrics[] = {"wall", "cpu", NULL};
static const char *const formats[] = {"json", "folded", "pprof", NULL};

const struct tw_param tw_fleet_flame_params[] = {
        TW_PARAM_ENUM("format", formats,
                "`folded`: one `thread;a;b ns` per line, for flamegraph.pl and other tools. "
                "`pprof`: a profile with the time and calls of the same stacks, not with "
                "`view=bottom_up`. Both contain up to 200,000 nodes."),
        TW_PARAM_ENUM("view", views, "From threads down, or from methods up to their callers."),
        TW_PARAM_ENUM("metric", metrics, ""),
        {0},
};

static void read_query(const struct tw_fleet_request *q, struct flame *a)
{
	a->cpu = (unsigned)tw_req_enum(q->req, "metric");
	a->query.view = (enum tw_flame_view)tw_req_enum(q->req, "view");
	a->format = tw_req_enum(q->req, "format");
	a->query.max_nodes = (uint32_t)tw_req_number_or(q->req, "max_nodes",
	        a->format != AS_JSON ? NODES_MAX : tw_api_of(q->req)->config->flame_nodes);
}

static enum tw_status merge(struct tw_fleet_request *q, struct flame *a, struct tw_err *err)
{
	struct tw_rollup_tree named;
	enum tw_status st = read_tree(q, &a->merged, &a->taking, err);

	if (st == TW_OK)
		st = tw_fleet_read_focus(q, a->query.view == TW_BOTTOM_UP, &a->taking, err);
	if (st == TW_OK)
		st = tw_fleet_read_root(q, &a->taking, &a->query.root, &a->query.n_root, err);
	if (st == TW_OK)
		st = tw_fleet_tree_read(&a->merged, &a->taking.reading, q->arena, &named, err);
	a->graph.paths.arena = q->arena;
	return st == TW_OK
	               ? tw_fleet_graph_add(&a->graph, TW_SIDE_A, &named, 1, a->merged.traces, err)
	               : st;
}

static enum tw_status grow(struct tw_fleet_request *q, struct flame *a, struct tw_err *err)
{
	struct tw_summary_tree summary = {.rest = a->taking.names.n};
	const struct tw_forest one = {&summary.tree, 1};
	enum tw_status st = tw_fleet_graph_tree(
	        &a->graph, TW_SIDE_A, a->cpu != 0, summary.rest, q->arena, &summary.tree, err);

	if (st != TW_OK)
		return st;
	if (a->query.view == TW_BOTTOM_UP)
		return tw_query_bottom_up(&one, &a->query, NULL, q->arena, &a->flame, err);
	return tw_query_flame_of_summary(&summary, &a->query, NULL, q->arena, &a->flame, err);
}

/* --- the response --- */

static bool is_rest(const struct flame *a, const struct tw_flame_node *n)
{
	return n->others || n->method == a->taking.names.n;
}

enum field { PARENT, METHOD, OTHER, VALUE, SELF, COUNT, TRACES, FIELDS };

static int64_t field_of(const struct flame *a, const struct tw_flame_node *n, enum field which)
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

static bool put_columns(struct tw_fleet_request *q, const struct flame *a)
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
	for (size_t i = 0; used && i < a->query.n_root; i++) /* a link may begin there */
		if (a->query.root[i] < a->taking.names.n)
			used[a->query.root[i]] = 1;
	if (!used)
		return false;
	tw_fleet_put_names(q, &a->taking.names, used);
	for (int k = 0; k < FIELDS; k++) {
		tw_json_key_open(&q->j, keys[k], '[');
		for (uint32_t i = 0; i < f->n; i++)
			tw_json_int(&q->j, field_of(a, &f->nodes[i], (enum field)k));
		tw_json_close(&q->j, ']');
	}
	tw_json_key_int(&q->j, "total_nodes", (int64_t)f->total_nodes);
	tw_json_key_int(&q->j, "shown_nodes", shown);
	return true;
}

static struct tw_str frame_of(const struct flame *a, const struct tw_flame_node *n)
{
	return is_rest(a, n) ? TW_STR("(other)") : a->taking.names.names[n->method];
}

/* The depth of the outermost frame: the root is one only if it is a method. */
static uint32_t top_of(const struct tw_flame *f)
{
	return f->nodes[0].method == TW_NO_METHOD;
}

static bool put_folded(struct tw_fleet_request *q, const struct flame *a)
{
	const struct tw_flame *f = &a->flame;
	uint32_t *path = tw_arena_alloc(q->arena, (size_t)f->n + 1, sizeof *path); /* by depth */
	const uint32_t top = top_of(f);

	for (uint32_t i = 0; path && i < f->n; i++) {
		path[f->nodes[i].depth] = i;
		if (f->nodes[i].self <= 0 || f->nodes[i].depth < top)
			continue;
		for (uint32_t d = top; d <= f->nodes[i].depth; d++) {
			tw_folded_frame(&q->out, frame_of(a, &f->nodes[path[d]]));
			(void)tw_buf_add(&q->out, d < f->nodes[i].depth ? ";" : " ", 1);
		}
		(void)tw_buf_printf(&q->out, "%" PRId64 "\n", f->nodes[i].self);
	}
	q->type = "text/plain; charset=utf-8";
	return path != NULL;
}

/* Ids of locations: the method's number + 1, and the one after them for (other). */
static uint32_t location_of(const struct flame *a, const struct tw_flame_node *n)
{
	return is_rest(a, n) ? a->taking.names.n + 1 : n->method + 1;
}

static bool put_pprof(struct tw_fleet_request *q, const struct flame *a)
{
	const struct tw_flame *f = &a->flame;
	const uint32_t top = top_of(f);
	struct tw_pprof p;
	uint32_t *path = tw_arena_alloc(q->arena, (size_t)f->n + 1, sizeof *path); /* by depth */
	size_t *bytes = tw_arena_alloc(q->arena, (size_t)f->n + 1, sizeof *bytes); /* likewise */
	uint8_t *written = tw_arena_zalloc(q->arena, (size_t)a->taking.names.n + 2, 1);

	if (!path || !bytes || !written)
		return false;
	tw_pprof_begin(&p, &q->out);
	tw_pprof_number(&p, TW_PPROF_DEFAULT_TYPE,
	        tw_pprof_type(&p, TW_PPROF_SAMPLE_TYPE, metrics[a->cpu], "nanoseconds"));
	(void)tw_pprof_type(&p, TW_PPROF_SAMPLE_TYPE, "calls", "count");
	for (uint32_t i = 0; i < f->n; i++) {
		const struct tw_flame_node *n = &f->nodes[i];
		const uint64_t values[] = {
		        n->self > 0 ? (uint64_t)n->self : 0, (uint64_t)field_of(a, n, COUNT)};
		struct tw_pprof_sample s = {.values = values, .n_values = 2};
		uint32_t id;

		if (n->depth < top)
			continue;
		id = location_of(a, n);
		if (!written[id])
			tw_pprof_location(&p, id, frame_of(a, n));
		written[id] = 1;
		path[n->depth] = i;
		bytes[n->depth] =
		        tw_pprof_varint_bytes(id) + (n->depth > top ? bytes[n->depth - 1] : 0);
		s.stack_bytes = bytes[n->depth];
		if (!values[0] && !values[1])
			continue;
		tw_pprof_sample(&p, &s);
		for (uint32_t d = n->depth + 1; d-- > top;)
			(void)tw_buf_add_varint(p.out, location_of(a, &f->nodes[path[d]]));
	}
	tw_req_set_header(q->req, "Content-Disposition", "attachment; filename=\"fleet.pb\"");
	q->type = "application/octet-stream";
	return true;
}

enum tw_status tw_fleet_write_flame(struct tw_fleet_request *q, struct tw_err *err)
{
	struct flame *a = tw_arena_zalloc(q->arena, 1, sizeof *a);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	read_query(q, a);
	if (a->format == AS_PPROF && a->query.view == TW_BOTTOM_UP)
		return tw_fail(err, TW_BAD_REQUEST,
		        "a pprof profile contains stacks for both directions: omit view=bottom_up");
	st = tw_fleet_read(q, 0, 0, err);
	if (st == TW_OK)
		st = merge(q, a, err);
	if (st == TW_OK)
		st = grow(q, a, err);
	if (st != TW_OK)
		return st;
	if (a->format == AS_FOLDED)
		return put_folded(q, a) ? TW_OK : tw_oom(err);
	if (a->format == AS_PPROF)
		return put_pprof(q, a) ? TW_OK : tw_oom(err);
	tw_fleet_put_head(q);
	tw_json_key_int(&q->j, "of_traces", (int64_t)a->merged.traces);
	tw_json_key_int(&q->j, "omitted_below_ns", omitted_below_ns(&a->merged));
	tw_json_key_bool(&q->j, "app_only", a->taking.app_only);
	tw_json_key_open(&q->j, "threads", '[');
	for (uint32_t i = 0; i < a->taking.names.n_threads; i++)
		tw_json_str(&q->j, a->taking.names.names[i]);
	tw_json_close(&q->j, ']');
	if (!put_columns(q, a))
		return tw_oom(err);
	tw_json_close(&q->j, '}');
	return TW_OK;
}
