/*
 * direct.h - uploads that a device sends directly to object storage.
 *
 * incoming/<key>/<id> is the object that the device stores by a signed URL, open/<id>.json the
 * metadata announced before, <id>.done the id of the resulting trace.  All of it is in the store,
 * so any server may finish an upload, also after a restart.  An object is not content of a trace
 * until it was read and verified: a URL gives no access to existing traces.  Leftovers are swept
 * after a day (jobs_store.h). Thread: any; every call may wait for the store.
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
	const char *key_id, *id; /* ULIDs: of the key that announced it, and of the upload */
	uint64_t bytes;
	const char *sha256;
};

/* TW_CONFLICT, with a message, if the storage does not support signed URLs. */
enum tw_status tw_direct_check_supported(struct tw_blobs *b, struct tw_err *err) TW_MUST_USE;
struct tw_direct_open {
	unsigned n; /* announced in the last hour and not finished */
	char expired[TW_DIRECT_OVER]
	            [TW_ID_BYTES]; /* some that were announced at least two hours ago */
	size_t n_expired;
};
enum tw_status tw_direct_count(struct tw_blobs *b, const char *key_id, int64_t now_ms,
        struct tw_direct_open *ret, struct tw_err *err) TW_MUST_USE;
/* kind: "json" or "done". */
enum tw_status tw_direct_store(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        const json_t *record, struct tw_err *err) TW_MUST_USE;
/* The caller frees with json_decref.  TW_NOT_FOUND if it does not exist. */
enum tw_status tw_direct_read(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        json_t **ret, struct tw_err *err) TW_MUST_USE;
/* Appends the signed URL. */
enum tw_status tw_direct_address(struct tw_blobs *b, const struct tw_direct *d, struct tw_buf *out,
        struct tw_err *err) TW_MUST_USE;
/* The object, read and verified; the caller closes it.  TW_CONFLICT: not yet stored.  TW_CHECKSUM:
 * different content. */
enum tw_status tw_direct_open(
        struct tw_blobs *b, const struct tw_direct *d, int *ret_fd, struct tw_err *err) TW_MUST_USE;
/* The key of one of its objects, kind "" for the uploaded one. */
void tw_direct_key(const struct tw_direct *d, const char *kind, char out[TW_DIRECT_KEY]);

#endif
