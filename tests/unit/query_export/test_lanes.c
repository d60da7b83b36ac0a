/*
 * Lanes, sums and activity of ranges, held against plain loops over the same notes and calls.
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
#include "server/query/query_notes.h"
#include "tests/fixtures/trace_fixture.h"
#include "tests/unit/unit.h"

enum { NOTES = 8000, THREADS = 3, SPAN = 2000000 }; /* four blocks of sums */

struct plain {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: of the whole trace */
	int64_t ts_ns, dur_ns, value;
	char text[12];
	uint32_t row;
};

struct world {
	struct trace_fixture f;
	struct tw_arena *arena;
	struct plain notes[NOTES]; /* by time */
	size_t n;
};

static const char states[4][12] = {"running", "runnable", "sleeping", "blocked"};

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void make(struct plain *p, size_t i, uint32_t *seed)
{
	static const enum tw_note_kind kinds[] = {TW_NOTE_state, TW_NOTE_state, TW_NOTE_state,
	        TW_NOTE_counter, TW_NOTE_contention, TW_NOTE_gc, TW_NOTE_instant};

	p->kind = kinds[next(seed) % 7];
	p->thread_id = p->kind == TW_NOTE_gc ? 0 : 1 + next(seed) % THREADS;
	p->ts_ns = (int64_t)(i * (SPAN / NOTES) + next(seed) % 3);
	p->dur_ns = next(seed) % 9 == 0 ? 5000 + next(seed) % 20000 : next(seed) % 300;
	if (p->kind == TW_NOTE_counter || p->kind == TW_NOTE_instant)
		p->dur_ns = -1;
	p->value = (int64_t)(next(seed) % 100) - 20;
	if (p->kind == TW_NOTE_state)
		memcpy(p->text, states[next(seed) % 4], 9);
	else
		p->text[0] = (char)('a' + next(seed) % 14);
}

static int64_t end_of(const struct plain *p)
{
	return p->ts_ns + (p->dur_ns > 0 ? p->dur_ns : 0);
}

/* The lowest row on which no earlier note of its kind and thread is still open. */
static uint32_t row_of(const struct world *w, const struct plain *p)
{
	uint32_t row = 0;

	if (p->kind == TW_NOTE_state || p->kind == TW_NOTE_counter)
		return 0;
	for (const struct plain *q = w->notes; q < p; q++)
		if (q->kind == p->kind && q->thread_id == p->thread_id && q->row == row &&
		        end_of(q) > p->ts_ns) {
			row++;
			q = w->notes - 1;
		}
	return row;
}

static void open_world(struct world *w, uint32_t seed)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track[THREADS + 1] = {0};

	memset(w, 0, sizeof *w);
	for (uint32_t i = 1; i <= THREADS; i++)
		track[i] = s->ops->track(s, 100, 100 + i, TW_TID_FULL);
	for (size_t i = 0; i < NOTES; i++) {
		struct plain *p = &w->notes[w->n++];

		make(p, i, &seed);
		p->row = row_of(w, p);
		assert_int_equal(s->ops->note(s,
		                         &(struct tw_note){.kind = p->kind,
		                                 .track = track[p->thread_id],
		                                 .ts_ns = p->ts_ns,
		                                 .dur_ns = p->dur_ns,
		                                 .value = p->value,
		                                 .text = tw_str_of(p->text)},
		                         NULL),
		        TW_OK);
	}
	assert_int_equal(trace_fixture_write(&w->f, b), TW_OK);
	w->arena = tw_arena_new((size_t)64 << 20);
	assert_non_null(w->arena);
}

static void close_world(struct world *w)
{
	tw_arena_free(w->arena);
	trace_fixture_done(&w->f);
}

static const struct tw_selection everything = {.all_threads = true};

static struct tw_lanes lanes_of(struct world *w, const struct tw_lanes_query *q)
{
	struct tw_lanes l = {0};

	tw_arena_reset(w->arena);
	assert_int_equal(tw_query_lanes(w->f.file, q, NULL, w->arena, &l, NULL), TW_OK);
	return l;
}

static bool belongs(const struct plain *p, const struct tw_lane *l)
{
	return p->kind == l->kind && p->thread_id == l->thread_id && p->row == l->row &&
	       (p->kind != TW_NOTE_counter || tw_str_eq(tw_str_of(p->text), l->name));
}

/* The notes that a run stands for, by a plain loop: as many, with the same ends and the same text.
 */
static void check_run(const struct world *w, const struct tw_lanes *all, const struct tw_lane *l,
        const struct tw_lane_run *r, int64_t width)
{
	int64_t time[8] = {0};
	int64_t most = 0;
	int64_t last_end = r->ts_ns;
	uint32_t notes = 0;
	const struct plain *first = NULL;

	for (size_t i = 0; i < w->n && w->notes[i].ts_ns <= r->ts_ns + width; i++) {
		const struct plain *p = &w->notes[i];

		if (!belongs(p, l) || p->ts_ns < r->ts_ns || notes == r->notes)
			continue;
		if (r->notes == 1 && (p->dur_ns != r->dur_ns || p->value != r->value))
			continue;
		if (r->notes > 1 && p->dur_ns >= width)
			continue;
		first = first ? first : p;
		notes++;
		last_end = end_of(p) > last_end ? end_of(p) : last_end;
		for (int s = 0; l->kind == TW_NOTE_state && s < 4; s++)
			if (strcmp(p->text, states[s]) == 0)
				time[s] += p->dur_ns > 0 ? p->dur_ns : 1;
	}
	assert_non_null(first);
	assert_int_equal(first ? first->ts_ns : -1, r->ts_ns);
	assert_int_equal(notes, r->notes);
	assert_int_equal(last_end, r->ts_ns + (r->dur_ns > 0 ? r->dur_ns : 0));
	for (int s = 0; l->kind == TW_NOTE_state && s < 4; s++)
		most = time[s] > most ? time[s] : most;
	for (int s = 0; l->kind == TW_NOTE_state && s < 4; s++)
		if (tw_str_eq(all->texts[r->text], tw_str_of(states[s])))
			assert_int_equal(time[s], most);
}

static void test_lanes_contain_all_notes(void **state)
{
	static const uint32_t cells[] = {1, 7, 100, TW_LANE_CELLS_MAX};
	static struct world w;

	(void)state;
	open_world(&w, 3);
	for (size_t c = 0; c < 4; c++) {
		struct tw_lanes_query q = {&everything, UINT64_MAX, cells[c], 0, SPAN + 30000};
		struct tw_lanes l = lanes_of(&w, &q);
		int64_t width = q.to_ns / cells[c] + 1;
		uint64_t notes = 0;

		assert_false(l.partial);
		for (uint32_t i = 0; i < l.n; i++) {
			uint32_t exact = 0;

			for (uint32_t k = 0; k < l.lanes[i].n; k++) {
				const struct tw_lane_run *r = &l.lanes[i].runs[k];

				if (k)
					assert_true(r->ts_ns >= r[-1].ts_ns);
				notes += r->notes;
				exact += r->dur_ns >= width;
				check_run(&w, &l, &l.lanes[i], r, width);
			}
			assert_true(l.lanes[i].n <= cells[c] + 2 * exact);
		}
		assert_int_equal(notes, w.n);
	}
	close_world(&w);
}

static void test_lanes_of_a_selection(void **state)
{
	static struct world w;
	const uint64_t tids[] = {102};
	const struct tw_selection one = {.tids = tids, .n_tids = 1};
	struct tw_lanes_query q = {&one, UINT64_C(1) << TW_NOTE_state, 50, 300000, 400000};
	struct tw_lanes l;
	uint64_t notes = 0;
	uint64_t want = 0;

	(void)state;
	open_world(&w, 4);
	l = lanes_of(&w, &q);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.lanes[0].kind, TW_NOTE_state);
	assert_int_equal(l.lanes[0].thread_id, 2);
	for (uint32_t k = 0; k < l.lanes[0].n; k++)
		notes += l.lanes[0].runs[k].notes;
	for (size_t i = 0; i < w.n; i++)
		want += w.notes[i].kind == TW_NOTE_state && w.notes[i].thread_id == 2 &&
		        w.notes[i].ts_ns < 400000 && end_of(&w.notes[i]) >= 300000;
	assert_int_equal(notes, want);
	q.kinds = UINT64_C(1) << TW_NOTE_gc; /* of the whole trace, not of this thread */
	assert_int_equal(lanes_of(&w, &q).n, 0);
	q.sel = &everything;
	l = lanes_of(&w, &q);
	assert_true(l.n > 1); /* of overlapping collections, rows */
	for (uint32_t i = 0; i < l.n; i++) {
		assert_int_equal(l.lanes[i].kind, TW_NOTE_gc);
		for (uint32_t k = 0; k < l.lanes[i].n; k++)
			check_run(&w, &l, &l.lanes[i], &l.lanes[i].runs[k], 100000 / 50 + 1);
	}
	close_world(&w);
}

/* A counter keeps its value until the next one: a lane that begins later begins with it. */
static void test_counters_carry_on(void **state)
{
	static struct world w;
	struct tw_lanes_query q = {&everything, UINT64_C(1) << TW_NOTE_counter, 4, 500000, 500001};
	struct tw_lanes l;

	(void)state;
	open_world(&w, 5);
	l = lanes_of(&w, &q);
	assert_true(l.n > 10);
	for (uint32_t i = 0; i < l.n; i++) {
		const struct plain *last = NULL;

		for (size_t k = 0; k < w.n && w.notes[k].ts_ns <= 500000; k++)
			if (belongs(&w.notes[k], &l.lanes[i]))
				last = &w.notes[k];
		assert_non_null(last);
		assert_int_equal(l.lanes[i].runs[0].ts_ns, 500000);
		assert_int_equal(
		        l.lanes[i].runs[l.lanes[i].n - 1].value, last ? last->value : INT64_MAX);
	}
	q.from_ns = 0;
	q.to_ns = SPAN;
	q.cells = 10;
	l = lanes_of(&w, &q);
	for (uint32_t i = 0; i < l.n; i++)
		for (uint32_t k = 0; k < l.lanes[i].n; k++) {
			const struct tw_lane_run *r = &l.lanes[i].runs[k];

			assert_true(r->low <= r->value && r->value <= r->high);
		}
	close_world(&w);
}

static bool touches(const struct plain *p, const struct tw_selection *sel)
{
	return p->ts_ns < sel->to_ns && end_of(p) >= sel->from_ns;
}

static bool is_of(const struct plain *p, const struct tw_note_sum *s)
{
	return p->kind == s->kind && p->thread_id == s->thread_id &&
	       (!s->text.len || tw_str_eq(s->text, tw_str_of(p->text)));
}

static void check_sums(struct world *w, const struct tw_selection *sel)
{
	struct tw_note_sums s = {0};
	uint64_t notes = 0;

	tw_arena_reset(w->arena);
	assert_int_equal(tw_query_note_sums(w->f.file, sel, NULL, w->arena, &s, NULL), TW_OK);
	assert_false(s.partial);
	for (uint32_t i = 0; i < s.n; i++) {
		uint64_t count = 0;
		int64_t sum = 0;

		for (size_t k = 0; k < w->n; k++) {
			const struct plain *p = &w->notes[k];
			int64_t from = p->ts_ns < sel->from_ns ? sel->from_ns : p->ts_ns;
			int64_t to = end_of(p) > sel->to_ns ? sel->to_ns : end_of(p);

			if (!touches(p, sel) || !is_of(p, &s.sums[i]))
				continue;
			count++;
			sum += to > from ? to - from : 0;
		}
		assert_int_equal(s.sums[i].notes, count);
		assert_int_equal(s.sums[i].dur_ns, sum);
		notes += count;
	}
	for (size_t k = 0; k < w->n; k++)
		notes -= touches(&w->notes[k], sel);
	assert_int_equal(notes, 0);
}

/* Ranges of a few notes, of several blocks and their ends, of nothing, and the whole. */
static void test_sums(void **state)
{
	static struct world w;
	static const int64_t ranges[][2] = {{200000, 260000}, {0, SPAN / 2}, {SPAN / 3, SPAN},
	        {10, 1999000}, {SPAN * 2, SPAN * 3}, {0, 1}, {0, INT64_MAX}};
	struct tw_selection sel = {.all_threads = true, .ranged = true};

	(void)state;
	open_world(&w, 6);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		sel.from_ns = ranges[i][0];
		sel.to_ns = ranges[i][1];
		check_sums(&w, &sel);
	}
	sel.ranged = false; /* ignores both ends */
	check_sums(&w, &sel);
	close_world(&w);
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

static void test_limits(void **state)
{
	static struct world w;
	const struct tw_deadline over = {always, NULL};
	struct tw_lanes_query q = {&everything, UINT64_MAX, 100, 0, SPAN};
	struct tw_note_sums s = {0};
	struct tw_lanes l = {0};

	(void)state;
	open_world(&w, 7);
	assert_int_equal(tw_query_lanes(w.f.file, &q, &over, w.arena, &l, NULL), TW_OK);
	assert_true(l.partial);
	assert_int_equal(
	        tw_query_note_sums(w.f.file, &everything, &over, w.arena, &s, NULL), TW_OK);
	assert_true(s.partial);
	for (uint64_t step = 1;; step++) {
		struct tw_arena *a = tw_arena_new((size_t)64 << 20);
		enum tw_status st;
		enum tw_status st2;

		tw_mem_fail_at(step);
		st = tw_query_lanes(w.f.file, &q, NULL, a, &l, NULL);
		st2 = tw_query_note_sums(w.f.file, &everything, NULL, a, &s, NULL);
		tw_mem_fail_at(0);
		tw_arena_free(a);
		assert_true(st == TW_OK || st == TW_NOMEM);
		if (st == TW_OK && st2 == TW_OK)
			break;
		assert_true(step < 200);
	}
	close_world(&w);
}

/* More lanes than there may be: the first are returned, marked as incomplete. */
static void test_too_many_lanes(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *arena = tw_arena_new((size_t)64 << 20);

	(void)state;
	for (int more = 0; more <= 1; more++) {
		struct tw_builder *b = tw_builder_new(&limits);
		struct tw_sink *s = tw_builder_sink(b);
		struct tw_lanes_query q = {&everything, UINT64_MAX, 10, 0, 5000};
		struct trace_fixture f;
		struct tw_lanes l = {0};

		for (int i = 0; i < TW_LANES_MAX + more; i++) {
			const char name[3] = {(char)('a' + i % 26), (char)('A' + i / 26), 0};

			assert_int_equal(s->ops->note(s,
			                         &(struct tw_note){.kind = TW_NOTE_counter,
			                                 .ts_ns = i,
			                                 .dur_ns = -1,
			                                 .text = tw_str_of(name)},
			                         NULL),
			        TW_OK);
		}
		assert_int_equal(trace_fixture_write(&f, b), TW_OK);
		assert_int_equal(tw_query_lanes(f.file, &q, NULL, arena, &l, NULL), TW_OK);
		assert_int_equal(l.n, TW_LANES_MAX);
		assert_int_equal(l.partial, more);
		trace_fixture_done(&f);
	}
	tw_arena_free(arena);
}

/* Calls from 100 to 1000 with one from 200 to 300 in them, then one from 1500 to 1600. */
static void test_activity_of_a_range(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 1, TW_TID_FULL);
	static const int64_t times[][2] = {{200, 300}, {100, 1000}, {1500, 1600}};
	struct tw_lanes_query q = {NULL, 0, 4, 150, 1750};
	const struct tw_thread_info *t;
	struct trace_fixture f;
	uint8_t cells[4];
	uint32_t n;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE,
		        .ts_ns = times[i][0],
		        .dur_ns = times[i][1] - times[i][0],
		        .cpu_ns = -1,
		        .track = track,
		        .sym = s->ops->method(s, 7)};

		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
	}
	assert_int_equal(trace_fixture_write(&f, b), TW_OK);
	t = tw_trace_file_threads(f.file, &n);
	assert_int_equal(tw_query_activity_range(f.file, t, &q, cells, NULL), TW_OK);
	assert_int_equal(cells[0], 255); /* 401 wide: 150 to 551 */
	assert_int_equal(cells[1], 255);
	assert_in_range(cells[2], 28, 31); /* 952 to 1353: 48 of 401 */
	assert_in_range(cells[3], 62, 65); /* 1353 to 1754: 100 */
	q.from_ns = 1100;
	q.to_ns = 1400;
	assert_int_equal(tw_query_activity_range(f.file, t, &q, cells, NULL), TW_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cells[i], 0);
	trace_fixture_done(&f);
}

/* A call from 100 to 1000 that is on a CPU until 300 and from 900 on, with one from 200 to 400 in
 * it. Names say that both wait: the scheduler knows better. */
static void test_states_contain_what_ran(void **state)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_sink *s = tw_builder_sink(b);
	uint32_t track = s->ops->track(s, 1, 1, TW_TID_FULL);
	static const int64_t calls[][2] = {{200, 400}, {100, 1000}};
	static const int64_t runs[][2] = {{100, 300}, {300, 900}, {900, 1000}};
	static const bool waiting[] = {true, true};
	const struct tw_waits waits = {waiting, 2};
	struct tw_arena *arena = tw_arena_new((size_t)1 << 20);
	uint8_t cells[TW_ACTIVITY_CELLS];
	const struct tw_thread_info *t;
	struct trace_fixture f;
	struct tw_tree tree;
	int64_t running = -1;
	int64_t *own;
	uint32_t n;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
		        s->ops->note(s,
		                &(struct tw_note){.kind = TW_NOTE_state,
		                        .track = track,
		                        .ts_ns = runs[i][0],
		                        .dur_ns = runs[i][1] - runs[i][0],
		                        .text = tw_str_of(i == 1 ? "sleeping" : "running")},
		                NULL),
		        TW_OK);
	for (uint64_t i = 0; i < 2; i++) {
		struct tw_event ev = {.kind = TW_EV_SLICE,
		        .ts_ns = calls[i][0],
		        .dur_ns = calls[i][1] - calls[i][0],
		        .cpu_ns = -1,
		        .track = track,
		        .sym = s->ops->method(s, 8 - i)};

		assert_int_equal(s->ops->events(s, &ev, 1, NULL), TW_OK);
	}
	assert_int_equal(trace_fixture_write(&f, b), TW_OK);
	t = tw_trace_file_threads(f.file, &n);
	assert_int_equal(tw_query_activity(f.file, t, &waits, cells, &running, NULL), TW_OK);
	assert_int_equal(running, 300);
	assert_int_equal(tw_query_thread_tree(f.file, t, &everything, arena, &tree, NULL), TW_OK);
	assert_int_equal(
	        tw_query_running(&(struct tw_forest){&tree, 1}, &waits, 2, arena, &own, NULL),
	        TW_OK);
	assert_int_equal(tree.n, 3);
	assert_int_equal(own[tree.nodes[1].method], 200);
	assert_int_equal(own[tree.nodes[2].method], 100);
	tw_arena_free(arena);
	trace_fixture_done(&f);
}

/* Without calls a trace is as long as its notes; a single moment has no length. */
static void test_length_without_calls(void **state)
{
	struct tw_limits limits = tw_limits_default();

	(void)state;
	for (int64_t dur_ns = 0; dur_ns <= 40; dur_ns += 40) {
		struct tw_builder *b = tw_builder_new(&limits);
		struct tw_sink *s = tw_builder_sink(b);
		const struct tw_note n = {.kind = TW_NOTE_state,
		        .track = s->ops->track(s, 1, 1, TW_TID_FULL),
		        .ts_ns = 500,
		        .dur_ns = dur_ns,
		        .text = TW_STR("running")};
		struct trace_fixture f;

		assert_int_equal(s->ops->note(s, &n, NULL), TW_OK);
		assert_int_equal(trace_fixture_write(&f, b), TW_OK);
		assert_int_equal(tw_trace_file_duration_ns(f.file), dur_ns ? dur_ns : -1);
		trace_fixture_done(&f);
	}
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_contain_all_notes),
        cmocka_unit_test(test_lanes_of_a_selection),
        cmocka_unit_test(test_counters_carry_on),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_too_many_lanes),
        cmocka_unit_test(test_activity_of_a_range),
        cmocka_unit_test(test_states_contain_what_ran),
        cmocka_unit_test(test_length_without_calls),
};

UNIT_TESTS("lanes", tests)
