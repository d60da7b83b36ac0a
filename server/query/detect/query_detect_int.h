/*
 * query_detect_int.h - shared by the detection in calls and in notes.
 */
#ifndef TW_QUERY_DETECT_INT_H
#define TW_QUERY_DETECT_INT_H

#include "server/query/detect/query_detect.h"

struct tw_cover { /* a call counted by a rule; notes that overlap it are the same event */
	uint32_t thread_id, group;
	int64_t start_ns, end_ns;
};

struct tw_detector {
	struct tw_trace_file *file;
	const struct tw_detect_query *query;
	struct tw_arena *arena;
	struct tw_detected *ret;
	uint64_t noting_groups; /* groups with a rule that has notes */
	struct tw_cover *covers;
	uint32_t n_covers, cap_covers, cap_role_calls;
	bool no_memory;
};

/* Counts an outermost call for the rules in `counted`, and adds a finding for those in
 * `reported`. */
void tw_detect_count(
        struct tw_detector *d, const struct tw_finding *f, uint64_t counted, uint64_t reported);
void tw_detect_add_role_call(struct tw_detector *d, const struct tw_role_call *m);
/* Detects in notes; called after the calls of all threads (query_detect_notes.c). */
enum tw_status tw_detect_notes(struct tw_detector *d, struct tw_err *err) TW_MUST_USE;

static inline uint32_t tw_detect_lowest(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits);
}

#endif
