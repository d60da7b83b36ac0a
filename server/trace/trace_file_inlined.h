/*
 * trace_file_inlined.h - a trace whose sampled frames are read as the methods of their mapping.
 *
 * A trace names a sampled frame by method and line, as its mapping may come later.  Here each is
 * replaced by the methods that the mapping gives for the line, or by the method alone, in the
 * table of methods, the call trees, the chunks and the threads, so that every reader of the file
 * has the same calls.  The methods have indexes after those that are stored, in the order of
 * their names.
 *
 * A frame that called an outline has its line where the outline's code was taken from.  Frames of
 * one method and line that called several are read as what all of these have in common.
 * Thread: as the trace file's.
 */
#ifndef TW_TRACE_FILE_INLINED_H
#define TW_TRACE_FILE_INLINED_H

#include "server/trace/trace_file_internal.h"
#include "server/trace/trace_file_unpack.h"

struct tw_inlined;

/* *ret NULL: the trace has no frame with a line.  All of it is in the arena. */
enum tw_status tw_inlined_new(struct tw_trace_file *f, const struct tw_names *names,
        struct tw_arena *a, struct tw_inlined **ret, struct tw_err *err) TW_MUST_USE;
/* Of `threads`, as tw_trace_file_threads gives them; and of the trace. */
void tw_inlined_facts(
        const struct tw_inlined *in, struct tw_thread_info *threads, struct tw_trace_info *info);
const struct tw_method_ref *tw_inlined_refs(const struct tw_inlined *in, uint32_t *ret_n);
/* Made at the first call. */
enum tw_status tw_inlined_methods(struct tw_inlined *in, const struct tw_method_info **ret,
        uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* A copy.  TW_NOT_FOUND: no such thread, or the crown. */
enum tw_status tw_inlined_tree(const struct tw_inlined *in, uint32_t thread_id, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;
/* Chunks are made at the first call. */
enum tw_status tw_inlined_chunks(struct tw_inlined *in, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* The zstd frame of a chunk. */
enum tw_status tw_inlined_chunk(struct tw_inlined *in, uint32_t chunk_id, struct tw_str *ret,
        struct tw_err *err) TW_MUST_USE;

/* As they are stored (trace_file_read.c). */
enum tw_status tw_trace_file_stored_tree(struct tw_trace_file *f, uint32_t thread_id,
        struct tw_arena *a, struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_trace_file_stored_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_trace_file_stored_chunk(struct tw_trace_file *f, const struct tw_chunk_row *row,
        struct tw_chunk *c, struct tw_err *err) TW_MUST_USE;

#endif
