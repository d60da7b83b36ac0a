/*
 * trace_oracle.h - checks the properties of every trace, for any input.
 *
 * Reads the builder's output: slices in pre-order are disjoint or nested; threads,
 * methods and trees have the same sums as the slices; the mip levels represent all
 * of them; limits are met.
 */
#ifndef TW_TRACE_ORACLE_H
#define TW_TRACE_ORACLE_H

#include "decoder/limits.h"
#include "tests/fixtures/trace_model.h"

/* Aborts with words when it is not so. */
void trace_oracle_check(struct trace_log *log, const struct tw_limits *limits);

#endif
