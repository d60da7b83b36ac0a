#include "source_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "jobs_internal.h"
#include "json_memory.h"
#include "log.h"

enum {
	CHILDREN_MAX = 2,
	WAITING_MAX = 1,
	WAIT_MS = 3000,
	LEAST_MS = 500,
	MOST_MS = 8000,
	CPU_S = 10,
	KEPT_MAX = 256,
	KEPT_MS = 300000,
	FAILED_MS = 60000, /* a death or a deadline, which would cost as much again */
	ANSWER_BYTES = 64 << 10,
	PATH_BYTES = 512
};
#define MEMORY_BYTES ((json_int_t)2 << 30)

/* An answer that was given before. */
struct kept {
	char *question; /* with what the clone looked like; NULL: free */
	json_t *answer;
	int64_t until_ms, used_ms;
};

struct tw_sources {
	const struct tw_config *config;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	unsigned running, waiting;
	struct kept kept[KEPT_MAX];
};

struct tw_sources *tw_sources_new(const struct tw_config *config)
{
	struct tw_sources *s = tw_mem_zalloc(1, sizeof *s);
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	s->config = config;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->freed, &attr);
	(void)pthread_condattr_destroy(&attr);
	return s;
}

static void forget(struct kept *k)
{
	free(k->question);
	json_decref(k->answer);
	*k = (struct kept){0};
}

struct tw_sources *tw_sources_free(struct tw_sources *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < KEPT_MAX; i++)
		forget(&s->kept[i]);
	(void)pthread_cond_destroy(&s->freed);
	(void)pthread_mutex_destroy(&s->lock);
	tw_mem_free(s);
	return NULL;
}

/* --- the clone --- */

bool tw_sources_is_folder(const char *name)
{
	size_t len =
	        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len > 0 && len <= 128 && name[len] == '\0' && name[0] != '.';
}

static enum tw_status no_clone(const char *project, const char *clone, int why, struct tw_err *err)
{
	if (why == EXDEV || why == ELOOP)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "the clone %.60s is a link that leads out of the server's --repositories",
		        clone);
	if (why == EACCES)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        "the server may not read the clone %.60s", clone);
	return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
	        "there is no clone %.60s/%.60s in the server's --repositories: ask whoever runs it",
	        project, clone);
}

enum tw_status tw_sources_open(
        const char *dir, const char *project, const char *clone, int *ret, struct tw_err *err)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	char path[PATH_BYTES];
	int below = *dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	long fd;
	int why;

	if (below < 0)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET,
		        *dir ? "the server's --repositories cannot be read: ask whoever runs it"
		             : "the server has no clones: whoever runs it gives it --repositories");
	if (!tw_sources_is_folder(project) || !tw_sources_is_folder(clone)) {
		(void)close(below);
		return no_clone(project, clone, ENOENT, err);
	}
	(void)snprintf(path, sizeof path, "%s/%s", project, clone);
	fd = syscall(SYS_openat2, below, path, &how, sizeof how);
	why = errno;
	(void)close(below);
	if (fd < 0)
		return no_clone(project, clone, why, err);
	*ret = (int)fd;
	return TW_OK;
}

/* Changes when the clone does: its refs are files and folders that git replaces. */
static uint64_t stamp(int clone)
{
	static const char *const files[] = {"HEAD", "packed-refs", "FETCH_HEAD", "shallow",
	        "refs/heads", "refs/tags", "refs/remotes/origin", "objects/pack"};
	static const char *const in[] = {"", ".git/"};
	uint64_t sum = 0;
	char path[64];
	struct stat st;

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
			(void)snprintf(path, sizeof path, "%s%s", in[i], files[k]);
			if (fstatat(clone, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
				sum = sum * 1000003 + (uint64_t)st.st_mtim.tv_sec * 1000000000u +
				      (uint64_t)st.st_mtim.tv_nsec;
		}
	return sum;
}

/* --- answers kept; the lock is held --- */

static json_t *recall(struct tw_sources *s, const char *question)
{
	int64_t now = tw_monotonic_ms();

	for (size_t i = 0; i < KEPT_MAX; i++) {
		struct kept *k = &s->kept[i];

		if (!k->question || strcmp(k->question, question) != 0)
			continue;
		if (now >= k->until_ms) {
			forget(k);
			return NULL;
		}
		k->used_ms = now;
		return json_deep_copy(k->answer);
	}
	return NULL;
}

/* 0: not at all. */
static int64_t lasts_ms(const json_t *answer)
{
	const char *status = json_string_value(json_object_get(answer, "status"));

	if (!status || strcmp(status, "not_found") == 0 || strcmp(status, "too_large") == 0)
		return KEPT_MS;
	return strcmp(status, "deadline") == 0 || strcmp(status, "corrupt") == 0 ? FAILED_MS : 0;
}

static void keep(struct tw_sources *s, const char *question, const json_t *answer)
{
	struct kept *to = &s->kept[0];
	int64_t now = tw_monotonic_ms();

	if (lasts_ms(answer) == 0 || json_dumpb(answer, NULL, 0, JSON_COMPACT) > ANSWER_BYTES)
		return;
	for (size_t i = 1; i < KEPT_MAX && to->question; i++)
		if (!s->kept[i].question || s->kept[i].used_ms < to->used_ms)
			to = &s->kept[i];
	forget(to);
	*to = (struct kept){strdup(question), json_deep_copy(answer), now + lasts_ms(answer), now};
	if (!to->question || !to->answer)
		forget(to);
}

/* --- turns --- */

/* Waits no longer than leaves time for an answer. */
static enum tw_status take_turn(struct tw_sources *s, uint64_t ms_left, struct tw_err *err)
{
	const uint64_t spare = ms_left > LEAST_MS ? ms_left - LEAST_MS : 0;
	int64_t until = tw_monotonic_ms() + (int64_t)(spare < WAIT_MS ? spare : WAIT_MS);
	const struct timespec at = {until / 1000, (until % 1000) * 1000000};
	int rc = 0;

	if (s->running >= CHILDREN_MAX && s->waiting >= WAITING_MAX)
		rc = ETIMEDOUT;
	s->waiting++;
	while (rc == 0 && s->running >= CHILDREN_MAX)
		rc = pthread_cond_timedwait(&s->freed, &s->lock, &at);
	s->waiting--;
	if (s->running >= CHILDREN_MAX)
		return tw_fail(err, TW_BUSY, TW_NO_OFFSET,
		        "other questions about source code are being answered: ask again in a "
		        "moment");
	s->running++;
	return TW_OK;
}

static void end_turn(struct tw_sources *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->running--;
	(void)pthread_cond_signal(&s->freed);
	(void)pthread_mutex_unlock(&s->lock);
}

/* Whoever was waited for may have asked the same: its turn is over then. */
static json_t *recall_in_turn(struct tw_sources *s, const char *question)
{
	json_t *answer = recall(s, question);

	if (answer) {
		s->running--;
		(void)pthread_cond_signal(&s->freed);
	}
	return answer;
}

/* --- the child --- */

static enum tw_status died(const struct tw_child_end *end, const char *clone,
        const struct tw_err *why, struct tw_err *err)
{
	tw_log(TW_LOG_WARN, "source_not_read", tw_log_text("clone", clone),
	        tw_log_text("reason", tw_death_word(end->death)));
	if (end->death == TW_DEATH_LOOP || end->death == TW_DEATH_MEMORY)
		return tw_fail(err, TW_DEADLINE, TW_NO_OFFSET,
		        "the clone %.60s is too large: reading it took more time or memory than it "
		        "may",
		        clone);
	if (end->death == TW_DEATH_NONE)
		return tw_fail(err, why->code, TW_NO_OFFSET, "%s", why->msg);
	return tw_fail(err, TW_CORRUPT, TW_NO_OFFSET,
	        "reading the clone %.60s failed (%s): run git fsck on it", clone,
	        tw_death_word(end->death));
}

static json_t *limits_of(const struct tw_config *c)
{
	json_t *limits = tw_jobs_limits(c);

	if (limits) {
		(void)json_object_set_new(limits, "memory_bytes", json_integer(MEMORY_BYTES));
		(void)json_object_set_new(limits, "cpu_s", json_integer(CPU_S));
		(void)json_object_set_new(limits, "file_bytes", json_integer(1));
	}
	return limits;
}

/* What the child says of itself when it could not begin. */
static enum tw_status unwrap(json_t *all, json_t **ret, struct tw_err *err)
{
	json_t *answer = json_object_get(all, "summary");
	struct tw_err why;

	if (json_is_object(answer)) {
		*ret = json_incref(answer);
		json_decref(all);
		return TW_OK;
	}
	tw_jobs_child_error(all, &why);
	json_decref(all);
	/* it could not lock itself in, or enter the folder: the rest of the answer is good */
	return tw_fail(
	        err, why.code == TW_IO ? TW_NOT_FOUND : why.code, TW_NO_OFFSET, "%s", why.msg);
}

/* What it told before it died, and why there is no more. */
static json_t *last_words(json_t *early, const struct tw_err *why)
{
	json_t *told = json_object_get(early, "summary");
	json_t *answer = json_is_object(told) ? json_incref(told) : json_object();

	(void)json_object_set_new(answer, "why", json_string(why->msg));
	(void)json_object_set_new(answer, "status", json_string(tw_status_word(why->code)));
	if (json_object_size(told)) {
		(void)json_object_set_new(answer, "commits", json_array());
		(void)json_object_set_new(answer, "more", json_true());
	}
	return answer;
}

/* The child has ended; a death is an answer too. */
static enum tw_status collect(
        struct tw_child *child, const char *clone, json_t **ret, struct tw_err *err)
{
	json_t *all = NULL, *early = NULL;
	struct tw_child_end end;
	struct tw_err why;
	enum tw_status st;

	child->early = &early;
	st = tw_child_collect(child, &all, &end, &why);
	if (st == TW_OK)
		return unwrap(all, ret, err);
	st = died(&end, clone, &why, err);
	if (end.death != TW_DEATH_NONE)
		*ret = last_words(early, err);
	json_decref(early);
	return *ret ? TW_OK : st;
}

static enum tw_status run(struct tw_sources *s, int clone, const struct tw_source_question *q,
        json_t **ret, struct tw_err *err)
{
	uint64_t ms = q->ms > MOST_MS + LEAST_MS       ? MOST_MS
	              : q->ms > (uint64_t)2 * LEAST_MS ? q->ms - LEAST_MS
	                                               : LEAST_MS;
	const struct tw_child_task t = {q->task, -1, -1, &clone, 1, (unsigned)(ms / 1000 + 2)};
	struct tw_child_task wired = t;
	struct tw_child child;
	enum tw_status st;

	(void)json_object_set_new(q->task, "kind", json_string("source"));
	(void)json_object_set_new(q->task, "limits", limits_of(s->config));
	(void)json_object_set_new(q->task, "ms", json_integer((json_int_t)ms));
	wired.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
	st = tw_child_start(&child, &wired, err);
	if (wired.output >= 0)
		(void)close(wired.output);
	if (st != TW_OK)
		return st;
	tw_child_wait(&child);
	return collect(&child, q->clone, ret, err);
}

static enum tw_status ask_in_turn(struct tw_sources *s, int clone,
        const struct tw_source_question *q, const char *question, json_t **ret, struct tw_err *err)
{
	struct tw_source_question now = *q;
	int64_t since = tw_monotonic_ms(), waited;
	enum tw_status st;

	(void)pthread_mutex_lock(&s->lock);
	*ret = recall(s, question);
	st = *ret ? TW_OK : take_turn(s, q->ms, err);
	if (!*ret && st == TW_OK)
		*ret = recall_in_turn(s, question);
	(void)pthread_mutex_unlock(&s->lock);
	if (*ret || st != TW_OK)
		return st;
	waited = tw_monotonic_ms() - since;
	now.ms = now.ms > (uint64_t)waited ? now.ms - (uint64_t)waited : 0;
	st = run(s, clone, &now, ret, err);
	end_turn(s);
	if (st != TW_OK)
		return st;
	(void)pthread_mutex_lock(&s->lock);
	keep(s, question, *ret);
	(void)pthread_mutex_unlock(&s->lock);
	return TW_OK;
}

enum tw_status tw_sources_ask(
        struct tw_sources *s, const struct tw_source_question *q, json_t **ret, struct tw_err *err)
{
	char *task = tw_json_dumps(q->task, JSON_COMPACT | JSON_SORT_KEYS);
	char *question = NULL;
	int clone = -1;
	enum tw_status st =
	        tw_sources_open(s->config->repositories, q->project, q->clone, &clone, err);

	*ret = NULL;
	if (st == TW_OK && (!task || asprintf(&question, "%s/%s %llu %s", q->project, q->clone,
	                                     (unsigned long long)stamp(clone), task) < 0))
		st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	if (st == TW_OK && question)
		st = ask_in_turn(s, clone, q, question, ret, err);
	if (clone >= 0)
		(void)close(clone);
	free(question);
	free(task);
	return st;
}
