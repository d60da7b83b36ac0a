/*
 * store_claims.h - nobody deletes what somebody is putting.
 *
 * Equal content has one object.  Whoever puts it holds a claim on its key until its row is there;
 * whoever deletes it claims the key alone, and looks for rows again behind that.  A claim may
 * linger, for those who come back with their row later. Thread: any.
 */
#ifndef TW_STORE_CLAIMS_H
#define TW_STORE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_key_claims;

struct tw_key_claims *tw_key_claims_new(void);
struct tw_key_claims *tw_key_claims_free(struct tw_key_claims *c); /* NULL is fine; returns NULL */

/* Waits while it is being deleted. */
enum tw_status tw_claim(struct tw_key_claims *c, const char *key, struct tw_err *err) TW_MUST_USE;
/* For so many milliseconds more it is as if it were held. */
void tw_claim_end(struct tw_key_claims *c, const char *key, int64_t linger_ms);
/* False: somebody holds it, or holds it alone. */
bool tw_claim_alone(struct tw_key_claims *c, const char *key);
void tw_claim_alone_end(struct tw_key_claims *c, const char *key);

#endif
