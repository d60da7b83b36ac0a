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

/* Timestamp and sequence, after the packet's own two bytes. */
static inline uint8_t *tw_packet_head(uint8_t *p, uint32_t seq, uint64_t delta_ns)
{
	*p++ = 0x40;
	p = tw_put_varint_branchless(p, delta_ns);
	*p++ = 0x50;
	return tw_put_varint(p, seq);
}

/* Write at p, which has TW_PACKET_MAX_BYTES free; return the byte after. */
static inline uint8_t *tw_packet_begin(
        uint8_t *p, uint32_t seq, uint64_t delta_ns, uint32_t name_iid)
{
	uint8_t *start = p;
	uint8_t *event = tw_packet_head(p + 2, seq, delta_ns);

	event[0] = 0x5A;
	event[2] = 0x48;
	event[3] = 0x01;
	event[4] = 0x50;
	p = tw_put_varint_branchless(event + 5, name_iid);
	event[1] = (uint8_t)(p - event - 2);
	start[0] = 0x0A;
	start[1] = (uint8_t)(p - start - 2); /* well below 128 */
	return p;
}

static inline uint8_t *tw_packet_end(uint8_t *p, uint32_t seq, uint64_t delta_ns)
{
	uint8_t *start = p;

	p = tw_packet_head(p + 2, seq, delta_ns);
	*p++ = 0x5A;
	*p++ = 0x02;
	*p++ = 0x48;
	*p++ = 0x02;
	start[0] = 0x0A;
	start[1] = (uint8_t)(p - start - 2);
	return p;
}

/* The same with the increase of the thread's CPU time, for an END. */
uint8_t *tw_packet_end_cpu(uint8_t *p, uint32_t seq, uint64_t delta_ns, uint64_t cpu_ns);

struct tw_packet_named { /* a begin that also defines its name or ends a flow */
	uint32_t seq, name_iid;
	uint64_t delta_ns;
	struct tw_str name; /* ptr NULL: already defined */
	bool cpu;           /* includes a CPU time step of 0 */
	uint64_t flow;      /* that ends here; 0 none */
};
enum tw_status tw_packet_begin_named(struct tw_buf *out, const struct tw_packet_named *b);

#endif
