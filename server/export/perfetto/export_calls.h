/*
 * export_calls.h - the calls and other events of one trace as packets: one sequence per thread, all
 * by time.
 *
 * Calls are on a separate track under the thread, so that events of the system trace cannot close
 * them.  Threads are merged by time, event by event, as far as their decoded chunks fit the given
 * memory; the remaining threads follow one after the other. Thread: one at a time.
 */
#ifndef TW_EXPORT_CALLS_H
#define TW_EXPORT_CALLS_H

#include "server/export/perfetto/export_trace.h"

struct tw_call_writer;

/* Selects the threads of o's selection with calls, in the order of the file; *ret_n of them. */
enum tw_status tw_call_writer_new(struct tw_export_trace *o, uint64_t merge_bytes,
        struct tw_call_writer **ret, uint32_t *ret_n, struct tw_err *err) TW_MUST_USE;
/* Appends a few thousand events at most; *ret_done: complete.  Set o->seqs before the first
 * call. */
enum tw_status tw_call_writer_step(struct tw_call_writer *c, struct tw_buf *out, bool *ret_done,
        struct tw_err *err) TW_MUST_USE;
struct tw_call_writer *tw_call_writer_free(struct tw_call_writer *c);

/* --- events that are not calls (system/export_side.c) --- */

/* Locks, instants, collections and named spans are on tracks under their thread or process;
 * counters become counter tracks; flows connect a lock's waiter to its holder, and the starter of a
 * thread to that thread's first call.  A span named by the scenario covers the whole trace. Memory:
 * a few hundred bytes per thread, and an id per counter. */
struct tw_side;

/* has_system: the file also contains a device's trace, which already has the scheduler's and the
 * kernel's events. */
enum tw_status tw_side_new(struct tw_export_trace *o, bool has_system, struct tw_side **ret,
        struct tw_err *err) TW_MUST_USE;
/* Appends some packets; *ret_done: complete, and o->flows are set. */
enum tw_status tw_side_step(
        struct tw_side *s, struct tw_buf *out, bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_side *tw_side_free(struct tw_side *s);

#endif
