/*
 * hook.h - webhook events, signatures of bodies, and delays between attempts.
 *
 * Pure.  Thread: any.
 */
#ifndef TW_HOOK_H
#define TW_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/base/caller.h"
#include "server/base/proxy.h"

enum tw_hook_event {      /* tw_hook_event_names; numbers are stored */
	TW_HOOK_FOUND,    /* a regression was found */
	TW_HOOK_RETURNED, /* a fixed one came back */
	TW_HOOK_FIXED,    /* one was fixed, by a later version or set by a person */
	TW_HOOK_STATUS,   /* a person acknowledged or reopened one */
	TW_HOOK_ANR,      /* a new group of ANRs; outbox_anrs contains its number */
	TW_HOOK_DIGEST,
	TW_HOOK_TEST,           /* always sent, only to the tested hook */
	TW_HOOK_ANR_RETURNED,   /* a report showed that a fixed group of ANRs is back */
	TW_HOOK_ALERT,          /* a figure is above the limit of an alert rule */
	TW_HOOK_ALERT_RETURNED, /* again, after it was below */
	TW_HOOK_ALERT_FIXED,    /* it is below again */
	TW_HOOK_EVENTS
};
enum { TW_HOOK_CHOICES = (1 << TW_HOOK_EVENTS) - 1 - (1 << TW_HOOK_TEST) }; /* to subscribe to */
extern const char *const tw_hook_event_names[TW_HOOK_EVENTS + 1];           /* ended by NULL */

enum tw_hook_kind { /* of body: tw_hook_kind_names; numbers are stored */
	TW_HOOK_JSON,
	TW_HOOK_SLACK,
	TW_HOOK_TEAMS,
	TW_HOOK_MATRIX,
	TW_HOOK_KINDS
};
extern const char *const tw_hook_kind_names[TW_HOOK_KINDS + 1]; /* ended by NULL */

#define TW_HOOK_MAIL "mail" /* used instead of a hook's id: the addresses of the digest */

enum {
	TW_HOOKS_MAX = 20,        /* per project */
	TW_HOOK_URL_BYTES = 1000, /* at most */
	TW_HOOK_NAME_BYTES = 100,
	TW_HOOK_WAITING_MAX = 500,  /* waiting events per hook; further ones are dropped */
	TW_HOOK_ANRS_PER_HOUR = 30, /* events for new groups per project and hour: devices can
	                             * invent groups */
	TW_HOOK_ATTEMPTS_MAX = 15,  /* then the delivery is given up */
	TW_HOOK_PAUSE_FAILS = 12,   /* a hook is paused after this many failures in a row, and */
	TW_HOOK_PAUSE_H = 48,       /* hours without a successful delivery */
	TW_HOOK_KEEP_DAYS = 14,     /* days that the delivery log is kept */
	TW_HOOK_KEEP = 300,         /* log entries per hook */
	TW_HOOK_GIVE_UP_DAYS = 3,
	TW_HOOK_SIGNATURE_BYTES = 128
};

/* "t=1700000000,v1=<64 hex digits>": HMAC-SHA256 with the secret over "1700000000." and the
 * body. */
enum tw_status tw_hook_sign(const char *secret, int64_t at_s, struct tw_str body,
        char ret[TW_HOOK_SIGNATURE_BYTES], struct tw_err *err) TW_MUST_USE;

/* Milliseconds until the next attempt: a minute after the first failure, doubled each time, at most
 * six hours; varied by a fifth with `random`, so that hooks that failed together are not retried
 * together. retry_after_s: Retry-After of the response, 0 none; honoured up to a day. */
int64_t tw_hook_wait_ms(int64_t fails, uint32_t random, int64_t retry_after_s);

/* Accepts http or https with a valid host, without user, password or control characters; otherwise
 * fails with a message. */
enum tw_status tw_hook_url(const char *url, struct tw_err *err) TW_MUST_USE;
/* The origin without parts that may be secret: "https://hooks.example.com". */
void tw_hook_host(const char *url, char *out, size_t cap);

/* Whether an address (as text) must not be reached by a user's URL: of this machine, its network,
 * or a cloud's metadata service, also if embedded in an IPv6 address. */
bool tw_hook_is_private(const char *address);

/* TW_BAD_REQUEST: the URL's host is such an address in any notation, or localhost, and not among
 * the allowed.  A name can resolve to one as well, which is checked when connecting. */
enum tw_status tw_hook_url_public(
        const char *url, const struct tw_proxies *allowed, struct tw_err *err) TW_MUST_USE;

#endif
