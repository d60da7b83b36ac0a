/*
 * perfetto_packets.h - splits pushed bytes into the packets of a Perfetto trace.
 *
 * A trace is a sequence of packets: the byte 0x0A, a length, that many bytes.  A packet that is
 * complete within one push is passed on without a copy; a split one is assembled first, so that
 * splits change nothing (I3).  If the chain of packets breaks, the bytes up to the next packet are
 * skipped and counted, so that damage costs only the damaged part.
 */
#ifndef TW_PERFETTO_PACKETS_H
#define TW_PERFETTO_PACKETS_H

#include "decoder/base/list.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/sink.h"

/* Phones write packets below 512 KiB; a longer one is treated as damage and counted. */
enum { TW_PERFETTO_PACKET_MAX = 8 << 20 };

struct tw_perfetto_piece {
	const uint8_t *p;
	size_t n;
	uint64_t offset; /* of the packet in the input */
};

/* Sets *ret_damaged if the fields are incomplete: then the length may be wrong, and these bytes are
 * searched for packets. */
typedef enum tw_status (*tw_perfetto_packet_fn)(
        void *arg, const struct tw_perfetto_piece *piece, bool *ret_damaged, struct tw_err *err);

enum tw_perfetto_framing {
	TW_PERFETTO_TAG,
	TW_PERFETTO_LENGTH,
	TW_PERFETTO_BODY,
	TW_PERFETTO_LOST
};

struct tw_perfetto_packets {
	tw_perfetto_packet_fn each;
	void *arg;
	struct tw_arena *arena;
	struct tw_sink *sink;
	enum tw_perfetto_framing state;
	uint64_t offset, start; /* of the next byte; of the packet */
	const uint64_t *inside; /* if set, the offset to report: these packets are inside another
	                         * packet */
	uint64_t length;
	unsigned shift;
	struct tw_bytes held;  /* the beginning of an incomplete packet */
	struct tw_bytes queue; /* bytes to process before those pushed next */
	uint32_t at_queue;
};

void tw_perfetto_packets_init(struct tw_perfetto_packets *s, struct tw_arena *a,
        struct tw_sink *sink, tw_perfetto_packet_fn each, void *arg);
enum tw_status tw_perfetto_packets_push(
        struct tw_perfetto_packets *s, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* The input ended.  An incomplete packet is counted.  More can be pushed, as from a new
 * beginning. */
enum tw_status tw_perfetto_packets_finish(
        struct tw_perfetto_packets *s, struct tw_err *err) TW_MUST_USE;

/* Whether these can be the first bytes of a trace. */
bool tw_perfetto_packets_begin(const uint8_t *p, size_t n);

#endif
