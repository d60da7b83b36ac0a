/*
 * s3.h - objects of an S3-compatible store: are they there, and put them there.
 *
 * Requests are signed by libcurl (Signature Version 4), addresses are path-style
 * (endpoint/bucket/key).  Who may is said by AWS_ACCESS_KEY_ID and
 * AWS_SECRET_ACCESS_KEY in the environment, AWS_REGION is "us-east-1" when not set.
 * Thread: one at a time.
 */
#ifndef TW_S3_H
#define TW_S3_H

#include <stdbool.h>

#include "base/err.h"

struct tw_s3;

/* `where`: "s3://bucket" or "s3://bucket/prefix"; `endpoint`: "https://host", NULL: Amazon's. */
enum tw_status tw_s3_new(const char *where, const char *endpoint, struct tw_s3 **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_s3 *tw_s3_free(struct tw_s3 *s); /* NULL is fine; returns NULL */

/* Keys are behind the prefix, and of characters that an address takes as they are. */
enum tw_status tw_s3_has(
        struct tw_s3 *s, const char *key, bool *ret, struct tw_err *err) TW_MUST_USE;
/* All of fd, from its start; the store refuses what is not of that SHA-256. */
enum tw_status tw_s3_put(struct tw_s3 *s, const char *key, int fd, const char *sha256,
        struct tw_err *err) TW_MUST_USE;

#endif
