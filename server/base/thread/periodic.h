/*
 * periodic.h - a background thread that runs a task periodically and when it is woken.
 *
 * Thread: start and stop by the owner; wake and stopping by any.
 */
#ifndef TW_PERIODIC_H
#define TW_PERIODIC_H

#include <stdbool.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"

struct tw_periodic;

/* A task: `run` is called immediately, after each wake and every `every_ms` milliseconds. It checks
 * tw_periodic_stopping between the steps of its work. `name`, a static string, is its label in
 * /metrics; threads of the same name share one counter. */
struct tw_periodic_task {
	const char *name;
	void (*run)(struct tw_periodic *p, void *arg);
	unsigned every_ms;
};

enum tw_status tw_periodic_start(const struct tw_periodic_task *task, void *arg,
        struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Waits for the current step.  Accepts NULL; returns NULL. */
struct tw_periodic *tw_periodic_stop(struct tw_periodic *p);
void tw_periodic_wake(struct tw_periodic *p); /* accepts NULL */
bool tw_periodic_stopping(struct tw_periodic *p);
/* The number of completed runs of each task of this process. */
void tw_periodic_metrics(struct tw_buf *out);

#endif
