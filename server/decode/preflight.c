/*
 * preflight.c - the preflight processes of a server: which one checks an upload, and how long
 * callers wait.
 *
 * Separate threads send heads to the processes, AT_ONCE at a time; the caller fetches the result
 * later. Without a result in time the upload is accepted without a preflight, so uploads that make
 * processes hang delay others by START_MS at most; a project that has sent one is not checked for
 * SKIP_MS, or its next upload would delay them again.  A process checks uploads of one project
 * only, so that data of an earlier upload in its memory can leak only to the same project.  KEPT
 * processes remain for the next upload; the longest idle one is replaced by another project's.
 */
#include "server/decode/preflight.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/cond.h"
#include "server/base/thread/pool.h"
#include "server/base/ulid.h"
#include "server/http/metrics.h"

/* --- one process --- */

/* It checks uploads of one project, one after the other, and is started by the first request.  A
 * process that does not answer in time is killed; one that died is logged and counted.  Its
 * response is untrusted: an invalid status, an unknown format or an unterminated text counts as the
 * end of the process. */

/* Seconds that one check may take. */
enum { TIMEOUT_S = 5 };

struct process {
	bool busy, is_running;
	bool timed_out; /* it did not answer the last request and was killed */
	unsigned requests;
	int64_t used; /* sequence number of the last selection */
	int socket;
	char project_id[TW_ID_BYTES]; /* whose uploads it has read */
	struct tw_child child;
};

/* Memory: a zstd window of 128 MiB, the chain, and the program. */
enum { REQUESTS_MAX = 500, CPU_S = 60, MEMORY_BYTES = 512 << 20 };

/* Waits until the process has ended. */
static struct tw_child_end reap(struct process *p)
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

static void process_end(struct process *p)
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

static enum tw_status start(struct process *p, const struct tw_config *c, struct tw_err *err)
{
	json_t *task = task_of(c);
	int ends[2];
	struct tw_child_task t = {.task = task, .second = -1, .wall_s = TIMEOUT_S};
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

static bool socket_is_ready(const struct process *p, short what)
{
	int64_t left = p->child.deadline_ms - tw_monotonic_ms();
	struct pollfd poll_fd = {.fd = p->socket, .events = what};

	return left > 0 && poll(&poll_fd, 1, (int)left) > 0;
}

static bool send_all(const struct process *p, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n && socket_is_ready(p, POLLOUT)) {
		ssize_t k = send(p->socket, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool receive_all(const struct process *p, void *bytes, size_t n)
{
	uint8_t *at = bytes;

	while (n && socket_is_ready(p, POLLIN)) {
		ssize_t k = recv(p->socket, at, n, MSG_DONTWAIT);

		if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		at += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static bool request(
        struct process *p, const struct tw_head *head, struct tw_preflight_response *ret)
{
	struct tw_preflight_request r;

	memset(&r, 0, sizeof r);
	r.n = (uint32_t)head->n;
	r.window_log = head->window_log;
	r.whole = head->whole;
	(void)snprintf(r.forced, sizeof r.forced, "%s", head->forced ? head->forced->name : "");
	p->requests++;
	p->child.deadline_ms = tw_monotonic_ms() + (int64_t)TIMEOUT_S * 1000;
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

/* From now on it checks uploads of this project.  A process that has read another project's uploads
 * is ended. */
static void process_assign(struct process *p, const char *project_id)
{
	if (strcmp(p->project_id, project_id) != 0)
		process_end(p);
	(void)snprintf(p->project_id, sizeof p->project_id, "%s", project_id);
}

/* Returns whether it was killed at the deadline. */
static bool log_end(struct process *p, struct tw_metrics *metrics)
{
	const struct tw_child_end end = reap(p);

	tw_metrics_death(metrics, end.death);
	tw_log(TW_LOG_WARN, "preflight_process_ended",
	        tw_log_text("reason", tw_death_name(end.death)),
	        tw_log_number("signal", end.signal));
	return p->child.killed;
}

enum outcome { ANSWERED, TIMED_OUT, FAILED };

static enum outcome check_once(struct process *p, struct tw_metrics *metrics,
        const struct tw_head *head, struct tw_preflight_response *ret,
        const struct tw_format **ret_format)
{
	if (!request(p, head, ret))
		return log_end(p, metrics) ? TIMED_OUT : FAILED;
	if (read_response(ret, ret_format))
		return ANSWERED;
	tw_log(TW_LOG_WARN, "preflight_response_invalid",
	        tw_log_number("status", (int64_t)ret->status));
	process_end(p);
	*ret_format = NULL;
	return FAILED;
}

/* It has answered as many requests as one process may. */
static bool process_is_used_up(const struct process *p)
{
	return p->is_running && p->requests >= REQUESTS_MAX;
}

/* Call after the answer is delivered: a new process takes longer to start than an upload otherwise
 * waits. */
static void process_replace(struct process *p, const struct tw_config *c)
{
	process_end(p);
	(void)start(p, c, NULL); /* the next request tries again */
}

/* As tw_preflight_end.  If a process that answered earlier requests fails, a new process checks the
 * upload again: the earlier requests may have used up its CPU time or memory. */
static enum tw_status process_check(struct process *p, const struct tw_config *c,
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

/* KEPT > AT_ONCE: one is always free.  CHECK_MS: a check, and a second one by a new process. */
enum { AT_ONCE = 4, KEPT = 16, START_MS = 2000, CHECK_MS = (TIMEOUT_S + 1) * 1000 };

/* QUEUED: more would not be checked in time, and each holds a copy of an upload's first bytes. */
enum { SKIP_MS = 60000, SKIPPED = 32, QUEUED = 256 };

struct skipped_project {
	char project_id[TW_ID_BYTES];
	int64_t until_ms; /* CLOCK_MONOTONIC */
};

struct tw_preflights {
	const struct tw_config *config;
	struct tw_metrics *metrics;
	struct tw_pool *pool;
	pthread_mutex_t lock; /* of the members below, and of preflights */
	pthread_cond_t done;
	unsigned queued; /* preflights that no thread has taken yet */
	int64_t turns;
	struct process processes[KEPT];
	struct skipped_project skipped[SKIPPED]; /* the oldest makes room */
	unsigned next_skipped;
};

/* Its head is a copy: the caller may have cancelled before it is read. */
struct tw_preflight {
	struct tw_pool_task task; /* first: the pool passes it to run() */
	struct tw_preflights *of;
	char project_id[TW_ID_BYTES];
	struct tw_head head;
	int64_t until_ms; /* CLOCK_MONOTONIC; the end of all waits */
	bool is_done;
	bool is_cancelled; /* no caller waits: the thread that runs it frees it */
	enum tw_status status;
	const struct tw_format *format;
	struct tw_err err;
	uint8_t bytes[];
};

struct tw_preflights *tw_preflights_new(const struct tw_config *c, struct tw_metrics *metrics)
{
	struct tw_preflights *ps = tw_mem_zalloc(1, sizeof *ps);

	if (!ps)
		return NULL;
	ps->config = c;
	ps->metrics = metrics;
	(void)pthread_mutex_init(&ps->lock, NULL);
	tw_cond_init(&ps->done);
	if (tw_pool_start(AT_ONCE, &ps->pool, NULL) != TW_OK)
		return tw_preflights_free(ps);
	return ps;
}

struct tw_preflights *tw_preflights_free(struct tw_preflights *ps)
{
	if (!ps)
		return NULL;
	ps->pool = tw_pool_stop(ps->pool);
	for (size_t i = 0; i < KEPT; i++)
		process_end(&ps->processes[i]);
	(void)pthread_cond_destroy(&ps->done);
	(void)pthread_mutex_destroy(&ps->lock);
	tw_mem_free(ps);
	return NULL;
}

/* --- choosing a process, with the lock held --- */

/* The project's own process before a new one, and that before ending another project's. */
static int preference(const struct process *process, const char *project_id)
{
	if (!process->is_running)
		return 1;
	return strcmp(process->project_id, project_id) == 0 ? 2 : 0;
}

static struct process *take_process(struct tw_preflights *ps, const char *project_id)
{
	struct process *best = NULL;

	for (size_t i = 0; i < KEPT; i++) {
		struct process *process = &ps->processes[i];
		int better;

		if (process->busy) /* its other members belong to the thread that uses it */
			continue;
		better = best ? preference(process, project_id) - preference(best, project_id) : 1;
		if (better > 0 || (better == 0 && process->used < best->used))
			best = process;
	}
	best->busy = true;
	best->used = ++ps->turns;
	return best;
}

static bool is_skipped(const struct tw_preflights *ps, const char *project_id)
{
	int64_t now = tw_monotonic_ms();

	for (size_t i = 0; i < SKIPPED; i++)
		if (now < ps->skipped[i].until_ms &&
		        strcmp(ps->skipped[i].project_id, project_id) == 0)
			return true;
	return false;
}

static void skip(struct tw_preflights *ps, const char *project_id)
{
	struct skipped_project *s = &ps->skipped[ps->next_skipped++ % SKIPPED];

	(void)snprintf(s->project_id, sizeof s->project_id, "%s", project_id);
	s->until_ms = tw_monotonic_ms() + SKIP_MS;
	tw_log(TW_LOG_WARN, "preflight_skips_project", tw_log_text("project", project_id),
	        tw_log_number("ms", SKIP_MS));
}

/* --- a preflight --- */

/* Returns the process that was used, which stays busy. */
static struct process *check(struct tw_preflight *p)
{
	struct tw_preflights *ps = p->of;
	struct process *process = take_process(ps, p->project_id);

	p->until_ms = tw_monotonic_ms() + CHECK_MS;
	(void)pthread_mutex_unlock(&ps->lock);
	process_assign(process, p->project_id);
	p->status = process_check(process, ps->config, ps->metrics, &p->head, &p->format, &p->err);
	(void)pthread_mutex_lock(&ps->lock);
	if (process->timed_out && !is_skipped(ps, p->project_id))
		skip(ps, p->project_id);
	return process;
}

/* Called before the lock is released, so that the project's next upload finds the process idle.  A
 * process that is used up is replaced first, without the lock. */
static void release(struct tw_preflights *ps, struct process *process)
{
	if (process_is_used_up(process)) {
		(void)pthread_mutex_unlock(&ps->lock);
		process_replace(process, ps->config);
		(void)pthread_mutex_lock(&ps->lock);
	}
	process->busy = false;
}

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_preflight *p = (struct tw_preflight *)task;
	struct tw_preflights *ps = p->of;
	struct process *used = NULL;
	bool is_cancelled;

	(void)pthread_mutex_lock(&ps->lock);
	ps->queued--;
	if (!stopping && !p->is_cancelled && tw_monotonic_ms() < p->until_ms &&
	        !is_skipped(ps, p->project_id))
		used = check(p);
	p->is_done = true;
	is_cancelled = p->is_cancelled; /* if not, it may be freed from here on */
	(void)pthread_cond_broadcast(&ps->done);
	if (used)
		release(ps, used);
	(void)pthread_mutex_unlock(&ps->lock);
	if (is_cancelled)
		tw_mem_free(p);
}

static bool may_queue(struct tw_preflights *ps)
{
	bool may;

	(void)pthread_mutex_lock(&ps->lock);
	may = ps->queued < QUEUED;
	ps->queued += may;
	(void)pthread_mutex_unlock(&ps->lock);
	return may;
}

static void unqueue(struct tw_preflights *ps)
{
	(void)pthread_mutex_lock(&ps->lock);
	ps->queued--;
	(void)pthread_mutex_unlock(&ps->lock);
}

enum tw_status tw_preflight_begin(struct tw_preflights *ps, const char *project_id,
        const struct tw_head *head, struct tw_preflight **ret, struct tw_err *err)
{
	struct tw_preflight *p;

	*ret = NULL;
	if (!ps || !may_queue(ps))
		return TW_OK;
	p = tw_mem_zalloc(1, sizeof *p + head->n);
	if (!p) {
		unqueue(ps);
		return tw_oom(err);
	}
	p->task.run = run;
	p->of = ps;
	(void)snprintf(p->project_id, sizeof p->project_id, "%s", project_id);
	p->task.owner = p->project_id;
	memcpy(p->bytes, head->bytes, head->n);
	p->head = *head;
	p->head.bytes = p->bytes;
	p->until_ms = tw_monotonic_ms() + START_MS;
	if (!tw_pool_submit(ps->pool, &p->task)) {
		unqueue(ps);
		tw_mem_free(p); /* the server is shutting down */
		return TW_OK;
	}
	*ret = p;
	return TW_OK;
}

bool tw_preflight_is_done(const struct tw_preflight *p)
{
	bool is_done;

	(void)pthread_mutex_lock(&p->of->lock);
	is_done = p->is_done;
	(void)pthread_mutex_unlock(&p->of->lock);
	return is_done;
}

struct tw_preflight *tw_preflight_cancel(struct tw_preflight *p)
{
	bool is_done;

	if (!p)
		return NULL;
	(void)pthread_mutex_lock(&p->of->lock);
	is_done = p->is_done;
	p->is_cancelled = true;
	(void)pthread_mutex_unlock(&p->of->lock);
	if (is_done)
		tw_mem_free(p);
	return NULL;
}

enum tw_status tw_preflight_end(
        struct tw_preflight *p, const struct tw_format **ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret = NULL;
	if (!p)
		return TW_OK;
	(void)pthread_mutex_lock(&p->of->lock);
	/* the deadline is read each time, because it is set when the request is sent */
	while (!p->is_done && tw_monotonic_ms() < p->until_ms)
		(void)tw_cond_wait_until(&p->of->done, &p->of->lock, p->until_ms);
	(void)pthread_mutex_unlock(&p->of->lock);
	if (tw_preflight_is_done(p)) {
		st = p->status;
		*ret = p->format;
	}
	if (st != TW_OK)
		tw_err_copy(err, &p->err);
	(void)tw_preflight_cancel(p);
	return st;
}
