#include "decoder/formats/perfetto/perfetto_packet.h"

#include "decoder/base/hash.h"
#include "decoder/base/list.h"

enum { TRACK_EVENT = 11, SLICE_BEGIN = 1, SLICE_END = 2 };

static bool is_payload(uint32_t field)
{
	switch (field) {
	case 1: /* ftrace_events */
	case 2: /* process_tree */
	case 9: /* process_stats */
	case TRACK_EVENT:
	case 43:  /* process_descriptor */
	case 44:  /* thread_descriptor */
	case 50:  /* compressed_packets */
	case 54:  /* streaming_profile_packet */
	case 60:  /* track_descriptor */
	case 66:  /* perf_sample */
	case 76:  /* frame_timeline_event */
	case 133: /* zstd_compressed_packets */
	case 135: /* stack_sample */
		return true;
	default:
		return false;
	}
}

static void read_number(struct tw_perfetto_packet *p, uint32_t number, uint64_t value)
{
	switch (number) {
	case 8:
		p->time = value;
		p->has_time = true;
		break;
	case 10:
		p->sequence = (uint32_t)value;
		break;
	case 13:
		p->flags |= (uint32_t)value;
		break;
	case 41:
		p->flags |= value ? TW_PERFETTO_STATE_CLEARED : 0;
		break;
	case 42:
		p->dropped = value != 0;
		break;
	case 58:
		p->clock = (uint32_t)value;
		break;
	case 87:
		p->first = value != 0;
		break;
	case 98:
		p->machine = value;
		break;
	default:
		break;
	}
}

/* profile_packet (native memory) and heap_graph (Java objects). */
static bool is_heap_profile(uint32_t field)
{
	return field == 37 || field == 56;
}

static void read_content(struct tw_perfetto_packet *p, const struct tw_pb_field *f)
{
	p->content = *f;
	if (is_payload(f->number))
		p->payload = *f;
	else
		p->heap_profile |= is_heap_profile(f->number);
}

/* The usual payload.  Set member by member: copying a struct would stall on the stores. */
static inline void take_track_event(struct tw_perfetto_packet *p, const uint8_t *bytes, size_t len)
{
	p->content.number = p->payload.number = TRACK_EVENT;
	p->content.type = p->payload.type = TW_PB_BYTES;
	p->content.value = p->payload.value = 0;
	p->content.bytes = p->payload.bytes = bytes;
	p->content.len = p->payload.len = len;
}

bool tw_perfetto_packet_read(struct tw_pb message, struct tw_perfetto_packet *p)
{
	struct tw_pb_field f;
	const uint8_t *bytes;
	uint32_t number;
	uint64_t value;
	size_t len;

	while (true) {
		if (tw_pb_small(&message, &number, &value))
			read_number(p, number, value);
		else if (tw_pb_small_bytes(&message, TRACK_EVENT, &bytes, &len))
			take_track_event(p, bytes, len);
		else if (!tw_pb_next(&message, &f))
			break;
		else if (f.type != TW_PB_BYTES)
			read_number(p, f.number, f.value);
		else if (f.number == 59)
			p->defaults = f;
		else if (f.number == 12)
			p->interned = f;
		else if (f.number == 6)
			p->snapshot = f;
		else
			read_content(p, &f);
	}
	return !tw_pb_bad(&message);
}

/* --- begins and ends --- */

/* The track event of an edge. */
static inline bool read_edge(const uint8_t *p, size_t n, struct tw_perfetto_edge *e)
{
	struct tw_pb r = tw_pb_of(p, n);
	uint64_t type = 0;
	uint32_t number;
	uint64_t value;

	while (r.at != r.end) {
		if (!tw_pb_small(&r, &number, &value))
			return false;
		if (number == 9) {
			type = value;
		} else if (number == 10) {
			e->name_iid = value;
		} else if (number == 11) {
			e->track = value;
			e->has_track = true;
		}
	}
	e->begins = type == SLICE_BEGIN;
	return type == SLICE_BEGIN || type == SLICE_END;
}

/* Reads with a cursor in registers, and into few fields. */
bool tw_perfetto_packet_edge(const uint8_t *p, size_t n, struct tw_perfetto_edge *ret)
{
	struct tw_pb r = tw_pb_of(p, n);
	struct tw_perfetto_edge e = {0};
	const uint8_t *event = NULL;
	size_t event_bytes = 0;
	bool has_time = false;
	uint32_t number;
	uint64_t value;

	while (r.at != r.end) {
		if (tw_pb_small(&r, &number, &value)) {
			if (number == 8) {
				e.time = value;
				has_time = true;
			} else if (number == 10) {
				e.sequence = (uint32_t)value;
			} else if (number == 13) {
				e.flags |= (uint32_t)value;
			}
		} else if (event || !tw_pb_small_bytes(&r, TRACK_EVENT, &event, &event_bytes)) {
			return false;
		}
	}
	if (!event || !has_time || e.flags & TW_PERFETTO_STATE_CLEARED ||
	        !read_edge(event, event_bytes, &e))
		return false;
	*ret = e;
	return true;
}

/* --- sequences --- */

enum { MAX_SEQUENCES = 1 << 16 };

static uint32_t *slot_of(const struct tw_perfetto_sequences *s, uint32_t id)
{
	uint32_t mask = s->cap * 2 - 1;
	uint32_t at = (uint32_t)tw_hash_id(id, s->salt) & mask;

	while (s->slots[at] && s->list[s->slots[at] - 1].id != id)
		at = (at + 1) & mask;
	return &s->slots[at];
}

static bool widen(struct tw_perfetto_sequences *s)
{
	if (!TW_WIDEN(s->arena, s->list, s->n, s->cap, s->slots))
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		*slot_of(s, s->list[i].id) = i + 1;
	return true;
}

struct tw_perfetto_sequence *tw_perfetto_sequences_get(struct tw_perfetto_sequences *s, uint32_t id)
{
	uint32_t *slot;

	if (id == 0)
		return &s->none;
	if (s->last && s->list[s->last - 1].id == id)
		return &s->list[s->last - 1];
	if (s->n == s->cap && s->n < MAX_SEQUENCES && !widen(s))
		return NULL;
	slot = slot_of(s, id);
	if (*slot) {
		s->last = *slot;
		return &s->list[*slot - 1];
	}
	if (s->n == MAX_SEQUENCES)
		return &s->none;
	s->list[s->n] = (struct tw_perfetto_sequence){.id = id, .scope = {.sequence = s->n + 1}};
	*slot = ++s->n;
	return &s->list[s->n - 1];
}
