/*
 * catalogue_resumable.h - uploads in pieces that any of several servers may go on with: their rows.
 *
 * A row says how far an upload is; its bytes are files of the storage that rows of pieces name.
 * Whoever writes holds the row for a while by the database's clock, under a name that nobody else
 * ever has: what was written by that name alone counts, so a server that stood still while another
 * went on adds nothing behind its back.  Ids without a project reach nothing (I11).
 * Thread: any.
 */
#ifndef TW_CATALOGUE_RESUMABLE_H
#define TW_CATALOGUE_RESUMABLE_H

#include "decoder/base/arena.h"
#include "server/catalogue/catalogue.h"

enum { TW_RESUMABLE_KEY = 256, TW_RESUMABLE_OWNER = 96, TW_RESUMABLE_PIECES = 10000 };

struct tw_resumable { /* a row */
	char id[TW_ID_BYTES], project_id[TW_ID_BYTES], key_id[TW_ID_BYTES];
	char trace_id[TW_ID_BYTES]; /* "" until it is one */
	char key[TW_RESUMABLE_KEY]; /* Idempotency-Key */
	uint64_t bytes, arrived;
	uint32_t pieces;
	int64_t expires_ms;
	const char *metadata; /* in the arena */
};

struct tw_resumable_limits { /* of one key's that are open */
	unsigned count;
	uint64_t bytes;
	int64_t keep_ms; /* since the last byte */
};

/* TW_RATE past a limit of the key.  Of `u` all but what is to come; expires_ms is set. */
enum tw_status tw_catalogue_resumable_add(struct tw_catalogue *c, struct tw_resumable *u,
        const struct tw_resumable_limits *limits, struct tw_err *err) TW_MUST_USE;
/* TW_NOT_FOUND, also when it is too old or of another project. */
enum tw_status tw_catalogue_resumable_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable *ret,
        struct tw_err *err) TW_MUST_USE;

struct tw_resumable_hold { /* of a row, for writing */
	char project_id[TW_ID_BYTES], id[TW_ID_BYTES];
	char owner[TW_RESUMABLE_OWNER];
};
/* TW_LOCKED while somebody else has it.  One that is a trace is given to anybody, and perhaps not
 * held. */
enum tw_status tw_catalogue_resumable_hold(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, int64_t lease_ms, struct tw_arena *a,
        struct tw_resumable *ret, struct tw_err *err) TW_MUST_USE;
/* Those that were lost stay lost.  Thread: one. */
enum tw_status tw_catalogue_resumables_renew(struct tw_catalogue *c,
        const struct tw_resumable_hold *holds, size_t n, int64_t lease_ms,
        struct tw_err *err) TW_MUST_USE;

/* The following are TW_LOCKED when the hold was lost, and change nothing then. */
struct tw_resumable_piece {
	uint64_t start, bytes;
	const char *sha256, *object;
};
/* A piece that is durable where it ends; lease_ms 0: the hold ends with it. */
enum tw_status tw_catalogue_resumable_append(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const struct tw_resumable_piece *p, int64_t lease_ms,
        int64_t keep_ms, struct tw_err *err) TW_MUST_USE;
/* It became that trace; also when it had before.  The hold ends. */
enum tw_status tw_catalogue_resumable_done(struct tw_catalogue *c,
        const struct tw_resumable_hold *h, const char *trace_id, int64_t keep_ms,
        struct tw_err *err) TW_MUST_USE;
/* It is gone for everybody, and its pieces are to be deleted.  The hold ends. */
enum tw_status tw_catalogue_resumable_drop(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_catalogue_resumable_release(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err);

/* All of them, in order. */
enum tw_status tw_catalogue_resumable_pieces(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_resumable_piece **ret, size_t *ret_n,
        struct tw_err *err) TW_MUST_USE;

/* One whose pieces are to be deleted, held for it by owner: it became a trace, was dropped, or is
 * too old (*ret_expired).  TW_NOT_FOUND: none. */
enum tw_status tw_catalogue_resumable_clean(struct tw_catalogue *c, struct tw_resumable_hold *io,
        int64_t lease_ms, bool *ret_expired, struct tw_err *err) TW_MUST_USE;
/* They are: their rows go, and the upload's, unless it tells of a trace. */
enum tw_status tw_catalogue_resumable_cleaned(
        struct tw_catalogue *c, const struct tw_resumable_hold *h, struct tw_err *err) TW_MUST_USE;
/* Does any row name that file? */
enum tw_status tw_catalogue_resumable_names(
        struct tw_catalogue *c, const char *object, bool *ret, struct tw_err *err) TW_MUST_USE;
/* How many are open, and the bytes of them that are here. */
enum tw_status tw_catalogue_resumables_open(
        struct tw_catalogue *c, uint64_t *ret_n, uint64_t *ret_bytes, struct tw_err *err);

#endif
