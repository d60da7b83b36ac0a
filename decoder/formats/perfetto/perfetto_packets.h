/*
 * perfetto_packets.h - pushed bytes to the packets of a Perfetto trace.
 *
 * A trace is nothing but packets: the byte 0x0A, a length, so many bytes.  A
 * packet that lies whole in one push is handed on where it is; one that is cut
 * is put together first, so that cuts change nothing (I3).  Where the chain of
 * packets breaks, the bytes up to the next place from which it goes on are
 * skipped and counted, so that damage costs what is damaged and not the rest.
 */
#ifndef TW_PERFETTO_PACKETS_H
#define TW_PERFETTO_PACKETS_H

#include "decoder/base/arena.h"
#include "decoder/base/pbread.h"
#include "decoder/formats/sink.h"

/* Phones write packets below 512 KiB; a longer one is taken for damage and counted. */
enum { TW_PERFETTO_PACKET_MAX = 8 << 20 };

struct tw_perfetto_piece {
	const uint8_t *p;
	size_t n;
	uint64_t offset; /* of the packet in the input */
};

/* Sets *ret_damaged when the fields are not whole: then the length may be what is wrong, and
 * packets are looked for among these bytes. */
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
	const uint64_t *inside; /* the offset to tell for all: these packets stood in another */
	uint64_t length;
	unsigned shift;
	uint8_t *held; /* the beginning of a packet that is not yet whole */
	size_t n_held, cap_held;
	uint8_t *queue; /* bytes to be read before those that are pushed next */
	size_t n_queue, at_queue, cap_queue;
};

void tw_perfetto_packets_init(struct tw_perfetto_packets *s, struct tw_arena *a,
        struct tw_sink *sink, tw_perfetto_packet_fn each, void *arg);
enum tw_status tw_perfetto_packets_push(
        struct tw_perfetto_packets *s, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* The input ended.  A packet that is not whole is counted.  More may be pushed as if it were the
 * beginning. */
enum tw_status tw_perfetto_packets_finish(
        struct tw_perfetto_packets *s, struct tw_err *err) TW_MUST_USE;

/* Could these be the first bytes of a trace? */
bool tw_perfetto_packets_begin(const uint8_t *p, size_t n);

#endif
