/* Unit tests of copies of a template: one that the server does not know never touches its task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/child_template.h"
#include "server/decode/jail.h"
#include "server/decode/worker.h"
#include "tests/unit/unit.h"

enum {
	TASK = 3,
	FDS = 4,
	NOT_A_TASK = 64 /* exit status of a copy that has read its empty task */
};

static struct tw_child_template begin(void)
{
	struct tw_child_template t = {0};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	t.copy_socket = ends[0];
	t.pid = fork();
	if (t.pid == 0) {
		(void)close(ends[0]);
		_exit(dup2(ends[1], 3) == 3 ? tw_worker_template(1) : 2);
	}
	assert_true(t.pid > 0);
	(void)close(ends[1]);
	return t;
}

static void open_task(int fds[FDS])
{
	for (int i = 0; i < FDS; i++) {
		fds[i] = i == TASK ? memfd_create("task", MFD_CLOEXEC)
		                   : open("/dev/null", O_RDWR | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
}

static void close_task(const int fds[FDS])
{
	for (int i = 0; i < FDS; i++)
		(void)close(fds[i]);
}

/* As a server that ends before it has received of the copy: returns the copy and its line. */
static int32_t ask(const struct tw_child_template *t, const int fds[FDS], int *ret_line)
{
	union {
		char room[CMSG_SPACE(sizeof(int) * (FDS + 1))];
		struct cmsghdr align;
	} control = {{0}};
	char byte = 0;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
	        .msg_iovlen = 1,
	        .msg_control = control.room,
	        .msg_controllen = sizeof control.room};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int32_t pid = 0;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (FDS + 1));
	memcpy(CMSG_DATA(c), fds, sizeof(int) * FDS);
	memcpy(CMSG_DATA(c) + sizeof(int) * FDS, &ends[1], sizeof(int));
	assert_int_equal(sendmsg(t->copy_socket, &m, MSG_NOSIGNAL), 1);
	(void)close(ends[1]);
	assert_int_equal(recv(ends[0], &pid, sizeof pid, 0), sizeof pid);
	assert_true(pid > 0);
	*ret_line = ends[0];
	return pid;
}

static int end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_known(void **state)
{
	struct tw_child_template t;
	struct tw_err err;
	int fds[FDS];
	pid_t pid = 0;

	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	t = begin();
	open_task(fds);
	assert_int_equal(tw_child_template_copy(&t, fds, FDS, false, &pid, &err), TW_OK);
	assert_int_equal(end_of(pid), NOT_A_TASK);
	close_task(fds);
	tw_child_template_end(&t);
}

static void test_unknown(void **state)
{
	struct tw_child_template t;
	int fds[FDS];
	int line;
	int32_t pid;

	(void)state;
	unit_needs(!TW_JAIL_SANITIZED, "a build without sanitizers");
	t = begin();
	open_task(fds);
	pid = ask(&t, fds, &line);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it waits */
	(void)close(line);
	assert_int_equal(end_of(pid), 1);
	close_task(fds);
	tw_child_template_end(&t);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_unknown),
};

UNIT_TESTS("child_template", tests)
