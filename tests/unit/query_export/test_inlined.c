/* Sampled frames read as the methods of a mapping: chunks, trees and tables agree, whatever is
 * inlined, and the sums of the trace remain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/query/query.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/native_fixture.h"
#include "tests/unit/unit.h"

enum { LINES = 8 };

struct world {
	struct trace_fixture f;
	struct tw_buf image;
	struct tw_retrace retrace;
	struct tw_names names;
	struct tw_arena *arena;
};

static uint64_t random_number(uint64_t *r)
{
	*r = *r * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *r >> 33;
}

static void emit(struct tw_sink *s, uint32_t track, const char *name, int64_t from, int64_t dur)
{
	const struct tw_event e = {.ts_ns = from,
	        .dur_ns = dur,
	        .cpu_ns = -1,
	        .track = track,
	        .sym = s->ops->name(s, tw_str_of(name)),
	        .kind = TW_EV_SLICE,
	        .any_order = true};

	assert_int_equal(s->ops->events(s, &e, 1, NULL), TW_OK);
}

/* Frames "a.m(:0)" to "a.m(:7)" below "run", of 100 ns each, n times. */
static void make_trace(struct world *w, uint32_t n, uint64_t seed)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 1, TW_TID_FULL);

	s->ops->source(s, track, TW_SOURCE_SAMPLES, 100);
	for (uint32_t i = 0; i < n; i++) {
		int64_t at = (int64_t)i * 200 + 1000;
		unsigned depth = (unsigned)(random_number(&seed) % 4);
		char name[32];

		emit(s, track, "run", at, 100);
		for (unsigned d = 0; d < depth; d++) {
			(void)snprintf(name, sizeof name, "a.m(:%u)",
			        1 + (unsigned)(random_number(&seed) % LINES));
			emit(s, track, name, at, 90 - (int64_t)d * 10);
		}
	}
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
}

static void read_mapping(struct world *w, const char *text)
{
	struct tw_retrace_writer *r = tw_retrace_writer_new(1 << 20);
	struct tw_retrace_stats stats;

	tw_buf_init(&w->image, 1 << 20);
	assert_int_equal(
	        tw_retrace_writer_push(r, (const uint8_t *)text, strlen(text), NULL), TW_OK);
	assert_int_equal(tw_retrace_writer_finish(r, &w->image, &stats, NULL), TW_OK);
	tw_retrace_writer_free(r);
	assert_int_equal(tw_retrace_open(w->image.data, w->image.len, &w->retrace, NULL), TW_OK);
	w->names.retrace = &w->retrace;
}

static void open_world(struct world *w, uint32_t n, uint64_t seed, const char *mapping)
{
	*w = (struct world){.arena = tw_arena_new((size_t)1 << 30)};
	make_trace(w, n, seed);
	if (mapping)
		read_mapping(w, mapping);
	assert_int_equal(tw_trace_file_inline(w->f.file, &w->names, NULL), TW_OK);
	assert_true(tw_trace_file_is_inlined(w->f.file));
}

static void close_world(struct world *w)
{
	trace_fixture_done(&w->f);
	tw_buf_done(&w->image);
	tw_arena_free(w->arena);
}

static bool add(void *arg, const struct tw_slice *s, size_t n)
{
	return tw_tree_builder_add(arg, s, n) == TW_OK;
}

/* The thread's tree and the rows of methods agree with its slices. */
static struct tw_tree check(struct world *w)
{
	struct tw_tree_builder *b = tw_tree_builder_new(UINT32_MAX);
	const struct tw_method_info *rows;
	struct tw_tree tree;
	struct tw_tree of_slices;
	uint32_t n;
	const struct tw_thread_info t = tw_trace_file_threads(w->f.file, &n)[0];
	uint64_t calls = 0;
	int64_t self_ns = 0;

	assert_int_equal(n, 1);
	assert_int_equal(tw_trace_file_tree(w->f.file, t.thread_id, w->arena, &tree, NULL), TW_OK);
	assert_int_equal(
	        tw_query_slices(w->f.file, t.thread_id, INT64_MIN, INT64_MAX, add, b, NULL), TW_OK);
	assert_int_equal(tw_tree_builder_finish(b, w->arena, &of_slices), TW_OK);
	tw_tree_builder_free(b);
	assert_int_equal(tree.n, of_slices.n);
	for (uint32_t i = 1; i < tree.n; i++) {
		const struct tw_tree_node *x = &tree.nodes[i];
		const struct tw_tree_node *y = &of_slices.nodes[i];

		assert_int_equal(x->method, y->method);
		assert_int_equal(x->parent, y->parent);
		assert_int_equal(x->count, y->count);
		assert_int_equal(x->total_ns, y->total_ns);
		assert_int_equal(x->self_ns, y->self_ns);
		assert_int_equal(x->max_ns, y->max_ns);
		assert_true(x->depth <= t.max_depth);
		calls += x->count;
	}
	assert_int_equal(calls, t.slices);
	assert_int_equal(tw_trace_file_methods(w->f.file, &rows, &n, NULL), TW_OK);
	calls = 0;
	for (uint32_t i = 0; i < n; i++) {
		calls += rows[i].count;
		self_ns += rows[i].self_ns;
	}
	assert_int_equal(calls, t.slices);
	assert_int_equal(self_ns, t.busy_ns);
	return tree;
}

/* "run 300;pay 200;..." in pre-order. */
static const char *reported(const struct world *w, const struct tw_tree *t)
{
	const struct tw_method_ref *refs;
	struct tw_buf out;
	uint32_t n;
	const char *copy;

	tw_buf_init(&out, 1 << 20);
	assert_int_equal(tw_trace_file_method_refs(w->f.file, &refs, &n, NULL), TW_OK);
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tw_tree_node *node = &t->nodes[i];
		const struct tw_named what = tw_method_named(&refs[node->method]);

		assert_int_equal(tw_buf_printf(&out, "%s%u %.*s %lld/%lld", i > 1 ? "; " : "",
		                         node->depth, (int)what.name.len, what.name.ptr,
		                         (long long)node->total_ns, (long long)node->self_ns),
		        TW_OK);
	}
	copy = tw_arena_str(w->arena, (struct tw_str){(const char *)out.data, out.len});
	tw_buf_done(&out);
	return copy;
}

static const char mapping[] = "A -> a:\n"
                              "    1:1:void B.in():7:7 -> m\n"
                              "    1:1:void out():5 -> m\n"
                              "    2:2:void out():6:6 -> m\n"
                              "    3:3:void C.deep():1:1 -> m\n"
                              "    3:3:void B.in():2 -> m\n"
                              "    3:3:void out():3 -> m\n"
                              "    4:4:void made():0:0 -> m\n"
                              "# {\"id\":\"com.android.tools.r8.synthesized\"}\n";

static void test_without_mapping(void **state)
{
	struct world w;
	struct tw_tree t;

	(void)state;
	open_world(&w, 500, 3, NULL);
	t = check(&w);
	assert_true(t.n <= 1 + 4); /* run, and three nested of one name */
	close_world(&w);
}

/* Also over several chunks, and with chunks that become longer than one may be. */
static void test_views_agree(void **state)
{
	static const uint32_t sizes[] = {1, 40, 3000, 60000};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		open_world(&w, sizes[i], i + 1, mapping);
		(void)check(&w);
		close_world(&w);
	}
}

/* Ranges are scanned by several threads, from the chunks. */
static void test_range(void **state)
{
	const struct tw_selection all = {.all_threads = true, .ranged = true, .to_ns = INT64_MAX};
	struct tw_forest forest;
	struct tw_tree t;
	struct world w;
	bool partial;

	(void)state;
	open_world(&w, 60000, 5, mapping);
	t = check(&w);
	assert_int_equal(
	        tw_query_forest(w.f.file, &all, NULL, w.arena, &forest, &partial, NULL), TW_OK);
	assert_int_equal(forest.n, 1);
	assert_string_equal(reported(&w, &forest.trees[0]), reported(&w, &t));
	close_world(&w);
}

static void write_stack(struct world *w, const char *const *stacks, size_t n)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 1, TW_TID_FULL);

	s->ops->source(s, track, TW_SOURCE_SAMPLES, 100);
	for (size_t i = 0; i < n; i++) {
		struct tw_str rest = tw_str_of(stacks[i]);
		int64_t dur_ns = 100;

		while (rest.len) {
			struct tw_str name = tw_str_split(&rest, ' ');
			char text[64];

			(void)snprintf(text, sizeof text, "%.*s", (int)name.len, name.ptr);
			emit(s, track, text, (int64_t)i * 200, dur_ns);
			dur_ns -= 10;
		}
	}
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
}

/* An outline called from an outline, as R8's own test has it: the caller's line is corrected, and
 * the outlines' time counts for the method that their code was taken from. */
static void test_outlines(void **state)
{
	static const char text[] =
	        "made.Outline1 -> a:\n"
	        "    4:4:int outline():0:0 -> a\n"
	        "# {\"id\":\"com.android.tools.r8.outline\"}\n"
	        "made.Outline2 -> b:\n"
	        "    6:6:int outline():0:0 -> a\n"
	        "# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"4\":43}}\n"
	        "    42:43:int outline():0:0 -> a\n"
	        "# {\"id\":\"com.android.tools.r8.outline\"}\n"
	        "tea.Cup -> c:\n"
	        "    1:1:void jam.Jar.open():42:42 -> a\n"
	        "    11:11:int sugar.Lump.drop():7:7 -> a\n"
	        "    11:11:int brew(int):98 -> a\n"
	        "    28:28:int brew(int):0:0 -> a\n"
	        "# {\"id\":\"com.android.tools.r8.outlineCallsite\","
	        "\"positions\":{\"42\":1,\"43\":11}}\n";
	static const char *const stacks[] = {"run c.a(:28) b.a(:6) a.a(:4)", "run c.a(:1)"};
	struct world w = {.arena = tw_arena_new(1 << 20)};
	struct tw_tree t;

	(void)state;
	write_stack(&w, stacks, 2);
	read_mapping(&w, text);
	assert_int_equal(tw_trace_file_inline(w.f.file, &w.names, NULL), TW_OK);
	t = check(&w);
	assert_string_equal(reported(&w, &t),
	        "1 run 200/20; 2 jam.Jar.open 90/90; 2 tea.Cup.brew 90/0; "
	        "3 sugar.Lump.drop 90/90");
	close_world(&w);
}

#define NATIVE "(BuildId:" NATIVE_ID ")"

/* Frames of a library: one for each module and stack until its symbols come, then by function. */
static void test_native_frames(void **state)
{
	static const char *const stacks[] = {"run l.so+0x101" NATIVE " l.so+0x201" NATIVE
	                                     " l.so+0x210" NATIVE,
	        "run l.so+0x110" NATIVE " l.so+0x1f0" NATIVE,
	        "run l.so+0x110" NATIVE " o.so+0x1(BuildId:11223344) l.so+0x222" NATIVE};
	struct tw_native_map map;
	const struct tw_natives natives = {&map, 1};
	struct tw_tree t;

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct world w = {.arena = tw_arena_new(1 << 20)};

		map = native_symbols(&w.image);
		w.names.natives = late ? &natives : NULL;
		write_stack(&w, stacks, 3);
		assert_int_equal(tw_trace_file_inline(w.f.file, &w.names, NULL), TW_OK);
		t = check(&w);
		assert_string_equal(reported(&w, &t),
		        late ? "1 run 300/30; 2 pay 270/30; 3 [l.so] 80/80; 3 [o.so] 80/10; "
		               "4 tail 70/70; 3 tail 80/10; 4 tail 70/70"
		             : "1 run 300/30; 2 [l.so] 270/190; 3 [o.so] 80/10; "
		               "4 [l.so] 70/70");
		close_world(&w);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_mapping),
        cmocka_unit_test(test_native_frames),
        cmocka_unit_test(test_views_agree),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_outlines),
};

UNIT_TESTS("inlined", tests)
