/*
 * perfetto_event.h - the fields of a TrackEvent.
 *
 * Newer events say what they are by type, older ones, from Chrome, by a letter.
 */
#ifndef TW_PERFETTO_EVENT_H
#define TW_PERFETTO_EVENT_H

#include "decoder/base/pbread.h"

enum tw_perfetto_event_type {
	TW_PERFETTO_NONE, /* it does not say */
	TW_PERFETTO_BEGIN,
	TW_PERFETTO_END,
	TW_PERFETTO_INSTANT,
	TW_PERFETTO_COUNTER,
	TW_PERFETTO_STATE, /* from now on, until the track's next */
	/* of old only: */
	TW_PERFETTO_SPAN, /* with dur_us */
	TW_PERFETTO_ASYNC_BEGIN,
	TW_PERFETTO_ASYNC_END,
	TW_PERFETTO_FLOW, /* nothing else; it is among flows */
	TW_PERFETTO_OTHER /* one that is not read */
};

enum { TW_PERFETTO_EVENT_FLOWS = 8 }; /* more of one event are left out */

struct tw_perfetto_track_event {
	enum tw_perfetto_event_type type;
	bool has_type; /* it is not told by a letter alone */
	bool has_track, has_delta, has_absolute;
	uint64_t track, name_iid, category_iid; /* iid 0: none */
	struct tw_str name, category;           /* borrowed; of several categories the first */
	int64_t value;                          /* COUNTER; a fraction is cut off */
	int64_t dur_us;
	int64_t delta_us, absolute_us; /* times of old */
	struct tw_perfetto_legacy {    /* of old */
		char phase;            /* 0: none */
		bool nests;            /* ASYNC: its category counts, too */
		bool local;            /* the id is one of the process */
		uint64_t id;
		struct tw_str scope;
		uint32_t pid; /* 0: the sequence's */
		uint64_t tid; /* 0: the sequence's */
	} legacy;
	unsigned n_flows;
	struct tw_perfetto_flow_id {
		uint64_t id;
		bool ends;
	} flows[TW_PERFETTO_EVENT_FLOWS];
};

struct tw_perfetto_track_event tw_perfetto_event_read(struct tw_pb message);

#endif
