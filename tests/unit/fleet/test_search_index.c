/* Postings: what traces wrote is found in the pack of them, and alone; damage is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/stats/search_index.h"
#include "tests/unit/unit.h"

enum { TRACES = 40, METHODS = 50 };

struct seen {
	struct tw_index_head *head;
	uint64_t n, sum;
	bool pool_only;
};

static int64_t length_of(unsigned trace, unsigned method, unsigned thread)
{
	return 1000 * (int64_t)trace + 10 * (int64_t)method + thread;
}

/* Every second trace has its threads in another order. */
static void write_one(unsigned trace, struct tw_buf *out)
{
	const struct tw_index_thread main_one = {true, {"main", 4}}, pool = {false, {"pool", 4}};
	const struct tw_index_thread threads[2] = {
	        trace % 2 ? pool : main_one, trace % 2 ? main_one : pool};
	struct tw_index_entry posts[2 * METHODS + 1];
	char id[TW_INDEX_ID + 1];
	struct tw_index_entries all = {id, threads, 2, posts, 0};

	(void)snprintf(id, sizeof id, "%026u", trace);
	for (unsigned m = METHODS; m-- > 0;)
		for (unsigned t = 0; t < 2; t++)
			posts[all.n++] = (struct tw_index_entry){
			        m + 1, trace % 2 ? 1 - t : t, length_of(trace, m, t)};
	posts[all.n++] =
	        (struct tw_index_entry){1, 0, -5}; /* a shorter one of the same is none more */
	tw_index_write(&all, out);
}

static void count(void *arg, const struct tw_index_hit *hit)
{
	struct seen *s = arg;

	assert_true(hit->trace < s->head->n);
	assert_true(hit->thread < s->head->n_threads);
	s->n++;
	s->sum += (uint64_t)hit->max_ns;
	if (s->pool_only)
		assert_memory_equal(s->head->threads[hit->thread].name.ptr, "pool", 4);
}

static void look(const struct tw_str rows[TW_INDEX_ROWS], struct tw_arena *a, uint64_t method,
        int64_t over, struct seen *s)
{
	struct tw_index_head head;
	struct tw_index_scan scan = {&method, 1, over, count, s};
	struct tw_str rest;

	*s = (struct seen){.head = &head};
	assert_int_equal(
	        tw_index_read_head(rows[TW_INDEX_HEAD], false, a, &head, &rest, NULL), TW_OK);
	assert_int_equal(head.n, TRACES);
	assert_int_equal(head.n_threads, 2); /* one of each name */
	assert_memory_equal(head.ids + 3 * TW_INDEX_ID, "00000000000000000000000003", TW_INDEX_ID);
	assert_int_equal(
	        tw_index_scan(&scan, rows[tw_index_slot(method)], false, &head, NULL), TW_OK);
}

static void test_packed_is_found(void **state)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_str rows[TW_INDEX_ROWS] = {{0}}, ones[TRACES];
	struct tw_buf bufs[TRACES];
	struct seen s;

	(void)state;
	for (unsigned t = 0; t < TRACES; t++) {
		tw_buf_init(&bufs[t], 1 << 20);
		write_one(t, &bufs[t]);
		ones[t] = (struct tw_str){(const char *)bufs[t].data, bufs[t].len};
	}
	assert_int_equal(tw_index_pack(ones, TRACES, a, rows, NULL), TW_OK);
	for (unsigned m = 0; m < METHODS; m++) {
		uint64_t sum = 0;

		for (unsigned t = 0; t < TRACES; t++)
			sum += (uint64_t)(length_of(t, m, 0) + length_of(t, m, 1));
		look(rows, a, m + 1, -1, &s);
		assert_int_equal(s.n, 2 * TRACES);
		assert_int_equal(s.sum, sum);
	}
	look(rows, a, 9, length_of(TRACES - 1, 8, 0), &s); /* longer than, not as long as */
	assert_int_equal(s.n, 1);
	look(rows, a, METHODS + 1, -1, &s);
	assert_int_equal(s.n, 0);

	/* truncated anywhere it is reported as damaged, and nothing is read past its end */
	for (size_t n = 0; n < ones[0].len; n++) {
		char *copy = tw_mem_alloc(n ? n : 1, 1);
		struct tw_str cut = {copy, n};
		enum tw_status st;

		assert_non_null(copy);
		memcpy(copy, ones[0].ptr, n);
		st = tw_index_pack(&cut, 1, a, rows, NULL);
		assert_true(st == TW_OK || st == TW_CORRUPT);
		assert_true(n >= 39 || st == TW_CORRUPT); /* the head alone is whole */
		tw_mem_free(copy);
	}
	for (unsigned t = 0; t < TRACES; t++)
		tw_buf_done(&bufs[t]);
	tw_arena_free(a);
}

static void test_one_is_found(void **state)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	const uint64_t methods[2] = {2, 7};
	struct tw_index_head head;
	struct seen s = {.head = &head};
	const struct tw_index_scan scan = {methods, 2, 60, count, &s};
	struct tw_buf out;
	struct tw_str rest;

	(void)state;
	tw_buf_init(&out, 1 << 20);
	write_one(0, &out);
	assert_int_equal(tw_index_read_head((struct tw_str){(const char *)out.data, out.len}, true,
	                         a, &head, &rest, NULL),
	        TW_OK);
	s.pool_only = true;
	assert_int_equal(tw_index_scan(&scan, rest, true, &head, NULL), TW_OK);
	assert_int_equal(s.n, 1); /* 61 ns of the seventh, on the pool */
	assert_int_equal(s.sum, 61);
	tw_buf_done(&out);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_is_found), cmocka_unit_test(test_one_is_found)};

UNIT_TESTS("search_index", tests)
