/*
 * query_detect_int.h - what calls and notes share when rules are sought in them.
 */
#ifndef TW_QUERY_DETECT_INT_H
#define TW_QUERY_DETECT_INT_H

#include "server/query/detect/query_detect.h"

struct tw_cover { /* a call that a rule counted, whose notes are the same once more */
	uint32_t thread_id, group;
	int64_t start_ns, end_ns;
};

struct tw_detector {
	struct tw_trace_file *file;
	const struct tw_detect_ask *ask;
	struct tw_arena *arena;
	struct tw_detected *ret;
	uint64_t noting_groups; /* groups with a rule that has notes */
	struct tw_cover *covers;
	uint32_t n_covers, cap_covers, cap_marked;
	bool no_memory;
};

/* Room for one more of n; false: no memory. */
bool tw_detect_grow(struct tw_arena *a, void **list, uint32_t n, uint32_t *cap, size_t size);
/* Counts what is outermost, of the rules in `counted`, and keeps those of `told`. */
void tw_detect_count(
        struct tw_detector *d, const struct tw_finding *f, uint64_t counted, uint64_t told);
void tw_detect_mark(struct tw_detector *d, const struct tw_marked *m);
/* Notes, when the calls of all threads are through (query_detect_notes.c). */
enum tw_status tw_detect_notes(struct tw_detector *d, struct tw_err *err) TW_MUST_USE;

static inline uint32_t tw_detect_lowest(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits);
}

#endif
