#include "decoder/formats/ftrace/sched.h"

#include <string.h>

#include "decoder/formats/detail.h"

static const char *const state_names[] = {[TW_RUN_UNKNOWN] = "",
        [TW_RUN_RUNNING] = "running",
        [TW_RUN_RUNNABLE] = "runnable",
        [TW_RUN_SLEEPING] = "sleeping",
        [TW_RUN_BLOCKED] = "blocked",
        [TW_RUN_STOPPED] = "stopped",
        [TW_RUN_DEAD] = "dead"};

/* Ends the current state at ts_ns and emits it. */
static enum tw_status leave(
        struct tw_markers *m, struct tw_tid *k, int64_t ts_ns, struct tw_err *err)
{
	struct tw_detail d;
	struct tw_note note = {.kind = TW_NOTE_state,
	        .ts_ns = k->since_ns,
	        .dur_ns = ts_ns > k->since_ns ? ts_ns - k->since_ns : 0,
	        .value = k->state == TW_RUN_RUNNING ? k->cpu : -1,
	        .offset = k->offset,
	        .text = tw_str_of(state_names[k->state])};

	if (k->state == TW_RUN_UNKNOWN)
		return TW_OK;
	d.len = 0;
	if (k->state == TW_RUN_BLOCKED || k->state == TW_RUN_SLEEPING) {
		if (k->iowait >= 0)
			tw_detail_int(&d, "iowait", k->iowait);
		tw_detail_str(&d, "caller", tw_str_of(k->blocked_in));
	}
	note.detail = tw_detail_text(&d);
	note.track = tw_tids_track(&m->tids, k);
	return note.track ? tw_markers_note(m, &note, err) : TW_OK;
}

static enum tw_status enter(struct tw_markers *m, struct tw_tid *k, enum tw_run_state state,
        const struct tw_sched_event *ev, struct tw_err *err)
{
	enum tw_status st = leave(m, k, ev->ts_ns, err);

	k->state = state;
	k->cpu = ev->cpu;
	k->since_ns = ev->ts_ns;
	k->offset = ev->offset;
	k->iowait = -1;
	k->blocked_in[0] = '\0';
	return st;
}

/* The kernel's letters; the first of several is used. */
static enum tw_run_state state_of(struct tw_str letters)
{
	switch (letters.len ? letters.ptr[0] : 'S') {
	case 'R':
	case 'W':
		return TW_RUN_RUNNABLE;
	case 'D':
	case 'K':
		return TW_RUN_BLOCKED;
	case 'T':
	case 't':
		return TW_RUN_STOPPED;
	case 'X':
	case 'x':
	case 'Z':
		return TW_RUN_DEAD;
	default:
		return TW_RUN_SLEEPING;
	}
}

static void see(struct tw_markers *m, const struct tw_sched_event *ev)
{
	if (ev->ts_ns > m->last_ns)
		m->last_ns = ev->ts_ns;
}

enum tw_status tw_sched_switch(struct tw_markers *m, const struct tw_sched_event *ev,
        struct tw_tid *prev, struct tw_str prev_state, struct tw_tid *next, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	see(m, ev);
	if (prev && prev->tid)
		st = enter(m, prev, state_of(prev_state), ev, err);
	if (st == TW_OK && next && next->tid)
		st = enter(m, next, TW_RUN_RUNNING, ev, err);
	return st;
}

enum tw_status tw_sched_wake(struct tw_markers *m, const struct tw_sched_event *ev,
        struct tw_tid *by, struct tw_tid *woken, struct tw_str woken_name, struct tw_err *err)
{
	enum tw_status st;

	see(m, ev);
	/* "waking" is followed by "wakeup": only the first counts */
	if (!woken || !woken->tid || woken->state == TW_RUN_RUNNING ||
	        woken->state == TW_RUN_RUNNABLE)
		return TW_OK;
	st = enter(m, woken, TW_RUN_RUNNABLE, ev, err);
	if (st != TW_OK)
		return st;
	return tw_markers_note(m,
	        &(struct tw_note){.kind = TW_NOTE_wakeup,
	                .track = by && by->tid ? tw_tids_track(&m->tids, by) : 0,
	                .ts_ns = ev->ts_ns,
	                .dur_ns = -1,
	                .value = (int64_t)woken->tid,
	                .offset = ev->offset,
	                .text = woken_name},
	        err);
}

void tw_sched_blocked(struct tw_tid *k, int32_t iowait, struct tw_str caller)
{
	size_t n = caller.len < sizeof k->blocked_in - 1 ? caller.len : sizeof k->blocked_in - 1;

	k->iowait = iowait;
	if (n)
		memcpy(k->blocked_in, caller.ptr, n);
	k->blocked_in[n] = '\0';
}

enum tw_status tw_sched_finish(struct tw_markers *m, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; st == TW_OK && i < m->tids.n; i++) {
		struct tw_tid *k = &m->tids.list[i];

		st = leave(m, k, m->last_ns, err);
		k->state = TW_RUN_UNKNOWN;
	}
	return st;
}
