/*
 * catalogue_commit_upload.h - adds a complete upload: a row, its parts and its job.  Thread: any.
 */
#ifndef TW_CATALOGUE_COMMIT_UPLOAD_H
#define TW_CATALOGUE_COMMIT_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/caller.h"
#include "server/base/ulid.h"

struct tw_catalogue;
struct tw_part;
struct tw_trace_meta;

struct tw_arrival { /* a complete upload */
	const struct tw_caller *caller;
	const char *key; /* Idempotency-Key, "" none */
	const struct tw_trace_meta *meta;
	const struct tw_part *parts;
	size_t n_parts;
	/* Returns once the parts' files are durable, or the error; NULL: they already are.  Called
	 * from any thread, possibly more than once, while tw_catalogue_trace_add runs. */
	enum tw_status (*durable)(void *arg, struct tw_err *err);
	/* Whether a part's file still exists, for servers that delete files in one folder.  Called
	 * when no other server can delete it any longer before the row is committed.  NULL: no
	 * other server deletes files. */
	enum tw_status (*present)(void *arg, const char *sha256, struct tw_err *err);
	void *arg;
};

/* Adds the row, its parts and its job in one transaction, which becomes visible once it and the
 * files are durable (I1).  Returns an earlier trace's id, with *ret_new false, for the same
 * idempotency key in the project; without a key for the same device, uuid and content; without uuid
 * for the same device, start and content within a day.  The same key with other content is
 * TW_CONFLICT. */
enum tw_status tw_catalogue_trace_add(struct tw_catalogue *c, const struct tw_arrival *of,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;
/* After a crash: parts of traces whose rows may have survived without their files, with the ids for
 * tw_catalogue_trace_delete.  Never traces that were acknowledged or visible. */
struct tw_unverified {
	const char *project_id, *trace_id, *sha256;
	uint64_t bytes;
};
enum tw_status tw_catalogue_unverified(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_unverified **ret, size_t *ret_n, struct tw_err *err) TW_MUST_USE;

#endif
