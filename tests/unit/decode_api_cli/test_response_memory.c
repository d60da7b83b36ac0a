/*
 * Memory of responses: bounded over all, shared between callers, returned at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/http/limit/response_memory.h"
#include "tests/unit/unit.h"

#define MB ((int64_t)1 << 20)

static void *take(struct tw_reservation *h, int64_t bytes)
{
	struct tw_mem_account *before = tw_mem_count_for(&h->account);
	void *p = tw_mem_alloc((size_t)bytes, 1);

	(void)tw_mem_count_for(before);
	return p;
}

static void give(struct tw_reservation *h, void *p)
{
	struct tw_mem_account *before = tw_mem_count_for(&h->account);

	tw_mem_free(p);
	(void)tw_mem_count_for(before);
	tw_reservation_trim(h);
}

/* Whole megabytes that it gets, one after the other. */
static int64_t most_of(struct tw_reservation *h)
{
	void *all[256];
	int64_t n = 0;

	while (n < 256 && (all[n] = take(h, MB)))
		n++;
	for (int64_t i = 0; i < n; i++)
		tw_mem_free(all[i]); /* not counted: it continues to hold its grant */
	return n;
}

static struct tw_reservation *of(
        struct tw_response_memory *m, const char *caller, const char *project)
{
	const struct tw_holders who = {caller, "", project};
	struct tw_reservation *h = tw_reservation_open(m, &who);

	assert_non_null(h);
	return h;
}

static void test_shares(void **state)
{
	struct tw_response_memory *m =
	        tw_response_memory_new(128 * MB, 0); /* 112 for new responses */
	struct tw_reservation *a = of(m, "a", "p");
	struct tw_reservation *a2 = of(m, "a", "p");
	struct tw_reservation *b = of(m, "b", "q");
	struct tw_reservation *c = of(m, "c", "r");

	(void)state;
	assert_in_range(most_of(a), 54, 56); /* one alone: half */
	assert_int_equal(most_of(a2), 1);    /* the reserve of small responses, nothing more */
	assert_in_range(most_of(b), 26, 28); /* the next: half of the rest */
	assert_in_range(most_of(c), 12, 14);
	assert_true(a->account.refused);
	assert_true(a->too_much);
	assert_false(b->too_much);
	assert_true(tw_response_memory_is_short(m));
	a = tw_reservation_close(a);
	assert_in_range(most_of(a2), 33, 36); /* half of what was free then */
	tw_reservation_close(a2);
	tw_reservation_close(b);
	tw_reservation_close(c);
	a = of(m, "a", "p");
	assert_in_range(most_of(a), 54, 56); /* nothing was cached */
	tw_reservation_close(a);
	tw_response_memory_free(m);
}

/* Small responses are made while large ones of the same caller use up its share, within a reserve.
 */
static void test_small_responses(void **state)
{
	struct tw_response_memory *m =
	        tw_response_memory_new(128 * MB, 0); /* 8 for small responses */
	struct tw_reservation *a = of(m, "a", "p");
	struct tw_reservation *small[40];
	void *held[40];
	int n = 0;

	(void)state;
	assert_in_range(most_of(a), 54, 56);
	for (int i = 0; i < 40; i++) {
		small[i] = of(m, "a", "p");
		held[i] = take(small[i], 200 << 10);
		n += held[i] != NULL;
	}
	assert_in_range(
	        n, 32, 35); /* the reserve, in steps of 256 KiB, and the rest of the share */
	assert_null(take(small[0], 2 * MB));
	for (int i = 0; i < 40; i++) {
		give(small[i], held[i]);
		tw_reservation_close(small[i]);
	}
	small[0] = of(m, "a", "p");
	held[0] = take(small[0], 900 << 10); /* the reserve was returned */
	assert_non_null(held[0]);
	tw_reservation_move(small[0], &(struct tw_holders){"b", "", "q"});
	give(small[0], held[0]);
	tw_reservation_close(small[0]);
	tw_reservation_close(a);
	a = of(m, "a", "p");
	assert_in_range(most_of(a), 54, 56);
	tw_reservation_close(a);
	tw_response_memory_free(m);
}

/* A project has three quarters of it, however many callers; a stream that has begun all but the
 * reserve of small responses. */
static void test_project_and_streams(void **state)
{
	struct tw_response_memory *m = tw_response_memory_new(128 * MB, 0);
	struct tw_reservation *h[6];
	int64_t all = 0;

	(void)state;
	for (int i = 0; i < 6; i++) {
		char name[4];

		(void)snprintf(name, sizeof name, "k%d", i);
		h[i] = of(m, name, "p");
		all += most_of(h[i]);
	}
	assert_in_range(all, 80, 84 + 6); /* with one each of the reserve */
	h[0]->begun = true;
	all += most_of(h[0]);
	assert_in_range(all, 118, 120 + 6);
	for (int i = 0; i < 6; i++)
		tw_reservation_close(h[i]);
	tw_response_memory_free(m);
}

static void test_freed_and_moved(void **state)
{
	struct tw_response_memory *m = tw_response_memory_new(128 * MB, 16 * MB);
	struct tw_reservation *a = of(m, "ticket", "");
	struct tw_reservation *b = of(m, "b", "p");
	struct tw_buf out;
	void *p = take(a, 40 * MB);

	(void)state;
	assert_non_null(p);
	assert_null(take(a, 20 * MB));
	give(a, p);
	p = take(a, 40 * MB);
	assert_non_null(p);
	tw_reservation_move(a, &(struct tw_holders){"b", "", "p"}); /* counts for b from now on */
	assert_null(take(b, 20 * MB));
	give(a, p);
	p = take(b, 20 * MB);
	assert_non_null(p);
	give(b, p);
	tw_reservation_close(a);
	tw_reservation_close(b);
	tw_buf_init(&out, 4096);
	tw_response_memory_metrics(m, &out);
	assert_non_null(
	        strstr((const char *)out.data, "tracewell_response_memory_bytes 16777216\n"));
	assert_non_null(strstr((const char *)out.data, "refused_total 2\n"));
	tw_buf_done(&out);
	tw_response_memory_free(m);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_small_responses),
        cmocka_unit_test(test_project_and_streams),
        cmocka_unit_test(test_freed_and_moved),
};

UNIT_TESTS("response_memory", tests)
