/*
 * rollup_writer_int.h - the rollup worker, shared by the files that count, name and merge.
 */
#ifndef TW_ROLLUP_WRITER_INT_H
#define TW_ROLLUP_WRITER_INT_H

#include <stdatomic.h>

#include "server/derive/rollup/rollup_writer.h"
#include "server/stats/rollup_tree.h"
#include "server/trace/trace_file.h"

enum {
	TW_ROLLUP_WORKER_BYTES = 512 << 20,
	TW_ROLLUP_WORKER_NAME_BYTES = 16384,
	TW_ROLLUP_WORKER_BUILD_BYTES = 512
};

struct tw_rollup_worker {
	struct tw_derive_parts parts;
	struct tw_arena *arena;
	const char *labels[TW_ROLLUP_LABELS_MAX]; /* by which the project counts, in the arena */
	size_t n_labels;
	/* The build of the batch's last trace, in the arena or NULL, and its mappings. */
	const char *named_build, *named_mapping;
	struct tw_mapping_ids named_by;
	char *name;      /* TW_ROLLUP_WORKER_NAME_BYTES */
	uint64_t *known; /* ids of methods already written; 0: free */
	uint32_t n_known;
	int64_t known_day; /* the day for which they were written */
	/* The project, or build of it, served last, for rotation. */
	char add_turn[TW_ID_BYTES];
	struct tw_rename rename_turn; /* strings in the two below */
	char rename_project[TW_ID_BYTES], rename_build[TW_ROLLUP_WORKER_BUILD_BYTES];
	int64_t erase_ms; /* monotonic: time of the next removal of rows of deleted traces */
	int64_t purge_ms; /* the same of rows that others replaced; 0: not planned yet */
	_Atomic uint64_t cells, cells_failed;
};

/* Copies a buffer into an arena. */
enum tw_status tw_rollup_copy(
        struct tw_buf *out, struct tw_arena *a, struct tw_str *ret, struct tw_err *err) TW_MUST_USE;

/* --- methods (rollup_writer.c) --- */

/* The method's name as in the trace, from which ids are computed; NULL: out of memory. */
const char *tw_rollup_worker_raw(struct tw_rollup_worker *f, const struct tw_named *m);
/* Whether its name is already written for this day; tw_rollup_worker_begin_day resets that. */
bool tw_rollup_worker_knows(struct tw_rollup_worker *f, uint64_t id);
void tw_rollup_worker_remember(struct tw_rollup_worker *f, uint64_t id);
/* Call it when names recorded as written may not have been. */
void tw_rollup_worker_forget(struct tw_rollup_worker *f);
void tw_rollup_worker_begin_day(struct tw_rollup_worker *f);

/* --- names (rollup_name.c) --- */

/* Fills in the name, the descriptor and whether it is named.  False: out of memory. */
bool tw_namer_name(struct tw_rollup_worker *f, const struct tw_names *names,
        const struct tw_named *what, struct tw_rollup_naming *m);

/* --- search index (rollup_index.c) --- */

struct tw_rollup_indexing { /* borrowed */
	struct tw_trace_file *file;
	const char *trace_id;
	const uint64_t *numbers; /* of methods by index; 0: not indexed */
	uint32_t n_methods;
};
/* In f's arena. */
enum tw_status tw_rollup_take_index(struct tw_rollup_worker *f, const struct tw_rollup_indexing *of,
        struct tw_str *ret, struct tw_err *err) TW_MUST_USE;
/* The same methods' facts by kind of thread, for engines that store them. */
enum tw_status tw_rollup_take_threads(struct tw_rollup_worker *f,
        const struct tw_rollup_indexing *of, struct tw_str *ret, struct tw_err *err) TW_MUST_USE;
/* Packs the entries of a cell, if there are enough. */
enum tw_status tw_rollup_pack_index(struct tw_catalogue *c, const struct tw_rollup_due *of,
        struct tw_arena *a, struct tw_err *err) TW_MUST_USE;

/* --- call trees of one trace file (rollup_trace.c) --- */

/* ids: ids of the file's n methods by index, 0 for those that are not called.  The tree has at most
 * TW_ROLLUP_TRACE_NODES nodes.  *ret_used: a byte per method, 1 if a node of the result belongs to
 * it.  All in t's arena.  TW_NOMEM if that is full. */
enum tw_status tw_rollup_trace_tree(struct tw_trace_file *f, const uint64_t *ids, uint32_t n,
        struct tw_rollup_tree *t, uint8_t **ret_used, struct tw_err *err) TW_MUST_USE;

#endif
