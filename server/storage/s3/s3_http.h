/*
 * s3_http.h - one request to an S3-compatible store: signed, retried and limited in time.
 *
 * Temporary failures (no answer, 408, 429, 5xx, a truncated body, clock skew) are retried with
 * growing random delays until the request's time is over.  Then the result is TW_BUSY: a later
 * request may succeed.  TW_NOT_FOUND means only that the object is missing.  Signatures are AWS
 * Signature Version 4 and made here, because libcurl supports neither presigned URLs (for a
 * device's upload) nor a store with a different clock. Thread: any; each request uses its own
 * handle from a pool.
 */
#ifndef TW_S3_HTTP_H
#define TW_S3_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/storage/blob.h"

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

/* Appends the text with all but unreserved characters as %XX. */
void tw_s3_escape(struct tw_str text, struct tw_buf *out);
/* A time in the format of signatures. */
void tw_s3_time(int64_t unix_ms, char ret[TW_S3_TIME_BYTES]);

enum { TW_S3_HEADERS = 6, TW_S3_ETAG = 130, TW_S3_NAME = 600 };

/* Statistics of requests: number, outcome, duration. */
enum tw_s3_op { TW_S3_PUT, TW_S3_GET, TW_S3_HEAD, TW_S3_DELETE, TW_S3_LIST, TW_S3_PART, TW_S3_OPS };
enum tw_s3_outcome {
	TW_S3_OK,
	TW_S3_MISSING, /* 404 */
	TW_S3_REFUSED, /* 4xx: key, bucket, clock */
	TW_S3_SLOW,    /* 429, 503: the store requests a lower rate */
	TW_S3_FAILED,  /* other 5xx */
	TW_S3_SILENT,  /* no answer in time, no connection */
	TW_S3_BROKEN,  /* a truncated or corrupt body */
	TW_S3_OUTCOMES
};

struct tw_s3_endpoint {       /* "" for defaults */
	const char *where;    /* "s3://bucket" or "s3://bucket/prefix" */
	const char *endpoint; /* "https://host", "": Amazon's */
	const char *region;   /* "": AWS_REGION, us-east-1 */
	const char *ca_file, *credentials_file;
	bool virtual_host;   /* https://bucket.host/key rather than https://host/bucket/key */
	unsigned timeout_s;  /* for one operation on a small object; large ones get more */
	uint64_t part_bytes; /* larger files are sent in parts of this size */
	/* Called for each request; may be NULL. */
	void (*count)(void *arg, enum tw_s3_op op, enum tw_s3_outcome outcome, int64_t ms);
	void *arg;
};

struct tw_s3;

enum tw_status tw_s3_new(
        const struct tw_s3_endpoint *endpoint, struct tw_s3 **ret, struct tw_err *err) TW_MUST_USE;
/* Whether both refer to the same objects in any spelling; false for an invalid endpoint.  Host
 * names are compared without resolving them. */
bool tw_s3_is_same(const struct tw_s3_endpoint *a, const struct tw_s3_endpoint *b);
struct tw_s3 *tw_s3_free(struct tw_s3 *s); /* accepts NULL; returns NULL */
/* Cancels waits: requests in progress fail soon. */
void tw_s3_stop(struct tw_s3 *s);
/* While the store is known not to answer, requests do not wait for it: those in progress end as
 * soon as no byte moved for a moment, and none is retried. */
void tw_s3_give_up(struct tw_s3 *s, bool give_up);
bool tw_s3_given_up(const struct tw_s3 *s);
/* When the store last answered below 500, or bytes moved (monotonic). */
int64_t tw_s3_responded_ms(const struct tw_s3 *s);
const char *tw_s3_prefix(const struct tw_s3 *s); /* "prefix/" or "" */
uint64_t tw_s3_part_bytes(const struct tw_s3 *s);
/* By how many ms the store's clock is ahead of the local one, from its last response. */
int64_t tw_s3_ahead_ms(const struct tw_s3 *s);

struct tw_s3_request {
	enum tw_s3_op op;
	const char *method;
	const char *key;                            /* relative to the prefix; "" the bucket
	                                             * itself */
	const char *query;                          /* escaped and sorted, "" none */
	struct tw_s3_header headers[TW_S3_HEADERS]; /* in addition to those of every request;
	                                             * sorted */
	size_t n_headers;
	const char *sha256; /* of the request body; NULL: no body */
	int from_fd;        /* source of the body, with its range */
	uint64_t from_at, from_bytes;
	struct tw_str text; /* the body instead, if not empty */
	int to_fd;          /* the response body is written there from 0; -1: into the answer's
	                     * text */
	bool silent;        /* the store may take long before it answers */
	bool once;          /* no retries */
	unsigned timeout_s; /* 0: the endpoint's */
	uint64_t bytes;     /* approximate bytes transferred, for the time limit */
};

struct tw_s3_response {
	long status;
	struct tw_buf text; /* truncated at 1 MiB; empty if written to a file */
	char etag[TW_S3_ETAG];
	char sha256[TW_SHA256_HEX];     /* the object's x-amz-meta-sha256, "" none */
	char got_sha256[TW_SHA256_HEX]; /* of the bytes written to the file */
	uint64_t length;                /* Content-Length, or bytes written to the file */
	int64_t modified_ms, date_ms;   /* 0: absent */
	unsigned unanswered;            /* earlier attempts without an answer */
};

/* Always call tw_s3_response_done.  TW_OK: a 2xx response.  With to_fd, a body that does not match
 * its sha256 fails too. */
enum tw_status tw_s3_send(struct tw_s3 *s, const struct tw_s3_request *r,
        struct tw_s3_response *ret, struct tw_err *err) TW_MUST_USE;
void tw_s3_response_done(struct tw_s3_response *a);

/* A presigned URL for uploading one object, valid for expires_s; the uploader must send these
 * headers. */
enum tw_status tw_s3_address(struct tw_s3 *s, const struct tw_s3_request *r, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Text between tags in responses, which are untrusted: only the requested tags are read, and no
 * reference is resolved.  Pure. */
/* The text between the next <tag> and </tag>; *text continues after it. */
bool tw_xml_next(struct tw_str *text, const char *tag, struct tw_str *ret);
/* The first such text, with entities decoded, truncated to `cap`; "" if there is none. */
void tw_xml_text(struct tw_str text, const char *tag, char *out, size_t cap);

#endif
