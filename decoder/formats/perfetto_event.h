/*
 * perfetto_event.h - the fields of a TrackEvent.
 *
 * Newer events say what they are by type, older ones, from Chrome, by a letter.
 */
#ifndef TW_PERFETTO_EVENT_H
#define TW_PERFETTO_EVENT_H

#include "base/pbread.h"

enum tw_perfetto_event_type {
	TW_PERFETTO_OTHER, /* one that is not read */
	TW_PERFETTO_BEGIN,
	TW_PERFETTO_END,
	TW_PERFETTO_INSTANT,
	TW_PERFETTO_COUNTER,
	TW_PERFETTO_SPAN /* with dur_us */
};

enum { TW_PERFETTO_EVENT_FLOWS = 8 }; /* more of one event are left out */

struct tw_perfetto_track_event {
	enum tw_perfetto_event_type type;
	bool has_track, has_delta, has_absolute;
	uint64_t track, name_iid; /* iid 0: none */
	struct tw_str name;       /* borrowed */
	int64_t value;            /* COUNTER; a fraction is cut off */
	int64_t dur_us;
	int64_t delta_us, absolute_us; /* times of old */
	unsigned n_flows;
	struct tw_perfetto_flow_id {
		uint64_t id;
		bool ends;
	} flows[TW_PERFETTO_EVENT_FLOWS];
};

struct tw_perfetto_track_event tw_perfetto_event_read(struct tw_pb message);

#endif
