/*
 * sched.h - converts scheduler events to thread states.
 *
 * A thread runs from the switch to it until the switch away from it.  The state it was switched
 * away in (runnable, sleeping, blocked ...) lasts until it is woken; then it is runnable until it
 * runs.  States whose start was not seen are not emitted.  The idle thread (id 0) has no states.
 */
#ifndef TW_SCHED_H
#define TW_SCHED_H

#include "decoder/formats/markers/markers.h"

struct tw_sched_event {
	int64_t ts_ns;
	uint64_t offset;
	int32_t cpu;
};

/* prev or next may be NULL: unknown. */
enum tw_status tw_sched_switch(struct tw_markers *m, const struct tw_sched_event *ev,
        struct tw_tid *prev, struct tw_str prev_state, struct tw_tid *next,
        struct tw_err *err) TW_MUST_USE;
/* `by` woke `woken`. */
enum tw_status tw_sched_wake(struct tw_markers *m, const struct tw_sched_event *ev,
        struct tw_tid *by, struct tw_tid *woken, struct tw_str woken_name,
        struct tw_err *err) TW_MUST_USE;
/* Records where `k` is blocked, as reported by the kernel: iowait 0 or 1, a function. */
void tw_sched_blocked(struct tw_tid *k, int32_t iowait, struct tw_str caller);
/* Ends all open states at the latest time. */
enum tw_status tw_sched_finish(struct tw_markers *m, struct tw_err *err) TW_MUST_USE;

#endif
