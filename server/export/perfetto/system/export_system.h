/*
 * export_system.h - the device's own Perfetto trace: what is in it that another must keep clear of.
 *
 * A trace of ours is joined to the device's without touching the latter's packets, so everything
 * that could clash is looked for first: the ids of its sequences, the ids of its tracks, its
 * clocks, how its recorder flushed, and whether it is a trace at all.  The file is read forwards
 * once, in pieces; what is kept is the clock snapshots and a few bytes a sequence.
 * Thread: one at a time.
 */
#ifndef TW_EXPORT_SYSTEM_H
#define TW_EXPORT_SYSTEM_H

#include "server/export/perfetto/system/export_system_reader.h"

enum {
	TW_SYSTEM_SEQUENCES = 1 << 16, /* ids below are told apart */
	TW_SYSTEM_PREFIXES = 1 << 16,
	TW_SYSTEM_THREADS = 1 << 16 /* described ones that are kept in mind */
};

enum tw_system_fault { /* why it cannot be joined */
	TW_SYSTEM_FINE,
	TW_SYSTEM_TOO_LARGE,
	TW_SYSTEM_NO_TRACE,
	TW_SYSTEM_TWO_CODECS,
	TW_SYSTEM_TOO_MUCH,
	TW_SYSTEM_FAULTS
};

struct tw_system_thread { /* that has a track */
	uint32_t pid, order;
	uint64_t tid;  /* 0: the process is meant */
	uint64_t uuid; /* of its latest descriptor */
};

struct tw_system {
	enum tw_system_fault fault;
	struct tw_arena *arena;
	struct tw_perfetto_clocks clocks; /* all of its snapshots */
	struct tw_system_thread *threads; /* by rising tid, then pid */
	uint32_t n_threads;
	uint64_t packets, bytes;
	uint64_t damages; /* places where it could not be read */
	bool cut;         /* its end is missing */
	bool flushed;     /* it was written while it was recorded (perfetto.dev: write_into_file) */
	bool has_zlib, has_zstd;   /* packets that hold packets */
	int64_t first_ns, last_ns; /* of its packets, on its clock; -1 unknown */
	uint8_t sequences[TW_SYSTEM_SEQUENCES / 8];
	uint8_t prefixes[TW_SYSTEM_PREFIXES / 8]; /* first 16 bits of its tracks' and flows' ids */
};

/* Reads the file from its beginning; fd stays the caller's.  That it is no trace is no failure
 * (`fault`). */
enum tw_status tw_system_scan(int fd, struct tw_system **ret, struct tw_err *err) TW_MUST_USE;
/* With nothing in it; NULL without memory. */
struct tw_system *tw_system_new(void);
struct tw_system *tw_system_free(struct tw_system *s);

/* NULL, or why it cannot be joined, in words. */
const char *tw_system_why(const struct tw_system *s);
/* Ids of sequences that it does not have, from *next on, which moves behind it. */
uint32_t tw_system_sequence(const struct tw_system *s, uint32_t *next);
/* 16 bits with which none of its tracks' and flows' ids begin; s may be NULL. */
uint16_t tw_system_prefix(const struct tw_system *s);

#endif
