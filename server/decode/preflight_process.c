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
#include "server/decode/preflight_line.h"
#include "server/http/metrics.h"

/* Memory: a zstd window of 128 MiB, the chain, and the program. */
enum { QUESTIONS = 100, CPU_S = 60, MEMORY_BYTES = 512 << 20 };

/* How it ended; it is gone afterwards. */
static struct tw_child_end end_judge(struct tw_preflight *j)
{
	struct tw_child_end end = {0};
	json_t *answer = NULL;

	(void)close(j->line);
	tw_child_wait(&j->child);
	if (tw_child_collect(&j->child, &answer, &end, NULL) == TW_OK)
		json_decref(answer);
	j->there = false;
	return end;
}

void tw_preflight_dismiss(struct tw_preflight *j)
{
	if (!j->there)
		return;
	j->child.killed = true;
	tw_child_kill(&j->child);
	(void)end_judge(j);
}

static json_t *judge_task(const struct tw_config *c)
{
	json_t *limits = tw_child_limits(c);

	if (limits) {
		(void)json_object_set_new(limits, "memory_bytes", json_integer(MEMORY_BYTES));
		(void)json_object_set_new(limits, "cpu_s", json_integer(CPU_S));
	}
	return json_pack("{s:s,s:o}", "kind", "judge", "limits", limits);
}

static enum tw_status appoint(struct tw_preflight *j, const struct tw_config *c, struct tw_err *err)
{
	json_t *task = judge_task(c);
	int ends[2];
	struct tw_child_task t = {task, -1, -1, NULL, 0, TW_PREFLIGHT_PATIENCE_S, false};
	enum tw_status st;

	if (!task)
		return tw_oom(err);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		json_decref(task);
		return tw_fail_errno(err, TW_BUSY, "no line to a judge");
	}
	t.output = ends[1];
	st = tw_child_start(&j->child, &t, err);
	(void)close(ends[1]);
	json_decref(task);
	if (st != TW_OK) {
		(void)close(ends[0]);
		return st;
	}
	j->line = ends[0];
	j->there = true;
	j->asked = 0;
	return TW_OK;
}

/* --- the line; false when the other end is gone, or silent until the deadline --- */

static bool ready(const struct tw_preflight *j, short what)
{
	int64_t left = j->child.deadline_ms - tw_monotonic_ms();
	struct pollfd p = {.fd = j->line, .events = what};

	return left > 0 && poll(&p, 1, (int)left) > 0;
}

static bool tell(const struct tw_preflight *j, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n && ready(j, POLLOUT)) {
		ssize_t k = send(j->line, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool hear(const struct tw_preflight *j, void *p, size_t n)
{
	uint8_t *at = p;

	while (n && ready(j, POLLIN)) {
		ssize_t k = recv(j->line, at, n, MSG_DONTWAIT);

		if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool ask(struct tw_preflight *j, const struct tw_head *head, struct tw_preflight_answer *ret)
{
	struct tw_preflight_question q;

	memset(&q, 0, sizeof q);
	q.n = (uint32_t)head->n;
	q.window_log = head->window_log;
	q.whole = head->whole;
	(void)snprintf(q.forced, sizeof q.forced, "%s", head->forced ? head->forced->name : "");
	j->asked++;
	j->child.deadline_ms = tw_monotonic_ms() + (int64_t)TW_PREFLIGHT_PATIENCE_S * 1000;
	return tell(j, &q, sizeof q) && tell(j, head->bytes, head->n) && hear(j, ret, sizeof *ret);
}

static bool is_text(const char *p, size_t cap)
{
	return memchr(p, '\0', cap) != NULL;
}

/* False: not a usable answer, or it ran out of memory; the decoder has more. */
static bool read_answer(const struct tw_preflight_answer *a, const struct tw_format **ret)
{
	if (a->status > TW_FULL || a->status == TW_NOMEM || a->status == TW_BUG ||
	        !is_text(a->format, sizeof a->format) || !is_text(a->msg, sizeof a->msg))
		return false;
	*ret = a->format[0] ? tw_format_by_name(tw_str_of(a->format)) : NULL;
	return a->status != TW_OK || *ret;
}

void tw_preflight_assign(struct tw_preflight *j, const char *project_id)
{
	if (strcmp(j->project_id, project_id) != 0)
		tw_preflight_dismiss(j);
	(void)snprintf(j->project_id, sizeof j->project_id, "%s", project_id);
}

/* True: it was killed for its silence. */
static bool died(struct tw_preflight *j, struct tw_metrics *metrics)
{
	const struct tw_child_end end = end_judge(j);

	tw_metrics_death(metrics, end.death);
	tw_log(TW_LOG_WARN, "judge_died", tw_log_text("reason", tw_death_word(end.death)),
	        tw_log_number("signal", end.signal));
	return j->child.killed;
}

enum outcome { ANSWERED, SILENT, SPOILT };

static enum outcome ask_one(struct tw_preflight *j, struct tw_metrics *metrics,
        const struct tw_head *head, struct tw_preflight_answer *ret,
        const struct tw_format **ret_format)
{
	if (!ask(j, head, ret))
		return died(j, metrics) ? SILENT : SPOILT;
	if (read_answer(ret, ret_format))
		return ANSWERED;
	tw_log(TW_LOG_WARN, "judge_dismissed", tw_log_number("status", (int64_t)ret->status));
	tw_preflight_dismiss(j);
	*ret_format = NULL;
	return SPOILT;
}

bool tw_preflight_is_worn(const struct tw_preflight *j)
{
	return j->there && j->asked >= QUESTIONS;
}

void tw_preflight_renew(struct tw_preflight *j, const struct tw_config *c)
{
	tw_preflight_dismiss(j);
	(void)appoint(j, c, NULL); /* the next question tries again */
}

enum tw_status tw_preflight_ask(struct tw_preflight *j, const struct tw_config *c,
        struct tw_metrics *metrics, const struct tw_head *head, const struct tw_format **ret,
        struct tw_err *err)
{
	struct tw_preflight_answer a;
	struct tw_err why;
	enum outcome out = SPOILT;
	bool fresh = false;

	*ret = NULL;
	j->silent = false;
	while (out == SPOILT && !fresh) {
		fresh = !j->there;
		if (fresh && appoint(j, c, &why) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "no_judge", "looking at an upload", &why);
			return TW_OK;
		}
		out = ask_one(j, metrics, head, &a, ret);
	}
	j->silent = out == SILENT;
	if (out != ANSWERED || a.status == TW_OK)
		return TW_OK;
	return tw_fail_at(err, (enum tw_status)a.status, a.offset, "%s", a.msg);
}
