/*
 * auth_throttle.h - limits password attempts per account and per address.
 *
 * Every attempt counts until it succeeds, so that parallel attempts count too.  Memory has a fixed
 * size (128 KiB): accounts and addresses are hashed with a secret into slots, and within a set the
 * slot with the fewest attempts is evicted first.  Several servers share buckets in the catalogue.
 * Thread: any.
 */
#ifndef TW_AUTH_THROTTLE_H
#define TW_AUTH_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/catalogue/access/catalogue_throttle.h"

/* Size of a burst, and milliseconds until one attempt is forgotten. */
enum {
	TW_THROTTLE_ACCOUNT_TRIES = 10,
	TW_THROTTLE_ACCOUNT_MS = 60000,
	TW_THROTTLE_ADDRESS_TRIES = 30,
	TW_THROTTLE_ADDRESS_MS = 6000
};

struct tw_throttle;

struct tw_throttle *tw_throttle_new(void); /* NULL: out of memory */

struct tw_throttle_sharing {
	uint8_t secret[32]; /* the same on all servers, used only for this */
	/* *ret_wait_ms 0: all buckets have space, and with `count` it is taken.  Uses its own
	 * clock. */
	enum tw_status (*take)(void *arg, const struct tw_throttle_cost *cost, bool count,
	        int64_t *ret_wait_ms, struct tw_err *err);
	void (*give_back)(void *arg, const struct tw_throttle_cost *cost);
	void *arg;
};
/* Uses shared buckets from now on; call before the first attempt. */
void tw_throttle_share(struct tw_throttle *t, const struct tw_throttle_sharing *with);
struct tw_throttle *tw_throttle_free(struct tw_throttle *t);

/* Counts an attempt; of an IPv6 address the first 64 bits are used.  TW_RATE, without counting, if
 * there were too many; *ret_wait_s is the time until the next is allowed. */
enum tw_status tw_throttle_attempt(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
/* The same without counting, for attempts that count only on failure (tw_throttle_failed).  NULL
 * skips the account or the address. */
enum tw_status tw_throttle_check(struct tw_throttle *t, const char *account, const char *address,
        int64_t now_ms, unsigned *ret_wait_s, struct tw_err *err) TW_MUST_USE;
void tw_throttle_failed(
        struct tw_throttle *t, const char *account, const char *address, int64_t now_ms);
/* The attempt succeeded: uncounts it. */
void tw_throttle_succeeded(struct tw_throttle *t, const char *account, const char *address);

#endif
