/* Unit tests of the Perfetto export, read back by the tests' own reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/export/perfetto/export_packet.h"
#include "server/export/perfetto/export_perfetto.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/perfetto_reader.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

enum { MONO_BASE = 5000, BOOT_BASE = 9000 }; /* of made-up traces */

struct exported {
	struct tw_buf bytes;
	struct perfetto_trace trace;
	struct tw_arena *arena;
};

static void export_with(
        struct exported *e, struct tw_trace_file *file, const struct tw_selection *sel, size_t step)
{
	const struct tw_perfetto_source source = {.file = file,
	        .sel = *sel,
	        .facts = {"id", "p", "app", "1", "b", "d", "", "u", ""},
	        .system_fd = -1};
	const struct tw_perfetto_options plain = {0};
	struct tw_perfetto *x = NULL;
	size_t n;

	tw_buf_init(&e->bytes, 256 << 20);
	assert_int_equal(tw_perfetto_open(&source, 1, &plain, &x, NULL), TW_OK);
	do {
		assert_int_equal(tw_buf_reserve(&e->bytes, step), TW_OK);
		assert_int_equal(
		        tw_perfetto_read(x, e->bytes.data + e->bytes.len, step, &n, NULL), TW_OK);
		assert_true(n <= step);
		e->bytes.len += n;
	} while (n);
	assert_null(tw_perfetto_close(x));
	e->arena = tw_arena_new((size_t)1 << 30);
	assert_true(perfetto_read(
	        &e->trace, (struct tw_str){(const char *)e->bytes.data, e->bytes.len}, e->arena));
}

static void done(struct exported *e)
{
	tw_buf_done(&e->bytes);
	tw_arena_free(e->arena);
}

/* The model's slices of one thread, in order, are the reader's. */
static void same_thread(const struct exported *e, const struct model *m, uint64_t tid)
{
	size_t at = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct model_slice *s = &m->slices[i];
		const struct perfetto_slice *got;
		char name[40];

		if (s->tid != tid)
			continue;
		while (at < e->trace.n && e->trace.slices[at].tid != (int64_t)tid)
			at++;
		assert_true(at < e->trace.n);
		got = &e->trace.slices[at++];
		(void)snprintf(name, sizeof name, "unknown:%u", s->method_id);
		assert_int_equal(got->pid, MODEL_PID);
		assert_int_equal(got->begin_ns, s->start_ns + BOOT_BASE);
		assert_int_equal(got->end_ns, s->start_ns + s->dur_ns + BOOT_BASE);
		assert_int_equal(got->depth, s->depth);
		assert_true(tw_str_eq(got->name, tw_str_of(name)));
	}
}

static void test_slices(void **state)
{
	static const size_t steps[] = {1, 37, 4096, 1 << 20};

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct model_shape shape = {seed * 3, (uint32_t)(1 + seed % 4),
		        seed == 8 ? 150000 : (uint32_t)(seed * 200), 40, false};
		struct tw_selection all = {.all_threads = true};
		struct trace_fixture f;
		struct exported e;
		struct model m;

		model_make(&m, &shape);
		assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
		export_with(&e, f.file, &all, steps[seed == 8 ? 3 : seed % 4]);
		assert_int_equal(e.trace.n, m.n);
		assert_int_equal(perfetto_errors(&e.trace), 0);
		assert_int_equal(e.trace.unsorted, 0);
		for (uint32_t t = 0; t < m.threads; t++)
			same_thread(&e, &m, MODEL_PID + t);
		done(&e);
		trace_fixture_done(&f);
		model_done(&m);
	}
}

static void test_one_thread(void **state)
{
	struct model_shape shape = {5, 3, 500, 40, false};
	uint64_t tid = MODEL_PID + 1;
	struct tw_selection one = {.tids = &tid, .n_tids = 1};
	struct trace_fixture f;
	struct exported e;
	struct model m;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	export_with(&e, f.file, &one, 1000);
	assert_int_equal(perfetto_errors(&e.trace), 0);
	same_thread(&e, &m, tid);
	for (size_t i = 0; i < e.trace.n; i++)
		assert_int_equal(e.trace.slices[i].tid, (int64_t)tid);
	done(&e);
	trace_fixture_done(&f);
	model_done(&m);
}

static struct tw_builder *new_builder(void)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s;

	assert_non_null(b);
	s = tw_builder_sink(b);
	s->ops->clock(s, &(struct tw_clock){MODEL_PID, MONO_BASE, BOOT_BASE, 0});
	return b;
}

static void tell(struct tw_builder *b, int64_t start, int64_t dur, struct tw_str name)
{
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_event ev = {.kind = TW_EV_SLICE, .ts_ns = start, .dur_ns = dur, .cpu_ns = -1};

	ev.track = s->ops->track(s, MODEL_PID, MODEL_PID, TW_TID_FULL);
	ev.sym = s->ops->name(s, name);
	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

/* Perfetto keeps 512 levels; both ends of deeper calls are left out, so none closes a wrong one. */
static void test_deep(void **state)
{
	(void)state;
	for (int deep = 511; deep <= 600; deep += deep < 514 ? 1 : 86) {
		struct tw_selection all = {.all_threads = true};
		struct tw_builder *b = new_builder();
		struct trace_fixture f;
		struct exported e;
		size_t kept = deep < 512 ? (size_t)deep : 512;

		for (int i = deep - 1; i >= 0; i--)
			tell(b, i, 2000 - 2 * i, TW_STR("deep"));
		tell(b, 3000, 5, TW_STR("after"));
		assert_int_equal(trace_fixture_write(&f, b), TW_OK);
		export_with(&e, f.file, &all, 5000);
		assert_int_equal(perfetto_errors(&e.trace), 0);
		assert_int_equal(e.trace.n, kept + 1);
		for (size_t i = 0; i < kept; i++) {
			assert_int_equal(e.trace.slices[i].depth, i);
			assert_int_equal(e.trace.slices[i].begin_ns, (int64_t)i + BOOT_BASE);
			assert_int_equal(e.trace.slices[i].end_ns, 2000 - (int64_t)i + BOOT_BASE);
		}
		assert_int_equal(e.trace.slices[kept].depth, 0);
		done(&e);
		trace_fixture_done(&f);
	}
}

static void test_names(void **state)
{
	static const char *const hostile[] = {"<script>alert(1)</script>", "a\nb|c\t\"'\\", "%s%n",
	        "'; DROP TABLE slice; --", "\xF0\x9F\x98\x80", "\xff\xfe broken", "\xC3",
	        "../../etc/passwd", "x"};
	enum { N = sizeof hostile / sizeof *hostile };
	struct tw_selection all = {.all_threads = true};
	struct tw_builder *b = new_builder();
	static char longest[4096];
	struct trace_fixture f;
	struct exported e;

	(void)state;
	memset(longest, 'n', sizeof longest);
	for (int i = 0; i < N; i++)
		tell(b, i * 10, 5, tw_str_of(hostile[i]));
	tell(b, N * 10, 5, (struct tw_str){longest, sizeof longest});
	assert_int_equal(trace_fixture_write(&f, b), TW_OK);
	export_with(&e, f.file, &all, 333);
	assert_int_equal(perfetto_errors(&e.trace), 0);
	assert_int_equal(e.trace.n, N + 1);
	for (int i = 0; i < N; i++) {
		struct tw_str got = e.trace.slices[i].name;

		for (size_t at = 0; at < got.len;) {
			size_t len = tw_utf8_len(got.ptr + at, got.len - at);

			assert_true(len > 0);
			at += len;
		}
		if (i != 5 && i != 6)
			assert_true(tw_str_eq(got, tw_str_of(hostile[i])));
	}
	assert_in_range(e.trace.slices[N].name.len, 4000, 4096);
	done(&e);
	trace_fixture_done(&f);
}

/* Bytes that trace_processor was seen to read. */
static void test_golden(void **state)
{
	static const uint8_t begin[] = {0x0a, 0x0d, 0x40, 0xb8, 0x17, 0x50, 0xe8, 0x07, 0x5a, 0x05,
	        0x48, 0x01, 0x50, 0x88, 0x27};
	static const uint8_t end[] = {
	        0x0a, 0x0a, 0x40, 0xb8, 0x17, 0x50, 0xe8, 0x07, 0x5a, 0x02, 0x48, 0x02};
	static const uint8_t named[] = {0x0a, 0x19, 0x40, 0xb8, 0x17, 0x50, 0xe8, 0x07, 0x62, 0x0b,
	        0x12, 0x09, 0x08, 0x01, 0x12, 0x05, 'a', '.', 'B', '.', 'c', 0x5a, 0x04, 0x48, 0x01,
	        0x50, 0x01};
	uint8_t out[TW_PACKET_MAX_BYTES];
	const struct tw_packet_seq seq = tw_packet_seq(1000);
	const struct tw_packet_seq largest = tw_packet_seq(UINT32_MAX);
	const struct tw_packet_named first = {
	        .seq = &seq, .name_iid = 1, .delta_ns = 3000, .name = TW_STR("a.B.c")};
	struct tw_buf b;

	(void)state;
	assert_int_equal(tw_packet_begin(out, &seq, 3000, 5000) - out, sizeof begin);
	assert_memory_equal(out, begin, sizeof begin);
	assert_int_equal(tw_packet_end(out, &seq, 3000) - out, sizeof end);
	assert_memory_equal(out, end, sizeof end);
	assert_in_range(tw_packet_begin(out, &largest, UINT64_MAX, UINT32_MAX) - out, 1,
	        TW_PACKET_MAX_BYTES);
	tw_buf_init(&b, 1000);
	assert_int_equal(tw_packet_begin_named(&b, &first), TW_OK);
	assert_int_equal(b.len, sizeof named);
	assert_memory_equal(b.data, named, sizeof named);
	tw_buf_done(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_golden),
};

UNIT_TESTS("perfetto", tests)
