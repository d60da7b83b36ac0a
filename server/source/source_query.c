#include "server/source/source_query.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/config.h"
#include "server/base/log.h"
#include "server/base/metric.h"
#include "server/base/text/json.h"
#include "server/source/source_scheduler.h"

enum {
	WAIT_MS = 3000,
	LEAST_MS = 500,
	MOST_MS = 8000,
	CPU_S = 10,
	KEPT_MAX = 256,
	KEPT_MS = 300000,
	FAILED_MS = 60000, /* for a crash or a deadline, which would probably repeat */
	ANSWER_BYTES = 64 << 10,
	PATH_BYTES = 512
};
#define MEMORY_BYTES ((json_int_t)2 << 30)

/* A cached response. */
struct cached {
	char *key; /* with the clone's stamp; NULL: free */
	json_t *answer;
	int64_t until_ms, used_ms;
};

struct tw_sources {
	const struct tw_config *config;
	struct tw_source_scheduler *turns;
	pthread_mutex_t lock; /* of the cache */
	uint64_t recalled;
	struct cached cached[KEPT_MAX];
};

struct tw_sources *tw_sources_new(const struct tw_config *config)
{
	struct tw_sources *s = tw_mem_zalloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->config = config;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->turns = tw_source_scheduler_new();
	return s->turns ? s : tw_sources_free(s);
}

static void forget(struct cached *k)
{
	free(k->key);
	json_decref(k->answer);
	*k = (struct cached){0};
}

struct tw_sources *tw_sources_free(struct tw_sources *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < KEPT_MAX; i++)
		forget(&s->cached[i]);
	s->turns = tw_source_scheduler_free(s->turns);
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
		return tw_fail(err, TW_NOT_FOUND,
		        "the clone %.60s is a link to a folder outside of the server's "
		        "--repositories",
		        clone);
	if (why == EACCES)
		return tw_fail(err, TW_NOT_FOUND, "the server may not read the clone %.60s", clone);
	return tw_fail(err, TW_NOT_FOUND,
	        "no clone %.60s/%.60s in the server's --repositories: ask a server admin", project,
	        clone);
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
		return tw_fail(err, TW_NOT_FOUND,
		        *dir ? "the server's --repositories cannot be read: ask a server admin"
		             : "the server has no clones: set --repositories");
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

/* Changes with the clone: git replaces the files and folders of its refs. */
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

/* --- cache --- */

/* Call with the lock held. */
static json_t *find_cached(struct tw_sources *s, const char *key)
{
	int64_t now = tw_monotonic_ms();

	for (size_t i = 0; i < KEPT_MAX; i++) {
		struct cached *k = &s->cached[i];

		if (!k->key || strcmp(k->key, key) != 0)
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

static json_t *cached_copy(struct tw_sources *s, const char *key)
{
	json_t *answer;

	(void)pthread_mutex_lock(&s->lock);
	answer = find_cached(s, key);
	s->recalled += answer != NULL;
	(void)pthread_mutex_unlock(&s->lock);
	return answer;
}

/* The lifetime of a response in the cache; 0: it is not cached. */
static int64_t lasts_ms(const json_t *answer)
{
	const char *status = json_string_value(json_object_get(answer, "status"));

	if (!status || strcmp(status, "not_found") == 0 || strcmp(status, "too_large") == 0)
		return KEPT_MS;
	return strcmp(status, "deadline") == 0 || strcmp(status, "corrupt") == 0 ? FAILED_MS : 0;
}

/* Call with the lock held. */
static void store(struct tw_sources *s, const char *key, const json_t *answer)
{
	struct cached *to = &s->cached[0];
	int64_t now = tw_monotonic_ms();

	for (size_t i = 1; i < KEPT_MAX && to->key; i++)
		if (!s->cached[i].key || s->cached[i].used_ms < to->used_ms)
			to = &s->cached[i];
	forget(to);
	*to = (struct cached){strdup(key), json_deep_copy(answer), now + lasts_ms(answer), now};
	if (!to->key || !to->answer)
		forget(to);
}

static void cache(struct tw_sources *s, const char *key, const json_t *answer)
{
	if (lasts_ms(answer) == 0 || json_dumpb(answer, NULL, 0, JSON_COMPACT) > ANSWER_BYTES)
		return;
	(void)pthread_mutex_lock(&s->lock);
	store(s, key, answer);
	(void)pthread_mutex_unlock(&s->lock);
}

/* --- the child --- */

static enum tw_status death_response(const struct tw_child_end *end, const char *clone,
        const struct tw_err *why, struct tw_err *err)
{
	tw_log(TW_LOG_WARN, "source_not_read", tw_log_text("clone", clone),
	        tw_log_text("reason", tw_death_name(end->death)));
	if (end->death == TW_DEATH_LOOP || end->death == TW_DEATH_MEMORY)
		return tw_fail(err, TW_DEADLINE,
		        "the clone %.60s is too large: reading it exceeded its time or memory "
		        "limit",
		        clone);
	if (end->death == TW_DEATH_NONE)
		return tw_fail(err, why->code, "%s", why->msg);
	return tw_fail(err, TW_CORRUPT, "reading the clone %.60s failed (%s): run git fsck on it",
	        clone, tw_death_name(end->death));
}

static json_t *limits_of(const struct tw_config *c)
{
	json_t *limits = tw_child_limits(c);

	if (limits) {
		(void)json_object_set_new(limits, "memory_bytes", json_integer(MEMORY_BYTES));
		(void)json_object_set_new(limits, "cpu_s", json_integer(CPU_S));
		(void)json_object_set_new(limits, "file_bytes", json_integer(1));
	}
	return limits;
}

/* Unwraps the child's answer; fails if the child could not begin. */
static enum tw_status unwrap(json_t *all, json_t **ret, struct tw_err *err)
{
	json_t *answer = json_object_get(all, "summary");
	struct tw_err why;

	if (json_is_object(answer)) {
		*ret = json_incref(answer);
		json_decref(all);
		return TW_OK;
	}
	tw_child_error(all, &why);
	json_decref(all);
	/* it could not enter its sandbox or the folder; otherwise the response is usable */
	return tw_fail(err, why.code == TW_IO ? TW_NOT_FOUND : why.code, "%s", why.msg);
}

/* The part of the response that the child wrote before it died, with the reason why the rest is
 * missing. */
static json_t *partial_response(json_t *early, const struct tw_err *why)
{
	json_t *summary = json_object_get(early, "summary");
	json_t *answer = json_is_object(summary) ? json_incref(summary) : json_object();

	(void)json_object_set_new(answer, "reason", json_string(why->msg));
	(void)json_object_set_new(answer, "status", json_string(tw_status_name(why->code)));
	if (json_object_size(summary)) {
		(void)json_object_set_new(answer, "commits", json_array());
		(void)json_object_set_new(answer, "more", json_true());
	}
	return answer;
}

/* Collects the child's response; if it died, the response says so. */
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
	st = death_response(&end, clone, &why, err);
	if (end.death != TW_DEATH_NONE)
		*ret = partial_response(early, err);
	json_decref(early);
	return *ret ? TW_OK : st;
}

static enum tw_status run(struct tw_sources *s, int clone, const struct tw_source_request *q,
        json_t **ret, struct tw_err *err)
{
	uint64_t ms = q->ms > MOST_MS + LEAST_MS       ? MOST_MS
	              : q->ms > (uint64_t)2 * LEAST_MS ? q->ms - LEAST_MS
	                                               : LEAST_MS;
	struct tw_child_task t = {.task = q->task,
	        .second = -1,
	        .inputs = &clone,
	        .n_inputs = 1,
	        .wall_s = (unsigned)(ms / 1000 + 2)};
	struct tw_child child;
	enum tw_status st;

	(void)json_object_set_new(q->task, "kind", json_string("source"));
	(void)json_object_set_new(q->task, "limits", limits_of(s->config));
	(void)json_object_set_new(q->task, "ms", json_integer((json_int_t)ms));
	t.output = open("/dev/null", O_RDONLY | O_CLOEXEC);
	st = tw_child_start(&child, &t, err);
	if (t.output >= 0)
		(void)close(t.output);
	if (st != TW_OK)
		return st;
	tw_child_wait(&child);
	return collect(&child, q->clone, ret, err);
}

/* --- requests --- */

struct request {
	struct tw_sources *s;
	const struct tw_source_request *q;
	const char *key;
	int clone;
	int64_t end_ms; /* monotonic time limit of the response */
};

/* Another thread may have stored the same response while this one waited. */
static enum tw_status answer(void *arg, json_t **ret, struct tw_err *err)
{
	struct request *of = arg;
	struct tw_source_request now = *of->q;
	int64_t left = of->end_ms - tw_monotonic_ms();
	enum tw_status st;

	*ret = cached_copy(of->s, of->key);
	if (*ret)
		return TW_OK;
	now.ms = left > 0 ? (uint64_t)left : 0;
	st = run(of->s, of->clone, &now, ret, err);
	if (st == TW_OK)
		cache(of->s, of->key, *ret);
	return st;
}

/* Waits for its turn, but leaves enough time for the child. */
static enum tw_status try_hosts(struct request *of, json_t **ret, struct tw_err *err)
{
	const int64_t now = tw_monotonic_ms();
	const int64_t last = of->end_ms > now + LEAST_MS ? of->end_ms - LEAST_MS : now;
	const struct tw_source_turn turn = {of->q->project, of->key,
	        last < now + WAIT_MS ? last : now + WAIT_MS, last, answer, of};

	*ret = cached_copy(of->s, of->key);
	return *ret ? TW_OK : tw_source_scheduler_run(of->s->turns, &turn, ret, err);
}

enum tw_status tw_sources_query(
        struct tw_sources *s, const struct tw_source_request *q, json_t **ret, struct tw_err *err)
{
	char *task = tw_json_dumps(q->task, JSON_COMPACT | JSON_SORT_KEYS);
	char *key = NULL;
	int clone = -1;
	enum tw_status st =
	        tw_sources_open(s->config->repositories, q->project, q->clone, &clone, err);

	*ret = NULL;
	if (st == TW_OK && (!task || asprintf(&key, "%s/%s %llu %s", q->project, q->clone,
	                                     (unsigned long long)stamp(clone), task) < 0))
		st = tw_oom(err);
	if (st == TW_OK && key)
		st = try_hosts(
		        &(struct request){s, q, key, clone, tw_monotonic_ms() + (int64_t)q->ms},
		        ret, err);
	if (clone >= 0)
		(void)close(clone);
	free(key);
	free(task);
	return st;
}

void tw_sources_metrics(struct tw_sources *s, struct tw_buf *out)
{
	const struct tw_source_scheduler_counts_now n = tw_source_scheduler_counts(s->turns);
	uint64_t recalled;

	(void)pthread_mutex_lock(&s->lock);
	recalled = s->recalled;
	(void)pthread_mutex_unlock(&s->lock);
	tw_metric(out, "tracewell_source_responses_total{from=\"clone\"}", n.run);
	tw_metric(out, "tracewell_source_responses_total{from=\"shared\"}", n.shared);
	tw_metric(out, "tracewell_source_responses_total{from=\"cached\"}", recalled);
	tw_metric(out, "tracewell_source_refused_total", n.refused);
	tw_metric(out, "tracewell_source_requests", n.waiting);
}
