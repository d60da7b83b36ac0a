/* trace_file_internal.h - shared by writing and reading of trace files. */
#ifndef TW_TRACE_FILE_INTERNAL_H
#define TW_TRACE_FILE_INTERNAL_H

#include <sqlite3.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "decoder/trace/note_columns.h"
#include "decoder/trace/trace_out.h"
#include "server/trace/trace_file.h"

enum { TW_TRACE_APPLICATION_ID = 0x54575452 /* "TWTR" */, TW_TRACE_SCHEMA_VERSION = 3 };
/* Limits on the decoded size of a frame: a chunk of 65,536 slices with every column at its longest,
 * a block of notes whose texts triple when made valid UTF-8, or a call tree of 64 M nodes. */
enum { TW_CHUNK_MAX_BYTES = 8 << 20, TW_NOTES_MAX_BYTES = 8 << 20 };
#define TW_TRACE_SYSTEM_KEY "system" /* the one row of trace_meta that is not a scalar */
#define TW_TREE_MAX_BYTES   ((uint64_t)1 << 30)

/* TW_FULL, TW_NOMEM, TW_CORRUPT or TW_IO, with SQLite's message. */
enum tw_status tw_trace_sql_fail(sqlite3 *db, const char *doing, struct tw_err *err);

/* Text of a column, "" for NULL. */
struct tw_str tw_trace_text_at(sqlite3_stmt *s, int col);
/* Returns whether, since the last call, this thread got "" for a text because memory ran out; the
 * values read are then wrong. */
bool tw_trace_text_oom(void);
/* Whether the thread's slices have times. */
bool tw_trace_has_times(const struct tw_thread_info *t);
/* As tw_trace_file_duration_ns; `timed`: a thread's slices have times. */
int64_t tw_trace_duration_ns(const struct tw_trace_info *i, bool timed);

sqlite3 *tw_trace_file_db(struct tw_trace_file *f);
/* Prepared at its first use, and kept by the reader after tw_trace_file_statement_done (which
 * accepts NULL).  NULL: failed. */
sqlite3_stmt *tw_trace_file_statement(struct tw_trace_file *f, const char *sql);
void tw_trace_file_statement_done(struct tw_trace_file *f, sqlite3_stmt *s);

/* --- compressing payloads --- */

/* Thread: one at a time. */
struct tw_packer;

/* NULL: out of memory. */
struct tw_packer *tw_packer_new(int zstd_level);
struct tw_packer *tw_packer_free(struct tw_packer *p);
/* Writes one zstd frame with content size and checksum to *frame.  The payload is the output of an
 * encoder: of chunks or notes, or of trees. */
enum tw_status tw_packer_pack(struct tw_packer *p, bool is_tree, const struct tw_buf *payload,
        struct tw_buf *frame, struct tw_err *err) TW_MUST_USE;
/* Its context, to compress other data. */
struct ZSTD_CCtx_s *tw_packer_zstd(struct tw_packer *p);

/* --- payloads compressed in parallel with the code that produces them --- */

/* A few slots hold payloads; one thread compresses them in order and passes each frame to
 * `store`. If there are few, or no thread can be created, the caller's thread does this.
 * Thread: one caller; `store` runs in the other thread until tw_frames_finish has returned. */
struct tw_frame_info {
	bool is_tree;
	struct tw_chunk_info chunk; /* is_tree: only thread_id */
	uint32_t nodes;             /* is_tree */
};

/* The compressed frame of a payload. */
typedef enum tw_status (*tw_frame_fn)(void *arg, const struct tw_frame_info *info,
        const struct tw_buf *frame, struct tw_err *err);

struct tw_frames;

/* NULL: out of memory. */
struct tw_frames *tw_frames_new(int zstd_level, tw_frame_fn store, void *arg);
/* Waits for work in progress and ignores its result. */
struct tw_frames *tw_frames_free(struct tw_frames *f);
/* Takes the payload, and gives the buffer other memory, with any content.  Returns the first error
 * of compressing or storing this payload or an earlier one. */
enum tw_status tw_frames_take(struct tw_frames *f, const struct tw_frame_info *info,
        struct tw_buf *payload, struct tw_err *err) TW_MUST_USE;
/* Returns when everything is stored.  Can be called again, without effect; payloads added later are
 * compressed and stored in the caller's thread. */
enum tw_status tw_frames_finish(struct tw_frames *f, struct tw_err *err) TW_MUST_USE;
/* The packer, while nothing is being compressed. */
struct tw_packer *tw_frames_packer(struct tw_frames *f);

/* --- the summary tree, computed while the rest is written --- */

/* Thread: one at a time. */
struct tw_summary_maker;

/* NULL: out of memory. */
struct tw_summary_maker *tw_summary_maker_new(tw_summary_fn make);
struct tw_summary_maker *tw_summary_maker_free(struct tw_summary_maker *m);

/* Takes the sums of a thread's call tree, or gives up. */
void tw_summary_maker_keep(struct tw_summary_maker *m, struct tw_tree_sums *sums);

/* After the last tree; `methods`: number of methods in the trace.  The summary tree is made in a
 * separate thread, unless there are too few nodes or not enough memory. */
enum tw_status tw_summary_maker_make(
        struct tw_summary_maker *m, uint32_t methods, struct tw_err *err) TW_MUST_USE;
/* Waits for the summary tree and stores it, if one was made, next to the trees. */
enum tw_status tw_summary_maker_store(
        struct tw_summary_maker *m, struct tw_frames *frames, struct tw_err *err) TW_MUST_USE;

/* --- blocks of notes --- */

/* The sums of a block's notes; `ret` has space for n.  The sums of a range cost its blocks and the
 * notes at its two ends (tw_query_note_sums).  TW_NOMEM. */
enum tw_status tw_notes_sum(const struct tw_note_row *rows, size_t n, struct tw_note_row *ret,
        size_t *ret_n) TW_MUST_USE;

/* Returns false to stop; `first` is the id of the block's first note. */
typedef bool (*tw_block_fn)(void *arg, uint64_t first, const struct tw_notes *notes);
enum tw_block_part { TW_BLOCK_NOTES, TW_BLOCK_SUMS };
/* Blocks with ids after q->after up to q->until, in q's time; the rest of q is not used. */
enum tw_status tw_trace_file_each_block(struct tw_trace_file *f, enum tw_block_part part,
        const struct tw_note_query *q, tw_block_fn each, void *arg, struct tw_err *err) TW_MUST_USE;
/* Decodes a stored frame into the arena and *payload (trace_file_read.c). */
enum tw_status tw_trace_file_notes_of(struct tw_trace_file *f, struct tw_str frame,
        struct tw_arena *a, struct tw_buf *payload, struct tw_notes *ret,
        struct tw_err *err) TW_MUST_USE;

/* --- sampled frames as the methods of the trace's mapping --- */

/* A trace identifies a sampled frame by method and line, as its mapping may arrive later, and a
 * native frame by address and build id, as its symbols may. Here each frame is replaced by the
 * methods that the mapping has for the line, or by the method alone, or by its function or
 * module, in the table of methods, the call trees, the chunks and the threads, so that all
 * readers of the file get the same calls. These methods have indexes after the stored ones, in
 * the order of their names. A frame that called an outline gets the line from which the
 * outline's code was extracted. If frames of one method and line called several outlines, their
 * common methods are used.  Thread: as the trace file's. */
struct tw_inlined;

/* Whether it is such a frame.  Traces without any have no struct tw_inlined. */
static inline bool tw_method_is_frame(const struct tw_method_ref *m)
{
	return m->name && tw_names_is_frame(tw_method_named(m).name);
}

/* Everything is allocated in the arena. */
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
