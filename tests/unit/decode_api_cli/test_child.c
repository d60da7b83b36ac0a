/* Unit tests of the deadline of a child: one that waits for a processor gets more time, one that
 * hangs does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/base/child.h"
#include "tests/unit/unit.h"

enum { WALL_MS = 100 };

static pid_t begin(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (volatile unsigned i = 0;; i++)
			continue;
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int64_t used_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &used), 0);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void wait_for_use(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const int64_t before = used_ns(pid);

	while (used_ns(pid) == before)
		(void)nanosleep(&pause, NULL);
}

static void test_running(void **state)
{
	struct tw_child c = {
	        .deadline_ms = WALL_MS, .extend_ms = WALL_MS, .extensions = TW_CHILD_WALLS - 1};

	(void)state;
	c.pid = begin();
	for (int64_t i = 1; i < TW_CHILD_WALLS; i++) {
		wait_for_use(c.pid);
		assert_false(tw_child_is_overdue(&c, i * WALL_MS));
		assert_false(tw_child_is_overdue(&c, i * WALL_MS + 1));
	}
	wait_for_use(c.pid);
	assert_false(tw_child_is_overdue(&c, TW_CHILD_WALLS * WALL_MS));
	assert_true(tw_child_is_overdue(&c, TW_CHILD_WALLS * WALL_MS + 1));
	end(c.pid);
}

static void test_hanging(void **state)
{
	struct tw_child c = {
	        .deadline_ms = WALL_MS, .extend_ms = WALL_MS, .extensions = TW_CHILD_WALLS - 1};

	(void)state;
	c.pid = begin();
	wait_for_use(c.pid);
	assert_int_equal(kill(c.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(c.pid, NULL, WUNTRACED), c.pid);
	assert_false(tw_child_is_overdue(&c, WALL_MS + 1)); /* it has used some before */
	assert_true(tw_child_is_overdue(&c, 2 * WALL_MS + 1));
	end(c.pid);
}

static void test_not_in_background(void **state)
{
	struct tw_child c = {.deadline_ms = WALL_MS, .extend_ms = WALL_MS};

	(void)state;
	c.pid = begin();
	wait_for_use(c.pid);
	assert_false(tw_child_is_overdue(&c, WALL_MS));
	assert_true(tw_child_is_overdue(&c, WALL_MS + 1));
	end(c.pid);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_hanging),
        cmocka_unit_test(test_not_in_background),
};

UNIT_TESTS("child", tests)
