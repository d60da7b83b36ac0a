/*
 * found.h - detector findings of a trace in a compact encoding, and their sums over many traces.
 *
 * A trace has a sum for each rule with findings, and for those the app's methods that caused most
 * of it, by their numbers in rollups (rollup_id.h).  No files, no SQL, no names.  Thread: one at
 * a time.
 */
#ifndef TW_FOUND_H
#define TW_FOUND_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/query/detect/detect_rules.h"
#include "server/stats/rollup.h"

enum { TW_FOUND_CALLERS = 8 /* per rule and trace, those with most time */ };

struct tw_found_caller {
	uint64_t method; /* 0: no enclosing method of the app */
	uint64_t found;
	int64_t ns, max_ns;
};
struct tw_found_rule {
	struct tw_str id;
	uint64_t found;              /* number of calls above the threshold */
	int64_t ns, main_ns, max_ns; /* of these calls: all, on the main thread, the longest */
	uint32_t n;
	struct tw_found_caller callers[TW_FOUND_CALLERS];
};
struct tw_found {     /* of a trace */
	bool partial; /* incomplete */
	uint32_t n;
	struct tw_found_rule *rules; /* at most TW_DETECT_RULES_MAX */
	uint64_t frames, slow_frames, frozen_frames;
	int64_t initial_ns, full_ns; /* from app start to displays; 0: not in the trace */
};
void tw_found_write(const struct tw_found *f, struct tw_buf *out);
/* Decodes into ret->rules, which has space for TW_DETECT_RULES_MAX; ids are borrowed.
 * TW_CORRUPT. */
enum tw_status tw_found_read(
        const uint8_t *p, size_t n, struct tw_found *ret, struct tw_err *err) TW_MUST_USE;

/* --- many traces --- */

enum { TW_FOUND_EXEMPLARS = 3 };
struct tw_found_exemplar {
	char trace_id[TW_ROLLUP_ID + 1]; /* "": none */
	int64_t ns;
};
struct tw_found_sum { /* of a rule, or one of its callers */
	uint64_t traces, found;
	int64_t ns, main_ns, max_ns;                        /* main_ns of callers is 0 */
	struct tw_found_exemplar worst[TW_FOUND_EXEMPLARS]; /* by falling ns */
};
struct tw_found_cause {
	uint64_t method;
	uint32_t rule; /* index in tw_found_sums.rules */
	struct tw_found_sum sum;
};
struct tw_found_sums {
	struct tw_arena *arena;
	const struct tw_detect_rules *of; /* findings of rules not in it are ignored */
	uint64_t traces, partial;         /* numbers of added traces */
	struct tw_found_sum rules[TW_DETECT_RULES_MAX];
	struct tw_found_cause *causes;
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 by hash; 0 free */
};
/* TW_TOO_LARGE if the arena is full. */
enum tw_status tw_found_add(struct tw_found_sums *s, const char *trace_id, const struct tw_found *f,
        struct tw_err *err) TW_MUST_USE;
void tw_found_merge(struct tw_found_sum *to, const struct tw_found_sum *more);

#endif
