/* A large trace is shaped in a separate thread: results and failures are the same as without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/no_threads.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

/* Two chunks and mip levels of one thread; the least that is worth a thread is a chunk's calls. */
static const struct model_shape large = {11, 2, 66000, 40, false};
/* The same of one thread, for repeated runs. */
static const struct model_shape larger_than_a_chunk = {13, 1, 66000, 40, false};
/* Threads of 30,000 calls down to 750, the smaller of which are not worth waking another thread. */
static const struct model_shape of_many_sizes = {14, 40, 30000, 40, false};

/* Everything passed to a trace_out, as bytes. */
struct reported {
	struct tw_trace_out out; /* first */
	struct tw_buf bytes;
	uint32_t calls, fail_at; /* the call that fails, 0 none */
};

static enum tw_status tell(
        struct tw_trace_out *out, const void *fact, size_t fact_bytes, struct tw_err *err)
{
	struct reported *t = (struct reported *)(void *)out;

	if (++t->calls == t->fail_at)
		return tw_fail_at(err, TW_FULL, 5, "no room");
	return tw_buf_add(&t->bytes, fact, fact_bytes);
}

static enum tw_status tell_payload(
        struct tw_trace_out *out, const uint8_t *payload, size_t len, struct tw_err *err)
{
	struct reported *t = (struct reported *)(void *)out;

	(void)err;
	return tw_buf_add(&t->bytes, payload, len);
}

static enum tw_status tell_chunk(struct tw_trace_out *out, const struct tw_chunk_info *c,
        const uint8_t *payload, size_t len, struct tw_err *err)
{
	const int64_t facts[] = {
	        c->thread_id, c->level, c->start_ns, c->end_ns, c->slices, c->open, c->min_dur_ns};
	enum tw_status st = tell(out, facts, sizeof facts, err);

	return st == TW_OK ? tell_payload(out, payload, len, err) : st;
}

static enum tw_status tell_tree(struct tw_trace_out *out, uint32_t thread_id,
        const struct tw_tree *tree, struct tw_arena **arena, const uint8_t *payload, size_t len,
        struct tw_err *err)
{
	const uint32_t facts[] = {thread_id, tree->n};
	enum tw_status st = tell(out, facts, sizeof facts, err);

	(void)arena;
	return st == TW_OK ? tell_payload(out, payload, len, err) : st;
}

static enum tw_status tell_thread(
        struct tw_trace_out *out, const struct tw_thread_info *t, struct tw_err *err)
{
	const int64_t facts[] = {t->thread_id, t->pid, (int64_t)t->tid, (int64_t)t->slices,
	        (int64_t)t->roots, t->max_depth, t->start_ns, t->end_ns, t->busy_ns};

	return tell(out, facts, sizeof facts, err);
}

static enum tw_status tell_method(
        struct tw_trace_out *out, const struct tw_method_info *m, struct tw_err *err)
{
	const int64_t facts[] = {(int64_t)m->id, (int64_t)m->count, m->total_ns, m->sum_ns,
	        m->self_ns, m->max_ns, m->cpu_ns};

	return tell(out, facts, sizeof facts, err);
}

static enum tw_status tell_repair(
        struct tw_trace_out *out, const struct tw_repair_count *r, struct tw_err *err)
{
	const uint64_t facts[] = {r->what, r->count, r->first_offset};

	return tell(out, facts, sizeof facts, err);
}

static enum tw_status tell_info(
        struct tw_trace_out *out, const struct tw_trace_info *i, struct tw_err *err)
{
	const int64_t facts[] = {
	        i->start_ns, i->end_ns, (int64_t)i->slices, i->threads, i->methods, i->max_depth};

	return tell(out, facts, sizeof facts, err);
}

static const struct tw_trace_out_ops ops = {.chunk = tell_chunk,
        .tree = tell_tree,
        .thread = tell_thread,
        .method = tell_method,
        .repair = tell_repair,
        .info = tell_info};

static struct tw_builder *builder_of(const struct model *m, uint32_t max_tree_nodes)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;

	if (max_tree_nodes)
		l.max_tree_nodes = max_tree_nodes;
	b = tw_builder_new(&l);
	assert_non_null(b);
	assert_int_equal(model_tell(m, tw_builder_sink(b), MODEL_RECORDS, NULL), TW_OK);
	return b;
}

/* Free with tw_buf_done. */
static struct reported write_out(struct tw_builder *b)
{
	struct reported t = {.out = {&ops}};

	tw_buf_init(&t.bytes, SIZE_MAX / 2);
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
	tw_buf_done(&beside.bytes);
	tw_buf_done(&in_line.bytes);
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
		tw_buf_done(&t.bytes);
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
		struct reported t = {.out = {&ops}, .fail_at = n};
		struct tw_builder *b = builder_of(&m, 0);
		struct tw_err err = {0};
		enum tw_status st;

		tw_buf_init(&t.bytes, SIZE_MAX / 2);
		st = tw_builder_write(b, &t.out, &err);
		done = t.calls < n;
		assert_int_equal(st, done ? TW_OK : TW_FULL);
		assert_int_equal(err.offset, done ? 0 : 5);
		assert_true(done || t.calls == n);
		tw_buf_done(&t.bytes);
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
		struct reported t = {.out = {&ops}};
		struct tw_builder *b = builder_of(&m, 0);
		enum tw_status st;

		tw_buf_init(&t.bytes, SIZE_MAX / 2);
		tw_mem_fail_at(n);
		st = tw_builder_write(b, &t.out, NULL);
		done = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_int_equal(st, done ? TW_OK : TW_NOMEM);
		assert_in_range(n, 1, 2000);
		tw_buf_done(&t.bytes);
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
