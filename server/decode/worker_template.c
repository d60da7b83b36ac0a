/*
 * worker_template.c - the process that is copied for each task (server/base/child_template.h).
 *
 * It reads no byte of a task or an input, so its copies know nothing of each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/file/crash_point.h"
#include "server/decode/worker.h"

enum { SOCKET_FD = 3, HIGH_FD = 100 };

/* Receives the descriptors of the next task, of which the last is its socket. Returns their number;
 * 0: the server has ended. */
static size_t receive(int fds[TW_CHILD_FDS + 1])
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * (TW_CHILD_FDS + 1))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof control.bytes};
	struct cmsghdr *c;
	ssize_t got;
	size_t n;

	do
		got = recvmsg(SOCKET_FD, &m, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	c = got == 1 && !(m.msg_flags & MSG_CTRUNC) ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return n;
}

/* Renumbers the task's descriptors to 0, 1, ... There are no others, as the template has only its
 * own. */
static bool renumber(const int *fds, size_t n)
{
	int high[TW_CHILD_FDS];
	size_t copied = 0;
	bool done = n > SOCKET_FD;

	while (done && copied < n) {
		high[copied] = fcntl(fds[copied], F_DUPFD_CLOEXEC, HIGH_FD);
		done = high[copied] >= 0;
		copied += done;
	}
	for (size_t i = 0; done && i < n; i++)
		done = dup2(high[i], (int)i) == (int)i;
	for (size_t i = 0; i < copied; i++)
		(void)close(high[i]);
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= (int)n)
			(void)close(fds[i]);
	return done;
}

/* Not fork(): the copy is a child of the server, which waits for it. */
static int32_t copy(void)
{
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);

	return pid < 0 ? -errno : (int32_t)pid;
}

static bool send_number(int server_socket, int32_t answer)
{
	return send(server_socket, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

/* Whether the server knows this copy, and so waits for it, limits it and starts no other for the
 * task. The copy itself sends its pid: the template might end before it could. */
static bool is_started(int server_socket)
{
	char start;
	ssize_t got;

	if (!send_number(server_socket, (int32_t)getpid()))
		return false;
	do
		got = recv(server_socket, &start, 1, 0);
	while (got < 0 && errno == EINTR);
	(void)close(server_socket);
	return got == 1;
}

int tw_worker_template(size_t traces)
{
	int fds[TW_CHILD_FDS + 1];
	size_t n;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return 1;
	tw_worker_prepare(traces);
	while ((n = receive(fds)) > 0) {
		int32_t pid = copy();

		if (pid == 0) /* skips the exit handlers of all libraries: nothing needs flushing */
			_exit(is_started(fds[n - 1]) && renumber(fds, n - 1) ? tw_worker_main()
			                                                     : 1);
		tw_crash_point("decoder_copied");
		if (pid < 0)
			(void)send_number(fds[n - 1], pid);
		while (n)
			(void)close(fds[--n]);
	}
	return 0;
}
