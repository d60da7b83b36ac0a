/*
 * trace_out.h - a finished trace as the builder passes it to a writer: its facts, threads,
 * methods, chunks of slices, notes and repairs.
 */
#ifndef TW_TRACE_OUT_H
#define TW_TRACE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "decoder/formats/notes.h"
#include "decoder/formats/repairs.h"
#include "decoder/formats/source.h"
#include "decoder/trace/calltree.h"
#include "decoder/trace/columns.h"
#include "decoder/trace/tree_sums.h"

struct tw_trace_info { /* of a complete trace; strings are borrowed */
	uint32_t pid;
	int64_t mono_base_ns, boot_base_ns; /* clock readings at trace time 0; -1 unknown */
	int64_t start_ns, end_ns;           /* first begin, last end, trace time */
	uint64_t slices;
	uint32_t threads, methods, max_depth;
	bool has_cpu;
};

struct tw_thread_info {
	uint32_t thread_id; /* from 1 within the trace: main first, then by falling slice count */
	uint32_t pid;
	uint64_t tid;
	struct tw_str name; /* "" if no input names it */
	bool is_main;
	enum tw_source source;
	int64_t interval_ns; /* of samples, 0 unknown */
	uint64_t slices, roots;
	uint32_t max_depth;       /* 1 is a root alone; 0 no slices */
	int64_t start_ns, end_ns; /* of its slices */
	int64_t busy_ns;          /* sum of the durations of its roots */
};

struct tw_method_info {
	bool has_id;
	bool original;      /* name is not obfuscated: a mapping was applied */
	uint64_t id;        /* has_id: named by the build's mapping */
	struct tw_str name; /* otherwise: the name in the trace */
	uint64_t count;
	int64_t total_ns; /* wall; nested calls of the same method counted once */
	int64_t sum_ns;   /* wall of all calls; recursive calls counted each time */
	int64_t self_ns;
	int64_t max_ns;
	int64_t cpu_ns; /* like total_ns, on the CPU; -1 unknown */
};

struct tw_chunk_info {
	uint32_t thread_id;
	uint32_t level;   /* 0: every slice; n: mip level n */
	int64_t start_ns; /* begin of its first slice */
	int64_t end_ns;   /* latest end among its slices */
	uint32_t slices, open;
	int64_t min_dur_ns; /* mip levels: shorter slices are merged; 0 at level 0 */
};

struct tw_repair_count {
	enum tw_repair what;
	uint64_t count;
	uint64_t first_offset; /* TW_NO_OFFSET: no offset */
};

struct tw_note_row {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: of the whole trace */
	int64_t ts_ns, dur_ns, value;
	struct tw_str text, detail;
	bool from_system; /* from the device's own trace, which may be shown next to ours */
};
/* Notes are passed on and stored in blocks: of TW_NOTES_AT_ONCE, or fewer once their texts exceed
 * TW_NOTES_TEXT_BYTES. */
enum { TW_NOTES_AT_ONCE = 2048, TW_NOTES_TEXT_BYTES = 1 << 20 };

/* Receives the finished trace: per thread, in the order of thread ids, its chunks (level 0 and mip
 * levels, each level in time order), its tree, then the thread itself; after all threads the
 * methods (index 0, 1, ...), the notes by rising time, the documents, the repairs and last the
 * info.  Payloads are not yet compressed.  Chunks, trees and threads may be delivered in a thread
 * other than the caller's, but never two at a time; all of them are delivered before the first
 * method.  sums and all_sums are called in the caller's thread, possibly at the same time. */
struct tw_trace_out;
struct tw_trace_out_ops {
	/* The receiver may keep the payload's memory: it then gives the buffer another one. */
	enum tw_status (*chunk)(struct tw_trace_out *, const struct tw_chunk_info *,
	        struct tw_buf *payload, struct tw_err *);
	/* The same. */
	enum tw_status (*tree)(struct tw_trace_out *, uint32_t thread_id, uint32_t nodes,
	        struct tw_buf *payload, struct tw_err *);
	enum tw_status (*thread)(
	        struct tw_trace_out *, const struct tw_thread_info *, struct tw_err *);
	enum tw_status (*method)(
	        struct tw_trace_out *, const struct tw_method_info *, struct tw_err *);
	/* A block. */
	enum tw_status (*notes)(
	        struct tw_trace_out *, const struct tw_note_row *, size_t n, struct tw_err *);
	enum tw_status (*document)(
	        struct tw_trace_out *, const char *kind, struct tw_str json, struct tw_err *);
	enum tw_status (*repair)(
	        struct tw_trace_out *, const struct tw_repair_count *, struct tw_err *);
	enum tw_status (*info)(
	        struct tw_trace_out *, const struct tw_trace_info *, struct tw_err *);
	/* NULL: not needed.  The sums of each tree, by rising thread id.  The receiver may take
	 * them: it then sets them to zeros, and frees them with tw_tree_sums_done. */
	void (*sums)(struct tw_trace_out *, struct tw_tree_sums *);
	/* NULL: not needed.  All sums were passed on; chunks may still follow.  `methods`: of the
	 * trace. */
	enum tw_status (*all_sums)(struct tw_trace_out *, uint32_t methods, struct tw_err *);
};
struct tw_trace_out { /* first member of an implementation's struct */
	const struct tw_trace_out_ops *ops;
};

#endif
