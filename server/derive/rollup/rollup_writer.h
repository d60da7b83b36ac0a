/*
 * rollup_writer.h - adds traces to rollups: reads decoded files, counts, merges and names.
 *
 * Used by the server's background job and by `tracewell rollup`; any number of processes may do it
 * concurrently (catalogue_rollup.h).
 * Thread: one at a time.
 */
#ifndef TW_ROLLUP_WRITER_H
#define TW_ROLLUP_WRITER_H

#include "server/catalogue/fleet/catalogue_rollup.h"
#include "server/catalogue/traces/catalogue_names.h"
#include "server/derive/pipeline.h"
#include "server/query/view.h"

struct tw_rollup_worker;
struct tw_trace_row;

/* NULL: out of memory. */
struct tw_rollup_worker *tw_rollup_worker_new(const struct tw_derive_parts *parts);
struct tw_rollup_worker *tw_rollup_worker_free(struct tw_rollup_worker *f);

/* Numbers of cells merged and failed since it was created; any thread. */
struct tw_rollup_worker_counts {
	uint64_t cells, cells_failed;
};
struct tw_rollup_worker_counts tw_rollup_worker_counts(const struct tw_rollup_worker *f);

/* Each does a small part of the work and returns whether there may be more.  A failure is recorded
 * and the trace or cell postponed; only errors that concern everything are returned. */
enum tw_status tw_rollup_worker_count(struct tw_rollup_worker *f, const struct tw_turn *turn,
        bool *ret_more, struct tw_err *err) TW_MUST_USE;
enum tw_status tw_rollup_worker_rename(
        struct tw_rollup_worker *f, bool *ret_more, struct tw_err *err) TW_MUST_USE;
/* Merges cells with enough deltas, `most` at the most depending on their size, and cells with any
 * deltas of days before `day` (struct tw_rollup_when). */
enum { TW_ROLLUP_DELTAS_MIN = 8, TW_ROLLUP_DELTAS_MAX = 16 };
enum tw_status tw_rollup_worker_add(struct tw_rollup_worker *f, uint32_t most, int64_t day,
        bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* Reads a trace without counting it: its cells, facts, tree and methods, valid until the worker's
 * next call. */
enum tw_status tw_rollup_worker_read(struct tw_rollup_worker *f, const struct tw_trace_row *row,
        struct tw_rollup_reading *ret, struct tw_err *err) TW_MUST_USE;

/* Merges a cell: its new head and parts, in the arena (rollup_add.c). */
enum tw_status tw_rollup_cell_add(const struct tw_rollup_cell *cell, struct tw_arena *a,
        struct tw_str *ret_head, struct tw_str ret_parts[TW_ROLLUP_METRICS],
        struct tw_err *err) TW_MUST_USE;

/* Merges some cells of days before `day`. */
enum tw_status tw_rollup_merged_add(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err) TW_MUST_USE;

/* Labels by which a project's traces are also counted: TW_SETTING_ROLLUPS, {"labels": [...]}. */
#define TW_SETTING_ROLLUPS "rollups"
extern const struct tw_setting tw_rollup_setting; /* catalogue_setting.h */
enum tw_status tw_rollup_labels(struct tw_catalogue *c, const char *project_id, struct tw_arena *a,
        const char *ret[TW_ROLLUP_LABELS_MAX], size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* --- names (rollup_name.c) --- */

struct tw_namer { /* the mappings of a build, and the symbols of a trace's libraries */
	struct tw_mapping_ids ids;
	struct tw_symbols_ref *map, *retrace;
	struct tw_natives_open natives;
	struct tw_names names;
};

/* Close with tw_namer_close.  A mapping that cannot be read is recorded, and names nothing. */
enum tw_status tw_namer_open(const struct tw_derive_parts *p, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_namer *ret, struct tw_err *err) TW_MUST_USE;
/* The same with known mappings. */
enum tw_status tw_namer_open_by(const struct tw_derive_parts *p, const struct tw_mapping_ids *ids,
        const char *build_id, struct tw_namer *ret, struct tw_err *err) TW_MUST_USE;
/* Adds the symbols of the file's libraries and calls tw_trace_file_inline.  The namer stays where
 * it is, and open as long as the file is read. */
enum tw_status tw_namer_inline(const struct tw_derive_parts *p, const char *project_id,
        struct tw_trace_file *file, struct tw_arena *a, struct tw_namer *io,
        struct tw_err *err) TW_MUST_USE;
void tw_namer_close(const struct tw_derive_parts *p, struct tw_namer *n);

#endif
