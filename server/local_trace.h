/*
 * local_trace.h - files of the command line: an upload, its mapping and thread list, without a
 * server.
 */
#ifndef TW_LOCAL_TRACE_H
#define TW_LOCAL_TRACE_H

#include "base/buf.h"
#include "decoder.h"
#include "symbols/method_map.h"
#include "trace_file.h"

/* Pushes a file through `push` piece by piece; "-" is standard input. */
enum tw_status tw_local_read(const char *path,
        enum tw_status (*push)(void *arg, const uint8_t *p, size_t n, struct tw_err *err),
        void *arg, uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* Feeds a file to a sink as part `part` ("trace", "threads"). */
enum tw_status tw_local_decode(const char *path, const char *part, struct tw_sink *sink,
        struct tw_trace_facts *ret, struct tw_err *err) TW_MUST_USE;

/* A mapping's text, compressed or not, to an image in *image (owned by the caller). */
enum tw_status tw_local_map(
        const char *path, struct tw_buf *image, struct tw_map *ret, struct tw_err *err) TW_MUST_USE;

/* Opens a trace file, or decodes an upload into one that is gone when it is closed.  threads may
 * be NULL. */
enum tw_status tw_local_open(const char *path, const char *threads, struct tw_trace_file **ret,
        struct tw_err *err) TW_MUST_USE;

#endif
