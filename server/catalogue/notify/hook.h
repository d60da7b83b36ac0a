/*
 * hook.h - what a webhook is told, how its bodies are signed, and when a failed one is tried again.
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

enum tw_hook_event {      /* tw_hook_event_words; numbers are stored */
	TW_HOOK_FOUND,    /* a regression was found */
	TW_HOOK_RETURNED, /* one that was fixed came back */
	TW_HOOK_FIXED,    /* one was fixed, by a later version or by somebody's word */
	TW_HOOK_STATUS,   /* somebody acknowledged or opened one */
	TW_HOOK_ANR, /* a group of ANRs that was not there before; outbox_anrs knows its number */
	TW_HOOK_DIGEST,
	TW_HOOK_TEST, /* always told, and only to the hook that is tested */
	TW_HOOK_EVENTS
};
extern const char *const tw_hook_event_words[TW_HOOK_EVENTS + 1]; /* ended by NULL */

enum tw_hook_kind { /* of body: tw_hook_kind_words; numbers are stored */
	TW_HOOK_JSON,
	TW_HOOK_SLACK,
	TW_HOOK_TEAMS,
	TW_HOOK_MATRIX,
	TW_HOOK_KINDS
};
extern const char *const tw_hook_kind_words[TW_HOOK_KINDS + 1]; /* ended by NULL */

#define TW_HOOK_MAIL "mail" /* stands for a hook's id: the addresses of the digest */

enum {
	TW_HOOKS_MAX = 20,        /* of a project */
	TW_HOOK_URL_BYTES = 1000, /* at most */
	TW_HOOK_NAME_BYTES = 100,
	TW_HOOK_WAITING_MAX = 500, /* events of one hook; further ones are not told */
	TW_HOOK_ANRS_AN_HOUR =
	        30,         /* new groups of a project that are told: devices can invent them */
	TW_HOOK_TRIES = 15, /* then it is given up */
	TW_HOOK_PAUSE_FAILS = 12, /* tries in a row, and */
	TW_HOOK_PAUSE_H = 48,     /* hours, without any that came through */
	TW_HOOK_KEEP_DAYS = 14,   /* the log of deliveries */
	TW_HOOK_KEEP = 300,       /* of a hook */
	TW_HOOK_GIVE_UP_DAYS = 3,
	TW_HOOK_SIGNATURE_BYTES = 128
};

/* "t=1700000000,v1=<64 hex digits>": HMAC-SHA256 by the secret over "1700000000." and the body. */
enum tw_status tw_hook_sign(const char *secret, int64_t at_s, struct tw_str body,
        char ret[TW_HOOK_SIGNATURE_BYTES], struct tw_err *err) TW_MUST_USE;

/* Milliseconds until the next try: a minute behind the first, twice as long each time, at most six
 * hours; a fifth more or less by `random`, so that hooks that failed together do not come back
 * together.  asked_s: the Retry-After of the answer, 0 none; it is granted up to a day. */
int64_t tw_hook_wait_ms(int64_t fails, uint32_t random, int64_t asked_s);

/* http or https, a host that can be one, no name and password, no control characters; in words
 * otherwise. */
enum tw_status tw_hook_url(const char *url, struct tw_err *err) TW_MUST_USE;
/* Where it goes, without what may be secret in it: "https://hooks.example.com". */
void tw_hook_host(const char *url, char *out, size_t cap);

/* Is an address (as text) one that a stranger's URL must not reach: of this machine, its network,
 * or a cloud's metadata?  Also where it hides in an IPv6 address. */
bool tw_hook_is_private(const char *address);

/* TW_BAD_REQUEST: the URL's host is written as such an address, in any form of it or as
 * localhost, and is not among the allowed.  A name may lead to one as well, which is seen when it
 * is gone to. */
enum tw_status tw_hook_url_public(
        const char *url, const struct tw_proxies *allowed, struct tw_err *err) TW_MUST_USE;

#endif
