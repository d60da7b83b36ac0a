#include "server/decode/preflight_process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/decode/jobs_internal.h"
#include "server/decode/preflight_protocol.h"
#include "server/http/metrics.h"

/* Memory: a zstd window of 128 MiB, the chain, and the program. */
enum { REQUESTS_MAX = 100, CPU_S = 60, MEMORY_BYTES = 512 << 20 };

/* Waits until the process has ended. */
static struct tw_child_end reap(struct tw_preflight_process *p)
{
	struct tw_child_end end = {0};
	json_t *answer = NULL;

	(void)close(p->socket);
	tw_child_wait(&p->child);
	if (tw_child_collect(&p->child, &answer, &end, NULL) == TW_OK)
		json_decref(answer);
	p->is_running = false;
	return end;
}

void tw_preflight_process_end(struct tw_preflight_process *p)
{
	if (!p->is_running)
		return;
	p->child.killed = true;
	tw_child_kill(&p->child);
	(void)reap(p);
}

static json_t *task_of(const struct tw_config *c)
{
	json_t *limits = tw_child_limits(c);

	if (limits) {
		(void)json_object_set_new(limits, "memory_bytes", json_integer(MEMORY_BYTES));
		(void)json_object_set_new(limits, "cpu_s", json_integer(CPU_S));
	}
	return json_pack("{s:s,s:o}", "kind", "preflight", "limits", limits);
}

static enum tw_status start(
        struct tw_preflight_process *p, const struct tw_config *c, struct tw_err *err)
{
	json_t *task = task_of(c);
	int ends[2];
	struct tw_child_task t = {task, -1, -1, NULL, 0, TW_PREFLIGHT_TIMEOUT_S, false};
	enum tw_status st;

	if (!task)
		return tw_oom(err);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		json_decref(task);
		return tw_fail_errno(err, TW_BUSY, "starting a preflight process");
	}
	t.output = ends[1];
	st = tw_child_start(&p->child, &t, err);
	(void)close(ends[1]);
	json_decref(task);
	if (st != TW_OK) {
		(void)close(ends[0]);
		return st;
	}
	p->socket = ends[0];
	p->is_running = true;
	p->requests = 0;
	return TW_OK;
}

/* --- the socket; false when the other end is closed, or at the deadline --- */

static bool wait_for(const struct tw_preflight_process *p, short what)
{
	int64_t left = p->child.deadline_ms - tw_monotonic_ms();
	struct pollfd poll_fd = {.fd = p->socket, .events = what};

	return left > 0 && poll(&poll_fd, 1, (int)left) > 0;
}

static bool send_all(const struct tw_preflight_process *p, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n && wait_for(p, POLLOUT)) {
		ssize_t k = send(p->socket, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool receive_all(const struct tw_preflight_process *p, void *bytes, size_t n)
{
	uint8_t *at = bytes;

	while (n && wait_for(p, POLLIN)) {
		ssize_t k = recv(p->socket, at, n, MSG_DONTWAIT);

		if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool request(struct tw_preflight_process *p, const struct tw_head *head,
        struct tw_preflight_response *ret)
{
	struct tw_preflight_request r;

	memset(&r, 0, sizeof r);
	r.n = (uint32_t)head->n;
	r.window_log = head->window_log;
	r.whole = head->whole;
	(void)snprintf(r.forced, sizeof r.forced, "%s", head->forced ? head->forced->name : "");
	p->requests++;
	p->child.deadline_ms = tw_monotonic_ms() + (int64_t)TW_PREFLIGHT_TIMEOUT_S * 1000;
	return send_all(p, &r, sizeof r) && send_all(p, head->bytes, head->n) &&
	       receive_all(p, ret, sizeof *ret);
}

static bool is_text(const char *p, size_t cap)
{
	return memchr(p, '\0', cap) != NULL;
}

/* False: not a usable response, or the process ran out of memory, of which the decoder has more. */
static bool read_response(const struct tw_preflight_response *a, const struct tw_format **ret)
{
	if (a->status > TW_FULL || a->status == TW_NOMEM || a->status == TW_BUG ||
	        !is_text(a->format, sizeof a->format) || !is_text(a->msg, sizeof a->msg))
		return false;
	*ret = a->format[0] ? tw_format_by_name(tw_str_of(a->format)) : NULL;
	return a->status != TW_OK || *ret;
}

void tw_preflight_process_assign(struct tw_preflight_process *p, const char *project_id)
{
	if (strcmp(p->project_id, project_id) != 0)
		tw_preflight_process_end(p);
	(void)snprintf(p->project_id, sizeof p->project_id, "%s", project_id);
}

/* Returns whether it was killed at the deadline. */
static bool log_end(struct tw_preflight_process *p, struct tw_metrics *metrics)
{
	const struct tw_child_end end = reap(p);

	tw_metrics_death(metrics, end.death);
	tw_log(TW_LOG_WARN, "preflight_process_ended",
	        tw_log_text("reason", tw_death_name(end.death)),
	        tw_log_number("signal", end.signal));
	return p->child.killed;
}

enum outcome { ANSWERED, TIMED_OUT, FAILED };

static enum outcome check_once(struct tw_preflight_process *p, struct tw_metrics *metrics,
        const struct tw_head *head, struct tw_preflight_response *ret,
        const struct tw_format **ret_format)
{
	if (!request(p, head, ret))
		return log_end(p, metrics) ? TIMED_OUT : FAILED;
	if (read_response(ret, ret_format))
		return ANSWERED;
	tw_log(TW_LOG_WARN, "preflight_response_invalid",
	        tw_log_number("status", (int64_t)ret->status));
	tw_preflight_process_end(p);
	*ret_format = NULL;
	return FAILED;
}

bool tw_preflight_process_is_used_up(const struct tw_preflight_process *p)
{
	return p->is_running && p->requests >= REQUESTS_MAX;
}

void tw_preflight_process_replace(struct tw_preflight_process *p, const struct tw_config *c)
{
	tw_preflight_process_end(p);
	(void)start(p, c, NULL); /* the next request tries again */
}

enum tw_status tw_preflight_process_check(struct tw_preflight_process *p, const struct tw_config *c,
        struct tw_metrics *metrics, const struct tw_head *head, const struct tw_format **ret,
        struct tw_err *err)
{
	struct tw_preflight_response a;
	struct tw_err why;
	enum outcome out = FAILED;
	bool is_new = false;

	*ret = NULL;
	p->timed_out = false;
	while (out == FAILED && !is_new) {
		is_new = !p->is_running;
		if (is_new && start(p, c, &why) != TW_OK) {
			tw_log_err(
			        TW_LOG_WARN, "preflight_not_started", "checking an upload", &why);
			return TW_OK;
		}
		out = check_once(p, metrics, head, &a, ret);
	}
	p->timed_out = out == TIMED_OUT;
	if (out != ANSWERED || a.status == TW_OK)
		return TW_OK;
	return tw_fail_at(err, (enum tw_status)a.status, a.offset, "%s", a.msg);
}
