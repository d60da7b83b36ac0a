/*
 * export_packet.h - the bytes of one begin or end, Perfetto's hot path.
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

#include "decoder/base/buf.h"

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

#endif
