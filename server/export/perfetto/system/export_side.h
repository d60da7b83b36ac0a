/*
 * export_side.h - a trace's notes (events that are not calls) as tracks, counters and flows of a
 * Perfetto file.
 *
 * Locks, marks, collections and named spans are on tracks under their thread or process; counters
 * become counter tracks; flows connect a lock's waiter to its holder, and the starter of a thread
 * to that thread's first call.  A span named by the scenario covers the whole trace.  Memory: a few
 * hundred bytes per thread, and an id per counter.  Thread: one at a time.
 */
#ifndef TW_EXPORT_SIDE_H
#define TW_EXPORT_SIDE_H

#include "server/export/perfetto/export_ours.h"

struct tw_side;

/* has_system: the file also contains a device's trace, which already has the scheduler's and the
 * kernel's events. */
enum tw_status tw_side_new(
        struct tw_ours *o, bool has_system, struct tw_side **ret, struct tw_err *err) TW_MUST_USE;
/* Appends some packets; *ret_done: complete, and o->flows are set. */
enum tw_status tw_side_step(
        struct tw_side *s, struct tw_buf *out, bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_side *tw_side_free(struct tw_side *s);

#endif
