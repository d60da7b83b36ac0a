/* Unit tests of reading Perfetto traces: other clocks, flows, CPU frequencies, heap profiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "perfetto_fixture.h"

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

/* One that holds nothing else is refused, in words; beside events it is told. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_realtime),
	        cmocka_unit_test(test_flows),
	        cmocka_unit_test(test_frequency),
	        cmocka_unit_test(test_heap_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
