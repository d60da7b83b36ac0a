/*
 * rollup_cell.h - where a trace is counted, and the numbers of cells and methods.
 *
 * A cell is what rollups are kept by: a day and the dimensions that people ask
 * for.  Its number, and a method's, is a hash of what it is, so that any process
 * finds the same and building rollups again gives the same rows.
 * Thread: any.
 */
#ifndef TW_ROLLUP_CELL_H
#define TW_ROLLUP_CELL_H

#include "server/base/clock.h" /* TW_DAY_MS */
#include "server/catalogue/catalogue.h"
#include "server/stats/rollup_id.h"

enum { TW_ROLLUP_LABELS_MAX = 4, TW_ROLLUP_CELLS_MAX = 1 + TW_ROLLUP_LABELS_MAX };
enum { TW_ROLLUP_VALUE_BYTES = 128 };

struct tw_rollup_dims {
	int64_t day; /* since 1970, UTC, by the server's clock when the trace came */
	const char *app, *version_name, *build_id, *mapping_id, *scenario;
	const char *device_class, *os; /* "" in cells of a label */
	const char *label;             /* "key=value"; "" in the cell that every trace has */
};

/* The one cell that every trace has, and one for each of the project's indexed labels: of the
 * trace's labels, or device, abi, process, version_code, session_id; "key=" when it has none of
 * that key, so that those are counted too.  Strings live in the arena.  TW_NOMEM. */
enum tw_status tw_rollup_cells(const struct tw_trace_row *row, const char *const *labels,
        size_t n_labels, struct tw_arena *a, struct tw_rollup_dims ret[TW_ROLLUP_CELLS_MAX],
        size_t *ret_n, struct tw_err *err) TW_MUST_USE;

/* low (under 3 GiB of memory), mid (under 6), high or unknown: what the label device_class says,
 * else by ram_mb. */
const char *tw_rollup_device_class(const char *labels);

/* Never 0, never negative. */
int64_t tw_rollup_cell_id(const struct tw_rollup_dims *d);
#endif
