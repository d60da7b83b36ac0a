/*
 * catalogue_resumable.h - rows of resumable uploads, which any of several servers can continue.
 *
 * A row has the upload's progress; its bytes are files in the storage, listed by rows of pieces.  A
 * writer holds the row for a limited time by the database's clock, under a unique name: only writes
 * under that name count, so a stalled server adds nothing after another has taken over.  Every
 * lookup takes the project (I11).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_RESUMABLE_H
#define TW_CATALOGUE_RESUMABLE_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/ulid.h"

struct tw_catalogue;

enum { TW_RESUMABLE_KEY = 256, TW_RESUMABLE_OWNER = 96, TW_RESUMABLE_PIECES = 10000 };

struct tw_resumable { /* a row */
	char id[TW_ID_BYTES], project_id[TW_ID_BYTES], key_id[TW_ID_BYTES];
	char trace_id[TW_ID_BYTES]; /* "" until it has become a trace */
	char key[TW_RESUMABLE_KEY]; /* Idempotency-Key */
	uint64_t bytes, arrived;
	uint32_t pieces;
	int64_t expires_ms;
	const char *metadata; /* in the arena */
};

struct tw_resumable_limits { /* for the open uploads of one key */
	unsigned count;
	uint64_t bytes;
	int64_t keep_ms; /* since the last byte */
};

/* TW_RATE past a limit of the key.  Uses all fields of `u` except progress; sets expires_ms. */
enum tw_status tw_catalogue_resumable_add(struct tw_catalogue *c, struct tw_resumable *u,
        const struct tw_resumable_limits *limits, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND, also if it has expired or belongs to another project. */
enum tw_status tw_catalogue_resumable_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_resumable_hold { /* of a row, for writing */
	char project_id[TW_ID_BYTES], id[TW_ID_BYTES];
	char owner[TW_RESUMABLE_OWNER];
};
/* TW_LOCKED while another writer holds it.  An upload that has become a trace is returned to
 * anyone, possibly without a hold. */
enum tw_status tw_catalogue_resumable_hold(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, int64_t lease_ms, struct tw_arena *a,
        struct tw_resumable *ret, struct tw_err *err) TW_MUST_USE;
/* Lost holds stay lost.  Thread: one. */
enum tw_status tw_catalogue_resumables_renew(struct tw_catalogue *c,
        const struct tw_resumable_hold *holds, size_t n, int64_t lease_ms,
        struct tw_err *err) TW_MUST_USE;

/* The following functions return TW_LOCKED, without changes, if the hold was lost. */
struct tw_resumable_piece {
	uint64_t start, bytes;
	const char *sha256, *object;
};
/* Appends a durable piece at the current end; lease_ms 0: also releases the hold. */
enum tw_status tw_catalogue_resumable_append(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const struct tw_resumable_piece *p, int64_t lease_ms,
        int64_t keep_ms, struct tw_err *err) TW_MUST_USE;
/* Records that it became that trace, also if it had before.  Releases the hold. */
enum tw_status tw_catalogue_resumable_done(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const char *trace_id, int64_t keep_ms,
        struct tw_err *err) TW_MUST_USE;
/* Cancels the upload; its pieces will be deleted.  Releases the hold. */
enum tw_status tw_catalogue_resumable_drop(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_resumable_release(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err);

/* All of them, in order. */
enum tw_status tw_catalogue_resumable_pieces(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable_piece **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* Holds, for io->owner, an upload whose pieces are to be deleted: it became a trace, was cancelled,
 * or has expired (*ret_expired).  TW_NOT_FOUND: none. */
enum tw_status tw_catalogue_resumable_clean(struct tw_catalogue *c, struct tw_resumable_hold *io,
        int64_t lease_ms, bool *ret_expired, struct tw_err *err) TW_MUST_USE;
/* After their deletion: deletes their rows, and the upload's unless it refers to a trace. */
enum tw_status tw_catalogue_resumable_cleaned(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err) TW_MUST_USE;
/* Whether any row refers to that file. */
enum tw_status tw_catalogue_resumable_refers_to(
        struct tw_catalogue *c, const char *object, bool *ret, struct tw_err *err) TW_MUST_USE;
/* Number of open uploads, and their received bytes. */
enum tw_status tw_catalogue_resumables_open(
        struct tw_catalogue *c, uint64_t *ret_n, uint64_t *ret_bytes, struct tw_err *err);

#endif
