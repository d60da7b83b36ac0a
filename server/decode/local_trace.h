/*
 * local_trace.h - reads uploads, mappings and thread lists from files, for commands without a
 * server.
 * Thread: the command's only one.
 */
#ifndef TW_LOCAL_TRACE_H
#define TW_LOCAL_TRACE_H

#include "decoder/base/buf.h"
#include "decoder/decoder.h"
#include "decoder/symbols/names.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/trace/trace_file.h"

struct tw_builder;

/* Pushes a file through `push` piece by piece; "-" is standard input. */
enum tw_status tw_local_read(const char *path,
        enum tw_status (*push)(void *arg, const uint8_t *p, size_t n, struct tw_err *err),
        void *arg, uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;

/* Feeds a file to a sink as part `part` ("trace", "threads"; NULL any); an archive of a recording's
 * files as all of them.  builder: the builder to which the sink belongs, or NULL. */
enum tw_status tw_local_decode(const char *path, const char *part, struct tw_sink *sink,
        struct tw_builder *builder, struct tw_trace_facts *ret, struct tw_err *err) TW_MUST_USE;

/* Compiles a mapping, or the symbols of a library; appends the image to *image. */
enum tw_status tw_local_compile(enum tw_mapping_kind kind, const char *path, struct tw_buf *image,
        struct tw_err *err) TW_MUST_USE;

enum { TW_LOCAL_SYMBOLS = 64 }; /* files */

struct tw_local_files { /* named on a command line; each may be absent */
	const char *mapping,
	        *retrace; /* methodMapping.txt and R8's mapping.txt, compressed or not */
	const char *symbols[TW_LOCAL_SYMBOLS]; /* .so files of native libraries */
	size_t n_symbols;
};

/* The mappings and symbols in these files, compiled. */
struct tw_local_names {
	struct tw_buf images[2];
	struct tw_map map;
	struct tw_retrace retrace;
	struct tw_buf symbols[TW_LOCAL_SYMBOLS]; /* images of native libraries */
	struct tw_native_map maps[TW_LOCAL_SYMBOLS];
	struct tw_natives natives;
	struct tw_names names; /* points into this struct: do not move it */
};
void tw_local_names_init(struct tw_local_names *n);
void tw_local_names_done(struct tw_local_names *n);
/* A mapping replaces one that was read before; symbols are added. */
enum tw_status tw_local_names_read(
        struct tw_local_names *n, const struct tw_local_files *of, struct tw_err *err) TW_MUST_USE;
/* The same from compiled images: images[0] and [1], empty if absent, and all of symbols[]. */
enum tw_status tw_local_names_open(struct tw_local_names *n, struct tw_err *err) TW_MUST_USE;

/* Opens a trace file, or decodes an upload into a temporary one that is deleted on close.  threads
 * may be NULL. */
enum tw_status tw_local_open(const char *path, const char *threads, struct tw_trace_file **ret,
        struct tw_err *err) TW_MUST_USE;

#endif
