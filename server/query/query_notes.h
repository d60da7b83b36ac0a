/*
 * query_notes.h - what a trace says beside its calls, in sizes that fit a screen.
 *
 * A trace may hold a million scheduler states.  A lane is the notes of one kind
 * of one thread (of one name, for counters) over a range, with what is too short
 * to see drawn together; a sum is how many there are and how long they took.
 * Like all queries these know neither HTTP nor SQL; memory is in the arena that
 * is passed, and a query that reaches its deadline stops and says partial.
 * Thread: one query, one thread.
 */
#ifndef TW_QUERY_NOTES_H
#define TW_QUERY_NOTES_H

#include "server/query/query.h"

enum { TW_LANE_CELLS_MAX = 4096, TW_LANES_MAX = 1024, TW_LANE_RUNS_MAX = 1 << 18 };

/* A note that is at least a cell long, or a run of shorter ones that begin in one cell. */
struct tw_lane_run {
	int64_t ts_ns;
	int64_t dur_ns;    /* of a run: from its first begin to its last end; -1: one moment */
	int64_t value;     /* of a run: its last counter value, else that of the longest note */
	int64_t low, high; /* of counters: the extremes of the run */
	uint32_t text;     /* of a run: the text with most time in it */
	uint32_t notes;    /* 1: this very note */
};

struct tw_lane {
	enum tw_note_kind kind;
	uint32_t thread_id;       /* 0: of the whole trace */
	uint32_t name;            /* text of a counter */
	struct tw_lane_run *runs; /* by rising time */
	uint32_t n, cap;
};

struct tw_lanes {
	struct tw_lane *lanes; /* in the order in which they were met */
	uint32_t n;
	const struct tw_str *texts;
	uint32_t n_texts;
	bool partial; /* the time ran out, or there was more than the limits above allow */
};

struct tw_lanes_query {
	const struct tw_selection *sel; /* notes of the whole trace belong to all_threads */
	uint64_t kinds;                 /* a bit for each: 1 << TW_NOTE_state */
	uint32_t cells;                 /* 1 to TW_LANE_CELLS_MAX, of equal length over the range */
	int64_t from_ns, to_ns;         /* the range, from_ns < to_ns */
};

/* What touches the range, uncut.  Counters begin with the value that was in force. */
enum tw_status tw_query_lanes(struct tw_trace_file *f, const struct tw_lanes_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_lanes *ret,
        struct tw_err *err) TW_MUST_USE;

enum { TW_NOTE_SUMS_MAX = 1 << 16 };

struct tw_note_sums {
	struct tw_note_sum *sums; /* in the order in which they were met */
	uint32_t n;
	bool partial;
};

enum tw_status tw_query_note_sums(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_note_sums *ret,
        struct tw_err *err) TW_MUST_USE;

/* For each cell of [from_ns, to_ns) the share (0..255) of it in which the thread had a call open.
 * From the finest level that has few enough slices there. */
enum tw_status tw_query_activity_range(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_lanes_query *q, uint8_t *ret_cells, struct tw_err *err) TW_MUST_USE;

#endif
