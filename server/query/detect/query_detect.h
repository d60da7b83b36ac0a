/*
 * query_detect.h - where in a trace time goes to what rules are about.
 *
 * Rules come as bits by method, thread and kind of note; what a name or a project
 * is, is not known here.  Of calls of one rule inside each other the outermost
 * counts; inside a call that is told no other of its group is.  A note inside a
 * call that a rule of its group counted is that call once more, and not counted.
 * What lies around a thread's main loop is how it came to run, not what it does:
 * it counts for nothing.  All memory is in the arena that is passed.  Thread: one query.
 */
#ifndef TW_QUERY_DETECT_H
#define TW_QUERY_DETECT_H

#include "server/query/query.h"

enum {
	TW_DETECT_KEEP_MAX = 500,
	TW_DETECT_COVERS_MAX = 1 << 20,
	TW_DETECT_MARKS_MAX = 1 << 16,
	TW_DETECT_NOTES_MAX = 1 << 18 /* notes that are looked at */
};

/* Why there may be more than is told, as bits.  Only time ends a search: a list that is full is
 * searched past, and so sums and other lists stay whole. */
enum {
	TW_CUT_TIME = 1,
	TW_CUT_CALLS = 2,   /* that notes repeat: notes inside of others count once more */
	TW_CUT_MARKS = 4,   /* so frames and the start */
	TW_CUT_NOTES = 8,   /* that are looked at */
	TW_CUT_FRAMES = 16, /* of the display's timeline */
	TW_CUT_CAUSES = 32  /* no memory for the calls of a stretch */
};

struct tw_detect_spec { /* of a rule */
	unsigned group; /* number of a rule */
	int64_t threshold_ns;
	uint64_t notes; /* a bit for each kind */
};

/* What else a method is, by tw_detect_ask.marks: one of these, or from TW_MARK_PHASE on a phase of
 * the start (detect_start.h). */
enum {
	TW_MARK_NONE,
	TW_MARK_LOOP,
	TW_MARK_FRAME,
	TW_MARK_MESSAGE,
	TW_MARK_PHASE,
	TW_MARKS_MAX = 64
};

struct tw_detect_ask {
	const struct tw_detect_spec *rules;
	size_t n_rules;
	const uint64_t *by_method;     /* which rules fit; of each of the trace's methods */
	const uint8_t *marks, *is_app; /* of each method */
	uint32_t n_methods;
	const uint64_t *by_thread; /* which rules are about it; by thread id, 0: of no thread */
	uint32_t main_id;          /* id of the main thread, whose marks are kept; 0: not known */
	/* Of the text of a note that is a named part of a thread's time: which rules fit, its mark.
	 */
	uint64_t (*by_name)(void *arg, struct tw_str name, uint8_t *ret_mark);
	void *arg;
	uint32_t keep;            /* longest findings of each rule */
	int64_t least_message_ns; /* shorter messages are not kept */
	const struct tw_deadline *deadline;
};

struct tw_finding {
	uint32_t rule, thread_id;          /* thread_id 0: none */
	int64_t start_ns, wall_ns, cpu_ns; /* cpu_ns -1: not known */
	uint32_t method, depth;            /* of a note: the call that it lies in; TW_NO_METHOD */
	uint32_t caller;  /* the nearest method of the app's around it; TW_NO_METHOD */
	uint64_t note;    /* its id; 0: a call */
	const char *text; /* of a note */
};

struct tw_detect_sum {         /* of a rule */
	uint64_t calls, found; /* outermost ones, and those over the threshold */
	int64_t total_ns, max_ns, found_ns;
	int64_t cpu_ns;          /* of those whose CPU time is known; -1: of none */
	struct tw_finding *kept; /* a heap, the shortest on top */
	uint32_t n_kept;
};

struct tw_marked { /* an outermost call of a mark, of the main thread */
	int64_t start_ns, dur_ns;
	uint32_t method, thread_id;
	uint8_t mark;
};

struct tw_detected {
	struct tw_detect_sum *sums; /* by rule */
	struct tw_marked *marked;   /* thread by thread, by begin */
	uint32_t n_marked;
	unsigned cut;
};

enum tw_status tw_query_detect(struct tw_trace_file *f, const struct tw_detect_ask *ask,
        struct tw_arena *a, struct tw_detected *ret, struct tw_err *err) TW_MUST_USE;

/* --- where the time of a stretch went (query_heavy.c) --- */

struct tw_heavy {
	uint32_t method; /* the deepest that has half of it, the app's where there is one */
	uint32_t leaf;   /* the deepest on the same path, whoever's */
	int64_t ns, leaf_ns;
	int64_t leaf_self_ns; /* that the leaf did not spend in what it calls */
};
struct tw_heavy_ask {
	const struct tw_thread_info *thread;
	int64_t from_ns, to_ns;
	const uint8_t *is_app; /* of each method */
	const struct tw_deadline *deadline;
};
/* TW_NO_METHOD where no call has half of the stretch, and when time ran out (*ret_partial).  What
 * is in the arena is of no use afterwards. */
enum tw_status tw_query_heavy(struct tw_trace_file *f, const struct tw_heavy_ask *ask,
        struct tw_arena *a, struct tw_heavy *ret, bool *ret_partial,
        struct tw_err *err) TW_MUST_USE;

#endif
