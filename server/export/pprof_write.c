#include "server/export/pprof_write.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_tag(struct tw_buf *out, unsigned field, unsigned wire)
{
	(void)tw_buf_add_u8(out, (uint8_t)(field << 3 | wire));
}

static void put_number(struct tw_buf *out, unsigned field, uint64_t v)
{
	put_tag(out, field, WIRE_VARINT);
	(void)tw_buf_add_varint(out, v);
}

void tw_pprof_number(struct tw_pprof *p, unsigned field, uint64_t v)
{
	put_number(p->out, field, v);
}

size_t tw_pprof_varint_bytes(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

uint64_t tw_pprof_string(struct tw_pprof *p, struct tw_str s)
{
	put_tag(p->out, TW_PPROF_STRING, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, s.len);
	(void)tw_buf_add_str(p->out, s);
	return p->strings++;
}

void tw_pprof_begin(struct tw_pprof *p, struct tw_buf *out)
{
	*p = (struct tw_pprof){.out = out};
	(void)tw_pprof_string(p, TW_STR(""));
}

/* Writes a message of two numbers, in the fields 1 and 2. */
static void put_pair(struct tw_buf *out, unsigned field, const uint64_t values[2])
{
	put_tag(out, field, WIRE_BYTES);
	(void)tw_buf_add_varint(
	        out, 2 + tw_pprof_varint_bytes(values[0]) + tw_pprof_varint_bytes(values[1]));
	put_number(out, 1, values[0]);
	put_number(out, 2, values[1]);
}

uint64_t tw_pprof_type(struct tw_pprof *p, unsigned field, const char *type, const char *unit)
{
	uint64_t names[2];

	names[0] = tw_pprof_string(p, tw_str_of(type));
	names[1] = tw_pprof_string(p, tw_str_of(unit));
	put_pair(p->out, field, names);
	return names[0];
}

void tw_pprof_location(struct tw_pprof *p, uint32_t id, struct tw_str name)
{
	const uint64_t function[2] = {id, tw_pprof_string(p, name)};

	put_pair(p->out, TW_PPROF_FUNCTION, function);
	put_tag(p->out, TW_PPROF_LOCATION, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, 4 + 2 * tw_pprof_varint_bytes(id));
	put_number(p->out, 1, id);
	put_tag(p->out, 4, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, 1 + tw_pprof_varint_bytes(id));
	put_number(p->out, 1, id);
}

void tw_pprof_sample(struct tw_pprof *p, const struct tw_pprof_sample *s)
{
	size_t value_bytes = 0;

	for (unsigned v = 0; v < s->n_values; v++)
		value_bytes += tw_pprof_varint_bytes(s->values[v]);
	put_tag(p->out, TW_PPROF_SAMPLE, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, 2 + tw_pprof_varint_bytes(value_bytes) + value_bytes +
	                                        tw_pprof_varint_bytes(s->stack_bytes) +
	                                        s->stack_bytes + s->labels_bytes);
	put_tag(p->out, 2, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, value_bytes);
	for (unsigned v = 0; v < s->n_values; v++)
		(void)tw_buf_add_varint(p->out, s->values[v]);
	(void)tw_buf_add(p->out, s->labels, s->labels_bytes);
	put_tag(p->out, 1, WIRE_BYTES);
	(void)tw_buf_add_varint(p->out, s->stack_bytes);
}
