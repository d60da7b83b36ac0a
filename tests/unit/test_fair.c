/* Unit tests of fair.c: accounts, and what decodes teach about the next.  Shares of time, with the
 * queue, are in test_turn.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "fair.h"

static int64_t now_ms; /* it stands but where a test moves it */

static int64_t read_clock(void)
{
	return now_ms;
}

static void test_accounts(void **state)
{
	static struct tw_fair f;
	uint64_t level;
	char id[TW_ID_BYTES], trace[TW_ID_BYTES];

	(void)state;
	tw_fair_init(&f);
	f.clock_ms = read_clock;
	tw_fair_end(&f, "never begun");
	assert_int_equal(tw_fair_stands(&f, "p", &level), 0);
	tw_fair_begin(&f, "p", "t", 1 << 20);
	assert_true(tw_fair_stands(&f, "p", &level) > 0);
	assert_int_equal(level, 0);
	tw_fair_begin(&f, "p", "t", 1 << 20); /* its claim ran out: the first is over */
	assert_int_equal(f.n_running, 1);
	now_ms += 7;
	tw_fair_end(&f, "t");
	assert_int_equal(tw_fair_stands(&f, "p", &level), 8000); /* 1 ms at least, and 7 */
	now_ms -= 1000;                                          /* a clock that goes back */
	tw_fair_begin(&f, "q", "u", UINT64_MAX);
	now_ms -= 1000;
	tw_fair_end(&f, "u");
	assert_int_equal(
	        tw_fair_stands(&f, "q", &level), 2000);   /* where "p" began again, and 1 ms */
	for (int i = 0; i < TW_FAIR_ACCOUNTS + 10; i++) { /* more than there is room for */
		(void)snprintf(id, sizeof id, "p%d", i);
		(void)snprintf(trace, sizeof trace, "t%d", i);
		tw_fair_begin(&f, id, trace, (uint64_t)i << 20);
	}
	assert_int_equal(f.n_accounts, TW_FAIR_ACCOUNTS);
	assert_int_equal(f.n_running, TW_FAIR_RUNNING);
	for (int i = 0; i < TW_FAIR_ACCOUNTS + 10; i++) {
		(void)snprintf(trace, sizeof trace, "t%d", i);
		tw_fair_end(&f, trace);
	}
	assert_int_equal(f.n_running, 0);
	assert_true(f.n_accounts > 0);
	tw_fair_begin(&f, "p", "t", 1);
	tw_fair_idle(&f);
	assert_true(f.n_accounts > 0);
	tw_fair_end(&f, "t");
	tw_fair_idle(&f);
	assert_int_equal(f.n_accounts, 0);
	tw_fair_done(&f);
}

/* What a decode of so many bytes is charged when it begins. */
static uint64_t charge(struct tw_fair *f, uint64_t bytes)
{
	uint64_t level, stands;

	tw_fair_begin(f, "asks", "asked", bytes);
	stands = tw_fair_stands(f, "asks", &level);
	tw_fair_end(f, "asked");
	tw_fair_idle(f);
	f->level_us = 0;
	return stands - level;
}

static void decode(struct tw_fair *f, uint64_t bytes, int64_t ms)
{
	tw_fair_begin(f, "one", "t", bytes);
	now_ms += ms;
	tw_fair_end(f, "t");
}

/* One project's odd uploads do not make another's large ones look long. */
static void test_what_decodes_teach(void **state)
{
	enum { MB = 1000000 };
	struct tw_fair f;

	(void)state;
	tw_fair_init(&f);
	f.clock_ms = read_clock;
	for (int i = 0; i < 10000; i++) /* of one byte, and nothing of one */
		decode(&f, (uint64_t)i % 2, 50);
	assert_in_range(charge(&f, 10 * MB), 200000, 300000);
	for (int i = 0; i < 10000; i++)
		decode(&f, 100, 3600 * 1000);
	assert_in_range(charge(&f, 10 * MB), 200000, 300000);
	for (int i = 0; i < 50; i++) /* bombs: 16 KiB that take a minute */
		decode(&f, 16384, 60000);
	assert_in_range(charge(&f, 10 * MB), 200000, 600000);
	for (int i = 0; i < 60; i++) /* what takes long with reason */
		decode(&f, 10 * MB, 2000);
	assert_in_range(charge(&f, 10 * MB), 1800000, 2200000);
	for (int i = 0; i < 60; i++)
		decode(&f, 10 * MB, 0);
	assert_in_range(charge(&f, 10 * MB), 1000, 500000);
	assert_in_range(charge(&f, UINT64_MAX), 1000, UINT64_C(3600) * 1000 * 1000);
	tw_fair_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_accounts),
	        cmocka_unit_test(test_what_decodes_teach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
