/* export_system_copy.c - see the header. */
#include "server/export/perfetto/system/export_system.h"

#include <string.h>

enum { SERVICE_FLUSHED = 3, SERVICE_READ = 4 };

struct skipped { /* omitted steps of one sequence's clock */
	uint64_t steps;
	uint32_t clock;
};

struct tw_system_copy {
	struct tw_system *system;
	struct tw_system_range range;
	struct tw_system_reader reader;
	struct skipped *skipped; /* by index of sequence */
	uint32_t cap_skipped;
	struct tw_buf *out;
	size_t gap;
	/* offset in the output of the compressed packet whose content is being reported */
	size_t container_at;
	bool gap_reported;
	uint64_t packets;
};

static enum tw_status put(struct tw_system_copy *c, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)tw_buf_add_u8(c->out, 0x0A);
	(void)tw_buf_add_varint(c->out, n);
	if (tw_buf_add(c->out, p, n) != TW_OK)
		return tw_oom(err);
	return TW_OK;
}

/* --- selecting packets --- */

/* Packets that later packets depend on, and those that apply to the whole trace. */
static bool is_state(const struct tw_system_packet *p)
{
	static const uint8_t payloads[] = {TW_SYSTEM_PROCESS_TREE, 33, 34, 35, 36, 43, 44, 45, 47,
	        TW_SYSTEM_TRACK, 61, 64, 67, TW_SYSTEM_SERVICE_EVENT, 72, 78, 82, 89, 107, 122, 124,
	        126};

	if (p->head.flags & TW_PERFETTO_STATE_CLEARED || p->head.defaults.number ||
	        p->head.interned.number || p->head.snapshot.number)
		return true;
	for (size_t i = 0; i < sizeof payloads; i++)
		if (payloads[i] == p->head.content.number)
			return true;
	return p->head.content.number == 0;
}

static bool goes(const struct tw_system_copy *c, const struct tw_system_packet *p)
{
	if (!c->range.cut || is_state(p) || p->first_ns < 0)
		return true;
	return p->last_ns >= c->range.from_ns && p->first_ns < c->range.to_ns;
}

/* --- omitted clock steps --- */

static struct skipped *skipped_of(struct tw_system_copy *c, uint32_t index)
{
	uint32_t cap = c->cap_skipped ? c->cap_skipped : 64;
	struct skipped *s;

	while (cap <= index)
		cap *= 2;
	if (index < c->cap_skipped)
		return &c->skipped[index];
	s = tw_mem_resize(c->skipped, cap, sizeof *s);
	if (!s)
		return NULL;
	memset(s + c->cap_skipped, 0, (cap - c->cap_skipped) * sizeof *s);
	c->skipped = s;
	c->cap_skipped = cap;
	return &s[index];
}

/* A packet that contains only a time. */
static enum tw_status put_steps(
        struct tw_system_copy *c, uint32_t sequence, struct skipped *s, struct tw_err *err)
{
	uint8_t bytes[48];
	uint8_t *p = bytes;

	if (s->steps == 0)
		return TW_OK;
	*p++ = 0x40; /* timestamp */
	p = tw_put_varint(p, s->steps);
	*p++ = 0x50; /* trusted_packet_sequence_id */
	p = tw_put_varint(p, sequence);
	*p++ = 0xD0; /* timestamp_clock_id */
	*p++ = 0x03;
	p = tw_put_varint(p, s->clock);
	s->steps = 0;
	return put(c, bytes, (size_t)(p - bytes), err);
}

static enum tw_status keep_steps(
        struct tw_system_copy *c, const struct tw_system_packet *p, bool taken, struct tw_err *err)
{
	struct skipped *s;
	enum tw_status st = TW_OK;

	if (!c->range.cut || p->index == 0)
		return TW_OK;
	s = skipped_of(c, p->index);
	if (!s)
		return tw_oom(err);
	if (p->head.snapshot.number)
		s->steps = 0; /* its clock is set to a new value */
	if (!p->moved)
		return TW_OK;
	if (taken || s->clock != p->moved->id)
		st = put_steps(c, p->head.sequence, s, err);
	s->clock = p->moved->id;
	if (!taken)
		s->steps += p->head.time;
	return st;
}

/* --- packets --- */

static bool is_flush_done(const struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(&p->head.content);
	struct tw_pb_field f;

	if (p->head.content.number != TW_SYSTEM_SERVICE_EVENT)
		return false;
	while (tw_pb_next(&message, &f))
		if (f.number == SERVICE_FLUSHED || f.number == SERVICE_READ)
			return true;
	return false;
}

static enum tw_status each(void *arg, struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_system_copy *c = arg;
	bool holds = p->head.content.number == TW_SYSTEM_ZLIB ||
	             p->head.content.number == TW_SYSTEM_ZSTD;
	enum tw_status st = tw_system_reader_time(&c->reader, p, err);
	bool taken;

	if (st != TW_OK)
		return st;
	if (holds && !p->inside && c->range.cut)
		return TW_OK; /* its content follows, packet by packet */
	if (!p->inside || c->range.cut)
		c->container_at = c->out->len;
	if (!c->gap_reported && c->system->flushed && is_flush_done(p)) {
		c->gap = c->container_at;
		c->gap_reported = true;
	}
	if (p->inside && !c->range.cut)
		return TW_OK; /* already copied with the packet that contains it */
	taken = goes(c, p);
	st = keep_steps(c, p, taken, err);
	if (st != TW_OK || !taken)
		return st;
	c->packets++;
	return put(c, p->p, p->n, err);
}

enum tw_status tw_system_copy_open(int fd, struct tw_system *s, const struct tw_system_range *range,
        struct tw_system_copy **ret, struct tw_err *err)
{
	struct tw_system_copy *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	c->system = s;
	c->range = *range;
	st = tw_system_reader_open(&c->reader, fd, &s->clocks, each, c, err);
	s->clocks.sink = &c->reader.sink;
	if (st == TW_OK)
		*ret = c;
	else
		tw_system_copy_close(c);
	return st;
}

enum tw_status tw_system_copy_step(struct tw_system_copy *c, struct tw_buf *out, size_t *ret_gap,
        bool *ret_done, struct tw_err *err)
{
	enum tw_status st;

	c->out = out;
	c->gap = SIZE_MAX;
	st = tw_system_reader_step(&c->reader, err);
	if (st == TW_OK && c->reader.done && !c->gap_reported) {
		c->gap = out->len;
		c->gap_reported = true;
	}
	*ret_gap = c->gap;
	*ret_done = c->reader.done;
	return st;
}

struct tw_system_copy *tw_system_copy_close(struct tw_system_copy *c)
{
	if (!c)
		return NULL;
	tw_system_reader_close(&c->reader);
	tw_mem_free(c->skipped);
	tw_mem_free(c);
	return NULL;
}

uint64_t tw_system_copy_packets(const struct tw_system_copy *c)
{
	return c ? c->packets : 0;
}
