/* null_sink.h - a sink that discards everything, for inspecting an input without decoding it. */
#ifndef TW_NULL_SINK_H
#define TW_NULL_SINK_H

#include "decoder/formats/sink.h"

struct tw_sink tw_null_sink(void);

#endif
