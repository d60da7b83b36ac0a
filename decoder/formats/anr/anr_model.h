/*
 * anr_model.h - the contents of an ANR report: dumps, threads, frames and locks.
 *
 * A dump is one snapshot of one process.  A file has one per process, or one per sample if written
 * by a watchdog that samples repeatedly.  Threads, frames and lock lines are each stored in one
 * array, in file order; entries past a limit are counted and dropped.  Texts are deduplicated, and
 * stored as valid UTF-8 without control characters.
 * All memory is in the job's arena: at most about 60 MiB for any input.
 */
#ifndef TW_ANR_MODEL_H
#define TW_ANR_MODEL_H

#include "decoder/base/arena.h"
#include "decoder/formats/anr/anr_line.h"
#include "decoder/formats/anr/anr_locks.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

enum {
	TW_ANR_MAX_DUMPS = 1 << 12,
	TW_ANR_MAX_THREADS = 1 << 15, /* of all dumps together; per dump: limits.max_threads */
	TW_ANR_MAX_FRAMES = 1 << 19,
	TW_ANR_MAX_LOCKS = 1 << 16,
	TW_ANR_MAX_TEXTS = 1 << 18,
	TW_ANR_MAX_TEXT_BYTES = 12 << 20,
	TW_ANR_MAX_LOADS = 64 /* lines of CPU use */
};

enum tw_anr_frame_kind { TW_ANR_JAVA, TW_ANR_C, TW_ANR_IN_KERNEL };

struct tw_anr_frame {      /* texts are indices, 0 none */
	uint32_t name;     /* a.B.c, a function, or libx.so+0x12 */
	uint32_t where;    /* B.java:1, libx.so */
	uint32_t build_id; /* of a native frame without a function: hex digits, as text */
	enum tw_anr_frame_kind kind;
	bool inlined; /* into the frame below, according to a mapping */
};

struct tw_anr_thread {
	uint32_t name, state, channel; /* texts; channel: the kernel function it waits in */
	uint64_t tid, sys_tid;         /* 0 unknown; "held by" refers to tid */
	uint64_t run_ns, queue_ns, user_ticks, kernel_ticks;
	uint64_t offset;
	uint64_t track;           /* its id in the trace; 0: found through its other ids */
	uint32_t frame, n_frames; /* index of the first; top frame first */
	uint32_t lock, n_locks;   /* index of the first */
	uint32_t frames_left_out;
	int32_t priority, nice;
	char sched_state; /* 0 unknown */
	bool daemon, attached, starting;
};

struct tw_anr_dump {
	uint64_t pid;  /* 0 unknown */
	int64_t at_ns; /* -1 unknown */
	uint64_t offset;
	uint32_t thread, n_threads; /* index of the first */
	uint32_t threads_left_out;
	uint64_t declared_threads;    /* the count in its heading; 0: absent */
	uint32_t facts[TW_ANR_FACTS]; /* texts */
	bool process;                 /* begun by a "----- pid" line */
};

struct tw_anr_text {
	const char *ptr;
	uint32_t len;
};

struct tw_anr {
	struct tw_arena *arena;
	struct tw_sink *sink; /* for repairs */
	struct tw_limits limits;
	bool no_memory; /* sticky */
	struct tw_anr_dump *dumps;
	struct tw_anr_thread *threads;
	struct tw_anr_frame *frames;
	struct tw_anr_lock *locks; /* .thread is relative to the first thread of its dump; .frame is
	                            * absolute */
	uint32_t n_dumps, n_threads, n_frames, n_locks;
	uint32_t cap_dumps, cap_threads, cap_frames, cap_locks;
	struct tw_anr_text *texts; /* index 0 is "" */
	uint32_t n_texts, cap_texts, n_slots;
	uint32_t *slots;
	size_t text_bytes;
	char *scratch; /* for names that need cleaning */
	uint32_t facts[TW_ANR_FACTS];
	uint32_t loads[TW_ANR_MAX_LOADS];
	uint32_t n_loads;
	uint64_t dumping_pid;
};

/* False: out of memory. */
bool tw_anr_init(
        struct tw_anr *m, struct tw_arena *a, const struct tw_limits *limits, struct tw_sink *sink);

/* Index of the text; 0 for "" and at the limits.  Long texts are truncated and counted. */
uint32_t tw_anr_text(struct tw_anr *m, struct tw_str s, uint64_t offset);
struct tw_str tw_anr_str(const struct tw_anr *m, uint32_t text);

/* Each adds to the last dump or thread.  False: dropped at a limit, or out of memory. */
bool tw_anr_add_dump(struct tw_anr *m, uint64_t pid, int64_t at_ns, uint64_t offset);
bool tw_anr_add_thread(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset);
bool tw_anr_add_frame(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset);
/* Repeats the previous frame `n` times. */
bool tw_anr_repeat_frame(struct tw_anr *m, uint64_t n, uint64_t offset);
bool tw_anr_add_lock(struct tw_anr *m, const struct tw_anr_line *l, uint64_t offset);

#endif
