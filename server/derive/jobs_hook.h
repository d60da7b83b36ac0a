/*
 * jobs_hook.h - notifications: a thread that delivers the outbox, and a thread that makes digests
 * when they are due.
 *
 * Several deliveries run concurrently: one per hook and a few per project, with projects served in
 * rotation.  A receiver that hangs delays only its own deliveries.
 * Thread: start and stop by the owner.
 */
#ifndef TW_JOBS_HOOK_H
#define TW_JOBS_HOOK_H

#include "decoder/base/buf.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"

struct tw_hook_runner;
/* Also validates the settings: TW_BAD_REQUEST with a message. */
enum tw_status tw_hook_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Call after the thread has ended.  Accepts NULL; returns NULL. */
struct tw_hook_runner *tw_hook_runner_free(struct tw_hook_runner *h);
enum tw_status tw_hook_job_metrics(
        const struct tw_app *app, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
