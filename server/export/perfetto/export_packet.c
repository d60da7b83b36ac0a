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
