/*
 * resume.h - uploads that come in pieces, kept until they are whole or too old.
 *
 * data/uploads/<id>.json says whose upload it is, how long it will be and what was said of it; it
 * is written once, and again when the upload has become a trace.  <id>.part is what has come: its
 * size is the offset, so a server that was killed goes on at the byte where it ended; after a power
 * cut <id>.mark says how much of it is believed.  <id>.new is a piece whose checksum is not
 * verified yet.  A part without its .json, and every .new, goes at start (I9).  Where several
 * servers are at work all of it is in the catalogue and the storage (resume_shared.h).  What
 * becomes of a whole upload is not decided here. Thread: any; an upload is written by whoever
 * acquired it.
 */
#ifndef TW_RESUME_H
#define TW_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "server/auth/auth.h"
#include "server/storage/blob.h"

enum { TW_RESUME_METADATA = 16 << 10, TW_RESUME_KEY = 256 };

struct tw_resumes;

struct tw_resume_limits { /* of one key's uploads that are not whole */
	unsigned count;
	uint64_t bytes;
	unsigned keep_s; /* since the last byte */
};

struct tw_resume { /* read only */
	char id[TW_ID_BYTES], project_id[TW_ID_BYTES], key_id[TW_ID_BYTES];
	char trace_id[TW_ID_BYTES]; /* "" until it is one */
	char key[TW_RESUME_KEY];    /* Idempotency-Key, never "" */
	uint64_t length, offset;
	int64_t expires_ms;
	char *metadata; /* as it was sent */
};

struct tw_catalogue;
struct tw_resume_cleaner;

struct tw_resume_place { /* where several servers have them */
	struct tw_blobs *blobs;
	struct tw_catalogue *catalogue;
	const char *node;                  /* what no other server is called */
	struct tw_resume_cleaner *cleaner; /* resume_clean.h */
};

/* `blobs` outlives it: folder and disk floor are its. */
enum tw_status tw_resumes_open(struct tw_blobs *blobs, const struct tw_resume_limits *limits,
        struct tw_resumes **ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resumes_open_shared(const struct tw_resume_place *p,
        const struct tw_resume_limits *limits, struct tw_resumes **ret,
        struct tw_err *err) TW_MUST_USE;
struct tw_resumes *tw_resumes_close(struct tw_resumes *rs); /* NULL is fine; returns NULL */

/* TW_RATE past a limit of the key, TW_FULL at the disk's floor.  key "" makes one of the id. */
enum tw_status tw_resume_new(struct tw_resumes *rs, const struct tw_caller *caller, uint64_t length,
        const char *metadata, const char *key, char ret_id[TW_ID_BYTES],
        struct tw_err *err) TW_MUST_USE;
/* How far it is; *ret is valid until the next call of any kind with `a` reset.  TW_NOT_FOUND for
 * those of other projects too. */
enum tw_status tw_resume_look(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume *ret, struct tw_arena *a, struct tw_err *err) TW_MUST_USE;
/* For writing; TW_LOCKED while somebody else has it.  tw_resume_release is owed. */
enum tw_status tw_resume_acquire(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume **ret, struct tw_err *err) TW_MUST_USE;
void tw_resume_release(struct tw_resumes *rs, struct tw_resume *r);

/* A piece at the upload's end.  `apart`: it counts only when kept by tw_resume_end_piece. */
enum tw_status tw_resume_begin_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool apart, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_resume_write(struct tw_resumes *rs, struct tw_resume *r, const void *p, size_t n,
        struct tw_err *err) TW_MUST_USE;
/* keep: what came is durable then.  Not keep: of a piece apart nothing stays, of another what came
 * stays but may be lost in a power cut. */
enum tw_status tw_resume_end_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool keep, struct tw_err *err);

/* The bytes of a whole upload, from their start; the caller closes it. */
enum tw_status tw_resume_open(
        struct tw_resumes *rs, struct tw_resume *r, int *ret_fd, struct tw_err *err);
/* It became this trace: its bytes go, its answer stays until it is too old. */
enum tw_status tw_resume_done(
        struct tw_resumes *rs, struct tw_resume *r, const char *trace_id, struct tw_err *err);
/* It goes, when it is released; nobody finds it from here on. */
enum tw_status tw_resume_drop(struct tw_resumes *rs, struct tw_resume *r, struct tw_err *err);

/* Those that are too old go. */
void tw_resumes_expire(struct tw_resumes *rs);
/* Gauges and counters in Prometheus' form. */
void tw_resumes_metrics(struct tw_resumes *rs, struct tw_buf *out);

#endif
