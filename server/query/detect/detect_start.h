/*
 * detect_start.h - an app's start, reconstructed from the calls of its main thread: the mark of a
 * method (by its name) and the phases formed by marked calls.  Pure; thread: any.
 */
#ifndef TW_DETECT_START_H
#define TW_DETECT_START_H

#include "server/query/detect/query_detect.h"

enum tw_phase {
#define PHASE(id, title) TW_PHASE_##id,
#define PHASE_MARK(id, names)
#include "server/query/detect/start_phases.def"
#undef PHASE
#undef PHASE_MARK
	TW_PHASES
};

/* TW_MARK_NONE: not relevant. */
uint8_t tw_detect_mark_of(struct tw_str name);

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
