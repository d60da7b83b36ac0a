/*
 * Rules of what should not take long: which names they fit, and what they find in calls and notes
 * of which that is known.  Whole traces, and counting in another way: tests/e2e/detectors.test.mjs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../trace_fixture.h"
#include "detect_frames.h"
#include "detect_start.h"

/* --- notes --- */

static const char *const NAMES[] = {
        "app.A.b", "lib.C.d", "Lock.lock", "android.view.Choreographer.doFrame"};
enum { APP, LIB, LOCK, DRAW, METHODS };
enum { RULE_LOCK, RULE_IO, RULES };

struct world {
	struct trace_fixture f;
	struct tw_arena *arena;
	uint64_t *by_method, by_thread[3];
	uint8_t *marks, *is_app;
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
	note(s, main, TW_NOTE_contention, 100, 150);  /* the call once more */
	note(s, main, TW_NOTE_contention, 300, 350);  /* told */
	note(s, main, TW_NOTE_park, 310, 340);        /* inside of that */
	note(s, main, TW_NOTE_park, 400, 405);        /* too short */
	note(s, other, TW_NOTE_contention, 300, 400); /* not the main thread's */
	note(s, main, TW_NOTE_io, 500, 520);
	note(s, main, TW_NOTE_io, 600, -1); /* a moment */
	note(s, main, TW_NOTE_section, 700, 950);
}

static uint64_t by_name(void *arg, struct tw_str name, uint8_t *ret_mark)
{
	(void)arg;
	*ret_mark = tw_detect_mark_of(name);
	return 0;
}

static void open_world(struct world *w)
{
	const struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);

	*w = (struct world){.arena = tw_arena_new(64 << 20)};
	tell(tw_builder_sink(b));
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
	w->by_method = tw_arena_zalloc(w->arena, METHODS, sizeof *w->by_method);
	w->marks = tw_arena_zalloc(w->arena, METHODS, 1);
	w->is_app = tw_arena_zalloc(w->arena, METHODS, 1);
	for (uint32_t i = 0; i < w->f.n_methods; i++) {
		if (tw_str_eq(w->f.methods[i].name, tw_str_of(NAMES[LOCK])))
			w->by_method[i] = 1 << RULE_LOCK;
		w->is_app[i] = tw_str_eq(w->f.methods[i].name, tw_str_of(NAMES[APP]));
	}
	w->rules[RULE_LOCK] = (struct tw_detect_spec){
	        RULE_LOCK, 10, UINT64_C(1) << TW_NOTE_contention | UINT64_C(1) << TW_NOTE_park};
	w->rules[RULE_IO] = (struct tw_detect_spec){RULE_IO, 10, UINT64_C(1) << TW_NOTE_io};
	w->by_thread[1] = (1 << RULES) - 1;
}

static void close_world(struct world *w)
{
	trace_fixture_done(&w->f);
	w->arena = tw_arena_free(w->arena);
}

static void look(struct world *w, const struct tw_deadline *deadline)
{
	const struct tw_detect_ask ask = {.rules = w->rules,
	        .n_rules = RULES,
	        .by_method = w->by_method,
	        .marks = w->marks,
	        .is_app = w->is_app,
	        .n_methods = w->f.n_methods,
	        .by_thread = w->by_thread,
	        .main_id = 1,
	        .by_name = by_name,
	        .keep = 10,
	        .least_message_ns = 1,
	        .deadline = deadline};

	assert_int_equal(tw_query_detect(w->f.file, &ask, w->arena, &w->found, NULL), TW_OK);
}

static void notes_are_found_once(void **state)
{
	struct world w;
	const struct tw_finding *io;

	(void)state;
	open_world(&w);
	look(&w, NULL);
	assert_false(w.found.partial);
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
	const struct tw_frame_limits limits = {100, 200};
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

static bool at_once(void *arg)
{
	(void)arg;
	return true;
}

static void time_that_is_up_is_told(void **state)
{
	const struct tw_deadline deadline = {at_once, NULL};
	struct world w;

	(void)state;
	open_world(&w);
	look(&w, &deadline);
	assert_true(w.found.partial);
	close_world(&w);
}

/* --- the start --- */

static struct tw_marked mark(const char *name, int64_t from, int64_t to)
{
	return (struct tw_marked){from, to - from, 1, 1, tw_detect_mark_of(tw_str_of(name))};
}

static void check_phases(
        struct tw_marked *marked, uint32_t n, const char *const *ids, size_t n_ids, bool cold)
{
	const struct tw_detected d = {.marked = marked, .n_marked = n};
	struct tw_start s;

	tw_detect_start(&d, &s);
	assert_int_equal(s.n, n_ids);
	assert_int_equal(s.cold, cold);
	for (size_t i = 0; i < n_ids; i++)
		assert_string_equal(s.phases[i].id, ids[i]);
}

static void starts_are_told_apart(void **state)
{
	static const char *const all[] = {
	        "bind", "attach", "providers", "application", "create", "resume", "frame"};
	static const char *const some[] = {"create", "resume", "frame"};
	struct tw_marked cold[] = {mark("bindApplication", 10, 100),
	        mark("com.app.App.attachBaseContext", 12, 20),
	        mark("com.app.AProvider.onCreate", 22, 30),
	        mark("com.app.BProvider.onCreate", 32, 40), mark("com.app.App.onCreate", 41, 99),
	        mark("com.app.MainActivity.attachBaseContext", 101, 102),
	        mark("performCreate:com.app.MainActivity", 103, 150),
	        mark("com.app.MainActivity.onCreate", 104, 149),
	        mark("com.app.MainActivity.onResume", 151, 160),
	        mark("android.view.Choreographer.doFrame", 170, 200)};
	struct tw_marked warm[] = {mark("com.app.MainActivity.attachBaseContext", 1, 2),
	        mark("com.app.MainActivity.onCreate", 4, 9),
	        mark("com.app.MainActivity.onResume", 10, 12), mark("performTraversals", 20, 30)};
	struct tw_marked none[] = {mark("android.view.Choreographer.doFrame", 170, 200)};
	const struct tw_detected d = {.marked = cold, .n_marked = sizeof cold / sizeof *cold};
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(notes_are_found_once),
	        cmocka_unit_test(sections_are_frames),
	        cmocka_unit_test(time_that_is_up_is_told),
	        cmocka_unit_test(starts_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
