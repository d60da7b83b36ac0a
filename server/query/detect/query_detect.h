/*
 * query_detect.h - finds the time that a trace spends in calls and notes covered by rules.
 *
 * Rules are passed as bits by method, thread and kind of note; this file uses neither names nor
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
	TW_DETECT_ROLE_CALLS_MAX = 1 << 16,
	TW_DETECT_NOTES_MAX = 1 << 18 /* notes that are inspected */
};

/* Reasons why results may be incomplete, as bits.  Only the deadline ends a search: after a list is
 * full the search continues, so sums and other lists remain complete. */
enum {
	TW_CUT_TIME = 1,
	TW_CUT_CALLS = 2, /* too many covering calls: notes inside later ones are counted again */
	TW_CUT_ROLE_CALLS = 4, /* too many calls with a role: frames and the start are incomplete */
	TW_CUT_NOTES = 8,      /* too many notes: later ones are not inspected */
	TW_CUT_FRAMES = 16,    /* too many frames of the display timeline */
	TW_CUT_CAUSES = 32     /* no memory for the calls of a range */
};

struct tw_detect_spec { /* per rule */
	unsigned group; /* index of the first rule of its group */
	int64_t threshold_ns;
	uint64_t notes; /* one bit per kind */
};

/* The role of a method, from tw_detect_query.roles: one of these or, from TW_CALL_PHASE on, a phase
 * of the start (below). */
enum {
	TW_CALL_NONE,
	TW_CALL_LOOP,
	TW_CALL_FRAME,
	TW_CALL_MESSAGE,
	TW_CALL_DRAWN, /* the app reports that it is fully drawn */
	TW_CALL_PHASE,
	TW_CALL_ROLES_MAX = 64
};

struct tw_detect_query {
	const struct tw_detect_spec *rules;
	size_t n_rules;
	const uint64_t *by_method;     /* matching rules of each of the trace's methods */
	const uint8_t *roles, *is_app; /* per method */
	uint32_t n_methods;
	const uint64_t *by_thread; /* rules that apply, by thread id; 0: notes without a thread */
	uint32_t main_id; /* id of the main thread, whose calls with a role are stored; 0 unknown */
	/* For the text of a note that is a named section of a thread: the matching rules, and its
	 * role. */
	uint64_t (*by_name)(void *arg, struct tw_str name, uint8_t *ret_role);
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

struct tw_role_call { /* an outermost call of the main thread whose method has a role */
	int64_t start_ns, dur_ns;
	uint32_t method, thread_id;
	uint8_t role;
};

struct tw_detected {
	struct tw_detect_sum *sums;      /* by rule */
	struct tw_role_call *role_calls; /* by thread, then by begin */
	uint32_t n_role_calls;
	unsigned cut;
};

enum tw_status tw_query_detect(struct tw_trace_file *f, const struct tw_detect_query *query,
        struct tw_arena *a, struct tw_detected *ret, struct tw_err *err) TW_MUST_USE;

/* --- where the time of a range was spent --- */

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

/* --- slow frames --- */

/* From the calls that draw frames or, if a trace has none of those, from the display timeline; and
 * messages that delayed a frame. */

enum { TW_FRAMES_LISTED = 50, TW_FRAMES_MAX = 1 << 18 };

enum tw_frames_from { TW_FRAMES_NOWHERE, TW_FRAMES_CALLS, TW_FRAMES_NOTES };

struct tw_frame_found {
	int64_t start_ns, dur_ns;
	uint32_t method;     /* TW_NO_METHOD: a note */
	bool message;        /* not a frame, but a message that delayed one */
	const char *display; /* the note's description; "" */
};

struct tw_frames {
	enum tw_frames_from from;
	uint64_t total, slow, frozen,
	        messages;            /* numbers of frames; frozen ones count as slow too */
	struct tw_frame_found *list; /* slow frames and messages, longest first */
	uint32_t n;
	unsigned cut; /* TW_CUT_ */
};

struct tw_frame_limits {
	int64_t slow_ns, frozen_ns;
	uint64_t most; /* frames of the display timeline to count */
	const struct tw_deadline *deadline;
};

enum tw_status tw_detect_frames(struct tw_trace_file *f, const struct tw_detected *d,
        const struct tw_frame_limits *limits, struct tw_arena *a, struct tw_frames *ret,
        struct tw_err *err) TW_MUST_USE;

/* --- an app's start (detect_start.c) --- */

/* Reconstructed from the calls of its main thread: the role of a method (by its name) and the
 * phases formed by calls with a role. */

enum tw_phase {
#define PHASE(id, title) TW_PHASE_##id,
#define PHASE_CALLS(id, names)
#include "server/query/detect/start_phases.def"
#undef PHASE
#undef PHASE_CALLS
	TW_PHASES
};

/* TW_CALL_NONE: not relevant. */
uint8_t tw_detect_role_of(struct tw_str name);

struct tw_start_phase {
	const char *id, *title;
	int64_t start_ns, dur_ns; /* if several calls: from the first begin to the last end */
	uint32_t method;          /* TW_NO_METHOD: a section, or several calls */
	uint32_t thread_id;
};

struct tw_start {
	bool cold; /* includes the start of the process */
	size_t n;  /* 0: the trace contains no start */
	struct tw_start_phase phases[TW_PHASES];
	int64_t start_ns, end_ns;
	int64_t initial_ns, full_ns; /* from start_ns to the end of the first frame, and of the call
	                              * that reports the app fully drawn; 0: not in the trace */
};

void tw_detect_start(const struct tw_detected *d, struct tw_start *ret);

#endif
