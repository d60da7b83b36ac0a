/*
 * commit_upload.h - commits a complete upload as a trace: makes files and row durable, then
 * visible.
 *
 * Used for raw bodies, forms, resumable and direct uploads.
 */
#ifndef TW_COMMIT_UPLOAD_H
#define TW_COMMIT_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "server/auth/auth.h"

struct tw_backlog;
struct tw_blob_writer;
struct tw_blobs;
struct tw_catalogue;
struct tw_jobs;
struct tw_recorder;
struct tw_trace_meta;

struct tw_upload_part {
	const char *name;   /* "trace", "threads", ... */
	const char *format; /* forced format, "" none */
	struct tw_blob_writer *writer;
};

struct tw_upload {
	const struct tw_caller *caller;
	const char *key; /* Idempotency-Key, "" none */
	const struct tw_trace_meta *meta;
	const struct tw_upload_part *parts;
	size_t n_parts;
};

struct tw_commit_parts {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_recorder *recorder;
	struct tw_backlog *backlog; /* NULL: no limit */
	struct tw_jobs *jobs;       /* NULL: nothing is decoded */
};

/* Returns after the trace is durable across a power failure (I1); it is then visible and queued for
 * decoding.  For an upload that already exists, returns its id and *ret_new false (I10).  Ends the
 * writers on success; on failure the caller must discard them, and no trace of the upload is left.
 * Thread: any; may wait for the disk. */
enum tw_status tw_commit_upload(const struct tw_commit_parts *to, const struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;

#endif
