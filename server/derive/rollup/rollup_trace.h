/*
 * rollup_trace.h - the call trees of one trace file, as a trace brings them to rollups.
 *
 * Thread: one at a time.
 */
#ifndef TW_ROLLUP_TRACE_H
#define TW_ROLLUP_TRACE_H

#include "server/stats/rollup_tree.h"
#include "server/trace/trace_file.h"

/* ids: numbers of the file's methods by index, 0 for those that are not called; n of them.  The
 * tree is bound to TW_ROLLUP_TRACE_NODES.  *ret_used: a byte for each method, 1 when a node that is
 * kept is of it.  All in t's arena.  TW_NOMEM when that is full. */
enum tw_status tw_rollup_trace_tree(struct tw_trace_file *f, const uint64_t *ids, uint32_t n,
        struct tw_rollup_tree *t, uint8_t **ret_used, struct tw_err *err) TW_MUST_USE;

#endif
