/*
 * jobs_hook.h - telling the team: a thread that delivers what the outbox holds, and one that makes
 * digests when they are due.
 *
 * Several deliveries at once, one at a time of each hook and a few of each project, projects in
 * turn: a receiver that hangs holds up itself.
 * Thread: start and stop by the owner.
 */
#ifndef TW_JOBS_HOOK_H
#define TW_JOBS_HOOK_H

#include "decoder/base/buf.h"
#include "server/base/app.h"
#include "server/base/thread/periodic.h"

struct tw_hook_runner;
/* Judges the settings, too: TW_BAD_REQUEST in words. */
enum tw_status tw_hook_job_start(
        struct tw_app *app, struct tw_periodic **ret, struct tw_err *err) TW_MUST_USE;
/* Behind the thread's end.  NULL is fine, returns NULL. */
struct tw_hook_runner *tw_hook_runner_free(struct tw_hook_runner *h);
enum tw_status tw_hook_job_metrics(
        const struct tw_app *app, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
