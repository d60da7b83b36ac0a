/* The forms of a joined file: a cut of it, an archive; without memory; and of a real recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "decoder/base/unzip.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/thread/parallel.h"
#include "server/export/perfetto/export_plan.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

/* --- a range --- */

static void test_range(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		const struct tw_perfetto_options o = {0};
		struct system_shape s = merged_usual();
		struct tw_perfetto_source source;
		struct perfetto_trace all;
		size_t found = 0, expected = 0;
		struct tw_buf all_bytes;
		struct merged x;
		int64_t from, to;

		s.length_ns = 600000; /* sections of the SDK last 100 ns each, in steps of 10,000 */
		s.sdk = true;
		s.flushed = i & 1;
		s.folded = i % 3 == 0 ? 0 : i % 3 == 1 ? 50 : 133;
		merged_make(&x, &s, 400 * S, 500 * S, &o);
		all = x.trace;
		all_bytes = x.bytes; /* names of all point into it */
		source = merged_source(&x);
		source.sel.ranged = true;
		source.sel.from_ns = 300 + i * 40;
		source.sel.to_ns = source.sel.from_ns + 200;
		if (i >= 6) { /* of the device's events alone */
			source.sel.from_ns = 250000 + i * 1000;
			source.sel.to_ns = source.sel.from_ns + 100000;
		}
		from = 500 * S + source.sel.from_ns;
		to = 500 * S + source.sel.to_ns;
		merged_export(&x.bytes, &source, 1, &o, 4096);
		merged_read(&x, &x.trace, &x.bytes);
		assert_int_equal(perfetto_errors(&x.trace) - x.trace.unmatched, 0);
		assert_true(x.trace.n_runs < all.n_runs);
		if (!s.folded)
			assert_true(x.bytes.len < all_bytes.len);
		/* everything in the range is exported; calls are truncated to it */
		for (size_t k = 0; k < all.n; k++) {
			const struct perfetto_slice *a = &all.slices[k];
			bool ours = merged_is_call(a);

			expected += ours ? a->end_ns > from && a->begin_ns < to
			                 : a->begin_ns >= from && a->end_ns < to && a->tid > 0 &&
			                            a->depth == 0;
		}
		for (size_t k = 0; k < x.trace.n; k++) {
			const struct perfetto_slice *b = &x.trace.slices[k];

			if (merged_is_call(b)) {
				assert_true(b->begin_ns >= from && b->end_ns <= to);
				found += b->end_ns > b->begin_ns || b->begin_ns > from;
			} else if (tw_str_eq(b->name, TW_STR("sdk section"))) {
				/* the steps of calls that were left out are retained */
				assert_int_equal((b->begin_ns - 500 * S) % 10000, 9900);
				found += b->begin_ns >= from && b->end_ns >= 0 && b->end_ns < to;
			}
		}
		assert_in_range(found, expected > 3 ? expected - 3 : 0, expected + 3);
		tw_buf_done(&all_bytes);
		merged_done(&x);
	}
}

/* --- the archive --- */

static size_t octal(const uint8_t *p, size_t n)
{
	size_t v = 0;

	for (size_t i = 0; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v * 8 + (size_t)(p[i] - '0');
	return v;
}

/* The member of that name; its bytes must lie whole in the archive. */
static struct tw_str member(const struct tw_buf *b, const char *name)
{
	for (size_t at = 0; at + 512 <= b->len && b->data[at];) {
		const uint8_t *h = b->data + at;
		size_t n = octal(h + 124, 11);
		size_t sum = 8 * ' ';

		for (size_t i = 0; i < 512; i++)
			sum += i < 148 || i >= 156 ? h[i] : 0;
		assert_int_equal(octal(h + 148, 6), sum);
		assert_memory_equal(h + 257, "ustar", 6);
		assert_true(at + 512 + n <= b->len);
		if (strcmp((const char *)h, name) == 0)
			return (struct tw_str){(const char *)h + 512, n};
		at += 512 + (n + 511) / 512 * 512;
	}
	return (struct tw_str){NULL, 0};
}

static void test_tar(void **state)
{
	const struct tw_perfetto_options o = {.form = TW_PERFETTO_TAR};
	struct system_shape s = merged_usual();
	struct tw_str part;
	struct merged x;

	(void)state;
	s.sleep_at_ns = 25000;
	s.sleep_ns = 30 * S;
	s.flushed = true;
	merged_make(&x, &s, 400 * S + 10000, 500 * S + 10000, &o);
	assert_int_equal(x.bytes.len % 512, 0);
	part = member(&x.bytes, "device.perfetto-trace");
	assert_true(tw_str_eq(part, (struct tw_str){(const char *)x.system.data, x.system.len}));
	part = member(&x.bytes, "perfetto_manifest.json");
	assert_true(tw_str_starts(part, TW_STR("{\"perfetto_manifest\":{\"version\":1,")));
	part = member(&x.bytes, "tracewell.perfetto-trace");
	assert_non_null(part.ptr);
	assert_true(perfetto_read(&x.trace, part, x.arena));
	assert_int_equal(perfetto_errors(&x.trace), 0);
	merged_same_calls(&x, &s, 400 * S + 10000);
	merged_done(&x);
}

/* --- compressed packets --- */

/* The packets in the compressed ones, in order; returns the number of groups. */
static size_t unpack(const struct tw_buf *packed, struct tw_buf *ret)
{
	static uint8_t group[TW_BATCH_BYTES];
	const uint8_t *p = packed->data;
	const uint8_t *end = packed->data + packed->len;
	size_t n = 0;

	for (; p < end; n++) {
		uint64_t tag = 0, len = 0;
		uLongf got = sizeof group;

		assert_int_equal(*p++, 0x0A);
		assert_true(tw_get_varint(&p, end, &len) && len <= (uint64_t)(end - p));
		assert_true(tw_get_varint(&p, end, &tag) && tw_get_varint(&p, end, &len));
		if (tag >> 3 == 50)
			assert_int_equal(uncompress(group, &got, p, len), Z_OK);
		else
			got = ZSTD_decompress(group, sizeof group, p, len);
		assert_int_equal(tw_buf_add(ret, group, got), TW_OK);
		p += len;
	}
	return n;
}

/* Several groups at the same time, with any number of threads; the last bytes remain until they are
 * requested. */
static void test_groups(void **state)
{
	enum { PACKETS = 9000, BODY = 100 };
	struct tw_buf all, loose, packed, back;

	(void)state;
	tw_buf_init(&all, SIZE_MAX / 2);
	for (uint32_t i = 0; i < PACKETS; i++) {
		assert_int_equal(tw_buf_add_u8(&all, 0x0A), TW_OK);
		assert_int_equal(tw_buf_add_u8(&all, BODY), TW_OK);
		for (uint32_t k = 0; k < BODY / 4; k++)
			assert_int_equal(tw_buf_add_u32le(&all, i * k), TW_OK);
	}
	for (unsigned i = 0; i < 6; i++) {
		const bool zstd = i & 1;

		tw_parallel_set_cores(1 + i / 2);
		tw_buf_init(&loose, SIZE_MAX / 2);
		tw_buf_init(&packed, SIZE_MAX / 2);
		tw_buf_init(&back, SIZE_MAX / 2);
		assert_int_equal(tw_buf_add(&loose, all.data, all.len), TW_OK);
		assert_int_equal(tw_compress_packets(&loose, 320 << 10, zstd, &packed), TW_OK);
		assert_int_equal(unpack(&packed, &back), 2);
		assert_int_equal(back.len + loose.len, all.len);
		assert_in_range(loose.len, 1, 320 << 10);
		assert_int_equal(tw_compress_packets(&loose, 1, zstd, &packed), TW_OK);
		assert_int_equal(loose.len, 0);
		tw_buf_clear(&back);
		assert_int_equal(unpack(&packed, &back), 3);
		assert_true(back.len == all.len && memcmp(back.data, all.data, all.len) == 0);
		tw_buf_done(&loose);
		tw_buf_done(&packed);
		tw_buf_done(&back);
	}
	tw_parallel_set_cores(0);
	tw_buf_done(&all);
}

/* --- a compressed file --- */

struct source { /* bytes, in pieces of odd sizes */
	const struct tw_buf *b;
	size_t at;
};

static enum tw_status read_source(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	struct source *s = arg;
	size_t n = s->b->len - s->at;

	(void)err;
	n = n < 70001 ? n : 70001;
	n = n < cap ? n : cap;
	if (n)
		memcpy(out, s->b->data + s->at, n);
	s->at += n;
	*ret_n = n;
	return TW_OK;
}

static void free_source(void *arg)
{
	(void)arg;
}

static enum tw_status add_bytes(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

/* One gzip member or zstd frame, with any number of threads. */
static void test_compressed(void **state)
{
	const struct tw_limits limits = tw_limits_default();
	struct tw_buf all;

	(void)state;
	tw_buf_init(&all, SIZE_MAX / 2);
	for (uint32_t i = 0; i < 500000; i++)
		assert_int_equal(tw_buf_add_u32le(&all, i * i >> 7), TW_OK);
	for (unsigned i = 0; i < 6; i++) {
		const bool zstd = i & 1;
		struct source source = {&all, 0};
		struct tw_arena *a = tw_arena_new(64 << 20);
		enum tw_unzip_end end = TW_UNZIP_DAMAGED;
		static uint8_t piece[50001];
		struct tw_unzip *u;
		struct tw_pull pull;
		struct tw_buf packed, back;
		size_t n = 0;

		tw_parallel_set_cores(1 + i / 2);
		tw_buf_init(&packed, SIZE_MAX / 2);
		tw_buf_init(&back, SIZE_MAX / 2);
		u = tw_unzip_new(a, &limits, add_bytes, &back);
		assert_int_equal(
		        tw_compress_open((struct tw_pull){read_source, free_source, &source},
		                zstd ? TW_PERFETTO_ZSTD : TW_PERFETTO_GZIP, &pull, NULL),
		        TW_OK);
		do {
			assert_int_equal(pull.read(pull.arg, piece, sizeof piece, &n, NULL), TW_OK);
			if (n)
				assert_int_equal(tw_buf_add(&packed, piece, n), TW_OK);
		} while (n);
		assert_int_equal(tw_unzip_push(u, packed.data, packed.len, NULL), TW_OK);
		assert_int_equal(tw_unzip_finish(u, &end, NULL), TW_OK);
		assert_int_equal(end, TW_UNZIP_COMPLETE);
		assert_string_equal(tw_unzip_kinds(u), zstd ? "zstd" : "gzip");
		assert_true(back.len == all.len && memcmp(back.data, all.data, all.len) == 0);
		assert_in_range(packed.len, 1, all.len - 1);
		if (!zstd) /* the size that the only member states */
			assert_int_equal(tw_u32le(packed.data + packed.len - 4), all.len);
		pull.free(pull.arg);
		tw_unzip_free(u);
		tw_arena_free(a);
		tw_buf_done(&packed);
		tw_buf_done(&back);
	}
	tw_parallel_set_cores(0);
	tw_buf_done(&all);
}

/* --- lack of memory --- */

static void test_no_memory(void **state)
{
	const struct tw_perfetto_options forms[] = {{0}, {.form = TW_PERFETTO_TAR},
	        {.compression = TW_PERFETTO_PACKETS}, {.compression = TW_PERFETTO_GZIP},
	        {.compression = TW_PERFETTO_ZSTD}};
	struct system_shape s = merged_usual();
	struct tw_perfetto_source source;
	struct merged x;
	static uint8_t out[1 << 16];

	(void)state;
	s.sdk = true;
	merged_make(&x, &s, 400 * S, 500 * S, &forms[0]);
	source = merged_source(&x);
	for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
		enum tw_status st = TW_NOMEM;

		for (uint64_t fail = 1; st == TW_NOMEM; fail++) {
			struct tw_perfetto *p = NULL;
			size_t n = 1;

			assert_true(fail < 5000);
			tw_mem_fail_at(fail);
			st = tw_perfetto_open(&source, 1, &forms[form], &p, NULL);
			while (st == TW_OK && n)
				st = tw_perfetto_read(p, out, sizeof out, &n, NULL);
			tw_mem_fail_at(0);
			tw_perfetto_close(p);
		}
		assert_int_equal(st, TW_OK);
	}
	merged_done(&x);
}

/* --- a real one --- */

static bool on_cpu(const struct perfetto_trace *t, int64_t tid, int64_t ns)
{
	size_t low = 0;
	size_t high = t->n_runs;

	/* by tid, then begin */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct perfetto_run *r = &t->runs[mid];

		if (r->tid < tid || (r->tid == tid && r->begin_ns <= ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && t->runs[low - 1].tid == tid && ns <= t->runs[low - 1].end_ns;
}

static int by_run(const void *pa, const void *pb)
{
	const struct perfetto_run *a = pa;
	const struct perfetto_run *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static int open_sample(const char *name)
{
	int fd = open(unit_sample(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void load(int fd, struct tw_buf *out)
{
	ssize_t n;

	tw_buf_init(out, 64 << 20);
	do {
		assert_int_equal(tw_buf_reserve(out, 1 << 20), TW_OK);
		n = pread(fd, out->data + out->len, 1 << 20, (off_t)out->len);
		assert_true(n >= 0);
		out->len += (size_t)n;
	} while (n);
}

/* Physics: when a method's begin or end is read, its thread is on a CPU. */
static void test_sample(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct tw_limits limits = tw_limits_default();
	struct tw_perfetto_source source;
	struct merged x = {0};
	struct tw_builder *b;
	struct tw_decoder *d;
	struct tw_arena *a;
	struct tw_buf upload;
	size_t all = 0, inside = 0;
	int fd;

	(void)state;
	fd = open_sample("merge/javac-and-kernel/rhea-atrace.bin.zst");
	x.fd = open_sample("merge/javac-and-kernel/system.perfetto-trace");
	x.arena = tw_arena_new((size_t)2 << 30);
	b = tw_builder_new(&limits);
	a = tw_arena_new(limits.max_memory_bytes);
	assert_non_null(b);
	d = tw_decoder_new(a, &limits, NULL, "trace", tw_builder_sink(b));
	assert_non_null(d);
	load(fd, &upload);
	load(x.fd, &x.system);
	assert_int_equal(tw_decoder_push(d, upload.data, upload.len, NULL), TW_OK);
	assert_int_equal(tw_decoder_finish(d, NULL), TW_OK);
	tw_decoder_free(d);
	assert_int_equal(trace_fixture_write(&x.f, b), TW_OK);
	source = merged_source(&x);
	merged_export(&x.bytes, &source, 1, &o, 1 << 20);
	merged_read(&x, &x.trace, &x.bytes);
	merged_read(&x, &x.alone, &x.system);
	assert_int_equal(perfetto_errors(&x.trace), perfetto_errors(&x.alone));
	merged_same_packets(&x);
	qsort(x.trace.runs, x.trace.n_runs, sizeof *x.trace.runs, by_run);
	for (size_t i = 0; i < x.trace.n; i++) {
		const struct perfetto_slice *s = &x.trace.slices[i];

		if (!merged_is_call(s))
			continue;
		all += 2;
		inside += on_cpu(&x.trace, s->tid, s->begin_ns);
		inside += on_cpu(&x.trace, s->tid, s->end_ns);
	}
	print_message("# %zu of %zu instants are where the thread runs\n", inside, all);
	assert_int_equal(all, 663788);
	assert_true((double)inside >= 0.995 * (double)all);
	(void)close(fd);
	(void)close(x.fd);
	tw_buf_done(&upload);
	tw_buf_done(&x.system);
	tw_buf_done(&x.bytes);
	trace_fixture_done(&x.f);
	tw_arena_free(x.arena);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_sample),
};

UNIT_TESTS("perfetto_forms", tests)
