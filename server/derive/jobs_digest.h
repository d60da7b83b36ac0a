/*
 * jobs_digest.h - digests of all projects, made when they are due, and their mails.
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
	TW_DIGEST_LOOK_S = 20, /* how often it is looked whether one is due */
	TW_DIGEST_MOST_S = 60  /* for one; what is left out then is said */
};
/* mails: the server can; nobody is mailed otherwise, nor later.  One project's failure keeps no
 * other from its digest; the first one is told.  Looks between projects whether the thread is to
 * stop. */
enum tw_status tw_digests_make(struct tw_fleet_store *store, struct tw_periodic *by, bool mails,
        int64_t now_ms, struct tw_err *err) TW_MUST_USE;

struct tw_digest_mail {
	struct tw_catalogue *c;
	const struct tw_delivery *of;
	const char *base; /* of links */
	const struct tw_smtp *by;
	struct tw_arena *arena; /* the mail's texts live in it */
	struct tw_buf *message;
};
/* The mail of a digest, to the one whom it waits for: each address has a mail of its own, so none
 * sees another.  One that waits since before that was so goes to all in one that names none of
 * them. TW_NOT_FOUND: the project does not name the address any more. */
enum tw_status tw_digest_mail(
        const struct tw_digest_mail *m, struct tw_mail *ret, struct tw_err *err) TW_MUST_USE;

#endif
