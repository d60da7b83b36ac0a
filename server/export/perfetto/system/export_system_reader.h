/*
 * export_system_reader.h - the packets of a Perfetto file, one by one, with their times.
 *
 * Decompresses the file and resynchronises after damage, as the decoder does.  Packets inside
 * compressed ones are reported after the one that contains them. Thread: one at a time.
 */
#ifndef TW_EXPORT_SYSTEM_READER_H
#define TW_EXPORT_SYSTEM_READER_H

#include "decoder/base/unzip.h"
#include "decoder/formats/perfetto/perfetto_packet.h"
#include "decoder/formats/perfetto/perfetto_packets.h"
#include "decoder/formats/perfetto/perfetto_sequences.h"

enum { TW_SYSTEM_PUSH_MAX_BYTES = 32 << 20 }; /* maximum unpacked size of one piece of the file */

/* Field numbers of a packet that are distinguished here. */
enum tw_system_payload {
	TW_SYSTEM_FTRACE = 1,
	TW_SYSTEM_PROCESS_TREE = 2,
	TW_SYSTEM_TRACK_EVENT = 11,
	TW_SYSTEM_ZLIB = 50,
	TW_SYSTEM_TRACK = 60,
	TW_SYSTEM_SERVICE_EVENT = 69,
	TW_SYSTEM_ZSTD = 133
};

struct tw_system_packet {
	const uint8_t *p; /* the message, without its tag and length */
	size_t n;
	bool inside; /* of a compressed packet */
	struct tw_perfetto_packet head;
	/* after tw_system_reader_time */
	int64_t first_ns, last_ns;           /* on the trace's clock; -1 unknown */
	uint32_t index;                      /* of its sequence, 0 none */
	struct tw_perfetto_own_clock *moved; /* the clock of which this packet's time is a step */
};

typedef enum tw_status (*tw_system_packet_fn)(
        void *arg, struct tw_system_packet *p, struct tw_err *err);

struct tw_system_reader {
	int fd;
	uint64_t at; /* offset in the file */
	tw_system_packet_fn each;
	void *arg;
	struct tw_arena *arena;
	struct tw_sink sink;
	struct tw_unzip *unzip;
	struct tw_perfetto_packets packets, inner;
	struct tw_perfetto_clocks *clocks;
	struct tw_perfetto_sequences sequences;
	uint64_t inner_offset, damages, unfolded, step_bytes;
	bool inside, cut, done, too_large;
	uint8_t *piece;
};

/* clocks must outlive it and collects the snapshots.  The caller frees with tw_system_reader_close,
 * also on failure. */
enum tw_status tw_system_reader_open(struct tw_system_reader *r, int fd,
        struct tw_perfetto_clocks *clocks, tw_system_packet_fn each, void *arg,
        struct tw_err *err) TW_MUST_USE;
/* Reports the packets in the next piece of the file; r->done: end. */
enum tw_status tw_system_reader_step(struct tw_system_reader *r, struct tw_err *err) TW_MUST_USE;
void tw_system_reader_close(struct tw_system_reader *r);

/* Call once per packet, in order: updates the packet's sequence and sets the times. */
enum tw_status tw_system_reader_time(
        struct tw_system_reader *r, struct tw_system_packet *p, struct tw_err *err) TW_MUST_USE;

#endif
