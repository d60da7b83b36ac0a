/*
 * export_track.h - the rare packets of a Perfetto file: clocks, sequences, processes, threads,
 * tracks.
 *
 * Track ids are hashes of the track's subject and a salt, so that the same process or thread has
 * the same id everywhere in the file.  Thread: any.
 */
#ifndef TW_EXPORT_TRACK_H
#define TW_EXPORT_TRACK_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "perfetto_subset.pb-c.h"

enum tw_track_kind {
	TW_TRACK_PROCESS = 1,
	TW_TRACK_THREAD,
	TW_TRACK_CALLS,
	TW_TRACK_CPU,
	TW_TRACK_SIDE,
	TW_TRACK_COUNTER,
	TW_TRACK_FLOW,
	TW_TRACK_TRACE
};

enum {
	TW_TRACK_OWN_CLOCK = 64, /* Perfetto's first number for clocks of a sequence */
	TW_TRACK_BEGIN = 1,
	TW_TRACK_END = 2,
	TW_TRACK_INSTANT = 3,
	TW_TRACK_COUNT = 4
};

uint64_t tw_track_mix(uint64_t v);
/* Begins with the first 16 bits of salt.  Never 0, which is Perfetto's implicit track. */
uint64_t tw_track_uuid(uint64_t salt, enum tw_track_kind kind, uint64_t a, uint64_t b);

/* All append a packet to out. */
enum tw_status tw_track_put(struct tw_buf *out, const TwPerfetto__TracePacket *p);
/* Simultaneous readings of several clocks. */
enum tw_status tw_track_put_clocks(
        struct tw_buf *out, const uint32_t *ids, const int64_t *readings_ns, size_t n);

struct tw_track_sequence {
	uint32_t seq;
	uint32_t clock; /* the file's clock */
	/* True: times of its packets are steps of ns from base_ns of that clock; false: readings of
	 * it. */
	bool steps;
	int64_t base_ns;
	uint64_t track;       /* default for events without a track; 0 none */
	uint64_t cpu_counter; /* track of the counter attached to each event; 0 none */
};
enum tw_status tw_track_put_sequence(struct tw_buf *out, const struct tw_track_sequence *s);

/* ts_ns is the packet's time on its sequence. */
enum tw_status tw_track_put_descriptor(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, TwPerfetto__TrackDescriptor *track);
enum tw_status tw_track_put_process(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, uint64_t uuid, int32_t pid, char *name);
enum tw_status tw_track_put_thread(struct tw_buf *out, uint32_t seq, int64_t ts_ns, uint64_t uuid,
        const TwPerfetto__ThreadDescriptor *thread);
/* A separate track under a thread or process; description may be NULL. */
enum tw_status tw_track_put_child(struct tw_buf *out, uint32_t seq, int64_t ts_ns,
        const uint64_t uuid_and_parent[2], const char *name, const char *description);

/* A thread's CPU time, encoded as steps with its events. */
enum tw_status tw_track_put_cpu_counter(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, const uint64_t uuid_and_parent[2]);
enum tw_status tw_track_put_counter(struct tw_buf *out, uint32_t seq, int64_t ts_ns,
        const uint64_t uuid_and_parent[2], char *name);

/* A protobuf string from arbitrary bytes; stored in the arena, NULL: out of memory. */
char *tw_track_text(struct tw_arena *a, struct tw_str s);

#endif
