/*
 * perfetto_frames.h - display frames, as reported by Android's compositor.
 *
 * A frame has two timelines, expected and actual, for the app's surface and for the whole display.
 * The start event of a timeline has its owner and result, its end event only the cookie of the
 * start.  Each timeline becomes a note.
 */
#ifndef TW_PERFETTO_FRAMES_H
#define TW_PERFETTO_FRAMES_H

#include "decoder/base/pbread.h"
#include "decoder/formats/markers/marks.h"
#include "decoder/formats/perfetto/perfetto_intern.h"

struct tw_perfetto_frame;

struct tw_perfetto_frames {
	struct tw_arena *arena;
	struct tw_marks *marks;
	struct tw_perfetto_intern *texts;
	struct tw_perfetto_frame *ring; /* NULL until the first begins */
	uint32_t *chains;               /* index + 1 by hash of the cookie */
	uint64_t begun;
};

/* A FrameTimelineEvent. */
enum tw_status tw_perfetto_frames_emit(struct tw_perfetto_frames *s, struct tw_pb message,
        int64_t ts_ns, uint64_t offset, struct tw_err *err) TW_MUST_USE;
/* Open timelines end at the latest time. */
enum tw_status tw_perfetto_frames_finish(
        struct tw_perfetto_frames *s, struct tw_err *err) TW_MUST_USE;

#endif
