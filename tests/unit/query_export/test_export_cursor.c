/* Unit tests of a thread's begins and ends in time order, against the model the trace was made of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/base/thread/parallel.h"
#include "server/export/perfetto/export_cursor.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

enum { DEEP = 1024 };

static bool reaches_in(const struct model_slice *s, uint64_t tid, int64_t from, int64_t to)
{
	int64_t end = s->start_ns + s->dur_ns;

	return s->tid == tid && s->start_ns < to && (end > from || (s->dur_ns == 0 && end == from));
}

/* The model's next call of the range, or n. */
static size_t next_call(const struct model *m, size_t at, uint64_t tid, int64_t from, int64_t to)
{
	while (at < m->n && !reaches_in(&m->slices[at], tid, from, to))
		at++;
	return at;
}

static struct tw_read_ahead *ahead; /* NULL: without */
static unsigned n_ahead;

static void read_ahead(struct tw_cursor *c)
{
	if (!ahead || tw_read_ahead_is_busy(ahead) || !tw_cursor_wants_ahead(c))
		return;
	tw_read_ahead_start(ahead, c);
	n_ahead += c->ahead != NULL;
}

/* Follows a cursor with a stack of the model's calls: same order, same cut times. */
static void same_edges(const struct model *m, const struct trace_fixture *f, uint64_t tid,
        int64_t from, int64_t to)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f->file, &n);
	const struct model_slice *open[DEEP];
	struct tw_cursor c;
	size_t depth = 0;
	size_t at = next_call(m, 0, tid, from, to);
	int64_t last = INT64_MIN;

	while (t->tid != tid)
		t++;
	assert_int_equal(
	        tw_cursor_open_range(&c, f->file, t->thread_id, DEEP, from, to, NULL), TW_OK);
	while (!c.done) {
		struct tw_edge e;
		int64_t reported = c.next_ns;

		read_ahead(&c);
		assert_int_equal(tw_cursor_next(&c, &e, NULL), TW_OK);
		assert_true(e.ts_ns == reported && e.ts_ns >= last);
		last = e.ts_ns;
		if (e.begin) {
			const struct model_slice *s = &m->slices[at];

			assert_true(at < m->n && s->depth == depth);
			assert_true(e.ts_ns == (s->start_ns > from ? s->start_ns : from));
			assert_true(f->methods[e.method].id == s->method_id);
			open[depth++] = s;
			at = next_call(m, at + 1, tid, from, to);
		} else {
			const struct model_slice *s = open[--depth];
			int64_t end = s->start_ns + s->dur_ns;

			assert_true(e.ts_ns == (end < to ? end : to));
		}
	}
	assert_int_equal(depth, 0);
	assert_int_equal(at, m->n);
	assert_int_equal(c.clipped, 0);
	tw_cursor_close(&c);
}

static uint64_t rng(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

static void follow(uint64_t seed, uint32_t per_thread, int rounds)
{
	struct model_shape shape = {seed, 2, per_thread, 30, false};
	struct trace_fixture f;
	struct model m;
	int64_t end;

	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	end = tw_trace_file_info(f.file)->end_ns;
	for (int i = 0; i < rounds; i++) {
		/* often at the begin or end of a call, where ties are */
		const struct model_slice *s = &m.slices[rng(&seed) % m.n];
		int64_t a = rng(&seed) % 2 ? s->start_ns : (int64_t)(rng(&seed) % (uint64_t)end);
		int64_t b = rng(&seed) % 2 ? s->start_ns + s->dur_ns
		                           : (int64_t)(rng(&seed) % (uint64_t)end);

		same_edges(&m, &f, MODEL_PID + rng(&seed) % 2, a < b ? a : b, (a < b ? b : a) + 1);
	}
	same_edges(&m, &f, MODEL_PID, INT64_MIN, INT64_MAX);
	same_edges(&m, &f, MODEL_PID, end + 10, INT64_MAX);
	trace_fixture_done(&f);
	model_done(&m);
}

static void test_ranges(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++)
		follow(seed, 400, 40);
}

/* Ranges that begin in a later chunk, below calls open at its start. */
static void test_chunks(void **state)
{
	(void)state;
	follow(77, 3 * TW_CHUNK_SLICES, 12);
}

static void test_read_ahead(void **state)
{
	(void)state;
	tw_parallel_set_cores(2);
	ahead = tw_read_ahead_new();
	assert_non_null(ahead);
	follow(77, 3 * TW_CHUNK_SLICES, 12);
	assert_in_range(n_ahead, 2, 100);
	ahead = tw_read_ahead_free(ahead);
	tw_parallel_set_cores(0);
}

/* A call that is too deep is left out with both ends, and counted if it is in the range. */
static void test_depth(void **state)
{
	struct model_shape shape = {5, 1, 2000, 30, false};
	struct trace_fixture f;
	struct tw_cursor c;
	struct model m;
	size_t begins = 0;
	size_t shallow = 0;

	(void)state;
	model_make(&m, &shape);
	assert_int_equal(trace_fixture_make(&f, &m), TW_OK);
	for (size_t i = 0; i < m.n; i++)
		shallow += m.slices[i].depth < 3;
	assert_int_equal(tw_cursor_open_range(&c, f.file, 1, 3, INT64_MIN, INT64_MAX, NULL), TW_OK);
	while (!c.done) {
		struct tw_edge e;

		assert_int_equal(tw_cursor_next(&c, &e, NULL), TW_OK);
		assert_true(c.depth <= 3);
		begins += e.begin;
	}
	assert_int_equal(begins, shallow);
	assert_int_equal(begins + c.clipped, m.n);
	tw_cursor_close(&c);
	trace_fixture_done(&f);
	model_done(&m);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_read_ahead),
        cmocka_unit_test(test_depth),
};

UNIT_TESTS("export_cursor", tests)
