/*
 * running.h - when one thread was on a CPU, by the states that the scheduler recorded.
 *
 * The time on a CPU within a call is the call's CPU time.  Recordings of the scheduler rarely begin
 * and end with the calls: time outside the recorded states is unknown and counts as running.
 * Thread: the caller's; reads need no lock.
 */
#ifndef TW_RUNNING_H
#define TW_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

struct tw_run {
	int64_t start_ns, end_ns;
	int64_t before_ns; /* on a CPU before this run */
};

struct tw_running { /* all zero: nothing is recorded */
	struct tw_run *runs;
	uint32_t n, cap;
	int64_t from_ns, to_ns; /* begin of the first state, end of the last one */
	bool any;               /* a state was added */
};

/* Adds a state, by rising begins; the part that overlaps an earlier state is ignored.  False: out
 * of memory. */
bool tw_running_add(struct tw_running *r, int64_t ts_ns, int64_t dur_ns, bool on_cpu);
/* Whether the states cover the span, except for a sixteenth of it at most. */
bool tw_running_covers(const struct tw_running *r, int64_t from_ns, int64_t to_ns);
/* Time on a CPU within the span.  *at is where the last search ended, 0 at first: spans in the
 * order of their begins are found fast. */
int64_t tw_running_within(const struct tw_running *r, int64_t from_ns, int64_t to_ns, uint32_t *at);
void tw_running_free(struct tw_running *r);

#endif
