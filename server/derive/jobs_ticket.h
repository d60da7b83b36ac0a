/*
 * jobs_ticket.h - creates issues in the projects' trackers, reads their state, and reopens them:
 * one thread, one request after another.
 *
 * A closed issue marks its regression as fixed.  After a failed request a project waits, longer
 * each time; it delays other projects only by the duration of that request.
 * Thread: start and stop by the owner.
 */
#ifndef TW_JOBS_TICKET_H
#define TW_JOBS_TICKET_H

#include "server/base/proxy.h"

struct tw_hook_parts;
struct tw_ticket_runner;
/* allowed: private addresses that may be reached.  Both must outlive it. */
enum tw_status tw_ticket_runner_start(const struct tw_hook_parts *parts,
        const struct tw_proxies *allowed, struct tw_ticket_runner **ret,
        struct tw_err *err) TW_MUST_USE;
/* Waits for the end of its thread.  Accepts NULL; returns NULL. */
struct tw_ticket_runner *tw_ticket_runner_stop(struct tw_ticket_runner *t);

#endif
