/*
 * store_claims.h - prevents the deletion of an object that is being written.
 *
 * Equal content is one object.  A writer holds a claim on its key until its row exists; a deleter
 * claims the key exclusively and looks for rows again after that.  A claim can linger, for writers
 * that create their row later.
 * Thread: any.
 */
#ifndef TW_STORE_CLAIMS_H
#define TW_STORE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_key_claims;

struct tw_key_claims *tw_key_claims_new(void);
struct tw_key_claims *tw_key_claims_free(struct tw_key_claims *c); /* accepts NULL; returns NULL */

/* Waits while the key is claimed for deletion. */
enum tw_status tw_claim(struct tw_key_claims *c, const char *key, struct tw_err *err) TW_MUST_USE;
/* Releases the claim after linger_ms. */
void tw_claim_end(struct tw_key_claims *c, const char *key, int64_t linger_ms);
/* False: it is claimed already. */
bool tw_claim_alone(struct tw_key_claims *c, const char *key);
void tw_claim_alone_end(struct tw_key_claims *c, const char *key);

#endif
