/*
 * rollup_cell.h - the cells in which a trace is counted, and the ids of cells and methods.
 *
 * A cell is the key of rollups: a day and the dimensions of queries.  Its id, and a method's, is a
 * hash of its content, so that every process computes the same and rebuilding rollups gives the
 * same rows.
 * Thread: any.
 */
#ifndef TW_ROLLUP_CELL_H
#define TW_ROLLUP_CELL_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/clock.h" /* TW_DAY_MS */
#include "server/stats/rollup_id.h"

struct tw_trace_row;

enum { TW_ROLLUP_LABELS_MAX = 4, TW_ROLLUP_CELLS_MAX = 1 + TW_ROLLUP_LABELS_MAX };
enum { TW_ROLLUP_VALUE_BYTES = 128 };

struct tw_rollup_dims {
	int64_t day; /* since 1970, UTC, by the server's clock at arrival */
	const char *app, *version_name, *build_id, *mapping_id, *scenario;
	const char *device_class, *os; /* "" in cells of a label */
	const char *label;             /* "key=value"; "" in the cell of all traces */
};

/* The one cell that every trace has, and one for each of the project's indexed labels: of the
 * trace's labels, or device, abi, process, version_code, session_id; "key=" if it has no such key,
 * so that those are counted too.  Strings are in the arena.  TW_NOMEM. */
enum tw_status tw_rollup_cells(const struct tw_trace_row *row, const char *const *labels,
        size_t n_labels, struct tw_arena *a, struct tw_rollup_dims ret[TW_ROLLUP_CELLS_MAX],
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* Calls `each` for each label that a trace can be counted by, those with a name of their own column
 * first; none twice.  False: it returned false. */
bool tw_rollup_each_label(const struct tw_trace_row *row,
        bool (*each)(void *arg, const char *key, const char *value), void *arg);

/* low (under 3 GiB of memory), mid (under 6), high or unknown: from the label device_class,
 * otherwise from ram_mb. */
const char *tw_rollup_device_class(const char *labels);

/* Never 0, never negative. */
int64_t tw_rollup_cell_id(const struct tw_rollup_dims *d);
#endif
