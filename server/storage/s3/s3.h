/*
 * s3.h - objects of an S3-compatible store: put, get (both verified), head, list, delete.
 *
 * Keys are relative to the place's prefix and need no escaping in a URL.  An object's SHA-256 is in
 * its metadata (x-amz-meta-sha256).  Errors are those of s3_http.h.
 * Thread: any.
 */
#ifndef TW_S3_H
#define TW_S3_H

#include <stdbool.h>

#include "server/storage/s3/s3_http.h"

struct tw_s3_object {
	const char *key;
	const char *sha256; /* "" unknown */
	uint64_t bytes;
	int64_t modified_ms;
};

struct tw_s3_metadata { /* of an object */
	uint64_t bytes;
	int64_t modified_ms;
	char sha256[TW_SHA256_HEX]; /* "" none */
};

enum tw_status tw_s3_has(
        struct tw_s3 *s, const char *key, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Uploads all of fd from its start, with that SHA-256 and size; large files in parts.  TW_OK once
 * the store confirmed the object's size. */
enum tw_status tw_s3_put(
        struct tw_s3 *s, const struct tw_s3_object *o, int fd, struct tw_err *err) TW_MUST_USE;
/* Downloads into fd from offset 0 and verifies the size and, if the object has one, the SHA-256.
 * ret_sha256 is the hash of the received bytes. */
enum tw_status tw_s3_get(struct tw_s3 *s, const char *key, int fd, char ret_sha256[TW_SHA256_HEX],
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;
/* Reads only the metadata. */
enum tw_status tw_s3_head(struct tw_s3 *s, const char *key, struct tw_s3_metadata *ret,
        struct tw_err *err) TW_MUST_USE;
/* Succeeds if the object is missing.  once: a single short attempt.  *ret_doubt: an attempt got no
 * answer and may still take effect later. */
enum tw_status tw_s3_delete(struct tw_s3 *s, const char *key, bool once, bool *ret_doubt,
        struct tw_err *err) TW_MUST_USE;
/* Lists all objects whose key begins with `prefix`, until `each` fails. */
enum tw_status tw_s3_list(struct tw_s3 *s, const char *prefix,
        enum tw_status (*each)(void *arg, const struct tw_s3_object *o, struct tw_err *err),
        void *arg, struct tw_err *err) TW_MUST_USE;
/* Tests whether this key may list the bucket. */
enum tw_status tw_s3_probe(struct tw_s3 *s, struct tw_err *err) TW_MUST_USE;
/* Tests whether the store answers: one short request; any status below 500 counts. */
enum tw_status tw_s3_ping(struct tw_s3 *s, struct tw_err *err) TW_MUST_USE;
/* Aborts unfinished multipart uploads below blobs/, traces/ and pieces/ begun before that time:
 * those on the first page of the store's listing. */
enum tw_status tw_s3_drop_parts(
        struct tw_s3 *s, int64_t before_ms, uint64_t *ret, struct tw_err *err) TW_MUST_USE;
/* A presigned URL for uploading an object of that size and, if the store verifies it, that SHA-256
 * under that key; the upload must have the headers Content-Length and x-amz-checksum-sha256. */
enum tw_status tw_s3_put_address(struct tw_s3 *s, const struct tw_s3_object *o, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* The SHA-256 in the form of the header x-amz-checksum-sha256. */
enum { TW_S3_CHECKSUM = 48 };
void tw_s3_checksum(const char *sha256, char ret[TW_S3_CHECKSUM]);

#endif
