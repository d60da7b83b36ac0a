/*
 * api_compare.c - compares two selections of traces: calls as one tree, methods as a table.
 */
#include <stdlib.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/trace/trace_query.h"
#include "server/base/text/json.h"
#include "server/base/text/json_write.h"
#include "server/base/text/match.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/http/http.h"
#include "server/query/query_compare.h"
#include "server/query/query_reshape.h"

/* --- the two sides, with a common numbering of methods --- */

/* A side is a list of traces of the caller's project, given by ids (`a=`, `b=`), whole or of a time
 * range and some threads.  A method is the same on both sides if its name and its descriptor are;
 * one without a descriptor is the same as the only one of its name that has one, because not every
 * format and mapping has descriptors.  A method without a mapping is kept apart by build, because
 * the same id means another method in another build. */

enum { TW_SIDE_TRACES_MAX = 16 };

struct method_name {
	struct tw_str name, descriptor; /* "": unknown */
};

struct tw_side_trace {
	struct tw_trace_row row;
	const struct method_name *names; /* of its methods, by index */
	uint32_t n_names;
	uint32_t n_named; /* number of those with a known name */
	struct tw_forest forest;
};

struct tw_sides {
	struct tw_side_trace *traces[TW_SIDES];
	struct tw_compare_side side[TW_SIDES];
	const struct method_name *names; /* by common number */
	uint32_t n_names;
	struct tw_deadline deadline;
};

struct opening {
	struct tw_req *req;
	struct tw_arena *arena;
	const char *threads;       /* the same for each trace of the side */
	struct tw_selection times; /* likewise; its threads are unset */
	char *name;                /* TW_NAME_BYTES */
	struct tw_deadline deadline;
};

/* --- one trace --- */

/* Unknown methods of two builds are different even if their ids are equal. */
static bool name_in_trace(const struct opening *o, const struct tw_view *v, uint32_t method,
        struct method_name *ret, bool *ret_known)
{
	struct tw_str name = tw_view_name(v, method, o->name, ret_known);
	const char *copy = *ret_known || !v->row.meta.build_id[0]
	                           ? tw_arena_str(o->arena, name)
	                           : tw_arena_printf(o->arena, "%.*s of build %s", (int)name.len,
	                                     name.ptr, v->row.meta.build_id);
	struct tw_str of = tw_view_descriptor(v, method, o->name);
	const char *descriptor = of.len ? tw_arena_str(o->arena, of) : "";

	if (!copy || !descriptor)
		return false;
	*ret = (struct method_name){tw_str_of(copy), tw_str_of(descriptor)};
	return true;
}

static enum tw_status read_names(const struct opening *o, const struct tw_view *v,
        struct tw_side_trace *t, struct tw_err *err)
{
	struct method_name *names =
	        tw_arena_alloc(o->arena, (size_t)v->n_methods + 1, sizeof *names);

	if (!names)
		return tw_oom(err);
	for (uint32_t i = 0; i < v->n_methods; i++) {
		bool known = true;

		if (!name_in_trace(o, v, i, &names[i], &known))
			return tw_oom(err);
		t->n_named += known;
	}
	t->names = names;
	t->n_names = v->n_methods;
	return TW_OK;
}

static enum tw_status read_trace(const struct opening *o, const struct tw_view *v,
        struct tw_side_trace *t, struct tw_err *err)
{
	struct tw_selection sel = o->times;
	bool partial = false;
	enum tw_status st = read_names(o, v, t, err);

	if (st == TW_OK)
		st = tw_selection_threads(v->file, o->threads, false, o->arena, &sel, err);
	if (st == TW_NOT_FOUND)
		return tw_fail(err, st, "trace %s has no thread %.60s: compare all threads",
		        v->row.id, o->threads);
	if (st == TW_OK)
		st = tw_query_forest(v->file, &sel, sel.ranged ? &o->deadline : NULL, o->arena,
		        &t->forest, &partial, err);
	if (st == TW_OK && partial)
		st = tw_compare_late(err);
	return st;
}

static enum tw_status open_trace(
        const struct opening *o, struct tw_str id, struct tw_side_trace *ret, struct tw_err *err)
{
	const char *text = tw_arena_str(tw_req_arena(o->req), id);
	struct tw_side_trace t = {.names = NULL};
	struct tw_view v;
	enum tw_status st;

	if (!text)
		return tw_oom(err);
	st = tw_view_open_id(o->req, text, &v, err);
	if (st != TW_OK)
		return st;
	t.row = v.row;
	st = read_trace(o, &v, &t, err);
	tw_view_close(&v);
	if (st == TW_OK)
		*ret = t;
	return st;
}

/* --- one side --- */

static enum tw_status check_id(struct tw_str id, const struct tw_side_trace *t, uint32_t n,
        const char *side, struct tw_err *err)
{
	if (id.len != TW_ID_CHARS)
		return tw_fail(
		        err, TW_BAD_REQUEST, "%s is trace ids with commas between them", side);
	if (n == TW_SIDE_TRACES_MAX)
		return tw_fail(err, TW_BAD_REQUEST, "%s: a side has at most %d traces", side,
		        TW_SIDE_TRACES_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (tw_str_eq(tw_str_of(t[i].row.id), id))
			return tw_fail(err, TW_BAD_REQUEST, "%s: trace %s is listed twice", side,
			        t[i].row.id);
	return TW_OK;
}

/* The names of a side's parameters. */
struct side_params {
	const char *traces, *thread, *from, *to;
};

static const struct side_params params[TW_SIDES] = {
        {"a", "a_thread", "a_from", "a_to"}, {"b", "b_thread", "b_from", "b_to"}};

/* What tw_sides_open reads, besides tw_api_thread_params. */
static const struct tw_param tw_sides_params[] = {
        TW_PARAM_REQUIRED("a", 0, "Side A: up to 16 trace ids, separated by commas."),
        TW_PARAM_REQUIRED(
                "b", 0, "Side B: up to 16 trace ids, separated by commas; also those of A."),
        TW_PARAM_OPTIONAL_NUMBER("a_from", 0, TW_VIEW_TIME_MAX,
                "Start of a time range in ns, in each trace of A: two ranges of one trace are "
                "compared when it is on both sides."),
        TW_PARAM_OPTIONAL_NUMBER("a_to", 0, TW_VIEW_TIME_MAX, "End of A's time range, exclusive."),
        TW_PARAM_OPTIONAL_NUMBER(
                "b_from", 0, TW_VIEW_TIME_MAX, "Start of a time range in ns, in each trace of B."),
        TW_PARAM_OPTIONAL_NUMBER("b_to", 0, TW_VIEW_TIME_MAX, "End of B's time range, exclusive."),
        TW_PARAM_TEXT("a_thread", 0, "Threads of A, instead of thread."),
        TW_PARAM_TEXT("b_thread", 0, "Threads of B, instead of thread."),
        {0},
};

/* Reads a side's threads and times. */
static enum tw_status read_part(struct opening *o, const struct side_params *p, struct tw_err *err)
{
	const char *threads = tw_req_text(o->req, p->thread);

	o->threads = threads ? threads : tw_api_thread(o->req);
	return tw_view_times(o->req, p->from, p->to, &o->times, err);
}

static enum tw_status open_side(struct opening *o, const struct side_params *p,
        struct tw_side_trace **ret, uint32_t *ret_n, struct tw_err *err)
{
	const char *side = p->traces;
	struct tw_str rest = tw_str_of(tw_req_text(o->req, side));
	struct tw_side_trace *t = tw_arena_zalloc(o->arena, TW_SIDE_TRACES_MAX, sizeof *t);
	uint32_t n = 0;
	enum tw_status read = t ? read_part(o, p, err) : tw_oom(err);

	if (read != TW_OK)
		return read;
	while (rest.len) {
		struct tw_str id = tw_str_split(&rest, ',');
		enum tw_status st = check_id(id, t, n, side, err);

		if (st == TW_OK && tw_deadline_passed(&o->deadline))
			st = tw_compare_late(err);
		if (st == TW_OK)
			st = open_trace(o, id, &t[n], err);
		if (st != TW_OK)
			return st;
		n++;
	}
	*ret = t;
	*ret_n = n;
	return TW_OK;
}

/* --- common numbers --- */

struct named {
	struct method_name of;
	uint32_t *number; /* the method's number in its trace */
};

TW_ORDER_BY(by_name, struct named, TW_RISING(of.name), TW_RISING(of.descriptor))

/* Whether the entry is the method of the one before it, in the order of by_name. */
static bool is_same(const struct named *list, size_t i, size_t n)
{
	const struct method_name *of = &list[i].of;
	size_t last = i;

	if (i == 0 || !tw_str_eq(list[i - 1].of.name, of->name))
		return false;
	if (list[i - 1].of.descriptor.len || !of->descriptor.len)
		return tw_str_eq(list[i - 1].of.descriptor, of->descriptor);
	while (last + 1 < n && tw_str_eq(list[last + 1].of.name, of->name))
		last++;
	return tw_str_eq(of->descriptor, list[last].of.descriptor);
}

static void renumber(struct tw_forest *f, const uint32_t *numbers, uint32_t n)
{
	for (uint32_t i = 0; i < f->n; i++)
		for (uint32_t k = 1; k < f->trees[i].n; k++) {
			struct tw_tree_node *node = &f->trees[i].nodes[k];

			if (node->method < n)
				node->method = numbers[node->method];
		}
}

/* Lists the names of a trace; later their common numbers are stored in *ret_numbers. */
static bool list_names(const struct tw_side_trace *t, struct tw_arena *a, struct named *list,
        uint32_t **ret_numbers)
{
	uint32_t *numbers = tw_arena_alloc(a, (size_t)t->n_names + 1, sizeof *numbers);

	if (!numbers)
		return false;
	for (uint32_t i = 0; i < t->n_names; i++)
		list[i] = (struct named){t->names[i], &numbers[i]};
	*ret_numbers = numbers;
	return true;
}

static enum tw_status number(
        struct tw_sides *s, struct named *list, size_t n, struct tw_arena *a, struct tw_err *err)
{
	struct method_name *names = tw_arena_alloc(a, n + 1, sizeof *names);

	if (!names)
		return tw_oom(err);
	TW_SORT(list, n, by_name);
	for (size_t i = 0; i < n; i++) {
		s->n_names += !is_same(list, i, n);
		names[s->n_names - 1] = list[i].of;
		*list[i].number = s->n_names - 1;
	}
	s->names = names;
	return TW_OK;
}

static enum tw_status number_all(struct tw_sides *s, struct tw_arena *a, struct tw_err *err)
{
	uint32_t *numbers[TW_SIDES][TW_SIDE_TRACES_MAX] = {{NULL}};
	struct named *list;
	enum tw_status st;
	size_t n = 0;

	for (int side = 0; side < TW_SIDES; side++)
		for (uint32_t i = 0; i < s->side[side].n_traces; i++)
			n += s->traces[side][i].n_names;
	list = n < UINT32_MAX ? tw_arena_alloc(a, n + 1, sizeof *list) : NULL;
	if (!list)
		return tw_oom(err);
	n = 0;
	for (int side = 0; side < TW_SIDES; side++)
		for (uint32_t i = 0; i < s->side[side].n_traces; i++) {
			if (!list_names(&s->traces[side][i], a, list + n, &numbers[side][i]))
				return tw_oom(err);
			n += s->traces[side][i].n_names;
		}
	st = number(s, list, n, a, err);
	for (int side = 0; st == TW_OK && side < TW_SIDES; side++)
		for (uint32_t i = 0; i < s->side[side].n_traces; i++)
			renumber(&s->traces[side][i].forest, numbers[side][i],
			        s->traces[side][i].n_names);
	return st;
}

static bool gather_forests(struct tw_sides *s, struct tw_arena *a)
{
	for (int side = 0; side < TW_SIDES; side++) {
		uint32_t n = s->side[side].n_traces;
		struct tw_forest *f = tw_arena_alloc(a, n, sizeof *f);

		if (!f)
			return false;
		for (uint32_t i = 0; i < n; i++)
			f[i] = s->traces[side][i].forest;
		s->side[side].traces = f;
	}
	return true;
}

/* Reads the sides' parameters and thread= of the request.  All is in the arena, except the texts of
 * the rows, which are valid during the request.  Errors with a message: TW_NOT_FOUND, TW_CONFLICT
 * (not decoded), TW_BAD_REQUEST, TW_DEADLINE (checked before each trace). */
static enum tw_status tw_sides_open(
        struct tw_req *r, struct tw_arena *a, struct tw_sides *ret, struct tw_err *err)
{
	const struct tw_view of_request = {.req = r};
	struct opening o = {.req = r,
	        .arena = a,
	        .name = tw_arena_alloc(a, TW_NAME_BYTES, 1),
	        .deadline = tw_view_deadline(&of_request)};
	struct tw_sides s = {.n_names = 0, .deadline = o.deadline};
	enum tw_status st = TW_OK;

	if (!o.name)
		return tw_oom(err);
	for (int side = 0; st == TW_OK && side < TW_SIDES; side++)
		st = open_side(&o, &params[side], &s.traces[side], &s.side[side].n_traces, err);
	if (st == TW_OK)
		st = number_all(&s, a, err);
	if (st == TW_OK && !gather_forests(&s, a))
		st = tw_oom(err);
	if (st == TW_OK)
		*ret = s;
	return st;
}

#define BODY_MAX  ((size_t)256 << 20)
#define ARENA_MAX ((size_t)1 << 30)

enum { ROOT_MAX = 4096, NODES_MAX = 200000, METHODS_MAX = 10000 };

struct comparison {
	struct tw_req *req;
	struct tw_arena *arena;
	struct tw_sides sides;
	struct tw_buf out;
	struct tw_json j;
};

static struct method_name name_of(const struct comparison *c, uint32_t method)
{
	return method < c->sides.n_names ? c->sides.names[method]
	                                 : (struct method_name){TW_STR(""), TW_STR("")};
}

static void put_name(struct comparison *c, uint32_t method)
{
	const struct method_name of = name_of(c, method);

	tw_json_key_int(&c->j, "method", method);
	TW_JSON_MEMBERS(&c->j, &of, name, descriptor);
}

/* --- the selections --- */

static bool put_trace(struct comparison *c, const struct tw_side_trace *t)
{
	json_t *json = tw_api_trace(&t->row);
	char *text = tw_json_dumps(json, JSON_COMPACT);

	json_decref(json);
	if (!text)
		return false;
	tw_json_open(&c->j, '{');
	tw_json_key(&c->j, "trace");
	tw_json_raw(&c->j, tw_str_of(text));
	tw_json_key_int(&c->j, "methods", t->n_names);
	tw_json_key_int(&c->j, "named", t->n_named);
	tw_json_close(&c->j, '}');
	free(text);
	return true;
}

static bool put_sides(struct comparison *c)
{
	static const char *const keys[TW_SIDES] = {"a", "b"};

	for (int side = 0; side < TW_SIDES; side++) {
		tw_json_key_open(&c->j, keys[side], '[');
		for (uint32_t i = 0; i < c->sides.side[side].n_traces; i++)
			if (!put_trace(c, &c->sides.traces[side][i]))
				return false;
		tw_json_close(&c->j, ']');
	}
	return true;
}

/* --- the tree --- */

enum field { PARENT, METHOD, OTHER, A_NS, B_NS, A_SELF_NS, B_SELF_NS, A_COUNT, B_COUNT, FIELDS };

static int64_t field_of(const struct tw_compare_node *n, enum field which)
{
	const struct tw_compared *a = &n->of[TW_SIDE_A];
	const struct tw_compared *b = &n->of[TW_SIDE_B];

	switch (which) {
	case PARENT:
		return n->parent;
	case METHOD:
		return n->method == TW_NO_METHOD ? -1 : (int64_t)n->method;
	case OTHER:
		return n->others;
	case A_NS:
		return a->total_ns;
	case B_NS:
		return b->total_ns;
	case A_SELF_NS:
		return a->self_ns;
	case B_SELF_NS:
		return b->self_ns;
	case A_COUNT:
		return (int64_t)a->count;
	case B_COUNT:
		return (int64_t)b->count;
	case FIELDS:
		break;
	}
	return 0;
}

/* Names of the methods in the response and on the path to root=, in the order of their numbers, and
 * those numbers.  A link may be opened without any earlier response. */
static bool put_names(
        struct comparison *c, const struct tw_compare_query *q, const struct tw_compare *t)
{
	uint8_t *shown = tw_arena_zalloc(c->arena, (size_t)c->sides.n_names + 1, 1);

	if (!shown)
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->nodes[i].method < c->sides.n_names)
			shown[t->nodes[i].method] = 1;
	for (size_t i = 0; i < q->n_root; i++)
		if (q->root[i] < c->sides.n_names)
			shown[q->root[i]] = 1;
	tw_json_key_open(&c->j, "names", '[');
	for (uint32_t i = 0; i < c->sides.n_names; i++) {
		if (!shown[i])
			continue;
		tw_json_open(&c->j, '{');
		put_name(c, i);
		tw_json_close(&c->j, '}');
	}
	tw_json_close(&c->j, ']');
	return true;
}

void tw_compare_put_tree(struct tw_json *j, const struct tw_compare *t)
{
	static const char *const keys[FIELDS] = {[PARENT] = "parent",
	        [METHOD] = "method",
	        [OTHER] = "other",
	        [A_NS] = "a_ns",
	        [B_NS] = "b_ns",
	        [A_SELF_NS] = "a_self_ns",
	        [B_SELF_NS] = "b_self_ns",
	        [A_COUNT] = "a_count",
	        [B_COUNT] = "b_count"};
	int64_t shown = 0;

	for (int k = 0; k < FIELDS; k++) {
		tw_json_key_open(j, keys[k], '[');
		for (uint32_t i = 0; i < t->n; i++)
			tw_json_int(j, field_of(&t->nodes[i], (enum field)k));
		tw_json_close(j, ']');
	}
	for (uint32_t i = 1; i < t->n; i++)
		shown += t->nodes[i].others == 0;
	tw_json_key_int(j, "total_nodes", (int64_t)t->total_nodes);
	tw_json_key_int(j, "shown_nodes", shown);
}

static enum tw_status read_tree_query(
        const struct comparison *c, struct tw_compare_query *ret, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(c->req, "root");
	struct tw_str rest = tw_str_of(text);
	uint32_t *path = tw_arena_alloc(c->arena, ROOT_MAX, sizeof *path);
	size_t n = 0;
	enum tw_status st = TW_OK;

	if (!path)
		return tw_oom(err);
	while (st == TW_OK && rest.len) {
		uint64_t method = 0;

		if (n == ROOT_MAX || !tw_str_u64(tw_str_split(&rest, '.'), UINT32_MAX, &method))
			st = tw_fail(err, TW_BAD_REQUEST,
			        "root is method numbers with dots between them, not %.60s", text);
		else
			path[n++] = (uint32_t)method;
	}
	*ret = (struct tw_compare_query){path, n,
	        (uint32_t)tw_req_number_or(
	                c->req, "max_nodes", tw_api_of(c->req)->config->flame_nodes)};
	return st;
}

/* Limits the trees of a side to the calls of a method. */
static enum tw_status focus_side(struct comparison *c, const struct tw_reshape *step,
        struct tw_compare_side *side, struct tw_err *err)
{
	struct tw_forest *to = tw_arena_alloc(c->arena, side->n_traces, sizeof *to);
	enum tw_status st = to ? TW_OK : tw_oom(err);
	bool late = false;

	for (uint32_t i = 0; st == TW_OK && !late && i < side->n_traces; i++)
		st = tw_query_reshape(&side->traces[i], step, 1, &c->sides.deadline, c->arena,
		        &to[i], &late, err);
	if (st == TW_OK && late)
		st = tw_compare_late(err);
	if (st == TW_OK)
		side->traces = to;
	return st;
}

static enum tw_status focus(struct comparison *c, struct tw_err *err)
{
	const struct tw_str name = tw_str_of(tw_req_text_or_empty(c->req, "focus"));
	const uint32_t n = c->sides.n_names;
	uint8_t *bits = tw_arena_zalloc(c->arena, (size_t)n / 8 + 1, 1);
	const struct tw_reshape step = {TW_RESHAPE_FOCUS, bits, n, 0};
	enum tw_status st = bits ? TW_NOT_FOUND : tw_oom(err);

	if (!name.len)
		return TW_OK;
	for (uint32_t i = 0; bits && i < n; i++)
		if (tw_str_eq(c->sides.names[i].name, name)) {
			bits[i >> 3] |= (uint8_t)(1U << (i & 7));
			st = TW_OK;
		}
	if (st == TW_NOT_FOUND)
		return tw_fail(err, st, "neither side has a method with that name");
	for (int side = 0; st == TW_OK && side < TW_SIDES; side++)
		st = focus_side(c, &step, &c->sides.side[side], err);
	return st;
}

static enum tw_status answer_tree(struct comparison *c, struct tw_err *err)
{
	struct tw_compare_query q;
	struct tw_compare t;
	enum tw_status st = read_tree_query(c, &q, err);

	if (st == TW_OK)
		st = focus(c, err);
	if (st == TW_OK)
		st = tw_query_compare(c->sides.side, &q, &c->sides.deadline, c->arena, &t, err);
	if (st != TW_OK)
		return st;
	tw_json_open(&c->j, '{');
	if (!put_sides(c) || !put_names(c, &q, &t))
		return tw_oom(err);
	tw_compare_put_tree(&c->j, &t);
	tw_json_close(&c->j, '}');
	return TW_OK;
}

/* --- the table --- */

enum only { ALL, SLOWER, FASTER, NEW, GONE };

struct table {
	unsigned sort, rising, only;
	bool regex;
	int64_t limit, offset;
	uint32_t added, gone; /* of all methods */
};

static const char *const sorts[] = {[TW_BY_SELF_CHANGE] = "self_change",
        [TW_BY_TOTAL_CHANGE] = "total_change",
        [TW_BY_COUNT_CHANGE] = "count_change",
        [TW_BY_SELF_A] = "self_a",
        [TW_BY_SELF_B] = "self_b",
        [TW_BY_TOTAL_A] = "total_a",
        [TW_BY_TOTAL_B] = "total_b",
        [TW_BY_COUNT_A] = "count_a",
        [TW_BY_COUNT_B] = "count_b",
        [TW_BY_METHOD] = "name",
        NULL};
static const char *const kinds[] = {"all", "slower", "faster", "new", "removed", NULL};

static const struct tw_param table_params[] = {
        TW_PARAM_ENUM(
                "sort", sorts, "Column to sort by. Changes are per trace, in either direction."),
        TW_PARAM_ENUM("order", tw_orders, ""),
        TW_PARAM_ENUM("only", kinds,
                "`slower`, `faster`: by self time per trace; `new`: not called in A; `removed`: "
                "not called in B."),
        TW_PARAM_TEXT("q", 0,
                "Part of the name, ignoring case; with regex=true, a regular expression (PCRE2). "
                "A text with a parenthesis is also compared with parameters and type, as in "
                "`parse(java.lang.String, int): void` or `parse(String, int): void`."),
        TW_PARAM_FLAG("regex", false, "Whether `q` is a regular expression."),
        TW_PARAM_NUMBER("limit", 25, 1, METHODS_MAX, "Rows."),
        TW_PARAM_NUMBER("offset", 0, 0, UINT32_MAX, "Number of rows to skip."),
        {0},
};

static bool is_requested(const struct comparison *c, const struct table *t,
        const struct tw_match *match, const struct tw_compare_method *m)
{
	const struct method_name of = name_of(c, m->method);
	bool meant = true;

	if (t->only == SLOWER)
		meant = tw_compare_self_change(m, c->sides.side) > 0;
	else if (t->only == FASTER)
		meant = tw_compare_self_change(m, c->sides.side) < 0;
	else if (t->only == NEW)
		meant = m->of[TW_SIDE_A].count == 0;
	else if (t->only == GONE)
		meant = m->of[TW_SIDE_B].count == 0;
	return meant && (!match || tw_match_has_method(match, of.name, of.descriptor));
}

/* Keeps the requested methods, in place; returns their number. */
static uint32_t choose(const struct comparison *c, struct table *t, const struct tw_match *match,
        struct tw_compare_method *m, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		t->added += m[i].of[TW_SIDE_A].count == 0;
		t->gone += m[i].of[TW_SIDE_B].count == 0;
		if (is_requested(c, t, match, &m[i]))
			m[kept++] = m[i];
	}
	return kept;
}

static void put_method(struct comparison *c, const struct tw_compare_method *m)
{
	static const char *const keys[TW_SIDES] = {"a", "b"};

	tw_json_open(&c->j, '{');
	put_name(c, m->method);
	for (int side = 0; side < TW_SIDES; side++) {
		tw_json_key_open(&c->j, keys[side], '{');
		TW_JSON_MEMBERS(&c->j, &m->of[side], self_ns, total_ns, count);
		tw_json_key_int(&c->j, "traces", m->traces[side]);
		tw_json_close(&c->j, '}');
	}
	tw_json_close(&c->j, '}');
}

static void put_table(
        struct comparison *c, const struct table *t, const struct tw_compare_method *m, uint32_t n)
{
	tw_json_open(&c->j, '{');
	tw_json_key_open(&c->j, "methods", '[');
	for (int64_t i = t->offset; i < (int64_t)n && i < t->offset + t->limit; i++)
		put_method(c, &m[i]);
	tw_json_close(&c->j, ']');
	tw_json_key_int(&c->j, "total", n);
	tw_json_key_int(&c->j, "new", t->added);
	tw_json_key_int(&c->j, "removed", t->gone);
	tw_json_close(&c->j, '}');
}

static enum tw_status answer_table(struct comparison *c, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(c->req, "q");
	struct tw_compare_methods m = {.n = 0};
	struct tw_match *match = NULL;
	struct table t = {.limit = 0};
	enum tw_status st;

	t.sort = (unsigned)tw_req_enum(c->req, "sort");
	t.rising = (unsigned)tw_req_enum(c->req, "order");
	t.only = (unsigned)tw_req_enum(c->req, "only");
	t.regex = tw_req_flag(c->req, "regex");
	t.limit = tw_req_number(c->req, "limit");
	t.offset = tw_req_number(c->req, "offset");
	st = tw_query_compare_methods(
	        c->sides.side, c->sides.n_names, &c->sides.deadline, c->arena, &m, err);
	if (st == TW_OK && text[0])
		st = tw_match_new(text, t.regex, &match, err);
	if (st != TW_OK)
		return st;
	m.n = choose(c, &t, match, m.list, m.n);
	tw_match_free(match);
	tw_compare_rank(m.list, m.n, c->sides.side, (enum tw_compare_sort)t.sort, t.rising);
	put_table(c, &t, m.list, m.n);
	return TW_OK;
}

/* --- both --- */

static enum tw_status run(struct tw_req *r,
        enum tw_status (*answer)(struct comparison *c, struct tw_err *err), struct tw_err *err)
{
	struct comparison c = {.req = r, .arena = tw_arena_new(ARENA_MAX)};
	enum tw_status st = c.arena ? TW_OK : tw_oom(err);

	tw_buf_init(&c.out, BODY_MAX);
	c.j = tw_json_to(&c.out);
	if (st == TW_OK)
		st = tw_sides_open(r, c.arena, &c.sides, err);
	if (st == TW_OK)
		st = answer(&c, err);
	if (st == TW_OK)
		st = tw_req_reply_buf(r, 200, "application/json", true, &c.out, err);
	tw_arena_free(c.arena);
	tw_buf_done(&c.out);
	return st;
}

static enum tw_status compare(struct tw_req *r, struct tw_err *err)
{
	return run(r, answer_tree, err);
}

static enum tw_status compare_methods(struct tw_req *r, struct tw_err *err)
{
	return run(r, answer_table, err);
}

static const struct tw_param tree_params[] = {
        TW_PARAM_TEXT("focus", 0,
                "Limits the trees to the calls of the methods with this name and their callees. "
                "Calls from different callers are merged."),
        TW_PARAM_TEXT("root", 0,
                "Method numbers from the top, with dots between them: drill-down. 404 when neither "
                "side has that path."),
        TW_PARAM_OPTIONAL_NUMBER("max_nodes", 1, NODES_MAX,
                "The heaviest nodes of both sides are returned, the others are merged into nodes "
                "with `other`. --flame-nodes sets the default."),
        {0},
};

const struct tw_route tw_routes_compare[] = {
        TW_ROUTE("GET", "/api/v1/compare", TW_NEED_READ, "The calls of two selections as one tree",
                .params = TW_PARAMS(tw_sides_params, tw_api_thread_params, tree_params),
                .end = compare),
        TW_ROUTE("GET", "/api/v1/compare/methods", TW_NEED_READ,
                "The methods of two selections side by side",
                .params = TW_PARAMS(tw_sides_params, tw_api_thread_params, table_params),
                .end = compare_methods),
        {0},
};
