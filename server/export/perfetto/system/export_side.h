/*
 * export_side.h - what a trace says beside its calls, as tracks, counters and flows of a Perfetto
 * file.
 *
 * Locks, marks, collections and named spans stand on tracks under their thread or process; counters
 * become counter tracks; who waits for a lock is joined to who holds it, and who starts a thread to
 * that thread's first call.  The whole trace is a span named by its scenario.  Memory: a few
 * hundred bytes a thread, and an id per counter. Thread: one at a time.
 */
#ifndef TW_EXPORT_SIDE_H
#define TW_EXPORT_SIDE_H

#include "server/export/perfetto/export_ours.h"

struct tw_side;

/* beside: a device's trace goes into the same file, which has the scheduler's and the kernel's
 * side of things already. */
enum tw_status tw_side_new(
        struct tw_ours *o, bool beside, struct tw_side **ret, struct tw_err *err) TW_MUST_USE;
/* Appends some packets; *ret_done: there are no more, and o->flows are set. */
enum tw_status tw_side_step(
        struct tw_side *s, struct tw_buf *out, bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_side *tw_side_free(struct tw_side *s);

#endif
