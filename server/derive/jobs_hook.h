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
#include "server/base/config.h"
#include "server/fleet/store/fleet_store.h"

struct tw_hook_runner;
struct tw_secret_key;

struct tw_hook_parts {
	const struct tw_config *config;
	struct tw_catalogue *catalogue;
	struct tw_fleet_store *fleet;
	const struct tw_secret_key *seal; /* encrypts the receivers' secrets */
	const char *node;                 /* this process among all servers */
};

/* Also validates the settings: TW_BAD_REQUEST with a message.  Stop it also after a failure. */
enum tw_status tw_hook_runner_start(const struct tw_hook_parts *parts, struct tw_hook_runner **ret,
        struct tw_err *err) TW_MUST_USE;
/* All accept NULL: another server delivers. */
struct tw_hook_runner *tw_hook_runner_stop(struct tw_hook_runner *h); /* returns NULL */
void tw_hook_runner_wake(struct tw_hook_runner *h); /* something is to be delivered */
enum tw_status tw_hook_runner_metrics(const struct tw_hook_runner *h, struct tw_catalogue *c,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
