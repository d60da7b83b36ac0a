/*
 * export_system.h - the device's own Perfetto trace: collects the ids that our packets must avoid,
 * and copies its packets.
 *
 * Our trace is joined to the device's without changing the latter's packets, so possible conflicts
 * are collected first: the ids of its sequences and tracks, its clocks, how its recorder flushed,
 * and whether the file is a trace.  The file is read forwards once, in pieces; only the clock
 * snapshots and a few bytes per sequence are kept. Thread: one at a time.
 */
#ifndef TW_EXPORT_SYSTEM_H
#define TW_EXPORT_SYSTEM_H

#include "decoder/base/buf.h"
#include "decoder/base/unzip.h"
#include "decoder/formats/perfetto/perfetto_packet.h"
#include "decoder/formats/perfetto/perfetto_packets.h"

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

enum {
	TW_SYSTEM_SEQUENCES = 1 << 16, /* lower ids are tracked individually */
	TW_SYSTEM_PREFIXES = 1 << 16,
	TW_SYSTEM_THREADS = 1 << 16 /* limit of described threads that are recorded */
};

enum tw_system_fault { /* reason why it cannot be joined */
	TW_SYSTEM_FINE,
	TW_SYSTEM_TOO_LARGE,
	TW_SYSTEM_NO_TRACE,
	TW_SYSTEM_TWO_CODECS,
	TW_SYSTEM_TOO_MUCH,
	TW_SYSTEM_FAULTS
};

struct tw_system_thread { /* a thread or process with a track */
	uint32_t pid, order;
	uint64_t tid;  /* 0: the process itself */
	uint64_t uuid; /* of its latest descriptor */
};

struct tw_system {
	enum tw_system_fault fault;
	struct tw_arena *arena;
	struct tw_perfetto_clocks clocks; /* all of its snapshots */
	struct tw_system_thread *threads; /* by rising tid, then pid */
	uint32_t n_threads;
	uint64_t packets, bytes;
	uint64_t damages;        /* number of places that could not be read */
	bool cut;                /* truncated */
	bool flushed;            /* written during the recording (perfetto.dev: write_into_file) */
	bool has_zlib, has_zstd; /* has packets that contain compressed packets */
	int64_t first_ns, last_ns; /* of its packets, on its clock; -1 unknown */
	uint8_t sequences[TW_SYSTEM_SEQUENCES / 8];
	uint8_t prefixes[TW_SYSTEM_PREFIXES / 8]; /* first 16 bits of its tracks' and flows' ids */
};

/* Reads the file from its beginning; the caller keeps fd.  A file that is not a trace is not an
 * error (`fault`). */
enum tw_status tw_system_scan(int fd, struct tw_system **ret, struct tw_err *err) TW_MUST_USE;
/* An empty one; NULL: out of memory. */
struct tw_system *tw_system_new(void);
struct tw_system *tw_system_free(struct tw_system *s);

/* NULL, or a message why it cannot be joined. */
const char *tw_system_why(const struct tw_system *s);
/* Returns an unused sequence id from *next on, and moves *next after it. */
uint32_t tw_system_sequence(const struct tw_system *s, uint32_t *next);
/* 16 bits that are not the prefix of any of its track or flow ids; s may be NULL. */
uint16_t tw_system_prefix(const struct tw_system *s);

/* --- copying its packets into another file --- */

/* Packets are never changed.  For a time range, packets with events in it are copied, and all
 * packets that later ones depend on: interned names, clocks, descriptions of processes and tracks.
 * Compressed packets are unpacked only for a range.  If omitted packets of a sequence have
 * incremental times, a packet with the sum of these steps is inserted before the next one. */

struct tw_system_copy;

struct tw_system_range { /* on the clock of the device's trace */
	bool cut;
	int64_t from_ns, to_ns;
};

/* The caller keeps fd; s must outlive it. */
enum tw_status tw_system_copy_open(int fd, struct tw_system *s, const struct tw_system_range *range,
        struct tw_system_copy **ret, struct tw_err *err) TW_MUST_USE;
/* Appends the next packets.  *ret_gap: the offset in out for packets of others, SIZE_MAX if not in
 * this piece.  It is before the recorder's first statement that all earlier packets are complete,
 * because Perfetto loses older packets after it; without such a statement it is at the end.
 * *ret_done: complete. */
enum tw_status tw_system_copy_step(struct tw_system_copy *c, struct tw_buf *out, size_t *ret_gap,
        bool *ret_done, struct tw_err *err) TW_MUST_USE;
struct tw_system_copy *tw_system_copy_close(struct tw_system_copy *c);
uint64_t tw_system_copy_packets(const struct tw_system_copy *c); /* so far */

/* --- report (export_system_facts.c) --- */

struct tw_trace_info;
/* Appends a JSON object: whether the device's trace and ours can be joined and why not, by which
 * clock and with which offset.  An export decides the same. */
enum tw_status tw_system_report(const struct tw_system *s, const struct tw_trace_info *trace,
        struct tw_buf *out, struct tw_err *err) TW_MUST_USE;

#endif
