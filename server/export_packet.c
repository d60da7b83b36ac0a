#include "export_packet.h"

static unsigned varint_bytes(uint64_t v)
{
	unsigned n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

/* Timestamp and sequence, behind the packet's own two bytes. */
static uint8_t *put_head(uint8_t *p, uint32_t seq, uint64_t delta_ns)
{
	*p++ = 0x40;
	p = tw_put_varint(p, delta_ns);
	*p++ = 0x50;
	return tw_put_varint(p, seq);
}

uint8_t *tw_packet_begin(uint8_t *p, uint32_t seq, uint64_t delta_ns, uint32_t name_iid)
{
	uint8_t *start = p;

	p = put_head(p + 2, seq, delta_ns);
	*p++ = 0x5A;
	*p++ = (uint8_t)(3 + varint_bytes(name_iid));
	*p++ = 0x48;
	*p++ = 0x01;
	*p++ = 0x50;
	p = tw_put_varint(p, name_iid);
	start[0] = 0x0A;
	start[1] = (uint8_t)(p - start - 2); /* well below 128 */
	return p;
}

uint8_t *tw_packet_end(uint8_t *p, uint32_t seq, uint64_t delta_ns)
{
	uint8_t *start = p;

	p = put_head(p + 2, seq, delta_ns);
	*p++ = 0x5A;
	*p++ = 0x02;
	*p++ = 0x48;
	*p++ = 0x02;
	start[0] = 0x0A;
	start[1] = (uint8_t)(p - start - 2);
	return p;
}

enum tw_status tw_packet_begin_named(
        struct tw_buf *out, uint32_t seq, uint64_t delta_ns, uint32_t name_iid, struct tw_str name)
{
	uint8_t head[32];
	uint8_t event[16];
	size_t n_head = (size_t)(put_head(head, seq, delta_ns) - head);
	size_t n_event = 3 + varint_bytes(name_iid);
	size_t named = 1 + varint_bytes(name_iid) + 1 + varint_bytes(name.len) + name.len;
	size_t interned = 1 + varint_bytes(named) + named;
	size_t body = n_head + 1 + varint_bytes(interned) + interned + 2 + n_event;

	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, body);
	(void)tw_buf_add(out, head, n_head);
	(void)tw_buf_add_u8(out, 0x62);
	(void)tw_buf_add_varint(out, interned);
	(void)tw_buf_add_u8(out, 0x12);
	(void)tw_buf_add_varint(out, named);
	(void)tw_buf_add_u8(out, 0x08);
	(void)tw_buf_add_varint(out, name_iid);
	(void)tw_buf_add_u8(out, 0x12);
	(void)tw_buf_add_varint(out, name.len);
	(void)tw_buf_add_str(out, name);
	event[0] = 0x5A;
	event[1] = (uint8_t)n_event;
	event[2] = 0x48;
	event[3] = 0x01;
	event[4] = 0x50;
	return tw_buf_add(out, event, (size_t)(tw_put_varint(event + 5, name_iid) - event));
}
