/*
 * rollup_id.h - the ids of cells and methods in rollups, and names as they are stored.
 *
 * An id is a hash of the identified content, so that every process computes the same.
 * Thread: any.
 */
#ifndef TW_ROLLUP_ID_H
#define TW_ROLLUP_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/str.h"
#include "decoder/symbols/names.h"

/* The id of any text; never 0, never negative as an int64_t. */
uint64_t tw_rollup_number(const char *text);

/* Prepares a name for storage: valid UTF-8 without control characters, and if too long, its
 * beginning and a hash of all of it, so that long names stay distinct.  True: it was truncated. */
enum { TW_ROLLUP_NAME_BYTES = 1024 };
bool tw_rollup_bound_name(struct tw_str name, char out[TW_ROLLUP_NAME_BYTES]);
/* Whether a name was truncated. */
bool tw_rollup_is_cut(const char *name);

/* What identifies a method within a build: "#id", or its name in the trace, bounded.  The name of
 * an expanded frame (trace_file_inlined.c) depends on the mapping and begins with TW_RAW_EXPANDED,
 * which no stored name contains. */
#define TW_RAW_EXPANDED '\x01'
enum { TW_ROLLUP_RAW_BYTES = TW_ROLLUP_NAME_BYTES + 1 };
void tw_rollup_raw(const struct tw_named *m, char out[TW_ROLLUP_RAW_BYTES]);
/* What `raw` names; borrows it. */
struct tw_named tw_rollup_named(const char *raw);

struct tw_rollup_space { /* the scope within which a method's number or name is unique */
	const char *project_id, *build_id, *mapping_id;
};
uint64_t tw_rollup_method_id(const struct tw_rollup_space *in, const char *raw);

#endif
