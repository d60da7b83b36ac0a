/*
 * trace_file_summary.h - computes the summary tree of a trace while its call trees are written.
 *
 * Thread: one at a time.
 */
#ifndef TW_TRACE_FILE_SUMMARY_H
#define TW_TRACE_FILE_SUMMARY_H

#include <sqlite3.h>
#include <stddef.h>

#include "decoder/base/err.h"
#include "server/trace/trace_file.h"

struct tw_summary_maker;

/* NULL: out of memory. */
struct tw_summary_maker *tw_summary_maker_new(tw_summary_fn make);
struct tw_summary_maker *tw_summary_maker_free(struct tw_summary_maker *m);

/* A thread's call tree, whose nodes are in *arena. The maker takes ownership of the arena and sets
 * it to NULL, or gives up. */
void tw_summary_maker_keep(
        struct tw_summary_maker *m, const struct tw_tree *tree, struct tw_arena **arena);

/* Stores the summary tree next to the trees; `methods`: number of methods in the trace.  TW_OK
 * without storing anything if there are too few nodes or not enough memory. */
enum tw_status tw_summary_maker_store(
        struct tw_summary_maker *m, sqlite3 *db, uint32_t methods, struct tw_err *err) TW_MUST_USE;

#endif
