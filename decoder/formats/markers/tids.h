/*
 * tids.h - the threads of a text trace, by their ids.
 *
 * One record per thread for everything known and open while the text is read.  Its track at the
 * sink is requested when first needed; its process may become known later, and is reported then.
 */
#ifndef TW_TIDS_H
#define TW_TIDS_H

#include "decoder/base/arena.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"

enum { TW_BLOCKED_IN_BYTES = 48 };

enum tw_run_state {
	TW_RUN_UNKNOWN,
	TW_RUN_RUNNING,
	TW_RUN_RUNNABLE,
	TW_RUN_SLEEPING,
	TW_RUN_BLOCKED,
	TW_RUN_STOPPED,
	TW_RUN_DEAD
};

struct tw_open_fact; /* marks.c */

struct tw_tid {
	uint64_t tid;
	uint32_t pid;        /* 0: unknown so far */
	uint32_t marker_pid; /* from a marker; used if no more reliable source has one; 0 none */
	uint32_t track;      /* 0: not requested yet */
	bool named;
	const void *calls_of; /* the source of its last calls; NULL: none yet */
	/* marks.c: open sections, those inside the first that the sink did not take, and those of
	 * the former that are facts, innermost first */
	uint32_t depth, hidden;
	struct tw_open_fact *facts;
	/* sched.c */
	enum tw_run_state state;
	int32_t cpu, iowait; /* -1 unknown */
	int64_t since_ns;
	uint64_t offset; /* of the event that began the state */
	char blocked_in[TW_BLOCKED_IN_BYTES];
};

struct tw_tids {
	struct tw_sink *sink;
	struct tw_tid *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, max, n_slots;
	uint64_t salt; /* of the hash */
};

/* False: out of memory. */
bool tw_tids_init(struct tw_tids *t, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
/* The thread with this id; NULL at the limit, which is counted. */
struct tw_tid *tw_tids_get(struct tw_tids *t, uint64_t tid, uint64_t offset);
/* The thread with this id in a process, for traces whose thread ids are unique only within a
 * process.  A thread without a known process is assumed to be it. */
struct tw_tid *tw_tids_get_in(struct tw_tids *t, uint32_t pid, uint64_t tid, uint64_t offset);
/* Its handle at the sink; 0 at a limit. */
uint32_t tw_tids_track(struct tw_tids *t, struct tw_tid *k);
/* Sets its process; the first value wins, 0 is ignored.  Lines' columns and process listings call
 * tw_tids_process.  A pid from a marker (tw_tids_marker_process) is used only if they have none,
 * and is applied at the end by tw_tids_apply_markers. */
void tw_tids_process(struct tw_tids *t, struct tw_tid *k, uint32_t pid);
void tw_tids_marker_process(struct tw_tid *k, uint32_t pid);
void tw_tids_apply_markers(struct tw_tids *t);
/* Sets its name; the first wins, "" is ignored. */
void tw_tids_name(struct tw_tids *t, struct tw_tid *k, struct tw_str name);

#endif
