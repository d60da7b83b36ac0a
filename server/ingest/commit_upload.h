/*
 * commit_upload.h - an upload that is all there becomes a trace: files and row durable, then known.
 *
 * The one way in, for whole bodies, forms and resumed uploads alike.
 */
#ifndef TW_COMMIT_UPLOAD_H
#define TW_COMMIT_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "server/auth/auth.h"

struct tw_app;
struct tw_blob_writer;
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

/* Answers when the trace survives a power cut (I1), and is then visible and on its way to a
 * decoder; an upload that was there before gives its id and *ret_new false (I10).  Ends the writers
 * on success; on failure they stay the caller's to discard, and no trace of the upload is left.
 * Thread: any; may wait for the disk. */
enum tw_status tw_commit_upload(struct tw_app *app, const struct tw_upload *up,
        char ret_id[TW_ID_BYTES], bool *ret_new, struct tw_err *err) TW_MUST_USE;

#endif
