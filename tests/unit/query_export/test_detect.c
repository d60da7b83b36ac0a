/*
 * What rules of what should not take long find in calls and notes of which that is known, and what
 * it may take.  Whole traces, and counting in another way: tests/e2e/query/detectors.test.mjs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/query/detect/query_detect.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

/* --- notes --- */

static const char *const NAMES[] = {"app.A.b", "lib.C.d", "Lock.lock",
        "android.view.Choreographer.doFrame", "android.os.Handler.dispatchMessage",
        "android.os.Looper.loop"};
enum { APP, LIB, LOCK, DRAW, MESSAGE, LOOP, METHODS };
enum { RULE_LOCK, RULE_IO, RULES };
enum { MANY = 70000, THREADS = 100, DEEP = 200 };

struct world {
	struct trace_fixture f;
	struct tw_arena *arena;
	uint64_t *by_method, *by_thread;
	uint8_t *roles, *is_app;
	struct tw_detect_spec rules[RULES];
	struct tw_detected found;
};

static void call(struct tw_sink *s, uint32_t track, int method, int64_t from, int64_t to)
{
	const struct tw_event ev = {.kind = TW_EV_SLICE,
	        .ts_ns = from,
	        .dur_ns = to - from,
	        .cpu_ns = -1,
	        .track = track,
	        .sym = s->ops->name(s, tw_str_of(NAMES[method]))};

	assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
}

static void note(
        struct tw_sink *s, uint32_t track, enum tw_note_kind kind, int64_t from, int64_t to)
{
	const struct tw_note n = {.kind = kind,
	        .track = track,
	        .ts_ns = from,
	        .dur_ns = to < 0 ? -1 : to - from,
	        .text = kind == TW_NOTE_section ? TW_STR("Choreographer#doFrame 7")
	                                        : TW_STR("what")};

	assert_int_equal(s->ops->note(s, &n, NULL), TW_OK);
}

static void tell(struct tw_sink *s)
{
	const uint32_t main = s->ops->track(s, 100, 100, TW_TID_FULL);
	const uint32_t other = s->ops->track(s, 100, 101, TW_TID_FULL);

	call(s, main, LOCK, 90, 200);
	call(s, main, LIB, 450, 580);
	call(s, main, APP, 440, 590);
	call(s, other, LIB, 1, 1000);
	note(s, main, TW_NOTE_contention, 100, 150);  /* the call again */
	note(s, main, TW_NOTE_contention, 80, 95);    /* likewise, by an earlier clock */
	note(s, main, TW_NOTE_contention, 300, 350);  /* reported */
	note(s, main, TW_NOTE_park, 310, 340);        /* inside of that */
	note(s, main, TW_NOTE_park, 400, 405);        /* too short */
	note(s, other, TW_NOTE_contention, 300, 400); /* not the main thread's */
	note(s, main, TW_NOTE_io, 500, 520);
	note(s, main, TW_NOTE_io, 600, -1); /* a moment */
	note(s, main, TW_NOTE_section, 700, 950);
}

static uint64_t by_name(void *arg, struct tw_str name, uint8_t *ret_role)
{
	(void)arg;
	*ret_role = tw_detect_role_of(name);
	return 0;
}

static void open_world_of(struct world *w, void (*emit)(struct tw_sink *s))
{
	const struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);

	*w = (struct world){.arena = tw_arena_new(64 << 20)};
	emit(tw_builder_sink(b));
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
	w->by_method = tw_arena_zalloc(w->arena, METHODS, sizeof *w->by_method);
	w->by_thread = tw_arena_zalloc(w->arena, THREADS + 2, sizeof *w->by_thread);
	w->roles = tw_arena_zalloc(w->arena, METHODS, 1);
	w->is_app = tw_arena_zalloc(w->arena, METHODS, 1);
	for (uint32_t i = 0; i < w->f.n_methods; i++) {
		if (tw_str_eq(w->f.methods[i].name, tw_str_of(NAMES[LOCK])))
			w->by_method[i] = 1 << RULE_LOCK;
		w->is_app[i] = tw_str_eq(w->f.methods[i].name, tw_str_of(NAMES[APP]));
		w->roles[i] = tw_detect_role_of(w->f.methods[i].name);
	}
	w->rules[RULE_LOCK] = (struct tw_detect_spec){
	        RULE_LOCK, 10, UINT64_C(1) << TW_NOTE_contention | UINT64_C(1) << TW_NOTE_park};
	w->rules[RULE_IO] = (struct tw_detect_spec){RULE_IO, 10, UINT64_C(1) << TW_NOTE_io};
	w->by_thread[1] = (1 << RULES) - 1;
}

static void open_world(struct world *w)
{
	open_world_of(w, tell);
}

static void close_world(struct world *w)
{
	trace_fixture_done(&w->f);
	w->arena = tw_arena_free(w->arena);
}

static void detect_in(struct world *w, const struct tw_deadline *deadline, struct tw_arena *a)
{
	const struct tw_detect_query query = {.rules = w->rules,
	        .n_rules = RULES,
	        .by_method = w->by_method,
	        .roles = w->roles,
	        .is_app = w->is_app,
	        .n_methods = w->f.n_methods,
	        .by_thread = w->by_thread,
	        .main_id = 1,
	        .by_name = by_name,
	        .keep = 10,
	        .least_message_ns = 1,
	        .deadline = deadline};

	assert_int_equal(tw_query_detect(w->f.file, &query, a, &w->found, NULL), TW_OK);
}

static void look(struct world *w, const struct tw_deadline *deadline)
{
	detect_in(w, deadline, w->arena);
}

static void notes_are_found_once(void **state)
{
	struct world w;
	const struct tw_finding *io;

	(void)state;
	open_world(&w);
	look(&w, NULL);
	assert_int_equal(w.found.cut, 0);
	assert_int_equal(w.found.sums[RULE_LOCK].calls, 3); /* the call, a contention, a park */
	assert_int_equal(w.found.sums[RULE_LOCK].total_ns, 110 + 50 + 5);
	assert_int_equal(w.found.sums[RULE_LOCK].found, 2);
	assert_int_equal(w.found.sums[RULE_LOCK].found_ns, 110 + 50);
	assert_int_equal(w.found.sums[RULE_IO].calls, 2);
	assert_int_equal(w.found.sums[RULE_IO].found, 1);
	io = &w.found.sums[RULE_IO].kept[0];
	assert_int_equal(io->start_ns, 500);
	assert_string_equal(io->text, "what");
	assert_true(tw_str_eq(w.f.methods[io->method].name, tw_str_of(NAMES[LIB])));
	assert_true(tw_str_eq(w.f.methods[io->caller].name, tw_str_of(NAMES[APP])));
	close_world(&w);
}

static void sections_are_frames(void **state)
{
	const struct tw_frame_limits limits = {100, 200, 10, NULL};
	struct tw_frames frames;
	struct world w;

	(void)state;
	open_world(&w);
	look(&w, NULL);
	assert_int_equal(
	        tw_detect_frames(w.f.file, &w.found, &limits, w.arena, &frames, NULL), TW_OK);
	assert_int_equal(frames.from, TW_FRAMES_CALLS);
	assert_int_equal(frames.total, 1);
	assert_int_equal(frames.frozen, 1);
	assert_int_equal(frames.list[0].start_ns, 700);
	assert_int_equal(frames.list[0].dur_ns, 250);
	close_world(&w);
}

/* Counts its calls. */
static bool at_once(void *arg)
{
	++*(int *)arg;
	return true;
}

static bool never(void *arg)
{
	++*(int *)arg;
	return false;
}

static void emit_threads(struct tw_sink *s)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		const uint32_t track = s->ops->track(s, 100, 100 + i, TW_TID_FULL);

		for (int k = DEEP; k-- > 0;)
			call(s, track, LOCK, k, 1000 - k);
	}
}

static void open_threads(struct world *w)
{
	open_world_of(w, emit_threads);
	for (uint32_t i = 1; i <= THREADS; i++)
		w->by_thread[i] = 1 << RULE_LOCK;
}

static void an_exceeded_deadline_is_reported(void **state)
{
	int asked = 0;
	const struct tw_deadline deadline = {at_once, &asked};
	struct world w;

	(void)state;
	open_threads(&w);
	look(&w, &deadline);
	assert_int_equal(w.found.cut, TW_CUT_TIME);
	assert_int_equal(asked, 1);
	assert_int_equal(w.found.sums[RULE_LOCK].calls, 0); /* of no thread */
	close_world(&w);
}

static void deep_threads_share_their_room(void **state)
{
	struct tw_arena *room;
	struct world w;

	(void)state;
	open_threads(&w);
	room = tw_arena_new(1 << 20); /* as much as a few of them take */
	detect_in(&w, NULL, room);
	assert_int_equal(w.found.cut, 0);
	assert_int_equal(w.found.sums[RULE_LOCK].calls, THREADS); /* the outermost of each */
	tw_arena_free(room);
	close_world(&w);
}

static void time_is_asked_at_each_section(void **state)
{
	int asked = 0;
	const struct tw_deadline deadline = {never, &asked};
	struct world w;

	(void)state;
	open_world(&w);
	look(&w, &deadline);
	assert_int_equal(w.found.cut, 0);
	assert_true(asked >= 10); /* the main thread, and nine notes */
	close_world(&w);
}

static void emit_many_frames(struct tw_sink *s)
{
	const uint32_t main = s->ops->track(s, 100, 100, TW_TID_FULL);

	for (int64_t i = 0; i < TW_DETECT_ROLE_CALLS_MAX + 7; i++)
		call(s, main, DRAW, 10 * i, 10 * i + 5);
	for (int64_t i = TW_DETECT_ROLE_CALLS_MAX + 7; i < TW_DETECT_ROLE_CALLS_MAX + 7 + MANY; i++)
		call(s, main, LOCK, 10 * i, 10 * i + 5);
}

/* A full list is walked past. */
static void too_many_marks_cost_no_findings(void **state)
{
	struct world w;

	(void)state;
	open_world_of(&w, emit_many_frames);
	look(&w, NULL);
	assert_int_equal(w.found.cut, TW_CUT_ROLE_CALLS);
	assert_int_equal(w.found.n_role_calls, TW_DETECT_ROLE_CALLS_MAX);
	assert_int_equal(w.found.sums[RULE_LOCK].calls, MANY);
	close_world(&w);
}

static void emit_guard(struct tw_sink *s)
{
	const uint32_t main = s->ops->track(s, 100, 100, TW_TID_FULL);

	call(s, main, DRAW, 120, 180);
	call(s, main, MESSAGE, 120, 180);
	call(s, main, MESSAGE, 200, 260);
	call(s, main, LOOP, 100, 900);
	call(s, main, MESSAGE, 50,
	        950); /* a guard against crashes runs a loop within one message */
	call(s, main, LOOP, 10, 1000);
}

static void what_lies_around_a_loop_is_no_message(void **state)
{
	const struct tw_frame_limits limits = {10, 20, 10, NULL};
	struct tw_frames frames;
	struct world w;

	(void)state;
	open_world_of(&w, emit_guard);
	look(&w, NULL);
	assert_int_equal(w.found.n_role_calls, 3);
	assert_int_equal(w.found.role_calls[0].role, TW_CALL_MESSAGE); /* around the frame */
	assert_int_equal(w.found.role_calls[1].role, TW_CALL_FRAME);
	assert_int_equal(w.found.role_calls[2].start_ns, 200);
	assert_int_equal(
	        tw_detect_frames(w.f.file, &w.found, &limits, w.arena, &frames, NULL), TW_OK);
	assert_int_equal(frames.total, 1);
	assert_int_equal(frames.messages, 1);
	close_world(&w);
}

/* --- frames of the display --- */

static void emit_display(struct tw_sink *s)
{
	const uint32_t main = s->ops->track(s, 100, 100, TW_TID_FULL);

	s->ops->clock(s, &(struct tw_clock){.pid = 100});
	call(s, main, APP, 0, 1000);
	for (int i = 0; i < 300; i++) {
		const bool ours = i % 100 == 99;
		const struct tw_note n = {.kind = TW_NOTE_frame,
		        .ts_ns = i,
		        .dur_ns = 50,
		        .text = TW_STR("late"),
		        .detail =
		                ours ? TW_STR("{\"pid\":100,\"of\":\"actual\",\"on\":\"surface\"}")
		                     : TW_STR("{\"pid\":7,\"of\":\"actual\",\"on\":\"surface\"}")};

		assert_int_equal(s->ops->note(s, &n, NULL), TW_OK);
	}
}

static void check_display(
        struct world *w, const struct tw_frame_limits *limits, uint64_t total, unsigned cut)
{
	struct tw_frames frames;

	assert_int_equal(
	        tw_detect_frames(w->f.file, &w->found, limits, w->arena, &frames, NULL), TW_OK);
	assert_int_equal(frames.total, total);
	assert_int_equal(frames.cut, cut);
}

static void frames_are_cut_aloud(void **state)
{
	int asked = 0;
	const struct tw_deadline deadline = {at_once, &asked};
	struct world w;

	(void)state;
	open_world_of(&w, emit_display);
	assert_int_equal(tw_trace_file_info(w.f.file)->pid, 100);
	look(&w, NULL);
	check_display(&w, &(struct tw_frame_limits){10, 20, 3, NULL}, 3, 0);
	check_display(&w, &(struct tw_frame_limits){10, 20, 2, NULL}, 2, TW_CUT_FRAMES);
	check_display(&w, &(struct tw_frame_limits){10, 20, 3, &deadline}, 0, TW_CUT_TIME);
	close_world(&w);
}

/* --- causes --- */

static void check_heavy(struct world *w, const struct tw_deadline *deadline, size_t memory,
        enum tw_status st, bool partial)
{
	uint32_t n;
	const struct tw_heavy_query query = {
	        tw_trace_file_threads(w->f.file, &n), 440, 590, w->is_app, deadline};
	struct tw_arena *a = tw_arena_new(memory);
	bool is_partial = false;
	struct tw_heavy h;

	assert_int_equal(tw_query_heavy(w->f.file, &query, a, &h, &is_partial, NULL), st);
	assert_int_equal(is_partial, partial);
	assert_int_equal(h.leaf != TW_NO_METHOD, st == TW_OK && !partial);
	tw_arena_free(a);
}

static void causes_have_a_time_and_a_room(void **state)
{
	int asked = 0;
	const struct tw_deadline up = {at_once, &asked};
	struct world w;

	(void)state;
	open_world(&w);
	check_heavy(&w, NULL, 1 << 20, TW_OK, false);
	check_heavy(&w, &up, 1 << 20, TW_OK, true);
	check_heavy(&w, NULL, 16, TW_NOMEM, false);
	close_world(&w);
}

/* --- the start --- */

static struct tw_role_call role(const char *name, int64_t from, int64_t to)
{
	return (struct tw_role_call){from, to - from, 1, 1, tw_detect_role_of(tw_str_of(name))};
}

static void check_phases(struct tw_role_call *role_calls, uint32_t n, const char *const *ids,
        size_t n_ids, bool cold)
{
	const struct tw_detected d = {.role_calls = role_calls, .n_role_calls = n};
	struct tw_start s;

	tw_detect_start(&d, &s);
	assert_int_equal(s.n, n_ids);
	assert_int_equal(s.cold, cold);
	for (size_t i = 0; i < n_ids; i++)
		assert_string_equal(s.phases[i].id, ids[i]);
}

static void starts_are_distinguished(void **state)
{
	static const char *const all[] = {
	        "bind", "attach", "providers", "application", "create", "resume", "frame"};
	static const char *const some[] = {"create", "resume", "frame"};
	struct tw_role_call cold[] = {role("bindApplication", 10, 100),
	        role("com.app.App.attachBaseContext", 12, 20),
	        role("com.app.AProvider.onCreate", 22, 30),
	        role("com.app.BProvider.onCreate", 32, 40), role("com.app.App.onCreate", 41, 99),
	        role("com.app.MainActivity.attachBaseContext", 101, 102),
	        role("performCreate:com.app.MainActivity", 103, 150),
	        role("com.app.MainActivity.onCreate", 104, 149),
	        role("com.app.MainActivity.onResume", 151, 160),
	        role("android.view.Choreographer.doFrame", 170, 200),
	        role("com.app.MainActivity.reportFullyDrawn", 300, 310)};
	struct tw_role_call warm[] = {role("com.app.MainActivity.attachBaseContext", 1, 2),
	        role("com.app.MainActivity.onCreate", 4, 9),
	        role("com.app.MainActivity.onResume", 10, 12), role("performTraversals", 20, 30)};
	struct tw_role_call none[] = {role("android.view.Choreographer.doFrame", 170, 200)};
	const struct tw_detected d = {
	        .role_calls = cold, .n_role_calls = sizeof cold / sizeof *cold};
	struct tw_start s;

	(void)state;
	check_phases(cold, sizeof cold / sizeof *cold, all, 7, true);
	check_phases(warm, sizeof warm / sizeof *warm, some, 3, false);
	check_phases(none, 1, NULL, 0, false);
	tw_detect_start(&d, &s);
	assert_int_equal(s.phases[2].start_ns, 22); /* both providers */
	assert_int_equal(s.phases[2].dur_ns, 18);
	assert_int_equal(s.phases[4].start_ns, 103); /* the better line of two */
	assert_int_equal(s.end_ns - s.start_ns, 190);
	assert_int_equal(s.initial_ns, 190);
	assert_int_equal(s.full_ns, 300);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_found_once),
        cmocka_unit_test(sections_are_frames),
        cmocka_unit_test(an_exceeded_deadline_is_reported),
        cmocka_unit_test(deep_threads_share_their_room),
        cmocka_unit_test(time_is_asked_at_each_section),
        cmocka_unit_test(too_many_marks_cost_no_findings),
        cmocka_unit_test(what_lies_around_a_loop_is_no_message),
        cmocka_unit_test(frames_are_cut_aloud),
        cmocka_unit_test(causes_have_a_time_and_a_room),
        cmocka_unit_test(starts_are_distinguished),
};

UNIT_TESTS("detect", tests)
