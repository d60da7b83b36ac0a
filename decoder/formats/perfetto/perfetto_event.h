/*
 * perfetto_event.h - the fields of a TrackEvent.
 *
 * Newer events state their type; older ones, from Chrome, use a letter (legacy).
 */
#ifndef TW_PERFETTO_EVENT_H
#define TW_PERFETTO_EVENT_H

#include "decoder/base/pbread.h"

enum tw_perfetto_event_type {
	TW_PERFETTO_NONE, /* not stated */
	TW_PERFETTO_BEGIN,
	TW_PERFETTO_END,
	TW_PERFETTO_INSTANT,
	TW_PERFETTO_COUNTER,
	TW_PERFETTO_STATE, /* lasts until the track's next state */
	/* legacy only: */
	TW_PERFETTO_SPAN, /* with dur_us */
	TW_PERFETTO_ASYNC_BEGIN,
	TW_PERFETTO_ASYNC_END,
	TW_PERFETTO_FLOW, /* no event of its own; it is listed in flows */
	TW_PERFETTO_OTHER /* unsupported */
};

enum { TW_PERFETTO_EVENT_FLOWS = 8 }; /* further flows of an event are dropped */

struct tw_perfetto_track_event {
	enum tw_perfetto_event_type type;
	bool has_type; /* the type is not given by a letter alone */
	bool has_track, has_delta, has_absolute;
	uint64_t track, name_iid, category_iid; /* iid 0: none */
	struct tw_str name, category;           /* borrowed; the first of several categories */
	int64_t value;                          /* COUNTER; fractions are truncated */
	int64_t dur_us;
	int64_t delta_us, absolute_us; /* legacy times */
	struct tw_perfetto_legacy {    /* legacy */
		char phase;            /* 0: none */
		bool nests;            /* ASYNC: the category is part of the key */
		bool local;            /* the id is local to the process */
		uint64_t id;
		struct tw_str scope;
		uint32_t pid; /* 0: the sequence's */
		uint64_t tid; /* 0: the sequence's */
	} legacy;
	unsigned n_flows;
	struct tw_perfetto_flow_id { /* set up to n_flows */
		uint64_t id;
		bool ends;
	} flows[TW_PERFETTO_EVENT_FLOWS];
};

void tw_perfetto_event_read(struct tw_pb message, struct tw_perfetto_track_event *ret);

#endif
