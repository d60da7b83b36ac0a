/*
 * auth_throttle.h - how often a password may be tried: for one account and from one address.
 *
 * Every try counts until it is known to be right, so that tries at once count
 * too.  What is remembered has a fixed size (128 KiB): accounts and addresses
 * are hashed with a secret into slots, and of those that share a set the one
 * with the fewest tries is forgotten first.  Where several servers are, the
 * buckets are of all of them, and kept elsewhere.
 * Thread: any.
 */
#ifndef TW_AUTH_THROTTLE_H
#define TW_AUTH_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/catalogue/access/catalogue_tries.h"

/* Tries at once, and milliseconds until one of them is forgotten. */
enum {
	TW_THROTTLE_ACCOUNT_TRIES = 10,
	TW_THROTTLE_ACCOUNT_MS = 60000,
	TW_THROTTLE_ADDRESS_TRIES = 30,
	TW_THROTTLE_ADDRESS_MS = 6000
};

struct tw_throttle;

struct tw_throttle *tw_throttle_new(void); /* NULL: no memory */

struct tw_throttle_sharing {
	uint8_t secret[32]; /* the same for all, and for nothing else */
	/* *ret_wait_ms 0: all have room, and with `count` it is taken.  By a clock of its own. */
	enum tw_status (*take)(void *arg, const struct tw_throttle_ask *ask, bool count,
	        int64_t *ret_wait_ms, struct tw_err *err);
	void (*give_back)(void *arg, const struct tw_throttle_ask *ask);
	void *arg;
};
/* From here on; called before the first try. */
void tw_throttle_share(struct tw_throttle *t, const struct tw_throttle_sharing *with);
struct tw_throttle *tw_throttle_free(struct tw_throttle *t);

/* Counts a try; of an IPv6 address its first 64 bits count.  TW_RATE, uncounted, when there were
 * too many; *ret_wait_s is then when to come back. */
enum tw_status tw_throttle_try(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* The same without counting, for tries that count only when they failed: tw_throttle_wrong.  NULL
 * for an account or an address that is not looked at. */
enum tw_status tw_throttle_judge(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
void tw_throttle_wrong(
        struct tw_throttle *t, const char *account, const char *address, int64_t now_ms);
/* That try was right: it does not count. */
void tw_throttle_right(struct tw_throttle *t, const char *account, const char *address);

#endif
