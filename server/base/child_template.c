#include "server/base/child_template.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/child_internal.h"

enum {
	COPIES = 1000, /* of one address layout */
	ANSWER_MS = 10000,
	HIGH_FD = 100
};

void tw_child_template_end(struct tw_child_template *t)
{
	if (!t->pid)
		return;
	(void)close(t->copy_socket);
	(void)kill(t->pid, SIGKILL);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*t = (struct tw_child_template){.tasks = t->tasks};
}

/* Descriptors 0 to 2 are /dev/null, 3 is the socket. */
static int start_on(int child_end, unsigned tasks, pid_t *ret_pid)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[4];
	size_t n = 0;
	int rc;

	while (n < 4) {
		fds[n] = fcntl(n < 3 ? null : child_end, F_DUPFD_CLOEXEC, HIGH_FD);
		if (fds[n] < 0)
			break;
		n++;
	}
	rc = n == 4 ? tw_child_exec(fds, n, tasks ? tasks : 1, ret_pid) : errno;
	while (n)
		(void)close(fds[--n]);
	if (null >= 0)
		(void)close(null);
	return rc;
}

static enum tw_status start(struct tw_child_template *t, struct tw_err *err)
{
	int ends[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return tw_child_fail_errno("starting decoders", err);
	rc = start_on(ends[1], t->tasks, &t->pid);
	(void)close(ends[1]);
	if (rc == 0) {
		t->copy_socket = ends[0];
		return TW_OK;
	}
	t->pid = 0;
	(void)close(ends[0]);
	errno = rc;
	return tw_child_fail_errno("starting decoders", err);
}

static bool send_fds(int copy_socket, const int *fds, size_t n)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * (TW_CHILD_FDS + 1))];
		struct cmsghdr align;
	} control;
	char byte = 0;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
	        .msg_iovlen = 1,
	        .msg_control = control.space,
	        .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *c;
	ssize_t sent;

	memset(&control, 0, sizeof control);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	do
		sent = sendmsg(copy_socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent == 1;
}

/* The pid of the copy or a negative errno; 0: no process has the other end open. */
static int32_t answer_of(int copy_socket)
{
	struct pollfd p = {.fd = copy_socket, .events = POLLIN};
	int32_t answer = 0;
	int rc;

	do
		rc = poll(&p, 1, ANSWER_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc ? -errno : -ETIMEDOUT;
	return recv(copy_socket, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer ? answer
	                                                                                : 0;
}

/* One attempt with a running template. Returns as answer_of; 0: no process has the descriptors, and
 * none will get them. */
static int32_t copy_once(
        struct tw_child_template *t, int fds[TW_CHILD_FDS + 1], size_t n, bool background)
{
	const char go = 0;
	int ends[2];
	int32_t answer;
	bool sent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fds[n] = ends[1];
	sent = send_fds(t->copy_socket, fds, n + 1);
	(void)close(ends[1]);
	answer = sent ? answer_of(ends[0]) : 0;
	if (answer == -ETIMEDOUT) { /* a late copy may still exist, and will report its pid */
		tw_child_template_end(t);
		answer = answer_of(ends[0]);
	} else if (answer == 0) {
		tw_child_template_end(t);
	}
	if (answer > 0 && background)
		tw_child_to_background(answer);
	if (answer > 0)
		(void)send(ends[0], &go, 1, MSG_NOSIGNAL);
	(void)close(ends[0]); /* a copy that has received no byte ends */
	return answer;
}

enum tw_status tw_child_template_copy(struct tw_child_template *t, const int *fds, size_t n,
        bool background, pid_t *ret_pid, struct tw_err *err)
{
	int all[TW_CHILD_FDS + 1];
	int32_t answer = 0;

	if (n > TW_CHILD_FDS)
		return tw_fail(err, TW_BUG, "too many descriptors");
	memcpy(all, fds, n * sizeof *fds);
	if (t->copies >= COPIES)
		tw_child_template_end(t);
	for (int attempt = 0; answer == 0 && attempt < 2; attempt++) {
		enum tw_status st = t->pid ? TW_OK : start(t, err);

		if (st != TW_OK)
			return st;
		answer = copy_once(t, all, n, background);
	}
	if (answer > 0) {
		t->copies += t->pid != 0;
		*ret_pid = answer;
		return TW_OK;
	}
	errno = answer ? -answer : EAGAIN;
	return tw_child_fail_errno("starting a decoder", err);
}
