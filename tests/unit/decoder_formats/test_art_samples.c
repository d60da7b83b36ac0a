/* Real ART traces next to the source tree: the numbers of enters, exits and open calls of their
 * README, and for the generated ones each event of the expected file. Skipped with a message if
 * they are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/decoder_formats/art_fixture.h"
#include "tests/unit/unit.h"

static void read_sample(const char *name, struct tw_buf *ret)
{
	FILE *f = fopen(unit_sample(name), "rbe");
	size_t n;

	assert_non_null(f);
	tw_buf_init(ret, 64 << 20);
	do {
		assert_int_equal(tw_buf_reserve(ret, 1 << 20), TW_OK);
		n = fread(ret->data + ret->len, 1, 1 << 20, f);
		ret->len += n;
	} while (n);
	(void)fclose(f);
}

static void test_counts(void **state)
{
	static const struct {
		const char *name;
		unsigned enters, exits, open, adopted, unnamed, slices;
	} rows[] = {
	        {"art/basic.trace", 4, 5, 2, 3, 0, 7},
	        {"art/basic-api10.trace", 5, 5, 2, 2, 0, 7},
	        {"art/exception.trace", 11, 12, 2, 3, 0, 14},
	        {"art/art-trace-streaming.trace.gz", 19885, 19492, 393, 0, 9, 19885},
	        {"art/v1-streaming-wall.trace", 3, 3, 0, 0, 0, 3},
	        {"art/v2b-dual-split-block.trace", 3, 3, 0, 0, 0, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct trace_log trace;
		struct event_log log;
		struct tw_buf b;
		unsigned kinds[8] = {0};

		read_sample(rows[i].name, &b);
		art_run(&log, &b);
		assert_int_equal(log.status, TW_OK);
		assert_string_equal(log.format->name, "art");
		for (size_t k = 0; k < log.n; k++)
			kinds[log.events[k].kind]++;
		assert_int_equal(kinds[TW_EV_BEGIN], rows[i].enters);
		assert_int_equal(kinds[TW_EV_END] + kinds[TW_EV_END_EARLIER], rows[i].exits);
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
	read_sample("art/art-trace-streaming.trace.gz", &b);
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
	assert_true(art_reported(log, line));
}

static void test_expected(void **state)
{
	json_t *all;
	const char *name;
	json_t *row;

	(void)state;
	all = json_load_file(unit_sample("art/synthetic-expected.json"), 0, NULL);
	assert_non_null(all);
	json_object_foreach(all, name, row)
	{
		const json_t *events = json_object_get(row, "events");
		const char *clock = json_string_value(json_object_get(row, "clock"));
		bool micros = strncmp(name, "v1", 2) == 0;
		struct event_log log;
		struct tw_buf b;
		char path[256];

		(void)snprintf(path, sizeof path, "art/%s", name);
		read_sample(path, &b);
		art_run(&log, &b);
		assert_int_equal(log.n, json_array_size(events));
		for (size_t i = 0; i < log.n; i++) {
			json_t *want = json_array_get(events, i);
			json_int_t wall_ns = json_integer_value(json_object_get(want, "wall_ns"));

			if (micros) /* the rest of it there */
				(void)json_object_set_new(
				        want, "wall_ns", json_integer(wall_ns / 1000 * 1000));
			check_event(&log, i, want, strcmp(clock, "dual") == 0);
		}
		event_log_done(&log);
		tw_buf_done(&b);
	}
	json_decref(all);
}

/* --- what ART's own test of its streams expects --- */

enum { MAX_METHODS = 256, MAX_LINES = 2048, STEP_US = 10, CPU_STEP_US = 4 };

struct said { /* one section of it */
	bool stream, dual;
	struct tw_str methods[MAX_METHODS]; /* "class name descriptor source" */
	size_t n_methods;
	struct expected_line {
		bool main_thread;
		unsigned action; /* 0 enter, 1 exit, 2 left by an exception */
		uint32_t method;
	} lines[MAX_LINES];
	size_t n;
};

/* "...>> THREAD CLASS NAME DESCRIPTOR SOURCE", "<<", "<<E" */
static bool read_expected(struct said *s, struct tw_str line)
{
	struct expected_line *l = &s->lines[s->n];
	struct tw_str what;

	while (line.len && line.ptr[0] == '.')
		line = tw_str_from(line, 1);
	what = tw_str_split(&line, ' ');
	if (!tw_str_starts(what, TW_STR(">>")) && !tw_str_starts(what, TW_STR("<<")))
		return false;
	l->action = what.ptr[0] == '>' ? 0 : what.len == 2 ? 1 : 2;
	l->main_thread = tw_str_eq(tw_str_split(&line, ' '), TW_STR("main"));
	for (l->method = 0; l->method < s->n_methods; l->method++)
		if (tw_str_eq(s->methods[l->method], line))
			break;
	if (l->method == s->n_methods)
		s->methods[s->n_methods++] = line;
	s->n++;
	assert_true(s->n < MAX_LINES && s->n_methods < MAX_METHODS);
	return true;
}

static void put_method(struct tw_buf *b, const struct said *s, uint32_t k, bool in_stream)
{
	struct tw_buf line;

	tw_buf_init(&line, 4096);
	(void)tw_buf_printf(&line, k ? "%#x\t" : "%u\t", k * 4);
	for (size_t i = 0; i < s->methods[k].len; i++)
		(void)tw_buf_add_u8(
		        &line, s->methods[k].ptr[i] == ' ' ? '\t' : (uint8_t)s->methods[k].ptr[i]);
	(void)tw_buf_add_u8(&line, '\n');
	if (in_stream) {
		art_bytes(b, "0000 01");
		art_u16(b, (unsigned)line.len);
	}
	(void)tw_buf_add_str(b, (struct tw_str){(const char *)line.data, line.len});
	tw_buf_done(&line);
}

static void put_text(struct tw_buf *b, const struct said *s)
{
	(void)tw_buf_printf(b,
	        "*version\n%d\nclock=%s\nvm=art\npid=77\n*threads\n1\tmain\n2\tTestThread2246\n"
	        "*methods\n",
	        s->dual ? 3 : 2, s->dual ? "dual" : "wall");
	for (uint32_t k = 0; !s->stream && k < s->n_methods; k++)
		put_method(b, s, k, false);
	art_text(b, "*end\n");
}

static void put_records(struct tw_buf *b, const struct said *s)
{
	size_t named = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct expected_line *l = &s->lines[i];
		uint32_t word = l->method * 4 | l->action;
		uint32_t wall = (uint32_t)i * STEP_US;

		while (s->stream && named <= l->method)
			put_method(b, s, (uint32_t)named++, true);
		if (s->dual)
			art_record3(
			        b, l->main_thread ? 1 : 2, word, (uint32_t)i * CPU_STEP_US, wall);
		else
			art_record2(b, l->main_thread ? 1 : 2, word, wall);
	}
}

/* A trace with these calls, in the layout that the section declares. */
static void put_trace(struct tw_buf *b, const struct said *s)
{
	struct tw_buf summary;

	tw_buf_init(b, 1 << 20);
	if (!s->stream) {
		put_text(b, s);
		art_lead(b, s->dual ? 3 : 2, 5000, s->dual ? 14 : 0);
		put_records(b, s);
		return;
	}
	art_lead(b, s->dual ? 0xF3 : 0xF2, 5000, s->dual ? 14 : 10);
	put_records(b, s);
	tw_buf_init(&summary, 1 << 16);
	put_text(&summary, s);
	art_bytes(b, "0000 03");
	art_u32(b, (uint32_t)summary.len);
	(void)tw_buf_add_str(b, (struct tw_str){(const char *)summary.data, summary.len});
	tw_buf_done(&summary);
}

/* "CLASS.NAME(descriptor...": as it is emitted. */
static void compare_expected(const struct event_log *log, const struct said *s, size_t i)
{
	const struct expected_line *l = &s->lines[i];
	struct tw_str rest = s->methods[l->method];
	struct tw_str class_name = tw_str_split(&rest, ' ');
	struct tw_str name = tw_str_split(&rest, ' ');
	struct tw_str descriptor = tw_str_split(&rest, ' ');
	char line[1024];

	assert_int_equal(log->events[i].track, l->main_thread ? 2 : 3);
	art_check(log, i, l->action ? TW_EV_END_EARLIER : TW_EV_BEGIN, (uint64_t)l->method * 4,
	        (int64_t)i * STEP_US * 1000, s->dual ? (int64_t)i * CPU_STEP_US * 1000 : -1);
	(void)snprintf(line, sizeof line, "method %u %.*s.%.*s%.*s\n", l->method * 4,
	        (int)class_name.len, class_name.ptr, (int)name.len, name.ptr, (int)descriptor.len,
	        descriptor.ptr);
	assert_true(art_reported(log, line));
}

static void check_section(const struct said *s)
{
	struct event_log log;
	struct tw_buf b;
	size_t unrolls = 0;
	size_t reported = 0;

	put_trace(&b, s);
	art_run(&log, &b);
	tw_buf_done(&b);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.n, s->n);
	assert_int_equal(event_log_repairs(&log), 0);
	for (size_t i = 0; i < s->n; i++) {
		compare_expected(&log, s, i);
		unrolls += s->lines[i].action == 2;
	}
	for (size_t i = 0; i + 12 < log.names.len; i++)
		reported += memcmp(log.names.data + i, "note unroll ", 12) == 0;
	assert_int_equal(reported, unrolls);
	assert_true(unrolls > 0);
	event_log_done(&log);
}

/* Recordings of these calls in all four layouts give back each line, and nothing else. */
static void test_what_streams_must_contain(void **state)
{
	static struct said s;
	struct tw_buf text;
	struct tw_str rest;
	unsigned sections = 0;

	(void)state;
	read_sample("art/2246-trace-stream.expected-stdout.txt", &text);
	rest = (struct tw_str){(const char *)text.data, text.len};
	while (rest.len) {
		struct tw_str line = tw_str_split(&rest, '\n');

		if (!tw_str_starts(line, TW_STR("*****"))) {
			(void)read_expected(&s, line);
			continue;
		}
		if (sections++)
			check_section(&s);
		s.n = s.n_methods = 0;
		s.stream = tw_str_find(line, TW_STR("non ")) == line.len;
		s.dual = tw_str_find(line, TW_STR("dual")) < line.len;
	}
	check_section(&s);
	assert_int_equal(sections, 4);
	tw_buf_done(&text);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_what_streams_must_contain),
};

UNIT_TESTS("art_samples", tests)
