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
#include "server/decode/worker.h"

enum { LINE_FD = 3, HIGH_FD = 100 };

/* The number of descriptors of the next task; 0: there is none. */
static size_t receive(int fds[TW_CHILD_FDS])
{
	union {
		char room[CMSG_SPACE(sizeof(int) * TW_CHILD_FDS)];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
	        .msg_iovlen = 1,
	        .msg_control = control.room,
	        .msg_controllen = sizeof control.room};
	struct cmsghdr *c;
	ssize_t got;
	size_t n;

	do
		got = recvmsg(LINE_FD, &m, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	c = got == 1 && !(m.msg_flags & MSG_CTRUNC) ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return n;
}

/* The task's descriptors become 0, 1, ...; there are no others, as the template has only its own.
 */
static bool place(const int *fds, size_t n)
{
	int high[TW_CHILD_FDS];
	size_t copied = 0;
	bool done = n > LINE_FD;

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

int tw_worker_template(void)
{
	int fds[TW_CHILD_FDS];
	size_t n;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return 1;
	while ((n = receive(fds)) > 0) {
		int32_t pid = copy();

		if (pid == 0) /* without the exit handlers of all libraries: there is nothing to
		                 flush */
			_exit(place(fds, n) ? tw_worker_main() : 1);
		while (n)
			(void)close(fds[--n]);
		if (send(LINE_FD, &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid)
			return 1;
	}
	return 0;
}
