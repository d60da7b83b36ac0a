#include "jobs_names.h"

#include <pthread.h>
#include <time.h>

#include "blob.h"
#include "catalogue.h"
#include "log.h"
#include "symbols.h"
#include "trace_file.h"

enum { AT_ONCE = 16, PATH_BYTES = 1500, LOOK_AGAIN_S = 60 };

struct tw_names_job {
	struct tw_app *app;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool wanted, stop;
};

/* --- one trace --- */

static struct tw_name_counts count(
        const struct tw_map *map, const struct tw_method_info *methods, uint32_t n)
{
	struct tw_name_counts c = {0};
	struct tw_method_name name;

	for (uint32_t i = 0; i < n; i++) {
		const struct tw_method_info *m = &methods[i];
		bool known = map && m->has_id && tw_map_find(map, m->id, &name);

		c.ids += m->has_id;
		c.slices += m->has_id ? m->count : 0;
		c.resolved += known;
		c.resolved_slices += known ? m->count : 0;
	}
	return c;
}

static enum tw_status count_file(struct tw_app *app, const struct tw_named_trace *t,
        const struct tw_map *map, struct tw_name_counts *ret, struct tw_err *err)
{
	const struct tw_method_info *methods;
	struct tw_trace_file *f = NULL;
	char path[PATH_BYTES];
	uint32_t n = 0;
	enum tw_status st = tw_trace_path(app->blobs, t->trace_id, path, sizeof path, err);

	if (st == TW_OK)
		st = tw_trace_file_open(path, &f, err);
	if (st == TW_OK)
		st = tw_trace_file_methods(f, &methods, &n, err);
	if (st == TW_OK)
		*ret = count(map, methods, n);
	tw_trace_file_close(f);
	return st;
}

/* What cannot be read counts as nothing: it must not be tried for ever. */
static enum tw_status count_trace(
        struct tw_app *app, const struct tw_named_trace *t, struct tw_arena *a, struct tw_err *err)
{
	struct tw_name_counts counts = {0};
	struct tw_symbols_ref *ref = NULL;
	struct tw_mapping_ids ids;
	struct tw_err why;
	enum tw_status st = tw_catalogue_mappings(app->catalogue, t, a, &ids, err);

	if (st != TW_OK)
		return st;
	if (tw_symbols_acquire(app->symbols, ids.map, &ref, &why) != TW_OK)
		tw_log_err(TW_LOG_ERROR, "mapping_unreadable", t->build_id, &why);
	if (count_file(app, t, tw_symbols_map(ref), &counts, &why) != TW_OK)
		tw_log_err(TW_LOG_WARN, "names_not_counted", t->trace_id, &why);
	tw_symbols_release(app->symbols, ref);
	return tw_catalogue_names_set(app->catalogue, t->project_id, t->trace_id, &counts, err);
}

/* --- all that is to be counted --- */

/* *ret_more: there may be more to do. */
static enum tw_status some(
        struct tw_app *app, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_named_trace *traces = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_names_todo(app->catalogue, AT_ONCE, a, &traces, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = count_trace(app, &traces[i], a, err);
	*ret_more = n > 0;
	if (st == TW_OK && n == 0)
		st = tw_catalogue_names_mark(app->catalogue, a, ret_more, err);
	return st;
}

static bool stopped(struct tw_names_job *n)
{
	bool stop;

	(void)pthread_mutex_lock(&n->lock);
	stop = n->stop;
	(void)pthread_mutex_unlock(&n->lock);
	return stop;
}

static void count_all(struct tw_names_job *n)
{
	struct tw_arena *a = tw_arena_new(4 << 20);
	bool more = a != NULL;
	struct tw_err err;

	while (more && !stopped(n)) {
		tw_arena_reset(a);
		if (some(n->app, a, &more, &err) != TW_OK) {
			tw_log_err(TW_LOG_WARN, "names_not_counted", "counting names", &err);
			break; /* it is tried again later */
		}
	}
	tw_arena_free(a);
}

static void wait_for_work(struct tw_names_job *n)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOOK_AGAIN_S;
	(void)pthread_mutex_lock(&n->lock);
	while (!n->wanted && !n->stop)
		if (pthread_cond_timedwait(&n->changed, &n->lock, &until) != 0)
			break;
	n->wanted = false;
	(void)pthread_mutex_unlock(&n->lock);
}

static void *run(void *arg)
{
	struct tw_names_job *n = arg;

	while (!stopped(n)) {
		count_all(n);
		wait_for_work(n);
	}
	return NULL;
}

enum tw_status tw_names_job_start(struct tw_app *app, struct tw_names_job **ret, struct tw_err *err)
{
	struct tw_names_job *n = tw_mem_zalloc(1, sizeof *n);
	pthread_condattr_t attr;

	if (!n)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	n->app = app;
	(void)pthread_mutex_init(&n->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&n->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (pthread_create(&n->thread, NULL, run, n) != 0) {
		(void)pthread_cond_destroy(&n->changed);
		(void)pthread_mutex_destroy(&n->lock);
		tw_mem_free(n);
		return tw_fail(
		        err, TW_IO, TW_NO_OFFSET, "the counting of names could not be started");
	}
	*ret = n;
	return TW_OK;
}

static void tell(struct tw_names_job *n, bool stop)
{
	(void)pthread_mutex_lock(&n->lock);
	n->wanted = true;
	n->stop = n->stop || stop;
	(void)pthread_cond_signal(&n->changed);
	(void)pthread_mutex_unlock(&n->lock);
}

struct tw_names_job *tw_names_job_stop(struct tw_names_job *n)
{
	if (!n)
		return NULL;
	tell(n, true);
	(void)pthread_join(n->thread, NULL);
	(void)pthread_cond_destroy(&n->changed);
	(void)pthread_mutex_destroy(&n->lock);
	tw_mem_free(n);
	return NULL;
}

void tw_names_job_wake(struct tw_names_job *n)
{
	if (n)
		tell(n, false);
}
