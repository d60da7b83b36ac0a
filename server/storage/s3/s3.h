/*
 * s3.h - objects of an S3-compatible store: put and verified, got and verified, looked at, listed,
 * deleted.
 *
 * Keys are below the place's prefix, and of characters that an address takes as they are.  What an
 * object's SHA-256 is stands in its own metadata (x-amz-meta-sha256).  Errors as s3_http.h says.
 * Thread: any.
 */
#ifndef TW_S3_H
#define TW_S3_H

#include <stdbool.h>

#include "server/storage/s3/s3_http.h"

struct tw_s3_object {
	const char *key;
	const char *sha256; /* "" not known */
	uint64_t bytes;
	int64_t modified_ms;
};

struct tw_s3_kept { /* what the store says of an object */
	uint64_t bytes;
	int64_t modified_ms;
	char sha256[TW_SHA256_HEX]; /* "" nothing */
};

enum tw_status tw_s3_has(
        struct tw_s3 *s, const char *key, bool *ret, struct tw_err *err) TW_MUST_USE;
/* All of fd, from its start, which is that SHA-256 and size; a large one in parts.  TW_OK when the
 * store said how large it is what it keeps. */
enum tw_status tw_s3_put(
        struct tw_s3 *s, const struct tw_s3_object *o, int fd, struct tw_err *err) TW_MUST_USE;
/* Into fd from 0 on, whole: its size and, where the object tells it, its SHA-256 fit.
 * ret_sha256 is what came. */
enum tw_status tw_s3_get(struct tw_s3 *s, const char *key, int fd, char ret_sha256[TW_SHA256_HEX],
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;
/* Without its bytes. */
enum tw_status tw_s3_look(
        struct tw_s3 *s, const char *key, struct tw_s3_kept *ret, struct tw_err *err) TW_MUST_USE;
/* One that is not there is fine.  once: by one try that ends soon.  *ret_doubt: a try got no
 * answer, and may be done later. */
enum tw_status tw_s3_delete(struct tw_s3 *s, const char *key, bool once, bool *ret_doubt,
        struct tw_err *err) TW_MUST_USE;
/* Every object whose key begins so, until `each` says other than TW_OK. */
enum tw_status tw_s3_list(struct tw_s3 *s, const char *prefix,
        enum tw_status (*each)(void *arg, const struct tw_s3_object *o, struct tw_err *err),
        void *arg, struct tw_err *err) TW_MUST_USE;
/* May the bucket be listed by this key? */
enum tw_status tw_s3_probe(struct tw_s3 *s, struct tw_err *err) TW_MUST_USE;
/* Does the store answer anything?  One short request, whatever it is answered with below 500. */
enum tw_status tw_s3_ping(struct tw_s3 *s, struct tw_err *err) TW_MUST_USE;
/* Uploads in parts below blobs/, traces/ and pieces/ that were begun before that time, and never
 * ended, go: those of the first page of the store's answer. */
enum tw_status tw_s3_drop_parts(
        struct tw_s3 *s, int64_t before_ms, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* An address by which anybody may put an object of that size and, where the store verifies it,
 * SHA-256 under that key, for so long; with headers Content-Length and x-amz-checksum-sha256. */
enum tw_status tw_s3_put_address(struct tw_s3 *s, const struct tw_s3_object *o, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* The SHA-256 in the form of the header x-amz-checksum-sha256. */
enum { TW_S3_CHECKSUM = 48 };
void tw_s3_checksum(const char *sha256, char ret[TW_S3_CHECKSUM]);

#endif
