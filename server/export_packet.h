/*
 * export_packet.h - the bytes of one begin or end, Perfetto's hot path.
 *
 *   0a LEN                     packet of a Trace
 *      40 delta                timestamp, ns since the packet before on this sequence
 *      50 seq                  trusted_packet_sequence_id
 *      5a LEN                  track_event
 *         48 01 50 iid         SLICE_BEGIN and the number of its name, or
 *         48 02                SLICE_END
 *      62 LEN 12 LEN 08 iid 12 LEN name     (first use of a name) interned event name
 *
 * Learned from the public Perfetto protos; sequence defaults give clock and track.
 */
#ifndef TW_EXPORT_PACKET_H
#define TW_EXPORT_PACKET_H

#include "base/buf.h"

/* A begin without its name takes at most this, an end too. */
enum { TW_PACKET_MAX_BYTES = 48 };

/* Write at p, which has room for TW_PACKET_MAX_BYTES; give the byte after. */
uint8_t *tw_packet_begin(uint8_t *p, uint32_t seq, uint64_t delta_ns, uint32_t name_iid);
uint8_t *tw_packet_end(uint8_t *p, uint32_t seq, uint64_t delta_ns);
/* A begin that also says what the number means. */
enum tw_status tw_packet_begin_named(
        struct tw_buf *out, uint32_t seq, uint64_t delta_ns, uint32_t name_iid, struct tw_str name);

#endif
