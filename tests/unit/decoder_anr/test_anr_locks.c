/* The wait-for graph of a dump: edges by named owners and by held locks, cycles, chains, ends;
 * and a plain model of it on random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/anr/anr_locks.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

#define COUNT(list) (uint32_t)(sizeof(list) / sizeof *(list))

static struct tw_arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = tw_arena_new(256 << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	arena = tw_arena_free(arena);
	return 0;
}

static struct tw_anr_lock wants(uint32_t thread, uint64_t object, uint64_t holder)
{
	return (struct tw_anr_lock){
	        .thread = thread, .object = object, .holder = holder, .how = TW_ANR_WANTED};
}

static struct tw_anr_lock has(uint32_t thread, uint64_t object)
{
	return (struct tw_anr_lock){.thread = thread, .object = object, .how = TW_ANR_LOCKED};
}

static struct tw_anr_graph graph(const struct tw_anr_node *nodes, uint32_t n,
        const struct tw_anr_lock *locks, uint32_t n_locks)
{
	struct tw_anr_graph g;

	assert_true(tw_anr_graph(arena, nodes, n, locks, n_locks, &g));
	return g;
}

static void test_no_thread_waits(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {2, false}};
	const struct tw_anr_lock locks[] = {has(0, 5)};
	struct tw_anr_graph g = graph(nodes, 2, locks, 1);
	uint32_t chain[4];

	(void)state;
	assert_int_equal(g.edges[0].to, TW_ANR_NONE);
	assert_int_equal(g.edges[0].lock, -1);
	assert_int_equal(g.ends[0], 0);
	assert_int_equal(g.victims[0], 0);
	assert_int_equal(g.n_cycles, 0);
	assert_int_equal(tw_anr_chain(&g, 1, chain, 4), 1);
	assert_int_equal(chain[0], 1);
	g = graph(NULL, 0, NULL, 0);
	assert_int_equal(g.n_cycles, 0);
	assert_int_equal(tw_anr_chain(&g, 0, chain, 4), 0);
}

static void test_the_named_holder_is_stronger(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {5, false}, {6, false}};
	const struct tw_anr_lock locks[] = {wants(0, 9, 6), has(1, 9)};
	struct tw_anr_graph g = graph(nodes, 3, locks, 2);

	(void)state;
	assert_int_equal(g.edges[0].to, 2);
	assert_true(g.edges[0].named);
	assert_int_equal(g.ends[0], 2);
	assert_int_equal(g.victims[2], 1);
}

static void test_the_holder_is_found_by_the_object(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {5, false}, {6, false}};
	const struct tw_anr_lock locks[] = {
	        wants(0, 9, 0), has(0, 9), has(1, 8), has(2, 9)}; /* not itself */
	struct tw_anr_graph g = graph(nodes, 3, locks, COUNT(locks));

	(void)state;
	assert_int_equal(g.edges[0].to, 2);
	assert_false(g.edges[0].named);
}

static void test_who_waits_on_it_has_let_go(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {5, false}};
	struct tw_anr_lock locks[] = {
	        wants(0, 9, 0), {.thread = 1, .object = 9, .how = TW_ANR_WAITING}, has(1, 9)};
	struct tw_anr_graph g = graph(nodes, 2, locks, 3);

	(void)state;
	assert_int_equal(g.edges[0].to, TW_ANR_NONE);
	assert_int_equal(g.edges[0].lock, 0);
	locks[1].how = TW_ANR_SLEEPING; /* lets go of nothing */
	g = graph(nodes, 2, locks, 3);
	assert_int_equal(g.edges[0].to, 1);
}

static void test_missing_self_and_unknown_holders(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {2, true}, {3, true}};
	const struct tw_anr_lock locks[] = {wants(0, 9, 77), wants(1, 8, 2), wants(2, 0, 0)};
	struct tw_anr_graph g = graph(nodes, 3, locks, 3);

	(void)state;
	assert_int_equal(g.edges[0].to, TW_ANR_MISSING);
	assert_int_equal(g.edges[1].to, TW_ANR_NONE);
	assert_int_equal(g.edges[2].to, TW_ANR_NONE);
	assert_int_equal(g.n_cycles, 0);
}

static void test_only_the_first_wait_counts(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {2, false}, {3, false}};
	const struct tw_anr_lock locks[] = {wants(0, 9, 2), wants(0, 8, 3)};
	struct tw_anr_graph g = graph(nodes, 3, locks, 2);

	(void)state;
	assert_int_equal(g.edges[0].to, 1);
}

static void test_a_deadlock_of_two(void **state)
{
	struct tw_anr_node nodes[] = {{1, true}, {3, true}, {4, true}};
	const struct tw_anr_lock locks[] = {wants(0, 0x045af028, 3), has(0, 0x06d4a141),
	        wants(1, 0x06d4a141, 1), has(1, 0x045af028), wants(2, 0x045af028, 3)};
	struct tw_anr_graph g = graph(nodes, 3, locks, COUNT(locks));
	uint32_t chain[8];

	(void)state;
	assert_int_equal(g.n_cycles, 1);
	assert_int_equal(g.cycles[0].first, 0);
	assert_int_equal(g.cycles[0].n, 2);
	assert_true(g.cycles[0].certain);
	assert_int_equal(g.cycle_of[0], 1);
	assert_int_equal(g.cycle_of[2], 0);
	assert_int_equal(g.ends[2], 0);
	assert_int_equal(g.victims[0], 2);
	assert_int_equal(tw_anr_chain(&g, 2, chain, 8), 3); /* into the ring and once round */
	assert_int_equal(chain[1], 1);
	assert_int_equal(chain[2], 0);
	assert_int_equal(tw_anr_chain(&g, 2, chain, 2), 2);
	nodes[1].blocked = false;
	g = graph(nodes, 3, locks, COUNT(locks));
	assert_false(g.cycles[0].certain);
}

static void test_two_cycles_in_order(void **state)
{
	const struct tw_anr_node nodes[] = {
	        {1, false}, {2, true}, {3, true}, {4, true}, {5, true}, {6, true}};
	const struct tw_anr_lock locks[] = {wants(0, 1, 6), wants(1, 2, 3), wants(2, 3, 2),
	        wants(3, 4, 5), wants(4, 5, 6), wants(5, 6, 4)};
	struct tw_anr_graph g = graph(nodes, 6, locks, 6);

	(void)state;
	assert_int_equal(g.n_cycles, 2);
	assert_int_equal(g.cycles[0].first, 1);
	assert_int_equal(g.cycles[0].n, 2);
	assert_int_equal(g.cycles[1].first, 3);
	assert_int_equal(g.cycles[1].n, 3);
	assert_int_equal(g.ends[0], 3);
}

/* Following each thread on its own, as far as there are threads. */
static void check_against_plain(const struct tw_anr_graph *g)
{
	uint32_t *chain = tw_arena_alloc(arena, (size_t)g->n + 1, sizeof *chain);

	for (uint32_t i = 0; i < g->n; i++) {
		int32_t at = (int32_t)i;
		uint32_t steps = 0;
		uint32_t n = tw_anr_chain(g, i, chain, g->n);

		while (steps <= g->n && g->edges[at].to >= 0) {
			at = g->edges[at].to;
			steps++;
		}
		if (steps <= g->n) { /* it ends */
			assert_int_equal(g->ends[i], at);
			assert_int_equal(n, steps + 1);
			assert_int_equal(chain[n - 1], at);
		} else {
			assert_int_not_equal(g->cycle_of[at], 0);
			assert_int_equal(g->ends[i], g->cycles[g->cycle_of[at] - 1].first);
			assert_int_not_equal(g->cycle_of[chain[n - 1]], 0);
		}
	}
}

static void test_random_graphs(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct tw_anr_node nodes[40];
		struct tw_anr_lock locks[40];
		uint32_t n = 1 + (uint32_t)(test_random(&seed) % 40);
		uint32_t n_locks = 0;

		for (uint32_t i = 0; i < n; i++) {
			nodes[i] = (struct tw_anr_node){i + 1, true};
			if (test_random(&seed) % 4)
				locks[n_locks++] = wants(i, i, 1 + test_random(&seed) % n);
		}
		struct tw_anr_graph g = graph(nodes, n, locks, n_locks);

		check_against_plain(&g);
	}
}

static void test_many_threads_in_one_chain(void **state)
{
	enum { MANY = 200000 };
	struct tw_anr_node *nodes = tw_arena_alloc(arena, MANY, sizeof *nodes);
	struct tw_anr_lock *locks = tw_arena_alloc(arena, MANY, sizeof *locks);

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		nodes[i] = (struct tw_anr_node){i + 1, true};
		locks[i] = wants(i, i + 1, i + 2 <= MANY ? i + 2 : 1);
	}
	struct tw_anr_graph g = graph(nodes, MANY, locks, MANY);

	assert_int_equal(g.n_cycles, 1);
	assert_int_equal(g.cycles[0].n, MANY);
	assert_int_equal(g.victims[0], MANY - 1);
}

static void test_failed_allocations(void **state)
{
	const struct tw_anr_node nodes[] = {{1, true}, {3, true}};
	const struct tw_anr_lock locks[] = {wants(0, 1, 3)};
	struct tw_anr_graph g = {0};
	bool done = false;

	(void)state;
	for (uint64_t n = 1; !done && n < 20; n++) {
		struct tw_arena *a;

		tw_mem_fail_at(n);
		a = tw_arena_new(1 << 20);
		done = a && tw_anr_graph(a, nodes, 2, locks, 1, &g);
		tw_mem_fail_at(0);
		tw_arena_free(a);
	}
	assert_true(done);
	struct tw_arena *small = tw_arena_new(64);

	assert_false(small && tw_anr_graph(small, nodes, 2, locks, 1, &g));
	tw_arena_free(small);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_thread_waits),
        cmocka_unit_test(test_the_named_holder_is_stronger),
        cmocka_unit_test(test_the_holder_is_found_by_the_object),
        cmocka_unit_test(test_who_waits_on_it_has_let_go),
        cmocka_unit_test(test_missing_self_and_unknown_holders),
        cmocka_unit_test(test_only_the_first_wait_counts),
        cmocka_unit_test(test_a_deadlock_of_two),
        cmocka_unit_test(test_two_cycles_in_order),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_many_threads_in_one_chain),
        cmocka_unit_test(test_failed_allocations),
};

UNIT_TESTS_WITH("anr_locks", tests, setup, teardown)
