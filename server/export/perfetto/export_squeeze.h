/*
 * export_squeeze.h - a Perfetto file made smaller in the ways that Perfetto reads.
 */
#ifndef TW_EXPORT_SQUEEZE_H
#define TW_EXPORT_SQUEEZE_H

#include "decoder/base/buf.h"
#include "server/export/export_pull.h"
#include "server/export/perfetto/export_perfetto.h"

/* Takes whole packets off the front of *loose, as many as recorders put together, and appends one
 * packet that holds them, compressed by zlib or zstd.  What stays in *loose is moved up. */
enum tw_status tw_squeeze_packets(struct tw_buf *loose, bool zstd, struct tw_buf *out);

/* The bytes of inner as one gzip member or zstd frame.  Takes inner, also on failure. */
enum tw_status tw_squeeze_open(struct tw_pull inner, enum tw_perfetto_squeeze how,
        struct tw_pull *ret, struct tw_err *err) TW_MUST_USE;

#endif
