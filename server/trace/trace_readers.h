/*
 * trace_readers.h - readers of small trace files, used for one file after the other.
 *
 * Several stages of derived data read each new trace, and opening a small file with a new reader
 * takes longer than reading it.  Thread: any.
 */
#ifndef TW_TRACE_READERS_H
#define TW_TRACE_READERS_H

#include "server/storage/blob.h"
#include "server/trace/trace_file.h"

struct tw_trace_readers;

struct tw_trace_readers *tw_trace_readers_new(void); /* NULL: no memory */
struct tw_trace_readers *tw_trace_readers_free(struct tw_trace_readers *r);
/* As tw_trace_stored_open; `r` NULL: always opens the file. */
enum tw_status tw_trace_readers_open(struct tw_trace_readers *r, struct tw_blobs *b,
        const char *trace_id, struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* Ends the use of a reader (NULL: none), which `r` may keep.  Returns NULL. */
struct tw_trace_file *tw_trace_readers_close(struct tw_trace_readers *r, struct tw_trace_file *f);

/* --- Opens a trace's file from the storage --- */

/* TW_NOT_FOUND if missing, TW_BUSY while the storage is unavailable. */
enum tw_status tw_trace_stored_open(struct tw_blobs *b, const char *trace_id,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* TW_BUSY also if the file was not fetched by until_ms (monotonic; 0: no limit). */
enum tw_status tw_trace_stored_open_by(struct tw_blobs *b, const char *trace_id, int64_t until_ms,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;

#endif
