/*
 * export_ours.h - one of our traces during its export to a Perfetto file: state shared by all parts
 * of the export.
 */
#ifndef TW_EXPORT_OURS_H
#define TW_EXPORT_OURS_H

#include "server/export/perfetto/export_clock_sync.h"
#include "server/export/perfetto/export_packet.h"
#include "server/export/perfetto/export_perfetto.h"

struct tw_ours {
	struct tw_trace_file *file;
	struct tw_names names;
	struct tw_selection sel; /* from_ns and to_ns are always set */
	struct tw_perfetto_facts facts;
	struct tw_clock_sync place;
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
static inline int64_t tw_ours_time(const struct tw_ours *o, uint32_t *at, int64_t ts_ns)
{
	int64_t ns = tw_clock_sync_time(&o->place, at, ts_ns);

	return ns > 0 ? ns : 0; /* Perfetto drops negative times */
}

uint32_t tw_ours_pid(const struct tw_ours *o, const struct tw_thread_info *t);
uint64_t tw_ours_process_uuid(const struct tw_ours *o, uint32_t pid);
/* *ret_known: the device's trace describes the thread, so no descriptor is needed. */
uint64_t tw_ours_thread_uuid(
        const struct tw_ours *o, const struct tw_thread_info *t, bool *ret_known);
/* Writes the thread's descriptor, unless the device's trace has one. */
enum tw_status tw_ours_put_thread(const struct tw_ours *o, struct tw_buf *out, uint32_t seq,
        int64_t ts_ns, const struct tw_thread_info *t);

#endif
