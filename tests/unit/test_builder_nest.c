/* Where the first of two calls that overlap without nesting stood in the input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../trace_model.h"
#include "trace/builder.h"

struct call {
	int64_t start_ns, dur_ns;
	uint64_t offset;
};

/* The log of one thread's calls; trace_log_done is owed. */
static void build(const struct call *calls, size_t n, struct trace_log *log)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct tw_sink *s = tw_builder_sink(b);

	trace_log_init(log);
	for (size_t i = 0; i < n; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE, .cpu_ns = -1};

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

static void is_told(const struct call *calls, size_t n, uint64_t count, uint64_t offset)
{
	struct trace_log log;

	build(calls, n, &log);
	assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], count);
	if (count)
		assert_true(log.first_offsets[TW_REPAIR_overlap_clipped] == offset);
	trace_log_done(&log);
}

#define TOLD(count, offset, ...)                                                                   \
	do {                                                                                       \
		static const struct call calls[] = {__VA_ARGS__};                                  \
		is_told(calls, sizeof calls / sizeof *calls, count, offset);                       \
	} while (0)

static void test_offsets(void **state)
{
	(void)state;
	/* ends rise: found while subtrees are measured, behind some that nest */
	TOLD(1, 96, {1, 2, 32}, {0, 10, 48}, {20, 10, 64}, {25, 2, 80}, {25, 10, 96});
	TOLD(2, 48, {0, 10, 32}, {5, 10, 48}, {8, 20, 64});
	/* out of order: by place in the input, whatever the time */
	TOLD(2, 32, {25, 10, 32}, {20, 10, 48}, {0, 10, 64}, {5, 10, 80});
	TOLD(2, 48, {20, 10, 32}, {5, 10, 48}, {0, 10, 64}, {25, 10, 80});
	/* no overlap: an outer call that was written before its inner one */
	TOLD(0, 0, {0, 10, 32}, {5, 5, 48});
	/* the same end, written too early, and behind it one that does overlap */
	TOLD(1, 80, {0, 10, 32}, {5, 5, 48}, {20, 10, 64}, {25, 10, 80});
	/* past what is kept of an offset */
	TOLD(1, TW_NO_OFFSET, {0, 10, 32}, {5, 10, UINT64_C(1) << 32});
	TOLD(1, UINT32_MAX - 1, {0, 10, 32}, {5, 10, UINT32_MAX - 1});
	TOLD(1, TW_NO_OFFSET, {0, 10, 32}, {5, 10, TW_NO_OFFSET});
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_offsets)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
