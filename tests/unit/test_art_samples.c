/* Real ART traces beside the source tree: as many enters, exits and open calls as their README
 * says, and event for event what the expected file of the made ones has.  Skipped, saying so, where
 * they are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "art_fixture.h"

static void path_of(char *path, size_t cap, const char *name)
{
	const char *root = getenv("TW_SOURCE_ROOT");

	(void)snprintf(path, cap, "%s/../shared/samples/art/%s", root ? root : ".", name);
}

/* False, and said, when it is not there. */
static bool read_sample(const char *name, struct tw_buf *ret)
{
	char path[4096];
	FILE *f;
	size_t n;

	path_of(path, sizeof path, name);
	tw_buf_init(ret, 64 << 20);
	f = fopen(path, "rbe");
	if (!f) {
		print_message("skipped: no recording at %s\n", path);
		return false;
	}
	do {
		assert_int_equal(tw_buf_reserve(ret, 1 << 20), TW_OK);
		n = fread(ret->data + ret->len, 1, 1 << 20, f);
		ret->len += n;
	} while (n);
	(void)fclose(f);
	return true;
}

static void test_counts(void **state)
{
	static const struct {
		const char *name;
		unsigned enters, exits, open, adopted, unnamed, slices;
	} rows[] = {
	        {"basic.trace", 4, 5, 2, 3, 0, 7},
	        {"basic-api10.trace", 5, 5, 2, 2, 0, 7},
	        {"exception.trace", 11, 12, 2, 3, 0, 14},
	        {"art-trace-streaming.trace.gz", 19885, 19492, 393, 0, 9, 19885},
	        {"v1-streaming-wall.trace", 3, 3, 0, 0, 0, 3},
	        {"v2b-dual-split-block.trace", 3, 3, 0, 0, 0, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct trace_log trace;
		struct event_log log;
		struct tw_buf b;
		unsigned kinds[8] = {0};

		if (!read_sample(rows[i].name, &b))
			skip();
		art_run(&log, &b);
		assert_int_equal(log.status, TW_OK);
		assert_string_equal(log.format->name, "art");
		for (size_t k = 0; k < log.n; k++)
			kinds[log.events[k].kind]++;
		assert_int_equal(kinds[TW_EV_BEGIN], rows[i].enters);
		assert_int_equal(kinds[TW_EV_END_EARLIER], rows[i].exits);
		assert_int_equal(log.counts[TW_REPAIR_time_fell], 0);
		event_log_done(&log);
		assert_int_equal(art_build(&b, &trace), TW_OK);
		assert_int_equal(trace.info.slices, rows[i].slices);
		assert_int_equal(trace.repairs[TW_REPAIR_enter_without_exit], rows[i].open);
		assert_int_equal(trace.repairs[TW_REPAIR_begin_clamped], rows[i].adopted);
		assert_int_equal(trace.repairs[TW_REPAIR_method_unnamed], rows[i].unnamed);
		assert_int_equal(trace.repairs[TW_REPAIR_exit_without_enter], 0);
		assert_int_equal(trace.repairs[TW_REPAIR_overlap_clipped], 0);
		trace_log_done(&trace);
		tw_buf_done(&b);
	}
}

/* The stream of Firefox' tests was sampled, and its threads have their names and ids. */
static void test_stream(void **state)
{
	struct trace_log trace;
	struct tw_buf b;

	(void)state;
	if (!read_sample("art-trace-streaming.trace.gz", &b))
		skip();
	assert_int_equal(art_build(&b, &trace), TW_OK);
	assert_int_equal(trace.info.pid, 15983);
	assert_int_equal(trace.info.threads, 52);
	assert_true(trace.info.has_cpu);
	assert_int_equal(trace.threads[0].tid, 15983);
	assert_true(trace.threads[0].is_main);
	for (size_t i = 0; i < trace.n_threads; i++) {
		assert_int_equal(trace.threads[i].source, TW_SOURCE_SAMPLES);
		assert_in_range(trace.threads[i].interval_ns, 500000, 20000000);
		assert_int_equal(trace.threads[i].pid, 15983);
		assert_true(trace.threads[i].name.len > 0);
	}
	trace_log_done(&trace);
	tw_buf_done(&b);
}

static void check_event(const struct event_log *log, size_t i, const json_t *want, bool dual)
{
	const char *action = json_string_value(json_object_get(want, "action"));
	bool enter = strcmp(action, "enter") == 0;
	json_int_t cpu_ns = json_integer_value(json_object_get(want, "cpu_ns"));
	char line[200];

	assert_int_equal(log->events[i].kind, enter ? TW_EV_BEGIN : TW_EV_END_EARLIER);
	assert_int_equal(
	        log->events[i].ts_ns, json_integer_value(json_object_get(want, "wall_ns")));
	assert_int_equal(log->events[i].cpu_ns, dual ? cpu_ns : -1);
	(void)snprintf(line, sizeof line, "method %u %s(", log->events[i].sym - 1,
	        json_string_value(json_object_get(want, "class_method")));
	assert_true(art_told(log, line));
}

static void test_expected(void **state)
{
	char path[4096];
	json_t *all;
	const char *name;
	json_t *row;

	(void)state;
	path_of(path, sizeof path, "synthetic-expected.json");
	all = json_load_file(path, 0, NULL);
	if (!all) {
		print_message("skipped: no recording at %s\n", path);
		skip();
	}
	json_object_foreach(all, name, row)
	{
		const json_t *events = json_object_get(row, "events");
		const char *clock = json_string_value(json_object_get(row, "clock"));
		bool micros = strncmp(name, "v1", 2) == 0;
		struct event_log log;
		struct tw_buf b;

		assert_true(read_sample(name, &b));
		art_run(&log, &b);
		assert_int_equal(log.n, json_array_size(events));
		for (size_t i = 0; i < log.n; i++) {
			json_t *want = json_array_get(events, i);
			json_int_t wall_ns = json_integer_value(json_object_get(want, "wall_ns"));

			if (micros) /* what is left of it there */
				(void)json_object_set_new(
				        want, "wall_ns", json_integer(wall_ns / 1000 * 1000));
			check_event(&log, i, want, strcmp(clock, "dual") == 0);
		}
		event_log_done(&log);
		tw_buf_done(&b);
	}
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_counts),
	        cmocka_unit_test(test_stream),
	        cmocka_unit_test(test_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
