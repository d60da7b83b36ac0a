/* system_fixture.c - see system_fixture.h. */
#include "system_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { FOLD_EACH = 40, ROOM = 1 << 16 };

struct maker {
	const struct system_shape *shape;
	struct tw_buf *out;
	struct tw_buf loose; /* packets to be folded */
	unsigned n_loose;
};

static void start(struct tw_buf *b)
{
	tw_buf_init(b, 64 << 20);
}

static void num(struct tw_buf *b, uint32_t field, uint64_t v)
{
	(void)tw_buf_add_varint(b, (uint64_t)field << 3);
	(void)tw_buf_add_varint(b, v);
}

static void text(struct tw_buf *b, uint32_t field, const char *s)
{
	(void)tw_buf_add_varint(b, (uint64_t)field << 3 | 2);
	(void)tw_buf_add_varint(b, strlen(s));
	(void)tw_buf_add(b, s, strlen(s));
}

/* Puts a message into another and ends it. */
static void sub(struct tw_buf *b, uint32_t field, struct tw_buf *inner)
{
	(void)tw_buf_add_varint(b, (uint64_t)field << 3 | 2);
	(void)tw_buf_add_varint(b, inner->len);
	(void)tw_buf_add(b, inner->data, inner->len);
	tw_buf_done(inner);
}

static void fold(struct maker *m)
{
	struct tw_buf p;
	uint8_t *packed = malloc(ROOM);
	uLongf n = ROOM;

	if (m->loose.len == 0 || !packed)
		goto done;
	if (m->shape->folded == 133)
		n = ZSTD_compress(packed, ROOM, m->loose.data, m->loose.len, 3);
	else if (compress2(packed, &n, m->loose.data, m->loose.len, 6) != Z_OK)
		abort();
	start(&p);
	(void)tw_buf_add_varint(&p, (uint64_t)m->shape->folded << 3 | 2);
	(void)tw_buf_add_varint(&p, n);
	(void)tw_buf_add(&p, packed, n);
	sub(m->out, 1, &p);
	tw_buf_clear(&m->loose);
	m->n_loose = 0;
done:
	free(packed);
}

static void packet(struct maker *m, struct tw_buf *p)
{
	sub(m->shape->folded ? &m->loose : m->out, 1, p);
	if (m->shape->folded && ++m->n_loose == FOLD_EACH)
		fold(m);
}

static int64_t boot_at(const struct system_shape *s, int64_t t)
{
	return s->boot_ns + t + (s->sleep_ns && t >= s->sleep_at_ns ? s->sleep_ns : 0);
}

static void clock(struct tw_buf *snapshot, uint32_t id, int64_t ns)
{
	struct tw_buf c;

	start(&c);
	num(&c, 1, id);
	num(&c, 2, (uint64_t)ns);
	sub(snapshot, 1, &c);
}

/* The kernel's clock when BOOTTIME is boot_ns.  Each CPU has a separate LOCAL clock. */
static int64_t kernel_at(const struct system_shape *s, uint32_t cpu, int64_t boot_ns)
{
	bool slept = s->sleep_ns && boot_ns >= s->boot_ns + s->sleep_at_ns + s->sleep_ns;

	if (s->kernel_clock == 0)
		return boot_ns;
	return boot_ns - (slept ? s->sleep_ns : 0) - 7000000000 -
	       (s->kernel_clock == KERNEL_LOCAL ? cpu * INT64_C(1000000) : 0);
}

/* A bundle has its clock's id, and simultaneous values of it and of BOOTTIME. */
static void put_kernel_clock(
        struct tw_buf *bundle, const struct system_shape *s, uint32_t cpu, int64_t boot_ns)
{
	if (s->kernel_clock == 0)
		return;
	num(bundle, 5, s->kernel_clock);
	if (s->kernel_clock == KERNEL_MONO_RAW && !s->raw_pairs)
		return;
	num(bundle, 6, (uint64_t)kernel_at(s, cpu, boot_ns));
	num(bundle, 7, (uint64_t)boot_ns);
}

static void put_snapshot(struct maker *m, int64_t t)
{
	struct tw_buf p, s;

	if (m->shape->no_clocks)
		return;
	start(&p);
	start(&s);
	clock(&s, 6, boot_at(m->shape, t));
	clock(&s, 3, m->shape->mono_ns + t);
	clock(&s, 1, INT64_C(1700000000000000000) + t);
	if (m->shape->kernel_clock == KERNEL_MONO_RAW)
		clock(&s, 5, kernel_at(m->shape, 0, boot_at(m->shape, t)));
	sub(&p, 6, &s);
	num(&p, 3, 1000);
	num(&p, 10, 1);
	packet(m, &p);
}

static void put_tree(struct maker *m)
{
	struct tw_buf p, tree, e;

	start(&p);
	num(&p, 8, (uint64_t)boot_at(m->shape, 0));
	num(&p, 10, 3);
	num(&p, 13, 1);
	start(&tree);
	start(&e);
	num(&e, 1, m->shape->pid);
	num(&e, 2, 1);
	text(&e, 3, "com.example.app");
	sub(&tree, 1, &e);
	for (uint32_t i = 0; i < m->shape->threads; i++) {
		start(&e);
		num(&e, 1, m->shape->pid + i);
		text(&e, 2, "a-thread");
		num(&e, 3, m->shape->pid);
		sub(&tree, 2, &e);
	}
	sub(&p, 2, &tree);
	packet(m, &p);
}

static void put_service(struct maker *m, int64_t t, uint32_t what)
{
	struct tw_buf p, e;

	start(&p);
	num(&p, 8, (uint64_t)boot_at(m->shape, t));
	num(&p, 10, 1);
	start(&e);
	num(&e, what, 1);
	sub(&p, 69, &e);
	packet(m, &p);
}

static void put_event(
        struct tw_buf *bundle, int64_t at_ns, uint32_t tid, uint32_t field, struct tw_buf *what)
{
	struct tw_buf e;

	start(&e);
	num(&e, 1, (uint64_t)at_ns);
	num(&e, 2, tid);
	sub(&e, field, what);
	sub(bundle, 2, &e);
}

static void put_switch(struct tw_buf *bundle, int64_t at_ns, uint32_t from, uint32_t to)
{
	struct tw_buf w;

	start(&w);
	text(&w, 1, "a-thread");
	num(&w, 2, from);
	num(&w, 3, 120);
	num(&w, 4, 1);
	text(&w, 5, "a-thread");
	num(&w, 6, to);
	num(&w, 7, 120);
	put_event(bundle, at_ns, from, 4, &w);
}

static void put_print(struct tw_buf *bundle, int64_t at_ns, uint32_t tid, const char *s)
{
	struct tw_buf w;

	start(&w);
	num(&w, 1, 0);
	text(&w, 2, s);
	put_event(bundle, at_ns, tid, 3, &w);
}

/* One CPU's events of [from, to): its thread comes on at the begin and goes off at the end. */
static void put_bundle(struct maker *m, uint32_t cpu, int64_t from, int64_t to)
{
	const struct system_shape *s = m->shape;
	uint32_t tid = s->pid + cpu;
	struct tw_buf p, b;

	start(&p);
	start(&b);
	num(&b, 1, cpu);
	put_kernel_clock(&b, s, cpu, boot_at(s, from));
	put_switch(&b, kernel_at(s, cpu, boot_at(s, from)), 0, tid);
	for (int i = 1; i < 10; i++) {
		int64_t at = boot_at(s, from) + (to - from) * i / 10;

		put_print(&b, kernel_at(s, cpu, at), tid,
		        i % 2 ? "B|100|Choreographer#doFrame\n" : "E|100\n");
	}
	put_print(&b, kernel_at(s, cpu, boot_at(s, to - 1)), tid, "E|100\n");
	put_switch(&b, kernel_at(s, cpu, boot_at(s, to - 1)) + 1, tid, 0);
	sub(&p, 1, &b);
	num(&p, 10, 20 + cpu);
	num(&p, 79, 1);
	packet(m, &p);
}

static void put_bundles(struct maker *m, int64_t from, int64_t to)
{
	for (uint32_t cpu = 0; cpu < m->shape->threads; cpu++)
		put_bundle(m, cpu, from, to);
}

/* No bundle reaches over the sleep, and the clocks are read when it is over. */
static void put_window(struct maker *m, int64_t from, int64_t to)
{
	int64_t sleep_at = m->shape->sleep_at_ns;

	if (m->shape->sleep_ns == 0 || sleep_at < from || sleep_at >= to) {
		put_bundles(m, from, to);
		return;
	}
	if (sleep_at > from)
		put_bundles(m, from, sleep_at);
	put_snapshot(m, sleep_at);
	put_bundles(m, sleep_at, to);
}

static void put_sdk_begin(struct maker *m)
{
	struct tw_buf p, s, c, d, e;

	start(&p); /* an incremental clock, a default track for events without one */
	num(&p, 10, 5);
	num(&p, 13, 1);
	start(&s);
	start(&c);
	num(&c, 1, 64);
	num(&c, 2, 0);
	num(&c, 3, 1);
	sub(&s, 1, &c);
	clock(&s, 6, boot_at(m->shape, 0));
	sub(&p, 6, &s);
	start(&d);
	num(&d, 58, 64);
	start(&e);
	num(&e, 11, UINT64_C(0x7477000000000001));
	sub(&d, 11, &e);
	sub(&p, 59, &d);
	packet(m, &p);
	start(&p); /* the second thread, as the app's own tracing describes it */
	num(&p, 8, 0);
	num(&p, 10, 5);
	start(&d);
	num(&d, 1, UINT64_C(0x7477000000000001));
	start(&e);
	num(&e, 1, m->shape->pid);
	num(&e, 2, m->shape->pid + 1);
	sub(&d, 4, &e);
	sub(&p, 60, &d);
	packet(m, &p);
}

/* A section of 100 ns each, `step` after the one before; the name is emitted once. */
static void put_sdk(struct maker *m, int64_t step, bool name)
{
	for (uint64_t type = 1; type <= 2; type++) {
		struct tw_buf p, e, i, n;

		start(&p);
		num(&p, 8, (uint64_t)(type == 1 ? step - 100 : 100));
		num(&p, 10, 5);
		num(&p, 13, 2);
		if (name && type == 1) {
			start(&i);
			start(&n);
			num(&n, 1, 1);
			text(&n, 2, "sdk section");
			sub(&i, 2, &n);
			sub(&p, 12, &i);
		}
		start(&e);
		num(&e, 9, type);
		if (type == 1)
			num(&e, 10, 1);
		sub(&p, 11, &e);
		packet(m, &p);
	}
}

void system_make(struct tw_buf *out, const struct system_shape *s)
{
	struct maker m = {.shape = s, .out = out};
	int windows = s->windows ? (int)s->windows : SYSTEM_WINDOWS;
	int64_t window = s->length_ns / windows;

	tw_buf_init(out, (size_t)1 << 30);
	start(&m.loose);
	put_snapshot(&m, 0);
	put_snapshot(&m, 1);
	put_tree(&m);
	put_service(&m, 2, 2);
	if (s->sdk)
		put_sdk_begin(&m);
	for (int w = 0; w < windows; w++) {
		int64_t from = window * w;

		put_window(&m, from, from + window);
		put_snapshot(&m, from + window - 1);
		for (int i = 0; i < 10 && s->sdk; i++)
			put_sdk(&m, window / 10, w == 0 && i == 0);
		if (s->flushed)
			put_service(&m, from + window - 1, 3);
		if (s->flushed)
			put_service(&m, from + window - 1, 4);
	}
	put_service(&m, s->length_ns, 5);
	fold(&m);
	tw_buf_done(&m.loose);
}
