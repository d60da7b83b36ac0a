/*
 * export_packet.h - the packets of a Perfetto file.
 *
 * Begins and ends of calls are the hot path and written by hand, all others by protobuf-c:
 *
 *   0a LEN                     packet of a Trace
 *      40 delta                timestamp, ns since the packet before on this sequence
 *      50 seq                  trusted_packet_sequence_id
 *      5a LEN                  track_event
 *         48 01 50 iid         SLICE_BEGIN and the number of its name, or
 *         48 02                SLICE_END
 *         60 cpu               CPU time since the event before, where the trace has it
 *      62 LEN 12 LEN 08 iid 12 LEN name     (first use of a name) interned event name
 *
 * Learned from the public Perfetto protos; sequence defaults give clock and track.
 */
#ifndef TW_EXPORT_PACKET_H
#define TW_EXPORT_PACKET_H

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "perfetto_subset.pb-c.h"

/* --- begins and ends of calls --- */

/* The maximum size of an end, or of a begin without its name. */
enum { TW_PACKET_MAX_BYTES = 48 };

static inline unsigned tw_varint_bytes(uint64_t v)
{
	return (63u - (unsigned)__builtin_clzll(v | 1)) / 7 + 1;
}

/* The field of a sequence, "50 seq", the same in all its packets. */
struct tw_packet_seq {
	uint64_t field;
	unsigned bytes;
};

static inline struct tw_packet_seq tw_packet_seq(uint32_t seq)
{
	uint8_t field[8] = {0x50};
	const uint8_t *end = tw_put_varint(field + 1, seq);

	return (struct tw_packet_seq){tw_u64le(field), (unsigned)(end - field)};
}

/* Timestamp and sequence, after the packet's own two bytes. */
static inline uint8_t *tw_packet_head(
        uint8_t *p, const struct tw_packet_seq *seq, uint64_t delta_ns)
{
	*p++ = 0x40;
	p = tw_put_varint_branchless(p, delta_ns);
	tw_put_u64le(p, seq->field);
	return p + seq->bytes;
}

/* Write at p, which has TW_PACKET_MAX_BYTES free; return the byte after. */
static inline uint8_t *tw_packet_begin(
        uint8_t *p, const struct tw_packet_seq *seq, uint64_t delta_ns, uint32_t name_iid)
{
	uint8_t *event = tw_packet_head(p + 2, seq, delta_ns);
	uint8_t *end;

	tw_put_u32le(event, 0x0148005A);
	event[4] = 0x50;
	end = tw_put_varint_branchless(event + 5, name_iid);
	event[1] = (uint8_t)(end - event - 2);
	p[0] = 0x0A;
	p[1] = (uint8_t)(end - p - 2); /* well below 128 */
	return end;
}

static inline uint8_t *tw_packet_end(uint8_t *p, const struct tw_packet_seq *seq, uint64_t delta_ns)
{
	uint8_t *event = tw_packet_head(p + 2, seq, delta_ns);

	tw_put_u32le(event, 0x0248025A);
	p[0] = 0x0A;
	p[1] = (uint8_t)(event + 4 - p - 2);
	return event + 4;
}

/* The same with the increase of the thread's CPU time, for an END. */
uint8_t *tw_packet_end_cpu(
        uint8_t *p, const struct tw_packet_seq *seq, uint64_t delta_ns, uint64_t cpu_ns);

struct tw_packet_named { /* a begin that also defines its name or ends a flow */
	const struct tw_packet_seq *seq;
	uint32_t name_iid;
	uint64_t delta_ns;
	struct tw_str name; /* ptr NULL: already defined */
	bool cpu;           /* includes a CPU time step of 0 */
	uint64_t flow;      /* that ends here; 0 none */
};
enum tw_status tw_packet_begin_named(struct tw_buf *out, const struct tw_packet_named *b);

/* --- rare packets: clocks, sequences, processes, threads, tracks --- */

/* Track ids are hashes of the track's subject and a salt, so that the same process or thread has
 * the same id everywhere in the file. */

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
