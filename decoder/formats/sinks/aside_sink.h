/*
 * aside_sink.h - a sink that forwards everything except calls and clocks.
 *
 * For a report that accompanies a trace of the same threads: an ANR's stacks are one moment, and
 * would be mistaken for calls.  Thread names, notes, documents and repairs are forwarded.  Clocks
 * are not, as a report has none.
 */
#ifndef TW_ASIDE_SINK_H
#define TW_ASIDE_SINK_H

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"

/* NULL: out of memory.  `inner` must outlive it. */
struct tw_sink *tw_aside_sink_new(struct tw_arena *a, struct tw_sink *inner);

#endif
