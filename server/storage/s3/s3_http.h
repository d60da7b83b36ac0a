/*
 * s3_http.h - one request to an S3-compatible store, signed, tried again, and given an end.
 *
 * What passes (no answer, 408, 429, 5xx, a body cut short, a clock that is another's) is tried
 * again after waits that grow and are drawn by lot, until the request's time is over.  What the
 * store does not do then is TW_BUSY: it may later.  Only an object that is not there is
 * TW_NOT_FOUND. Thread: any; each request has a handle of its own out of those that are free.
 */
#ifndef TW_S3_HTTP_H
#define TW_S3_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "server/storage/blob.h"
#include "server/storage/s3/s3_sign.h"

enum { TW_S3_HEADERS = 6, TW_S3_ETAG = 130, TW_S3_NAME = 600 };

/* What stays of requests: how often, how they ended, how long they took. */
enum tw_s3_op { TW_S3_PUT, TW_S3_GET, TW_S3_HEAD, TW_S3_DELETE, TW_S3_LIST, TW_S3_PART, TW_S3_OPS };
enum tw_s3_outcome {
	TW_S3_OK,
	TW_S3_MISSING, /* 404 */
	TW_S3_REFUSED, /* 4xx: key, bucket, clock */
	TW_S3_SLOW,    /* 429, 503: it asks for fewer */
	TW_S3_FAILED,  /* other 5xx */
	TW_S3_SILENT,  /* no answer in time, no connection */
	TW_S3_BROKEN,  /* a body that is cut or not what it should be */
	TW_S3_OUTCOMES
};

struct tw_s3_place {          /* "" where nothing is said */
	const char *where;    /* "s3://bucket" or "s3://bucket/prefix" */
	const char *endpoint; /* "https://host", "": Amazon's */
	const char *region;   /* "": AWS_REGION, us-east-1 */
	const char *ca_file, *credentials_file;
	bool virtual_host;   /* https://bucket.host/key rather than https://host/bucket/key */
	unsigned timeout_s;  /* of one operation on a small object; large ones get more */
	uint64_t part_bytes; /* what is larger goes in parts of that size */
	/* Told of each request; NULL: nobody. */
	void (*count)(void *arg, enum tw_s3_op op, enum tw_s3_outcome outcome, int64_t ms);
	void *arg;
};

struct tw_s3;

enum tw_status tw_s3_new(
        const struct tw_s3_place *place, struct tw_s3 **ret, struct tw_err *err) TW_MUST_USE;
/* Do both mean the same objects, however they are written?  False for what is no place.  What a
 * name of a host stands for nobody is asked. */
bool tw_s3_is_same(const struct tw_s3_place *a, const struct tw_s3_place *b);
struct tw_s3 *tw_s3_free(struct tw_s3 *s); /* NULL is fine; returns NULL */
/* From now on nothing is waited for: what is under way ends soon, and badly. */
void tw_s3_stop(struct tw_s3 *s);
/* While the store is known not to answer, requests do not wait for it: those in progress end when
 * nothing has moved for a moment, and none is repeated. */
void tw_s3_give_up(struct tw_s3 *s, bool give_up);
bool tw_s3_given_up(const struct tw_s3 *s);
/* When the store answered last, below 500, or bytes moved (monotonic). */
int64_t tw_s3_answered_ms(const struct tw_s3 *s);
/* "s3://bucket/prefix", for sentences. */
const char *tw_s3_where(const struct tw_s3 *s);
const char *tw_s3_prefix(const struct tw_s3 *s); /* "prefix/" or "" */
uint64_t tw_s3_part_bytes(const struct tw_s3 *s);
/* How far the store's clock is before ours, in milliseconds, by its last answer. */
int64_t tw_s3_ahead_ms(const struct tw_s3 *s);

struct tw_s3_request {
	enum tw_s3_op op;
	const char *method;
	const char *key;                            /* below the prefix; "" the bucket itself */
	const char *query;                          /* escaped and sorted, "" none */
	struct tw_s3_header headers[TW_S3_HEADERS]; /* more than every request has; sorted */
	size_t n_headers;
	const char *sha256; /* of what is sent; NULL: of nothing */
	int from_fd;        /* what is sent, with its range */
	uint64_t from_at, from_bytes;
	struct tw_str text; /* sent instead, when it has a length */
	int to_fd;          /* what comes goes there, from 0 on; -1: into the answer's text */
	bool silent;        /* the store may work for long before it answers */
	bool once;          /* what passes is not tried again */
	unsigned timeout_s; /* 0: the place's */
	uint64_t bytes;     /* about how many go or come, for the time it may take */
};

struct tw_s3_answer {
	long status;
	struct tw_buf text; /* cut at 1 MiB; empty when it went to a file */
	char etag[TW_S3_ETAG];
	char sha256[TW_SHA256_HEX];     /* what the object's x-amz-meta-sha256 says, "" nothing */
	char got_sha256[TW_SHA256_HEX]; /* of what went to the file */
	uint64_t length;                /* Content-Length, or of what went to the file */
	int64_t modified_ms, date_ms;   /* 0 not said */
	unsigned unanswered;            /* tries before this one */
};

/* tw_s3_answer_done is owed always.  TW_OK: answered with 2xx.  With a to_fd a body that is not of
 * the answer's sha256 is not OK either. */
enum tw_status tw_s3_ask(struct tw_s3 *s, const struct tw_s3_request *r, struct tw_s3_answer *ret,
        struct tw_err *err) TW_MUST_USE;
void tw_s3_answer_done(struct tw_s3_answer *a);

/* An address by which one object may be put by anybody, for so long; headers as above, which the
 * one who puts must send. */
enum tw_status tw_s3_address(struct tw_s3 *s, const struct tw_s3_request *r, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
