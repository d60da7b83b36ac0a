/*
 * trace_file.h - one decoded trace as an SQLite file: written once, then read.  A small one is
 * stored compressed (trace_file_vfs.h).
 *
 * The writer is a tw_trace_out for the builder; its file is complete only after
 * tw_trace_writer_commit (which syncs the file; the caller renames it and syncs the folder).
 * Readers check its schema version.
 * Schema: schema/trace/0001_init.sql.  In this folder only trace_file*.c and trace_sql*.c use
 * SQLite.
 * Thread: a writer or a reader belongs to one thread at a time; a file may have any number of
 * readers.
 */
#ifndef TW_TRACE_FILE_H
#define TW_TRACE_FILE_H

#include "decoder/symbols/names.h"
#include "decoder/trace/trace_out.h"

struct tw_trace_writer;

/* Facts stored with the trace. */
struct tw_trace_facts {
	const char *format; /* "btrace2" */
	uint64_t input_bytes, decoded_bytes;
	uint32_t decoder_version;
};

struct tw_forest { /* call trees of one or more threads */
	const struct tw_tree *trees;
	uint32_t n;
};

/* The summary tree: the heaviest nodes of all threads' merged call trees. It is computed once and
 * stored, so that the cost of a flame graph of the trace depends on the displayed nodes, not on the
 * trace's size. */
struct tw_summary_tree {
	struct tw_tree tree; /* cpu_ns: number of nodes of the threads' trees merged into a node */
	uint32_t rest;       /* method of the nodes that represent omitted siblings */
};

enum { TW_SUMMARY_NODES = 20000 };

/* Computes the summary tree: tw_query_summary. */
typedef enum tw_status (*tw_summary_fn)(const struct tw_tree_sums *trees, uint32_t n_trees,
        uint32_t max_nodes, uint32_t rest, struct tw_arena *a, struct tw_summary_tree *ret,
        struct tw_err *err);

enum tw_status tw_trace_writer_new(const char *path, tw_summary_fn make_summary,
        struct tw_trace_writer **ret, struct tw_err *err) TW_MUST_USE;
/* The same in two steps.  What is prepared depends on no trace, and belongs to no descriptor and no
 * thread, so a process may copy itself in between. */
enum tw_status tw_trace_writer_prepare(
        struct tw_trace_writer **ret, struct tw_err *err) TW_MUST_USE;
/* `fd`: an empty file, open for reading and writing.  The caller keeps the descriptor; the file is
 * not removed on failure. */
enum tw_status tw_trace_writer_begin(struct tw_trace_writer *w, int fd, tw_summary_fn make_summary,
        struct tw_err *err) TW_MUST_USE;
/* The caller syncs the file after tw_trace_writer_commit. */
void tw_trace_writer_leave_unsynced(struct tw_trace_writer *w);
struct tw_trace_out *tw_trace_writer_out(struct tw_trace_writer *w);
enum tw_status tw_trace_writer_commit(struct tw_trace_writer *w, const struct tw_trace_facts *facts,
        struct tw_err *err) TW_MUST_USE;
/* Stores facts of the device's own trace (export_system_facts.h).  Call once, before commit. */
enum tw_status tw_trace_writer_system(
        struct tw_trace_writer *w, struct tw_str facts, struct tw_err *err) TW_MUST_USE;
struct tw_trace_written { /* as received by the writer; borrowed until it is freed */
	struct tw_trace_info info;
	int64_t duration_ns; /* as tw_trace_file_duration_ns */
	const struct tw_repair_count *repairs;
	uint32_t n_repairs;
	struct tw_str anr;   /* once committed: the first ANR report, JSON */
	uint64_t file_bytes; /* once committed */
};
const struct tw_trace_written *tw_trace_writer_written(const struct tw_trace_writer *w);
/* Closes the file, and removes it without a commit.  Accepts NULL; returns NULL. */
struct tw_trace_writer *tw_trace_writer_free(struct tw_trace_writer *w);

struct tw_trace_file;

/* Whether a file that begins with these bytes is a trace file, or another SQLite database. */
bool tw_trace_file_is(const char *head, size_t n);
enum tw_status tw_trace_file_open(
        const char *path, struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* The caller keeps the descriptor, which must outlive the reader. */
enum tw_status tw_trace_file_open_on(
        int fd, struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
/* The reader owns the descriptor, even if this fails.  `used`: from tw_trace_file_reuse, and no
 * longer the caller's; NULL: none. */
enum tw_status tw_trace_file_open_fd(int owned_fd, struct tw_trace_file *used,
        struct tw_trace_file **ret, struct tw_err *err) TW_MUST_USE;
struct tw_trace_file *tw_trace_file_close(struct tw_trace_file *f);
/* Closes the file, and returns the reader for the next one: opening a small file takes longer than
 * reading it.  NULL: the reader was closed, as its buffers are large or the file is damaged. */
struct tw_trace_file *tw_trace_file_reuse(struct tw_trace_file *f);

/* From now on all functions replace a sampled frame with a line by the methods that the mapping has
 * for it: inlined methods become frames, compiler-generated frames are removed. Call before reading
 * anything except the facts; `names` must outlive the reader. */
enum tw_status tw_trace_file_inline(
        struct tw_trace_file *f, const struct tw_names *names, struct tw_err *err) TW_MUST_USE;
/* Returns whether the calls depend on the mapping, and not only on the file. */
bool tw_trace_file_is_inlined(const struct tw_trace_file *f);

/* Returns whether damage was found while reading: a failed checksum, a broken page. */
bool tw_trace_file_is_damaged(const struct tw_trace_file *f);
/* Returns st, and records damage if it is TW_CORRUPT: for damage that a caller finds in the file's
 * bytes. */
enum tw_status tw_trace_file_noted(struct tw_trace_file *f, enum tw_status st);

/* All borrowed until close. */
const struct tw_trace_info *tw_trace_file_info(const struct tw_trace_file *f);
const struct tw_trace_facts *tw_trace_file_facts(const struct tw_trace_file *f);
const struct tw_thread_info *tw_trace_file_threads(const struct tw_trace_file *f, uint32_t *ret_n);
/* From the first begin to the last end of its calls, without notes; -1 if it has no times (counts
 * and snapshots). */
int64_t tw_trace_file_duration_ns(const struct tw_trace_file *f);
/* Removes data that may identify a user or a server, for files outside the team: from now on notes
 * have no texts (except the fixed words of states), there are no counters, documents and processes,
 * and threads have the first word of their name.  The reader cannot be reused for another trace. */
void tw_trace_file_sanitize(struct tw_trace_file *f);
bool tw_trace_file_is_sanitized(const struct tw_trace_file *f);
/* The name of a call in such a file: without the part that begins with a web address. */
struct tw_str tw_sanitized_name(struct tw_str name);
const struct tw_repair_count *tw_trace_file_repairs(const struct tw_trace_file *f, uint32_t *ret_n);
/* Appends the facts of tw_trace_writer_system. TW_NOT_FOUND: none are stored. */
enum tw_status tw_trace_file_system(
        struct tw_trace_file *f, struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* Only names and ids: a fifth of the memory of tw_trace_file_methods.  Loaded at the first call. */
struct tw_method_ref {
	const char *name; /* NULL: named by `id` and the build's mapping */
	uint64_t id; /* or the length of name, with TW_METHOD_ORIGINAL if it is an original name */
};
#define TW_METHOD_ORIGINAL (UINT64_C(1) << 63)
enum tw_status tw_trace_file_method_refs(struct tw_trace_file *f, const struct tw_method_ref **ret,
        uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
static inline struct tw_named tw_method_named(const struct tw_method_ref *m)
{
	const size_t len = (size_t)(m->id & ~TW_METHOD_ORIGINAL);

	return (struct tw_named){.has_id = !m->name,
	        .id = m->name ? 0 : m->id,
	        .name = m->name ? (struct tw_str){m->name, len} : TW_STR(""),
	        .original = m->name && (m->id & TW_METHOD_ORIGINAL)};
}
static inline struct tw_named tw_method_info_named(const struct tw_method_info *m)
{
	return (struct tw_named){m->has_id, m->id, m->name, m->original};
}
/* Loaded at the first call. */
enum tw_status tw_trace_file_methods(struct tw_trace_file *f, const struct tw_method_info **ret,
        uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

struct tw_chunk_row {
	uint32_t chunk_id;
	struct tw_chunk_info info;
	uint32_t stored_bytes; /* zstd */
};
/* The chunk directory of a thread: level 0 in time order, then mip levels in order. */
enum tw_status tw_trace_file_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Only those of level 0, which contain every call. */
enum tw_status tw_trace_file_call_chunks(struct tw_trace_file *f, uint32_t thread_id,
        const struct tw_chunk_row **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Appends the stored zstd frame of one chunk to *out. TW_NOT_FOUND: no such chunk. */
enum tw_status tw_trace_file_chunk_raw(struct tw_trace_file *f, uint32_t chunk_id,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;
/* Decodes one chunk into *c. */
enum tw_status tw_trace_file_chunk(struct tw_trace_file *f, const struct tw_chunk_row *row,
        struct tw_chunk *c, struct tw_err *err) TW_MUST_USE;
/* TW_SUMMARY_THREAD_ID: the summary tree of the trace (query.h).  TW_NOT_FOUND: no tree of that
 * id. */
enum { TW_SUMMARY_THREAD_ID = 0 };
enum tw_status tw_trace_file_tree(struct tw_trace_file *f, uint32_t thread_id, struct tw_arena *a,
        struct tw_tree *ret, struct tw_err *err) TW_MUST_USE;
/* The number of nodes of a tree as stored; 0: unknown. */
uint32_t tw_trace_file_tree_nodes(struct tw_trace_file *f, uint32_t thread_id);
/* Appends the stored zstd frame of one tree to *out, without the inlined calls. */
enum tw_status tw_trace_file_tree_raw(struct tw_trace_file *f, uint32_t thread_id,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

/* Adds the calls of a tree to rows of n_methods; active holds n_methods zeros.  False: the tree is
 * damaged. */
bool tw_tree_add_methods(
        const struct tw_tree *t, uint32_t n_methods, struct tw_method_info *rows, uint32_t *active);

/* --- decompresses frames and decodes chunks, without the file (trace_file_read.c) --- */

/* One thread can read while others unpack, each with its own unpacker.  Thread: one at a time. */
struct tw_unpacker;

/* NULL: out of memory. */
struct tw_unpacker *tw_unpacker_new(void);
struct tw_unpacker *tw_unpacker_free(struct tw_unpacker *u);

/* Decodes the stored bytes of a chunk into *c. */
enum tw_status tw_unpacker_chunk(struct tw_unpacker *u, struct tw_str frame,
        const struct tw_chunk_row *row, struct tw_chunk *c, struct tw_err *err) TW_MUST_USE;
/* The same for the stored bytes of a call tree, in two steps: the number of its nodes, then the
 * nodes themselves. */
enum tw_status tw_unpacker_tree(struct tw_unpacker *u, struct tw_str frame, uint32_t *ret_n,
        struct tw_err *err) TW_MUST_USE;
enum tw_status tw_unpacker_tree_into(
        struct tw_unpacker *u, struct tw_tree_node *nodes, struct tw_err *err) TW_MUST_USE;

/* --- notes (trace_file_notes.c) --- */

struct tw_note_query {
	enum tw_note_kind kind; /* TW_NOTE_COUNT: any */
	int64_t from_ns, to_ns; /* overlap or touch [from, to) */
	uint64_t after;         /* continue after this id; 0 from the start */
	uint64_t until;         /* the last id; 0: no limit */
	uint32_t limit;
};
/* Return false to stop; texts are valid during the call. */
typedef bool (*tw_note_fn)(void *arg, uint64_t id, const struct tw_note_row *note);

/* By time. */
enum tw_status tw_trace_file_notes(struct tw_trace_file *f, const struct tw_note_query *q,
        tw_note_fn each, void *arg, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_trace_file_note_counts(
        struct tw_trace_file *f, uint64_t ret[TW_NOTE_COUNT], struct tw_err *err) TW_MUST_USE;

/* --- sums of notes (trace_file_sums.c) --- */

struct tw_note_block {            /* a block of consecutive notes by time */
	uint64_t first, last;     /* ids */
	int64_t start_ns, end_ns; /* earliest begin, latest end */
};

struct tw_note_sum {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: the trace itself */
	struct tw_str text; /* of states and counters: one sum per text; otherwise empty */
	uint64_t notes;
	int64_t dur_ns; /* within the block, or the range of a query */
};

/* Return false to stop; texts are valid during the call. */
typedef bool (*tw_note_block_fn)(void *arg, const struct tw_note_block *b);
typedef bool (*tw_note_sum_fn)(void *arg, const struct tw_note_sum *sum);

enum tw_status tw_trace_file_note_blocks(
        struct tw_trace_file *f, tw_note_block_fn each, void *arg, struct tw_err *err) TW_MUST_USE;
/* Sums of the blocks whose first ids are in first..last, block by block. */
enum tw_status tw_trace_file_note_sums(struct tw_trace_file *f, uint64_t first, uint64_t last,
        tw_note_sum_fn each, void *arg, struct tw_err *err) TW_MUST_USE;

/* --- processes of its threads (trace_file_notes.c) --- */

struct tw_trace_process {
	uint32_t pid;       /* 0: numbered 0 in the trace, or unknown */
	uint32_t threads;   /* number of its threads in the trace */
	struct tw_str name; /* from the trace's notes; "" unknown */
};

/* By rising pid, allocated in the arena. */
enum tw_status tw_trace_processes(struct tw_trace_file *f, struct tw_arena *a,
        struct tw_trace_process **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* --- documents (trace_file_notes.c) --- */

typedef bool (*tw_document_fn)(void *arg, struct tw_str kind, struct tw_str json);
enum tw_status tw_trace_file_documents(
        struct tw_trace_file *f, tw_document_fn each, void *arg, struct tw_err *err) TW_MUST_USE;

#endif
