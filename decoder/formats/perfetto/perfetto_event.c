#include "decoder/formats/perfetto/perfetto_parts.h"

#include <stddef.h>
#include <string.h>

#include "decoder/base/buf.h"

static enum tw_perfetto_event_type type_of(char phase)
{
	switch (phase) {
	case 'B':
		return TW_PERFETTO_BEGIN;
	case 'E':
		return TW_PERFETTO_END;
	case 'I':
	case 'i':
	case 'R':
	case 'n':
	case 'T':
	case 'p':
		return TW_PERFETTO_INSTANT;
	case 'X':
		return TW_PERFETTO_SPAN;
	case 'b':
	case 'S':
		return TW_PERFETTO_ASYNC_BEGIN;
	case 'e':
	case 'F':
		return TW_PERFETTO_ASYNC_END;
	case 's':
	case 't':
	case 'f':
		return TW_PERFETTO_FLOW;
	default:
		return TW_PERFETTO_OTHER;
	}
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

/* LegacyEvent: the phase is a letter. */
static void read_legacy(struct tw_pb message, struct tw_perfetto_track_event *e)
{
	enum { LAST = 19, FLOW_IN = 1 };
	uint64_t v[LAST + 1] = {0};
	struct tw_perfetto_legacy *l = &e->legacy;
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 7 && f.type == TW_PB_BYTES)
			l->scope = tw_pb_str(&f);
		else if (f.number <= LAST)
			v[f.number] = f.value;
	if (e->name_iid == 0)
		e->name_iid = v[1];
	l->phase = (char)(v[2] < 128 ? v[2] : '?');
	e->dur_us = (int64_t)v[3];
	l->id = v[6] | v[10] | v[11]; /* only one of them is set */
	l->local = v[10] != 0;
	l->nests = l->phase == 'b' || l->phase == 'e';
	if (v[18] <= INT32_MAX)
		l->pid = (uint32_t)v[18];
	if (v[19] <= INT32_MAX)
		l->tid = v[19];
	if (v[13]) /* flow_direction: of bind_id */
		add_flow(e, v[8], v[13] == FLOW_IN);
	if (type_of(l->phase) == TW_PERFETTO_FLOW)
		add_flow(e, l->id, l->phase == 'f');
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

/* One, or the first of several packed. */
static uint64_t first_number(const struct tw_pb_field *f)
{
	struct tw_pb list = tw_pb_in(f);
	uint64_t first = 0;

	if (f->type != TW_PB_BYTES)
		return f->value;
	return tw_pb_number(&list, &first) ? first : 0;
}

/* A field below 16, whose tag is one byte. */
static inline void read_number(uint32_t number, uint64_t value, struct tw_perfetto_track_event *e)
{
	switch (number) {
	case 1:
		e->delta_us = (int64_t)value;
		e->has_delta = true;
		break;
	case 3:
		if (e->category_iid == 0)
			e->category_iid = value;
		break;
	case 9:
		e->has_type = true;
		e->type = value <= TW_PERFETTO_STATE ? (enum tw_perfetto_event_type)value
		                                     : TW_PERFETTO_OTHER;
		break;
	case 10:
		e->name_iid = value;
		break;
	case 11:
		e->track = value;
		e->has_track = true;
		break;
	default:
		break;
	}
}

static void read_field(const struct tw_pb_field *f, struct tw_perfetto_track_event *e)
{
	switch (f->number) {
	case 1:
	case 9:
	case 10:
	case 11:
		read_number(f->number, f->value, e);
		break;
	case 3:
		read_number(3, first_number(f), e);
		break;
	case 16:
		e->absolute_us = (int64_t)f->value;
		e->has_absolute = true;
		break;
	case 22:
		if (e->category.len == 0)
			e->category = tw_pb_str(f);
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
	case 36: /* legacy field numbers */
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

void tw_perfetto_event_read(struct tw_pb message, struct tw_perfetto_track_event *ret)
{
	struct tw_pb_field f;
	uint32_t number;
	uint64_t value;

	memset(ret, 0, offsetof(struct tw_perfetto_track_event, flows));
	while (true)
		if (tw_pb_small(&message, &number, &value))
			read_number(number, value, ret);
		else if (!tw_pb_next(&message, &f))
			break;
		else if (f.number == 6 && f.type == TW_PB_BYTES)
			read_legacy(tw_pb_in(&f), ret);
		else
			read_field(&f, ret);
	if (ret->type == TW_PERFETTO_NONE && ret->legacy.phase)
		ret->type = type_of(ret->legacy.phase);
}
