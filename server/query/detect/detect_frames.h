/*
 * detect_frames.h - slow frames: from the calls that draw frames or, if a trace has none of those,
 * from the display timeline; and messages that delayed a frame. Thread: one query.
 */
#ifndef TW_DETECT_FRAMES_H
#define TW_DETECT_FRAMES_H

#include "server/query/detect/query_detect.h"

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

#endif
