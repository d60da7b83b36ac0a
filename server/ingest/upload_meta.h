/*
 * upload_meta.h - parses and validates a trace's metadata from the query and the `meta` part.
 *
 * Texts are at most TW_MAX_TEXT bytes of UTF-8 without control characters.  Unknown names are
 * rejected, since a typing error would lose data: custom facts belong into labels.  A commit
 * belongs to a build, so it requires build_id: tw_upload_meta_check_whole checks that after
 * everything was read. Thread: the request's.
 */
#ifndef TW_UPLOAD_META_H
#define TW_UPLOAD_META_H

#include <jansson.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { TW_MAX_LABELS = 64, TW_MAX_LABELS_BYTES = 4096 };
/* A trace that claims to be older comes from a device whose clock is wrong. */
enum { TW_RECORDED_DAYS = 30 };

struct tw_ingest_pair { /* as in the query of POST /api/v1/traces */
	const char *name, *value;
};

/* A commit id, 7 to 64 hex digits, converted to lower case; TW_BAD_REQUEST. */
enum tw_status tw_upload_meta_commit(
        const char *text, char ret[TW_COMMIT_BYTES], struct tw_err *err) TW_MUST_USE;
/* All fields "". */
struct tw_trace_meta tw_upload_meta_none(void);
/* Sets one value from text, as in a query.  TW_BAD_REQUEST with the reason. */
enum tw_status tw_upload_meta_text(struct tw_arena *a, const char *name, const char *value,
        struct tw_trace_meta *m, struct tw_err *err) TW_MUST_USE;
/* Reads the JSON object of the `meta` part: texts, numbers, and labels as an object. */
enum tw_status tw_upload_meta_json(struct tw_arena *a, const json_t *object,
        struct tw_trace_meta *m, struct tw_err *err) TW_MUST_USE;

/* When the trace was recorded, by the server's clock: started_ms, corrected by the device's clock
 * when it sent the upload.  Without started_ms, or if the result is in the future or more than
 * TW_RECORDED_DAYS old, the arrival. */
int64_t tw_upload_meta_recorded(const struct tw_trace_meta *m, int64_t received_ms);

enum tw_status tw_upload_meta_check_whole(
        const struct tw_trace_meta *m, struct tw_err *err) TW_MUST_USE;

#endif
