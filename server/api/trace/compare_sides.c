#include "server/api/trace/compare_sides.h"

#include <stdlib.h>

#include "server/api/api.h"
#include "server/api/trace/view_open.h"

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
static struct tw_str name_of(
        const struct opening *o, const struct tw_view *v, uint32_t method, bool *ret_known)
{
	struct tw_str name = tw_view_name(v, method, o->name, ret_known);
	const char *copy = *ret_known || !v->row.meta.build_id[0]
	                           ? tw_arena_str(o->arena, name)
	                           : tw_arena_printf(o->arena, "%.*s of build %s", (int)name.len,
	                                     name.ptr, v->row.meta.build_id);

	return tw_str_of(copy);
}

static enum tw_status read_names(const struct opening *o, const struct tw_view *v,
        struct tw_side_trace *t, struct tw_err *err)
{
	struct tw_str *names = tw_arena_alloc(o->arena, (size_t)v->n_methods + 1, sizeof *names);

	if (!names)
		return tw_oom(err);
	for (uint32_t i = 0; i < v->n_methods; i++) {
		bool known = true;

		names[i] = name_of(o, v, i, &known);
		if (!names[i].ptr)
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
			return tw_fail(err, TW_BAD_REQUEST, "%s: trace %s is named twice", side,
			        t[i].row.id);
	return TW_OK;
}

/* The names of a side's parameters. */
struct side_params {
	const char *traces, *thread, *from, *to;
};

static const struct side_params params[TW_SIDES] = {
        {"a", "a_thread", "a_from", "a_to"}, {"b", "b_thread", "b_from", "b_to"}};

const struct tw_param tw_sides_params[] = {
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
	struct tw_str name;
	uint32_t *number; /* the method's number in its trace */
};

static int by_name(const void *pa, const void *pb)
{
	return tw_str_cmp(((const struct named *)pa)->name, ((const struct named *)pb)->name);
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
	struct tw_str *names = tw_arena_alloc(a, n + 1, sizeof *names);

	if (!names)
		return tw_oom(err);
	if (n)
		qsort(list, n, sizeof *list, by_name);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || !tw_str_eq(list[i].name, names[s->n_names - 1]))
			names[s->n_names++] = list[i].name;
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

enum tw_status tw_sides_open(
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
