/* Unit tests of reading Perfetto traces: other clocks, flows, CPU frequencies, heap profiles,
 * frames of the display, events of old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/decoder_formats/perfetto_fixture.h"
#include "tests/unit/unit.h"

/* Any clock that a snapshot relates to the trace's, over several snapshots. */
static void test_realtime(void **state)
{
	const uint64_t unix_ns = UINT64_C(1700000000000000000);
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	for (unsigned i = 0; i < 2; i++) { /* the wall clock is set forward by 5 us between them */
		perfetto_clock(&w, 6, BASE + i * 1000000);
		perfetto_clock(&w, 1, unix_ns + i * 1005000);
		perfetto_clock(&w, 5, 77 + i * 1000000);
		perfetto_sub(&w.packet, 6, &w.message);
		perfetto_packet(&w);
	}
	perfetto_thread(&w, 7, 10, 11);
	perfetto_event(&w, BASE, 6, 1, "boot");
	perfetto_event(&w, unix_ns + 100, 1, 1, "wall");
	perfetto_event(&w, 77 + 200, 5, 1, "raw");
	perfetto_event(&w, unix_ns + 1005000 + 300, 1, 1, "later");
	for (int i = 0; i < 4; i++)
		perfetto_event(&w, BASE + 2000000, 6, 2, NULL);
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.n, 4);
	assert_int_equal(event_log_repairs(&log), 0);
	for (size_t i = 0; i < 4; i++) { /* innermost first */
		static const int64_t after[] = {1000300, 200, 100, 0};

		assert_int_equal(log.events[i].ts_ns - log.events[3].ts_ns, after[i]);
	}
	event_log_done(&log);
	perfetto_done(&w);
}

static bool noted(struct event_log *log, const char *head, const char *tail)
{
	for (const char *at = event_log_text(log); (at = strstr(at, head)); at++) {
		const char *rest = at + strlen(head) + 1;

		rest += strspn(rest, "0123456789");
		if (strncmp(rest, tail, strlen(tail)) == 0)
			return true;
	}
	return false;
}

/* field 47 or 48: fixed64; 36 or 42: numbers of old; packed or not. */
static void flow_event(struct perfetto_writer *w, uint64_t ns, uint64_t track, uint32_t field,
        uint64_t id, bool packed)
{
	perfetto_num(&w->message, 9, 3);
	perfetto_num(&w->message, 11, track);
	perfetto_str(&w->message, 23, ns % 2 ? "odd" : "even");
	for (int i = 0; packed && i < 8; i++)
		(void)tw_buf_add_u8(&w->inner, (uint8_t)(id >> 8 * i));
	if (packed) {
		perfetto_sub(&w->message, field, &w->inner);
	} else if (field >= 47) {
		(void)tw_buf_add_varint(&w->message, (uint64_t)field << 3 | 1);
		(void)tw_buf_add_u64le(&w->message, id);
	} else {
		perfetto_num(&w->message, field, id);
	}
	perfetto_num(&w->packet, 8, BASE + ns);
	perfetto_num(&w->packet, 10, 1);
	perfetto_sub(&w->packet, 11, &w->message);
	perfetto_packet(w);
}

static void test_flows(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	perfetto_thread(&w, 8, 20, 21);
	flow_event(&w, 0, 7, 47, 1, false);
	flow_event(&w, 5, 8, 47, 1, true);
	flow_event(&w, 8, 7, 48, 1, false);
	flow_event(&w, 9, 7, 48, 1, false); /* another one, which nothing led to */
	flow_event(&w, 30, 8, 36, 2, false);
	flow_event(&w, 20, 7, 36, 2, false); /* written later, but it was first */
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_true(noted(&log, "note flow 12 60000000000 5 21", " odd {\"to_pid\":20}"));
	assert_true(noted(&log, "note flow 22 60000000005 3 11", " even {\"to_pid\":10}"));
	assert_true(noted(&log, "note flow 12 60000000020 10 21", "  {\"to_pid\":20}"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	perfetto_done(&w);
}

static void test_frequency(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_num(&w.inner, 1, 1804800);
	perfetto_num(&w.inner, 2, 5);
	perfetto_num(&w.message, 1, BASE + 70);
	perfetto_num(&w.message, 2, 0);
	perfetto_sub(&w.message, 11, &w.inner);
	perfetto_num(&w.inner, 1, 0); /* the bundle's CPU */
	perfetto_sub(&w.inner, 2, &w.message);
	perfetto_sub(&w.packet, 1, &w.inner);
	perfetto_packet(&w);
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_true(noted(&log, "note counter 0 60000000070 -1 1804800", " cpu5 frequency (kHz)"));
	event_log_done(&log);
	perfetto_done(&w);
}

/* A trace that contains nothing else is refused with a message; with events it is reported. */
static void test_heap_profile(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 4; kind++) {
		struct perfetto_writer w;
		struct event_log log;

		perfetto_begin(&w);
		perfetto_snapshot(&w, BASE, BASE);
		perfetto_thread(&w, 7, 10, 11);
		if (kind & 2)
			perfetto_event(&w, BASE, 0, 3, "moment");
		perfetto_str(&w.packet, kind & 1 ? 37 : 56, "a heap");
		perfetto_packet(&w);
		event_log_run_cut(&log, w.out.data, w.out.len, NULL);
		assert_int_equal(log.status, kind & 2 ? TW_OK : TW_UNSUPPORTED);
		assert_true(kind & 2 || strstr(log.err.msg, "heap profile"));
		assert_int_equal(log.counts[TW_REPAIR_heap_profile_left_out], 1);
		event_log_done(&log);
		perfetto_done(&w);
	}
}

/* --- frames of the display --- */

/* kind: of the event, the field of its message; more: its fields after the cookie, -1 ends them */
static void frame(
        struct perfetto_writer *w, uint64_t ns, uint32_t kind, uint64_t cookie, const int64_t *more)
{
	perfetto_num(&w->inner, 1, cookie);
	for (; more && *more >= 0; more += 2)
		perfetto_num(&w->inner, (uint32_t)more[0], (uint64_t)more[1]);
	if (kind == 3 || kind == 4)
		perfetto_str(&w->inner, 5, "layer");
	perfetto_sub(&w->message, kind, &w->inner);
	perfetto_num(&w->packet, 8, BASE + ns);
	perfetto_num(&w->packet, 10, 1);
	perfetto_sub(&w->packet, 76, &w->message);
	perfetto_packet(w);
}

static void test_frames(void **state)
{
	static const int64_t expected[] = {2, 900, 3, 901, 4, 10, -1};
	static const int64_t actual[] = {2, 900, 3, 901, 4, 10, 6, 2, 9, 64 | 128 | 1 << 20, -1};
	static const int64_t display[] = {2, 901, 3, 30, 4, 1, 7, 1, -1};
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	frame(&w, 0, 3, 1, expected);
	frame(&w, 5, 4, 2, actual);
	frame(&w, 7, 2, 3, display);
	frame(&w, 16, 5, 1, NULL);
	frame(&w, 20, 5, 3, NULL);
	frame(&w, 30, 5, 2, NULL);
	frame(&w, 30, 5, 2, NULL); /* ended before */
	frame(&w, 40, 1, 4, display);
	frame(&w, 50, 1, 4, display); /* the cookie again: the first has no end */
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_true(noted(&log, "note frame 0 60000000000 16 900",
	        " layer {\"pid\":10,\"timeline\":\"expected\",\"of\":\"surface\","
	        "\"display_frame\":901}\n"));
	assert_true(noted(&log, "note frame 0 60000000005 25 900",
	        " layer {\"pid\":10,\"timeline\":\"actual\",\"of\":\"surface\","
	        "\"display_frame\":901,\"presented\":\"late\","
	        "\"jank\":\"app deadline missed, buffer stuffing, other\"}\n"));
	assert_true(noted(&log, "note frame 0 60000000007 13 901",
	        " display {\"pid\":30,\"timeline\":\"actual\",\"of\":\"display\","
	        "\"presented\":\"on time\",\"jank\":\"none\"}\n"));
	assert_true(noted(&log, "note frame 0 60000000040 10 901", " display {\"pid\":30,"));
	assert_true(noted(&log, "note frame 0 60000000050 0 901", " display {\"pid\":30,"));
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 2);
	event_log_done(&log);
	perfetto_done(&w);
}

/* More open calls than the limit: the oldest are emitted as open, in the order of their begins. */
static void test_many_frames(void **state)
{
	enum { KEPT = 4096, MORE = 3 };
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	for (unsigned i = 0; i < KEPT + MORE; i++)
		frame(&w, i, 1, i, NULL);
	for (unsigned i = 0; i < KEPT + MORE; i++)
		frame(&w, 10000, 5, i, NULL);
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], MORE);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], MORE);
	assert_true(noted(&log, "note frame 0 60000000000 4096 0", " display "));
	assert_true(noted(&log, "note frame 0 60000000002 4096 0", " display "));
	assert_true(noted(&log, "note frame 0 60000000003 9997 0", " display "));
	event_log_done(&log);
	perfetto_done(&w);
}

/* --- events of old --- */

struct old { /* fields of its legacy_event; scope NULL: none */
	uint64_t ns;
	char phase;
	const char *name, *scope;
	uint32_t id_field;
	uint64_t id;
	const char *category; /* NULL: none */
};

static void old_event(struct perfetto_writer *w, const struct old *o)
{
	perfetto_str(&w->message, 23, o->name);
	if (o->category)
		perfetto_str(&w->message, 22, o->category);
	perfetto_num(&w->message, 11, 7);
	perfetto_num(&w->inner, 2, (uint64_t)o->phase);
	perfetto_num(&w->inner, o->id_field, o->id);
	if (o->scope)
		perfetto_str(&w->inner, 7, o->scope);
	perfetto_sub(&w->message, 6, &w->inner);
	perfetto_num(&w->packet, 8, BASE + o->ns);
	perfetto_num(&w->packet, 10, 1);
	perfetto_sub(&w->packet, 11, &w->message);
	perfetto_packet(w);
}

static void old_run(struct event_log *log, const struct old *list, size_t n)
{
	struct perfetto_writer w;

	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	for (size_t i = 0; i < n; i++)
		old_event(&w, &list[i]);
	event_log_run_cut(log, w.out.data, w.out.len, NULL);
	perfetto_done(&w);
}

/* Spans with an id nest on it, those with a name and an id do not; an id is the trace's or the
 * process's. */
static void test_spans_of_old(void **state)
{
	static const struct old list[] = {
	        {0, 'b', "outer", "net", 6, 5},
	        {1, 'b', "inner", "net", 6, 5},
	        {2, 'b', "other", NULL, 11, 5}, /* of no scope */
	        {3, 'e', "inner", "net", 6, 5},
	        {4, 'n', "moment", "net", 6, 5},
	        {9, 'e', "outer", "net", 6, 5},
	        {10, 'S', "step", NULL, 10, 6},
	        {11, 'S', "step", NULL, 10, 7},
	        {12, 'F', "step", NULL, 10, 6},
	        {13, 'F', "step", NULL, 11, 7}, /* the trace's 7, not the process's */
	        {14, 'T', "into", NULL, 10, 7},
	};
	struct event_log log;

	(void)state;
	old_run(&log, list, sizeof list / sizeof *list);
	assert_true(noted(&log, "note async 12 60000000001 2 5", " inner {\"track\":\"net\"}"));
	assert_true(noted(&log, "note async 12 60000000000 9 5", " outer {\"track\":\"net\"}"));
	assert_true(noted(&log, "note async 12 60000000002 12 5", " other {\"track\":\"async\"}"));
	assert_true(noted(&log, "note async 12 60000000010 2 6", " step {\"pid\":10}"));
	assert_true(noted(&log, "note async 12 60000000011 3 7", " step {\"pid\":10}"));
	assert_true(noted(&log, "note instant 12 60000000004 -1 0", " moment "));
	assert_true(noted(&log, "note instant 12 60000000014 -1 0", " into "));
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(log.counts[TW_REPAIR_enter_without_exit], 2);
	assert_int_equal(log.counts[TW_REPAIR_event_unread], 0);
	event_log_done(&log);
}

/* Nestable spans of one id are distinguished by category, scope and name, as Perfetto does. */
static void test_keys_of_old(void **state)
{
	static const struct old list[] = {
	        {0, 'b', "load", NULL, 11, 5, "net"}, {1, 'b', "load", NULL, 11, 5, "disk"},
	        {2, 'b', "parse", NULL, 11, 5, "net"}, {3, 'b', "load", "page", 11, 5, "net"},
	        {10, 'e', "load", NULL, 11, 5, "net"}, {20, 'e', "load", "page", 11, 5, "net"},
	        {30, 'e', "load", NULL, 11, 5, "disk"}, {40, 'e', "parse", NULL, 11, 5, "net"},
	        {50, 'e', "parse", NULL, 11, 5, "disk"}, /* begun in no such category */
	};
	struct event_log log;

	(void)state;
	old_run(&log, list, sizeof list / sizeof *list);
	assert_true(noted(&log, "note async 12 60000000000 10 5", " load {\"track\":\"net\"}"));
	assert_true(noted(&log, "note async 12 60000000001 29 5", " load {\"track\":\"disk\"}"));
	assert_true(noted(&log, "note async 12 60000000002 38 5", " parse {\"track\":\"net\"}"));
	assert_true(
	        noted(&log, "note async 12 60000000003 17 5", " load {\"track\":\"net:page\"}"));
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 1);
	assert_int_equal(event_log_repairs(&log), 1);
	event_log_done(&log);
}

/* Sequences of two threads of old: track 0 is the thread's own, said as a default or by an event
 * that has a letter alone. */
static void test_track_zero(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	for (uint64_t i = 1; i <= 2; i++) {
		perfetto_num(&w.message, 1, 10 * i);
		perfetto_num(&w.message, 2, 10 * i + 1);
		perfetto_num(&w.packet, 10, i);
		perfetto_sub(&w.packet, 44, &w.message);
		perfetto_num(&w.inner, 11, 0);
		perfetto_sub(&w.message, 11, &w.inner);
		perfetto_sub(&w.packet, 59, &w.message);
		perfetto_packet(&w);
	}
	for (uint64_t i = 0; i < 8; i++) {
		bool letter = i >= 2 && i < 6; /* and names the track */

		perfetto_str(&w.message, 23, letter ? "b" : "a");
		if (letter)
			perfetto_num(&w.message, 11, 0);
		else
			perfetto_num(&w.message, 9, i < 4 ? 1 : 2);
		if (letter) {
			perfetto_num(&w.inner, 2, i < 4 ? 'B' : 'E');
			perfetto_sub(&w.message, 6, &w.inner);
		}
		perfetto_num(&w.packet, 8, BASE + i);
		perfetto_num(&w.packet, 10, 1 + i % 2);
		perfetto_sub(&w.packet, 11, &w.message);
		perfetto_packet(&w);
	}
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	perfetto_done(&w);
	assert_int_equal(log.n, 4);
	for (size_t i = 0; i < log.n; i++)
		assert_int_equal(log.events[i].track, i % 2 ? 22 : 12);
	assert_int_equal(log.counts[TW_REPAIR_exit_without_enter], 0);
	event_log_done(&log);
}

/* Flows by their letters; events with an unsupported letter are counted. */
static void test_letters_of_old(void **state)
{
	static const struct old list[] = {
	        {0, 's', "post", NULL, 6, 9},
	        {5, 't', "move", NULL, 6, 9},
	        {8, 'f', "run", NULL, 6, 9},
	        {9, 'O', "object", NULL, 6, 9},
	        {10, 'M', "metadata", NULL, 6, 9},
	        {11, 'R', "mark", NULL, 6, 9},
	};
	struct event_log log;

	(void)state;
	old_run(&log, list, sizeof list / sizeof *list);
	assert_true(noted(&log, "note flow 12 60000000000 5 11", " move "));
	assert_true(noted(&log, "note flow 12 60000000005 3 11", " run "));
	assert_true(noted(&log, "note instant 12 60000000011 -1 0", " mark "));
	assert_int_equal(log.counts[TW_REPAIR_event_unread], 2);
	event_log_done(&log);
}

/* One that was written by another thread than its own. */
static void test_thread_of_old(void **state)
{
	struct perfetto_writer w;
	struct event_log log;

	(void)state;
	perfetto_begin(&w);
	perfetto_snapshot(&w, BASE, BASE);
	perfetto_thread(&w, 7, 10, 11);
	perfetto_str(&w.message, 23, "call");
	perfetto_num(&w.inner, 2, 'X');
	perfetto_num(&w.inner, 3, 5);
	perfetto_num(&w.inner, 18, 10);
	perfetto_num(&w.inner, 19, 12);
	perfetto_sub(&w.message, 6, &w.inner);
	perfetto_num(&w.packet, 8, BASE);
	perfetto_num(&w.packet, 10, 1);
	perfetto_sub(&w.packet, 11, &w.message);
	perfetto_packet(&w);
	perfetto_event(&w, BASE + 6000, 6, 5, "warm"); /* a state: from now on */
	perfetto_event(&w, BASE + 7000, 6, 6, "of tomorrow");
	event_log_run_cut(&log, w.out.data, w.out.len, NULL);
	assert_int_equal(log.n, 1);
	assert_int_equal(log.events[0].kind, TW_EV_SLICE);
	assert_int_equal(log.events[0].track, 13);
	assert_int_equal(log.events[0].dur_ns, 5000);
	assert_true(noted(&log, "note instant 12 60000006000 -1 0", " warm "));
	assert_int_equal(log.counts[TW_REPAIR_event_unread], 1);
	event_log_done(&log);
	perfetto_done(&w);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_realtime),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_frequency),
        cmocka_unit_test(test_heap_profile),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_spans_of_old),
        cmocka_unit_test(test_keys_of_old),
        cmocka_unit_test(test_track_zero),
        cmocka_unit_test(test_letters_of_old),
        cmocka_unit_test(test_thread_of_old),
};

UNIT_TESTS("perfetto_kinds", tests)
