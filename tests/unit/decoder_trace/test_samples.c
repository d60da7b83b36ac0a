/* Complete real recordings next to the source tree, decoded: every number of their expected.json
 * must match. Skipped with a message if they are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/unzip.h"
#include "decoder/decoder.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/symbols/method_map.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

struct sample {
	json_t *expected;
	struct tw_buf trace, threads, mapping_text;
	struct trace_log log;
	struct tw_buf image;
	struct tw_map map;
};

static bool read_all(const char *folder, const char *name, struct tw_buf *ret)
{
	char path[4096];
	FILE *f;
	size_t n;

	tw_buf_init(ret, 512 << 20);
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "rbe");
	if (!f)
		return false;
	do {
		assert_int_equal(tw_buf_reserve(ret, 1 << 20), TW_OK);
		n = fread(ret->data + ret->len, 1, 1 << 20, f);
		ret->len += n;
	} while (n);
	(void)fclose(f);
	return true;
}

static void decode_part(struct tw_sink *sink, const char *part, const struct tw_buf *bytes)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_decoder *d = tw_decoder_new(a, &limits, NULL, part, sink);

	assert_non_null(d);
	assert_int_equal(tw_decoder_push(d, bytes->data, bytes->len, NULL), TW_OK);
	assert_int_equal(tw_decoder_finish(d, NULL), TW_OK);
	tw_decoder_free(d);
	tw_arena_free(a);
}

static enum tw_status to_buf(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

static void unzip_to(const struct tw_buf *in, struct tw_buf *out)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_unzip *z = tw_unzip_new(a, &limits, to_buf, out);
	enum tw_unzip_end end;

	tw_buf_init(out, 256 << 20);
	assert_int_equal(tw_unzip_push(z, in->data, in->len, NULL), TW_OK);
	assert_int_equal(tw_unzip_finish(z, &end, NULL), TW_OK);
	assert_int_equal(end, TW_UNZIP_COMPLETE);
	tw_unzip_free(z);
	tw_arena_free(a);
}

static void open_mapping(struct sample *s, const struct tw_buf *zipped)
{
	struct tw_map_writer *w = tw_map_writer_new(256 << 20, 4 << 20);
	struct tw_map_stats stats;

	unzip_to(zipped, &s->mapping_text);
	tw_buf_init(&s->image, 256 << 20);
	assert_int_equal(
	        tw_map_writer_push(w, s->mapping_text.data, s->mapping_text.len, NULL), TW_OK);
	assert_int_equal(tw_map_writer_finish(w, &s->image, &stats, NULL), TW_OK);
	assert_int_equal(stats.malformed, 0);
	tw_map_writer_free(w);
	assert_int_equal(tw_map_open(s->image.data, s->image.len, &s->map, NULL), TW_OK);
}

/* False when the sample is not there. */
static bool load(struct sample *s, const char *folder)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b;
	struct tw_buf mapping;
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/expected.json", folder);
	s->expected = json_load_file(path, 0, NULL);
	if (!s->expected)
		return false;
	assert_true(read_all(folder, "rhea-atrace.bin.zst", &s->trace));
	assert_true(read_all(folder, "threads.txt", &s->threads));
	assert_true(read_all(folder, "methodMapping.txt.zst", &mapping));
	open_mapping(s, &mapping);
	tw_buf_done(&mapping);
	b = tw_builder_new(&limits);
	assert_non_null(b);
	decode_part(tw_builder_sink(b), "trace", &s->trace);
	decode_part(tw_builder_sink(b), "threads", &s->threads);
	trace_log_init(&s->log);
	assert_int_equal(tw_builder_write(b, &s->log.out, NULL), TW_OK);
	tw_builder_free(b);
	return true;
}

static void unload(struct sample *s)
{
	json_decref(s->expected);
	tw_buf_done(&s->trace);
	tw_buf_done(&s->threads);
	tw_buf_done(&s->mapping_text);
	tw_buf_done(&s->image);
	trace_log_done(&s->log);
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void check_threads(const struct sample *s)
{
	json_t *threads = json_object_get(s->expected, "threads");
	const json_t *roots = json_object_get(s->expected, "roots");
	const char *tid;
	json_t *n;
	size_t with_slices = 0;

	for (size_t i = 0; i < s->log.n_threads; i++)
		with_slices += s->log.threads[i].slices > 0;
	assert_int_equal(with_slices, json_object_size(threads));
	json_object_foreach(threads, tid, n)
	{
		uint64_t number_of;
		const struct tw_thread_info *t;

		assert_true(tw_str_u64(tw_str_of(tid), UINT32_MAX, &number_of));
		t = trace_log_thread(&s->log, number_of);
		assert_non_null(t);
		assert_int_equal(t->slices, json_integer_value(n));
		assert_int_equal(t->roots, number(roots, tid));
		assert_true(t->name.len > 0);
	}
}

/* Overloads share a display name, so each row must be met by one of the methods of its name. */
static void check_methods(const struct sample *s)
{
	const json_t *rows = json_object_get(s->expected, "top_self");

	assert_true(json_array_size(rows) > 10);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *name = json_string_value(json_array_get(row, 0));
		json_int_t want[3];
		bool met = false;

		for (size_t k = 0; k < 3; k++)
			want[k] = json_integer_value(json_array_get(row, k + 1));
		for (size_t m = 0; m < s->log.n_methods && !met; m++) {
			const struct tw_method_info *got = &s->log.methods[m];
			char text[4096];

			met = (json_int_t)got->count == want[0] && got->sum_ns == want[1] &&
			      got->self_ns == want[2] &&
			      tw_map_display(&s->map, got->id, text, sizeof text) &&
			      strcmp(text, name) == 0;
		}
		if (!met)
			fail_msg("%s is not what expected.json says", name);
	}
}

static void check_sample(const char *name)
{
	struct sample s = {0};
	char folder[2048];
	int64_t busy = 0, self = 0;

	(void)snprintf(folder, sizeof folder, "%s", unit_sample(name));
	assert_true(load(&s, folder));
	assert_int_equal(s.log.info.slices, number(s.expected, "records"));
	assert_int_equal(s.log.info.pid, number(s.expected, "pid"));
	assert_int_equal(s.log.info.max_depth, number(s.expected, "max_depth"));
	assert_int_equal(s.log.info.methods, number(s.expected, "methods"));
	check_threads(&s);
	check_methods(&s);
	for (size_t i = 0; i < s.log.n_methods; i++)
		self += s.log.methods[i].self_ns;
	for (size_t i = 0; i < s.log.n_threads; i++)
		busy += s.log.threads[i].busy_ns;
	assert_int_equal(self, busy);
	assert_int_equal(s.log.repairs[TW_REPAIR_overlap_clipped], 0);
	assert_int_equal(s.log.repairs[TW_REPAIR_depth_clipped], 0);
	unload(&s);
}

static void test_single(void **state)
{
	(void)state;
	check_sample("btrace2/javac-single");
}

static void test_parallel(void **state)
{
	(void)state;
	check_sample("btrace2/javac-parallel");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_parallel),
};

UNIT_TESTS("samples", tests)
