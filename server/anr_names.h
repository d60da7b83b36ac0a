/*
 * anr_names.h - the names in an ANR document, by the mapping of its build.
 *
 * A document is kept as it was decoded; what an R8 mapping says of its frames,
 * classes and verdict is put in when it is read, so that a mapping may come late
 * (I8).  Knows neither HTTP nor SQL.  Thread: any; a document belongs to one caller.
 */
#ifndef TW_ANR_NAMES_H
#define TW_ANR_NAMES_H

#include <jansson.h>

#include "base/arena.h"
#include "symbols/retrace.h"

/* Changes doc in place; members that are not as schema/anr.md says are left alone.  False: no
 * memory. */
bool tw_anr_names(json_t *doc, const struct tw_retrace *retrace);

/* The JSON text of a document with its names, in the arena; the text itself when it is no JSON
 * object.  ptr NULL: no memory. */
struct tw_str tw_anr_named(
        struct tw_arena *a, struct tw_str json, const struct tw_retrace *retrace);

#endif
