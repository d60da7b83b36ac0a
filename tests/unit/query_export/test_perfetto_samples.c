/* Real recordings of every format: an independent reader of their Perfetto files finds the calls of
 * their trace files, call by call. */
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

#include "decoder/decoder.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/query/query.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

static void load(const char *name, struct tw_buf *out)
{
	int fd = open(unit_sample(name), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	tw_buf_init(out, 256 << 20);
	do {
		assert_int_equal(tw_buf_reserve(out, 1 << 20), TW_OK);
		n = read(fd, out->data + out->len, 1 << 20);
		assert_true(n >= 0);
		out->len += (size_t)n;
	} while (n);
	(void)close(fd);
}

struct walk {
	const struct merged *x;
	const struct tw_thread_info *t;
	const struct perfetto_slice **found; /* of the thread, by time */
	size_t n, at;
	int64_t base_ns;
};

static bool same(void *arg, const struct tw_slice *s, size_t n)
{
	struct walk *w = arg;

	for (size_t i = 0; i < n; i++) {
		const struct perfetto_slice *got = w->found[w->at];
		const struct tw_method_info *m = &w->x->f.methods[s[i].method];
		char shown[8192];

		if (s[i].depth >= TW_PERFETTO_MAX_DEPTH)
			continue;
		assert_true(w->at < w->n);
		w->at++;
		const struct tw_named what = tw_method_info_named(m);

		(void)tw_names_display(&(struct tw_names){NULL, NULL}, &what, shown, sizeof shown);
		assert_int_equal(got->begin_ns, s[i].start_ns + w->base_ns);
		assert_int_equal(got->end_ns, s[i].start_ns + s[i].dur_ns + w->base_ns);
		assert_int_equal(got->depth, s[i].depth);
		if (!tw_str_eq(got->name, tw_str_of(shown)))
			fail_msg("%s is %.*s", shown, (int)got->name.len, got->name.ptr);
	}
	return true;
}

static void check_thread(
        const struct merged *x, const struct tw_thread_info *t, const struct perfetto_slice **found)
{
	const struct tw_trace_info *i = tw_trace_file_info(x->f.file);
	struct walk w = {.x = x, .t = t, .found = found};

	w.base_ns = i->boot_base_ns >= 0 ? i->boot_base_ns : i->mono_base_ns;
	w.base_ns = w.base_ns > 0 ? w.base_ns : 0;
	for (size_t k = 0; k < x->trace.n; k++)
		if (merged_is_call(&x->trace.slices[k]) &&
		        x->trace.slices[k].tid == (int64_t)t->tid)
			found[w.n++] = &x->trace.slices[k];
	assert_int_equal(
	        tw_query_slices(x->f.file, t->thread_id, 0, INT64_MAX, same, &w, NULL), TW_OK);
	assert_int_equal(w.at, w.n);
}

static size_t check(const char *name)
{
	const struct tw_perfetto_options plain = {0};
	struct tw_limits limits = tw_limits_default();
	struct merged x = {.fd = -1};
	const struct perfetto_slice **found;
	const struct tw_thread_info *t;
	struct tw_perfetto_source s;
	struct tw_builder *b;
	struct tw_decoder *d;
	struct tw_arena *a;
	struct tw_buf upload;
	size_t slices;
	uint32_t n;

	load(name, &upload);
	x.arena = tw_arena_new((size_t)4 << 30);
	b = tw_builder_new(&limits);
	a = tw_arena_new(limits.max_memory_bytes);
	assert_non_null(b);
	d = tw_decoder_new(a, &limits, NULL, "trace", tw_builder_sink(b));
	assert_non_null(d);
	assert_int_equal(tw_decoder_push(d, upload.data, upload.len, NULL), TW_OK);
	assert_int_equal(tw_decoder_finish(d, NULL), TW_OK);
	tw_decoder_free(d);
	assert_int_equal(trace_fixture_write(&x.f, b), TW_OK);
	s = merged_source(&x);
	merged_export(&x.bytes, &s, 1, &plain, 1 << 20);
	merged_read(&x, &x.trace, &x.bytes);
	if (perfetto_errors(&x.trace))
		print_message("# bad %u state %u name %u clock %u track %u deep %u unmatched %u "
		              "late %u two %u\n",
		        x.trace.bad_packets, x.trace.no_state, x.trace.no_name, x.trace.no_clock,
		        x.trace.no_track, x.trace.too_deep, x.trace.unmatched, x.trace.too_late,
		        x.trace.two_threads);
	assert_int_equal(perfetto_errors(&x.trace) - x.trace.two_threads, 0);
	found = tw_arena_alloc(x.arena, x.trace.n + 1, sizeof(void *));
	assert_non_null(found);
	t = tw_trace_file_threads(x.f.file, &n);
	for (uint32_t i = 0; i < n; i++)
		if (t[i].slices)
			check_thread(&x, &t[i], found);
	slices = (size_t)tw_trace_file_info(x.f.file)->slices;
	tw_buf_done(&upload);
	tw_buf_done(&x.bytes);
	trace_fixture_done(&x.f);
	tw_arena_free(x.arena);
	tw_arena_free(a);
	return slices;
}

static void test_samples(void **state)
{
	static const char *const names[] = {"btrace2/javac-single/rhea-atrace.bin.zst",
	        "btrace2/javac-parallel/rhea-atrace.bin.zst",
	        "merge/javac-and-kernel/rhea-atrace.bin.zst",
	        "merge/javac-and-kernel/system.perfetto-trace", "art/basic.trace",
	        "art/basic-api10.trace", "art/exception.trace", "art/art-trace-streaming.trace.gz",
	        "art/v1-streaming-wall.trace", "art/v1-streaming-wall-truncated.trace",
	        "art/v2b-wall.trace", "art/v2b-dual-streaming.trace",
	        "art/v2b-dual-split-block.trace", "sentry/sentry-java-sentry_profile.json",
	        "profilo/override-main-23725-2018-1-16T12-52-49-GeHZavrJSAb.log",
	        "systrace/android_systrace.txt", "systrace/atrace_data",
	        "systrace/compressed_atrace_data.txt", "systrace/decompressed_atrace_data.txt",
	        "systrace/trivial_systrace.html"};
	size_t slices = 0;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = check(names[i]);

		print_message("# %s: %zu\n", names[i], n);
		slices += n;
	}
	assert_true(slices > 2000000);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
};

UNIT_TESTS("perfetto_samples", tests)
