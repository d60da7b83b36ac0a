/*
 * trace_file_inlined.h - reads the sampled frames of a trace as the methods of its mapping.
 *
 * A trace identifies a sampled frame by method and line, as its mapping may arrive later, and a
 * native frame by address and build id, as its symbols may. Here each frame is replaced by the
 * methods that the mapping has for the line, or by the method alone, or by its function or module,
 * in the table of methods, the call trees, the chunks and the threads, so that all readers of the
 * file get the same calls. These methods have indexes after the stored ones, in the order of their
 * names. A frame that called an outline gets the line from which the outline's code was extracted.
 * If frames of one method and line called several outlines, their common methods are used. Thread:
 * as the trace file's.
 */
#ifndef TW_TRACE_FILE_INLINED_H
#define TW_TRACE_FILE_INLINED_H

#include "server/trace/trace_file_internal.h"
#include "server/trace/trace_file_unpack.h"

struct tw_inlined;

/* ret NULL: the trace has no such frame. Everything is allocated in the arena. */
enum tw_status tw_inlined_new(struct tw_trace_file *f, const struct tw_names *names,
        struct tw_arena *a, struct tw_inlined **ret, struct tw_err *err) TW_MUST_USE;
/* Updates facts of `threads` (from tw_trace_file_threads) and of the trace. */
void tw_inlined_facts(
        const struct tw_inlined *in, struct tw_thread_info *threads, struct tw_trace_info *info);
const struct tw_method_ref *tw_inlined_refs(const struct tw_inlined *in, uint32_t *ret_n);
/* Built at the first call. */
enum tw_status tw_inlined_methods(struct tw_inlined *in, const struct tw_method_info **ret,
        uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* A copy. TW_NOT_FOUND: no such thread, or the summary tree. */
enum tw_status tw_inlined_tree(const struct tw_inlined *in, uint32_t thread_id, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;
/* Chunks are built at the first call. */
enum tw_status tw_inlined_chunks(struct tw_inlined *in, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* The zstd frame of a chunk. */
enum tw_status tw_inlined_chunk(struct tw_inlined *in, uint32_t chunk_id, struct tw_str *ret,
        struct tw_err *err) TW_MUST_USE;

/* The stored data (trace_file_read.c). */
enum tw_status tw_trace_file_stored_tree(struct tw_trace_file *f, uint32_t thread_id,
        struct tw_arena *a, struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_trace_file_stored_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_trace_file_stored_chunk(struct tw_trace_file *f, const struct tw_chunk_row *row,
        struct tw_chunk *c, struct tw_err *err) TW_MUST_USE;

#endif
