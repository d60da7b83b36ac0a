/* Unit tests of fair.c: accounts, and what decodes teach about the next; of pool.c and turn_lock.c:
 * turns of owners.  Shares of time, with the decoders' queue, are in test_claim_turn.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "server/base/thread/fair.h"
#include "server/base/thread/pool.h"
#include "server/base/thread/turn_lock.h"
#include "tests/unit/unit.h"

static int64_t now_ms; /* it advances only when a test moves it */

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
	assert_int_equal(tw_fair_level(&f, "p", &level), 0);
	tw_fair_begin(&f, "p", "t", 1 << 20);
	assert_true(tw_fair_level(&f, "p", &level) > 0);
	assert_int_equal(level, 0);
	tw_fair_begin(&f, "p", "t", 1 << 20); /* its claim ran out: the first is over */
	assert_int_equal(f.n_running, 1);
	now_ms += 7;
	tw_fair_end(&f, "t");
	assert_int_equal(tw_fair_level(&f, "p", &level), 8000); /* 1 ms at least, and 7 */
	now_ms -= 1000;                                         /* a clock that goes back */
	tw_fair_begin(&f, "q", "u", UINT64_MAX);
	now_ms -= 1000;
	tw_fair_end(&f, "u");
	assert_int_equal(
	        tw_fair_level(&f, "q", &level), 2000);    /* where "p" began again, and 1 ms */
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

/* The charge of a decode of this size at its start. */
static uint64_t charge(struct tw_fair *f, uint64_t bytes)
{
	uint64_t level, stands;

	tw_fair_begin(f, "asks", "asked", bytes);
	stands = tw_fair_level(f, "asks", &level);
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
/* 16 small traces together: charged for all, and each counts as a sixteenth of the time. */
static void test_groups(void **state)
{
	static struct tw_fair f;
	uint64_t level;

	(void)state;
	tw_fair_init(&f);
	f.clock_ms = read_clock;
	tw_fair_begin_group(&f, "p", "t", 0, 16);
	assert_int_equal(tw_fair_level(&f, "p", &level), 16000);
	now_ms += 160;
	tw_fair_end(&f, "t");
	assert_int_equal(tw_fair_level(&f, "p", &level), 160000);
	assert_int_equal(f.us_per_decode, (7 * 1000 + 10000) / 8);
	tw_fair_done(&f);
}

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

/* --- the pool --- */

enum { WAIT_S = 180, MANY = 300 };

/* Tasks that wait until they are let go, and the order in which they began. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *began[MANY];
	size_t n_began, n_stopping;
	bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct job {
	struct tw_pool_task task;
	bool waits, let_go;
};

static void run_job(struct tw_pool_task *task, bool stopping)
{
	struct job *job = (struct job *)task;

	(void)pthread_mutex_lock(&gate.lock);
	gate.began[gate.n_began++] = job;
	gate.n_stopping += stopping;
	(void)pthread_cond_broadcast(&gate.changed);
	while (job->waits && !job->let_go && !gate.open)
		(void)pthread_cond_wait(&gate.changed, &gate.lock);
	(void)pthread_mutex_unlock(&gate.lock);
}

static void submit(struct tw_pool *p, struct job *job, const char *owner, bool waits)
{
	*job = (struct job){.task = {.owner = owner, .run = run_job}, .waits = waits};
	assert_true(tw_pool_submit(p, &job->task));
}

/* Waits until that many have begun. */
static void await_began(size_t n)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	(void)pthread_mutex_lock(&gate.lock);
	while (gate.n_began < n)
		assert_int_equal(pthread_cond_timedwait(&gate.changed, &gate.lock, &until), 0);
	(void)pthread_mutex_unlock(&gate.lock);
}

static void let_go(struct job *job) /* NULL: all */
{
	(void)pthread_mutex_lock(&gate.lock);
	if (job)
		job->let_go = true;
	else
		gate.open = true;
	(void)pthread_cond_broadcast(&gate.changed);
	(void)pthread_mutex_unlock(&gate.lock);
}

static int close_gate(void **state)
{
	(void)state;
	gate.n_began = gate.n_stopping = 0;
	gate.open = false;
	return 0;
}

static void test_long_tasks_do_not_delay_another_owner(void **state)
{
	struct tw_pool *p = NULL;
	struct job a[50], b[2], c;

	(void)state;
	assert_int_equal(tw_pool_start(3, &p, NULL), TW_OK);
	for (size_t i = 0; i < 50; i++)
		submit(p, &a[i], "a", true);
	await_began(3);
	submit(p, &b[0], "b", true);
	submit(p, &b[1], "b", false);
	await_began(4);
	assert_ptr_equal(gate.began[3], &b[0]);
	/* all threads have a task; the next free one is for an owner that has none running */
	submit(p, &c, "c", false);
	let_go(&b[0]);
	await_began(6);
	assert_true(gate.began[4] == &c || gate.began[4] == &b[1]);
	assert_true(gate.began[5] == &c || gate.began[5] == &b[1]);
	assert_int_equal(gate.n_began, 6); /* and never for a fourth one of "a" */
	let_go(NULL);
	await_began(53);
	p = tw_pool_stop(p);
	assert_int_equal(gate.n_stopping, 0);
}

static void test_owners_take_turns(void **state)
{
	struct tw_pool *p = NULL;
	struct job first, spare, a[20], b[3];

	(void)state;
	assert_int_equal(tw_pool_start(1, &p, NULL), TW_OK);
	submit(p, &first, "a", true);
	await_began(1);
	submit(p, &spare, "c", true);
	await_began(2);
	for (size_t i = 0; i < 20; i++)
		submit(p, &a[i], "a", false);
	for (size_t i = 0; i < 3; i++)
		submit(p, &b[i], "b", false);
	let_go(&first);
	await_began(25);
	let_go(NULL);
	assert_ptr_equal(gate.began[2], &b[0]); /* it has had nothing yet */
	for (size_t i = 2, next_a = 0, next_b = 0; i < 25; i++) {
		if (next_b < 3 && gate.began[i] == &b[next_b]) /* each in its owner's order */
			next_b++;
		else
			assert_ptr_equal(gate.began[i], &a[next_a++]);
	}
	p = tw_pool_stop(p);
}

/* Names longer than an id count by their first bytes; more owners than accounts. */
static void test_many_owners(void **state)
{
	struct tw_pool *p = NULL;
	static struct job jobs[MANY], refused;
	static char owners[MANY][64];

	(void)state;
	assert_int_equal(tw_pool_start(2, &p, NULL), TW_OK);
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(
		        owners[i], sizeof owners[i], "2001:db8:0:%zx::aaaa:bbbb:cccc:dddd", i);
		submit(p, &jobs[i], i % 3 ? owners[i] : NULL, i < 3);
	}
	await_began(3);
	let_go(NULL);
	await_began(MANY);
	refused = (struct job){.task.run = run_job};
	tw_pool_end(p);
	assert_false(tw_pool_submit(p, &refused.task));
	p = tw_pool_stop(p);
}

static void test_waiting_tasks_are_run_at_the_end(void **state)
{
	struct tw_pool *p = NULL;
	static struct job jobs[MANY];

	(void)state;
	assert_int_equal(tw_pool_start(1, &p, NULL), TW_OK);
	submit(p, &jobs[0], "a", true);
	await_began(1);
	for (size_t i = 1; i < 100; i++)
		submit(p, &jobs[i], "a", false);
	let_go(NULL);
	p = tw_pool_stop(p);
	assert_int_equal(gate.n_began, 100);
}

/* --- the lock --- */

enum { LOCKERS = 9 };

static struct { /* order is protected by the lock itself */
	struct tw_turn_lock lock;
	char order[LOCKERS + 1];
	size_t n;
} turns;

static void *lock_once(void *owner)
{
	tw_turn_lock(&turns.lock, owner);
	turns.order[turns.n++] = *(const char *)owner ? *(const char *)owner : '-';
	tw_turn_unlock(&turns.lock);
	return NULL;
}

static void *give_up(void *owner)
{
	assert_false(tw_turn_lock_within(&turns.lock, owner, 1));
	return NULL;
}

static void test_lock_passes_from_owner_to_owner(void **state)
{
	static char owners[LOCKERS][2] = {"a", "a", "a", "", "b", "", "a", "b", "c"};
	pthread_t threads[LOCKERS], impatient;

	(void)state;
	tw_turn_lock_init(&turns.lock);
	assert_true(tw_turn_lock_within(&turns.lock, "a", 0));
	for (size_t i = 0; i < LOCKERS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, lock_once, owners[i]), 0);
		while (tw_turn_waiting(&turns.lock) <= i)
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	/* abandoned waits leave no gap at any position */
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&impatient, NULL, give_up, owners[i]), 0);
		(void)pthread_join(impatient, NULL);
	}
	assert_int_equal(tw_turn_waiting(&turns.lock), LOCKERS);
	tw_turn_unlock(&turns.lock);
	for (size_t i = 0; i < LOCKERS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_string_equal(turns.order, "a-b-cabaa");
	assert_true(tw_turn_lock_within(&turns.lock, "a", 0));
	tw_turn_unlock(&turns.lock);
	tw_turn_lock_done(&turns.lock);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_passes_from_owner_to_owner),
        cmocka_unit_test_setup(test_long_tasks_do_not_delay_another_owner, close_gate),
        cmocka_unit_test_setup(test_owners_take_turns, close_gate),
        cmocka_unit_test_setup(test_many_owners, close_gate),
        cmocka_unit_test_setup(test_waiting_tasks_are_run_at_the_end, close_gate),
        cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_what_decodes_teach),
};

UNIT_TESTS("fair", tests)
