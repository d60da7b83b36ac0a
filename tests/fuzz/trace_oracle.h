/*
 * trace_oracle.h - what is true of every trace, whatever it was made of.
 *
 * Read from what the builder hands out: slices in pre-order lie side by side or
 * inside each other; threads, methods and trees add up to the same slices; the
 * zoomed-out levels stand for all of them; limits held.
 */
#ifndef TW_TRACE_ORACLE_H
#define TW_TRACE_ORACLE_H

#include "../trace_model.h"
#include "decoder/limits.h"

/* Aborts with words when it is not so. */
void trace_oracle_check(struct trace_log *log, const struct tw_limits *limits);

#endif
