/* Unit tests of decoder/trace: the builder's output equals that of a naive model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/naive_tree.h"
#include "tests/fixtures/reported.h"
#include "tests/unit/unit.h"

/* Builds the model's trace.  Free the log with trace_log_done. */
static struct trace_log build(const struct model *m, enum model_form form)
{
	struct tw_limits l = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&l);
	struct trace_log log;
	struct tw_err err = {0};

	trace_log_init(&log);
	assert_non_null(b);
	assert_int_equal(model_emit(m, tw_builder_sink(b), form, &err), TW_OK);
	assert_int_equal(tw_builder_write(b, &log.out, &err), TW_OK);
	assert_null(tw_builder_free(b));
	return log;
}

static void same_slices(struct trace_log *log, const struct model *m)
{
	size_t at = 0;

	for (uint32_t t = 0; t < m->threads; t++) {
		const struct tw_thread_info *info = trace_log_thread(log, MODEL_PID + t);
		size_t n;
		struct tw_slice *s;

		assert_non_null(info);
		s = trace_log_slices(log, info->thread_id, 0, &n);
		assert_int_equal(n, info->slices);
		for (size_t i = 0; i < n; i++, at++) {
			const struct model_slice *want = &m->slices[at];

			assert_int_equal(want->tid, info->tid);
			assert_int_equal(s[i].start_ns, want->start_ns);
			assert_int_equal(s[i].dur_ns, want->dur_ns);
			assert_int_equal(s[i].depth, want->depth);
			assert_int_equal(log->methods[s[i].method].id, want->method_id);
			assert_int_equal(s[i].cpu_ns, -1);
			assert_int_equal(s[i].merged, 0);
		}
	}
	assert_int_equal(at, m->n);
	assert_int_equal(log->info.slices, m->n);
}

/* Totals per method and thread, from the model alone. */
static void same_totals(const struct trace_log *log, const struct model *m)
{
	struct tw_method_info want[MODEL_METHODS] = {0};
	int64_t busy = 0, all_self = 0, all_busy = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct model_slice *s = &m->slices[i];
		struct tw_method_info *w = &want[s->method_id];
		bool inside = false;

		for (int64_t p = s->parent; p >= 0; p = m->slices[p].parent)
			inside |= m->slices[p].method_id == s->method_id;
		w->count++;
		w->sum_ns += s->dur_ns;
		w->self_ns += s->dur_ns;
		w->total_ns += inside ? 0 : s->dur_ns;
		if (s->dur_ns > w->max_ns)
			w->max_ns = s->dur_ns;
		if (s->parent >= 0)
			want[m->slices[s->parent].method_id].self_ns -= s->dur_ns;
		else
			busy += s->dur_ns;
	}
	for (size_t i = 0; i < log->n_methods; i++) {
		const struct tw_method_info *g = &log->methods[i];
		const struct tw_method_info *w = &want[g->id];

		assert_true(g->has_id);
		assert_int_equal(g->count, w->count);
		assert_int_equal(g->sum_ns, w->sum_ns);
		assert_int_equal(g->total_ns, w->total_ns);
		assert_int_equal(g->self_ns, w->self_ns);
		assert_int_equal(g->max_ns, w->max_ns);
		assert_int_equal(g->cpu_ns, -1);
		assert_true(i == 0 || g->count <= log->methods[i - 1].count);
		all_self += g->self_ns;
	}
	for (size_t i = 0; i < log->n_threads; i++)
		all_busy += log->threads[i].busy_ns;
	assert_int_equal(all_busy, busy);
	assert_int_equal(all_self, busy);
}

/* --- call trees --- */

static void same_trees(const struct trace_log *log, const struct model *m)
{
	for (size_t i = 0; i < log->n_threads; i++) {
		struct tw_tree want = naive_tree(log->arena, m, log->threads[i].tid, 0, INT64_MAX);
		struct tw_tree again;
		struct tw_buf bytes;

		assert_null(naive_differs(&log->trees[i], &want, log->methods, log->arena));
		tw_buf_init(&bytes, 1 << 24);
		assert_int_equal(tw_tree_encode(&log->trees[i], &bytes), TW_OK);
		assert_int_equal(
		        tw_tree_decode(bytes.data, bytes.len, log->arena, &again, NULL), TW_OK);
		assert_int_equal(again.n, log->trees[i].n);
		assert_memory_equal(
		        again.nodes, log->trees[i].nodes, again.n * sizeof *again.nodes);
		for (size_t cut = 0; cut < bytes.len; cut += 1 + cut / 8)
			assert_int_equal(tw_tree_decode(bytes.data, cut, log->arena, &again, NULL),
			        TW_CORRUPT);
		tw_buf_done(&bytes);
	}
}

static void test_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct model_shape shape = {
		        seed * 77, (uint32_t)(1 + seed % 5), (uint32_t)(seed * 60), 40, false};
		struct model m;

		model_make(&m, &shape);
		for (int form = MODEL_RECORDS; form <= MODEL_PAIRS; form++) {
			struct trace_log log = build(&m, (enum model_form)form);

			same_slices(&log, &m);
			same_totals(&log, &m);
			same_trees(&log, &m);
			assert_int_equal(log.info.pid, MODEL_PID);
			assert_int_equal(log.info.threads, m.threads);
			assert_true(log.threads[0].is_main);
			for (int r = 0; r < TW_REPAIR_COUNT; r++)
				assert_int_equal(log.repairs[r], 0);
			trace_log_done(&log);
		}
		model_done(&m);
	}
}

static void test_shuffled(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct model_shape shape = {seed * 31, 3, (uint32_t)(seed * 50), 40, true};
		struct model m;
		struct trace_log log;

		model_make(&m, &shape);
		log = build(&m, MODEL_SHUFFLED);
		same_slices(&log, &m);
		same_totals(&log, &m);
		same_trees(&log, &m);
		assert_in_range(log.repairs[TW_REPAIR_order_restored], 1, m.n);
		assert_int_equal(log.repairs[TW_REPAIR_overlap_clipped], 0);
		trace_log_done(&log);
		model_done(&m);
	}
}

/* --- by hand --- */

struct by_hand {
	struct tw_builder *b;
	struct tw_sink *s;
	struct trace_log log;
};

static void begin(struct by_hand *h, const struct tw_limits *limits)
{
	struct tw_limits l = limits ? *limits : tw_limits_default();

	h->b = tw_builder_new(&l);
	assert_non_null(h->b);
	h->s = tw_builder_sink(h->b);
	trace_log_init(&h->log);
}

static void tell(
        struct by_hand *h, enum tw_ev_kind kind, uint64_t tid, int64_t ts, int64_t dur, uint64_t id)
{
	struct tw_event ev = {.kind = kind, .ts_ns = ts, .dur_ns = dur, .cpu_ns = -1};

	ev.track = h->s->ops->track(h->s, 1, tid, TW_TID_FULL);
	ev.sym = id ? h->s->ops->method(h->s, id) : 0;
	assert_int_equal(h->s->ops->events(h->s, &ev, 1, NULL), TW_OK);
}

static enum tw_status written(struct by_hand *h)
{
	enum tw_status st = tw_builder_write(h->b, &h->log.out, NULL);

	h->b = tw_builder_free(h->b);
	return st;
}

static void test_overlap(void **state)
{
	struct by_hand h;
	struct tw_slice *s;
	size_t n;

	(void)state;
	begin(&h, NULL);
	tell(&h, TW_EV_SLICE, 7, 0, 10, 1);
	tell(&h, TW_EV_SLICE, 7, 5, 10, 2); /* reaches past its parent */
	tell(&h, TW_EV_SLICE, 7, 20, 5, 3);
	assert_int_equal(written(&h), TW_OK);
	s = trace_log_slices(&h.log, 1, 0, &n);
	assert_int_equal(n, 3);
	assert_int_equal(s[0].dur_ns, 10);
	assert_int_equal(s[1].start_ns, 5);
	assert_int_equal(s[1].dur_ns, 5);
	assert_int_equal(s[1].depth, 1);
	assert_int_equal(s[2].depth, 0);
	assert_int_equal(h.log.repairs[TW_REPAIR_overlap_clipped], 1);
	assert_int_equal(h.log.threads[0].busy_ns, 15);
	trace_log_done(&h.log);
}

static void test_depth_limit(void **state)
{
	(void)state;
	for (int deep = 4; deep < 9; deep++) {
		struct tw_limits l = tw_limits_default();
		struct by_hand h;
		int clipped = deep > 5 ? deep - 5 : 0;

		l.max_depth = 5;
		begin(&h, &l);
		for (int i = deep; i > 0; i--)
			tell(&h, TW_EV_SLICE, 7, 0, 100 - i, (uint64_t)i);
		assert_int_equal(written(&h), TW_OK);
		assert_int_equal(h.log.info.slices, deep - clipped);
		assert_int_equal(h.log.info.max_depth, deep - clipped);
		assert_int_equal(h.log.repairs[TW_REPAIR_depth_clipped], clipped);
		trace_log_done(&h.log);
	}
}

/* Records have a share of the memory: records beyond it are counted, and the trace has the rest. */
static void test_memory_share(void **state)
{
	const int all = 200000;
	struct tw_limits l = tw_limits_default();
	struct by_hand h;

	(void)state;
	l.max_memory_bytes = 4 << 20;
	begin(&h, &l);
	for (int i = 0; i < all; i++)
		tell(&h, TW_EV_SLICE, 7, i * 10, 5, 1);
	assert_int_equal(written(&h), TW_OK);
	assert_in_range(h.log.info.slices, (4 << 20) / 4 / 16, (4 << 20) / 2 / 16);
	assert_int_equal(h.log.repairs[TW_REPAIR_slice_limit], all - (int)h.log.info.slices);
	trace_log_done(&h.log);
}

/* Calls that do not fit a record of 16 bytes: long ones, and those hours from the first; and CPU
 * times that do not fit 4 bytes. */
enum { HOUR = 3600 };
static const struct {
	int64_t start_s, dur_s;
	uint32_t depth;
	int64_t cpu_ns; /* less than 2^31 fit 4 bytes */
} long_calls[] = {      /* in pre-order */
        {0, 30 * HOUR, 0, INT64_C(1) << 40}, {1 * HOUR, 4 * HOUR, 1, -1}, {2 * HOUR, 1, 2, 0},
        {3 * HOUR, 4, 2, INT32_MAX}, {3 * HOUR, 2, 3, -5}, {4 * HOUR, 5, 2, INT64_C(1) << 31},
        {9 * HOUR, 2, 1, UINT32_MAX}, {25 * HOUR, 3600, 1, INT64_C(1) << 32}};
enum { LONG_CALLS = sizeof long_calls / sizeof *long_calls };

static void check_long_calls(struct by_hand *h, bool repaired)
{
	const int64_t second = 1000000000;
	struct tw_slice *s;
	size_t n;

	assert_int_equal(written(h), TW_OK);
	s = trace_log_slices(&h->log, 1, 0, &n);
	assert_int_equal(n, LONG_CALLS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].start_ns, long_calls[i].start_s * second + (int64_t)i);
		assert_int_equal(s[i].dur_ns, long_calls[i].dur_s * second);
		assert_int_equal(s[i].depth, long_calls[i].depth);
		assert_int_equal(s[i].cpu_ns, long_calls[i].cpu_ns < 0 ? -1 : long_calls[i].cpu_ns);
	}
	assert_int_equal(h->log.repairs[TW_REPAIR_order_restored], repaired ? n : 0);
	assert_int_equal(h->log.repairs[TW_REPAIR_overlap_clipped], 0);
	trace_log_done(&h->log);
}

static void emit_long_call(struct by_hand *h, uint32_t pid, size_t i)
{
	const int64_t second = 1000000000;
	struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = long_calls[i].start_s * second + (int64_t)i,
	        .dur_ns = long_calls[i].dur_s * second,
	        .cpu_ns = long_calls[i].cpu_ns};

	ev.track = h->s->ops->track(h->s, pid, 7, TW_TID_FULL);
	ev.sym = h->s->ops->method(h->s, i + 1);
	assert_int_equal(h->s->ops->events(h->s, &ev, 1, NULL), TW_OK);
}

static void test_long_calls(void **state)
{
	static const size_t by_end[LONG_CALLS] = {2, 4, 3, 5, 1, 6, 7, 0};
	struct by_hand h;

	(void)state;
	begin(&h, NULL);
	for (size_t i = 0; i < LONG_CALLS; i++)
		emit_long_call(&h, 1, by_end[i]);
	check_long_calls(&h, false);
	begin(&h, NULL);
	for (size_t i = 0; i < LONG_CALLS; i++)
		emit_long_call(&h, 1, i);
	check_long_calls(&h, true);
	begin(&h, NULL); /* half of them on a track that turns out to be of the same thread */
	for (size_t i = 0; i < LONG_CALLS; i++)
		emit_long_call(&h, i % 2, by_end[i]);
	check_long_calls(&h, false);
}

/* A symbol past 2^20 does not fit a record either; and a wide call is clipped in its place. */
static void test_large_symbols(void **state)
{
	const uint64_t many = (1 << 20) + 10;
	const int64_t hour = 3600 * INT64_C(1000000000);
	struct by_hand h;
	struct tw_slice *s;
	size_t n;

	(void)state;
	begin(&h, NULL);
	for (uint64_t i = 1; i <= many; i++)
		tell(&h, TW_EV_SLICE, 7, (int64_t)i * 10, 5, i);
	tell(&h, TW_EV_SLICE, 8, 0, 10 * hour, 1);
	tell(&h, TW_EV_SLICE, 8, 5 * hour, 10 * hour, 2);
	assert_int_equal(written(&h), TW_OK);
	assert_int_equal(h.log.info.slices, many + 2);
	assert_int_equal(h.log.info.methods, many);
	assert_int_equal(h.log.repairs[TW_REPAIR_overlap_clipped], 1);
	s = trace_log_slices(&h.log, 1, 0, &n);
	assert_int_equal(n, many);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].start_ns, (i + 1) * 10);
		assert_int_equal(h.log.methods[s[i].method].id, i + 1);
	}
	s = trace_log_slices(&h.log, 2, 0, &n);
	assert_int_equal(n, 2);
	assert_int_equal(s[1].start_ns, 5 * hour);
	assert_int_equal(s[1].dur_ns, 5 * hour);
	trace_log_done(&h.log);
}

/* Paths beyond a full tree are their caller's own time. */
static void test_full_tree(void **state)
{
	struct tw_limits l = tw_limits_default();
	const struct tw_tree *t;
	struct by_hand h;
	int64_t self = 0;

	(void)state;
	l.max_tree_nodes = 50; /* the thread itself and 49 paths, and one for each 16 records */
	begin(&h, &l);
	for (int i = 0; i < 100; i++) {
		tell(&h, TW_EV_SLICE, 7, i * 10 + 1, 4, 1000 + (uint64_t)i);
		tell(&h, TW_EV_SLICE, 7, i * 10 + 1, 6, 2000 + (uint64_t)i);
	}
	tell(&h, TW_EV_SLICE, 7, 0, 1000, 1);
	assert_int_equal(written(&h), TW_OK);
	t = &h.log.trees[0];
	assert_int_equal(t->n, 50 + 201 / 16);
	assert_int_equal(h.log.repairs[TW_REPAIR_call_tree_full], 202 - t->n);
	for (uint32_t i = 0; i < t->n; i++)
		self += t->nodes[i].self_ns;
	assert_int_equal(self, 1000);
	assert_int_equal(h.log.info.slices, 201);
	trace_log_done(&h.log);
}

static void test_limits(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct by_hand h;

	(void)state;
	l.max_slices = 3;
	l.max_threads = 2;
	begin(&h, &l);
	assert_int_not_equal(h.s->ops->track(h.s, 1, 1, TW_TID_FULL), 0);
	assert_int_not_equal(h.s->ops->track(h.s, 1, 2, TW_TID_FULL), 0);
	assert_int_equal(h.s->ops->track(h.s, 1, 3, TW_TID_FULL), 0);
	assert_int_not_equal(h.s->ops->track(h.s, 1, 2, TW_TID_FULL), 0);
	for (int i = 0; i < 5; i++)
		tell(&h, TW_EV_SLICE, 1, i, 1, 9);
	assert_int_equal(written(&h), TW_OK);
	assert_int_equal(h.log.info.slices, 3);
	assert_int_equal(h.log.repairs[TW_REPAIR_slice_limit], 2);
	assert_int_equal(h.log.repairs[TW_REPAIR_thread_limit], 1);
	trace_log_done(&h.log);
}

static void test_pairs_mended(void **state)
{
	struct by_hand h;
	struct tw_slice *s;
	size_t n;

	(void)state;
	begin(&h, NULL);
	tell(&h, TW_EV_END, 7, 1, 0, 5); /* never entered */
	tell(&h, TW_EV_BEGIN, 7, 2, 0, 1);
	tell(&h, TW_EV_BEGIN, 7, 3, 0, 2);
	tell(&h, TW_EV_BEGIN, 7, 4, 0, 3);
	tell(&h, TW_EV_END, 7, 6, 0, 2);  /* 3 ends with it */
	tell(&h, TW_EV_END, 7, 7, 0, 99); /* not open */
	tell(&h, TW_EV_BEGIN, 7, 9, 0, 4);
	tell(&h, TW_EV_SLICE, 8, 0, 50, 6);
	assert_int_equal(written(&h), TW_OK); /* 4 and 1 end with the trace */
	assert_int_equal(h.log.repairs[TW_REPAIR_exit_without_enter], 2);
	assert_int_equal(h.log.repairs[TW_REPAIR_enter_without_exit], 3);
	s = trace_log_slices(&h.log, trace_log_thread(&h.log, 7)->thread_id, 0, &n);
	assert_int_equal(n, 4);
	assert_int_equal(s[0].dur_ns, 48);
	assert_int_equal(s[1].dur_ns, 3);
	assert_int_equal(s[2].dur_ns, 2);
	assert_int_equal(s[3].dur_ns, 41);
	trace_log_done(&h.log);
}

/* Calls that begin and never end, and ends of others: neither memory nor time grows with their
 * product.  Correctly nested calls still pair, at any depth. */
static void test_flood(void **state)
{
	enum { FLOOD = 300000, KEPT = 1 << 16 };
	struct by_hand h;
	size_t n;

	(void)state;
	begin(&h, NULL);
	tell(&h, TW_EV_BEGIN, 8, 0, 0, 2);
	tell(&h, TW_EV_END, 8, 1, 0, 2);
	for (int64_t i = 0; i < KEPT; i++)
		tell(&h, TW_EV_BEGIN, 7, i, 0, 1);
	for (int64_t i = 0; i < FLOOD; i++)
		tell(&h, TW_EV_END, 7, KEPT, 0, 2); /* not open */
	for (int64_t i = 0; i < FLOOD; i++)
		tell(&h, TW_EV_BEGIN, 7, KEPT + i, 0, 1); /* deeper than the limit */
	for (int64_t i = 0; i < FLOOD; i++)
		tell(&h, TW_EV_END, 7, KEPT + FLOOD + i, 0, 1);
	tell(&h, TW_EV_END, 7, KEPT + 2 * FLOOD, 0, 1);
	assert_int_equal(written(&h), TW_OK);
	assert_int_equal(h.log.repairs[TW_REPAIR_exit_without_enter], FLOOD);
	assert_int_equal(h.log.repairs[TW_REPAIR_enter_without_exit], KEPT - 1);
	assert_int_equal(h.log.repairs[TW_REPAIR_depth_clipped],
	        FLOOD + KEPT - tw_limits_default().max_depth);
	(void)trace_log_slices(&h.log, trace_log_thread(&h.log, 7)->thread_id, 0, &n);
	assert_int_equal(n, tw_limits_default().max_depth);
	trace_log_done(&h.log);
}

/* Method ids that a multiplication and a shift put into one place of a table, whatever its size. */
static void test_ids_that_meet(void **state)
{
	const uint64_t inverse = 0xF1DE83E19937733D; /* of 0x9E3779B97F4A7C15 modulo 2^64 */
	struct by_hand h;

	(void)state;
	begin(&h, NULL);
	for (uint64_t i = 1; i <= 200000; i++) {
		uint64_t v = i * inverse;

		assert_true(h.s->ops->method(h.s, v ^ v >> 29 ^ v >> 58) >= i);
	}
	tell(&h, TW_EV_SLICE, 7, 0, 5, 1);
	assert_int_equal(written(&h), TW_OK);
	trace_log_done(&h.log);
}

static void test_tids(void **state)
{
	static const struct {
		uint64_t low, full;
		const char *name;
	} rows[] = {{7232, 40000, "main"}, {4464, 70000, "late"}, {1000, 1000, ""},
	        {500, 500, "exact"}, {77, 77, ""}};
	const uint64_t like_main = 40000 + 32768;
	struct by_hand h;

	(void)state;
	begin(&h, NULL);
	h.s->ops->clock(h.s, &(struct tw_clock){.pid = 40000});
	h.s->ops->thread_name(h.s, 0, 40000, TW_STR("main"));
	h.s->ops->thread_name(h.s, 0, 70000, TW_STR("late"));
	h.s->ops->thread_name(h.s, 0, 1000 + 32768, TW_STR("one"));
	h.s->ops->thread_name(h.s, 0, 1000 + 65536, TW_STR("other"));
	h.s->ops->thread_name(h.s, 0, 500 + 32768, TW_STR("no"));
	h.s->ops->thread_name(h.s, 0, 500, TW_STR("exact"));
	h.s->ops->thread_name(h.s, 0, 500, TW_STR("second")); /* the first wins */
	h.s->ops->thread_name(h.s, 0, like_main, TW_STR("rival"));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE, .ts_ns = 5, .dur_ns = 5, .cpu_ns = -1};

		ev.track = h.s->ops->track(h.s, 40000, rows[i].low, TW_TID_LOW15);
		ev.sym = h.s->ops->method(h.s, 3);
		assert_int_equal(h.s->ops->events(h.s, &ev, 1, NULL), TW_OK);
	}
	assert_int_equal(written(&h), TW_OK);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tw_thread_info *t = trace_log_thread(&h.log, rows[i].full);

		assert_non_null(t);
		assert_true(tw_str_eq(t->name, tw_str_of(rows[i].name)));
		assert_int_equal(t->is_main, rows[i].full == 40000);
	}
	assert_int_equal(h.log.repairs[TW_REPAIR_thread_id_truncated], 2);
	assert_int_equal(h.log.repairs[TW_REPAIR_thread_id_ambiguous], 3);
	trace_log_done(&h.log);
}

/* The trace's own names: emitted before or after their use, the first wins, unused ones are
 * omitted; ids in the direct table and beyond it. */
static void test_method_names(void **state)
{
	static const uint64_t ids[] = {7, (uint64_t)1 << 47, 8};
	const struct tw_sink_ops *ops;
	struct by_hand h;

	(void)state;
	begin(&h, NULL);
	ops = h.s->ops;
	ops->method_name(h.s, 7, TW_STR("early"));
	ops->method_name(h.s, 99, TW_STR("never called"));
	for (size_t i = 0; i < 3; i++)
		tell(&h, TW_EV_SLICE, 5, (int64_t)(100 * i), 10, ids[i]);
	ops->method_name(h.s, ids[1], TW_STR("late"));
	ops->method_name(h.s, ids[1], TW_STR("later"));
	tell(&h, TW_EV_SLICE, 5, 300, 10, ids[1]);
	assert_int_equal(written(&h), TW_OK);
	assert_int_equal(h.log.info.methods, 3);
	assert_int_equal(h.log.n_methods, 3);
	assert_false(h.log.methods[0].has_id);
	assert_true(tw_str_eq(h.log.methods[0].name, TW_STR("late")));
	assert_int_equal(h.log.methods[0].count, 2);
	assert_false(h.log.methods[1].has_id);
	assert_true(tw_str_eq(h.log.methods[1].name, TW_STR("early")));
	assert_true(h.log.methods[2].has_id);
	assert_int_equal(h.log.methods[2].id, 8);
	trace_log_done(&h.log);
}

static void test_impossible(void **state)
{
	struct by_hand h;

	(void)state;
	begin(&h, NULL);
	tell(&h, TW_EV_SLICE, 7, -1, 5, 1);
	tell(&h, TW_EV_SLICE, 7, 5, -1, 1);
	tell(&h, TW_EV_SLICE, 7, INT64_MAX, INT64_MAX, 1);
	tell(&h, TW_EV_SLICE, 7, 5, 5, 0);
	assert_int_equal(written(&h), TW_CORRUPT);
	assert_int_equal(h.log.n_threads, 0);
	trace_log_done(&h.log);
}

/* --- batches --- */

enum { BATCH = 64, BATCHED = 4000, BATCH_TRACKS = 3, BATCH_SYMS = 4 };

/* Mostly calls that begin and end in order, often several of one thread; of the rest, each kind of
 * event that needs a repair or more space than a record. */
static void draw_events(struct tw_event *ev, uint64_t seed)
{
	const bool cpu = seed % 2;
	int64_t now = 1000;
	uint32_t track = 1;

	for (uint32_t i = 0; i < BATCHED; i++) {
		const uint64_t r = test_random(&seed);
		const bool odd = r >> 40 & 15 ? false : i > BATCHED / 8;

		now += (int64_t)(r % 50) - (odd && r & 64 ? 60 : 0);
		if (r >> 16 & 8)
			track = 1 + (uint32_t)(r >> 20) % BATCH_TRACKS;
		ev[i] = (struct tw_event){
		        .ts_ns = odd && r >> 24 & 1 ? now + (INT64_C(1) << 33) : now,
		        .cpu_ns = cpu && r >> 25 & 7 ? now / 2 : -1,
		        .offset = i,
		        .track = track,
		        .sym = 1 + (uint32_t)(r >> 28) % BATCH_SYMS,
		        .kind = r >> 32 & 1 ? TW_EV_BEGIN : TW_EV_END};
		if (ev[i].kind == TW_EV_END && !odd)
			ev[i].sym = 0;
		if (odd && r >> 33 & 1)
			ev[i].kind = (enum tw_ev_kind)((r >> 34) % (TW_EV_END_ALL + 1));
		if (ev[i].kind == TW_EV_SLICE || ev[i].kind == TW_EV_END_EARLIER)
			ev[i].dur_ns = (int64_t)(r >> 48) % 100 - (odd && r & 256);
	}
}

static void report_in_batches(struct reported *ret, const struct tw_event *ev, uint32_t batch)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);

	for (uint32_t i = 1; i <= BATCH_TRACKS; i++)
		assert_int_equal(s->ops->track(s, 1, i, TW_TID_FULL), i);
	for (uint32_t i = 1; i <= BATCH_SYMS; i++)
		assert_int_equal(s->ops->method(s, i), i);
	for (uint32_t i = 0; i < BATCHED; i += batch)
		assert_int_equal(
		        s->ops->events(s, ev + i, BATCHED - i < batch ? BATCHED - i : batch, NULL),
		        TW_OK);
	reported_init(ret);
	assert_int_equal(tw_builder_write(b, &ret->out, NULL), TW_OK);
	assert_null(tw_builder_free(b));
}

/* A batch gives the same trace as its events one by one. */
static void test_batches(void **state)
{
	static struct tw_event ev[BATCHED];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct reported single;
		struct reported batched;

		draw_events(ev, seed);
		report_in_batches(&single, ev, 1);
		report_in_batches(&batched, ev, BATCH);
		assert_true(tw_str_eq(tw_buf_str(&single.bytes), tw_buf_str(&batched.bytes)));
		reported_done(&single);
		reported_done(&batched);
	}
}

/* Calls in runs of one thread, which begin and end in order in every other part of the input; in
 * the rest, some are late or impossible, and with every third seed some are long or far from the
 * others. */
static void draw_calls(struct tw_event *ev, uint64_t seed)
{
	const uint64_t from = seed % 2 ? 100 : UINT32_MAX - BATCHED / 2;
	const bool far = seed % 3 == 0;
	int64_t now = 1000;
	uint32_t track = 1;

	for (uint32_t i = 0; i < BATCHED; i++) {
		const uint64_t r = test_random(&seed);
		const uint64_t odd =
		        i / (BATCHED / 8) % 2 && (r & 63) == 0 ? 1 + (r >> 6) % (far ? 6 : 4) : 0;
		int64_t dur_ns;

		now += odd == 1 ? -70 : (int64_t)(r >> 10) % 50;
		if ((r >> 16 & 31) == 0)
			track = 1 + (uint32_t)(r >> 21) % BATCH_TRACKS;
		dur_ns = (int64_t)(r >> 24) % (r >> 50 & 127 ? 100 : now);
		ev[i] = (struct tw_event){.ts_ns = now - dur_ns,
		        .dur_ns = dur_ns,
		        .cpu_ns = -1,
		        .offset = from + i,
		        .track = odd == 2 ? BATCH_TRACKS + 1 : track,
		        .sym = odd == 3 ? 0 : 1 + (uint32_t)(r >> 32) % BATCH_SYMS,
		        .kind = TW_EV_SLICE};
		if (odd == 4)
			ev[i].sym = BATCH_SYMS + 1;
		if (odd == 5)
			ev[i].dur_ns = r >> 40 & 1 ? -1 : INT64_C(5) << 30;
		if (odd == 6)
			ev[i].ts_ns = r >> 40 & 1 ? -5 : INT64_C(1) << 46;
	}
}

/* Passes on n calls. */
static void pass_calls(struct tw_sink *s, const struct tw_event *ev, size_t n)
{
	int64_t start_ns[BATCHED];
	int64_t dur_ns[BATCHED];
	uint32_t tracks[BATCHED];
	uint32_t syms[BATCHED];
	const struct tw_call_batch calls = {start_ns, dur_ns, tracks, syms, n, 1, ev->offset};

	for (size_t i = 0; i < n; i++) {
		start_ns[i] = ev[i].ts_ns;
		dur_ns[i] = ev[i].dur_ns;
		tracks[i] = ev[i].track;
		syms[i] = ev[i].sym;
	}
	assert_int_equal(s->ops->calls(s, &calls, NULL), TW_OK);
}

/* The first thread also has a call without an end, the second one without a begin. */
static void report_calls(
        struct reported *ret, const struct tw_event *ev, uint64_t max_slices, bool together)
{
	const struct tw_event open = {.cpu_ns = -1, .track = 1, .sym = 1, .kind = TW_EV_BEGIN};
	const struct tw_event outer = {.ts_ns = 4000,
	        .dur_ns = 1,
	        .cpu_ns = -1,
	        .track = 2,
	        .sym = 1,
	        .kind = TW_EV_END_EARLIER};
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b;
	struct tw_sink *s;

	limits.max_slices = max_slices;
	b = tw_builder_new(&limits);
	s = tw_builder_sink(b);
	for (uint32_t i = 1; i <= BATCH_TRACKS; i++)
		assert_int_equal(s->ops->track(s, 1, i, TW_TID_FULL), i);
	for (uint32_t i = 1; i <= BATCH_SYMS; i++)
		assert_int_equal(s->ops->method(s, i), i);
	assert_int_equal(s->ops->events(s, &open, 1, NULL), TW_OK);
	if (together)
		pass_calls(s, ev, BATCHED);
	for (size_t i = 0; i < BATCHED && !together; i++)
		assert_int_equal(s->ops->events(s, ev + i, 1, NULL), TW_OK);
	if (max_slices == BATCHED)
		assert_int_equal(s->ops->events(s, &outer, 1, NULL), TW_OK);
	reported_init(ret);
	assert_int_equal(tw_builder_write(b, &ret->out, NULL), TW_OK);
	assert_null(tw_builder_free(b));
}

/* Calls that are passed on together give the same trace as one by one. */
static void test_calls(void **state)
{
	static struct tw_event ev[BATCHED];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const uint64_t max_slices = seed % 4 ? BATCHED : BATCHED / 3;
		struct reported single;
		struct reported together;

		draw_calls(ev, seed);
		report_calls(&single, ev, max_slices, false);
		report_calls(&together, ev, max_slices, true);
		assert_true(tw_str_eq(tw_buf_str(&single.bytes), tw_buf_str(&together.bytes)));
		reported_done(&single);
		reported_done(&together);
	}
}

/* Begins and ends of innermost calls, in runs of one thread, without a CPU clock, with one, or with
 * one in the second half.  From the first eighth on, some end another call or one that is not open,
 * last longer than a record holds, are far from the others, have no or an unknown symbol, or fall
 * in time. */
static void draw_edges(struct tw_event *ev, uint64_t seed)
{
	const uint64_t from = seed % 2 ? 100 : UINT32_MAX - BATCHED / 2;
	const uint32_t cpu_from = (uint32_t)(seed % 3) * (BATCHED / 2);
	const bool falls = seed % 5 == 0;
	const bool slips = seed % 5 == 1; /* between runs */
	uint32_t open[BATCH_TRACKS + 1][BATCHED];
	uint32_t n_open[BATCH_TRACKS + 1] = {0};
	int64_t now = 1000;
	uint32_t track = 1;
	bool cpu = false;

	for (uint32_t i = 0; i < BATCHED; i++) {
		const uint64_t r = test_random(&seed);
		const uint64_t odd = i > BATCHED / 8 && (r & 63) == 0 ? 1 + (r >> 6) % 7 : 0;
		uint32_t *n;

		if ((r >> 16 & 31) == 0 && track != 1 + (uint32_t)(r >> 21) % BATCH_TRACKS) {
			track = 1 + (uint32_t)(r >> 21) % BATCH_TRACKS;
			cpu = i >= cpu_from;
		}
		n = &n_open[track];
		now += (int64_t)(r >> 10) % 50;
		if (slips && i % BATCH == 0 && i > 0)
			now -= (int64_t)(r >> 41) % 100;
		if (odd == 1)
			now += falls ? -70 : INT64_C(5) << (r >> 40 & 7 ? 30 : 41);
		ev[i] = (struct tw_event){.ts_ns = now,
		        .dur_ns = 1,
		        .cpu_ns = cpu ? now / 2 : -1,
		        .offset = from + i,
		        .track = track,
		        .sym = 1 + (uint32_t)(r >> 32) % BATCH_SYMS,
		        .kind = r >> 34 & 1 && *n ? TW_EV_END_EARLIER : TW_EV_BEGIN};
		if (ev[i].kind == TW_EV_BEGIN)
			open[track][(*n)++] = ev[i].sym;
		else
			ev[i].sym = open[track][--*n];
		if (odd == 2 && *n)
			ev[i].sym = open[track][--*n];
		if (odd == 3 || odd == 4)
			ev[i].kind = odd == 3 ? TW_EV_BEGIN : TW_EV_END_EARLIER;
		if (odd == 5 || odd == 6)
			ev[i].sym = odd == 5 ? 0 : BATCH_SYMS + 1;
		if (odd == 7 && cpu)
			ev[i].cpu_ns = (int64_t)(r >> 40) % now;
	}
}

/* Passes on n begins and ends of one track. */
static void pass_edges(struct tw_sink *s, const struct tw_event *ev, size_t n)
{
	int64_t ts_ns[BATCHED];
	int64_t cpu_ns[BATCHED];
	uint32_t syms_2[BATCHED];
	const struct tw_edge_batch edges = {.ts_ns = ts_ns,
	        .cpu_ns = ev->cpu_ns < 0 ? NULL : cpu_ns,
	        .syms_2 = syms_2,
	        .n = n,
	        .track = ev->track,
	        .record_bytes = 1,
	        .offset = ev->offset,
	        .end = TW_EV_END_EARLIER,
	        .end_dur_ns = 1};

	for (size_t i = 0; i < n; i++) {
		ts_ns[i] = ev[i].ts_ns;
		cpu_ns[i] = ev[i].cpu_ns;
		syms_2[i] = 2 * ev[i].sym + (ev[i].kind != TW_EV_BEGIN);
	}
	assert_int_equal(s->ops->edges(s, &edges, NULL), TW_OK);
}

/* in_runs: up to BATCH of a track together. */
static void report_edges(
        struct reported *ret, const struct tw_event *ev, uint64_t max_slices, bool in_runs)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b;
	struct tw_sink *s;

	limits.max_slices = max_slices;
	b = tw_builder_new(&limits);
	s = tw_builder_sink(b);
	for (uint32_t i = 1; i <= BATCH_TRACKS; i++)
		assert_int_equal(s->ops->track(s, 1, i, TW_TID_FULL), i);
	for (uint32_t i = 1; i <= BATCH_SYMS; i++)
		assert_int_equal(s->ops->method(s, i), i);
	for (size_t i = 0, n; i < BATCHED; i += n) {
		for (n = 1; in_runs && (i + n) % BATCH && i + n < BATCHED &&
		            ev[i + n].track == ev[i].track;
		        n++)
			;
		if (in_runs)
			pass_edges(s, ev + i, n);
		else
			assert_int_equal(s->ops->events(s, ev + i, 1, NULL), TW_OK);
	}
	reported_init(ret);
	assert_int_equal(tw_builder_write(b, &ret->out, NULL), TW_OK);
	assert_null(tw_builder_free(b));
}

/* Begins and ends that are passed on together give the same trace as one by one. */
static void test_edges(void **state)
{
	static struct tw_event ev[BATCHED];

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		const uint64_t max_slices = seed % 4 ? BATCHED : BATCHED / 3;
		struct reported single;
		struct reported together;

		draw_edges(ev, seed);
		report_edges(&single, ev, max_slices, false);
		report_edges(&together, ev, max_slices, true);
		assert_true(tw_str_eq(tw_buf_str(&single.bytes), tw_buf_str(&together.bytes)));
		reported_done(&single);
		reported_done(&together);
	}
}

/* --- large threads: chunks and mip levels --- */

static void is_forest(const struct tw_slice *s, size_t n)
{
	int64_t ends[64];
	uint32_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t end = s[i].start_ns + s[i].dur_ns;

		assert_true(s[i].depth <= depth && s[i].depth < 64);
		assert_true(i == 0 || s[i].start_ns >= s[i - 1].start_ns);
		if (s[i].depth < depth) /* after its left neighbour */
			assert_true(ends[s[i].depth] <= s[i].start_ns);
		if (s[i].depth)
			assert_true(end <= ends[s[i].depth - 1]);
		ends[s[i].depth] = end;
		depth = s[i].depth + 1;
	}
}

static void check_level(struct trace_log *log, uint32_t level, int64_t min_dur, size_t slices)
{
	size_t n, stands_for = 0;
	struct tw_slice *s = trace_log_slices(log, 1, level, &n);

	is_forest(s, n);
	for (size_t i = 0; i < n; i++) {
		stands_for += s[i].merged ? s[i].merged : 1;
		assert_true(s[i].merged || s[i].dur_ns >= min_dur);
	}
	assert_int_equal(stands_for, slices);
}

static bool same_slice(const struct tw_slice *a, const struct tw_slice *b)
{
	return a->start_ns == b->start_ns && a->dur_ns == b->dur_ns && a->method == b->method &&
	       a->depth == b->depth;
}

static void check_opens(const struct trace_log *log)
{
	const struct tw_slice *stack[64] = {0};

	for (size_t i = 0; i < log->n_chunks; i++) {
		const struct trace_log_chunk *c = &log->chunks[i];
		int64_t latest = INT64_MIN;

		if (c->info.level)
			continue;
		for (uint32_t k = 0; k < c->info.open; k++)
			assert_true(same_slice(&c->open[k], stack[k]));
		for (uint32_t k = 0; k < c->info.slices; k++) {
			int64_t end = c->slices[k].start_ns + c->slices[k].dur_ns;

			stack[c->slices[k].depth] = &c->slices[k];
			latest = end > latest ? end : latest;
		}
		assert_int_equal(c->info.start_ns, c->slices[0].start_ns);
		assert_int_equal(c->info.end_ns, latest);
	}
}

static void test_large(void **state)
{
	static const uint32_t sizes[] = {65535, 65536, 65537, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct model_shape shape = {5 + i, 1, sizes[i], 60, false};
		struct model m;
		struct trace_log log;
		uint32_t levels = 0;
		int64_t last_min = INT64_MAX;

		model_make(&m, &shape);
		assert_int_equal(m.n, sizes[i]);
		log = build(&m, MODEL_RECORDS);
		same_slices(&log, &m);
		check_opens(&log);
		for (size_t k = 0; k < log.n_chunks; k++) {
			const struct tw_chunk_info *info = &log.chunks[k].info;

			assert_in_range(info->slices, 1, TW_CHUNK_SLICES);
			if (info->level > levels) {
				levels = info->level;
				check_level(&log, levels, info->min_dur_ns, m.n);
				last_min = info->min_dur_ns;
			}
		}
		assert_int_equal(levels > 0, sizes[i] > 65536);
		assert_true(last_min > 0);
		trace_log_done(&log);
		model_done(&m);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_depth_limit),
        cmocka_unit_test(test_memory_share),
        cmocka_unit_test(test_long_calls),
        cmocka_unit_test(test_large_symbols),
        cmocka_unit_test(test_full_tree),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_pairs_mended),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_ids_that_meet),
        cmocka_unit_test(test_tids),
        cmocka_unit_test(test_method_names),
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_large),
};

UNIT_TESTS("builder", tests)
