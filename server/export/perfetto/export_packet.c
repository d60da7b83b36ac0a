#include "server/export/perfetto/export_packet.h"

uint8_t *tw_packet_end_cpu(
        uint8_t *p, const struct tw_packet_seq *seq, uint64_t delta_ns, uint64_t cpu_ns)
{
	uint8_t *start = p;

	p = tw_packet_head(p + 2, seq, delta_ns);
	*p++ = 0x5A;
	*p++ = (uint8_t)(3 + tw_varint_bytes(cpu_ns));
	*p++ = 0x48;
	*p++ = 0x02;
	*p++ = 0x60;
	p = tw_put_varint(p, cpu_ns);
	start[0] = 0x0A;
	start[1] = (uint8_t)(p - start - 2);
	return p;
}

/* Writes the event to `at`; returns its length. */
static size_t put_event(uint8_t at[32], const struct tw_packet_named *b)
{
	uint8_t *p = at + 2;

	*p++ = 0x48;
	*p++ = 0x01;
	*p++ = 0x50;
	p = tw_put_varint(p, b->name_iid);
	if (b->cpu) {
		*p++ = 0x60;
		*p++ = 0;
	}
	if (b->flow) {
		*p++ = 0x81; /* field 48, fixed64: little-endian */
		*p++ = 0x03;
		for (unsigned i = 0; i < 8; i++)
			*p++ = (uint8_t)(b->flow >> 8 * i);
	}
	at[0] = 0x5A;
	at[1] = (uint8_t)(p - at - 2);
	return (size_t)(p - at);
}

enum tw_status tw_packet_begin_named(struct tw_buf *out, const struct tw_packet_named *b)
{
	uint8_t head[32];
	uint8_t event[32];
	size_t n_head = (size_t)(tw_packet_head(head, b->seq, b->delta_ns) - head);
	size_t n_event = put_event(event, b);
	size_t named =
	        1 + tw_varint_bytes(b->name_iid) + 1 + tw_varint_bytes(b->name.len) + b->name.len;
	size_t interned = 1 + tw_varint_bytes(named) + named;
	size_t body = n_head + n_event;

	if (b->name.ptr)
		body += 1 + tw_varint_bytes(interned) + interned;
	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, body);
	(void)tw_buf_add(out, head, n_head);
	if (b->name.ptr) {
		(void)tw_buf_add_u8(out, 0x62);
		(void)tw_buf_add_varint(out, interned);
		(void)tw_buf_add_u8(out, 0x12);
		(void)tw_buf_add_varint(out, named);
		(void)tw_buf_add_u8(out, 0x08);
		(void)tw_buf_add_varint(out, b->name_iid);
		(void)tw_buf_add_u8(out, 0x12);
		(void)tw_buf_add_varint(out, b->name.len);
		(void)tw_buf_add_str(out, b->name);
	}
	return tw_buf_add(out, event, n_event);
}

/* --- rare packets --- */

#define PREFIX ((uint64_t)0xFFFF << 48)

enum { STATE_CLEARED = 1, NEVER_MERGE = 2, CPU_TIME = 1, UNIT_NS = 1, MAX_CLOCKS = 4 };

uint64_t tw_track_mix(uint64_t v)
{
	v ^= v >> 31;
	v *= 0x9E3779B97F4A7C15u;
	v ^= v >> 29;
	v *= 0xBF58476D1CE4E5B9u;
	return v ^ v >> 32;
}

uint64_t tw_track_uuid(uint64_t salt, enum tw_track_kind kind, uint64_t a, uint64_t b)
{
	uint64_t v = tw_track_mix(
	        salt ^ tw_track_mix((uint64_t)kind << 56 ^ a) ^ tw_track_mix(b + 1) * 3);

	return (salt & PREFIX) | (v >> 16) | 1;
}

enum tw_status tw_track_put(struct tw_buf *out, const TwPerfetto__TracePacket *p)
{
	size_t len = tw_perfetto__trace_packet__get_packed_size(p);

	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, len);
	if (tw_buf_reserve(out, len) != TW_OK)
		return tw_buf_status(out);
	out->len += tw_perfetto__trace_packet__pack(p, out->data + out->len);
	return TW_OK;
}

static TwPerfetto__Clock clock_at(uint32_t id, int64_t ts_ns)
{
	TwPerfetto__Clock c = TW_PERFETTO__CLOCK__INIT;

	c.clock_id = id;
	c.timestamp = (uint64_t)ts_ns;
	return c;
}

enum tw_status tw_track_put_clocks(
        struct tw_buf *out, const uint32_t *ids, const int64_t *readings_ns, size_t n)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__ClockSnapshot snapshot = TW_PERFETTO__CLOCK_SNAPSHOT__INIT;
	TwPerfetto__Clock clocks[MAX_CLOCKS];
	TwPerfetto__Clock *list[MAX_CLOCKS];

	for (size_t i = 0; i < n && i < MAX_CLOCKS; i++) {
		clocks[i] = clock_at(ids[i], readings_ns[i]);
		list[snapshot.n_clocks++] = &clocks[i];
	}
	snapshot.clocks = list;
	p.clock_snapshot = &snapshot;
	return tw_track_put(out, &p);
}

enum tw_status tw_track_put_sequence(struct tw_buf *out, const struct tw_track_sequence *s)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;
	TwPerfetto__ClockSnapshot snapshot = TW_PERFETTO__CLOCK_SNAPSHOT__INIT;
	TwPerfetto__TracePacketDefaults defaults = TW_PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	TwPerfetto__TrackEventDefaults event = TW_PERFETTO__TRACK_EVENT_DEFAULTS__INIT;
	TwPerfetto__Clock own = clock_at(TW_TRACK_OWN_CLOCK, 0);
	TwPerfetto__Clock real = clock_at(s->clock, s->base_ns);
	TwPerfetto__Clock *clocks[] = {&own, &real};
	uint64_t counter = s->cpu_counter;

	own.has_is_incremental = own.has_unit_multiplier_ns = 1;
	own.is_incremental = 1;
	own.unit_multiplier_ns = 1;
	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	event.has_track_uuid = s->track != 0;
	event.track_uuid = s->track;
	event.n_extra_counter_track_uuids = counter != 0;
	event.extra_counter_track_uuids = &counter;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = s->steps ? TW_TRACK_OWN_CLOCK : s->clock;
	defaults.track_event_defaults = s->track ? &event : NULL;
	p.has_trusted_packet_sequence_id = p.has_sequence_flags = 1;
	p.trusted_packet_sequence_id = s->seq;
	p.sequence_flags = STATE_CLEARED;
	p.clock_snapshot = s->steps ? &snapshot : NULL;
	p.trace_packet_defaults = &defaults;
	return tw_track_put(out, &p);
}

static enum tw_status put_descriptor(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, TwPerfetto__TrackDescriptor *track)
{
	TwPerfetto__TracePacket p = TW_PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = 1;
	p.has_trusted_packet_sequence_id = p.has_timestamp = 1;
	p.trusted_packet_sequence_id = seq;
	p.timestamp = (uint64_t)ts_ns;
	p.track_descriptor = track;
	return tw_track_put(out, &p);
}

enum tw_status tw_track_put_process(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, uint64_t uuid, int32_t pid, char *name)
{
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__ProcessDescriptor process = TW_PERFETTO__PROCESS_DESCRIPTOR__INIT;

	process.has_pid = 1;
	process.pid = pid;
	process.process_name = name && name[0] ? name : NULL;
	track.uuid = uuid;
	track.process = &process;
	return put_descriptor(out, seq, ts_ns, &track);
}

enum tw_status tw_track_put_thread(struct tw_buf *out, uint32_t seq, int64_t ts_ns, uint64_t uuid,
        const TwPerfetto__ThreadDescriptor *thread)
{
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__ThreadDescriptor t = *thread;

	t.has_pid = t.has_tid = 1;
	track.uuid = uuid;
	track.thread = &t;
	return put_descriptor(out, seq, ts_ns, &track);
}

enum tw_status tw_track_put_child(struct tw_buf *out, uint32_t seq, int64_t ts_ns,
        const uint64_t uuid_and_parent[2], const char *name, const char *description)
{
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.uuid = uuid_and_parent[0];
	track.has_parent_uuid = uuid_and_parent[1] != 0;
	track.parent_uuid = uuid_and_parent[1];
	/* protobuf-c only reads them */
	track.name = (char *)(uintptr_t)name;
	track.description = (char *)(uintptr_t)description;
	track.has_sibling_merge_behavior = 1;
	track.sibling_merge_behavior = NEVER_MERGE;
	return put_descriptor(out, seq, ts_ns, &track);
}

enum tw_status tw_track_put_cpu_counter(
        struct tw_buf *out, uint32_t seq, int64_t ts_ns, const uint64_t uuid_and_parent[2])
{
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__CounterDescriptor counter = TW_PERFETTO__COUNTER_DESCRIPTOR__INIT;

	counter.has_type = counter.has_unit = counter.has_is_incremental = 1;
	counter.type = CPU_TIME;
	counter.unit = UNIT_NS;
	counter.is_incremental = 1;
	track.uuid = uuid_and_parent[0];
	track.has_parent_uuid = 1;
	track.parent_uuid = uuid_and_parent[1];
	track.counter = &counter;
	return put_descriptor(out, seq, ts_ns, &track);
}

enum tw_status tw_track_put_counter(struct tw_buf *out, uint32_t seq, int64_t ts_ns,
        const uint64_t uuid_and_parent[2], char *name)
{
	TwPerfetto__TrackDescriptor track = TW_PERFETTO__TRACK_DESCRIPTOR__INIT;
	TwPerfetto__CounterDescriptor counter = TW_PERFETTO__COUNTER_DESCRIPTOR__INIT;

	track.uuid = uuid_and_parent[0];
	track.has_parent_uuid = uuid_and_parent[1] != 0;
	track.parent_uuid = uuid_and_parent[1];
	track.name = name;
	track.counter = &counter;
	return put_descriptor(out, seq, ts_ns, &track);
}

char *tw_track_text(struct tw_arena *a, struct tw_str s)
{
	char *out = tw_arena_alloc(a, s.len * 3 + 1, 1);

	if (out)
		(void)tw_utf8_clean(out, s.len * 3 + 1, s);
	return out;
}
