/* Records in scratch: the trace is the same to the byte, whatever the window; failures of scratch
 * and of memory are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder_internal.h"
#include "tests/fixtures/reported.h"
#include "tests/fixtures/scratch.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

/* Windows of pieces of 1, 1, 2, 16 and 256 records. */
static const uint64_t windows[] = {1, 1 << 10, 2 << 10, 16 << 10, 256 << 10};

enum { WINDOWS = sizeof windows / sizeof *windows };

/* What emits the events of a trace to a builder. */
typedef void (*emit_fn)(struct tw_builder *b, const void *of);

static struct tw_builder *builder_of(
        emit_fn emit, const void *of, const struct tw_limits *l, struct scratch *s, uint64_t window)
{
	struct tw_builder *b = tw_builder_new(l);

	assert_non_null(b);
	*s = (struct scratch){0};
	if (window)
		scratch_begin(s, b, window);
	emit(b, of);
	return b;
}

static void same_within(emit_fn emit, const void *of, const struct tw_limits *l)
{
	struct scratch s;
	struct reported whole;
	struct tw_builder *b = builder_of(emit, of, l, &s, 0);

	reported_init(&whole);
	assert_int_equal(tw_builder_write(b, &whole.out, NULL), TW_OK);
	tw_builder_free(b);
	for (int i = 0; i < WINDOWS; i++) {
		struct reported parts;

		b = builder_of(emit, of, l, &s, windows[i]);
		reported_init(&parts);
		assert_int_equal(tw_builder_write(b, &parts.out, NULL), TW_OK);
		assert_true(s.bytes.len > 0 || windows[i] > 4096);
		assert_true(s.reads > 0 || s.bytes.len == 0);
		assert_int_equal(parts.calls, whole.calls);
		assert_int_equal(parts.bytes.len, whole.bytes.len);
		assert_memory_equal(parts.bytes.data, whole.bytes.data, whole.bytes.len);
		reported_done(&parts);
		tw_builder_free(b);
		scratch_done(&s);
	}
	reported_done(&whole);
}

/* Joined tracks, depths and late CPU times, too, take at most the space of scratch: what has none
 * stays in memory. */
static void same_in_little_scratch(emit_fn emit, const void *of)
{
	enum { LEAST = 16 << 10, MOST = 128 << 10, STEP = 1 << 10, WINDOW = 1 << 10 };
	struct tw_limits l = tw_limits_default();
	struct reported whole;
	struct scratch s;
	struct tw_builder *b;
	uint64_t longest = 0;

	l.max_memory_bytes = 256 << 10;
	b = builder_of(emit, of, &l, &s, 0);
	reported_init(&whole);
	assert_int_equal(tw_builder_write(b, &whole.out, NULL), TW_OK);
	tw_builder_free(b);
	for (uint64_t most = LEAST; most < MOST; most += STEP) {
		struct reported parts;

		b = tw_builder_new(&l);
		assert_non_null(b);
		scratch_begin(&s, b, WINDOW);
		b->scratch.max_bytes = most;
		emit(b, of);
		reported_init(&parts);
		assert_int_equal(tw_builder_write(b, &parts.out, NULL), TW_OK);
		assert_in_range(s.bytes.len, 0, most);
		assert_int_equal(parts.bytes.len, whole.bytes.len);
		assert_memory_equal(parts.bytes.data, whole.bytes.data, whole.bytes.len);
		longest = s.bytes.len > longest ? s.bytes.len : longest;
		reported_done(&parts);
		tw_builder_free(b);
		scratch_done(&s);
	}
	assert_in_range(longest, 8 << 10, MOST);
	reported_done(&whole);
}

static void same(emit_fn emit, const void *of)
{
	struct tw_limits l = tw_limits_default();

	same_within(emit, of, &l);
	l.max_depth = 3;
	l.max_tree_nodes = 2; /* so that calls are read twice */
	same_within(emit, of, &l);
}

struct model_input {
	const struct model *m;
	enum model_form form;
};

static void emit_model(struct tw_builder *b, const void *of)
{
	const struct model_input *input = of;

	assert_int_equal(model_emit(input->m, tw_builder_sink(b), input->form, NULL), TW_OK);
}

static void test_models(void **state)
{
	static const struct model_shape shapes[] = {{1, 1, 700, 5, false}, {2, 1, 1500, 300, false},
	        {3, 4, 1000, 40, false}, {4, 2, 6000, 200, true}, {5, 60, 200, 10, false},
	        {6, 3, 40000, 60, false}}; /* the last one in two threads */

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (int form = MODEL_RECORDS; form <= MODEL_SHUFFLED; form++) {
			struct model m;
			const struct model_input input = {&m, (enum model_form)form};

			model_make(&m, &shapes[i]);
			same(emit_model, &input);
			model_done(&m);
		}
}

/* --- one loaded thread at a time --- */

static struct {
	const struct tw_trace_out_ops *plain;
	_Atomic int trees,
	        threads;    /* sums of a tree that were passed on; threads that were delivered */
	_Atomic bool ahead; /* a tree was complete before the thread before it was delivered */
} order;

/* Gives the other thread an opportunity to go on with the next tree. */
static enum tw_status slow_chunk(struct tw_trace_out *o, const struct tw_chunk_info *info,
        struct tw_buf *payload, struct tw_err *err)
{
	enum { LOOKS = 200 };

	for (int i = 0; info->level == 0 && i < LOOKS && !order.ahead; i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return order.plain->chunk(o, info, payload, err);
}

static enum tw_status count_thread(
        struct tw_trace_out *o, const struct tw_thread_info *t, struct tw_err *err)
{
	order.threads++;
	return order.plain->thread(o, t, err);
}

static void count_tree(struct tw_trace_out *o, struct tw_tree_sums *sums)
{
	(void)o, (void)sums;
	if (order.threads < order.trees++)
		order.ahead = true;
}

/* Records that were loaded take memory until their chunks are written. */
static void test_loaded_one_at_a_time(void **state)
{
	const struct model_shape shape = {6, 3, 40000, 60, false};
	const struct tw_limits l = tw_limits_default();
	struct tw_trace_out_ops ops;
	struct model m;
	const struct model_input input = {&m, MODEL_SHUFFLED};
	struct reported r;
	struct scratch s;
	struct tw_builder *b;

	(void)state;
	model_make(&m, &shape);
	b = builder_of(emit_model, &input, &l, &s, 1 << 10);
	reported_init(&r);
	order.plain = r.out.ops;
	ops = *order.plain;
	ops.chunk = slow_chunk;
	ops.thread = count_thread;
	ops.sums = count_tree;
	r.out.ops = &ops;
	assert_int_equal(tw_builder_write(b, &r.out, NULL), TW_OK);
	assert_int_equal(order.trees, 3);
	assert_int_equal(order.threads, 3);
	assert_false(order.ahead);
	reported_done(&r);
	tw_builder_free(b);
	scratch_done(&s);
	model_done(&m);
}

/* Moving the records counts their durations, in memory and in scratch as a pass over them does. */
static void test_levels(void **state)
{
	const struct model_shape shape = {7, 1, TW_CHUNK_SLICES + 5000, 60, false};
	const struct tw_limits l = tw_limits_default();
	int64_t passed[TW_MIP_LEVELS] = {0};
	struct model m;
	const struct model_input input = {&m, MODEL_RECORDS};
	uint32_t levels = 0;

	(void)state;
	model_make(&m, &shape);
	for (int in_scratch = 0; in_scratch < 2; in_scratch++) {
		struct scratch s;
		struct tw_builder *b =
		        builder_of(emit_model, &input, &l, &s, in_scratch ? 256 << 10 : 0);
		struct track *t = &b->tracks[0];
		int64_t counted[TW_MIP_LEVELS] = {0};
		struct nest n;

		assert_int_equal(t->n, m.n);
		assert_int_equal(t->spilled != NULL, in_scratch);
		if (!in_scratch)
			levels = tw_mip_plan(t, passed);
		tw_nest_move(&n, t);
		assert_int_equal(tw_nest_open(&n, b, NULL), TW_OK);
		assert_non_null(t->by_bits);
		assert_int_equal(tw_mip_plan(t, counted), levels);
		assert_memory_equal(counted, passed, sizeof passed);
		tw_nest_close(&n);
		tw_builder_free(b);
		if (in_scratch)
			scratch_done(&s);
	}
	assert_true(levels > 0 && passed[0] > 2);
	model_done(&m);
}

/* --- calls made for the purpose --- */

static void slice(struct tw_builder *b, uint64_t tid, enum tw_tid_kind kind, int64_t start_ns,
        int64_t dur_ns, int64_t cpu_ns)
{
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = start_ns,
	        .dur_ns = dur_ns,
	        .cpu_ns = cpu_ns,
	        .offset = (uint64_t)(start_ns + dur_ns)};

	ev.track = s->ops->track(s, 1, tid, kind);
	ev.sym = s->ops->method(s, (uint64_t)dur_ns % 7);
	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

enum { CALLS = 500, HOUR_S = 3600 };
#define S INT64_C(1000000000)

/* Each in the one after it: all but the first piece's are spans. */
static void emit_chain(struct tw_builder *b, const void *of)
{
	(void)of;
	for (int i = 0; i < CALLS; i++)
		slice(b, 7, TW_TID_FULL, CALLS - i, 2 * i, -1);
}

/* All begin and end at the same time. */
static void emit_equal(struct tw_builder *b, const void *of)
{
	(void)of;
	for (int i = 0; i < CALLS; i++)
		slice(b, 7, TW_TID_FULL, 100, 50, -1);
}

/* All in the last one. */
static void emit_flat(struct tw_builder *b, const void *of)
{
	(void)of;
	for (int i = 0; i < CALLS; i++)
		slice(b, 7, TW_TID_FULL, 10 * i, i % 11, -1);
	slice(b, 7, TW_TID_FULL, 0, 10 * CALLS, -1);
}

/* CPU times from the middle on. */
static void emit_cpu(struct tw_builder *b, const void *of)
{
	(void)of;
	for (int i = 0; i < CALLS; i++) {
		slice(b, 7, TW_TID_FULL, 10 * i, 5, i < CALLS / 2 || i % 9 == 0 ? -1 : i % 5);
		if (i % 10 == 9)
			slice(b, 7, TW_TID_FULL, 10 * (i - 9), 100, i % 4);
	}
}

/* Calls that do not fit a record: of hours, and days after the first; and long CPU times. */
static void emit_long_calls(struct tw_builder *b, const void *of)
{
	(void)of;
	for (int i = 0; i < CALLS; i++) {
		slice(b, 7, TW_TID_FULL, i * HOUR_S * S, i % 3 ? S : 30 * S, i % 7 * S - 1);
		if (i % 50 == 49)
			slice(b, 7, TW_TID_FULL, (i - 49) * HOUR_S * S, 50 * HOUR_S * S, -1);
	}
}

/* Ends rise, but a late call overlaps an earlier one. */
static void emit_overlap(struct tw_builder *b, const void *of)
{
	const int at = *(const int *)of;

	for (int i = 0; i < CALLS; i++)
		slice(b, 7, TW_TID_FULL, 10 * i - (i == at ? 3 : 0), 9, -1);
}

/* Two tracks of one thread. */
static void emit_joined(struct tw_builder *b, const void *of)
{
	const int out_of_order = *(const int *)of;
	struct tw_sink *s = tw_builder_sink(b);

	s->ops->thread_name(s, 1, 40007, TW_STR("t"));
	for (int i = 0; i < CALLS; i++) {
		slice(b, 40007, TW_TID_FULL, 100 * i, 90, i % 2 ? i : -1);
		slice(b, 40007 & 0x7FFF, TW_TID_LOW15, 100 * i + 10, 50 * (i % 3 + 1), -1);
	}
	if (out_of_order)
		slice(b, 40007, TW_TID_FULL, 55, 5, -1);
}

static void test_forms(void **state)
{
	const int none = 0, one = 1, middle = CALLS / 2, last = CALLS - 1;

	(void)state;
	same(emit_chain, NULL);
	same(emit_equal, NULL);
	same(emit_flat, NULL);
	same(emit_cpu, NULL);
	same(emit_long_calls, NULL);
	same(emit_overlap, &one);
	same(emit_overlap, &middle);
	same(emit_overlap, &last);
	same(emit_joined, &none);
	same(emit_joined, &one);
}

static void test_little_scratch(void **state)
{
	const int none = 0, one = 1;

	(void)state;
	same_in_little_scratch(emit_chain, NULL);
	same_in_little_scratch(emit_cpu, NULL);
	same_in_little_scratch(emit_joined, &none);
	same_in_little_scratch(emit_joined, &one);
}

/* More calls around a record than are collected: read into memory and sorted. */
static void emit_deep(struct tw_builder *b, const void *of)
{
	struct tw_sink *s = tw_builder_sink(b);
	struct tw_event ev = {.kind = TW_EV_SLICE, .cpu_ns = -1};

	(void)of;
	ev.track = s->ops->track(s, 1, 7, TW_TID_FULL);
	ev.sym = s->ops->method(s, 1);
	for (int64_t i = 0, most = (1 << 20) + 5000; i < most; i++) {
		ev.ts_ns = most - i;
		ev.dur_ns = 2 * i;
		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
	}
}

static int64_t peak;

static bool note_peak(struct tw_mem_account *a, int64_t used)
{
	a->granted = used;
	peak = used;
	return true;
}

/* Each call of a track contains the next: 10 bytes per record, and 2 MiB at most for open calls. */
static void test_memory_of_deep(void **state)
{
	enum { FIXED = 3 << 20 };
	struct tw_limits l = tw_limits_default();
	struct tw_mem_account a = {.more = note_peak};
	struct tw_builder *b = tw_builder_new(&l);
	struct trace_log log;
	struct nest n;

	(void)state;
	assert_non_null(b);
	emit_deep(b, NULL);
	peak = 0;
	(void)tw_mem_count_for(&a);
	tw_nest_move(&n, &b->tracks[0]);
	assert_int_equal(tw_nest_open(&n, b, NULL), TW_OK);
	(void)tw_mem_count_for(NULL);
	assert_in_range(peak, 1, 10 * n.track->n + FIXED);
	tw_nest_close(&n);
	tw_builder_free(b);
	b = tw_builder_new(&l);
	assert_non_null(b);
	emit_deep(b, NULL);
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.info.slices, l.max_depth);
	assert_int_equal(log.repairs[TW_REPAIR_order_restored], 0);
	trace_log_done(&log);
	tw_builder_free(b);
}

static void test_deep(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct reported whole, parts;
	struct scratch s;
	struct tw_builder *b = builder_of(emit_deep, NULL, &l, &s, 0);

	(void)state;
	reported_init(&whole);
	assert_int_equal(tw_builder_write(b, &whole.out, NULL), TW_OK);
	tw_builder_free(b);
	b = builder_of(emit_deep, NULL, &l, &s, 1 << 20);
	reported_init(&parts);
	assert_int_equal(tw_builder_write(b, &parts.out, NULL), TW_OK);
	tw_builder_free(b);
	assert_true(s.bytes.len > 0);
	assert_int_equal(parts.bytes.len, whole.bytes.len);
	assert_memory_equal(parts.bytes.data, whole.bytes.data, whole.bytes.len);
	scratch_done(&s);
	reported_done(&whole);
	reported_done(&parts);
}

static void test_dropped_calls(void **state)
{
	enum { MANY = 1 << 18 };
	const struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct nest n;

	(void)state;
	assert_non_null(b);
	for (int i = 0; i < MANY; i++)
		slice(b, 7, TW_TID_FULL, 10 * i, i % 11, -1);
	tw_nest_move(&n, &b->tracks[0]);
	assert_int_equal(tw_nest_open(&n, b, NULL), TW_OK);
	tw_nest_drop(&n, MANY - 1);
	assert_int_equal(n.track->records.at[MANY / 4].start_and_sym, 0);
	assert_int_not_equal(n.track->records.at[MANY - 1].start_and_sym, 0);
	tw_nest_close(&n);
	tw_builder_free(b);
}

/* They are read in another order than they are stored. */
static void test_sorted_calls_are_not_dropped(void **state)
{
	const struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct nest n;

	(void)state;
	assert_non_null(b);
	emit_deep(b, NULL);
	tw_nest_move(&n, &b->tracks[0]);
	assert_int_equal(tw_nest_open(&n, b, NULL), TW_OK);
	assert_non_null(n.order);
	tw_nest_drop(&n, n.track->n);
	assert_int_not_equal(n.track->records.at[n.track->n / 4].start_and_sym, 0);
	tw_nest_close(&n);
	tw_builder_free(b);
}

/* --- failures, also in the second thread --- */

enum { SHARED_FROM = 64 };

struct failing {
	struct scratch s;
	struct tw_err err;
	enum tw_status st;
};

static struct failing run_failing(
        const struct model_input *input, bool shared, uint32_t write, uint32_t read)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct failing f = {.st = TW_OK};
	struct reported r;

	assert_non_null(b);
	if (shared)
		b->shared_from = SHARED_FROM;
	scratch_begin(&f.s, b, 16 << 10);
	f.s.fail_write = write;
	f.s.fail_read = read;
	(void)model_emit(input->m, tw_builder_sink(b), input->form, NULL);
	reported_init(&r);
	f.st = tw_builder_write(b, &r.out, &f.err);
	reported_done(&r);
	tw_builder_free(b);
	scratch_done(&f.s);
	return f;
}

static void fails_at_each(enum model_form form, bool shared, bool writing)
{
	struct model_shape shape = {9, 3, 3000, 60, false};
	struct model m;
	const struct model_input input = {&m, form};
	bool done = false;

	model_make(&m, &shape);
	for (uint32_t n = 1; !done; n += 1 + n / 4) {
		const struct failing f =
		        run_failing(&input, shared, writing ? n : 0, writing ? 0 : n);

		done = (writing ? f.s.writes : f.s.reads) < n;
		assert_int_equal(f.st, done ? TW_OK : writing ? TW_FULL : TW_IO);
		if (!done)
			assert_string_equal(
			        f.err.msg, writing ? "scratch is full" : "scratch is broken");
		assert_in_range(n, 1, 10000);
	}
	model_done(&m);
}

static void test_failures(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		fails_at_each(MODEL_RECORDS, i & 1, i & 2);
		fails_at_each(MODEL_SHUFFLED, i & 1, i & 2);
	}
}

static void test_no_memory(void **state)
{
	struct model_shape shape = {10, 2, 800, 30, false};
	struct model m;

	(void)state;
	model_make(&m, &shape);
	for (int i = 2 * MODEL_RECORDS; i < 2 * (MODEL_SHUFFLED + 1); i++) {
		const struct model_input input = {&m, (enum model_form)(i / 2)};
		bool done = false;

		for (uint64_t n = 1; !done; n++) {
			struct tw_limits l = tw_limits_default();
			struct tw_builder *b = tw_builder_new(&l);
			struct scratch s;
			struct reported r;
			enum tw_status st;

			assert_non_null(b);
			if (i % 2)
				b->shared_from = SHARED_FROM;
			scratch_begin(&s, b, 4 << 10);
			reported_init(&r);
			tw_mem_fail_at(n);
			st = model_emit(input.m, tw_builder_sink(b), input.form, NULL);
			if (st == TW_OK)
				st = tw_builder_write(b, &r.out, NULL);
			done = tw_mem_count() < n;
			tw_mem_fail_at(0);
			assert_int_equal(st, done ? TW_OK : TW_NOMEM);
			assert_in_range(n, 1, 2000);
			reported_done(&r);
			tw_builder_free(b);
			scratch_done(&s);
		}
	}
	model_done(&m);
}

/* Calls that do not fit into memory are dropped and counted, whether they must be sorted or not. */
static void does_not_fit(bool sorted)
{
	enum { SHARE = 64 << 10, KEPT = SHARE / 16, ALL = 2 * KEPT };
	struct tw_limits l = tw_limits_default();
	struct scratch s;
	struct trace_log log;
	struct tw_builder *b;

	l.max_memory_bytes = 2 * SHARE;
	b = tw_builder_new(&l);
	assert_non_null(b);
	scratch_begin(&s, b, 16 << 10);
	for (int i = 0; i < ALL; i++)
		slice(b, 7, TW_TID_FULL, sorted || i % 2 ? 10 * i : 10 * (i + 2), 5, -1);
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_in_range(log.info.slices, KEPT - 100, KEPT + 100);
	assert_int_equal(log.repairs[TW_REPAIR_slice_limit], ALL - log.info.slices);
	assert_in_range(s.bytes.len, SHARE / 2, SHARE / 4 * 5 + 2000); /* with depths */
	trace_log_done(&log);
	tw_builder_free(b);
	scratch_done(&s);
}

static void test_does_not_fit(void **state)
{
	(void)state;
	does_not_fit(true);
	does_not_fit(false);
}

/* Scratch may hold more calls than memory: if two overlap, those that do not fit are dropped. */
static void test_overlap_does_not_fit(void **state)
{
	static const int overlaps[] = {5, CALLS / 2, CALLS - 1};
	enum { KEPT = CALLS / 4 };

	(void)state;
	for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
		struct tw_limits l = tw_limits_default();
		struct scratch s;
		struct trace_log log;
		struct tw_builder *b = builder_of(emit_overlap, &overlaps[i], &l, &s, 1 << 10);

		b->limits.max_memory_bytes = 2 * (b->record_bytes + KEPT * sizeof(struct record));
		trace_log_init(&log);
		assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
		assert_in_range(log.info.slices, KEPT, KEPT + 100);
		assert_int_equal(log.repairs[TW_REPAIR_slice_limit], CALLS - log.info.slices);
		trace_log_done(&log);
		tw_builder_free(b);
		scratch_done(&s);
	}
}

/* The space of scratch that spilling leaves for depths suffices, so no record is read back into
 * memory, where most would not fit. */
static void test_depths_fit(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct scratch s;
	struct trace_log log;
	struct tw_builder *b = builder_of(emit_flat, NULL, &l, &s, 1 << 10);

	(void)state;
	b->limits.max_memory_bytes = 2 * b->record_bytes;
	b->scratch.max_bytes = b->scratch_bytes + (CALLS + 1) * sizeof(uint16_t);
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_int_equal(log.info.slices, CALLS + 1);
	assert_int_equal(log.repairs[TW_REPAIR_slice_limit], 0);
	assert_int_equal(s.bytes.len, b->scratch.max_bytes);
	trace_log_done(&log);
	tw_builder_free(b);
	scratch_done(&s);
}

/* Of the records of joined tracks, those that fit neither into scratch nor into memory are dropped.
 */
static void test_joined_do_not_fit(void **state)
{
	const int none = 0;
	struct tw_limits l = tw_limits_default();
	struct scratch s;
	struct trace_log log;
	struct tw_builder *b = builder_of(emit_joined, &none, &l, &s, 1 << 10);

	(void)state;
	b->limits.max_memory_bytes = 2 * (b->record_bytes + CALLS * sizeof(struct record));
	b->scratch.max_bytes = b->scratch_bytes;
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	assert_in_range(log.info.slices, CALLS / 2, CALLS);
	assert_int_equal(log.repairs[TW_REPAIR_slice_limit], 2 * CALLS - log.info.slices);
	assert_int_equal(s.bytes.len, b->scratch.max_bytes);
	trace_log_done(&log);
	tw_builder_free(b);
	scratch_done(&s);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_loaded_one_at_a_time),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_little_scratch),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_memory_of_deep),
        cmocka_unit_test(test_dropped_calls),
        cmocka_unit_test(test_sorted_calls_are_not_dropped),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_does_not_fit),
        cmocka_unit_test(test_depths_fit),
        cmocka_unit_test(test_overlap_does_not_fit),
        cmocka_unit_test(test_joined_do_not_fit),
};

UNIT_TESTS("builder_spill", tests)
