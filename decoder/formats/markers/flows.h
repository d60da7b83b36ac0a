/*
 * flows.h - flows: work handed from one event to another.
 *
 * Ends are matched by id.  Each pair of consecutive points becomes one note: on the thread and from
 * the time of the hand-over, until the time it was taken up, with the receiving thread as its
 * value.
 * Memory: at most TW_FLOWS_MAX open at a time, of 48 bytes.
 */
#ifndef TW_FLOWS_H
#define TW_FLOWS_H

#include "decoder/formats/markers/markers.h"

enum { TW_FLOWS_MAX = 1 << 16 };

enum tw_flow_step { TW_FLOW_BEGIN, TW_FLOW_STEP, TW_FLOW_END };

struct tw_flow_point {
	uint64_t id;
	int64_t ts_ns;
	uint64_t offset;
	struct tw_tid *thread; /* NULL: not on a thread */
	struct tw_str name;    /* of the receiving event */
};

struct tw_flow; /* an open flow */

struct tw_flows { /* zeroed except arena and markers */
	struct tw_arena *arena;
	struct tw_markers *markers;
	struct tw_flow *list; /* NULL until the first begins */
	uint32_t *chains;
	uint32_t used, free_list;
};

/* How the order of two points is determined. */
enum tw_flow_rule {
	TW_FLOW_BY_STEP, /* file order: a STEP or END without a predecessor is counted as
	                  * exit_without_enter, one that is earlier as time_fell */
	TW_FLOW_BY_TIME  /* by time, as in Perfetto: there is no BEGIN */
};

/* BEGIN restarts the flow. */
enum tw_status tw_flows_emit(struct tw_flows *f, const struct tw_flow_point *p,
        enum tw_flow_step step, enum tw_flow_rule rule, struct tw_err *err) TW_MUST_USE;

#endif
