/*
 * anr_names.h - an ANR document in original names, by the mapping of its build.
 *
 * A document is kept as it was decoded; what an R8 mapping says is put in when it is
 * read, so that a mapping may come late (I8).  Frames are given by their original
 * names and lines, one that others were inlined into as several; then the report is
 * judged again, so that verdict, chain and cluster are those of the original code.
 * Knows neither HTTP nor SQL.  Thread: any.
 */
#ifndef TW_ANR_NAMES_H
#define TW_ANR_NAMES_H

#include "decoder/base/arena.h"
#include "decoder/symbols/retrace.h"

/* The JSON text of a document with its names, in the arena; the text itself when it is no JSON
 * object.  retrace NULL: names stay, and the report is judged again.  ptr NULL: no memory. */
struct tw_str tw_anr_named(
        struct tw_arena *a, struct tw_str json, const struct tw_retrace *retrace);

#endif
