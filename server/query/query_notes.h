/*
 * query_notes.h - notes (events that are not calls), reduced to the size of a screen.
 *
 * A trace may hold a million scheduler states.  A lane contains the notes of one track of one
 * thread over a range, with notes that are too short to see merged into runs. Notes of a track
 * that overlap are in lanes of different rows, frames with different outcomes in different lanes.
 * A sum has their number and total duration. Independent of HTTP and SQL; memory is in the passed
 * arena, and a query that reaches its deadline stops and sets partial. Thread: one query, one
 * thread.
 */
#ifndef TW_QUERY_NOTES_H
#define TW_QUERY_NOTES_H

#include "server/query/query.h"
#include "server/trace/note_keys.h"

enum {
	TW_LANE_CELLS_MAX = 4096,
	TW_LANES_MAX = 1024,
	TW_LANE_RUNS_MAX = 1 << 18,
	TW_LANE_ROWS_MAX = 8,
};

/* A note at least one cell long, or a run of shorter notes that begin in one cell. */
struct tw_lane_run {
	int64_t ts_ns;
	int64_t dur_ns; /* of a run: from its first begin to its last end; -1: an instant */
	int64_t value;  /* of a run: the last value for counters, otherwise that of the longest note
	                 */
	int64_t low, high; /* of counters: the extremes of the run */
	uint32_t text;     /* of a run: the text with the most time */
	uint32_t notes;    /* number of notes; 1: this note itself */
};

struct tw_lane {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: the whole trace */
	struct tw_str name; /* its track, see note_keys.h */
	uint32_t row;       /* of the track, from 0: the same for every range */
	enum tw_note_outcome outcome;
	struct tw_lane_run *runs; /* by rising time */
	uint32_t n, cap;
};

struct tw_lanes {
	struct tw_lane *lanes; /* in order of first occurrence of their tracks, rows and outcomes */
	uint32_t n;
	const struct tw_str *texts;
	uint32_t n_texts;
	bool partial; /* the deadline passed, or a limit above was reached */
};

struct tw_lanes_query {
	const struct tw_selection *sel; /* notes of the whole trace belong to all_threads */
	uint64_t kinds;                 /* one bit per kind: 1 << TW_NOTE_state */
	uint32_t cells;                 /* 1 to TW_LANE_CELLS_MAX, of equal length over the range */
	int64_t from_ns, to_ns;         /* the range, from_ns < to_ns */
	struct tw_waits waits;          /* of activity: methods whose calls cover nothing */
};

/* Notes that overlap the range, unclipped.  Counters begin with the value in force at its start. */
enum tw_status tw_query_lanes(struct tw_trace_file *f, const struct tw_lanes_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_lanes *ret,
        struct tw_err *err) TW_MUST_USE;

enum { TW_NOTE_SUMS_MAX = 1 << 16 };

struct tw_note_sums {
	struct tw_note_sum *sums; /* in order of first occurrence */
	uint32_t n;
	bool partial;
};

enum tw_status tw_query_note_sums(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_note_sums *ret,
        struct tw_err *err) TW_MUST_USE;

/* Per cell of [from_ns, to_ns) the share (0..255) in which the thread had a call open.  Uses the
 * finest level with few enough slices in the range. */
enum tw_status tw_query_activity_range(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_lanes_query *q, uint8_t *ret_cells, struct tw_err *err) TW_MUST_USE;

#endif
