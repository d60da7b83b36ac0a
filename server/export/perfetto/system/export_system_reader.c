/*
 * export_system_reader.c - see the header.
 *
 * The time range of a bundle of kernel events is that of its events: the bundle's packet often has
 * no time, or the time of writing.
 */
#include "server/base/file/io.h"
#include "server/export/perfetto/system/export_system.h"

#include <unistd.h>

enum { STEP_BYTES = 64 << 10, ARENA_BYTES = 256 << 20, UNPACK_BYTES = 4 << 20 };

static void count_repair(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct tw_system_reader *r =
	        (struct tw_system_reader *)(void *)((char *)s -
	                                            offsetof(struct tw_system_reader, sink));

	(void)offset;
	r->cut = r->cut || what == TW_REPAIR_input_truncated;
	r->damages += what == TW_REPAIR_begin_clamped ? 0 : n;
}

/* --- compressed packets --- */

static enum tw_status push_inner(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_system_reader *r = arg;

	return tw_perfetto_packets_push(&r->inner, p, n, err);
}

/* Damage in a compressed packet loses only the damaged packets. */
static enum tw_status decompress_packet(
        struct tw_system_reader *r, const struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(UNPACK_BYTES);
	struct tw_unzip *z = a ? tw_unzip_new(a, &limits, push_inner, r) : NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st = z ? TW_OK : tw_oom(err);

	r->inside = true;
	if (st == TW_OK)
		st = tw_unzip_push(z, p->head.content.bytes, p->head.content.len, err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	if (st == TW_OK)
		st = tw_perfetto_packets_finish(&r->inner, err);
	if (z)
		r->step_bytes += tw_unzip_bytes(z);
	r->damages += end != TW_UNZIP_COMPLETE;
	r->inside = false;
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

static enum tw_status each_packet(
        void *arg, const struct tw_perfetto_piece *piece, bool *ret_damaged, struct tw_err *err)
{
	struct tw_system_reader *r = arg;
	struct tw_system_packet p = {.p = piece->p, .n = piece->n, .inside = r->inside};
	enum tw_status st;

	if (!tw_perfetto_packet_read(tw_pb_of(p.p, p.n), &p.head)) {
		r->damages++;
		*ret_damaged = true;
		return TW_OK;
	}
	st = r->each(r->arg, &p, err);
	if (st != TW_OK || r->inside)
		return st;
	if (p.head.content.number == TW_SYSTEM_ZLIB || p.head.content.number == TW_SYSTEM_ZSTD)
		st = decompress_packet(r, &p, err);
	return st;
}

/* --- the file --- */

static enum tw_status push_packets(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct tw_system_reader *r = arg;

	r->step_bytes += n;
	if (r->step_bytes > TW_SYSTEM_PUSH_MAX_BYTES)
		return tw_fail_at(err, TW_TOO_LARGE, r->at,
		        "the decompressed size of the device's Perfetto trace is too large");
	return tw_perfetto_packets_push(&r->packets, p, n, err);
}

enum tw_status tw_system_reader_open(struct tw_system_reader *r, int fd,
        struct tw_perfetto_clocks *clocks, tw_system_packet_fn each, void *arg, struct tw_err *err)
{
	static const struct tw_sink_ops ops = {.repair = count_repair};
	struct tw_limits limits = tw_limits_default();

	*r = (struct tw_system_reader){
	        .fd = fd, .clocks = clocks, .each = each, .arg = arg, .sink = {&ops}};
	r->arena = tw_arena_new(ARENA_BYTES);
	if (!r->arena)
		return tw_oom(err);
	r->sequences.arena = r->arena;
	r->sequences.salt = (uintptr_t)r->arena;
	tw_perfetto_packets_init(&r->packets, r->arena, &r->sink, each_packet, r);
	tw_perfetto_packets_init(&r->inner, r->arena, &r->sink, each_packet, r);
	r->inner.inside = &r->inner_offset;
	r->piece = tw_arena_alloc(r->arena, STEP_BYTES, 1);
	r->unzip = tw_unzip_new(r->arena, &limits, push_packets, r);
	return r->piece && r->unzip ? TW_OK : tw_oom(err);
}

static enum tw_status finish(struct tw_system_reader *r, struct tw_err *err)
{
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st = tw_unzip_finish(r->unzip, &end, err);

	r->cut = r->cut || end != TW_UNZIP_COMPLETE;
	if (st == TW_OK)
		st = tw_perfetto_packets_finish(&r->packets, err);
	r->done = true;
	return st;
}

enum tw_status tw_system_reader_step(struct tw_system_reader *r, struct tw_err *err)
{
	ssize_t n = tw_pread_full(r->fd, r->piece, STEP_BYTES, r->at);

	if (n < 0)
		return tw_fail_errno(err, TW_IO, "the device's Perfetto trace cannot be read");
	r->step_bytes = 0;
	if (n == 0)
		return finish(r, err);
	r->at += (uint64_t)n;
	return tw_unzip_push(r->unzip, r->piece, (size_t)n, err);
}

void tw_system_reader_close(struct tw_system_reader *r)
{
	tw_unzip_free(r->unzip);
	tw_arena_free(r->arena);
	r->unzip = NULL;
	r->arena = NULL;
}

/* --- times --- */

static void widen(struct tw_system_packet *p, int64_t ns)
{
	if (p->first_ns < 0 || ns < p->first_ns)
		p->first_ns = ns;
	if (ns > p->last_ns)
		p->last_ns = ns;
}

struct bundle {
	struct tw_perfetto_kernel clock;
	struct tw_pb_field first, last, compact; /* events */
};

static struct bundle read_bundle(struct tw_pb message)
{
	struct bundle b = {.clock = {0, 0}};
	uint64_t number[8] = {0};
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 2 && f.type == TW_PB_BYTES) {
			b.last = f;
			if (!b.first.number)
				b.first = f;
		} else if (f.number == 4 && f.type == TW_PB_BYTES) {
			b.compact = f;
		} else if (f.number < 8 && f.type == TW_PB_VARINT) {
			number[f.number] = f.value;
		}
	b.clock = tw_perfetto_clocks_kernel(number[5], number[6], number[7]);
	return b;
}

/* Converts a kernel time to the trace's clock. */
static bool kernel_time(
        const struct tw_system_reader *r, const struct bundle *b, uint64_t reading, int64_t *ret_ns)
{
	int64_t ns;

	return reading <= INT64_MAX &&
	       !__builtin_add_overflow((int64_t)reading, b->clock.shift_ns, &ns) &&
	       tw_perfetto_clocks_convert(r->clocks, b->clock.clock, ns, ret_ns);
}

static void add_kernel_time(const struct tw_system_reader *r, const struct bundle *b,
        uint64_t reading, struct tw_system_packet *p)
{
	int64_t ns;

	if (kernel_time(r, b, reading, &ns))
		widen(p, ns);
}

static void add_event(const struct tw_system_reader *r, const struct bundle *b,
        const struct tw_pb_field *event, struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(event);
	struct tw_pb_field f;

	if (!event->number)
		return;
	while (tw_pb_next(&message, &f))
		if (f.number == 1 && f.type == TW_PB_VARINT) {
			add_kernel_time(r, b, f.value, p);
			return;
		}
}

/* Columns of time differences: switches (1) and wake-ups (7). */
static void add_compact(
        const struct tw_system_reader *r, const struct bundle *b, struct tw_system_packet *p)
{
	struct tw_pb message = tw_pb_in(&b->compact);
	struct tw_pb_field f;

	while (b->compact.number && tw_pb_next(&message, &f)) {
		struct tw_pb numbers = tw_pb_in(&f);
		uint64_t now = 0;
		uint64_t delta;
		bool first = true;

		if ((f.number != 1 && f.number != 7) || f.type != TW_PB_BYTES)
			continue;
		while (tw_pb_number(&numbers, &delta)) {
			now += delta;
			if (first)
				add_kernel_time(r, b, now, p);
			first = false;
		}
		if (!first)
			add_kernel_time(r, b, now, p);
	}
}

static void read_defaults(struct tw_perfetto_sequence *q, struct tw_pb message)
{
	struct tw_pb_field f;

	while (tw_pb_next(&message, &f))
		if (f.number == 58)
			q->clock = (uint32_t)f.value;
}

/* Adds the packet's own time, which advances its sequence's clock. */
static void add_packet_time(
        struct tw_system_reader *r, struct tw_perfetto_sequence *q, struct tw_system_packet *p)
{
	uint32_t clock = p->head.clock ? p->head.clock : q->clock;
	int64_t ns;

	if (clock == 0)
		clock = r->clocks->trace_clock ? r->clocks->trace_clock : TW_PERFETTO_BOOTTIME;
	if (clock < 64 || clock > 127) {
		if (p->head.time <= INT64_MAX &&
		        tw_perfetto_clocks_convert(r->clocks, clock, (int64_t)p->head.time, &ns))
			widen(p, ns);
		return;
	}
	for (unsigned i = 0; i < TW_PERFETTO_OWN_CLOCKS; i++)
		if (q->own[i].id == clock && q->own[i].incremental)
			p->moved = &q->own[i];
	if (tw_perfetto_clocks_own(q->own, clock, p->head.time, &ns))
		widen(p, ns);
}

enum tw_status tw_system_reader_time(
        struct tw_system_reader *r, struct tw_system_packet *p, struct tw_err *err)
{
	struct tw_perfetto_sequence *q = tw_perfetto_sequences_get(&r->sequences, p->head.sequence);
	enum tw_status st = TW_OK;
	struct bundle b;

	if (!q)
		return tw_oom(err);
	p->first_ns = p->last_ns = -1;
	p->index = q->id ? q->scope.sequence : 0;
	if (p->head.flags & TW_PERFETTO_STATE_CLEARED)
		q->clock = 0;
	if (p->head.defaults.number)
		read_defaults(q, tw_pb_in(&p->head.defaults));
	if (p->head.snapshot.number)
		st = tw_perfetto_clocks_snapshot(
		        r->clocks, tw_pb_in(&p->head.snapshot), q->id ? q->own : NULL, err);
	if (st != TW_OK || p->head.machine)
		return st;
	if (p->head.content.number == TW_SYSTEM_FTRACE) {
		b = read_bundle(tw_pb_in(&p->head.content));
		add_event(r, &b, &b.first, p);
		add_event(r, &b, &b.last, p);
		add_compact(r, &b, p);
	} else if (p->head.has_time && !p->head.snapshot.number) {
		add_packet_time(r, q, p);
	}
	return TW_OK;
}
