#include "server/http/http_wait.h"

#include <pthread.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/thread/periodic.h"
#include "server/http/http_int.h"

enum { CHECK_MS = 1000 };

struct tw_http_waits {
	struct tw_periodic *thread;
	pthread_mutex_t lock; /* of the fields below, and of the links in the requests */
	struct tw_req *first;
	bool stopping;
};

/* Takes requests whose route is not being called. */
static struct tw_req *take_idle(struct tw_http_waits *w)
{
	struct tw_req *list = NULL;

	(void)pthread_mutex_lock(&w->lock);
	for (struct tw_req *r = w->first; r; r = r->next_waiting) {
		if (!r->is_idle)
			continue;
		r->is_idle = false;
		r->next_called = list;
		list = r;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return list;
}

static void call_waiting(struct tw_periodic *p, void *arg)
{
	struct tw_req *r = take_idle(arg);

	(void)p;
	while (r) {
		struct tw_req *next = r->next_called;

		if (!tw_pool_submit(tw_http_pool_of(r), &r->task))
			r->task.run(&r->task, true);
		r = next;
	}
}

enum tw_status tw_http_waits_start(struct tw_http_waits **ret, struct tw_err *err)
{
	struct tw_http_waits *w = *ret = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return tw_oom(err);
	(void)pthread_mutex_init(&w->lock, NULL);
	return tw_periodic_start(
	        &(struct tw_periodic_task){"mapping_waits", call_waiting, CHECK_MS}, w, &w->thread,
	        err);
}

struct tw_http_waits *tw_http_waits_stop(struct tw_http_waits *w)
{
	if (!w)
		return NULL;
	(void)tw_periodic_stop(w->thread);
	(void)pthread_mutex_destroy(&w->lock);
	tw_mem_free(w);
	return NULL;
}

void tw_http_waits_wake(struct tw_http_waits *w)
{
	tw_periodic_wake(w->thread);
}

static unsigned waiting_of(const struct tw_http_waits *w, const char *project_id)
{
	unsigned n = 0;

	for (const struct tw_req *r = w->first; r; r = r->next_waiting)
		n += strcmp(r->caller.project_id, project_id) == 0;
	return n;
}

bool tw_req_wait(struct tw_req *r)
{
	struct tw_http_waits *w = r->http->parts.waits;

	if (!w || r->http->stopping || tw_req_client_left(r))
		return false;
	(void)pthread_mutex_lock(&w->lock);
	r->waits = !w->stopping &&
	           (r->is_waiting || waiting_of(w, r->caller.project_id) < TW_WAITS_PER_PROJECT);
	if (r->waits && !r->is_waiting) {
		r->is_waiting = true;
		r->next_waiting = w->first;
		w->first = r;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return r->waits;
}

bool tw_req_keeps_waiting(struct tw_req *r)
{
	struct tw_http_waits *w = r->http->parts.waits;
	bool waits;

	(void)pthread_mutex_lock(&w->lock);
	waits = r->waits && !w->stopping;
	r->waits = false;
	r->is_idle = waits;
	if (!waits) {
		struct tw_req **at = &w->first;

		while (*at != r)
			at = &(*at)->next_waiting;
		*at = r->next_waiting;
		r->is_waiting = false;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return waits;
}

void tw_http_waits_end(struct tw_http_waits *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->lock);
	w->stopping = true;
	(void)pthread_mutex_unlock(&w->lock);
	call_waiting(NULL, w);
}
