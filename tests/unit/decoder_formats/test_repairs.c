/* An input causes each repair in the decoder or builder, and each is listed in schema/repairs.md
 * with its meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "tests/fixtures/event_log.h"
#include "tests/fixtures/trace_model.h"
#include "tests/unit/unit.h"

enum { MAX_BYTES = 32 << 20 };

struct input { /* of one run */
	struct tw_buf trace, side;
	const char *side_part; /* NULL: there is none */
	struct tw_limits limits;
};

struct row {
	enum tw_repair what;
	const char *golden; /* a golden case; NULL: made */
	void (*make)(struct input *in);
};

/* --- inputs --- */

static void text(struct tw_buf *b, const char *s)
{
	(void)tw_buf_add_str(b, tw_str_of(s));
}

/* Of a recording that began 5 us after its clock's zero. */
static void header(struct input *in)
{
	btrace2_header(&in->trace, 40000, 900000, 500000, 505000);
	btrace2_record(&in->trace, 6000, 10, 40000, 1);
}

static void empty_slot(struct input *in)
{
	header(in);
	(void)tw_buf_add_u64le(&in->trace, 0);
	(void)tw_buf_add_u64le(&in->trace, 0);
	btrace2_record(&in->trace, 7000, 10, 40000, 1);
}

static void zero_tail(struct input *in)
{
	header(in);
	for (int i = 0; i < 8; i++)
		(void)tw_buf_add_u64le(&in->trace, 0);
}

/* An earlier recording in the same file got further. */
static void stale_tail(struct input *in)
{
	const uint64_t second = 1000000000;

	header(in);
	btrace2_record(&in->trace, 5 * second, 10, 40000, 1);
	for (uint64_t i = 1; i < 40; i++)
		btrace2_record(&in->trace, 2 * second + i * 1000, 10, 40000, 1);
}

static void stale_record(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 100, 10, 40000, 1); /* over before this recording began */
	btrace2_record(&in->trace, 7000, 10, 40000, 1);
}

static void time_wrapped(struct input *in)
{
	const uint64_t day = UINT64_C(86400) * 1000000000;

	btrace2_header(&in->trace, 40000, day, 0, day); /* 45 bits are 9.8 hours */
	btrace2_record(&in->trace, day + 5, 10, 40000, 1);
}

static void begin_clamped(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 1000, 9000, 40000, 1);
}

static void order_restored(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 9000, 10, 40000, 1);
	btrace2_record(&in->trace, 8000, 10, 40000, 1);
}

static void overlap(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8000, 1000, 40000, 1);
	btrace2_record(&in->trace, 8500, 1000, 40000, 1);
}

static void depth(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8100, 10, 40000, 1);
	btrace2_record(&in->trace, 8000, 1000, 40000, 2);
	in->limits.max_depth = 1;
}

static void threads(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8100, 10, 77, 1);
	in->limits.max_threads = 1;
}

static void slices(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8100, 10, 40000, 1);
	in->limits.max_slices = 1;
}

static void tree(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8100, 10, 40000, 2);
	in->limits.max_tree_nodes = 1;
}

static void truncated_id(struct input *in)
{
	header(in); /* 40000 does not fit 15 bits, and is the header's */
}

/* Two threads of the list whose ids are equal in 15 bits. */
static void ambiguous_id(struct input *in)
{
	header(in);
	btrace2_record(&in->trace, 8100, 10, 50000, 1);
	text(&in->side, "40000,main\n50000,one\n82768,other\n");
	in->side_part = "threads";
}

static void notes(struct input *in)
{
	text(&in->trace, " t-1 (1) [000] ...1 5.000001: tracing_mark_write: C|1|a|1\n"
	                 " t-1 (1) [000] ...1 5.000002: tracing_mark_write: C|1|a|2\n");
	in->limits.max_notes = 1;
}

static void long_name(struct input *in)
{
	text(&in->trace, " t-1 (1) [000] ...1 5.000001: tracing_mark_write: B|1|long name\n");
	in->limits.max_name_bytes = 4;
}

/* A report with more different frames than the limit. */
static void many_names(struct input *in)
{
	text(&in->trace, "----- pid 1 at 2024-01-01 00:00:00 -----\nCmd line: a.b\n\n"
	                 "DALVIK THREADS (500):\n");
	for (unsigned t = 0; t < 500; t++) {
		(void)tw_buf_printf(&in->trace, "\"t%u\" prio=5 tid=%u Native\n", t, t + 1);
		for (unsigned i = 0; i < 600; i++)
			(void)tw_buf_printf(&in->trace, "  at a.b%u.c%u(D.java:1)\n", t, i);
		text(&in->trace, "\n");
	}
	text(&in->trace, "----- end 1 -----\n");
}

static void art(struct input *in, const char *clock, const char *records, size_t n)
{
	(void)tw_buf_printf(&in->trace,
	        "*version\n2\nclock=%s\n*threads\n1\tmain\n*methods\n0x4\ta.B\tc\t()V\n*end\n",
	        clock);
	(void)tw_buf_add_str(&in->trace, TW_STR("SLOW\2\0\x20\0\0\0\0\0\0\0\0\0"
	                                        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
	(void)tw_buf_add_str(&in->trace, (struct tw_str){records, n});
}

static void time_fell(struct input *in)
{
	static const char records[] = "\1\0\4\0\0\0\x50\0\0\0"
	                              "\1\0\5\0\0\0\x40\0\0\0";

	art(in, "wall", records, sizeof records - 1);
}

static void cpu_clock(struct input *in)
{
	static const char records[] = "\1\0\4\0\0\0\x50\0\0\0"
	                              "\1\0\5\0\0\0\x60\0\0\0";

	art(in, "thread-cpu", records, sizeof records - 1);
}

static void trailing(struct input *in)
{
	text(&in->trace, "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\"}]} more");
}

static void missing(struct input *in)
{
	art(in, "wall\nnum-method-calls=2", "\1\0\4\0\0\0\1\0\0\0", 10);
}

static const char sections[] = "512|TRACE_START|987654321000123|40000|2147483647|2|1\n"
                               "0.000000100 40000: B|40000|Object#notify(obj:0x1)\n"
                               "0.000000200 40000: E|40000\n"
                               "517|TRACE_END|987654322000123|40000|2147483647|2|1\n";

static void before(struct input *in)
{
	header(in); /* its zero is 0.0005 s */
	text(&in->side, sections);
	in->side_part = "atrace";
}

static void other_clock(struct input *in)
{
	const uint64_t week = UINT64_C(7) * 86400 * 1000000000;

	btrace2_header(&in->trace, 40000, 9 * week, 5 * week, 5 * week);
	btrace2_record(&in->trace, 6000, 10, 40000, 1);
	text(&in->side, sections);
	in->side_part = "atrace";
}

/* A packet of Perfetto with a moment that is called x. */
static const char packet[] = "\x0A\x0C\x40\x64\x50\1\x5A\x06\x48\3\xBA\1\1x";

static void framing(struct input *in)
{
	const struct tw_str p = {packet, sizeof packet - 1};

	for (int i = 0; i < 4; i++)
		(void)tw_buf_add_str(&in->trace, p);
	text(&in->trace, "nothing that is a packet");
	for (int i = 0; i < 4; i++)
		(void)tw_buf_add_str(&in->trace, p);
}

static void machine(struct input *in)
{
	for (int i = 0; i < 4; i++)
		(void)tw_buf_add_str(&in->trace, (struct tw_str){packet, sizeof packet - 1});
	text(&in->trace, "\x0A\x05\x90\x06\x07\x50\1");
	(void)tw_buf_add_u8(&in->trace, 0x0A);
	(void)tw_buf_add_u8(&in->trace, 0);
}

static void heap(struct input *in)
{
	(void)tw_buf_add_str(&in->trace, (struct tw_str){packet, sizeof packet - 1});
	text(&in->trace, "\x0A\x05\xAA\x02\x02\x08\x01");
}

/* A kernel trace that has none, in an archive with a trace. */
static void tar_entry(struct tw_buf *b, const char *name, const void *data, size_t n)
{
	char head[512] = "";
	unsigned sum = 0;

	(void)snprintf(head, 100, "%s", name);
	(void)snprintf(head + 100, 8, "%07o", 0644u);
	(void)snprintf(head + 108, 8, "%07o", 0u);
	(void)snprintf(head + 116, 8, "%07o", 0u);
	(void)snprintf(head + 124, 12, "%011o", (unsigned)n);
	(void)snprintf(head + 136, 12, "%011o", 0u);
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof head; i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	(void)tw_buf_add_str(b, (struct tw_str){head, sizeof head});
	(void)tw_buf_add_str(b, (struct tw_str){data, n});
	while (b->len % 512)
		(void)tw_buf_add_u8(b, 0);
}

static void unreadable(struct input *in)
{
	static const char none[] = "# tracer: nop\n# nothing\n";
	struct input inner = *in;

	tw_buf_init(&inner.trace, MAX_BYTES);
	header(&inner);
	tar_entry(&in->trace, "trace", inner.trace.data, inner.trace.len);
	tar_entry(&in->trace, "kernel.txt", none, sizeof none - 1);
	for (int i = 0; i < 1024; i++)
		(void)tw_buf_add_u8(&in->trace, 0);
	tw_buf_done(&inner.trace);
}

#define GOLDEN(name, path) [TW_REPAIR_##name] = {TW_REPAIR_##name, path, NULL}
#define MADE(name, make)   [TW_REPAIR_##name] = {TW_REPAIR_##name, NULL, make}
static const struct row rows[TW_REPAIR_COUNT] = {
        GOLDEN(input_truncated, "btrace2/truncated"),
        GOLDEN(input_corrupt, "btrace3/garbage"),
        MADE(empty_slot, empty_slot),
        MADE(zero_tail, zero_tail),
        MADE(stale_record, stale_record),
        MADE(stale_tail, stale_tail),
        MADE(time_wrapped, time_wrapped),
        MADE(begin_clamped, begin_clamped),
        GOLDEN(impossible_time, "atrace/garbage"),
        GOLDEN(buffer_overrun, "atrace/realistic"),
        MADE(thread_id_truncated, truncated_id),
        MADE(thread_id_ambiguous, ambiguous_id),
        MADE(order_restored, order_restored),
        MADE(overlap_clipped, overlap),
        MADE(depth_clipped, depth),
        GOLDEN(exit_without_enter, "rhea1/garbage"),
        GOLDEN(enter_without_exit, "rhea1/garbage"),
        GOLDEN(event_unread, "perfetto/realistic"),
        GOLDEN(sample_gap, "java_samples/realistic"),
        GOLDEN(sample_failed, "perfetto/realistic"),
        MADE(thread_limit, threads),
        MADE(slice_limit, slices),
        MADE(call_tree_full, tree),
        MADE(note_limit, notes),
        MADE(name_limit, many_names),
        MADE(name_cut, long_name),
        MADE(side_file_unreadable, unreadable),
        GOLDEN(cost_capped, "matrix/realistic"),
        GOLDEN(text_not_utf8, "chrome/truncated"),
        GOLDEN(entry_skipped, "bundle/realistic"),
        GOLDEN(line_malformed, "rhea1/garbage"),
        MADE(side_clock_unknown, other_clock),
        GOLDEN(record_malformed, "java_samples/garbage"),
        MADE(time_fell, time_fell),
        MADE(cpu_clock_only, cpu_clock),
        GOLDEN(method_unnamed, "perfetto/realistic"),
        MADE(trailing_data, trailing),
        GOLDEN(end_mark_missing, "rhea1/garbage"),
        GOLDEN(call_unwound, "rhea1/realistic"),
        MADE(records_missing, missing),
        GOLDEN(section_unknown, "systrace/realistic"),
        MADE(before_trace, before),
        GOLDEN(record_too_large, "perfetto/garbage"),
        MADE(framing_lost, framing),
        GOLDEN(packet_dropped, "perfetto/realistic"),
        GOLDEN(state_lost, "perfetto/realistic"),
        GOLDEN(kernel_overrun, "perfetto/realistic"),
        GOLDEN(clock_unknown, "perfetto/realistic"),
        MADE(other_machine, machine),
        MADE(heap_profile_left_out, heap),
};

/* --- runs --- */

static void load(struct tw_buf *b, const char *path)
{
	const char *root = getenv("TW_SOURCE_ROOT");
	char full[4096];
	FILE *f;

	(void)snprintf(full, sizeof full, "%s/%s", root ? root : ".", path);
	f = fopen(full, "rbe");
	if (!f)
		fail_msg("%s is not there", full);
	assert_int_equal(tw_buf_reserve(b, 1 << 20), TW_OK);
	b->len = fread(b->data, 1, 1 << 20, f);
	(void)fclose(f);
}

static enum tw_status decode(struct tw_builder *b, const struct tw_buf *bytes, const char *part,
        const struct tw_limits *limits)
{
	struct tw_arena *a = tw_arena_new(256 << 20);
	struct tw_decoder *d = tw_decoder_new(a, limits, NULL, part, tw_builder_sink(b));
	enum tw_status st = tw_decoder_push(d, bytes->data, bytes->len, NULL);

	if (st == TW_OK)
		st = tw_decoder_finish(d, NULL);
	tw_decoder_free(d);
	tw_arena_free(a);
	return st;
}

/* The count of decoder and builder together. */
static uint64_t counted(const struct input *in, enum tw_repair what)
{
	struct tw_builder *b = tw_builder_new(&in->limits);
	struct trace_log log;
	uint64_t n;

	assert_non_null(b);
	if (decode(b, &in->trace, NULL, &in->limits) != TW_OK) {
		tw_builder_free(b);
		return 0;
	}
	if (in->side_part) {
		tw_builder_next_input(b);
		assert_int_equal(decode(b, &in->side, in->side_part, &in->limits), TW_OK);
	}
	trace_log_init(&log);
	assert_int_equal(tw_builder_write(b, &log.out, NULL), TW_OK);
	n = log.repairs[what];
	trace_log_done(&log);
	tw_builder_free(b);
	return n;
}

/* By the decoder alone. */
static uint64_t counted_as_read(const struct input *in, enum tw_repair what, bool archive)
{
	struct event_log log;
	uint64_t n;

	if (archive)
		event_log_run_bundle(&log, in->trace.data, in->trace.len, 0, NULL);
	else
		event_log_run(&log, in->trace.data, in->trace.len, 0, NULL);
	n = log.counts[what];
	event_log_done(&log);
	return n;
}

static void test_each_is_provoked(void **state)
{
	(void)state;
	for (size_t i = 0; i < TW_REPAIR_COUNT; i++) {
		const struct row *r = &rows[i];
		struct input in = {.limits = tw_limits_default()};
		const char *name = tw_repair_info((enum tw_repair)i)->name;
		char path[256];
		bool archive = i == TW_REPAIR_entry_skipped || i == TW_REPAIR_side_file_unreadable;
		bool alone = archive || i == TW_REPAIR_name_limit; /* its trace is large */

		if (!r->golden && !r->make)
			fail_msg("nothing here provokes %s", name);
		tw_buf_init(&in.trace, MAX_BYTES);
		tw_buf_init(&in.side, MAX_BYTES);
		(void)snprintf(
		        path, sizeof path, "tests/golden/%s/input", r->golden ? r->golden : "");
		if (r->golden)
			load(&in.trace, path);
		else
			r->make(&in);
		if ((alone ? counted_as_read(&in, r->what, archive) : counted(&in, r->what)) == 0)
			fail_msg("%s was not counted", name);
		tw_buf_done(&in.trace);
		tw_buf_done(&in.side);
	}
}

static void test_each_is_described(void **state)
{
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, MAX_BYTES);
	load(&b, "schema/repairs.md");
	for (size_t i = 0; i < TW_REPAIR_COUNT; i++) {
		const struct tw_repair_info *info = tw_repair_info((enum tw_repair)i);
		char row[64];

		(void)snprintf(row, sizeof row, "| `%s` | ", info->name);
		if (!memmem(b.data, b.len, row, strlen(row)) ||
		        !memmem(b.data, b.len, info->meaning, strlen(info->meaning)))
			fail_msg("%s has no row with its meaning in schema/repairs.md", info->name);
	}
	tw_buf_done(&b);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_provoked),
        cmocka_unit_test(test_each_is_described),
};

UNIT_TESTS("repairs", tests)
