/*
 * jobs_digest.h - makes the digests that are due, of all projects, and their mails.
 *
 * Thread: one at a time.
 */
#ifndef TW_JOBS_DIGEST_H
#define TW_JOBS_DIGEST_H

#include "server/base/thread/periodic.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/notify/digest.h"
#include "server/notify/hook_send.h"

enum {
	TW_DIGEST_LOOK_S = 20, /* interval between checks for due digests */
	TW_DIGEST_MOST_S = 60  /* time limit per digest; parts left out are marked in it */
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
/* Writes the mail of a digest to the recipient of the delivery: one mail per address, so that
 * recipients do not see each other.  A delivery without a recipient (queued by an older version)
 * goes to all recipients in one mail that names none of them.  TW_NOT_FOUND: the project no longer
 * has that address. */
enum tw_status tw_digest_mail(
        const struct tw_digest_mail *m, struct tw_mail *ret, struct tw_err *err) TW_MUST_USE;

#endif
