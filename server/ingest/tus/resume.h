/*
 * resume.h - uploads that are sent in pieces, stored until they are complete or expired.
 *
 * data/uploads/<id>.json contains owner, length and metadata of the upload; it is written once, and
 * again when the upload has become a trace.  <id>.part contains the received bytes: its size is the
 * offset, so that after a kill the upload continues at the same byte; after a power failure
 * <id>.watermark, the watermark, is the length that can be trusted.  <id>.new is a piece whose
 * checksum is not verified yet.  A part without its .json, and every .new, is deleted at start
 * (I9).  With several servers all of it is in the catalogue and the storage (resume_shared.c). This
 * file does not decide what happens to a complete upload.  Thread: any; only the owner of the lock
 * (tw_resume_acquire) writes.
 */
#ifndef TW_RESUME_H
#define TW_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "server/auth/auth.h"
#include "server/ingest/upload_meta.h"
#include "server/storage/blob.h"

enum { TW_RESUME_METADATA = 16 << 10, TW_RESUME_KEY = 256 };

struct tw_resumes;

struct tw_resume_limits { /* of one key's incomplete uploads */
	unsigned count;
	uint64_t bytes;
	unsigned keep_s; /* seconds since the last byte */
};

struct tw_resume { /* read only */
	char id[TW_ID_BYTES], project_id[TW_ID_BYTES], key_id[TW_ID_BYTES];
	char trace_id[TW_ID_BYTES]; /* "" until it is a trace */
	char key[TW_RESUME_KEY];    /* Idempotency-Key, never "" */
	uint64_t length, offset;
	int64_t expires_ms;
	char *metadata; /* as it was sent */
};

struct tw_catalogue;
struct tw_resume_cleaner;

struct tw_resume_parts { /* the shared state of several servers */
	struct tw_blobs *blobs;
	struct tw_catalogue *catalogue;
	const char *node;                  /* unique name of this server */
	struct tw_resume_cleaner *cleaner; /* resume_clean.h */
};

/* `blobs` must outlive it: its folder and free-space limit are used. */
enum tw_status tw_resumes_open(struct tw_blobs *blobs, const struct tw_resume_limits *limits,
        struct tw_resumes **ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resumes_open_shared(const struct tw_resume_parts *p,
        const struct tw_resume_limits *limits, struct tw_resumes **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_resumes *tw_resumes_close(struct tw_resumes *rs); /* accepts NULL; returns NULL */

/* TW_RATE beyond a limit of the key, TW_FULL at the free-space limit.  key "": derived from the
 * id. */
enum tw_status tw_resume_new(struct tw_resumes *rs, const struct tw_caller *caller, uint64_t length,
        const char *metadata, const char *key, char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* Its progress; *ret is valid until the next call of any kind with `a` reset.  TW_NOT_FOUND also
 * for uploads of other projects. */
enum tw_status tw_resume_progress_of(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume *ret, struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* Locks it for writing; TW_LOCKED while another request has it.  The caller releases it with
 * tw_resume_release. */
enum tw_status tw_resume_acquire(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume **ret, struct tw_err *err) TW_MUST_USE;
void tw_resume_release(struct tw_resumes *rs, struct tw_resume *r);

/* Begins a piece at the upload's end.  `apart`: it counts only if tw_resume_end_piece keeps it. */
enum tw_status tw_resume_begin_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool apart, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_write(struct tw_resumes *rs, struct tw_resume *r, const void *p, size_t n,
        struct tw_err *err) TW_MUST_USE;
/* keep: the piece is durable on return.  Otherwise a piece begun with `apart` is discarded, and the
 * bytes of another are kept but may be lost in a power failure. */
enum tw_status tw_resume_end_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool keep, struct tw_err *err);

/* Opens a complete upload at its first byte; the caller closes it. */
enum tw_status tw_resume_open(
        struct tw_resumes *rs, struct tw_resume *r, int *ret_fd, struct tw_err *err);
/* Records the resulting trace: the bytes are deleted, the record is kept until it expires. */
enum tw_status tw_resume_done(
        struct tw_resumes *rs, struct tw_resume *r, const char *trace_id, struct tw_err *err);
/* Deletes it when it is released; it is no longer found from now on. */
enum tw_status tw_resume_drop(struct tw_resumes *rs, struct tw_resume *r, struct tw_err *err);

/* Deletes expired uploads and those of deleted projects. */
void tw_resumes_expire(struct tw_resumes *rs, struct tw_catalogue *c);
/* Gauges and counters in Prometheus format. */
void tw_resumes_metrics(struct tw_resumes *rs, struct tw_buf *out);

/* --- tus headers --- */

/* Pure, except for the arena. */

enum { TW_RESUME_PAIRS = 32, TW_RESUME_SUM = 32 };

/* Upload-Metadata, NULL like "": at most TW_RESUME_PAIRS pairs, decoded, without the file facts
 * that clients add by themselves.  TW_BAD_REQUEST. */
enum tw_status tw_resume_read_metadata(struct tw_arena *a, const char *text,
        struct tw_ingest_pair pairs[TW_RESUME_PAIRS], size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

struct tw_resume_sum {
	bool sha1; /* otherwise SHA-256 */
	uint8_t bytes[TW_RESUME_SUM];
	size_t len;
};
/* Upload-Checksum.  TW_BAD_REQUEST. */
enum tw_status tw_resume_read_sum(struct tw_arena *a, const char *text, struct tw_resume_sum *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
