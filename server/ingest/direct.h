/*
 * direct.h - uploads that a device puts straight into a store elsewhere.
 *
 * incoming/<key>/<id> is what the device puts by a signed address, open/<id>.json what was said of
 * it before, <id>.done which trace it became.  All of it lies in the store, so any server of it may
 * finish an upload, and a restart forgets none.  What is put there is nobody's content until it was
 * read and verified: an address gives away nothing that has a row.  What is left is swept after a
 * day (jobs_store.h).
 * Thread: any; every call may wait for the store.
 */
#ifndef TW_DIRECT_H
#define TW_DIRECT_H

#include <jansson.h>

#include "decoder/base/buf.h"
#include "server/auth/auth.h"
#include "server/base/ulid.h"
#include "server/storage/blob.h"

enum { TW_DIRECT_S = 3600, TW_DIRECT_KEY = 96, TW_DIRECT_OVER = 16 };

struct tw_direct {
	const char *key_id, *id; /* ULIDs: whose key announced it, and its own */
	uint64_t bytes;
	const char *sha256;
};

/* TW_CONFLICT, with a sentence, where the storage has no such addresses. */
enum tw_status tw_direct_able(struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;
struct tw_direct_open {
	unsigned n;                             /* announced in the last hour and not done */
	char over[TW_DIRECT_OVER][TW_ID_BYTES]; /* some announced two hours ago, or before */
	size_t n_over;
};
enum tw_status tw_direct_count(struct tw_blobs *b, const char *key_id, int64_t now_ms,
        struct tw_direct_open *ret, struct tw_err *err) TW_MUST_USE;
/* kind: "json" or "done". */
enum tw_status tw_direct_keep(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        const json_t *said, struct tw_err *err) TW_MUST_USE;
/* json_decref is owed. TW_NOT_FOUND when it is not there. */
enum tw_status tw_direct_read(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Appends the address. */
enum tw_status tw_direct_address(struct tw_blobs *b, const struct tw_direct *d, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;
/* What was put, read and verified; the caller closes it.  TW_CONFLICT: nothing was put yet.
 * TW_CHECKSUM: something else was. */
enum tw_status tw_direct_open(
        struct tw_blobs *b, const struct tw_direct *d, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* The key of an object of it, kind "" for what is put. */
void tw_direct_key(const struct tw_direct *d, const char *kind, char out[TW_DIRECT_KEY]);

#endif
