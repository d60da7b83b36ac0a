/* Input offsets of the first case of each repair that the builder makes when it writes: calls that
 * overlap without nesting, that are out of order, that are too deep; and of names, which come
 * before what bears them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

struct call {
	int64_t start_ns, dur_ns;
	uint64_t offset;
};

/* The log of one thread's calls; free it with trace_log_done. */
static void build_as(bool any_order, const struct call *calls, size_t n, struct trace_log *log)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);

	trace_log_init(log);
	for (size_t i = 0; i < n; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE, .cpu_ns = -1, .any_order = any_order};

		ev.ts_ns = calls[i].start_ns;
		ev.dur_ns = calls[i].dur_ns;
		ev.offset = calls[i].offset;
		ev.track = s->ops->track(s, 1, 7, TW_TID_FULL);
		ev.sym = s->ops->method(s, i + 1);
		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
	}
	assert_int_equal(tw_builder_write(b, &log->out, NULL), TW_OK);
	(void)tw_builder_free(b);
}

static void build(const struct call *calls, size_t n, struct trace_log *log)
{
	build_as(false, calls, n, log);
}

static void is_reported(const struct call *calls, size_t n, uint64_t count, uint64_t offset)
{
	struct trace_log log;

	build(calls, n, &log);
	assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], count);
	if (count)
		assert_true(log.first_offsets[TW_REPAIR_overlap_clipped] == offset);
	trace_log_done(&log);
}

#define REPORTED(count, offset, ...)                                                               \
	do {                                                                                       \
		static const struct call calls[] = {__VA_ARGS__};                                  \
		is_reported(calls, sizeof calls / sizeof *calls, count, offset);                   \
	} while (0)

static void test_offsets(void **state)
{
	(void)state;
	/* ends rise: detected while subtrees are measured, after some that nest */
	REPORTED(1, 96, {1, 2, 32}, {0, 10, 48}, {20, 10, 64}, {25, 2, 80}, {25, 10, 96});
	REPORTED(2, 48, {0, 10, 32}, {5, 10, 48}, {8, 20, 64});
	/* out of order: by place in the input, whatever the time */
	REPORTED(2, 32, {25, 10, 32}, {20, 10, 48}, {0, 10, 64}, {5, 10, 80});
	REPORTED(2, 48, {20, 10, 32}, {5, 10, 48}, {0, 10, 64}, {25, 10, 80});
	/* no overlap: an outer call that was written before its inner one */
	REPORTED(0, 0, {0, 10, 32}, {5, 5, 48});
	/* the same end, written too early, and after it one that overlaps */
	REPORTED(1, 80, {0, 10, 32}, {5, 5, 48}, {20, 10, 64}, {25, 10, 80});
	/* above the largest stored offset */
	REPORTED(1, TW_NO_OFFSET, {0, 10, 32}, {5, 10, UINT64_C(1) << 32});
	REPORTED(1, UINT32_MAX - 1, {0, 10, 32}, {5, 10, UINT32_MAX - 1});
	REPORTED(1, TW_NO_OFFSET, {0, 10, 32}, {5, 10, TW_NO_OFFSET});
}

/* Sorted events are reported where they were out of order; merely split ones were in order. */
static void test_order(void **state)
{
	static const struct call falling[] = {{20, 10, 32}, {0, 10, 48}, {40, 1, 64}, {30, 1, 80}};
	static const struct call outer_first[] = {{0, 10, 32}, {5, 5, 48}};
	static const struct call overlapping[] = {{0, 10, 32}, {5, 10, 48}};
	struct trace_log log;

	(void)state;
	build(falling, 4, &log);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored], 4);
	assert_int_equal(log.first_offsets[TW_REPAIR_order_restored], 48);
	trace_log_done(&log);
	build(outer_first, 2, &log);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored], 2);
	assert_int_equal(log.first_offsets[TW_REPAIR_order_restored], 48);
	trace_log_done(&log);
	build(overlapping, 2, &log);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored], 0);
	assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], 1);
	trace_log_done(&log);
}

/* Calls nest the same, and no order was broken that the format never promised. */
static void test_any_order(void **state)
{
	static const struct call calls[] = {{0, 100, 32}, {10, 50, 48}, {10, 5, 64}, {70, 40, 80}};
	struct trace_log kept;
	struct trace_log any;
	struct tw_slice *a;
	struct tw_slice *b;
	size_t n_a;
	size_t n_b;

	(void)state;
	build(calls, 4, &kept);
	build_as(true, calls, 4, &any);
	a = trace_log_slices(&kept, 1, 0, &n_a);
	b = trace_log_slices(&any, 1, 0, &n_b);
	assert_true(n_a == 4 && n_b == 4);
	for (size_t i = 0; i < 4; i++) {
		assert_true(a[i].start_ns == b[i].start_ns && a[i].dur_ns == b[i].dur_ns);
		assert_true(a[i].method == b[i].method && a[i].depth == b[i].depth);
	}
	assert_int_equal(kept.repairs[TW_REPAIR_order_restored], 4);
	assert_int_equal(any.repairs[TW_REPAIR_order_restored], 0);
	assert_int_equal(any.repairs[TW_REPAIR_overlap_clipped], 1); /* the last */
	trace_log_done(&kept);
	trace_log_done(&any);
}

enum { DEPTH = 4, TOO_DEEP = 3 };

static struct tw_limits shallow(void)
{
	struct tw_limits l = tw_limits_default();

	l.max_depth = DEPTH;
	l.max_name_bytes = 8;
	return l;
}

static void tell(struct tw_sink *s, uint64_t tid, const struct call *call, uint32_t sym)
{
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = call->start_ns,
	        .dur_ns = call->dur_ns,
	        .cpu_ns = -1,
	        .offset = call->offset,
	        .track = s->ops->track(s, 1, tid, TW_TID_FULL),
	        .sym = sym};

	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

/* The first that was left out, of whichever thread, is the first in the input. */
static void check_too_deep(bool ordered)
{
	const struct tw_limits l = shallow();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t sym = s->ops->method(s, 1);
	struct trace_log log;

	trace_log_init(&log);
	if (!ordered)
		tell(s, 7, &(struct call){900, 1, 16}, sym);
	for (int i = DEPTH + TOO_DEEP; i > 0; i--) /* written from the inner to the outer */
		tell(s, 7, &(struct call){i, 100 - 2 * i, 1000 - (uint64_t)i}, sym);
	for (int i = DEPTH + 1; i > 0; i--) /* fewer, so reported later, but earlier in the input */
		tell(s, 8, &(struct call){i, 100 - 2 * i, 500 - (uint64_t)i}, sym);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.repairs[TW_REPAIR_depth_clipped], TOO_DEEP + 1);
	assert_int_equal(log.first_offsets[TW_REPAIR_depth_clipped], 500 - DEPTH - 1);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored] > 0, !ordered);
	(void)tw_builder_free(b);
	trace_log_done(&log);
}

static void test_too_deep(void **state)
{
	(void)state;
	check_too_deep(true);
	check_too_deep(false);
}

/* The first event with a truncated or dropped name records its offset. */
static void test_names(void **state)
{
	const struct tw_limits l = shallow();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t good = s->ops->name(s, TW_STR("as it is"));
	uint32_t cut = s->ops->name(s, TW_STR("as it is not"));
	struct trace_log log;

	(void)state;
	assert_int_equal(good, cut);
	cut = s->ops->name(s, TW_STR("another one"));
	(void)s->ops->name(s, TW_STR("yet another one"));
	tell(s, 7, &(struct call){0, 1, 32}, s->ops->name(s, TW_STR("short")));
	tell(s, 7, &(struct call){1, 1, 48}, good);
	tell(s, 7, &(struct call){2, 1, 64}, cut);
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.repairs[TW_REPAIR_name_cut], 3);
	assert_int_equal(log.first_offsets[TW_REPAIR_name_cut], 48);
	(void)tw_builder_free(b);
	trace_log_done(&log);
}

static void test_names_without_room(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b;
	struct tw_sink *s;
	struct trace_log log;
	char name[1000];
	uint64_t i = 0;

	(void)state;
	l.max_memory_bytes = 1 << 20;
	b = tw_builder_new(&l);
	s = tw_builder_sink(b);
	memset(name, 'x', sizeof name);
	for (; i < 1000; i++) {
		memcpy(name, &i, sizeof i);
		tell(s, 7, &(struct call){(int64_t)i, 1, 32 + i},
		        s->ops->name(s, (struct tw_str){name, sizeof name}));
	}
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_in_range(log.repairs[TW_REPAIR_name_limit], 1, 999);
	assert_int_equal(log.first_offsets[TW_REPAIR_name_limit],
	        32 + 1000 - log.repairs[TW_REPAIR_name_limit]);
	(void)tw_builder_free(b);
	trace_log_done(&log);
}

enum { SORTED = 3000 };

static int64_t draw(uint64_t *state, int64_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(*state >> 33) % below;
}

/* Whether call i is before call k in pre-order, as documented by builder_nest.c. */
static bool is_outer(const struct call *calls, int64_t i, int64_t k)
{
	if (calls[i].start_ns != calls[k].start_ns)
		return calls[i].start_ns < calls[k].start_ns;
	if (calls[i].dur_ns != calls[k].dur_ns)
		return calls[i].dur_ns > calls[k].dur_ns;
	return i > k;
}

/* Inserts one call after another where it belongs; the CPU time of a call is its index. */
static void is_sorted(const struct call *calls, size_t n)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);
	struct trace_log log;
	struct tw_slice *slices;
	int64_t order[SORTED];
	size_t n_slices;

	for (size_t i = 0; i < n; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE, .cpu_ns = (int64_t)i, .any_order = true};
		size_t at = i;

		ev.ts_ns = calls[i].start_ns;
		ev.dur_ns = calls[i].dur_ns;
		ev.track = s->ops->track(s, 1, 7, TW_TID_FULL);
		ev.sym = s->ops->method(s, 1);
		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
		for (; at && is_outer(calls, (int64_t)i, order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = (int64_t)i;
	}
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	(void)tw_builder_free(b);
	slices = trace_log_slices(&log, 1, 0, &n_slices);
	assert_int_equal(n_slices, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(slices[i].cpu_ns, order[i]);
	trace_log_done(&log);
}

/* Sizes around those of the blocks that are merged; times in no order, with many ties, rising with
 * a few out of place, falling, and two rising parts that alternate. */
static void test_sorted(void **state)
{
	static const size_t sizes[] = {2, 7, 8, 9, 16, 17, 63, 64, 65, 1000, SORTED};
	static struct call calls[SORTED];
	uint64_t seed = 11;

	(void)state;
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (int kind = 0; kind < 5; kind++) {
			for (int64_t i = 0; i < (int64_t)sizes[k]; i++) {
				const int64_t starts[] = {draw(&seed, 1 << 30), draw(&seed, 4),
				        draw(&seed, 50) ? 2 * i : draw(&seed, SORTED), SORTED - i,
				        i / 300 % 2 ? i : i + 450};

				calls[i].start_ns = starts[kind];
				calls[i].dur_ns = 100 - draw(&seed, 3);
			}
			calls[sizes[k] - 1] = (struct call){0};
			is_sorted(calls, sizes[k]);
		}
}

/* Calls are nested from the last one, and only the first two overlap, so all others return to the
 * order of their ends. */
static void test_sorted_late(void **state)
{
	enum { GROUPS = 500 };
	static struct call calls[2 + 4 * GROUPS];
	struct call *c = calls;

	(void)state;
	*c++ = (struct call){0, 10};
	*c++ = (struct call){5, 10};
	for (int64_t at = 20; c < calls + sizeof calls / sizeof *calls; at += 10) {
		*c++ = (struct call){at + 2, 1};
		*c++ = (struct call){at + 1, 3};
		*c++ = (struct call){at + 5, 1};
		*c++ = (struct call){at, 8};
	}
	is_sorted(calls, sizeof calls / sizeof *calls);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_sorted_late),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_without_room),
};

UNIT_TESTS("builder_nest", tests)
