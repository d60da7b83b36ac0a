/*
 * source_scheduler.h - schedules the children that read clones: equal queries share one, a few run
 * in parallel, and projects are served fairly.
 *
 * If k projects have more queries than can be served, each gets a k-th of the children, whatever
 * the others request: a project's next query is queued one after its last, and none starts before
 * the virtual time of those being served (start-time fair queueing).  No project may use all
 * children or all queue entries.  Queries include their project, so projects never share a result.
 * No files, no processes.  Thread: any.
 */
#ifndef TW_SOURCE_SCHEDULER_H
#define TW_SOURCE_SCHEDULER_H

#include <jansson.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/http/http.h"

enum {
	TW_SOURCE_CHILDREN = 3,
	TW_SOURCE_CHILDREN_OF_PROJECT = 2,
	TW_SOURCE_QUERIES = 32, /* running or queued, each shared query once */
	TW_SOURCE_QUERIES_OF_PROJECT = 16,
	TW_SOURCE_WAITERS = TW_CHILD_WAITERS, /* including sharing callers: each blocks a thread */
	TW_SOURCE_WAITERS_OF_PROJECT = 32
};

struct tw_source_scheduler;
struct tw_source_scheduler *tw_source_scheduler_new(void); /* NULL: out of memory */
struct tw_source_scheduler *tw_source_scheduler_free(struct tw_source_scheduler *t);

struct tw_source_turn {
	const char *project, *query;
	int64_t turn_ms;  /* deadline to get a child, and */
	int64_t until_ms; /* deadline for the result of a shared query (CLOCK_MONOTONIC) */
	/* Called by the first caller of a query once it is scheduled.  Free the result with
	 * json_decref. */
	enum tw_status (*run)(void *arg, json_t **ret, struct tw_err *err);
	void *arg;
};

/* TW_BUSY: retry later; otherwise the result of run, shared with all callers of the same query that
 * came in the meantime.  The caller frees it with json_decref. */
enum tw_status tw_source_scheduler_run(struct tw_source_scheduler *t,
        const struct tw_source_turn *of, json_t **ret, struct tw_err *err) TW_MUST_USE;

struct tw_source_scheduler_counts_now { /* totals since the start, except waiting, which is the
	                                   current number */
	uint64_t run, shared, refused, waiting;
};
struct tw_source_scheduler_counts_now tw_source_scheduler_counts(struct tw_source_scheduler *t);

#endif
