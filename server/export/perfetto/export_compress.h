/*
 * export_compress.h - compresses a Perfetto file in the ways that Perfetto can read.
 */
#ifndef TW_EXPORT_COMPRESS_H
#define TW_EXPORT_COMPRESS_H

#include "decoder/base/buf.h"
#include "server/export/export_pull.h"
#include "server/export/perfetto/export_perfetto.h"

/* The most bytes of a group: Perfetto recommends compressed packets below 512 KB. */
enum { TW_FOLD_BYTES = 384 << 10 };
/* Removes complete packets from the front of *loose, in groups of the size that recorders use, and
 * appends one packet per group that contains them, compressed by zlib or zstd: as many groups as a
 * call can compress in parallel, until fewer than `least` bytes (at least 1) are left.  They are
 * moved to the front of *loose. */
enum tw_status tw_compress_packets(
        struct tw_buf *loose, size_t least, bool zstd, struct tw_buf *out);

/* The bytes of inner as one gzip member or zstd frame.  Takes ownership of inner, also on
 * failure. */
enum tw_status tw_compress_open(struct tw_pull inner, enum tw_perfetto_compression how,
        struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif
