/*
 * flows.h - arrows from one event to another: work that is handed on.
 *
 * Ends are found by a number.  Each pair of neighbours becomes one note: from
 * the thread and time where it was handed over until the time it was taken up,
 * with the thread that took it up as its value.
 * Memory: at most TW_FLOWS_MAX open at a time, of 48 bytes.
 */
#ifndef TW_FLOWS_H
#define TW_FLOWS_H

#include "decoder/formats/marks.h"

enum { TW_FLOWS_MAX = 1 << 16 };

enum tw_flow_step { TW_FLOW_BEGIN, TW_FLOW_STEP, TW_FLOW_END };

struct tw_flow_point {
	uint64_t id;
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *thread; /* NULL: it is not a thread's */
	struct tw_str name;    /* of what takes it up */
};

struct tw_flow; /* an open one */

struct tw_flows { /* zeroed but for the first two */
	struct tw_arena *arena;
	struct tw_marks *marks;
	struct tw_flow *list; /* NULL until the first begins */
	uint32_t *chains;
	uint32_t used, free_list;
};

/* What tells which of two points comes first. */
enum tw_flow_rule {
	TW_FLOW_BY_STEP, /* the order in the file: a STEP or END that nothing led to is counted as
	                    exit_without_enter, one that is earlier as time_fell */
	TW_FLOW_BY_TIME  /* their times, as Perfetto has it: there is no BEGIN */
};

/* BEGIN starts anew. */
enum tw_status tw_flows_tell(struct tw_flows *f, const struct tw_flow_point *p,
        enum tw_flow_step step, enum tw_flow_rule rule, struct tw_err *err) TW_MUST_USE;

#endif
