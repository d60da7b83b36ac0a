/* Unit tests of queries on a trace file, against plain counting over the model it was made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

#include "server/base/text/json_write.h"
#include "server/query/query.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/naive_tree.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

struct world {
	struct model model;
	struct trace_fixture f;
	struct tw_arena *arena;
	int64_t end_ns;
};

static void open_world(struct world *w, uint64_t seed, uint32_t per_thread)
{
	/* a large trace has a small tree, or the naive one would take a minute */
	struct model_shape shape = {seed, 3, per_thread, per_thread > 10000 ? 3 : 30, false};

	model_make(&w->model, &shape);
	assert_int_equal(trace_fixture_make(&w->f, &w->model), TW_OK);
	w->arena = tw_arena_new((size_t)1 << 30);
	w->end_ns = tw_trace_file_info(w->f.file)->end_ns;
}

static void close_world(struct world *w)
{
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
	model_done(&w->model);
}

/* The call trees of a selection, put together. */
static enum tw_status merged_tree(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_tree *ret,
        bool *ret_partial)
{
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	struct tw_forest forest;
	enum tw_status st = tw_query_forest(f, sel, deadline, a, &forest, ret_partial, NULL);

	for (uint32_t i = 0; st == TW_OK && i < forest.n; i++)
		st = tw_tree_builder_add_tree(b, &forest.trees[i]);
	if (st == TW_OK)
		st = tw_tree_builder_finish(b, a, ret);
	tw_tree_builder_free(b);
	return st;
}

static struct tw_tree whole_tree(struct world *w)
{
	struct tw_selection sel = {.all_threads = true};
	struct tw_tree t;
	bool partial = true;

	assert_int_equal(merged_tree(w->f.file, &sel, NULL, w->arena, &t, &partial), TW_OK);
	assert_false(partial);
	return t;
}

/* --- slices and trees --- */

struct check_slices {
	const struct world *w;
	size_t at; /* next slice of the model */
	uint64_t tid;
	int64_t from, to;
	bool same;
};

static void skip_outside(struct check_slices *c)
{
	const struct model *m = &c->w->model;

	for (; c->at < m->n; c->at++) {
		const struct model_slice *s = &m->slices[c->at];

		if (s->tid == c->tid && naive_in_range(m, s, c->from, c->to))
			return;
	}
}

static bool next_slices(void *arg, const struct tw_slice *s, size_t n)
{
	struct check_slices *c = arg;

	for (size_t i = 0; i < n; i++, c->at++) {
		const struct model_slice *want;

		skip_outside(c);
		want = &c->w->model.slices[c->at];
		if (c->at >= c->w->model.n || s[i].start_ns != want->start_ns ||
		        s[i].dur_ns != want->dur_ns || s[i].depth != want->depth ||
		        c->w->f.methods[s[i].method].id != want->method_id)
			c->same = false;
	}
	return c->same;
}

static void check_range(struct world *w, int64_t from, int64_t to)
{
	struct tw_selection sel;
	uint64_t tid = MODEL_PID + 1;
	struct tw_tree want = naive_tree(w->arena, &w->model, 0, from, to);
	struct tw_tree got;
	bool partial;

	sel = (struct tw_selection){
	        .all_threads = true, .ranged = true, .from_ns = from, .to_ns = to};
	assert_int_equal(merged_tree(w->f.file, &sel, NULL, w->arena, &got, &partial), TW_OK);
	assert_null(naive_differs(&got, &want, w->f.methods, w->arena));
	sel.all_threads = false;
	sel.tids = &tid;
	sel.n_tids = 1;
	want = naive_tree(w->arena, &w->model, tid, from, to);
	assert_int_equal(merged_tree(w->f.file, &sel, NULL, w->arena, &got, &partial), TW_OK);
	assert_null(naive_differs(&got, &want, w->f.methods, w->arena));
	for (uint32_t i = 1; i <= w->model.threads; i++) {
		struct check_slices c = {w, 0, MODEL_PID + i - 1, from, to, true};

		/* thread ids go by size, and the model's threads fall in size */
		assert_int_equal(
		        tw_query_slices(w->f.file, i, from, to, next_slices, &c, NULL), TW_OK);
		skip_outside(&c);
		assert_true(c.same && c.at == w->model.n);
	}
}

static void test_ranges(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world w;
		uint64_t r = seed;

		open_world(&w, seed * 13, seed == 4 ? 150000 : 2000);
		check_range(&w, 0, INT64_MAX);
		check_range(&w, 0, 1);
		check_range(&w, w.end_ns, w.end_ns + 10);
		for (int i = 0; i < (seed == 4 ? 6 : 40); i++) {
			int64_t from = (int64_t)(test_random(&r) % (uint64_t)w.end_ns);
			int64_t len = (int64_t)(test_random(&r) % (uint64_t)(w.end_ns >> i % 20));

			check_range(&w, from, from + len + 1);
			tw_arena_reset(w.arena);
		}
		close_world(&w);
	}
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

static void test_selection(void **state)
{
	const struct tw_deadline late = {always, NULL};
	uint64_t tid = MODEL_PID + 2;
	struct tw_selection sel = {.tids = &tid, .n_tids = 1};
	struct tw_tree got, want;
	struct world w;
	bool partial;

	(void)state;
	open_world(&w, 3, 900);
	got = whole_tree(&w);
	want = naive_tree(w.arena, &w.model, 0, 0, INT64_MAX);
	assert_null(naive_differs(&got, &want, w.f.methods, w.arena));
	assert_int_equal(merged_tree(w.f.file, &sel, NULL, w.arena, &got, &partial), TW_OK);
	want = naive_tree(w.arena, &w.model, tid, 0, INT64_MAX);
	assert_null(naive_differs(&got, &want, w.f.methods, w.arena));
	tid = 999;
	assert_int_equal(merged_tree(w.f.file, &sel, NULL, w.arena, &got, &partial), TW_NOT_FOUND);
	sel = (struct tw_selection){.all_threads = true, .ranged = true, .to_ns = INT64_MAX};
	assert_int_equal(merged_tree(w.f.file, &sel, &late, w.arena, &got, &partial), TW_OK);
	assert_true(partial);
	close_world(&w);
}

/* --- flame graphs --- */

typedef enum tw_status (*flame_fn)(const struct tw_forest *, const struct tw_flame_query *,
        const struct tw_deadline *, struct tw_arena *, struct tw_flame *, struct tw_err *);

/* value = self + children, siblings fall, the rest comes last, no more nodes than asked for. */
static void check_shape(
        const struct world *w, const struct tw_flame *f, uint32_t max_nodes, bool sorted)
{
	int64_t *below = tw_arena_zalloc(w->arena, f->n, sizeof *below);
	uint32_t *last = tw_arena_zalloc(w->arena, f->n, sizeof *last);
	uint32_t real = 0;

	for (uint32_t i = 1; i < f->n; i++) {
		const struct tw_flame_node *n = &f->nodes[i];
		uint32_t before = last[n->parent];

		assert_true(n->parent < i);
		assert_int_equal(n->depth, f->nodes[n->parent].depth + 1);
		below[n->parent] += n->value;
		real += n->others == 0;
		if (n->others)
			assert_int_equal(n->method, TW_NO_METHOD);
		if (before) {
			assert_int_equal(f->nodes[before].others, 0);
			assert_true(n->others || !sorted || n->value <= f->nodes[before].value);
		}
		last[n->parent] = i;
	}
	for (uint32_t i = 0; i < f->n; i++)
		assert_int_equal(f->nodes[i].value, f->nodes[i].self + below[i]);
	assert_in_range(real, 0, max_nodes);
}

static void check_all(struct world *w, const struct tw_tree *t, flame_fn query, int64_t whole,
        struct tw_flame_query q)
{
	for (q.max_nodes = 1; q.max_nodes < 4000; q.max_nodes = q.max_nodes * 3 + 1) {
		struct tw_flame f;

		assert_int_equal(
		        query(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL), TW_OK);
		check_shape(w, &f, q.max_nodes,
		        query == tw_query_bottom_up || q.metric == TW_METRIC_WALL);
		assert_int_equal(f.nodes[0].value, whole);
	}
}

static void check_top_down(struct world *w, const struct tw_tree *t)
{
	struct tw_flame_query q = {.view = TW_TOP_DOWN, .max_nodes = t->n};
	struct tw_flame f;
	uint32_t path[2];

	assert_int_equal(
	        tw_query_flame(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL), TW_OK);
	assert_int_equal(f.n, t->n);
	assert_int_equal(f.total_nodes, t->n - 1);
	for (uint32_t i = 0; i < f.n; i++) {
		assert_int_equal(f.nodes[i].parent, t->nodes[i].parent);
		assert_int_equal(f.nodes[i].method, t->nodes[i].method);
		assert_int_equal(f.nodes[i].value, t->nodes[i].total_ns);
		assert_int_equal(f.nodes[i].count, t->nodes[i].count);
		assert_int_equal(f.nodes[i].max_ns, t->nodes[i].max_ns);
	}
	for (uint32_t i = 1; i < t->n; i++) { /* drill down to each node of the second level */
		if (t->nodes[i].depth != 2)
			continue;
		path[0] = t->nodes[t->nodes[i].parent].method;
		path[1] = t->nodes[i].method;
		q = (struct tw_flame_query){.root = path, .n_root = 2};
		check_all(w, t, tw_query_flame, t->nodes[i].total_ns, q);
	}
	path[0] = path[1] = w->f.n_methods;
	assert_int_equal(tw_query_flame(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL),
	        TW_NOT_FOUND);
	assert_int_equal(
	        tw_query_bottom_up(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL),
	        TW_NOT_FOUND);
}

/* What a bottom-up node must be worth: the self times of all call-tree nodes whose way up begins
 * with its path. */
static int64_t worth(const struct tw_tree *t, const struct tw_flame *f, uint32_t node)
{
	int64_t sum = 0;

	for (uint32_t i = 1; i < t->n; i++) {
		uint32_t path[64];
		uint32_t n = 0;
		uint32_t at = i;

		for (uint32_t k = node; k; k = f->nodes[k].parent)
			path[n++] = f->nodes[k].method; /* outermost caller first */
		while (n && at && t->nodes[at].method == path[n - 1]) {
			at = t->nodes[at].parent;
			n--;
		}
		sum += n == 0 ? t->nodes[i].self_ns : 0;
	}
	return sum;
}

static void check_bottom_up(struct world *w, const struct tw_tree *t)
{
	struct tw_flame_query q = {.view = TW_BOTTOM_UP, .max_nodes = 2000};
	struct tw_flame f;

	assert_int_equal(
	        tw_query_bottom_up(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL), TW_OK);
	for (uint32_t i = 1; i < f.n; i++)
		if (!f.nodes[i].others)
			assert_int_equal(f.nodes[i].value, worth(t, &f, i));
	for (uint32_t i = 1; i < f.n; i++) {
		struct tw_flame_query below = {
		        .view = TW_BOTTOM_UP, .root = &f.nodes[i].method, .n_root = 1};

		if (f.nodes[i].depth == 1 && !f.nodes[i].others)
			check_all(w, t, tw_query_bottom_up, f.nodes[i].value, below);
	}
}

/* Rest after rest, until nothing is left: every child of the root is shown once, none is lost. */
static void check_rests(
        struct world *w, const struct tw_tree *t, flame_fn query, struct tw_flame_query q)
{
	uint8_t *met = tw_arena_zalloc(w->arena, w->f.n_methods, 1);
	int64_t left = 0;
	struct tw_flame f;

	for (bool more = true; more;) {
		uint32_t before = q.skip;

		assert_int_equal(
		        query(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL), TW_OK);
		check_shape(w, &f, q.max_nodes, false);
		if (before == 0)
			left = f.nodes[0].value - f.nodes[0].self;
		else
			assert_int_equal(f.nodes[0].self, 0);
		assert_int_equal(f.nodes[0].others != 0, before != 0);
		assert_int_equal(f.nodes[0].value - f.nodes[0].self, left);
		more = false;
		for (uint32_t i = 1; i < f.n; i++) {
			if (f.nodes[i].depth != 1)
				continue;
			more |= f.nodes[i].others != 0;
			if (f.nodes[i].others)
				continue;
			assert_int_equal(met[f.nodes[i].method]++, 0);
			left -= f.nodes[i].value;
			q.skip++;
		}
		assert_true(q.skip > before);
	}
	assert_int_equal(left, 0);
	assert_int_equal(
	        query(&(struct tw_forest){t, 1}, &q, NULL, w->arena, &f, NULL), TW_NOT_FOUND);
}

/* Threads kept apart answer as their merged tree does, node for node. */
static void check_forest(struct world *w, const struct tw_tree *merged, enum tw_flame_metric metric)
{
	const struct tw_selection all = {.all_threads = true};
	const flame_fn fns[] = {tw_query_flame, tw_query_bottom_up};
	struct tw_forest forest;
	bool partial;

	assert_int_equal(
	        tw_query_forest(w->f.file, &all, NULL, w->arena, &forest, &partial, NULL), TW_OK);
	assert_true(forest.n > 1);
	for (int k = 0; k < 2; k++)
		for (uint32_t max = 1; max < 4000; max = max * 4 + 1) {
			struct tw_flame_query q = {.metric = metric, .max_nodes = max};
			struct tw_flame one, many;

			assert_int_equal(fns[k](&(struct tw_forest){merged, 1}, &q, NULL, w->arena,
			                         &one, NULL),
			        TW_OK);
			assert_int_equal(fns[k](&forest, &q, NULL, w->arena, &many, NULL), TW_OK);
			assert_int_equal(one.n, many.n);
			for (uint32_t i = 0; i < one.n; i++) {
				struct tw_flame_node a = one.nodes[i];
				struct tw_flame_node b = many.nodes[i];

				assert_int_equal(a.others != 0, b.others != 0);
				a.others = b.others = 0; /* counted in all trees */
				a.tree_nodes = b.tree_nodes = 0;
				assert_memory_equal(&a, &b, sizeof a);
			}
		}
}

static void test_forest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world w;
		struct tw_tree t;

		open_world(&w, seed * 11, (uint32_t)seed * 50);
		t = whole_tree(&w);
		check_forest(&w, &t, TW_METRIC_WALL);
		check_forest(&w, &t, TW_METRIC_COUNT);
		close_world(&w);
	}
}

static void test_rests(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world w;
		struct tw_tree t;

		open_world(&w, seed * 5, (uint32_t)seed * 40);
		t = whole_tree(&w);
		for (uint32_t max_nodes = 1; max_nodes < 100; max_nodes = max_nodes * 3 + 1)
			for (int metric = TW_METRIC_WALL; metric <= TW_METRIC_COUNT; metric++) {
				uint32_t top = t.nodes[1].method;
				struct tw_flame_query q = {.metric = (enum tw_flame_metric)metric,
				        .max_nodes = max_nodes};

				check_rests(&w, &t, tw_query_flame, q);
				check_rests(&w, &t, tw_query_bottom_up, q);
				q.root = &top;
				q.n_root = t.nodes[1].subtree > 1;
				check_rests(&w, &t, tw_query_flame, q);
			}
		close_world(&w);
	}
}

static void test_flame(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world w;
		struct tw_tree t;
		struct tw_flame_query q = {.metric = TW_METRIC_WALL};

		open_world(&w, seed * 7, (uint32_t)seed * 40);
		t = whole_tree(&w);
		check_all(&w, &t, tw_query_flame, t.nodes[0].total_ns, q);
		check_all(&w, &t, tw_query_bottom_up, t.nodes[0].total_ns, q);
		q.metric = TW_METRIC_COUNT;
		check_all(&w, &t, tw_query_flame, (int64_t)w.model.n, q);
		check_all(&w, &t, tw_query_bottom_up, (int64_t)w.model.n, q);
		check_top_down(&w, &t);
		check_bottom_up(&w, &t);
		close_world(&w);
	}
}

/* --- methods, activity, JSON --- */

static void test_methods(void **state)
{
	struct world w;
	struct tw_method_info *rows;
	struct tw_tree t;

	(void)state;
	open_world(&w, 21, 3000);
	t = whole_tree(&w);
	assert_int_equal(
	        tw_query_methods(&(struct tw_forest){&t, 1}, w.f.n_methods, w.arena, &rows, NULL),
	        TW_OK);
	for (uint32_t i = 0; i < w.f.n_methods; i++) { /* as the builder counted call by call */
		assert_int_equal(rows[i].count, w.f.methods[i].count);
		assert_int_equal(rows[i].sum_ns, w.f.methods[i].sum_ns);
		assert_int_equal(rows[i].total_ns, w.f.methods[i].total_ns);
		assert_int_equal(rows[i].self_ns, w.f.methods[i].self_ns);
		assert_int_equal(rows[i].max_ns, w.f.methods[i].max_ns);
	}
	assert_int_equal(tw_query_methods(&(struct tw_forest){&t, 1}, w.f.n_methods - 1, w.arena,
	                         &rows, NULL),
	        TW_CORRUPT);
	close_world(&w);
}

static void test_activity(void **state)
{
	struct world w;
	const struct tw_trace_info *info;
	const struct tw_thread_info *threads;
	uint32_t n;

	(void)state;
	open_world(&w, 22, 3000);
	info = tw_trace_file_info(w.f.file);
	threads = tw_trace_file_threads(w.f.file, &n);
	for (uint32_t i = 0; i < n; i++) {
		int64_t width = (info->end_ns - info->start_ns) / TW_ACTIVITY_CELLS + 1;
		uint8_t got[TW_ACTIVITY_CELLS];

		assert_int_equal(
		        tw_query_activity(w.f.file, &threads[i], NULL, got, NULL, NULL), TW_OK);
		for (int c = 0; c < TW_ACTIVITY_CELLS; c++) {
			int64_t from = info->start_ns + c * width;
			struct tw_tree t =
			        naive_tree(w.arena, &w.model, threads[i].tid, from, from + width);
			int64_t busy = t.nodes[0].total_ns;
			int64_t want = busy * 255 / width;

			assert_in_range(got[c], want > 0 ? want - 1 : 0, want + 1);
			assert_int_equal(got[c] > 0, busy > 0);
			tw_arena_reset(w.arena);
		}
	}
	close_world(&w);
}

static void test_json(void **state)
{
	static const char hostile[] =
	        "\"\\/\b\f\n\r\t\x01\x1f\x7f</script>\xe2\x80\xa8\xf0\x9f\x98\x80\0z";
	struct tw_buf out;
	struct tw_json j;
	json_t *read;
	const json_t *text;

	(void)state;
	tw_buf_init(&out, 1 << 20);
	j = tw_json_to(&out);
	tw_json_open(&j, '{');
	tw_json_key_str(&j, "text", (struct tw_str){hostile, sizeof hostile - 1});
	tw_json_key_str(&j, "bad", (struct tw_str){"a\xff\xc0\x80\xed\xa0\x80z", 8});
	tw_json_key(&j, "list");
	tw_json_open(&j, '[');
	tw_json_int(&j, INT64_MIN);
	tw_json_int(&j, INT64_MAX);
	tw_json_int(&j, 0);
	tw_json_bool(&j, true);
	tw_json_null(&j);
	tw_json_double(&j, -1.5);
	tw_json_open(&j, '{');
	tw_json_close(&j, '}');
	tw_json_close(&j, ']');
	tw_json_key_bool(&j, "end", false);
	tw_json_close(&j, '}');
	read = json_loadb((const char *)out.data, out.len, JSON_ALLOW_NUL, NULL);
	assert_non_null(read);
	text = json_object_get(read, "text");
	assert_int_equal(json_string_length(text), sizeof hostile - 1);
	assert_memory_equal(json_string_value(text), hostile, sizeof hostile - 1);
	text = json_object_get(read, "bad");
	assert_int_equal(json_string_value(text)[0], 'a');
	assert_int_equal(json_string_value(text)[json_string_length(text) - 1], 'z');
	text = json_object_get(read, "list");
	assert_int_equal(json_array_size(text), 7);
	assert_int_equal(json_integer_value(json_array_get(text, 0)), INT64_MIN);
	assert_int_equal(json_integer_value(json_array_get(text, 1)), INT64_MAX);
	assert_true(json_is_false(json_object_get(read, "end")));
	json_decref(read);
	tw_buf_done(&out);
}

/* The methods of a damaged file may have any number: the same graph with other methods. */
static void test_unknown_methods(void **state)
{
	const struct tw_flame_query q = {.view = TW_BOTTOM_UP, .max_nodes = 2000};
	const uint32_t far = 0x80000000;
	struct world w;
	struct tw_flame near_by, far_off;
	struct tw_tree t;

	(void)state;
	open_world(&w, 5, 300);
	t = whole_tree(&w);
	assert_int_equal(
	        tw_query_bottom_up(&(struct tw_forest){&t, 1}, &q, NULL, w.arena, &near_by, NULL),
	        TW_OK);
	for (uint32_t i = 1; i < t.n; i++)
		t.nodes[i].method |= far;
	assert_int_equal(
	        tw_query_bottom_up(&(struct tw_forest){&t, 1}, &q, NULL, w.arena, &far_off, NULL),
	        TW_OK);
	assert_int_equal(near_by.n, far_off.n);
	assert_true(near_by.n > 10);
	for (uint32_t i = 0; i < near_by.n; i++) {
		uint32_t method = near_by.nodes[i].method;

		assert_int_equal(
		        far_off.nodes[i].method, method == TW_NO_METHOD ? method : method | far);
		assert_int_equal(far_off.nodes[i].value, near_by.nodes[i].value);
		assert_int_equal(far_off.nodes[i].parent, near_by.nodes[i].parent);
	}
	close_world(&w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_flame),
        cmocka_unit_test(test_forest),
        cmocka_unit_test(test_rests),
        cmocka_unit_test(test_unknown_methods),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_activity),
        cmocka_unit_test(test_json),
};

UNIT_TESTS("query", tests)
