/*
 * query_detect.h - finds the time that a trace spends in calls and notes covered by rules.
 *
 * Rules are passed as bits by method, thread and kind of note; this file knows neither names nor
 * projects.  Of nested calls of one rule only the outermost counts; inside a reported call no other
 * of its group is reported.  A note inside a call counted by a rule of its group is the same event
 * and is not counted again.  Calls around a thread's main loop show how the loop was started, not
 * its work, and do not count.  All memory is in the passed arena.  Thread: one query.
 */
#ifndef TW_QUERY_DETECT_H
#define TW_QUERY_DETECT_H

#include "server/query/query.h"

enum {
	TW_DETECT_KEEP_MAX = 500,
	TW_DETECT_COVERS_MAX = 1 << 20,
	TW_DETECT_MARKS_MAX = 1 << 16,
	TW_DETECT_NOTES_MAX = 1 << 18 /* notes that are inspected */
};

/* Reasons why results may be incomplete, as bits.  Only the deadline ends a search: after a list is
 * full the search continues, so sums and other lists remain complete. */
enum {
	TW_CUT_TIME = 1,
	TW_CUT_CALLS = 2,   /* too many covering calls: notes inside later ones are counted again */
	TW_CUT_MARKS = 4,   /* too many marked calls: frames and the start are incomplete */
	TW_CUT_NOTES = 8,   /* too many notes: later ones are not inspected */
	TW_CUT_FRAMES = 16, /* too many frames of the display timeline */
	TW_CUT_CAUSES = 32  /* no memory for the calls of a range */
};

struct tw_detect_spec { /* per rule */
	unsigned group; /* index of the first rule of its group */
	int64_t threshold_ns;
	uint64_t notes; /* one bit per kind */
};

/* The role of a method, from tw_detect_query.marks: one of these or, from TW_MARK_PHASE on, a phase
 * of the start (detect_start.h). */
enum {
	TW_MARK_NONE,
	TW_MARK_LOOP,
	TW_MARK_FRAME,
	TW_MARK_MESSAGE,
	TW_MARK_DRAWN, /* the app reports that it is fully drawn */
	TW_MARK_PHASE,
	TW_MARKS_MAX = 64
};

struct tw_detect_query {
	const struct tw_detect_spec *rules;
	size_t n_rules;
	const uint64_t *by_method;     /* matching rules of each of the trace's methods */
	const uint8_t *marks, *is_app; /* per method */
	uint32_t n_methods;
	const uint64_t *by_thread; /* rules that apply, by thread id; 0: notes without a thread */
	uint32_t main_id;          /* id of the main thread, whose marks are stored; 0 unknown */
	/* For the text of a note that is a named section of a thread: the matching rules, and its
	 * mark. */
	uint64_t (*by_name)(void *arg, struct tw_str name, uint8_t *ret_mark);
	void *arg;
	uint32_t keep;            /* number of longest findings to keep per rule */
	int64_t least_message_ns; /* shorter messages are dropped */
	const struct tw_deadline *deadline;
};

struct tw_finding {
	uint32_t rule, thread_id;          /* thread_id 0: none */
	int64_t start_ns, wall_ns, cpu_ns; /* cpu_ns -1: unknown */
	uint32_t method, depth; /* for a note: of the call that contains it, or TW_NO_METHOD */
	uint32_t caller;        /* the nearest enclosing method of the app; TW_NO_METHOD */
	uint64_t note;          /* id of the note; 0: a call */
	const char *text;       /* of the note */
};

struct tw_detect_sum {         /* per rule */
	uint64_t calls, found; /* outermost calls, and those above the threshold */
	int64_t total_ns, max_ns, found_ns;
	int64_t cpu_ns;          /* of the calls with a known CPU time; -1: none has one */
	struct tw_finding *kept; /* a heap, shortest on top */
	uint32_t n_kept;
};

struct tw_marked { /* an outermost marked call of the main thread */
	int64_t start_ns, dur_ns;
	uint32_t method, thread_id;
	uint8_t mark;
};

struct tw_detected {
	struct tw_detect_sum *sums; /* by rule */
	struct tw_marked *marked;   /* by thread, then by begin */
	uint32_t n_marked;
	unsigned cut;
};

enum tw_status tw_query_detect(struct tw_trace_file *f, const struct tw_detect_query *query,
        struct tw_arena *a, struct tw_detected *ret, struct tw_err *err) TW_MUST_USE;

/* --- where the time of a range was spent (query_heavy.c) --- */

struct tw_heavy {
	uint32_t method; /* the deepest method with at least half of the time, the app's if there is
	                    one */
	uint32_t leaf;   /* the deepest on the same path, the app's or not */
	int64_t ns, leaf_ns;
	int64_t leaf_self_ns; /* the leaf's time without its callees */
};
struct tw_heavy_query {
	const struct tw_thread_info *thread;
	int64_t from_ns, to_ns;
	const uint8_t *is_app; /* per method */
	const struct tw_deadline *deadline;
};
/* TW_NO_METHOD if no call has half of the range, or at the deadline (*ret_partial).  The arena's
 * content is not needed afterwards. */
enum tw_status tw_query_heavy(struct tw_trace_file *f, const struct tw_heavy_query *query,
        struct tw_arena *a, struct tw_heavy *ret, bool *ret_partial,
        struct tw_err *err) TW_MUST_USE;

#endif
