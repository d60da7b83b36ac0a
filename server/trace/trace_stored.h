/* trace_stored.h - opens a trace's file from the storage. */
#ifndef TW_TRACE_STORED_H
#define TW_TRACE_STORED_H

#include "server/storage/blob.h"
#include "server/trace/trace_file.h"

/* TW_NOT_FOUND if missing, TW_BUSY while the storage is unavailable. */
enum tw_status tw_trace_stored_open(struct tw_blobs *b, const char *trace_id,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* TW_BUSY also if the file was not fetched by until_ms (monotonic; 0: no limit). */
enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;

#endif
