/* Merged call trees: written and read, the same in any order and grouping, bounded with honest
 * sums, safe against any bytes and any lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/fleet/fleet_tree.h"
#include "server/stats/rollup_tree.h"
#include "tests/fixtures/fleet_sim.h"
#include "tests/unit/unit.h"

enum { TRACES = 60, DAY0 = 20000, ARENA = 64 << 20, SMALL = 200, MANY = 200000 };

struct tree { /* written */
	struct tw_buf data, levels;
};

static struct tree written[TRACES];
static int64_t truth_total; /* on one thread, of all traces */

static void free_tree(struct tree *b)
{
	tw_buf_done(&b->data);
	tw_buf_done(&b->levels);
}

static struct tw_rollup_written bytes_of(const struct tree *b)
{
	return (struct tw_rollup_written){{(const char *)b->data.data, b->data.len},
	        {(const char *)b->levels.data, b->levels.len}};
}

static int setup(void **state)
{
	static struct sim_trace t;

	(void)state;
	for (unsigned i = 0; i < TRACES; i++) {
		struct tw_rollup_tree tree = {.arena = tw_arena_new(ARENA)};

		sim_make("p", i, DAY0, &t);
		assert_true(sim_tree(&t, &tree));
		tw_buf_init(&written[i].data, 1 << 20);
		tw_buf_init(&written[i].levels, 1 << 20);
		assert_int_equal(
		        tw_rollup_tree_write(&tree, &written[i].data, &written[i].levels, NULL),
		        TW_OK);
		assert_int_equal(written[i].levels.len, 0);
		truth_total += tree.sums[tree.nodes[0].first - 1].total_ns;
		tw_arena_free(tree.arena);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TRACES; i++)
		free_tree(&written[i]);
	return 0;
}

static void merge(struct tw_rollup_tree *t, const struct tree *b)
{
	const struct tw_rollup_written w = bytes_of(b);

	assert_int_equal(tw_rollup_tree_merge(t, &w, NULL), TW_OK);
}

/* Adds traces to the stored tree, and writes it again, with at most max nodes. */
static void step(struct tree *io, const unsigned *traces, unsigned n, uint32_t max)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA)};

	const struct tw_rollup_written w = bytes_of(io);

	if (w.data.len)
		assert_int_equal(tw_rollup_tree_resume(&t, &w, NULL), TW_OK);
	for (unsigned i = 0; i < n; i++)
		merge(&t, &written[traces[i]]);
	tw_rollup_tree_bound(&t, max);
	tw_buf_clear(&io->data);
	tw_buf_clear(&io->levels);
	assert_int_equal(tw_rollup_tree_write(&t, &io->data, &io->levels, NULL), TW_OK);
	tw_arena_free(t.arena);
}

static void in_steps(struct tree *out, unsigned of, unsigned from, uint32_t max)
{
	unsigned traces[TRACES];

	tw_buf_init(&out->data, 16 << 20);
	tw_buf_init(&out->levels, 16 << 20);
	for (unsigned i = 0; i < TRACES; i++)
		traces[i] = (i * 7 + from) % TRACES;
	for (unsigned i = 0; i < TRACES; i += of)
		step(out, traces + i, i + of < TRACES ? of : TRACES - i, max);
}

static void same_bytes(const struct tree *a, const struct tree *b)
{
	assert_int_equal(a->data.len, b->data.len);
	assert_memory_equal(a->data.data, b->data.data, a->data.len);
	assert_int_equal(a->levels.len, b->levels.len);
	assert_memory_equal(a->levels.data, b->levels.data, a->levels.len);
}

static void test_any_order_gives_the_same_bytes(void **state)
{
	(void)state;
	for (uint32_t max = 20; max <= TW_ROLLUP_CELL_NODES; max *= 3) {
		struct tree one, other;

		in_steps(&one, TRACES, 0, max);
		for (unsigned of = 1; of < 14; of += 6) {
			in_steps(&other, of, 13 * of, max);
			same_bytes(&one, &other);
			free_tree(&other);
		}
		free_tree(&one);
	}
}

static void test_sums_are_those_of_the_traces(void **state)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA)};

	(void)state;
	for (unsigned i = 0; i < TRACES; i++)
		merge(&t, &written[i]);
	assert_int_equal(t.traces, TRACES);
	assert_int_equal(t.n_threads, SIM_THREADS);
	for (uint32_t i = 0; i < t.n; i++) {
		struct tw_rollup_tree_sum all = tw_rollup_tree_all(&t, i);

		if (t.nodes[i].parent == TW_ROLLUP_NO_NODE) {
			assert_int_equal(all.total_ns, truth_total);
			assert_int_equal(all.traces, TRACES);
		}
		assert_true(all.self_ns <= all.total_ns);
	}
	tw_arena_free(t.arena);
}

static void test_what_is_dropped_stays_in_its_caller(void **state)
{
	struct tw_rollup_tree all = {.arena = tw_arena_new(ARENA)};
	struct tw_rollup_tree few = {.arena = tw_arena_new(ARENA)};
	uint32_t kept = 0;
	struct tree out;

	(void)state;
	in_steps(&out, 4, 3, SMALL);
	merge(&few, &out);
	for (unsigned i = 0; i < TRACES; i++)
		merge(&all, &written[i]);
	assert_true(few.omitted_level > 0);
	for (uint32_t i = 0; i < few.n; i++) {
		const struct tw_rollup_tree_node *n = &few.nodes[i];

		kept += n->first != 0;
		if (n->parent == TW_ROLLUP_NO_NODE)
			assert_int_equal(tw_rollup_tree_all(&few, i).total_ns,
			        tw_rollup_tree_all(&all, 0).total_ns);
		else
			assert_true(few.nodes[n->parent].top >= n->top);
	}
	assert_in_range(kept, SMALL / 4, SMALL);
	free_tree(&out);
	tw_arena_free(all.arena);
	tw_arena_free(few.arena);
}

/* As a call tree: each total is self and children, the rest is stated. */
static void test_a_graph_adds_up(void **state)
{
	struct tw_arena *a = tw_arena_new(ARENA);
	struct tw_rollup_tree t = {.arena = a, .coarse = true}, read;
	const struct tw_rollup_tree *trees[] = {&t};
	struct tw_fleet_graph g = {.paths = {.arena = a}};
	struct tw_rollup_naming *namings;
	struct tw_fleet_names names;
	struct tw_fleet_reading how = {&names, NULL, TW_NO_METHOD};
	struct tw_tree tree;
	struct tree out;
	uint32_t rests = 0;
	uint64_t *ids;
	size_t n;

	(void)state;
	in_steps(&out, 4, 3, SMALL);
	merge(&t, &out);
	assert_int_equal(tw_fleet_tree_ids(trees, 1, a, &ids, &n, NULL), TW_OK);
	namings = tw_arena_zalloc(a, n, sizeof *namings);
	for (size_t i = 0; i < n; i++) /* all of one name: paths become one */
		namings[i] = (struct tw_rollup_naming){ids[i], "b", "", "",
		        ids[i] % 2 ? "x.Odd.m" : "x.Even.m", ids[i] % 2 ? "()V" : "", true};
	for (size_t i = 0; i < n; i++) /* except overloads */
		if (ids[i] % 4 == 1)
			namings[i].descriptor = "(I)V";
	assert_int_equal(tw_fleet_tree_names(trees, 1, namings, n, a, &names, NULL), TW_OK);
	assert_int_equal(names.n, SIM_THREADS + 3);
	assert_string_equal(names.descriptors[SIM_THREADS], "");
	assert_string_equal(names.descriptors[SIM_THREADS + 1], "()V");
	assert_string_equal(names.descriptors[SIM_THREADS + 2], "(I)V");
	assert_int_equal(tw_fleet_tree_read(&t, &how, a, &read, NULL), TW_OK);
	assert_int_equal(tw_fleet_graph_add(&g, 0, &read, 1, t.traces, NULL), TW_OK);
	assert_int_equal(tw_fleet_graph_tree(&g, 0, false, names.n, a, &tree, NULL), TW_OK);
	for (uint32_t i = 0; i < tree.n; i++) {
		const struct tw_tree_node *node = &tree.nodes[i];
		int64_t sum = node->self_ns;

		for (uint32_t k = i + 1; k < i + node->subtree; k += tree.nodes[k].subtree) {
			assert_int_equal(tree.nodes[k].parent, i);
			sum += tree.nodes[k].total_ns;
		}
		assert_int_equal(node->total_ns, sum);
		assert_true(node->max_ns <= TRACES);
		rests += node->method == names.n;
	}
	assert_true(rests > 0);
	assert_int_equal(tree.nodes[0].total_ns, SIM_THREADS * truth_total);
	free_tree(&out);
	tw_arena_free(a);
}

/* A node of a tree of numbers, with all its time on one level. */
static uint32_t numbered(
        struct tw_rollup_tree *t, uint32_t parent, uint32_t number, int64_t total, int64_t self)
{
	const uint32_t node = tw_rollup_tree_child(t, parent, (uint64_t)number + 1);
	const struct tw_rollup_tree_sum s = {
	        .traces = 2, .calls = 3, .total_ns = total, .self_ns = self};

	assert_true(tw_rollup_tree_add(t, node, &s));
	return node;
}

enum { MAIN, POOL, A, B, X, NUMBERS };

/* main { A 100 { X 80 { X 50 { B 30 }  A 20 { X 15 { B 15 } } } }  B 7 }, pool { X 9 } */
static void test_callers_are_reported_once(void **state)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA)};
	const uint8_t wanted[NUMBERS] = {[X] = 1}, none[NUMBERS] = {0};
	struct tw_fleet_callers of;
	uint32_t main = numbered(&t, TW_ROLLUP_NO_NODE, MAIN, 107, 0);
	uint32_t a = numbered(&t, main, A, 100, 20), x = numbered(&t, a, X, 80, 10);
	uint32_t inner = numbered(&t, x, X, 50, 20), again = numbered(&t, x, A, 20, 5);

	(void)state;
	(void)numbered(&t, inner, B, 30, 30);
	(void)numbered(&t, numbered(&t, again, X, 15, 0), B, 15, 15);
	(void)numbered(&t, main, B, 7, 7);
	(void)numbered(&t, numbered(&t, TW_ROLLUP_NO_NODE, POOL, 9, 0), X, 9, 9);
	assert_int_equal(tw_fleet_callers(&t, wanted, NUMBERS, t.arena, &of, NULL), TW_OK);
	assert_int_equal(of.all.total_ns, 89);
	assert_int_equal(of.all.calls, 12);
	assert_int_equal(of.self_ns, 39);
	assert_int_equal(of.n_callers, 2);
	assert_int_equal(of.callers[0].number, A);
	assert_int_equal(of.callers[0].total_ns, 80);
	assert_int_equal(of.callers[0].calls, 3);
	assert_int_equal(of.callers[1].number, POOL);
	assert_int_equal(of.n_callees, 2);
	assert_int_equal(of.callees[0].number, B);
	assert_int_equal(of.callees[0].total_ns, 30); /* that below A is A's */
	assert_int_equal(of.callees[1].number, A);
	assert_int_equal(of.callees[1].total_ns, 20);
	assert_int_equal(tw_fleet_callers(&t, none, NUMBERS, t.arena, &of, NULL), TW_OK);
	assert_int_equal(of.n_callers + of.n_callees, 0);
	tw_arena_free(t.arena);
}

/* Reads a tree of numbers. */
static struct tw_rollup_tree read_by(const struct tw_rollup_tree *t, struct tw_fleet_reading how)
{
	static const uint64_t ids[NUMBERS] = {1, 2, 3, 4, 5};
	static const uint32_t numbers[NUMBERS] = {MAIN, POOL, A, B, X};
	const struct tw_fleet_names names = {
	        .n = NUMBERS, .n_threads = A, .ids = ids, .numbers = numbers, .n_ids = NUMBERS};
	struct tw_rollup_tree read;

	how.names = &names;
	how.thread = TW_NO_METHOD;
	assert_int_equal(tw_fleet_tree_read(t, &how, t->arena, &read, NULL), TW_OK);
	return read;
}

static void expect(const struct tw_rollup_tree *t, uint32_t node, uint32_t parent, uint32_t number,
        int64_t total, int64_t self)
{
	const struct tw_rollup_tree_sum s = tw_rollup_tree_all(t, node);

	assert_int_equal(t->nodes[node].parent, parent);
	assert_int_equal(t->nodes[node].method, number + 1);
	assert_int_equal(s.total_ns, total);
	assert_int_equal(s.self_ns, self);
}

/* main { A 60 { X 50 { B 20 { X 5 } } }  X 10 } */
static void test_the_focus_is_one_method(void **state)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA), .coarse = true}, read;
	const uint8_t x[NUMBERS] = {[X] = 1}, a[NUMBERS] = {[A] = 1};
	uint32_t main = numbered(&t, TW_ROLLUP_NO_NODE, MAIN, 70, 0);
	uint32_t under_a = numbered(&t, numbered(&t, main, A, 60, 10), X, 50, 30);
	uint32_t under_b = numbered(&t, under_a, B, 20, 15);

	(void)state;
	(void)numbered(&t, under_b, X, 5, 5);
	(void)numbered(&t, main, X, 10, 10);
	read = read_by(&t, (struct tw_fleet_reading){.focus = {x, X, false}});
	assert_int_equal(read.n, 3);
	expect(&read, 0, TW_ROLLUP_NO_NODE, X, 60, 40);
	expect(&read, 1, 0, B, 20, 15);
	expect(&read, 2, 1, X, 5, 5);
	read = read_by(&t, (struct tw_fleet_reading){.focus = {x, X, true}});
	assert_int_equal(read.n, 4);
	expect(&read, 1, 0, A, 60, 10);
	expect(&read, 2, 1, X, 50, 50);
	expect(&read, 3, 0, X, 10, 10);
	/* of a frame that is otherwise left out */
	read = read_by(&t, (struct tw_fleet_reading){.foreign = x, .focus = {x, X, false}});
	expect(&read, 0, TW_ROLLUP_NO_NODE, X, 60, 40);
	read = read_by(&t, (struct tw_fleet_reading){.foreign = a, .focus = {x, X, true}});
	expect(&read, 1, 0, X, 60, 60);
	tw_arena_free(t.arena);
}

/* Two paths that become one may be in the same traces: 3 and 4 ns add up to 7. */
static void test_merged_paths_understate_no_variance(void **state)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA), .coarse = true}, read;
	const uint8_t ab[NUMBERS] = {[A] = 1, [B] = 1}, x[NUMBERS] = {[X] = 1};
	uint32_t main = numbered(&t, TW_ROLLUP_NO_NODE, MAIN, 7, 0);
	const struct tw_rollup_tree_sum three = {.traces = 1, .total_ns = 3, .square = 9},
	                                four = {.traces = 1, .total_ns = 4, .square = 16};
	uint32_t above[] = {numbered(&t, main, A, 3, 0), numbered(&t, main, B, 4, 0)};

	(void)state;
	assert_true(tw_rollup_tree_add(&t, tw_rollup_tree_child(&t, above[0], X + 1), &three));
	assert_true(tw_rollup_tree_add(&t, tw_rollup_tree_child(&t, above[1], X + 1), &four));
	read = read_by(&t, (struct tw_fleet_reading){.foreign = ab});
	assert_int_equal(tw_rollup_tree_all(&read, 1).square, 49);
	read = read_by(&t, (struct tw_fleet_reading){.focus = {x, X, false}});
	assert_int_equal(tw_rollup_tree_all(&read, 0).square, 49);
	tw_arena_free(t.arena);
}

/* The same if only the first of them loses frames. */
static void test_a_path_merged_into_before(void **state)
{
	struct tw_rollup_tree t = {.arena = tw_arena_new(ARENA), .coarse = true}, read;
	const uint8_t a[NUMBERS] = {[A] = 1};
	uint32_t main = numbered(&t, TW_ROLLUP_NO_NODE, MAIN, 7, 0);
	const struct tw_rollup_tree_sum three = {.traces = 1, .total_ns = 3, .square = 9},
	                                four = {.traces = 1, .total_ns = 4, .square = 16};
	uint32_t above = numbered(&t, main, A, 3, 0);

	(void)state;
	assert_true(tw_rollup_tree_add(&t, tw_rollup_tree_child(&t, above, X + 1), &three));
	assert_true(tw_rollup_tree_add(&t, tw_rollup_tree_child(&t, main, X + 1), &four));
	read = read_by(&t, (struct tw_fleet_reading){.foreign = a});
	assert_int_equal(read.n, 2);
	assert_int_equal(tw_rollup_tree_all(&read, 1).square, 49);
	tw_arena_free(t.arena);
}

static void test_names_of_threads(void **state)
{
	char out[TW_ROLLUP_THREAD_BYTES];

	(void)state;
	tw_rollup_thread_name(TW_STR("pool-12-thread-3"), false, out);
	assert_string_equal(out, "pool-#-thread-#");
	tw_rollup_thread_name(TW_STR("com.example.app"), true, out);
	assert_string_equal(out, "main");
	tw_rollup_thread_name(TW_STR("main"), false, out);
	assert_string_equal(out, "main#");
	tw_rollup_thread_name(TW_STR(""), false, out);
	assert_string_equal(out, "thread");
	tw_rollup_thread_name(
	        TW_STR("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg"),
	        false, out);
	assert_int_equal(strlen(out), TW_ROLLUP_THREAD_BYTES - 1);
}

static void test_levels(void **state)
{
	(void)state;
	assert_int_equal(tw_rollup_tree_level(-5), 0);
	assert_int_equal(tw_rollup_tree_level(0), 0);
	assert_int_equal(tw_rollup_tree_level(1), 1);
	assert_int_equal(tw_rollup_tree_level(1024), 11);
	assert_int_equal(tw_rollup_tree_level(INT64_MAX), 63);
}

/* Cut anywhere they are refused; changed anywhere they are read or refused. */
static void spoil(const struct tree *b, bool coarse)
{
	const struct tw_rollup_written w = bytes_of(b);
	char *data = malloc(w.data.len), *levels = malloc(w.levels.len);
	struct tw_arena *a = tw_arena_new(ARENA);

	memcpy(data, w.data.ptr, w.data.len);
	memcpy(levels, w.levels.ptr, w.levels.len);
	for (size_t cut = 0; cut < w.data.len; cut += cut < 200 ? 1 : 197) {
		const struct tw_rollup_written bad = {{data, cut}, {levels, w.levels.len}};
		const struct tw_rollup_written odd = {
		        {data, w.data.len}, {levels, cut % w.levels.len}};
		char *other = &levels[cut % w.levels.len];
		struct tw_rollup_tree t = {.arena = a, .coarse = coarse};

		tw_arena_reset(a);
		assert_int_equal(tw_rollup_tree_merge(&t, &bad, NULL), TW_CORRUPT);
		t = (struct tw_rollup_tree){.arena = a, .coarse = coarse};
		data[cut] = (char)(data[cut] ^ 0x5A);
		*other = (char)(*other ^ 0x77);
		(void)!tw_rollup_tree_merge(&t, &odd, NULL);
		data[cut] = (char)(data[cut] ^ 0x5A);
		*other = (char)(*other ^ 0x77);
	}
	free(data);
	free(levels);
	tw_arena_free(a);
}

static void test_any_bytes_are_safe(void **state)
{
	struct tree out;

	(void)state;
	in_steps(&out, 10, 0, SMALL);
	spoil(&out, false);
	spoil(&out, true);
	free_tree(&out);
}

static void test_lack_of_memory_is_reported(void **state)
{
	struct tw_arena *a = tw_arena_new(ARENA);
	struct tw_rollup_tree t = {.arena = a};
	const struct tw_rollup_written w = bytes_of(&written[0]);
	struct tw_arena *small;

	(void)state;
	merge(&t, &written[0]);
	for (uint64_t n = 1; n <= 4; n++) {
		struct tree out;

		tw_buf_init(&out.data, 1 << 20);
		tw_buf_init(&out.levels, 1 << 20);
		tw_mem_fail_at(n);
		assert_int_equal(tw_rollup_tree_write(&t, &out.data, &out.levels, NULL), TW_NOMEM);
		tw_mem_fail_at(0);
		free_tree(&out);
	}
	for (size_t bytes = 4096; bytes <= 65536; bytes *= 2) {
		small = tw_arena_new(bytes);
		t = (struct tw_rollup_tree){.arena = small};
		assert_int_equal(tw_rollup_tree_merge(&t, &w, NULL), TW_NOMEM);
		tw_arena_free(small);
	}
	tw_arena_free(a);
}

/* Names that no two threads share, as of a hash: what each costs does not grow with them. */
static void test_many_names_of_threads(void **state)
{
	const struct tw_rollup_tree_sum one = {.traces = 1, .calls = 1, .total_ns = 5, .level = 3};
	struct tw_rollup_tree t = {.arena = tw_arena_new((size_t)512 << 20)};
	struct tree out;
	const clock_t began = clock();

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		char name[TW_ROLLUP_THREAD_BYTES];
		uint32_t node, again;

		(void)snprintf(name, sizeof name, "t-%c%c%c%c", 'a' + (int)(i & 31),
		        'a' + (int)(i >> 5 & 31), 'a' + (int)(i >> 10 & 31),
		        'a' + (int)(i >> 15 & 31));
		node = tw_rollup_tree_thread(&t, tw_str_of(name));
		again = tw_rollup_tree_thread(&t, tw_str_of(name));
		assert_int_not_equal(node, TW_ROLLUP_NO_NODE);
		assert_int_equal(node, again);
		assert_true(tw_rollup_tree_add(&t, node, &one));
	}
	assert_int_equal(t.n_threads, MANY);
	tw_buf_init(&out.data, 64 << 20);
	tw_buf_init(&out.levels, 64 << 20);
	assert_int_equal(tw_rollup_tree_write(&t, &out.data, &out.levels, NULL), TW_OK);
	assert_true((clock() - began) / CLOCKS_PER_SEC < 10);
	free_tree(&out);
	tw_arena_free(t.arena);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_gives_the_same_bytes),
        cmocka_unit_test(test_sums_are_those_of_the_traces),
        cmocka_unit_test(test_what_is_dropped_stays_in_its_caller),
        cmocka_unit_test(test_a_graph_adds_up),
        cmocka_unit_test(test_callers_are_reported_once),
        cmocka_unit_test(test_the_focus_is_one_method),
        cmocka_unit_test(test_merged_paths_understate_no_variance),
        cmocka_unit_test(test_a_path_merged_into_before),
        cmocka_unit_test(test_names_of_threads),
        cmocka_unit_test(test_many_names_of_threads),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_any_bytes_are_safe),
        cmocka_unit_test(test_lack_of_memory_is_reported),
};

UNIT_TESTS_WITH("rollup_tree", tests, setup, teardown)
