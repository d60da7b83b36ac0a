/*
 * export_compress.h - compresses a Perfetto file in the ways that Perfetto can read.
 */
#ifndef TW_EXPORT_COMPRESS_H
#define TW_EXPORT_COMPRESS_H

#include "decoder/base/buf.h"
#include "server/export/export_pull.h"
#include "server/export/perfetto/export_perfetto.h"

/* Removes complete packets from the front of *loose, in groups of the size that recorders use, and
 * appends one packet that contains them, compressed by zlib or zstd. The remainder of *loose is
 * moved to its front. */
enum tw_status tw_compress_packets(struct tw_buf *loose, bool zstd, struct tw_buf *out);

/* The bytes of inner as one gzip member or zstd frame.  Takes ownership of inner, also on
 * failure. */
enum tw_status tw_compress_open(struct tw_pull inner, enum tw_perfetto_compression how,
        struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif
