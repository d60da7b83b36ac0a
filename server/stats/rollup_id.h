/*
 * rollup_id.h - the numbers by which rollups know cells and methods, and names as they are kept.
 *
 * A number is a hash of what it stands for, so that any process finds the same.
 * Thread: any.
 */
#ifndef TW_ROLLUP_ID_H
#define TW_ROLLUP_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"

/* Of any text; never 0, never negative as an int64_t. */
uint64_t tw_rollup_number(const char *text);

/* A name as it is kept: clean, and when it is longer, its beginning and a hash of all of it, so
 * that long names stay apart.  True: it was cut. */
enum { TW_ROLLUP_NAME_BYTES = 1024 };
bool tw_rollup_bound_name(struct tw_str name, char out[TW_ROLLUP_NAME_BYTES]);
/* Was this made of a longer one? */
bool tw_rollup_is_cut(const char *name);

/* `raw` is what the trace calls it: "#id", or its name there, bounded. */
struct tw_rollup_space { /* whose numbers or names of methods mean one thing */
	const char *project_id, *build_id, *mapping_id;
};
uint64_t tw_rollup_method_id(const struct tw_rollup_space *in, const char *raw);

#endif
