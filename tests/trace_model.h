/*
 * trace_model.h - traces made up at random whose every slice is known beforehand.
 *
 * Call trees are drawn depth first, so that their pre-order, depth and parents
 * are known without any of the product's code, and emitted to a sink in one of the
 * forms that formats use.  Made-up times hold ties: calls of no length, calls
 * that begin with their parent or end with it.
 */
#ifndef TW_TRACE_MODEL_H
#define TW_TRACE_MODEL_H

#include <stdbool.h>

#include "decoder/formats/sink.h"
#include "decoder/trace/trace_out.h"

enum { MODEL_PID = 100, MODEL_METHODS = 23, MODEL_NO_PARENT = -1 };

struct model_slice {
	uint64_t tid;
	int64_t start_ns, dur_ns;
	int64_t parent; /* index of a slice, or MODEL_NO_PARENT */
	uint32_t method_id, depth;
};

struct model {
	struct model_slice *slices;   /* pre-order, thread after thread */
	struct tw_event *records;     /* finished calls, per thread in the order of their ends */
	struct tw_event *pairs;       /* the same as begins and ends */
	size_t n, n_records, n_pairs; /* n_records = n once made */
	uint32_t threads;             /* tids MODEL_PID, MODEL_PID + 1, ... */
};

enum model_form { MODEL_RECORDS, MODEL_PAIRS, MODEL_SHUFFLED };

struct model_shape {
	uint64_t seed; /* not 0 */
	uint32_t threads, per_thread, max_depth;
	bool no_ties; /* no two calls with the same begin and end, none of length 0 */
};

void model_make(struct model *m, const struct model_shape *shape);
void model_done(struct model *m);
/* Threads interleaved at random, in batches of random size. */
enum tw_status model_tell(
        const struct model *m, struct tw_sink *sink, enum model_form form, struct tw_err *err);

/* --- what the builder hands out, decoded --- */

struct trace_log_chunk {
	struct tw_chunk_info info;
	struct tw_slice *open, *slices;
};

struct trace_log {
	struct tw_trace_out out; /* first */
	struct trace_log_chunk *chunks;
	size_t n_chunks;
	struct tw_thread_info *threads;
	struct tw_tree *trees; /* by thread_id - 1 */
	size_t n_threads;
	struct tw_method_info *methods;
	size_t n_methods;
	struct tw_trace_info info;
	struct tw_note_row *notes; /* texts are in the arena, without details */
	size_t n_notes, documents;
	uint64_t repairs[TW_REPAIR_COUNT];
	uint64_t first_offsets[TW_REPAIR_COUNT]; /* of repairs that were made */
	struct tw_arena *arena;
};

void trace_log_init(struct trace_log *log);
void trace_log_done(struct trace_log *log);
/* The thread with this tid; NULL when there is none. */
const struct tw_thread_info *trace_log_thread(const struct trace_log *log, uint64_t tid);
/* All slices of a level of a thread, one chunk after another, in the log's arena. */
struct tw_slice *trace_log_slices(
        struct trace_log *log, uint32_t thread_id, uint32_t level, size_t *ret_n);

#endif
