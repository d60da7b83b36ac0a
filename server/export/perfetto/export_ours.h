/*
 * export_ours.h - one of our traces on its way into a Perfetto file: what all its parts need to
 * know.
 */
#ifndef TW_EXPORT_OURS_H
#define TW_EXPORT_OURS_H

#include "server/export/perfetto/export_perfetto.h"
#include "server/export/perfetto/export_place.h"
#include "server/export/perfetto/export_track.h"

struct tw_ours {
	struct tw_trace_file *file;
	struct tw_names names;
	struct tw_selection sel; /* from_ns and to_ns are set in any case */
	struct tw_perfetto_facts facts;
	struct tw_place place;
	uint64_t salt;      /* of all in the file */
	uint32_t number;    /* among them, from 0 */
	uint32_t machine;   /* traces of one device share it */
	uint32_t pid_shift; /* added to ids of processes and threads, which devices use alike */
	const char *prefix; /* of names of processes, "" none */
	/* Tracks that the device's trace has for these: by rising tid, then pid */
	const struct tw_system_thread *known;
	size_t n_known;
	uint32_t side_seq; /* its sequences */
	uint32_t *seqs;    /* by lane */
	uint64_t *flows;   /* by thread_id - 1: flow that ends at the thread's first call, 0 none */
	uint64_t clipped;  /* calls left out, deeper than 512 */
	uint64_t sides_left; /* notes left out or cut */
	struct tw_arena *arena;
};

/* A time of the trace on the file's clock. */
static inline int64_t tw_ours_time(const struct tw_ours *o, uint32_t *at, int64_t ts_ns)
{
	int64_t ns = tw_place_time(&o->place, at, ts_ns);

	return ns > 0 ? ns : 0; /* Perfetto drops what is before 0 */
}

uint32_t tw_ours_pid(const struct tw_ours *o, const struct tw_thread_info *t);
uint64_t tw_ours_process_uuid(const struct tw_ours *o, uint32_t pid);
/* *ret_known: the device's trace describes it, so nobody else needs to. */
uint64_t tw_ours_thread_uuid(
        const struct tw_ours *o, const struct tw_thread_info *t, bool *ret_known);
/* Describes the thread, unless the device's trace does. */
enum tw_status tw_ours_put_thread(const struct tw_ours *o, struct tw_buf *out, uint32_t seq,
        int64_t ts_ns, const struct tw_thread_info *t);

#endif
