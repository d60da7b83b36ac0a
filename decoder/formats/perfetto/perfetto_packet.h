/*
 * perfetto_packet.h - the fields of a TracePacket, and the state of its sequence.
 */
#ifndef TW_PERFETTO_PACKET_H
#define TW_PERFETTO_PACKET_H

#include "decoder/base/pbread.h"
#include "decoder/formats/perfetto/perfetto_clocks.h"
#include "decoder/formats/perfetto/perfetto_intern.h"

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

/* A packet that only has a time, a sequence, flags and a track event that begins or ends a span and
 * only has numbers, as most packets of recorded calls. */
struct tw_perfetto_edge {
	uint64_t time, track, name_iid; /* iid 0: none */
	uint32_t sequence, flags;
	bool has_track, begins;
};

/* False: another packet, or a damaged one. */
bool tw_perfetto_packet_edge(const uint8_t *p, size_t n, struct tw_perfetto_edge *ret);

/* --- the state of each packet sequence --- */

struct tw_perfetto_sequence {
	uint32_t id; /* 0: packets without a sequence */
	struct tw_perfetto_scope scope;
	bool seen, lost; /* lost: its interned data cannot be trusted */
	bool has_track;
	uint32_t clock; /* 0: the trace's */
	uint64_t track;
	struct tw_perfetto_own_clock own[TW_PERFETTO_OWN_CLOCKS];
	/* legacy ThreadDescriptor: the thread of all its events, and the base of their times */
	uint32_t pid;
	uint64_t tid;
	int64_t now_us;
};

struct tw_perfetto_sequences {
	struct tw_arena *arena;
	struct tw_perfetto_sequence *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, cap;
	uint32_t last; /* index + 1 of the one returned last; 0: none */
	uint64_t salt; /* of the hash */
	struct tw_perfetto_sequence none;
};

/* Valid until the next call.  Past a limit, new ids share the state of packets without a sequence.
 * NULL: out of memory. */
struct tw_perfetto_sequence *tw_perfetto_sequences_get(
        struct tw_perfetto_sequences *s, uint32_t id);

#endif
