/* Concurrent requests about clones: equal ones share one child, few run at the same time, no
 * project uses all of them, and projects take turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/source/source_scheduler.h"
#include "tests/unit/unit.h"

enum { MOST = 80, LONG_MS = 600000, SHORT_MS = 300, HOUR_MS = 3600000 };

/* Child processes that run until the test ends them, and the order of their starts. */
struct house {
	struct tw_source_scheduler *turns;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char begun[256];    /* their names, a letter each */
	unsigned open[128]; /* children that may end, of each project */
	unsigned now, most; /* at once */
};

struct asker {
	struct house *h;
	pthread_t thread;
	char project[2], question[3]; /* "a", "a1" */
	int64_t patience_ms;
	enum tw_status fails;
	enum tw_status st;
	json_t *answer;
	struct tw_err err;
};

static struct house house;
static struct asker waiting[MOST];
static size_t n_askers;

static enum tw_status child(void *arg, json_t **ret, struct tw_err *err)
{
	struct asker *a = arg;
	struct house *h = a->h;

	(void)pthread_mutex_lock(&h->lock);
	h->begun[strlen(h->begun)] = a->question[1];
	if (++h->now > h->most)
		h->most = h->now;
	(void)pthread_cond_broadcast(&h->changed);
	while (h->open[(int)a->project[0]] == 0)
		(void)pthread_cond_wait(&h->changed, &h->lock);
	h->open[(int)a->project[0]]--;
	h->now--;
	(void)pthread_mutex_unlock(&h->lock);
	if (a->fails != TW_OK)
		return tw_fail(err, a->fails, "as asked");
	*ret = json_pack("{s:s}", "of", a->question);
	return *ret ? TW_OK : TW_NOMEM;
}

static void *query(void *arg)
{
	struct asker *a = arg;
	const int64_t now = tw_monotonic_ms();
	const struct tw_source_turn of = {a->project, a->question, now + a->patience_ms,
	        now + (a->patience_ms == LONG_MS ? LONG_MS : 2 * a->patience_ms), child, a};

	a->st = tw_source_scheduler_run(a->h->turns, &of, &a->answer, &a->err);
	return NULL;
}

static void wait_askers(uint64_t n)
{
	while (tw_source_scheduler_counts(house.turns).waiting != n)
		(void)usleep(1000);
}

/* "a1": project a asks for 1.  It is there, and behind those before, when this returns. */
static struct asker *start(const char *question, int64_t patience_ms, enum tw_status fails)
{
	struct asker *a = &waiting[n_askers++];
	const uint64_t before = tw_source_scheduler_counts(house.turns).waiting;

	*a = (struct asker){.h = &house, .patience_ms = patience_ms, .fails = fails};
	a->project[0] = question[0];
	memcpy(a->question, question, 3);
	assert_int_equal(pthread_create(&a->thread, NULL, query, a), 0);
	wait_askers(before + 1);
	return a;
}

static void wait_begun(size_t n)
{
	(void)pthread_mutex_lock(&house.lock);
	while (strlen(house.begun) < n)
		(void)pthread_cond_wait(&house.changed, &house.lock);
	(void)pthread_mutex_unlock(&house.lock);
}

static void end_children(char project, unsigned n)
{
	(void)pthread_mutex_lock(&house.lock);
	house.open[(int)project] += n;
	(void)pthread_cond_broadcast(&house.changed);
	(void)pthread_mutex_unlock(&house.lock);
}

static const char *begun(void)
{
	static char copy[sizeof house.begun];

	(void)pthread_mutex_lock(&house.lock);
	memcpy(copy, house.begun, sizeof copy);
	(void)pthread_mutex_unlock(&house.lock);
	return copy;
}

static int setup(void **state)
{
	(void)state;
	house = (struct house){.turns = tw_source_scheduler_new()};
	(void)pthread_mutex_init(&house.lock, NULL);
	(void)pthread_cond_init(&house.changed, NULL);
	n_askers = 0;
	return house.turns ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(tw_source_scheduler_counts(house.turns).waiting, 0);
	house.turns = tw_source_scheduler_free(house.turns);
	(void)pthread_cond_destroy(&house.changed);
	(void)pthread_mutex_destroy(&house.lock);
	return 0;
}

/* All threads have ended, and their results can be checked. */
static void join_all(void)
{
	wait_askers(0);
	for (size_t i = 0; i < n_askers; i++)
		(void)pthread_join(waiting[i].thread, NULL);
}

static void forget_all(void)
{
	for (size_t i = 0; i < n_askers; i++)
		json_decref(waiting[i].answer);
	n_askers = 0;
}

static void equal_questions_share_one_child(void **state)
{
	struct tw_source_scheduler_counts_now n;

	(void)state;
	for (unsigned i = 0; i < TW_SOURCE_WAITERS_OF_PROJECT; i++)
		(void)start("a1", LONG_MS, TW_OK);
	wait_begun(1);
	end_children('a', 1);
	join_all();
	for (size_t i = 0; i < n_askers; i++) {
		assert_int_equal(waiting[i].st, TW_OK);
		assert_string_equal(
		        json_string_value(json_object_get(waiting[i].answer, "of")), "a1");
		for (size_t k = 0; k < i; k++)
			assert_ptr_not_equal(waiting[i].answer, waiting[k].answer);
	}
	n = tw_source_scheduler_counts(house.turns);
	assert_string_equal(begun(), "1");
	assert_int_equal(n.run, 1);
	assert_int_equal(n.shared, TW_SOURCE_WAITERS_OF_PROJECT - 1);
	forget_all();
}

static void a_finished_query_runs_again(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		(void)start("a1", LONG_MS, TW_OK);
		end_children('a', 1);
		join_all();
		forget_all();
	}
	assert_string_equal(begun(), "11");
}

static void a_failure_is_shared_in_its_words(void **state)
{
	const struct asker *first = start("a1", LONG_MS, TW_CORRUPT);
	const struct asker *second = start("a1", LONG_MS, TW_OK);

	(void)state;
	end_children('a', 1);
	join_all();
	assert_int_equal(first->st, TW_CORRUPT);
	assert_int_equal(second->st, TW_CORRUPT);
	assert_string_equal(second->err.msg, "as asked");
	assert_null(second->answer);
	forget_all();
}

/* A project that floods has two of three children, and the next project's question begins at once;
 * then they take turns, whatever waits: y and z came behind a's last, and begin before its fifth.
 */
static void projects_take_turns(void **state)
{
	static const char *const flood[] = {"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"};
	static const char *const others[] = {"bx", "by", "cz"};
	static const char ends[] = "aaaabbaa";

	(void)state;
	for (size_t i = 0; i < 8; i++)
		(void)start(flood[i], LONG_MS, TW_OK);
	wait_begun(TW_SOURCE_CHILDREN_OF_PROJECT);
	assert_int_equal(strlen(begun()), TW_SOURCE_CHILDREN_OF_PROJECT);
	(void)start(others[0], LONG_MS, TW_OK);
	wait_begun(TW_SOURCE_CHILDREN);
	assert_int_equal(begun()[2], 'x');
	(void)start(others[1], LONG_MS, TW_OK);
	(void)start(others[2], LONG_MS, TW_OK);
	for (size_t i = 0; ends[i]; i++) {
		end_children(ends[i], 1);
		wait_begun(TW_SOURCE_CHILDREN + 1 + i);
	}
	assert_string_equal(begun(), "12x34yz5678");
	end_children('a', 2);
	end_children('c', 1);
	join_all();
	for (size_t i = 0; i < n_askers; i++)
		assert_int_equal(waiting[i].st, TW_OK);
	forget_all();
	assert_int_equal(house.most, TW_SOURCE_CHILDREN);
}

static void who_is_one_too_many_hears_it_at_once(void **state)
{
	char name[3] = "a?";
	/* more patience than the test's time limit: it ends only if it is refused at once */
	struct asker late = {.h = &house, .project = "a", .question = "az", .patience_ms = HOUR_MS};
	const struct asker *other, *shares;

	(void)state;
	for (int i = 0; i < TW_SOURCE_QUERIES_OF_PROJECT; i++) {
		name[1] = (char)('0' + i);
		(void)start(name, LONG_MS, TW_OK);
	}
	(void)query(&late);
	assert_int_equal(late.st, TW_BUSY);
	other = start("b1", LONG_MS, TW_OK);  /* another project has room */
	shares = start("a0", LONG_MS, TW_OK); /* and equal requests, too */
	end_children('a', TW_SOURCE_QUERIES_OF_PROJECT);
	end_children('b', 1);
	join_all();
	assert_int_equal(other->st, TW_OK);
	assert_int_equal(shares->st, TW_OK);
	assert_int_equal(tw_source_scheduler_counts(house.turns).refused, 1);
	forget_all();
}

/* The one that led gives up; who shares has time left and leads then. */
static void patience_is_each_ones_own(void **state)
{
	const struct asker *led, *shares;

	(void)state;
	(void)start("a1", LONG_MS, TW_OK);
	(void)start("a2", LONG_MS, TW_OK);
	led = start("a3", SHORT_MS, TW_OK);
	shares = start("a3", LONG_MS, TW_OK);
	wait_askers(3); /* the leader has timed out */
	end_children('a', 3);
	join_all();
	assert_int_equal(led->st, TW_BUSY);
	assert_string_equal(
	        led->err.msg, "too many source code requests are in progress: retry in a moment");
	assert_int_equal(shares->st, TW_OK);
	forget_all();
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_questions_share_one_child, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_query_runs_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_is_shared_in_its_words, setup, teardown),
        cmocka_unit_test_setup_teardown(projects_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_one_too_many_hears_it_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(patience_is_each_ones_own, setup, teardown),
};

UNIT_TESTS("source_scheduler", tests)
