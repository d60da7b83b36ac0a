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
#include "decoder/symbols/native_map.h"
#include "decoder/symbols/retrace.h"
#include "server/catalogue/traces/catalogue_build.h"

/* --- native symbols (native_write.c) --- */

/* Compiles the symbol table of an ELF file to an image (native_map.h).
 *
 * The file is a library with its symbol table (.symtab, otherwise .dynsym), or a file of symbols
 * split from one.  Names are demangled (C++, Rust).  Functions that the compiler inlined, and
 * lines, are not in the image (decision 0081).  Thread: one at a time. */

struct tw_native_writer;

struct tw_native_stats {
	uint64_t functions;
	char build_id[TW_BUILD_ID_HEX];
	char name[64]; /* SONAME; "" none */
};

/* max_bytes limits the file. */
struct tw_native_writer *tw_native_writer_new(uint64_t max_bytes);
struct tw_native_writer *tw_native_writer_free(struct tw_native_writer *w);
enum tw_status tw_native_writer_push(
        struct tw_native_writer *w, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Appends the image to *out.  TW_CORRUPT: not an ELF file; TW_UNSUPPORTED: one without a build id
 * or without functions. */
enum tw_status tw_native_writer_finish(struct tw_native_writer *w, struct tw_buf *out,
        struct tw_native_stats *ret, struct tw_err *err) TW_MUST_USE;

/* Whether a file begins like an ELF file. */
bool tw_native_is_elf(struct tw_str head);
/* The build id of an ELF file in memory, without its symbols.  False: it has none. */
bool tw_native_build_id(struct tw_str file, char out[TW_BUILD_ID_HEX]);

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
