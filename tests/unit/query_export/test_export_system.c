/* The scan of the device's system trace: clocks of the kernel's events, the facts stored in the
 * trace file, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/export/perfetto/system/export_system.h"
#include "server/export/perfetto/system/export_system_facts.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

#define MONO (400 * S + 10000)
#define BOOT (500 * S + 10000)

/* --- clocks of the kernel's events --- */

static bool is_running(const struct perfetto_trace *t, int64_t tid, int64_t ns)
{
	for (size_t i = 0; i < t->n_runs; i++)
		if (t->runs[i].tid == tid && t->runs[i].begin_ns <= ns && ns <= t->runs[i].end_ns)
			return true;
	return false;
}

/* Every begin and end of a call that falls into the device's trace is while its thread runs. */
static void runs_under_calls(const struct merged *x)
{
	size_t looked = 0;

	for (size_t i = 0; i < x->trace.n; i++) {
		const struct perfetto_slice *s = &x->trace.slices[i];

		if (!merged_is_call(s))
			continue;
		assert_true(is_running(&x->trace, s->tid, s->begin_ns));
		assert_true(is_running(&x->trace, s->tid, s->end_ns));
		looked++;
	}
	assert_int_equal(looked, x->m.n);
}

static struct system_shape kernel_shape(int i)
{
	static const unsigned clocks[] = {
	        KERNEL_GLOBAL, KERNEL_LOCAL, KERNEL_MONO_RAW, KERNEL_MONO_RAW};
	struct system_shape s = merged_usual();

	s.length_ns = 6000000; /* the whole recording is in it */
	s.kernel_clock = clocks[i & 3];
	s.raw_pairs = (i & 3) == 3;
	s.flushed = i & 4;
	s.folded = i & 8 ? 50 : 0;
	if (i & 16) {
		s.sleep_at_ns = 700000;
		s.sleep_ns = 3600 * S;
	}
	return s;
}

static void test_kernel_clocks(void **state)
{
	(void)state;
	for (int i = 0; i < 32; i++) {
		const struct system_shape s = kernel_shape(i);
		const struct tw_perfetto_options o = {0};
		struct merged x;

		merged_make(&x, &s, MONO, BOOT, &o);
		assert_int_equal(perfetto_errors(&x.trace), 0);
		assert_true(merged_has(&x, "clock", "monotonic"));
		merged_same_packets(&x);
		merged_same_calls(&x, &s, MONO);
		runs_under_calls(&x);
		merged_done(&x);
	}
}

/* A part of the time: the kernel's packets of that time, by whatever clock, and no others. */
static void test_kernel_clocks_cut(void **state)
{
	(void)state;
	for (int i = 0; i < 32; i++) {
		const struct system_shape s = kernel_shape(i);
		const struct tw_perfetto_options o = {0};
		struct perfetto_trace part = {0};
		struct tw_perfetto_source source;
		struct tw_buf bytes;
		struct merged x;
		int64_t from, to;
		size_t kept = 0;

		merged_make(&x, &s, MONO, BOOT, &o);
		source = merged_source(&x);
		source.sel.ranged = true;
		source.sel.from_ns = 950000;
		source.sel.to_ns = 1200000;
		from = s.boot_ns + 960000 + s.sleep_ns;
		to = s.boot_ns + 1210000 + s.sleep_ns;
		merged_export(&bytes, &source, 1, &o, 70000);
		merged_read(&x, &part, &bytes);
		assert_int_equal(perfetto_errors(&part), 0);
		for (size_t k = 0; k < x.trace.n_runs; k++) {
			const struct perfetto_run *r = &x.trace.runs[k];
			bool in = r->end_ns >= from && r->begin_ns < to;

			assert_int_equal(is_running(&part, r->tid, r->begin_ns + 1), in);
			kept += in;
		}
		assert_true(kept && kept < x.trace.n_runs);
		tw_buf_done(&bytes);
		merged_done(&x);
	}
}

/* --- stored facts --- */

static struct tw_system *scan(const struct merged *x)
{
	struct tw_system *s = NULL;

	assert_int_equal(tw_system_scan(x->fd, &s, NULL), TW_OK);
	return s;
}

static void pack(const struct tw_system *s, struct tw_buf *out)
{
	tw_buf_init(out, TW_SYSTEM_FACTS_BYTES);
	assert_int_equal(tw_system_pack(s, out, NULL), TW_OK);
}

static struct tw_str str_of(const struct tw_buf *b)
{
	return (struct tw_str){(const char *)b->data, b->len};
}

/* Both return the same for a recording next to it. */
static void same_report(
        const struct tw_system *a, const struct tw_system *b, const struct tw_trace_info *info)
{
	struct tw_buf reports[2];

	tw_buf_init(&reports[0], 10000);
	tw_buf_init(&reports[1], 10000);
	assert_int_equal(tw_system_report(a, info, &reports[0], NULL), TW_OK);
	assert_int_equal(tw_system_report(b, info, &reports[1], NULL), TW_OK);
	assert_true(tw_str_eq(str_of(&reports[0]), str_of(&reports[1])));
	tw_buf_done(&reports[0]);
	tw_buf_done(&reports[1]);
}

static void test_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 32; i++) {
		struct system_shape shape = kernel_shape(i);
		const struct tw_perfetto_options o = {0};
		struct tw_system *s, *back = NULL;
		struct tw_buf facts, again;
		struct merged x;

		shape.sdk = i & 1;
		shape.no_clocks = i == 8;
		merged_make(&x, &shape, MONO, BOOT, &o);
		s = scan(&x);
		assert_int_equal(s->n_threads, shape.sdk ? 1 : 0);
		pack(s, &facts);
		assert_true(facts.len > 0 && facts.len < 1000);
		assert_int_equal(tw_system_unpack(str_of(&facts), &back, NULL), TW_OK);
		pack(back, &again);
		assert_true(tw_str_eq(str_of(&facts), str_of(&again)));
		assert_int_equal(back->bytes, x.system.len);
		same_report(s, back, tw_trace_file_info(x.f.file));
		assert_null(tw_system_free(s));
		tw_system_free(back);
		tw_buf_done(&facts);
		tw_buf_done(&again);
		merged_done(&x);
	}
}

/* The same recording in a trace file that keeps facts. */
static void make_keeping(struct trace_fixture *f, const struct merged *x, struct tw_str facts)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *sink = tw_builder_sink(b);

	assert_int_equal(model_emit(&x->m, sink, MODEL_RECORDS, NULL), TW_OK);
	sink->ops->clock(sink, &(struct tw_clock){MODEL_PID, MONO, BOOT, 0});
	assert_int_equal(trace_fixture_write_system(f, b, facts), TW_OK);
}

/* Looking through takes a while, before which the file says whose it is; else that is its end. */
static void same_packets_but_facts(const struct merged *x, const struct tw_buf *kept)
{
	struct perfetto_trace a, b;
	size_t reported = 0;

	if (kept->data[0] != 0x0A) { /* an archive, whose manifest has them */
		assert_true(tw_str_eq(str_of(kept), str_of(&x->bytes)));
		return;
	}
	merged_read((struct merged *)(uintptr_t)x, &a, &x->bytes);
	merged_read((struct merged *)(uintptr_t)x, &b, kept);
	assert_int_equal(a.reported_twice + b.reported_twice, 0);
	assert_in_range(a.n_packets, b.n_packets, b.n_packets + 1);
	for (unsigned i = 0; i < a.n_attributes; i++)
		reported += a.attributes[i].len;
	for (unsigned i = 0; i < b.n_attributes; i++)
		reported -= b.attributes[i].len;
	assert_int_equal(reported, 0);
	for (size_t i = 0; i + 1 < b.n_packets; i++)
		assert_true(tw_str_eq(
		        b.packets[i].bytes, a.packets[i + (a.n_packets - b.n_packets)].bytes));
}

static void same_export(
        const struct merged *x, struct trace_fixture *f, const struct tw_perfetto_options *o)
{
	struct tw_perfetto_source source = merged_source(x);
	struct tw_buf bytes;

	source.file = f->file;
	source.system_as_sent = true;
	merged_export(&bytes, &source, 1, o, 70000);
	same_packets_but_facts(x, &bytes);
	tw_buf_done(&bytes);
}

/* A file made from stored facts equals the one made by a scan of the trace; damaged facts and those
 * of another trace are not used. */
static void test_made_from_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		struct system_shape shape = kernel_shape(i);
		const struct tw_perfetto_options o = {
		        .form = i & 1 ? TW_PERFETTO_TAR : TW_PERFETTO_PLAIN};
		struct trace_fixture f;
		struct tw_system *s;
		struct tw_buf facts;
		struct merged x;

		shape.sdk = i & 2;
		merged_make(&x, &shape, MONO, BOOT, &o);
		s = scan(&x);
		if (i >= 10)
			s->bytes++; /* of another file */
		pack(s, &facts);
		if (i == 8 || i == 9)
			facts.len /= 2;
		make_keeping(&f, &x, str_of(&facts));
		same_export(&x, &f, &o);
		trace_fixture_done(&f);
		tw_system_free(s);
		tw_buf_done(&facts);
		merged_done(&x);
	}
}

/* A decoder that was taken over may have written anything. */
static void test_kept_damaged(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape shape = kernel_shape(2);
	struct tw_buf facts;
	struct tw_system *s;
	struct merged x;
	uint64_t random = 5;

	(void)state;
	shape.sdk = true;
	merged_make(&x, &shape, MONO, BOOT, &o);
	s = scan(&x);
	pack(s, &facts);
	for (size_t at = 0; at < facts.len; at++) {
		struct tw_system *got = NULL;

		assert_int_equal(
		        tw_system_unpack((struct tw_str){(char *)facts.data, at}, &got, NULL),
		        TW_CORRUPT);
		assert_null(got);
	}
	for (int i = 0; i < 2000; i++) {
		size_t at = test_random(&random) % facts.len;
		uint8_t was = facts.data[at];
		struct tw_system *got = NULL;

		facts.data[at] = (uint8_t)test_random(&random);
		if (tw_system_unpack(str_of(&facts), &got, NULL) == TW_OK)
			(void)tw_system_why(got);
		tw_system_free(got);
		facts.data[at] = was;
	}
	tw_system_free(s);
	tw_buf_done(&facts);
	merged_done(&x);
}

static void test_no_memory(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct system_shape shape = kernel_shape(9);
	struct tw_buf facts;
	struct tw_system *s, *got = NULL;
	struct merged x;
	enum tw_status st = TW_NOMEM;

	(void)state;
	merged_make(&x, &shape, MONO, BOOT, &o);
	s = scan(&x);
	pack(s, &facts);
	for (uint64_t n = 1; st != TW_OK; n++) {
		tw_mem_fail_at(n);
		st = tw_system_scan(x.fd, &got, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
	}
	got = tw_system_free(got);
	st = TW_NOMEM;
	for (uint64_t n = 1; st != TW_OK; n++) {
		tw_mem_fail_at(n);
		st = tw_system_unpack(str_of(&facts), &got, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
	}
	tw_system_free(got);
	st = TW_NOMEM;
	for (uint64_t n = 1; st != TW_OK; n++) {
		struct tw_buf out;

		tw_buf_init(&out, TW_SYSTEM_FACTS_BYTES);
		tw_mem_fail_at(n);
		st = tw_system_pack(s, &out, NULL);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		tw_buf_done(&out);
	}
	tw_system_free(s);
	tw_buf_done(&facts);
	merged_done(&x);
}

/* --- limits --- */

static void put_descriptor(struct tw_buf *out, uint32_t tid, uint64_t uuid)
{
	uint8_t thread[16], packet[64];
	uint8_t *p = thread;
	size_t n;

	*p++ = 0x08; /* pid */
	p = tw_put_varint(p, 7);
	*p++ = 0x10; /* tid */
	p = tw_put_varint(p, tid);
	n = (size_t)(p - thread);
	p = packet;
	*p++ = 0x08; /* uuid */
	p = tw_put_varint(p, uuid);
	*p++ = 0x22; /* thread */
	*p++ = (uint8_t)n;
	memcpy(p, thread, n);
	n = (size_t)(p + n - packet);
	(void)tw_buf_add_u8(out, 0x0A);
	(void)tw_buf_add_varint(out, n + 3);
	(void)tw_buf_add(out, "\xE2\x03", 2); /* track_descriptor */
	(void)tw_buf_add_varint(out, n);
	(void)tw_buf_add(out, packet, n);
}

/* Threads that are described again and again count once, with their latest track; of more than can
 * be kept in mind the first are, and the trace is read all the same. */
static void test_many_threads(void **state)
{
	static const struct {
		uint32_t threads, times, kept;
	} cases[] = {{3, 50000, 3}, {TW_SYSTEM_THREADS, 2, TW_SYSTEM_THREADS},
	        {TW_SYSTEM_THREADS + 1, 2, TW_SYSTEM_THREADS}};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		char path[] = "/tmp/tracewell-threads-XXXXXX";
		int fd = mkstemp(path);
		struct tw_system *s = NULL;
		struct tw_buf b;

		assert_true(fd >= 0);
		(void)unlink(path);
		tw_buf_init(&b, 64 << 20);
		for (uint32_t k = 0; k < cases[c].times; k++)
			for (uint32_t i = 0; i < cases[c].threads; i++)
				put_descriptor(&b, 1 + i, 1 + i + (uint64_t)k * 1000000);
		assert_int_equal(write(fd, b.data, b.len), b.len);
		assert_int_equal(tw_system_scan(fd, &s, NULL), TW_OK);
		assert_int_equal(s->fault, TW_SYSTEM_FINE);
		assert_int_equal(s->n_threads, cases[c].kept);
		for (uint32_t i = 0; i + 1 < s->n_threads; i++)
			assert_true(s->threads[i].tid < s->threads[i + 1].tid);
		assert_int_equal(s->threads[1].uuid,
		        c ? s->threads[1].uuid : 2 + (cases[c].times - 1) * 1000000ull);
		tw_system_free(s);
		tw_buf_done(&b);
		(void)close(fd);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_clocks),
        cmocka_unit_test(test_kernel_clocks_cut),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_made_from_kept),
        cmocka_unit_test(test_kept_damaged),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_many_threads),
};

UNIT_TESTS("export_system", tests)
