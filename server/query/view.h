/*
 * view.h - a ready trace opened for one request: its file, and the mappings for its method names.
 * Thread: one request.
 */
#ifndef TW_VIEW_H
#define TW_VIEW_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/list.h"
#include "decoder/symbols/native_map.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/query/query.h"
#include "server/trace/symbols.h"

/*
 * --- native symbols ---
 *
 * A frame without a function carries its library's build id (decoder/base/native_frame.h).  The
 * symbols are those of the project's build "elf:" and that id, whenever they were uploaded (I8).
 */

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

/* --- the view --- */

struct tw_req;

struct tw_view {
	struct tw_req *req;
	struct tw_trace_row row;
	struct tw_trace_file *file;
	struct tw_symbols_ref *map_ref, *retrace_ref;
	struct tw_names names; /* the available mappings of its build */
	const struct tw_method_ref *methods;
	uint32_t n_methods;
	char map_sha256[TW_SHA256_HEX], retrace_sha256[TW_SHA256_HEX]; /* "" without a mapping */
	struct tw_natives_open natives; /* symbols that name its native frames */
	int64_t rules_version; /* version of the rules that the response depends on too; 0 none */
};

/* The name of a method of the trace, valid UTF-8; uses buf if it has to be composed.  *ret_known
 * (may be NULL) is false for ids without a mapping line. */
enum { TW_NAME_BYTES = 16384 };
struct tw_str tw_view_name(
        const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES], bool *ret_known);
/* The name of a method in the trace if R8 renamed it, valid UTF-8; "" otherwise. */
struct tw_str tw_view_obfuscated(const struct tw_view *v, uint32_t method, char buf[TW_NAME_BYTES]);
/* The descriptor (JVM) that distinguishes a method from its overloads, valid UTF-8; "" if unknown.
 */
enum { TW_DESCRIPTOR_BYTES = 1024 };
struct tw_str tw_view_descriptor(
        const struct tw_view *v, uint32_t method, char buf[TW_DESCRIPTOR_BYTES]);
/* Per method of the trace, whether it only waits (decoder/symbols/names.h).  Names of the platform
 * are never obfuscated, so a mapping of R8 does not matter. */
enum tw_status tw_view_waits(const struct tw_view *v, struct tw_arena *a, struct tw_waits *ret,
        struct tw_err *err) TW_MUST_USE;

#endif
