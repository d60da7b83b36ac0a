/*
 * jobs_hook.h - notifications, a thread each: deliveries of the outbox, digests, and issues in
 * trackers.
 *
 * Several deliveries run concurrently: one per hook and a few per project, with projects served in
 * rotation.  A receiver that hangs delays only its own deliveries.
 * Thread: start and stop by the owner.
 */
#ifndef TW_JOBS_HOOK_H
#define TW_JOBS_HOOK_H

#include "decoder/base/buf.h"
#include "server/base/config.h"
#include "server/base/proxy.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/fleet/store/fleet_store.h"
#include "server/notify/digest.h"
#include "server/notify/hook_send.h"

struct tw_hook_runner;
struct tw_secret_key;

struct tw_hook_parts {
	const struct tw_config *config;
	struct tw_catalogue *catalogue;
	struct tw_fleet_store *fleet;
	const struct tw_secret_key *secret_key; /* encrypts the receivers' secrets */
	const char *node;                       /* this process among all servers */
};

/* Also validates the settings: TW_BAD_REQUEST with a message.  Stop it also after a failure. */
enum tw_status tw_hook_runner_start(const struct tw_hook_parts *parts, struct tw_hook_runner **ret,
        struct tw_err *err) TW_MUST_USE;
/* All accept NULL: another server delivers. */
struct tw_hook_runner *tw_hook_runner_stop(struct tw_hook_runner *h); /* returns NULL */
void tw_hook_runner_wake(struct tw_hook_runner *h); /* something is to be delivered */
enum tw_status tw_hook_runner_metrics(const struct tw_hook_runner *h, struct tw_catalogue *c,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* --- digests that are due, of all projects, and their mails --- */

/* Thread: one at a time. */
enum {
	TW_DIGEST_INTERVAL_S = 20, /* interval between checks for due digests */
	TW_DIGEST_LIMIT_S = 60     /* time limit per digest; parts left out are marked in it */
};
/* mails: the server can send mail; otherwise no mail is queued, not even for later.  If one project
 * fails, the others are still processed, and the first failure is returned.  Between projects,
 * checks whether the thread should stop. */
enum tw_status tw_digests_make(struct tw_fleet_store *store, struct tw_periodic *by, bool mails,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;

struct tw_digest_mail {
	struct tw_catalogue *c;
	const struct tw_delivery *of;
	const char *base; /* prefix of links */
	const struct tw_smtp *by;
	struct tw_arena *arena; /* owns the mail's texts */
	struct tw_buf *message;
};
/* Writes the mail of a digest or an alert to the recipient of the delivery: one mail per address,
 * so that recipients do not see each other.  TW_NOT_FOUND: the project no longer has that
 * address. */
enum tw_status tw_digest_mail(
        const struct tw_digest_mail *m, struct tw_mail *ret, struct tw_err *err) TW_MUST_USE;

/* --- issues --- */

/* Creates issues in the projects' trackers, reads their state, and reopens them, one request after
 * another.  A closed issue marks its regression as fixed. After a failed request a project waits,
 * longer each time; it delays other projects only by the duration of that request.  Thread: start
 * and stop by the owner. */
struct tw_hook_parts;
struct tw_ticket_runner;
/* allowed: private addresses that may be reached.  Both must outlive it. */
enum tw_status tw_ticket_runner_start(const struct tw_hook_parts *parts,
        const struct tw_proxies *allowed, struct tw_ticket_runner **ret,
        struct tw_err *err) TW_MUST_USE;
/* Waits for the end of its thread.  Accepts NULL; returns NULL. */
struct tw_ticket_runner *tw_ticket_runner_stop(struct tw_ticket_runner *t);

#endif
