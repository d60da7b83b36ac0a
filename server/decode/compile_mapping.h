/*
 * compile_mapping.h - compiles a mapping of a build, or the symbols of a native library, to the
 * image in which names are looked up.
 * Thread: any.
 */
#ifndef TW_COMPILE_MAPPING_H
#define TW_COMPILE_MAPPING_H

#include "decoder/base/buf.h"
#include "decoder/base/unzip.h"
#include "decoder/symbols/method_map.h"
#include "decoder/symbols/retrace.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/decode/native_write.h"

union tw_mapping_stats { /* by kind */
	struct tw_map_stats methods;
	struct tw_retrace_stats retrace;
	struct tw_native_stats symbols;
};

/* `feed` pushes the text or the ELF file, compressed or not; appends the image to *out. */
enum tw_status tw_compile_mapping(enum tw_mapping_kind kind, const struct tw_limits *limits,
        enum tw_status (*feed)(void *arg, tw_bytes_fn push, void *to, struct tw_err *err),
        void *arg, struct tw_buf *out, union tw_mapping_stats *ret, struct tw_err *err) TW_MUST_USE;

#endif
