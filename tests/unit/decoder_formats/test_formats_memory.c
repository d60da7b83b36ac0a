/* Every golden case of every format when memory runs out, and when the sink does: each allocation
 * and each call of the sink that can fail, in turn, ends the decode with that status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "decoder/bundle.h"
#include "decoder/formats/sinks/null_sink.h"
#include "tests/unit/unit.h"

enum { MOST_BYTES = 1 << 20, PATH_BYTES = 4096, MOST_RUNS = 100000 };

static uint8_t input[MOST_BYTES];
static size_t n_input;

/* --- a sink that fails at the n-th call --- */

struct weak_sink {
	struct tw_sink sink; /* first */
	uint64_t calls, fails_at;
};

static enum tw_status answer(struct tw_sink *s, struct tw_err *err)
{
	struct weak_sink *w = (struct weak_sink *)(void *)s;

	w->calls++;
	return w->calls == w->fails_at ? tw_fail(err, TW_FULL, "no room") : TW_OK;
}

static enum tw_status weak_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	(void)ev, (void)n;
	return answer(s, err);
}

static enum tw_status weak_note(struct tw_sink *s, const struct tw_note *n, struct tw_err *err)
{
	(void)n;
	return answer(s, err);
}

static enum tw_status weak_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	(void)kind, (void)json;
	return answer(s, err);
}

/* --- runs --- */

static enum tw_status feed(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	(void)arg;
	return push(to, input, n_input, err);
}

static enum tw_status run_bundle(struct tw_arena *a, struct tw_sink *sink, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_bundle_task task = {.feed = feed, .arena = a, .limits = &limits, .sink = sink};
	const struct tw_format *format;
	uint64_t bytes;

	return tw_bundle_decode(&task, &format, &bytes, err);
}

static enum tw_status run_chain(
        struct tw_arena *a, const struct tw_format *f, struct tw_sink *sink, struct tw_err *err)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_decoder *d = tw_decoder_new(a, &limits, f, NULL, sink);
	enum tw_status st = d ? tw_decoder_push(d, input, n_input, err) : TW_NOMEM;

	if (st == TW_OK)
		st = tw_decoder_finish(d, err);
	(void)tw_decoder_free(d);
	return st;
}

/* As if format f were forced. */
static enum tw_status run(const struct tw_format *f, struct weak_sink *w)
{
	struct tw_arena *a = tw_arena_new((size_t)1 << 30);
	struct tw_sink nothing = tw_null_sink();
	struct tw_sink_ops ops = *nothing.ops;
	struct tw_err err = {0};
	enum tw_status st = TW_NOMEM;

	ops.events = weak_events;
	ops.note = weak_note;
	ops.document = weak_document;
	w->sink.ops = &ops;
	w->calls = 0;
	if (a)
		st = strcmp(f->name, "bundle") == 0 ? run_bundle(a, &w->sink, &err)
		                                    : run_chain(a, f, &w->sink, &err);
	tw_arena_free(a);
	return st;
}

static void starve(const struct tw_format *f, const char *name)
{
	struct weak_sink w = {.fails_at = 0};
	enum tw_status whole = run(f, &w);
	uint64_t asked;

	assert_int_not_equal(whole, TW_NOMEM);
	for (uint64_t at = 1; at < MOST_RUNS; at++) {
		enum tw_status st;

		tw_mem_fail_at(at);
		st = run(f, &w);
		asked = tw_mem_count();
		tw_mem_fail_at(0);
		if (asked < at) {
			assert_int_equal(st, whole);
			return;
		}
		if (st != TW_NOMEM)
			fail_msg("%s: without allocation %llu: %s", name, (unsigned long long)at,
			        tw_status_name(st));
	}
	fail_msg("%s: there is no end of allocations", name);
}

static void refuse(const struct tw_format *f, const char *name)
{
	struct weak_sink w = {.fails_at = 0};
	uint64_t all;

	(void)run(f, &w);
	all = w.calls;
	for (uint64_t at = 1; at <= all; at += 1 + at / 16) {
		enum tw_status st;

		w.fails_at = at;
		st = run(f, &w);
		if (st != TW_FULL || w.calls != at)
			fail_msg("%s: the sink's answer %llu of %llu became %s after %llu", name,
			        (unsigned long long)at, (unsigned long long)all, tw_status_name(st),
			        (unsigned long long)w.calls);
	}
}

static void read_case(const char *format, const char *name, char path[PATH_BYTES])
{
	const char *root = getenv("TW_SOURCE_ROOT");
	FILE *f;

	(void)snprintf(
	        path, PATH_BYTES, "%s/tests/golden/%s/%s/input", root ? root : ".", format, name);
	f = fopen(path, "rbe");
	assert_non_null(f);
	n_input = fread(input, 1, sizeof input, f);
	(void)fclose(f);
	assert_in_range(n_input, 1, sizeof input - 1);
}

static void each_case(void (*check)(const struct tw_format *f, const char *name))
{
	static const char *const cases[] = {"minimal", "realistic", "truncated", "garbage"};
	size_t n_formats;
	const struct tw_format *const *formats = tw_formats(&n_formats);

	for (size_t i = 0; i < n_formats; i++)
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
			char path[PATH_BYTES];

			read_case(formats[i]->name, cases[k], path);
			check(formats[i], path);
		}
}

static void test_memory(void **state)
{
	(void)state;
	each_case(starve);
}

static void test_sink(void **state)
{
	(void)state;
	each_case(refuse);
}

/* Decompressors allocate memory after the data has begun to arrive. */
static void test_compressed(void **state)
{
	static uint8_t packed[MOST_BYTES];
	z_stream z = {.next_in = input};
	char path[PATH_BYTES];
	size_t n;

	(void)state;
	read_case("atrace", "realistic", path);
	n = ZSTD_compress(packed, sizeof packed, input, n_input, 3);
	assert_false(ZSTD_isError(n));
	z.avail_in = (uInt)n_input;
	z.next_out = packed + n;
	z.avail_out = (uInt)(sizeof packed - n);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	memcpy(input, packed, n_input = n);
	starve(tw_format_by_name(TW_STR("atrace")), "zstd");
	memcpy(input, packed + n, n_input = z.total_out);
	starve(tw_format_by_name(TW_STR("atrace")), "gzip");
	(void)deflateEnd(&z);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_sink),
};

UNIT_TESTS("formats_memory", tests)
