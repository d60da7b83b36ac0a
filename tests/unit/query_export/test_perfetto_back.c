/* What is exported for Perfetto comes back as the trace it was: threads, calls, names and call
 * trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/decoder.h"
#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/export/perfetto/export_perfetto.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

static void export_all(struct tw_trace_file *file, struct tw_buf *out)
{
	const struct tw_perfetto_source source = {.file = file,
	        .sel = {.all_threads = true},
	        .facts = {"id", "a.b:c", "a.b", "1", "b", "d", "", "u", ""},
	        .system_fd = -1};
	const struct tw_perfetto_options plain = {0};
	struct tw_perfetto *x = NULL;
	size_t n;

	tw_buf_init(out, 256 << 20);
	assert_int_equal(tw_perfetto_open(&source, 1, &plain, &x, NULL), TW_OK);
	do {
		assert_int_equal(tw_buf_reserve(out, 1 << 16), TW_OK);
		assert_int_equal(
		        tw_perfetto_read(x, out->data + out->len, 1 << 16, &n, NULL), TW_OK);
		out->len += n;
	} while (n);
	assert_null(tw_perfetto_close(x));
}

/* Decodes bytes in pieces of `step` into a trace file of their own. */
static void decode(struct trace_fixture *f, const void *p, size_t n, size_t step)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	struct tw_decoder *d;

	assert_non_null(b);
	assert_non_null(a);
	d = tw_decoder_new(a, &limits, NULL, "trace", tw_builder_sink(b));
	assert_non_null(d);
	for (size_t at = 0; at < n; at += step)
		assert_int_equal(tw_decoder_push(d, (const uint8_t *)p + at,
		                         step < n - at ? step : n - at, NULL),
		        TW_OK);
	assert_int_equal(tw_decoder_finish(d, NULL), TW_OK);
	tw_decoder_free(d);
	tw_arena_free(a);
	assert_int_equal(trace_fixture_write(f, b), TW_OK);
}

/* --- call trees as lists of paths --- */

struct path {
	uint64_t hash; /* of the names on it */
	uint64_t count;
	int64_t total_ns, self_ns;
};

static int by_hash(const void *pa, const void *pb)
{
	const struct path *a = pa;
	const struct path *b = pb;

	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static uint64_t hash_name(uint64_t h, const struct trace_fixture *f, uint32_t method)
{
	const struct tw_method_info *m = &f->methods[method];
	char unknown[40];
	struct tw_str name = m->name;

	if (m->has_id && !name.len) {
		(void)snprintf(unknown, sizeof unknown, "unknown:%llu", (unsigned long long)m->id);
		name = tw_str_of(unknown);
	}
	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (unsigned char)name.ptr[i]) * 0x100000001B3u;
	return (h ^ '/') * 0x9E3779B97F4A7C15u;
}

static struct path *paths_of(
        struct trace_fixture *f, uint32_t thread_id, struct tw_arena *a, uint32_t *ret_n)
{
	struct tw_tree t;
	struct path *paths;

	assert_int_equal(tw_trace_file_tree(f->file, thread_id, a, &t, NULL), TW_OK);
	paths = tw_arena_zalloc(a, t.n, sizeof *paths);
	assert_non_null(paths);
	for (uint32_t i = 0; i < t.n; i++) {
		const struct tw_tree_node *node = &t.nodes[i];

		paths[i] = (struct path){7, node->count, node->total_ns, node->self_ns};
		if (i)
			paths[i].hash = hash_name(paths[node->parent].hash, f, node->method);
	}
	*ret_n = t.n;
	return paths;
}

static void same_tree(
        struct trace_fixture *a, uint32_t thread_a, struct trace_fixture *b, uint32_t thread_b)
{
	struct tw_arena *arena = tw_arena_new((size_t)1 << 30);
	uint32_t n;
	uint32_t m;
	struct path *p = paths_of(a, thread_a, arena, &n);
	struct path *q = paths_of(b, thread_b, arena, &m);

	assert_int_equal(n, m);
	qsort(p, n, sizeof *p, by_hash);
	qsort(q, n, sizeof *q, by_hash);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(p[i].hash, q[i].hash);
		assert_int_equal(p[i].count, q[i].count);
		assert_int_equal(p[i].total_ns, q[i].total_ns);
		assert_int_equal(p[i].self_ns, q[i].self_ns);
	}
	tw_arena_free(arena);
}

static const struct tw_thread_info *find(
        const struct tw_thread_info *list, uint32_t n, uint64_t tid)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].tid == tid)
			return &list[i];
	return NULL;
}

static void same_trace(struct trace_fixture *was, struct trace_fixture *is)
{
	uint32_t n;
	uint32_t m;
	const struct tw_thread_info *a = tw_trace_file_threads(was->file, &n);
	const struct tw_thread_info *b = tw_trace_file_threads(is->file, &m);
	const struct tw_trace_info *i = tw_trace_file_info(was->file);
	const struct tw_trace_info *j = tw_trace_file_info(is->file);
	uint32_t with_calls = 0;

	for (uint32_t t = 0; t < n; t++) {
		const struct tw_thread_info *got = find(b, m, a[t].tid);

		if (a[t].slices == 0)
			continue;
		with_calls++;
		assert_non_null(got);
		assert_int_equal(got->pid, a[t].pid ? a[t].pid : i->pid);
		assert_true(got->source == TW_SOURCE_CALLS);
		assert_int_equal(got->slices, a[t].slices);
		assert_int_equal(got->roots, a[t].roots);
		assert_int_equal(got->max_depth, a[t].max_depth);
		assert_int_equal(got->busy_ns, a[t].busy_ns);
		assert_int_equal(got->is_main, a[t].is_main);
		if (a[t].name.len)
			assert_true(tw_str_eq(got->name, a[t].name));
		same_tree(was, a[t].thread_id, is, got->thread_id);
	}
	assert_int_equal(m, with_calls);
	assert_int_equal(i->slices, j->slices);
	assert_int_equal(i->methods, j->methods);
	assert_int_equal(i->pid, j->pid);
	assert_int_equal(i->start_ns + i->boot_base_ns, j->start_ns + j->boot_base_ns);
	assert_int_equal(i->end_ns - i->start_ns, j->end_ns - j->start_ns);
	(void)tw_trace_file_repairs(is->file, &n);
	assert_int_equal(n, 0);
}

static void test_made_up(void **state)
{
	static const size_t steps[] = {1, 37, 4096, 1 << 20};

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		const struct model_shape shape = {
		        seed * 7, (uint32_t)seed, seed == 4 ? 30000 : 300, 40, false};
		struct tw_limits limits = tw_limits_default();
		struct tw_builder *b = tw_builder_new(&limits);
		struct tw_sink *s;
		struct trace_fixture was;
		struct trace_fixture is;
		struct tw_buf bytes;
		struct model m;

		assert_non_null(b);
		s = tw_builder_sink(b);
		model_make(&m, &shape);
		s->ops->thread_name(s, MODEL_PID, MODEL_PID, TW_STR("main"));
		assert_int_equal(model_emit(&m, s, MODEL_RECORDS, NULL), TW_OK);
		assert_int_equal(trace_fixture_write(&was, b), TW_OK);
		export_all(was.file, &bytes);
		decode(&is, bytes.data, bytes.len, steps[seed - 1]);
		same_trace(&was, &is);
		tw_buf_done(&bytes);
		trace_fixture_done(&is);
		trace_fixture_done(&was);
		model_done(&m);
	}
}

static void test_sample(void **state)
{
	FILE *f = fopen(unit_sample("merge/javac-and-kernel/rhea-atrace.bin.zst"), "rb");
	struct trace_fixture was;
	struct trace_fixture is;
	struct tw_buf bytes;
	uint8_t *p = malloc(16 << 20);
	size_t n;

	(void)state;
	assert_non_null(p);
	assert_non_null(f);
	n = fread(p, 1, 16 << 20, f);
	(void)fclose(f);
	decode(&was, p, n, 1 << 20);
	export_all(was.file, &bytes);
	decode(&is, bytes.data, bytes.len, 1 << 20);
	assert_int_equal(tw_trace_file_info(is.file)->slices, 331894);
	same_trace(&was, &is);
	tw_buf_done(&bytes);
	trace_fixture_done(&is);
	trace_fixture_done(&was);
	free(p);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_up),
        cmocka_unit_test(test_sample),
};

UNIT_TESTS("perfetto_back", tests)
