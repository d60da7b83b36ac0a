/*
 * preflight.c - the judges of a server: which of them is asked, and who waits for how long.
 *
 * Questions are asked by threads of their own, AT_ONCE at a time; who has one asked goes on with
 * something else and fetches the answer later.  What is not answered in time is as if no judge had
 * been asked, so heads that make judges hang hold up others' uploads for TAKE_MS at most; and who
 * has sent one is not asked about for SHUN_MS, or the next would hold them up again.  A judge
 * is one project's: what its memory still holds of a head can only be told to who sent it.  KEPT of
 * them stay for the next upload; the one that was idle longest makes room for another project's.
 */
#include "server/decode/preflight.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/pool.h"
#include "server/decode/preflight_process.h"

/* KEPT > AT_ONCE: one is always free.  ASKED_MS: the question, and one more of a fresh judge. */
enum { AT_ONCE = 4, KEPT = 16, TAKE_MS = 2000, ASKED_MS = (TW_PREFLIGHT_PATIENCE_S + 1) * 1000 };

/* QUEUED: more would not be asked in time anyway, and each holds a head. */
enum { SHUN_MS = 60000, SHUNNED = 32, QUEUED = 256 };

struct shunned {
	char project_id[TW_ID_BYTES];
	int64_t until_ms; /* CLOCK_MONOTONIC */
};

struct tw_preflights {
	const struct tw_config *config;
	struct tw_metrics *metrics;
	struct tw_pool *pool;
	pthread_mutex_t lock; /* of what follows, and of looks */
	pthread_cond_t heard;
	unsigned queued; /* looks that nobody asks about yet */
	int64_t turns;
	struct tw_preflight judges[KEPT];
	struct shunned shunned[SHUNNED]; /* the oldest makes room */
	unsigned next_shunned;
};

/* Its head is a copy: who asked may be gone before it is read. */
struct tw_look {
	struct tw_pool_task task; /* first: the pool hands it back */
	struct tw_preflights *judges;
	char project_id[TW_ID_BYTES];
	struct tw_head head;
	int64_t until_ms; /* CLOCK_MONOTONIC; nobody waits longer */
	bool over;
	bool dropped; /* nobody waits any more: whoever runs it frees it */
	enum tw_status status;
	const struct tw_format *format;
	struct tw_err err;
	uint8_t bytes[];
};

static void make_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

struct tw_preflights *tw_preflights_new(const struct tw_config *c, struct tw_metrics *metrics)
{
	struct tw_preflights *js = tw_mem_zalloc(1, sizeof *js);

	if (!js)
		return NULL;
	js->config = c;
	js->metrics = metrics;
	(void)pthread_mutex_init(&js->lock, NULL);
	make_cond(&js->heard);
	if (tw_pool_start(AT_ONCE, &js->pool, NULL) != TW_OK)
		return tw_preflights_free(js);
	return js;
}

struct tw_preflights *tw_preflights_free(struct tw_preflights *js)
{
	if (!js)
		return NULL;
	js->pool = tw_pool_stop(js->pool);
	for (size_t i = 0; i < KEPT; i++)
		tw_preflight_dismiss(&js->judges[i]);
	(void)pthread_cond_destroy(&js->heard);
	(void)pthread_mutex_destroy(&js->lock);
	tw_mem_free(js);
	return NULL;
}

/* --- which of them, with the lock held --- */

/* Its project's, before a place for a new one, before another project's. */
static int worth(const struct tw_preflight *j, const char *project_id)
{
	if (!j->there)
		return 1;
	return strcmp(j->project_id, project_id) == 0 ? 2 : 0;
}

static struct tw_preflight *pick(struct tw_preflights *js, const char *project_id)
{
	struct tw_preflight *best = NULL;

	for (size_t i = 0; i < KEPT; i++) {
		struct tw_preflight *j = &js->judges[i];
		int more;

		if (j->busy) /* all else of it is the asking thread's */
			continue;
		more = best ? worth(j, project_id) - worth(best, project_id) : 1;
		if (more > 0 || (more == 0 && j->used < best->used))
			best = j;
	}
	best->busy = true;
	best->used = ++js->turns;
	return best;
}

static bool is_shunned(const struct tw_preflights *js, const char *project_id)
{
	int64_t now = tw_monotonic_ms();

	for (size_t i = 0; i < SHUNNED; i++)
		if (now < js->shunned[i].until_ms &&
		        strcmp(js->shunned[i].project_id, project_id) == 0)
			return true;
	return false;
}

static void shun(struct tw_preflights *js, const char *project_id)
{
	struct shunned *s = &js->shunned[js->next_shunned++ % SHUNNED];

	(void)snprintf(s->project_id, sizeof s->project_id, "%s", project_id);
	s->until_ms = tw_monotonic_ms() + SHUN_MS;
	tw_log(TW_LOG_WARN, "judges_shun", tw_log_text("project", project_id),
	        tw_log_number("ms", SHUN_MS));
}

/* --- a look --- */

/* Returns the judge that was asked, which stays busy. */
static struct tw_preflight *ask(struct tw_look *l)
{
	struct tw_preflights *js = l->judges;
	struct tw_preflight *j = pick(js, l->project_id);

	l->until_ms = tw_monotonic_ms() + ASKED_MS;
	(void)pthread_mutex_unlock(&js->lock);
	tw_preflight_assign(j, l->project_id);
	l->status = tw_preflight_ask(j, js->config, js->metrics, &l->head, &l->format, &l->err);
	(void)pthread_mutex_lock(&js->lock);
	if (j->silent && !is_shunned(js, l->project_id))
		shun(js, l->project_id);
	return j;
}

/* Frees the judge before the lock is released, so that the project's next look finds it; one that
 * is worn is replaced first, without the lock. */
static void release(struct tw_preflights *js, struct tw_preflight *j)
{
	if (tw_preflight_is_worn(j)) {
		(void)pthread_mutex_unlock(&js->lock);
		tw_preflight_renew(j, js->config);
		(void)pthread_mutex_lock(&js->lock);
	}
	j->busy = false;
}

static void run(struct tw_pool_task *task, bool stopping)
{
	struct tw_look *l = (struct tw_look *)task;
	struct tw_preflights *js = l->judges;
	struct tw_preflight *asked = NULL;
	bool dropped;

	(void)pthread_mutex_lock(&js->lock);
	js->queued--;
	if (!stopping && !l->dropped && tw_monotonic_ms() < l->until_ms &&
	        !is_shunned(js, l->project_id))
		asked = ask(l);
	l->over = true;
	dropped = l->dropped; /* if not, it may be freed from here on */
	(void)pthread_cond_broadcast(&js->heard);
	if (asked)
		release(js, asked);
	(void)pthread_mutex_unlock(&js->lock);
	if (dropped)
		tw_mem_free(l);
}

static bool may_queue(struct tw_preflights *js)
{
	bool may;

	(void)pthread_mutex_lock(&js->lock);
	may = js->queued < QUEUED;
	js->queued += may;
	(void)pthread_mutex_unlock(&js->lock);
	return may;
}

static void unqueue(struct tw_preflights *js)
{
	(void)pthread_mutex_lock(&js->lock);
	js->queued--;
	(void)pthread_mutex_unlock(&js->lock);
}

enum tw_status tw_look_begin(struct tw_preflights *js, const char *project_id,
        const struct tw_head *head, struct tw_look **ret, struct tw_err *err)
{
	struct tw_look *l;

	*ret = NULL;
	if (!js || !may_queue(js))
		return TW_OK;
	l = tw_mem_zalloc(1, sizeof *l + head->n);
	if (!l) {
		unqueue(js);
		return tw_oom(err);
	}
	l->task.run = run;
	l->judges = js;
	(void)snprintf(l->project_id, sizeof l->project_id, "%s", project_id);
	l->task.owner = l->project_id;
	memcpy(l->bytes, head->bytes, head->n);
	l->head = *head;
	l->head.bytes = l->bytes;
	l->until_ms = tw_monotonic_ms() + TAKE_MS;
	if (!tw_pool_submit(js->pool, &l->task)) {
		unqueue(js);
		tw_mem_free(l); /* the server is being stopped */
		return TW_OK;
	}
	*ret = l;
	return TW_OK;
}

bool tw_look_is_over(const struct tw_look *l)
{
	bool over;

	(void)pthread_mutex_lock(&l->judges->lock);
	over = l->over;
	(void)pthread_mutex_unlock(&l->judges->lock);
	return over;
}

/* Reads the deadline each time, because it is set when the request is sent. */
static void wait_for(struct tw_look *l)
{
	(void)pthread_mutex_lock(&l->judges->lock);
	while (!l->over && tw_monotonic_ms() < l->until_ms) {
		const struct timespec end = {
		        .tv_sec = l->until_ms / 1000, .tv_nsec = l->until_ms % 1000 * 1000000};

		(void)pthread_cond_timedwait(&l->judges->heard, &l->judges->lock, &end);
	}
	(void)pthread_mutex_unlock(&l->judges->lock);
}

struct tw_look *tw_look_drop(struct tw_look *l)
{
	bool over;

	if (!l)
		return NULL;
	(void)pthread_mutex_lock(&l->judges->lock);
	over = l->over;
	l->dropped = true;
	(void)pthread_mutex_unlock(&l->judges->lock);
	if (over)
		tw_mem_free(l);
	return NULL;
}

enum tw_status tw_look_end(struct tw_look *l, const struct tw_format **ret, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	*ret = NULL;
	if (!l)
		return TW_OK;
	wait_for(l);
	if (tw_look_is_over(l)) {
		st = l->status;
		*ret = l->format;
	}
	if (st != TW_OK)
		*err = l->err;
	(void)tw_look_drop(l);
	return st;
}
