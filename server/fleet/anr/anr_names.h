/*
 * anr_names.h - an ANR document in original names, by the mapping of its build and the symbols of
 * its native libraries.
 *
 * A document is stored as decoded; names are resolved when it is read, so that mapping and symbols
 * may arrive late (I8).  Frames get their original names and lines, and a frame with inlined
 * methods becomes several.  Then the verdict is computed again, so that verdict, chain and cluster
 * are those of the original code.  Independent of HTTP and SQL.  Thread: any.
 */
#ifndef TW_ANR_NAMES_H
#define TW_ANR_NAMES_H

#include "decoder/base/arena.h"
#include "decoder/symbols/names.h"

/* The JSON text of a document with its names, in the arena; the text unchanged if it is not a JSON
 * object.  The method mapping is not used; without the others the verdict is computed again.  ptr
 * NULL: out of memory. */
struct tw_str tw_anr_named(struct tw_arena *a, struct tw_str json, const struct tw_names *by);

#endif
