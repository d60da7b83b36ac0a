/*
 * judge.c - the judges of a server: started when they are needed, asked in turns, replaced.
 *
 * A judge that is silent for too long is killed, one that died is told in the log and counted; both
 * are replaced by the next question, and a judge that has seen many heads is too.  Its answer is a
 * stranger's word: a status that is none, a format that is none or a text without an end are as if
 * it had died.
 */
#include "judge.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "child.h"
#include "clock.h"
#include "jobs_internal.h"
#include "judge_line.h"
#include "log.h"
#include "metrics.h"

/* Memory: a zstd window of 128 MiB, the chain, and the program. */
enum { JUDGES = 4, QUESTIONS = 100, PATIENCE_S = 15, CPU_S = 60, MEMORY_BYTES = 512 << 20 };

struct judge {
	bool busy, there;
	unsigned asked;
	int line;
	struct tw_child child;
};

struct tw_judges {
	const struct tw_config *config;
	struct tw_metrics *metrics;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct judge judges[JUDGES];
};

struct tw_judges *tw_judges_new(const struct tw_config *c, struct tw_metrics *metrics)
{
	struct tw_judges *js = tw_mem_zalloc(1, sizeof *js);

	if (!js)
		return NULL;
	js->config = c;
	js->metrics = metrics;
	(void)pthread_mutex_init(&js->lock, NULL);
	(void)pthread_cond_init(&js->idle, NULL);
	return js;
}

/* How it ended; it is gone afterwards. */
static struct tw_child_end end_judge(struct judge *j)
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

static void dismiss(struct judge *j)
{
	if (!j->there)
		return;
	j->child.killed = true;
	tw_child_kill(&j->child);
	(void)end_judge(j);
}

struct tw_judges *tw_judges_free(struct tw_judges *js)
{
	if (!js)
		return NULL;
	for (size_t i = 0; i < JUDGES; i++)
		dismiss(&js->judges[i]);
	(void)pthread_cond_destroy(&js->idle);
	(void)pthread_mutex_destroy(&js->lock);
	tw_mem_free(js);
	return NULL;
}

static json_t *judge_task(const struct tw_config *c)
{
	json_t *limits = tw_jobs_limits(c);

	if (limits) {
		(void)json_object_set_new(limits, "memory_bytes", json_integer(MEMORY_BYTES));
		(void)json_object_set_new(limits, "cpu_s", json_integer(CPU_S));
	}
	return json_pack("{s:s,s:o}", "kind", "judge", "limits", limits);
}

static enum tw_status appoint(struct judge *j, const struct tw_config *c, struct tw_err *err)
{
	json_t *task = judge_task(c);
	int ends[2];
	struct tw_child_task t = {task, -1, -1, NULL, 0, PATIENCE_S};
	enum tw_status st;

	if (!task)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for a judge");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		json_decref(task);
		return tw_fail(err, TW_BUSY, TW_NO_OFFSET, "no line to a judge (errno %d)", errno);
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

static bool ready(const struct judge *j, short what)
{
	int64_t left = j->child.deadline_ms - tw_monotonic_ms();
	struct pollfd p = {.fd = j->line, .events = what};

	return left > 0 && poll(&p, 1, (int)left) > 0;
}

static bool tell(const struct judge *j, const void *p, size_t n)
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

static bool hear(const struct judge *j, void *p, size_t n)
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

static bool ask(struct judge *j, const struct tw_head *head, struct tw_judge_answer *ret)
{
	struct tw_judge_question q;

	memset(&q, 0, sizeof q);
	q.n = (uint32_t)head->n;
	q.window_log = head->window_log;
	q.whole = head->whole;
	(void)snprintf(q.forced, sizeof q.forced, "%s", head->forced ? head->forced->name : "");
	j->asked++;
	j->child.deadline_ms = tw_monotonic_ms() + (int64_t)PATIENCE_S * 1000;
	return tell(j, &q, sizeof q) && tell(j, head->bytes, head->n) && hear(j, ret, sizeof *ret);
}

static bool is_text(const char *p, size_t cap)
{
	return memchr(p, '\0', cap) != NULL;
}

/* False: no judge says so, or it could not look; the decoder of the whole has more memory. */
static bool read_answer(const struct tw_judge_answer *a, const struct tw_format **ret)
{
	if (a->status > TW_FULL || a->status == TW_NOMEM || a->status == TW_BUG ||
	        !is_text(a->format, sizeof a->format) || !is_text(a->msg, sizeof a->msg))
		return false;
	*ret = a->format[0] ? tw_format_by_name(tw_str_of(a->format)) : NULL;
	return a->status != TW_OK || *ret;
}

/* --- one of them --- */

static struct judge *pick(struct tw_judges *js)
{
	struct judge *found = NULL;

	for (size_t i = 0; i < JUDGES; i++) { /* one that is there, before one that must be made */
		struct judge *j = &js->judges[i];

		if (!j->busy && (!found || (j->there && !found->there)))
			found = j;
	}
	return found;
}

static struct judge *take(struct tw_judges *js)
{
	struct judge *j;

	(void)pthread_mutex_lock(&js->lock);
	while (!(j = pick(js)))
		(void)pthread_cond_wait(&js->idle, &js->lock);
	j->busy = true;
	(void)pthread_mutex_unlock(&js->lock);
	return j;
}

static void release(struct tw_judges *js, struct judge *j)
{
	(void)pthread_mutex_lock(&js->lock);
	j->busy = false;
	(void)pthread_cond_signal(&js->idle);
	(void)pthread_mutex_unlock(&js->lock);
}

static void died(struct tw_judges *js, struct judge *j)
{
	const struct tw_child_end end = end_judge(j);

	tw_metrics_death(js->metrics, end.death);
	tw_log(TW_LOG_WARN, "judge_died", tw_log_text("reason", tw_death_word(end.death)),
	        tw_log_number("signal", end.signal));
}

static enum tw_status look(struct tw_judges *js, struct judge *j, const struct tw_head *head,
        const struct tw_format **ret, struct tw_err *err)
{
	struct tw_judge_answer a;
	struct tw_err why;

	if (j->there && j->asked >= QUESTIONS)
		dismiss(j);
	if (!j->there && appoint(j, js->config, &why) != TW_OK) {
		tw_log_err(TW_LOG_WARN, "no_judge", "looking at an upload", &why);
		return TW_OK;
	}
	if (!ask(j, head, &a)) {
		died(js, j);
		return TW_OK;
	}
	if (!read_answer(&a, ret)) {
		tw_log(TW_LOG_WARN, "judge_dismissed", tw_log_number("status", (int64_t)a.status));
		dismiss(j);
		*ret = NULL;
		return TW_OK;
	}
	return a.status == TW_OK ? TW_OK
	                         : tw_fail(err, (enum tw_status)a.status, a.offset, "%s", a.msg);
}

enum tw_status tw_judges_look(struct tw_judges *js, const struct tw_head *head,
        const struct tw_format **ret, struct tw_err *err)
{
	struct judge *j;
	enum tw_status st;

	*ret = NULL;
	if (!js)
		return TW_OK;
	j = take(js);
	st = look(js, j, head, ret, err);
	release(js, j);
	return st;
}
