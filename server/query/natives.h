/*
 * natives.h - the symbols of the native libraries that a trace has frames of.
 *
 * A frame without a function carries its library's build id (decoder/base/native_frame.h).  The
 * symbols are those of the project's build "elf:" and that id, whenever they were uploaded (I8).
 * Thread: one at a time.
 */
#ifndef TW_NATIVES_H
#define TW_NATIVES_H

#include "decoder/base/arena.h"
#include "decoder/base/list.h"
#include "decoder/symbols/native_map.h"
#include "server/catalogue/traces/catalogue_build.h"

struct tw_symbols;
struct tw_symbols_ref;
struct tw_trace_file;

enum { TW_NATIVES_MAX = 256 }; /* libraries of a trace; frames of further ones have no names */

struct tw_natives_open {               /* zero: none */
	struct tw_libraries libraries; /* in the arena, also after tw_natives_close */
	struct tw_natives natives;
	struct tw_symbols_ref **refs; /* of its maps */
	uint64_t version;             /* changes with the symbols; 0: none */
};

/* The libraries of a trace, in the arena, without their images.  Call before tw_trace_file_inline;
 * the file stays open. */
enum tw_status tw_natives_libraries(struct tw_trace_file *file, struct tw_arena *a,
        struct tw_libraries *ret, struct tw_err *err) TW_MUST_USE;
/* The libraries of these build ids (struct tw_str), in the arena, without their images. */
enum tw_status tw_natives_libraries_of(const struct tw_list *ids, struct tw_arena *a,
        struct tw_libraries *ret, struct tw_err *err) TW_MUST_USE;
/* Adds a build id of a frame, once; ids beyond TW_NATIVES_MAX are left out. */
enum tw_status tw_natives_add_id(
        struct tw_list *ids, struct tw_arena *a, struct tw_str id, struct tw_err *err) TW_MUST_USE;
/* Opens the symbols of io->libraries.  Otherwise as tw_natives_open. */
enum tw_status tw_natives_open_libraries(struct tw_catalogue *c, struct tw_symbols *s,
        const char *project_id, struct tw_arena *a, struct tw_natives_open *io,
        struct tw_err *err) TW_MUST_USE;
/* Call before tw_trace_file_inline.  Symbols that cannot be read name nothing; TW_BUSY and TW_NOMEM
 * may pass.  In the arena, except the references: release them with tw_natives_close. */
enum tw_status tw_natives_open(struct tw_catalogue *c, struct tw_symbols *s, const char *project_id,
        struct tw_trace_file *file, struct tw_arena *a, struct tw_natives_open *ret,
        struct tw_err *err) TW_MUST_USE;
void tw_natives_close(struct tw_symbols *s, struct tw_natives_open *n);

#endif
