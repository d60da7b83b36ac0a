/*
 * native_frame.h - the name of a native frame whose function is not known: module, address and the
 * module's build id.
 *
 *   libapp.so+0x1a2b(BuildId:0123abcd)          an address as the module's symbol table has it
 *   libapp.so+0x1a2b(BuildId:0123abcd,offset)   an offset in the module's file
 *
 * A trace stores the name like any other.  names.h resolves it with the symbols of that build id,
 * which may arrive after the trace.  Thread: any.
 */
#ifndef TW_NATIVE_FRAME_H
#define TW_NATIVE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"

enum {
	TW_BUILD_ID_MIN = 4, /* bytes of a build id */
	TW_BUILD_ID_MAX = 32,
	TW_BUILD_ID_HEX = 2 * TW_BUILD_ID_MAX + 1,
	TW_NATIVE_FRAME_BYTES = 320,
	TW_NATIVE_MODULE_BYTES = 204 /* "[libapp.so]" */
};

struct tw_native_frame {
	struct tw_str module;   /* file name without its folders */
	struct tw_str build_id; /* lower-case hex digits */
	uint64_t address;
	bool is_offset; /* address is an offset in the file */
};

/* Writes the digits of a build id; false: it has too few or too many bytes. */
bool tw_build_id_hex(const uint8_t *id, size_t n, char out[TW_BUILD_ID_HEX]);
/* Copies a build id given as hex digits, in lower case; false: it is not one. */
bool tw_build_id_clean(struct tw_str text, char out[TW_BUILD_ID_HEX]);

/* The name in out.  The module may be a path. */
struct tw_str tw_native_frame_name(
        const struct tw_native_frame *f, char out[TW_NATIVE_FRAME_BYTES]);
/* The same of "libapp.so+0x1a2b" and a build id, in out. */
struct tw_str tw_native_frame_tagged(
        struct tw_str location, struct tw_str build_id, char out[TW_NATIVE_FRAME_BYTES]);
/* False: another name.  Views of the name. */
bool tw_native_frame_parse(struct tw_str name, struct tw_native_frame *ret);
/* "[libapp.so]", how a frame without symbols is shown. */
struct tw_str tw_native_frame_module(
        const struct tw_native_frame *f, char out[TW_NATIVE_MODULE_BYTES]);

#endif
