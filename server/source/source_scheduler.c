#include "server/source/source_scheduler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/thread/cond.h"

enum { TRIES_MOST = 32 };

/* A request in progress, shared by all callers with the same one. */
struct shared_request {
	struct shared_request *next; /* in order of arrival */
	char *project, *query;
	uint64_t tag; /* the lowest is next */
	unsigned callers;
	enum { WAITS, RUNS, ENDED } state;
	enum tw_status st;
	struct tw_err err;
	json_t *answer;
};

struct tw_source_scheduler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct shared_request *flights;
	uint64_t level; /* tag of the request that began last */
	struct tw_source_scheduler_counts_now counts;
};

struct tw_source_scheduler *tw_source_scheduler_new(void)
{
	struct tw_source_scheduler *t = tw_mem_zalloc(1, sizeof *t);

	if (!t)
		return NULL;
	(void)pthread_mutex_init(&t->lock, NULL);
	tw_cond_init(&t->changed);
	return t;
}

struct tw_source_scheduler *tw_source_scheduler_free(struct tw_source_scheduler *t)
{
	if (!t)
		return NULL;
	(void)pthread_cond_destroy(&t->changed);
	(void)pthread_mutex_destroy(&t->lock);
	tw_mem_free(t);
	return NULL;
}

/* --- requests; call with the lock held --- */

static struct shared_request *find(const struct tw_source_scheduler *t, const char *query)
{
	for (struct shared_request *f = t->flights; f; f = f->next)
		if (f->state != ENDED && strcmp(f->query, query) == 0)
			return f;
	return NULL;
}

static void drop(struct tw_source_scheduler *t, struct shared_request *f)
{
	struct shared_request **at = &t->flights;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	json_decref(f->answer);
	free(f->project);
	free(f->query);
	tw_mem_free(f);
}

/* Adds a request after the project's last one, and after those that have begun. */
static struct shared_request *add(struct tw_source_scheduler *t, const struct tw_source_turn *of)
{
	struct shared_request *f = tw_mem_zalloc(1, sizeof *f);
	struct shared_request **end = &t->flights;

	if (!f)
		return NULL;
	f->project = strdup(of->project);
	f->query = strdup(of->query);
	f->tag = t->level;
	for (; f->project && *end; end = &(*end)->next)
		if (strcmp((*end)->project, f->project) == 0 && (*end)->tag > f->tag)
			f->tag = (*end)->tag;
	f->tag++;
	if (f->project && f->query) {
		*end = f;
		return f;
	}
	drop(t, f);
	return NULL;
}

static unsigned running(const struct tw_source_scheduler *t, const char *project)
{
	unsigned n = 0;

	for (const struct shared_request *f = t->flights; f; f = f->next)
		n += f->state == RUNS && (!project || strcmp(f->project, project) == 0);
	return n;
}

static unsigned callers(const struct tw_source_scheduler *t, const char *project)
{
	unsigned n = 0;

	for (const struct shared_request *f = t->flights; f; f = f->next)
		n += !project || strcmp(f->project, project) == 0 ? f->callers : 0;
	return n;
}

/* Requests in progress; sharing one does not count. */
static unsigned open_requests(const struct tw_source_scheduler *t, const char *project)
{
	unsigned n = 0;

	for (const struct shared_request *f = t->flights; f; f = f->next)
		n += f->state != ENDED && (!project || strcmp(f->project, project) == 0);
	return n;
}

/* The request that may begin; NULL: none. */
static struct shared_request *next(const struct tw_source_scheduler *t)
{
	struct shared_request *best = NULL;

	if (running(t, NULL) >= TW_SOURCE_CHILDREN)
		return NULL;
	for (struct shared_request *f = t->flights; f; f = f->next)
		if (f->state == WAITS && (!best || f->tag < best->tag) &&
		        running(t, f->project) < TW_SOURCE_CHILDREN_OF_PROJECT)
			best = f;
	return best;
}

static void begin_next(struct tw_source_scheduler *t)
{
	struct shared_request *f;

	while ((f = next(t))) {
		f->state = RUNS;
		t->level = f->tag > t->level ? f->tag : t->level;
	}
	(void)pthread_cond_broadcast(&t->changed);
}

static enum tw_status busy(struct tw_source_scheduler *t, struct tw_err *err)
{
	t->counts.refused++;
	return tw_fail(
	        err, TW_BUSY, "too many source code requests are in progress: retry in a moment");
}

/* Waits for that state; false after the time limit. */
static bool wait_for(
        struct tw_source_scheduler *t, const struct shared_request *f, int state, int64_t until_ms)
{
	int rc = 0;

	while (rc == 0 && (int)f->state < state)
		rc = tw_cond_wait_until(&t->changed, &t->lock, until_ms);
	return (int)f->state >= state;
}

static void finalize(struct tw_source_scheduler *t, struct shared_request *f, enum tw_status st,
        struct tw_err why)
{
	f->state = ENDED;
	f->st = st;
	f->err = why;
	begin_next(t);
}

/* The first caller executes the request for all. */
static void execute(
        struct tw_source_scheduler *t, struct shared_request *f, const struct tw_source_turn *of)
{
	struct tw_err why = {0};
	json_t *answer = NULL;
	enum tw_status st;

	begin_next(t);
	if (!wait_for(t, f, RUNS, of->turn_ms)) {
		st = busy(t, &why);
		finalize(t, f, st, why);
		return;
	}
	t->counts.run++;
	(void)pthread_mutex_unlock(&t->lock);
	st = of->run(of->arg, &answer, &why);
	(void)pthread_mutex_lock(&t->lock);
	f->answer = answer;
	finalize(t, f, st, why);
}

/* Each caller gets a separate copy, because callers modify it. */
static enum tw_status copy_result(const struct shared_request *f, json_t **ret, struct tw_err *err)
{
	if (f->st != TW_OK)
		return tw_fail_at(err, f->st, f->err.offset, "%s", f->err.msg);
	*ret = json_deep_copy(f->answer);
	return *ret ? TW_OK : tw_oom(err);
}

static bool is_full(const struct tw_source_scheduler *t, const char *project, bool shares)
{
	if (!shares && (open_requests(t, NULL) >= TW_SOURCE_QUERIES ||
	                       open_requests(t, project) >= TW_SOURCE_QUERIES_OF_PROJECT))
		return true;
	return callers(t, NULL) >= TW_SOURCE_WAITERS ||
	       callers(t, project) >= TW_SOURCE_WAITERS_OF_PROJECT;
}

/* *ret_again: the executing caller ran out of time or got no turn, but this one still has time. */
static enum tw_status run_once(struct tw_source_scheduler *t, const struct tw_source_turn *of,
        bool *ret_again, json_t **ret, struct tw_err *err)
{
	struct shared_request *f = find(t, of->query);
	const bool shares = f != NULL;
	enum tw_status st;

	*ret_again = false;
	if (is_full(t, of->project, shares))
		return busy(t, err);
	f = f ? f : add(t, of);
	if (!f)
		return tw_oom(err);
	f->callers++;
	if (!shares)
		execute(t, f, of);
	if (wait_for(t, f, ENDED, of->until_ms)) {
		st = copy_result(f, ret, err);
		*ret_again = shares && (f->st == TW_BUSY || f->st == TW_DEADLINE) &&
		             tw_monotonic_ms() < of->turn_ms;
		t->counts.shared += shares && st == TW_OK;
	} else {
		st = busy(t, err);
	}
	if (--f->callers == 0)
		drop(t, f);
	return st;
}

enum tw_status tw_source_scheduler_run(struct tw_source_scheduler *t,
        const struct tw_source_turn *of, json_t **ret, struct tw_err *err)
{
	bool again = true;
	enum tw_status st = TW_OK;

	*ret = NULL;
	(void)pthread_mutex_lock(&t->lock);
	for (int tries = 0; again && tries < TRIES_MOST; tries++)
		st = run_once(t, of, &again, ret, err);
	(void)pthread_mutex_unlock(&t->lock);
	return st;
}

struct tw_source_scheduler_counts_now tw_source_scheduler_counts(struct tw_source_scheduler *t)
{
	struct tw_source_scheduler_counts_now now;

	(void)pthread_mutex_lock(&t->lock);
	now = t->counts;
	now.waiting = callers(t, NULL);
	(void)pthread_mutex_unlock(&t->lock);
	return now;
}
