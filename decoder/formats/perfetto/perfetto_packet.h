/*
 * perfetto_packet.h - the fields of a TracePacket.
 */
#ifndef TW_PERFETTO_PACKET_H
#define TW_PERFETTO_PACKET_H

#include "decoder/base/pbread.h"

/* In flags. */
enum { TW_PERFETTO_STATE_CLEARED = 1, TW_PERFETTO_NEEDS_STATE = 2 };

struct tw_perfetto_packet {
	uint64_t offset, time;
	uint32_t clock, sequence, flags;
	bool has_time, dropped, first;
	bool heap_profile; /* contains a heap profile, which is not read */
	uint64_t machine;
	struct tw_pb_field defaults, interned, snapshot; /* number 0: absent, also in the next
	                                                  * two */
	struct tw_pb_field payload;                      /* of a kind that is supported */
	struct tw_pb_field content;                      /* of any kind */
};

/* False: damaged.  `offset` is not modified. */
bool tw_perfetto_packet_read(struct tw_pb message, struct tw_perfetto_packet *p);

#endif
