/* perfetto_fixture.c - see perfetto_fixture.h. */
#include "tests/unit/decoder_formats/perfetto_fixture.h"

#include <string.h>

void perfetto_num(struct tw_buf *b, uint32_t field, uint64_t v)
{
	(void)tw_buf_add_varint(b, (uint64_t)field << 3);
	(void)tw_buf_add_varint(b, v);
}

void perfetto_bytes(struct tw_buf *b, uint32_t field, const void *p, size_t n)
{
	(void)tw_buf_add_varint(b, (uint64_t)field << 3 | 2);
	(void)tw_buf_add_varint(b, n);
	(void)tw_buf_add(b, p, n);
}

void perfetto_str(struct tw_buf *b, uint32_t field, const char *s)
{
	perfetto_bytes(b, field, s, strlen(s));
}

/* Writes the content of m as a message and empties m. */
void perfetto_sub(struct tw_buf *b, uint32_t field, struct tw_buf *m)
{
	perfetto_bytes(b, field, m->data, m->len);
	tw_buf_clear(m);
}

void perfetto_begin(struct perfetto_writer *w)
{
	tw_buf_init(&w->out, 64 << 20);
	tw_buf_init(&w->packet, 64 << 20);
	tw_buf_init(&w->message, 64 << 20);
	tw_buf_init(&w->inner, 64 << 20);
}

void perfetto_done(struct perfetto_writer *w)
{
	tw_buf_done(&w->out);
	tw_buf_done(&w->packet);
	tw_buf_done(&w->message);
	tw_buf_done(&w->inner);
}

void perfetto_packet(struct perfetto_writer *w)
{
	perfetto_sub(&w->out, 1, &w->packet);
}

void perfetto_clock(struct perfetto_writer *w, uint64_t id, uint64_t ns)
{
	perfetto_num(&w->inner, 1, id);
	perfetto_num(&w->inner, 2, ns);
	perfetto_sub(&w->message, 1, &w->inner);
}

void perfetto_snapshot(struct perfetto_writer *w, uint64_t boot, uint64_t mono)
{
	if (boot)
		perfetto_clock(w, 6, boot);
	perfetto_clock(w, 3, mono);
	perfetto_sub(&w->packet, 6, &w->message);
	perfetto_packet(w);
}

void perfetto_thread(struct perfetto_writer *w, uint64_t uuid, uint64_t pid, uint64_t tid)
{
	perfetto_num(&w->inner, 1, pid);
	perfetto_num(&w->inner, 2, tid);
	perfetto_str(&w->inner, 5, "t");
	perfetto_num(&w->message, 1, uuid);
	perfetto_sub(&w->message, 4, &w->inner);
	perfetto_num(&w->packet, 10, 1);
	perfetto_sub(&w->packet, 60, &w->message);
	perfetto_packet(w);
}

/* name NULL: none */
void perfetto_event(
        struct perfetto_writer *w, uint64_t ns, uint64_t clock, uint64_t type, const char *name)
{
	perfetto_num(&w->message, 9, type);
	perfetto_num(&w->message, 11, 7);
	if (name)
		perfetto_str(&w->message, 23, name);
	perfetto_num(&w->packet, 8, ns);
	if (clock)
		perfetto_num(&w->packet, 58, clock);
	perfetto_num(&w->packet, 10, 1);
	perfetto_sub(&w->packet, 11, &w->message);
	perfetto_packet(w);
}
