/*
 * api_ingest.h - validates and accepts a trace that was not sent as one body, with the same rules.
 */
#ifndef TW_API_INGEST_H
#define TW_API_INGEST_H

#include <stdbool.h>

#include "server/http/http.h"
#include "server/ingest/upload_meta.h"

struct tw_ingest_body {
	const char *key; /* Idempotency-Key */
	const struct tw_ingest_pair *pairs;
	size_t n_pairs;
	int fd;              /* read from its current offset to its end */
	int64_t received_ms; /* when the metadata was sent, Unix time */
};

/* Checks whether this many more bytes may wait for decoding (backlog.h).  TW_BUSY, with Retry-After
 * set. */
enum tw_status tw_ingest_has_space(
        struct tw_req *r, uint64_t bytes, struct tw_err *err) TW_MUST_USE;
/* Checks metadata and the request's Idempotency-Key before the body is sent. */
enum tw_status tw_ingest_check(struct tw_req *r, const struct tw_ingest_pair *pairs, size_t n,
        struct tw_err *err) TW_MUST_USE;
/* The body becomes a trace of the request's caller (commit_upload.h).  Thread: may wait for the
 * disk. */
enum tw_status tw_ingest_file(struct tw_req *r, const struct tw_ingest_body *body,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;

#endif
