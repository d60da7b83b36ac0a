/* Events in Perfetto files besides calls: locks and their holders, started threads, marks,
 * counters, CPU times, samples; and several traces in one file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/merged_fixture.h"
#include "tests/unit/unit.h"

enum { PID = 100, WAITER = 100, HOLDER = 101, CHILD = 102 };

struct made {
	struct tw_builder *b;
	struct tw_sink *s;
};

static struct made begin(int64_t mono_ns, int64_t boot_ns)
{
	struct tw_limits limits = tw_limits_default();
	struct made m = {.b = tw_builder_new(&limits)};

	assert_non_null(m.b);
	m.s = tw_builder_sink(m.b);
	m.s->ops->clock(m.s, &(struct tw_clock){PID, mono_ns, boot_ns, 0});
	return m;
}

static void call(
        struct made *m, uint64_t tid, int64_t ts, int64_t dur, int64_t cpu, const char *name)
{
	const struct tw_event e = {.ts_ns = ts,
	        .dur_ns = dur,
	        .cpu_ns = cpu,
	        .track = m->s->ops->track(m->s, PID, tid, TW_TID_FULL),
	        .sym = m->s->ops->name(m->s, tw_str_of(name)),
	        .kind = TW_EV_SLICE};

	assert_int_equal(m->s->ops->events(m->s, &e, 1, NULL), TW_OK);
}

/* when: begin and length */
static void note(struct made *m, enum tw_note_kind kind, uint64_t tid, const int64_t when[2],
        int64_t value, const char *text)
{
	const struct tw_note n = {.kind = kind,
	        .track = tid ? m->s->ops->track(m->s, PID, tid, TW_TID_FULL) : 0,
	        .ts_ns = when[0],
	        .dur_ns = when[1],
	        .value = value,
	        .text = tw_str_of(text)};

	assert_int_equal(m->s->ops->note(m->s, &n, NULL), TW_OK);
}

static void finish(struct merged *x, struct made *m)
{
	*x = (struct merged){.arena = tw_arena_new((size_t)1 << 30), .fd = -1};
	assert_int_equal(trace_fixture_write(&x->f, m->b), TW_OK);
}

static void convert(struct merged *x, const struct tw_perfetto_source *s)
{
	const struct tw_perfetto_options plain = {0};

	merged_export(&x->bytes, s, 1, &plain, 333);
	merged_read(x, &x->trace, &x->bytes);
	assert_int_equal(perfetto_errors(&x->trace), 0);
}

static bool has(const struct merged *x, const char *name)
{
	for (size_t i = 0; i < x->trace.n; i++)
		if (tw_str_eq(x->trace.slices[i].name, tw_str_of(name)))
			return true;
	return false;
}

/* The first of that name, which must be there. */
static const struct perfetto_slice *find(const struct merged *x, const char *name)
{
	static const struct perfetto_slice none;

	for (size_t i = 0; i < x->trace.n; i++)
		if (tw_str_eq(x->trace.slices[i].name, tw_str_of(name)))
			return &x->trace.slices[i];
	fail_msg("%s is not there", name);
	return &none;
}

static void end(struct merged *x)
{
	tw_buf_done(&x->bytes);
	trace_fixture_done(&x->f);
	tw_arena_free(x->arena);
}

static void test_flows(void **state)
{
	struct made m = begin(1000, 5000);
	const struct perfetto_slice *waits, *holds, *starts, *first;
	struct tw_perfetto_source s;
	struct merged x;

	(void)state;
	call(&m, WAITER, 10, 1000, -1, "a.Main.run");
	call(&m, HOLDER, 20, 900, -1, "a.Db.write");
	call(&m, CHILD, 400, 10, -1, "a.Task.first");
	call(&m, CHILD, 500, 10, -1, "a.Task.second");
	m.s->ops->thread_name(m.s, PID, WAITER, TW_STR("main"));
	note(&m, TW_NOTE_contention, WAITER, (int64_t[]){100, 200}, HOLDER, "a.Db");
	note(&m, TW_NOTE_thread_created, WAITER, (int64_t[]){350, -1}, CHILD, "task");
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	waits = find(&x, "waits for lock a.Db");
	holds = find(&x, "holds what main (100) waits for");
	assert_int_equal(waits->tid, WAITER);
	assert_int_equal(waits->begin_ns, 5100);
	assert_int_equal(waits->end_ns, 5300);
	assert_true(tw_str_eq(waits->track, TW_STR("locks")));
	assert_int_equal(holds->tid, HOLDER);
	assert_true(holds->begin_ns > waits->begin_ns); /* which way the arrow goes */
	assert_int_not_equal(waits->flow_out, 0);
	assert_int_equal(waits->flow_out, holds->flow_in);
	starts = find(&x, "starts task (102)");
	first = find(&x, "a.Task.first");
	assert_true(starts->instant);
	assert_int_not_equal(starts->flow_out, waits->flow_out);
	assert_int_equal(starts->flow_out, first->flow_in);
	assert_int_equal(find(&x, "a.Task.second")->flow_in, 0);
	assert_true(tw_str_eq(find(&x, "start")->track, TW_STR("scenario")));
	assert_int_equal(find(&x, "start")->tid, -1);
	end(&x);
}

/* Scheduler states are a track under their thread; states of unknown threads are omitted, also in a
 * time range. */
static void test_states(void **state)
{
	struct made m = begin(1000, 5000);
	const struct perfetto_slice *runs, *sleeps;
	struct tw_perfetto_source s;
	struct merged x;

	(void)state;
	call(&m, WAITER, 10, 1000, -1, "a.Main.run");
	note(&m, TW_NOTE_state, WAITER, (int64_t[]){10, 500}, 3, "running");
	note(&m, TW_NOTE_state, WAITER, (int64_t[]){510, 300}, -1, "sleeping");
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	runs = find(&x, "running");
	sleeps = find(&x, "sleeping");
	assert_true(tw_str_eq(runs->track, TW_STR("states")));
	assert_int_equal(runs->tid, WAITER);
	assert_int_equal(runs->begin_ns, 5010);
	assert_int_equal(runs->end_ns, 5510);
	assert_int_equal(sleeps->begin_ns, 5510);
	assert_int_equal(sleeps->end_ns, 5810);
	assert_int_equal(sleeps->depth, 0);
	tw_buf_done(&x.bytes);
	s.sel.ranged = true;
	s.sel.from_ns = 600;
	s.sel.to_ns = 700;
	convert(&x, &s);
	assert_false(has(&x, "running"));
	assert_int_equal(find(&x, "sleeping")->begin_ns, 5600);
	assert_int_equal(find(&x, "sleeping")->end_ns, 5700);
	end(&x);
}

/* Spans of one thread that overlap without nesting stand on several tracks, as long as they were.
 */
static void test_spans(void **state)
{
	struct made m = begin(1000, 5000);
	struct tw_perfetto_source s;
	struct merged x;
	char name[32];

	(void)state;
	call(&m, WAITER, 0, 5000, -1, "a.Main.run");
	for (int i = 0; i < 4; i++) {
		(void)snprintf(name, sizeof name, "span %d", i);
		note(&m, TW_NOTE_async, WAITER, (int64_t[]){100 + i * 10, 500}, i, name);
	}
	note(&m, TW_NOTE_anr, 0, (int64_t[]){4000, 900}, 5000, "Input dispatching timed out");
	note(&m, TW_NOTE_gc, WAITER, (int64_t[]){4000, 20}, 0, "young");
	note(&m, TW_NOTE_wakeup, WAITER, (int64_t[]){10, -1}, HOLDER, "woken"); /* ends a state */
	note(&m, TW_NOTE_io, WAITER, (int64_t[]){10, 20}, 0, "/a");             /* a call as well */
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	for (int i = 0; i < 4; i++) {
		(void)snprintf(name, sizeof name, "span %d", i);
		assert_true(has(&x, name));
		assert_int_equal(find(&x, name)->begin_ns, 5100 + i * 10);
		assert_int_equal(find(&x, name)->end_ns, 5600 + i * 10);
		assert_int_equal(find(&x, name)->depth, 0);
	}
	assert_true(tw_str_eq(find(&x, "ANR: Input dispatching timed out")->track, TW_STR("ANR")));
	assert_int_equal(find(&x, "ANR: Input dispatching timed out")->end_ns, 9900);
	assert_true(has(&x, "gc: young"));
	assert_false(has(&x, "woken") || has(&x, "wakeup: woken"));
	assert_false(has(&x, "io: /a"));
	end(&x);
}

static void test_counters(void **state)
{
	struct made m = begin(1000, 5000);
	struct tw_perfetto_source s;
	struct merged x;

	(void)state;
	call(&m, WAITER, 0, 5000, -1, "a.Main.run");
	for (int i = 0; i < 100; i++)
		note(&m, TW_NOTE_counter, WAITER, (int64_t[]){i * 10, -1}, i * i,
		        i % 2 ? "heap" : "frames");
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	assert_int_equal(x.trace.n_counts, 100);
	for (int i = 0; i < 100; i++) {
		const struct perfetto_count *c = &x.trace.counts[i];

		assert_true(tw_str_eq(c->counter, tw_str_of(i % 2 ? "heap" : "frames")));
		assert_int_equal(c->ts_ns, 5000 + i * 10);
		assert_int_equal(c->value, i * i);
		assert_int_equal(c->pid, PID);
	}
	tw_buf_done(&x.bytes);
	s.sel.ranged = true;
	s.sel.from_ns = 200;
	s.sel.to_ns = 300;
	convert(&x, &s);
	assert_int_equal(x.trace.n_counts, 10);
	end(&x);
}

/* Each call has the CPU time it was recorded with, also when callees have more than their caller.
 */
static void test_cpu(void **state)
{
	struct made m = begin(1000, 5000);
	struct tw_perfetto_source s;
	struct merged x;

	(void)state;
	call(&m, WAITER, 200, 100, 70, "inner");
	call(&m, WAITER, 320, 10, 9, "inner 2");
	call(&m, WAITER, 100, 400, 300, "middle");
	call(&m, WAITER, 0, 1000, 500, "outer");
	call(&m, WAITER, 2000, 10, 0, "asleep");
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	assert_int_equal(find(&x, "inner")->cpu_ns, 70);
	assert_int_equal(find(&x, "inner 2")->cpu_ns, 9);
	assert_int_equal(find(&x, "middle")->cpu_ns, 300);
	assert_int_equal(find(&x, "outer")->cpu_ns, 500);
	assert_int_equal(find(&x, "asleep")->cpu_ns, 0);
	end(&x);
}

/* The CPU time that a call truncated by the range used within the range is unknown. */
static void test_cpu_of_cut_calls(void **state)
{
	struct made m = begin(1000, 5000);
	struct tw_perfetto_source s;
	struct merged x;

	(void)state;
	call(&m, WAITER, 100, 50, 40, "left");
	call(&m, WAITER, 200, 100, 70, "inner");
	call(&m, WAITER, 400, 90, 80, "right");
	call(&m, WAITER, 0, 1000, 500, "outer");
	finish(&x, &m);
	s = merged_source(&x);
	s.sel.ranged = true;
	s.sel.from_ns = 120;
	s.sel.to_ns = 450;
	convert(&x, &s);
	assert_int_equal(find(&x, "left")->cpu_ns, -1);
	assert_int_equal(find(&x, "inner")->cpu_ns, 70);
	assert_int_equal(find(&x, "right")->cpu_ns, -1);
	assert_int_equal(find(&x, "outer")->cpu_ns, -1);
	end(&x);
}

static void test_sampled(void **state)
{
	struct made m = begin(1000, 5000);
	struct tw_perfetto_source s;
	struct merged x;
	uint32_t track;

	(void)state;
	call(&m, WAITER, 0, 100, -1, "a.Main.run");
	call(&m, HOLDER, 0, 100, -1, "b.Main.run");
	track = m.s->ops->track(m.s, PID, WAITER, TW_TID_FULL);
	m.s->ops->source(m.s, track, TW_SOURCE_SAMPLES, 10000000);
	finish(&x, &m);
	s = merged_source(&x);
	convert(&x, &s);
	assert_true(
	        tw_str_eq(find(&x, "a.Main.run")->track, TW_STR("methods (sampled every 10 ms)")));
	assert_true(tw_str_eq(find(&x, "b.Main.run")->track, TW_STR("methods")));
	end(&x);
}

/* --- several traces --- */

static void make_two(struct merged x[2])
{
	for (int i = 0; i < 2; i++) {
		struct made m = begin(1000 + i * 700, 5000 + i * 700);

		call(&m, WAITER, 100, 50, -1, i ? "b.App.start" : "a.App.start");
		call(&m, WAITER, 400 + i * 77, 50, -1, "common.Page.show");
		finish(&x[i], &m);
	}
}

static void join(struct merged x[2], const struct tw_perfetto_options *o, const char *device,
        const char *session)
{
	struct tw_perfetto_source s[2] = {merged_source(&x[0]), merged_source(&x[1])};

	s[1].facts.trace_id = "02DEF";
	s[1].facts.device = device;
	s[1].facts.session_id = session;
	tw_buf_done(&x->bytes);
	merged_export(&x->bytes, s, 2, o, 1 << 16);
	merged_read(x, &x->trace, &x->bytes);
	assert_int_equal(perfetto_errors(&x->trace), 0);
}

static void test_one_device(void **state)
{
	const struct tw_perfetto_options o = {0};
	struct merged x[2];

	(void)state;
	make_two(x);
	join(x, &o, "d", "s");
	assert_int_equal(find(x, "a.App.start")->begin_ns, 5100);
	assert_int_equal(find(x, "b.App.start")->begin_ns, 5800);
	assert_int_equal(find(x, "b.App.start")->pid, PID);
	assert_true(merged_has(x, "clock_2", "boottime"));
	assert_true(merged_has(x, "tracewell_trace_2", "02DEF"));
	end(&x[0]);
	x[1].bytes = (struct tw_buf){0};
	end(&x[1]);
}

static void test_two_devices(void **state)
{
	static const struct {
		struct tw_perfetto_options o;
		int64_t second_ns; /* b.App.start in the file */
		const char *clock;
	} cases[] = {{{0}, 5100, "start"}, {{.align = TW_PERFETTO_BY_START}, 5100, "start"},
	        {{.align = TW_PERFETTO_BY_CLOCK}, 5800, "boottime"},
	        {{.align = TW_PERFETTO_BY_SLICE, .slice = "common.Page.show"}, 5400 - 377,
	                "slice"}};
	const struct tw_perfetto_options missing = {
	        .align = TW_PERFETTO_BY_SLICE, .slice = "a.App.start"};
	struct tw_perfetto_source s[2];
	struct tw_perfetto *p = NULL;
	struct merged x[2];

	(void)state;
	make_two(x);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		join(x, &cases[i].o, "another", "s");
		assert_int_equal(find(x, "a.App.start")->begin_ns, 5100);
		assert_int_equal(find(x, "b.App.start")->begin_ns, cases[i].second_ns);
		assert_int_equal(find(x, "a.App.start")->pid, PID);
		assert_int_equal(find(x, "b.App.start")->pid, PID + 10000000);
		assert_int_equal(find(x, "b.App.start")->tid, WAITER + 10000000);
		assert_true(merged_has(x, "clock_2", cases[i].clock));
	}
	s[0] = merged_source(&x[0]);
	s[1] = merged_source(&x[1]);
	assert_int_equal(tw_perfetto_open(s, 2, &missing, &p, NULL), TW_NOT_FOUND);
	end(&x[0]);
	x[1].bytes = (struct tw_buf){0};
	end(&x[1]);
}

/* All events that are not calls, in a recording. */
static void make_rich(struct merged *x, const char *who)
{
	struct made m = begin(400 * S, 500 * S);
	uint32_t track;
	char name[40];

	(void)snprintf(name, sizeof name, "%s.Main.run", who);
	call(&m, WAITER, 1000, 30000, 700, name);
	call(&m, HOLDER, 2000, 9000, 60, "a.Db.write");
	call(&m, CHILD, 20000, 1000, 5, "a.Task.first");
	track = m.s->ops->track(m.s, PID, HOLDER, TW_TID_FULL);
	m.s->ops->source(m.s, track, TW_SOURCE_SAMPLES, 10000000);
	m.s->ops->thread_name(m.s, PID, WAITER, TW_STR("main"));
	(void)snprintf(name, sizeof name, "%s.Lock", who);
	note(&m, TW_NOTE_contention, WAITER, (int64_t[]){3000, 4000}, HOLDER, name);
	note(&m, TW_NOTE_thread_created, WAITER, (int64_t[]){12000, -1}, CHILD, who);
	note(&m, TW_NOTE_counter, 0, (int64_t[]){5000, -1}, 42, who);
	note(&m, TW_NOTE_anr, 0, (int64_t[]){6000, 9000}, 5000, who);
	finish(x, &m);
}

/* Where a flow ends; it must. */
static const struct perfetto_slice *flow_end(const struct merged *x, uint64_t flow)
{
	static const struct perfetto_slice none;

	for (size_t i = 0; flow && i < x->trace.n; i++)
		if (x->trace.slices[i].flow_in == flow)
			return &x->trace.slices[i];
	fail_msg("a flow ends nowhere");
	return &none;
}

/* The same of one of them in a file, whose ids were moved by shift. */
static void rich_is_there(const struct merged *x, const char *who, int64_t shift)
{
	const struct perfetto_slice *holds, *first, *anr, *run;
	size_t counts = 0;
	char name[64];

	(void)snprintf(name, sizeof name, "%s.Main.run", who);
	run = find(x, name);
	assert_int_equal(run->pid, PID + shift);
	assert_int_equal(run->cpu_ns, 700);
	assert_int_equal(run->begin_ns, 500 * S + 1000);
	(void)snprintf(name, sizeof name, "waits for lock %s.Lock", who);
	holds = flow_end(x, find(x, name)->flow_out);
	(void)snprintf(name, sizeof name, "starts %s (%d)", who, CHILD);
	first = flow_end(x, find(x, name)->flow_out);
	for (size_t i = 0; i < x->trace.n; i++) {
		const struct perfetto_slice *s = &x->trace.slices[i];

		if (s->tid == HOLDER + shift && merged_is_call(s))
			assert_true(tw_str_eq(s->track, TW_STR("methods (sampled every 10 ms)")));
	}
	assert_int_equal(holds->tid, HOLDER + shift);
	assert_true(tw_str_eq(holds->name, TW_STR("holds what main (100) waits for")));
	assert_int_equal(first->tid, CHILD + shift);
	assert_true(tw_str_eq(first->name, TW_STR("a.Task.first")));
	(void)snprintf(name, sizeof name, "ANR: %s", who);
	anr = find(x, name);
	assert_int_equal(anr->pid, PID + shift);
	assert_int_equal(anr->end_ns - anr->begin_ns, 9000);
	for (size_t i = 0; i < x->trace.n_counts; i++)
		counts += tw_str_eq(x->trace.counts[i].counter, tw_str_of(who)) &&
		          x->trace.counts[i].value == 42 && x->trace.counts[i].pid == PID + shift;
	assert_int_equal(counts, 1);
}

/* With the device's trace, of two traces on one device or on two, in one file. */
static void test_merged(void **state)
{
	struct system_shape shape = merged_usual();
	const struct tw_perfetto_options o = {0};
	struct merged x[2];

	(void)state;
	shape.pid = PID;
	shape.sdk = true;
	make_rich(&x[0], "one");
	make_rich(&x[1], "two");
	system_make(&x[0].system, &shape);
	for (int devices = 1; devices <= 2; devices++) {
		size_t scenarios = 0;

		tw_arena_reset(x[0].arena);
		x[0].fd = merged_file(&x[0].system);
		join(x, &o, devices == 1 ? "d" : "another", "s");
		(void)close(x[0].fd);
		merged_read(&x[0], &x[0].alone, &x[0].system);
		merged_same_packets(&x[0]);
		rich_is_there(&x[0], "one", 0);
		rich_is_there(&x[0], "two", devices == 1 ? 0 : 10000000);
		for (size_t i = 0; i < x[0].trace.n; i++)
			scenarios += tw_str_eq(x[0].trace.slices[i].track, TW_STR("scenario"));
		assert_int_equal(scenarios, 2);
		assert_true(merged_has(&x[0], "build_id_2", "b"));
		assert_true(merged_has(&x[0], "tracewell_url_2", "https://t.example/traces/01ABC"));
	}
	tw_buf_done(&x[0].system);
	end(&x[0]);
	x[1].bytes = (struct tw_buf){0};
	end(&x[1]);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_cpu_of_cut_calls),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_merged),
};

UNIT_TESTS("perfetto_system", tests)
