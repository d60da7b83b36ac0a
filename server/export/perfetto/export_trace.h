/*
 * export_trace.h - one tracewell trace during its export to a Perfetto file: its position on the
 * file's timeline, and the state shared by all parts of the export.
 */
#ifndef TW_EXPORT_TRACE_H
#define TW_EXPORT_TRACE_H

#include "server/export/perfetto/export_packet.h"
#include "server/export/perfetto/export_perfetto.h"
#include "server/export/perfetto/system/export_system.h"
#include "server/trace/trace_file.h"

/* --- its clock ---
 *
 * Times of a trace count from its own zero, whose CLOCK_MONOTONIC and CLOCK_BOOTTIME may be known.
 * With a device's trace they are converted to that trace's clock by its clock snapshots, as
 * Perfetto does: the latest snapshot at or before a reading applies, so a sleep of the device moves
 * all later times.  Without a shared clock both traces begin together, and the choice is reported.
 * Thread: any, once made.
 */

enum tw_clock_sync_choice {
	TW_CLOCK_SYNC_ALONE,     /* no other trace to align with */
	TW_CLOCK_SYNC_MONOTONIC, /* by readings of CLOCK_MONOTONIC */
	TW_CLOCK_SYNC_BOOTTIME,  /* by readings of CLOCK_BOOTTIME */
	TW_CLOCK_SYNC_START,     /* begins together with the other */
	TW_CLOCK_SYNC_SLICE,     /* a slice of the given name begins together with the other's */
	TW_CLOCK_SYNC_APART      /* according to the clocks they were not recorded together */
};
const char *tw_clock_sync_name(enum tw_clock_sync_choice choice); /* "monotonic", "start" */

struct tw_clock_sync_step { /* from here on, add_ns is added */
	int64_t from_ns, add_ns;
};

struct tw_clock_sync {
	enum tw_clock_sync_choice choice;
	uint32_t clock; /* Perfetto's id of the target clock */
	const struct tw_clock_sync_step *steps;
	uint32_t n;
	/* The difference between the trace's own BOOTTIME base and its position by the snapshots;
	 * INT64_MIN: unknown. */
	int64_t residual_ns;
};

/* system NULL: no other trace.  Steps are stored in the arena. */
enum tw_status tw_clock_sync_make(const struct tw_trace_info *trace, const struct tw_system *system,
        struct tw_arena *a, struct tw_clock_sync *ret, struct tw_err *err) TW_MUST_USE;
/* The same, mapping trace time at_ns to to_ns of a clock. */
enum tw_status tw_clock_sync_at(enum tw_clock_sync_choice choice, uint32_t clock, int64_t at_ns,
        int64_t to_ns, struct tw_arena *a, struct tw_clock_sync *ret,
        struct tw_err *err) TW_MUST_USE;

/* NULL if a device's trace can be joined with ours, otherwise a message with the reason. */
const char *tw_clock_sync_why_not(const struct tw_system *system, const struct tw_clock_sync *sync);

/* *at is the step to start the search at, initially 0: rising times are found in constant time. */
static inline int64_t tw_clock_sync_time(const struct tw_clock_sync *p, uint32_t *at, int64_t ts_ns)
{
	while (*at + 1 < p->n && p->steps[*at + 1].from_ns <= ts_ns)
		++*at;
	while (*at && p->steps[*at].from_ns > ts_ns)
		--*at;
	return ts_ns + p->steps[*at].add_ns;
}
/* The trace time of a file time; if several, the first. */
int64_t tw_clock_sync_back(const struct tw_clock_sync *p, int64_t file_ns);

/* --- its state --- */

struct tw_export_trace {
	struct tw_trace_file *file;
	struct tw_names names;
	struct tw_selection sel; /* from_ns and to_ns are always set */
	struct tw_perfetto_facts facts;
	struct tw_clock_sync sync;
	uint64_t salt;      /* common to all traces in the file */
	uint32_t number;    /* index in the file, from 0 */
	uint32_t machine;   /* traces of one device have the same */
	uint32_t pid_shift; /* added to process and thread ids, which overlap between devices */
	const char *prefix; /* of process names, "" none */
	/* Threads that have a track in the device's trace: by rising tid, then pid */
	const struct tw_system_thread *known;
	size_t n_known;
	uint32_t side_seq; /* sequence of its notes */
	uint32_t *seqs;    /* by lane */
	uint64_t *flows;   /* by thread_id - 1: flow that ends at the thread's first call, 0 none */
	uint64_t clipped;  /* number of omitted calls, deeper than 512 */
	uint64_t sides_left; /* number of notes omitted or truncated */
	struct tw_arena *arena;
};

/* Converts a time of the trace to the file's clock. */
static inline int64_t tw_export_trace_time(
        const struct tw_export_trace *o, uint32_t *at, int64_t ts_ns)
{
	int64_t ns = tw_clock_sync_time(&o->sync, at, ts_ns);

	return ns > 0 ? ns : 0; /* Perfetto drops negative times */
}

uint32_t tw_export_trace_pid(const struct tw_export_trace *o, const struct tw_thread_info *t);
uint64_t tw_export_trace_process_uuid(const struct tw_export_trace *o, uint32_t pid);
/* *ret_known: the device's trace describes the thread, so no descriptor is needed. */
uint64_t tw_export_trace_thread_uuid(
        const struct tw_export_trace *o, const struct tw_thread_info *t, bool *ret_known);
/* Writes the thread's descriptor, unless the device's trace has one. */
enum tw_status tw_export_trace_put_thread(const struct tw_export_trace *o, struct tw_buf *out,
        uint32_t seq, int64_t ts_ns, const struct tw_thread_info *t);

#endif
