#include "server/ingest/backlog.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/metric.h"
#include "server/catalogue/traces/catalogue_job.h"

enum { CHECK_EVERY_MS = 500, ARENA_BYTES = 16 << 20, AGAIN_PARTS = 4 };

struct tw_backlog {
	struct tw_catalogue *catalogue;
	struct tw_backlog_limits limits;
	pthread_mutex_t lock; /* of the members below */
	struct tw_arena *arena;
	struct tw_waiting *projects; /* in the arena, sorted */
	size_t n;
	uint64_t traces, bytes; /* sums of all projects */
	int64_t counted_ms;
	bool is_counted;
	uint64_t refused, refused_again; /* refused uploads; refused requests to decode again */
};

struct tw_backlog *tw_backlog_new(struct tw_catalogue *c, const struct tw_backlog_limits *limits)
{
	struct tw_backlog *b = tw_mem_zalloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->catalogue = c;
	b->limits = *limits;
	(void)pthread_mutex_init(&b->lock, NULL);
	return b;
}

struct tw_backlog *tw_backlog_free(struct tw_backlog *b)
{
	if (!b)
		return NULL;
	(void)tw_arena_free(b->arena);
	(void)pthread_mutex_destroy(&b->lock);
	tw_mem_free(b);
	return NULL;
}

static enum tw_status count(struct tw_backlog *b, struct tw_arena *a, struct tw_err *err)
{
	struct tw_waiting *projects = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_waiting(b->catalogue, a, &projects, &n, err);

	if (st != TW_OK)
		return st;
	b->projects = projects;
	b->n = n;
	b->traces = b->bytes = 0;
	for (size_t i = 0; i < n; i++) {
		b->traces += projects[i].traces;
		b->bytes += projects[i].bytes;
	}
	return TW_OK;
}

/* Counts again if the last count is old. If counting fails the old numbers remain: no upload is
 * refused because of that. */
static void refresh(struct tw_backlog *b)
{
	int64_t now = tw_monotonic_ms();
	struct tw_arena *a;
	struct tw_err err;

	if (b->is_counted && now - b->counted_ms < CHECK_EVERY_MS)
		return;
	b->counted_ms = now;
	b->is_counted = true;
	a = tw_arena_new(ARENA_BYTES);
	if (a && count(b, a, &err) == TW_OK) {
		(void)tw_arena_free(b->arena);
		b->arena = a;
		return;
	}
	tw_log(TW_LOG_WARN, "backlog_unknown", tw_log_text("reason", a ? err.msg : "no memory"));
	(void)tw_arena_free(a);
}

static struct tw_waiting *find(const struct tw_backlog *b, const char *project_id)
{
	size_t from = 0;
	size_t to = b->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = strcmp(project_id, b->projects[middle].project_id);

		if (order == 0)
			return &b->projects[middle];
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return NULL;
}

static bool fits(uint64_t limit, uint64_t all, uint64_t own, uint64_t more)
{
	return all <= limit && more <= limit - all && own + more <= limit - all;
}

/* Refuses if the project exceeds its share of limits/parts. Counts the refusal in *refused, also
 * under the lock. */
static enum tw_status check_share(struct tw_backlog *b, const char *project_id, uint64_t bytes,
        uint64_t parts, uint64_t *refused, struct tw_err *err)
{
	const uint64_t traces = b->limits.traces < parts ? 1 : b->limits.traces / parts;
	const struct tw_waiting *found;
	struct tw_waiting own = {.traces = 0};
	enum tw_status st = TW_OK;

	(void)pthread_mutex_lock(&b->lock);
	refresh(b);
	found = find(b, project_id);
	if (found)
		own = *found;
	if (b->traces > 0 && (!fits(traces, b->traces, own.traces, 1) ||
	                             !fits(b->limits.bytes / parts, b->bytes, own.bytes, bytes))) {
		(*refused)++;
		st = tw_fail(err, TW_BUSY,
		        "%" PRIu64 " traces of %" PRIu64 " bytes are queued for decoding, %" PRIu64
		        " of this project; retry in %d s",
		        b->traces, b->bytes, own.traces, TW_BACKLOG_RETRY_S);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return st;
}

enum tw_status tw_backlog_check(
        struct tw_backlog *b, const char *project_id, uint64_t bytes, struct tw_err *err)
{
	return check_share(b, project_id, bytes, 1, &b->refused, err);
}

enum tw_status tw_backlog_check_again(
        struct tw_backlog *b, const char *project_id, uint64_t bytes, struct tw_err *err)
{
	return check_share(b, project_id, bytes, AGAIN_PARTS, &b->refused_again, err);
}

void tw_backlog_added(struct tw_backlog *b, const char *project_id, uint64_t bytes)
{
	struct tw_waiting *own;

	(void)pthread_mutex_lock(&b->lock);
	own = find(b, project_id);
	if (own) {
		own->traces++;
		own->bytes += bytes;
	} else {
		b->is_counted = false; /* the first of its project: count again */
	}
	b->traces++;
	b->bytes += bytes;
	(void)pthread_mutex_unlock(&b->lock);
}

void tw_backlog_metrics(struct tw_backlog *b, struct tw_buf *out)
{
	(void)pthread_mutex_lock(&b->lock);
	refresh(b);
	tw_metric(out, "tracewell_queue_bytes", b->bytes);
	tw_metric(out, "tracewell_queue_refused_total", b->refused);
	tw_metric(out, "tracewell_decode_again_refused_total", b->refused_again);
	(void)pthread_mutex_unlock(&b->lock);
}
