/* s3_int.h - shared by address and signing (s3_endpoint.c) and requests (s3_http.c). */
#ifndef TW_S3_INT_H
#define TW_S3_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "server/base/curl_pool.h"
#include "server/storage/s3/s3_http.h"

/* --- the access key that signs requests to a store, and its source --- */

/* A file in the format of AWS's credentials (its first section), read again when it changes, as
 * for temporary credentials; without one, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN of the environment. Never a flag: process lists show those.  Thread: one at
 * a time. */
enum { TW_S3_KEY_ID = 160, TW_S3_SECRET = 257, TW_S3_TOKEN = 4096 };

struct tw_s3_key {
	char id[TW_S3_KEY_ID], secret[TW_S3_SECRET], token[TW_S3_TOKEN]; /* token "": none */
	int64_t read_ns; /* modification time of its file */
};

enum { TW_S3_ENDPOINT = 512, TW_S3_PATH = 2048 };

struct tw_s3 {
	struct tw_curl_pool handles;
	pthread_mutex_t lock; /* of key */
	struct tw_s3_key key;
	_Atomic int64_t skew_ms;  /* by how much the store's clock is ahead, as used for signing */
	_Atomic int64_t ahead_ms; /* the same from its last response; adopted for signing when a
	                           * request is refused for it */
	_Atomic bool stopped, given_up;
	_Atomic int64_t answered_ms; /* monotonic */
	uint64_t part_bytes;
	unsigned timeout_s;
	void (*count)(void *, enum tw_s3_op, enum tw_s3_outcome, int64_t);
	void *arg;
	char base[TW_S3_ENDPOINT * 2];    /* https://host[:port] */
	char host[TW_S3_ENDPOINT];        /* as in the Host header */
	char bucket_path[TW_S3_ENDPOINT]; /* "/bucket/" or "/" */
	char prefix[TW_S3_ENDPOINT];      /* "prefix/" or "" */
	char where[TW_S3_ENDPOINT * 2];
	char region[80], ca_file[1024 + 1], key_file[1024 + 1];
};

struct tw_s3_signed { /* everything that a signature points to */
	struct tw_s3_signing s;
	struct tw_s3_header headers[TW_S3_HEADERS + 4];
	struct tw_s3_key key;
	char time[TW_S3_TIME_BYTES];
	char path[TW_S3_PATH];
};

void tw_s3_add_header(struct tw_s3_signed *g, const char *name, const char *value);
/* Fills in everything to sign except x-amz-content-sha256 and x-amz-date.  The caller wipes its
 * key. */
enum tw_status tw_s3_prepare(struct tw_s3 *s, const struct tw_s3_request *r, struct tw_s3_signed *g,
        struct tw_err *err) TW_MUST_USE;

#endif
