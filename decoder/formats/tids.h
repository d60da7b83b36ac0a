/*
 * tids.h - the threads that a text trace speaks of, found by their ids.
 *
 * One record a thread for all that is known and open while the text is read.
 * Its track at the sink is asked for when it is first needed; its process may
 * come to be known later, and is told then.
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
	uint32_t pid;      /* 0: not known yet */
	uint32_t said_pid; /* what a marker said, until something surer does; 0 nothing */
	uint32_t track;    /* 0: not asked for yet */
	bool named;
	const void *calls_of; /* what its calls were last read from; NULL: none yet */
	/* marks.c: open sections, those inside the first that the sink did not take, and those of
	 * the former that are facts, innermost first */
	uint32_t depth, hidden;
	struct tw_open_fact *facts;
	/* sched.c */
	enum tw_run_state state;
	int32_t cpu, iowait; /* -1 unknown */
	int64_t since_ns;
	uint64_t offset; /* of what began the state */
	char blocked_in[TW_BLOCKED_IN_BYTES];
};

struct tw_tids {
	struct tw_sink *sink;
	struct tw_tid *list;
	uint32_t *slots; /* index + 1 by hash; 0 free */
	uint32_t n, max, n_slots;
	uint64_t salt; /* of their hash */
};

/* False: no memory. */
bool tw_tids_init(struct tw_tids *t, struct tw_arena *a, const struct tw_limits *limits,
        struct tw_sink *sink);
/* The thread with this id; NULL at the limit, which is counted. */
struct tw_tid *tw_tids_get(struct tw_tids *t, uint64_t tid, uint64_t offset);
/* The thread with this id in a process, for traces whose thread ids are only unique in theirs; one
 * of which no process is known is taken for it. */
struct tw_tid *tw_tids_get_in(struct tw_tids *t, uint32_t pid, uint64_t tid, uint64_t offset);
/* Its handle at the sink; 0 at a limit. */
uint32_t tw_tids_track(struct tw_tids *t, struct tw_tid *k);
/* Its process; the first word counts, 0 says nothing.  Lines' columns and listings of processes say
 * it; what a marker says counts where they do not, and is believed at the end. */
void tw_tids_process(struct tw_tids *t, struct tw_tid *k, uint32_t pid);
void tw_tids_said(struct tw_tid *k, uint32_t pid);
void tw_tids_believe(struct tw_tids *t);
/* Its name; the first counts, "" says nothing. */
void tw_tids_name(struct tw_tids *t, struct tw_tid *k, struct tw_str name);

#endif
