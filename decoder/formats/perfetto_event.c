#include "formats/perfetto_event.h"

#include <string.h>

#include "base/buf.h"

/* LegacyEvent: the phase is a letter. */
static enum tw_perfetto_event_type type_of(uint64_t phase)
{
	switch (phase) {
	case 'B':
		return TW_PERFETTO_BEGIN;
	case 'E':
		return TW_PERFETTO_END;
	case 'I':
	case 'i':
		return TW_PERFETTO_INSTANT;
	case 'X':
		return TW_PERFETTO_SPAN;
	default:
		return TW_PERFETTO_OTHER;
	}
}

static void read_legacy(struct tw_pb message, struct tw_perfetto_track_event *e)
{
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 2 && e->type == TW_PERFETTO_OTHER)
			e->type = type_of(f.value);
		else if (f.number == 3)
			e->dur_us = (int64_t)f.value;
		else if (f.number == 1 && e->name_iid == 0)
			e->name_iid = f.value;
}

static int64_t whole(uint64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof real);
	return real >= -9.2e18 && real <= 9.2e18 ? (int64_t)real : 0;
}

static void add_flow(struct tw_perfetto_track_event *e, uint64_t id, bool ends)
{
	if (e->n_flows < TW_PERFETTO_EVENT_FLOWS)
		e->flows[e->n_flows++] = (struct tw_perfetto_flow_id){id, ends};
}

/* One, or several packed. */
static void read_flows(const struct tw_pb_field *f, bool fixed, struct tw_perfetto_track_event *e)
{
	bool ends = f->number == 48 || f->number == 42;
	struct tw_pb list = tw_pb_in(f);
	uint64_t id;

	if (f->type != TW_PB_BYTES) {
		add_flow(e, f->value, ends);
		return;
	}
	if (!fixed)
		while (tw_pb_number(&list, &id))
			add_flow(e, id, ends);
	for (size_t i = 0; fixed && i + 8 <= f->len; i += 8)
		add_flow(e, tw_u64le(f->bytes + i), ends);
}

static void read_field(const struct tw_pb_field *f, struct tw_perfetto_track_event *e)
{
	switch (f->number) {
	case 1:
		e->delta_us = (int64_t)f->value;
		e->has_delta = true;
		break;
	case 9:
		if (f->value <= TW_PERFETTO_COUNTER)
			e->type = (enum tw_perfetto_event_type)f->value;
		break;
	case 10:
		e->name_iid = f->value;
		break;
	case 11:
		e->track = f->value;
		e->has_track = true;
		break;
	case 16:
		e->absolute_us = (int64_t)f->value;
		e->has_absolute = true;
		break;
	case 23:
		e->name = tw_pb_str(f);
		break;
	case 30:
		e->value = (int64_t)f->value;
		break;
	case 44:
		e->value = f->type == TW_PB_FIXED64 ? whole(f->value) : 0;
		break;
	case 36: /* numbers of old */
	case 42:
		read_flows(f, false, e);
		break;
	case 47:
	case 48:
		read_flows(f, true, e);
		break;
	default:
		break;
	}
}

struct tw_perfetto_track_event tw_perfetto_event_read(struct tw_pb message)
{
	struct tw_perfetto_track_event e = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 6 && f.type == TW_PB_BYTES)
			read_legacy(tw_pb_in(&f), &e);
		else
			read_field(&f, &e);
	return e;
}
