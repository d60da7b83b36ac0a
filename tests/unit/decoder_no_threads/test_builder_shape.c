/* A large trace is shaped in a separate thread: results and failures are the same as without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/no_threads.h"
#include "tests/fixtures/reported.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

/* Two chunks and mip levels of one thread; the least that is worth a thread is a chunk's calls. */
static const struct model_shape large = {11, 2, 66000, 40, false};
/* The same of one thread, for repeated runs. */
static const struct model_shape larger_than_a_chunk = {13, 1, 66000, 40, false};
/* Threads of 30,000 calls down to 750, the smaller of which are not worth waking another thread. */
static const struct model_shape of_many_sizes = {14, 40, 30000, 40, false};

static struct tw_builder *builder_of(const struct model *m, uint32_t max_tree_nodes)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;

	if (max_tree_nodes)
		l.max_tree_nodes = max_tree_nodes;
	b = tw_builder_new(&l);
	assert_non_null(b);
	assert_int_equal(model_emit(m, tw_builder_sink(b), MODEL_RECORDS, NULL), TW_OK);
	return b;
}

/* Free with reported_done. */
static struct reported write_out(struct tw_builder *b)
{
	struct reported t;

	reported_init(&t);
	assert_int_equal(tw_builder_write(b, &t.out, NULL), TW_OK);
	tw_builder_free(b);
	return t;
}

static void same(const struct model *m, uint32_t max_tree_nodes)
{
	uint32_t before = threads_made;
	struct reported beside = write_out(builder_of(m, max_tree_nodes));
	struct reported in_line;

	assert_int_equal(threads_made - before, 1);
	no_threads = true;
	in_line = write_out(builder_of(m, max_tree_nodes));
	no_threads = false;
	assert_int_equal(beside.calls, in_line.calls);
	assert_int_equal(beside.bytes.len, in_line.bytes.len);
	assert_memory_equal(beside.bytes.data, in_line.bytes.data, in_line.bytes.len);
	reported_done(&beside);
	reported_done(&in_line);
}

static void test_same_without(void **state)
{
	struct model m;

	(void)state;
	model_make(&m, &large);
	same(&m, 0);
	same(&m, 1); /* and where trees are full, which is counted */
	model_done(&m);
	model_make(&m, &of_many_sizes);
	same(&m, 0);
	model_done(&m);
}

/* One call below the least that is worth a thread, and the least. */
static void test_small_has_none(void **state)
{
	struct model_shape shape = {12, 1, (1 << 16) - 1, 20, false};

	(void)state;
	for (int more = 0; more < 2; more++, shape.per_thread++) {
		uint32_t before = threads_made;
		struct reported t;
		struct model m;

		model_make(&m, &shape);
		t = write_out(builder_of(&m, 0));
		assert_int_equal(threads_made - before, more);
		reported_done(&t);
		model_done(&m);
	}
}

/* The output may fail: writing ends with that error. */
static void test_refused(void **state)
{
	struct model m;
	bool done = false;

	(void)state;
	model_make(&m, &larger_than_a_chunk);
	for (uint32_t n = 1; !done; n += 1 + n / 8) {
		struct reported t;
		struct tw_builder *b = builder_of(&m, 0);
		struct tw_err err = {0};
		enum tw_status st;

		reported_init(&t);
		t.fail_at = n;
		st = tw_builder_write(b, &t.out, &err);
		done = t.calls < n;
		assert_int_equal(st, done ? TW_OK : TW_FULL);
		assert_int_equal(err.offset, done ? 0 : 5);
		assert_true(done || t.calls == n);
		reported_done(&t);
		tw_builder_free(b);
	}
	model_done(&m);
}

/* Which allocation is the n-th is the threads' own affair, so not every one is tried
 * (test_builder_memory does); that a failure is reported is not. */
static void test_no_memory(void **state)
{
	struct model m;
	bool done = false;

	(void)state;
	model_make(&m, &larger_than_a_chunk);
	for (uint64_t n = 1; !done; n += 1 + n / 8) {
		struct reported t;
		struct tw_builder *b = builder_of(&m, 0);
		enum tw_status st;

		reported_init(&t);
		tw_mem_fail_at(n);
		st = tw_builder_write(b, &t.out, NULL);
		done = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_int_equal(st, done ? TW_OK : TW_NOMEM);
		assert_in_range(n, 1, 2000);
		reported_done(&t);
		tw_builder_free(b);
	}
	model_done(&m);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_without),
        cmocka_unit_test(test_small_has_none),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("builder_shape", tests)
