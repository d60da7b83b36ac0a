#include "formats/perfetto_event.h"

#include <string.h>

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
