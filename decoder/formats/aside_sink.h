/*
 * aside_sink.h - a sink that passes on what is said beside calls, and no calls.
 *
 * For a report that comes with a trace of the same threads: an ANR's stacks are
 * one moment and not calls, and would be taken for some among them.  Thread
 * names, notes, documents and repairs go through; what it says of clocks does not, for it has
 * none.
 */
#ifndef TW_ASIDE_SINK_H
#define TW_ASIDE_SINK_H

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

/* NULL: no memory.  inner must outlive it. */
struct tw_sink *tw_aside_sink_new(struct tw_arena *a, struct tw_sink *inner);

#endif
