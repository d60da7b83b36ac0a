/* Unit tests of base/relay.h: the same pieces in the same order, in a thread and without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "decoder/base/arena.h"
#include "decoder/base/relay.h"
#include "tests/fixtures/no_threads.h"
#include "tests/unit/unit.h"

enum { MOST = 4, PIECES = 1000 };

struct line {
	uint32_t values[MOST]; /* by slot */
	uint32_t slots;
	uint32_t n, fail_at; /* pieces done; the one that fails, 0 none */
	uint64_t digest;     /* of the calls, in their order */
	pthread_t where;     /* that was the last */
	struct tw_relay *relay;
};

static enum tw_status do_piece(void *arg, uint32_t slot, struct tw_err *err)
{
	struct line *l = arg;

	l->where = pthread_self();
	if (++l->n == l->fail_at)
		return tw_fail_at(err, TW_FULL, 7, "piece %u", l->values[slot]);
	l->digest = (l->digest ^ l->values[slot]) * 0x100000001B3u;
	return TW_OK;
}

static void open_line(struct line *l, uint32_t slots, bool start)
{
	*l = (struct line){.slots = slots};
	l->relay = tw_relay_new(slots, do_piece, l);
	assert_non_null(l->relay);
	if (start)
		tw_relay_start(l->relay);
}

/* TW_OK, or the first status of the relay. */
static enum tw_status hand_on(struct line *l, uint32_t from, uint32_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = from; st == TW_OK && i < from + n; i++) {
		uint32_t slot = MOST;
		uint32_t again = MOST;

		st = tw_relay_slot(l->relay, &slot, err);
		if (st != TW_OK)
			break;
		assert_true(slot < l->slots);
		st = tw_relay_slot(l->relay, &again, err);
		if (st != TW_OK)
			break;
		assert_int_equal(again, slot);
		l->values[slot] = i;
		st = tw_relay_pass(l->relay, err);
	}
	return st;
}

static uint64_t digest_of(uint32_t n)
{
	uint64_t d = 0;

	for (uint32_t i = 0; i < n; i++)
		d = (d ^ i) * 0x100000001B3u;
	return d;
}

static void test_in_order(void **state)
{
	struct tw_err err = {0};

	(void)state;
	for (uint32_t slots = 1; slots <= MOST; slots++)
		for (int start = 0; start < 2; start++) {
			struct line l;
			uint32_t before = threads_made;

			open_line(&l, slots, start);
			assert_int_equal(hand_on(&l, 0, PIECES, &err), TW_OK);
			assert_int_equal(tw_relay_finish(l.relay, &err), TW_OK);
			assert_int_equal(l.n, PIECES);
			assert_int_equal(l.digest, digest_of(PIECES));
			assert_int_equal(threads_made - before, start);
			assert_int_equal(pthread_equal(l.where, pthread_self()) != 0, !start);
			assert_null(tw_relay_free(l.relay));
		}
}

/* After its end a relay works in line, or in a thread again. */
static void test_goes_on(void **state)
{
	struct tw_err err = {0};
	struct line l;

	(void)state;
	open_line(&l, 3, true);
	tw_relay_start(l.relay); /* one is enough */
	assert_int_equal(hand_on(&l, 0, 10, &err), TW_OK);
	assert_int_equal(tw_relay_finish(l.relay, &err), TW_OK);
	assert_int_equal(tw_relay_finish(l.relay, &err), TW_OK);
	assert_int_equal(hand_on(&l, 10, 10, &err), TW_OK);
	assert_int_equal(l.n, 20);
	tw_relay_start(l.relay);
	assert_int_equal(hand_on(&l, 20, 10, &err), TW_OK);
	assert_int_equal(tw_relay_finish(l.relay, &err), TW_OK);
	assert_int_equal(l.n, 30);
	assert_int_equal(l.digest, digest_of(30));
	tw_relay_free(l.relay);
}

/* The work is done and the thread remains. */
static void test_wait(void **state)
{
	(void)state;
	for (int start = 0; start < 2; start++) {
		uint32_t before = threads_made;
		struct tw_err err = {0};
		struct line l;

		open_line(&l, 3, start);
		assert_int_equal(tw_relay_wait(l.relay, tw_relay_passed(l.relay), &err), TW_OK);
		for (uint32_t n = 1; n <= 20; n++) {
			assert_int_equal(hand_on(&l, n - 1, 1, &err), TW_OK);
			assert_int_equal(
			        tw_relay_wait(l.relay, tw_relay_passed(l.relay), &err), TW_OK);
			assert_int_equal(l.n, n);
		}
		assert_int_equal(l.digest, digest_of(20));
		assert_int_equal(pthread_equal(l.where, pthread_self()) != 0, !start);
		l.fail_at = 21;
		(void)hand_on(&l, 20, 2, &err);
		assert_int_equal(tw_relay_wait(l.relay, tw_relay_passed(l.relay), &err), TW_FULL);
		assert_int_equal(err.offset, 7);
		assert_int_equal(threads_made - before, start);
		tw_relay_free(l.relay);
	}
}

struct gate { /* the second piece waits until it is opened */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	uint32_t n;
};

static enum tw_status wait_at_gate(void *arg, uint32_t slot, struct tw_err *err)
{
	struct gate *g = arg;

	(void)slot;
	(void)err;
	(void)pthread_mutex_lock(&g->lock);
	while (g->n == 1 && !g->open)
		(void)pthread_cond_wait(&g->changed, &g->lock);
	g->n++;
	(void)pthread_mutex_unlock(&g->lock);
	return TW_OK;
}

/* Waiting for the first piece ends although the second one is not done. */
static void test_wait_for_first(void **state)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
	struct tw_relay *r = tw_relay_new(MOST, wait_at_gate, &g);
	uint32_t slot;

	(void)state;
	assert_non_null(r);
	tw_relay_start(r);
	for (uint64_t n = 0; n < 2; n++) {
		assert_int_equal(tw_relay_passed(r), n);
		assert_int_equal(tw_relay_slot(r, &slot, NULL), TW_OK);
		assert_int_equal(tw_relay_pass(r, NULL), TW_OK);
	}
	assert_int_equal(tw_relay_wait(r, 1, NULL), TW_OK);
	(void)pthread_mutex_lock(&g.lock);
	assert_int_equal(g.n, 1);
	g.open = true;
	(void)pthread_cond_signal(&g.changed);
	(void)pthread_mutex_unlock(&g.lock);
	assert_int_equal(tw_relay_wait(r, 2, NULL), TW_OK);
	assert_int_equal(g.n, 2);
	tw_relay_free(r);
}

/* Pieces after the failed one are dropped, and every caller gets the reason. */
static void test_first_error(void **state)
{
	(void)state;
	for (uint32_t fail_at = 1; fail_at <= 9; fail_at++)
		for (int start = 0; start < 2; start++) {
			struct tw_err err = {0};
			struct line l;
			uint32_t slot = MOST;

			open_line(&l, 2, start);
			l.fail_at = fail_at;
			if (hand_on(&l, 0, 9, &err) != TW_OK)
				assert_string_not_equal(err.msg, "");
			err = (struct tw_err){0};
			assert_int_equal(tw_relay_finish(l.relay, &err), TW_FULL);
			assert_int_equal(err.code, TW_FULL);
			assert_int_equal(err.offset, 7);
			assert_int_equal(err.msg[6], '0' + (int)fail_at - 1);
			assert_int_equal(l.n, fail_at);
			assert_int_equal(tw_relay_slot(l.relay, &slot, NULL), TW_FULL);
			assert_int_equal(slot, MOST);
			assert_int_equal(tw_relay_pass(l.relay, NULL), TW_FULL);
			assert_int_equal(l.n, fail_at);
			tw_relay_free(l.relay);
		}
}

static void test_no_thread(void **state)
{
	struct line l;

	(void)state;
	no_threads = true;
	open_line(&l, 2, true);
	no_threads = false;
	assert_int_equal(hand_on(&l, 0, 5, NULL), TW_OK);
	assert_int_equal(l.n, 5);
	assert_true(pthread_equal(l.where, pthread_self()));
	assert_int_equal(tw_relay_finish(l.relay, NULL), TW_OK);
	tw_relay_free(l.relay);
}

static void test_no_memory(void **state)
{
	struct line l;

	(void)state;
	tw_mem_fail_at(1);
	assert_null(tw_relay_new(1, do_piece, &l));
	tw_mem_fail_at(0);
	assert_null(tw_relay_free(NULL));
}

/* Work in progress is waited for. */
static void test_freed_early(void **state)
{
	struct line l;

	(void)state;
	open_line(&l, MOST, true);
	assert_int_equal(hand_on(&l, 0, MOST, NULL), TW_OK);
	tw_relay_free(l.relay);
	assert_int_equal(l.n, MOST);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_wait_for_first),
        cmocka_unit_test(test_first_error),
        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_freed_early),
};

UNIT_TESTS("relay", tests)
