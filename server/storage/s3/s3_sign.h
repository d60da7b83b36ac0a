/*
 * s3_sign.h - Signature Version 4: who asks an S3-compatible store, proven without telling the
 * secret.
 *
 * libcurl could sign, but knows neither addresses that carry their signature (a device's upload)
 * nor a store whose clock is another's.  Pure. Thread: any.
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
	const struct tw_s3_header *headers; /* sorted by name, host among them */
	size_t n_headers;
	const char *payload; /* SHA-256 of the body in hexadecimal, or TW_S3_UNSIGNED */
	const char *key_id, *secret, *token; /* token "": none */
	const char *region;
	const char *time; /* 20130524T000000Z */
};

/* Appends what the header Authorization says. */
enum tw_status tw_s3_authorize(
        const struct tw_s3_signing *s, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* Appends the query of an address by which anybody may do this once signed, for that long; the
 * query of `s` is to be "". */
enum tw_status tw_s3_presign(const struct tw_s3_signing *s, unsigned expires_s, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;

/* Appends it with all but plain characters as %XX; '/' stays when it is a path. */
void tw_s3_escape(struct tw_str text, bool is_path, struct tw_buf *out);
/* A time as signatures tell it. */
void tw_s3_time(int64_t unix_ms, char ret[TW_S3_TIME_BYTES]);

#endif
