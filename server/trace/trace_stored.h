/*
 * trace_stored.h - a trace's file, opened wherever it is kept.
 */
#ifndef TW_TRACE_STORED_H
#define TW_TRACE_STORED_H

#include "server/storage/blob.h"
#include "server/trace/trace_file.h"

/* TW_NOT_FOUND when it is not there, TW_BUSY while the storage is away. */
enum tw_status tw_trace_stored_open(struct tw_blobs *b, const char *trace_id,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* TW_BUSY also when it is not here by then (monotonic; 0: whenever). */
enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;

#endif
