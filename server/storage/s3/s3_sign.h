/*
 * s3_sign.h - AWS Signature Version 4, which authenticates requests to an S3-compatible store.
 *
 * libcurl can sign, but supports neither presigned URLs (for a device's upload) nor a store with a
 * different clock.  Pure.  Thread: any.
 */
#ifndef TW_S3_SIGN_H
#define TW_S3_SIGN_H

#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"

#define TW_S3_UNSIGNED "UNSIGNED-PAYLOAD"

enum { TW_S3_TIME_BYTES = 17 };

struct tw_s3_header {
	const char *name; /* in lower case */
	const char *value;
};

struct tw_s3_signing {
	const char *method;
	const char *path;                   /* escaped, from "/" on */
	const char *query;                  /* escaped, its names sorted; "" none */
	const struct tw_s3_header *headers; /* sorted by name, including host */
	size_t n_headers;
	const char *payload; /* SHA-256 of the body in hexadecimal, or TW_S3_UNSIGNED */
	const char *key_id, *secret, *token; /* token "": none */
	const char *region;
	const char *time; /* 20130524T000000Z */
};

/* Appends the value of the Authorization header. */
enum tw_status tw_s3_authorize(
        const struct tw_s3_signing *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* Appends the query of a presigned URL, valid for expires_s; the query of `s` must be "". */
enum tw_status tw_s3_presign(const struct tw_s3_signing *s, unsigned expires_s, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;

/* Appends the text with all but unreserved characters as %XX; '/' is kept in a path. */
void tw_s3_escape(struct tw_str text, bool is_path, struct tw_buf *out);
/* A time in the format of signatures. */
void tw_s3_time(int64_t unix_ms, char ret[TW_S3_TIME_BYTES]);

#endif
