/* Archives: their content, however the input is split; damage; limits; identical bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "decoder/base/unpack.h"
#include "decoder/bundle.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

/* --- archives by hand --- */

static void le16(struct tw_buf *b, unsigned v)
{
	(void)tw_buf_add_u8(b, (uint8_t)v);
	(void)tw_buf_add_u8(b, (uint8_t)(v >> 8));
}

struct entry {
	const char *name, *text;
	bool deflate, sizes_follow, signature;
};

static void deflated(struct tw_buf *b, const char *text)
{
	uint8_t out[4096];
	z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)text,
	        .avail_in = (uInt)strlen(text),
	        .next_out = out,
	        .avail_out = sizeof out};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, 0), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)tw_buf_add(b, out, sizeof out - z.avail_out);
	(void)deflateEnd(&z);
}

static void zip_entry(struct tw_buf *b, const struct entry *e)
{
	struct tw_buf body;

	tw_buf_init(&body, 1 << 20);
	if (e->deflate)
		deflated(&body, e->text);
	else
		(void)tw_buf_add_str(&body, tw_str_of(e->text));
	(void)tw_buf_add_u32le(b, 0x04034B50);
	le16(b, 20);
	le16(b, e->sizes_follow ? 8 : 0);
	le16(b, e->deflate ? 8 : 0);
	(void)tw_buf_add_u32le(b, 0);
	(void)tw_buf_add_u32le(b, 0);
	(void)tw_buf_add_u32le(b, e->sizes_follow ? 0 : (uint32_t)body.len);
	(void)tw_buf_add_u32le(b, e->sizes_follow ? 0 : (uint32_t)strlen(e->text));
	le16(b, (unsigned)strlen(e->name));
	le16(b, 5);
	(void)tw_buf_add_str(b, tw_str_of(e->name));
	(void)tw_buf_add(b, "\x55\x54\x01\x00\x00", 5); /* an extra field of one byte */
	(void)tw_buf_add(b, body.data, body.len);
	if (e->sizes_follow && e->signature)
		(void)tw_buf_add_u32le(b, 0x08074B50);
	for (int i = 0; e->sizes_follow && i < 3; i++)
		(void)tw_buf_add_u32le(b, 77);
	tw_buf_done(&body);
}

static void zip_end(struct tw_buf *b)
{
	(void)tw_buf_add_u32le(b, 0x02014B50);
	(void)tw_buf_add(b, "the directory", 13);
}

static void tar_entry(struct tw_buf *b, const char *name, char type, const char *text)
{
	char h[512] = "";
	size_t size = strlen(text);
	unsigned sum = 0;

	memcpy(h, name, strlen(name));
	(void)snprintf(h + 124, 12, "%011o", (unsigned)size);
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 257,
	        "ustar\0"
	        "00",
	        8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum);
	(void)tw_buf_add(b, h, sizeof h);
	(void)tw_buf_add(b, text, size);
	while (b->len % 512)
		(void)tw_buf_add_u8(b, 0);
}

/* --- the output, as text --- */

static enum tw_status print_begin(void *arg, uint32_t index, struct tw_str name, struct tw_err *err)
{
	(void)err;
	(void)tw_buf_printf(arg, "%u:", index);
	(void)tw_buf_add_str(arg, name);
	(void)tw_buf_add_u8(arg, '=');
	return TW_OK;
}

static enum tw_status print_data(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

static enum tw_status print_end(void *arg, bool cut, struct tw_err *err)
{
	(void)err;
	return tw_buf_add_str(arg, cut ? TW_STR("!;") : TW_STR(";"));
}

static enum tw_status unpack(
        const struct tw_buf *in, size_t piece, const struct tw_limits *limits, struct tw_buf *out)
{
	static const struct tw_unpack_ops ops = {print_begin, print_data, print_end};
	struct tw_limits l = limits ? *limits : tw_limits_default();
	struct tw_arena *a = tw_arena_new(4 << 20);
	struct tw_unpack *u = tw_unpack_new(a, &l, &ops, out);
	enum tw_status st = u ? TW_OK : TW_NOMEM;
	bool whole = false;

	tw_buf_init(out, 16 << 20);
	for (size_t at = 0; st == TW_OK && at < in->len; at += piece)
		st = tw_unpack_push(
		        u, in->data + at, in->len - at < piece ? in->len - at : piece, NULL);
	if (st == TW_OK)
		st = tw_unpack_finish(u, &whole, NULL);
	if (st == TW_OK)
		(void)tw_buf_add_str(out, whole ? TW_STR(".") : TW_STR("?"));
	(void)tw_buf_add_u8(out, 0);
	tw_unpack_free(u);
	tw_arena_free(a);
	return st;
}

static void gives(struct tw_buf *in, const char *want)
{
	for (size_t piece = 1; piece <= in->len; piece = piece * 3 + 1) {
		struct tw_buf out;

		assert_int_equal(unpack(in, piece, NULL, &out), TW_OK);
		assert_string_equal((const char *)out.data, want);
		tw_buf_done(&out);
	}
	tw_buf_done(in);
}

static void test_zip(void **state)
{
	static const struct entry entries[] = {{"a.txt", "stored", false, false, false},
	        {"dir/", "", false, false, false}, {"b", "deflated deflated", true, false, false},
	        {"c", "sizes follow", true, true, true}, {"d", "without mark", true, true, false},
	        {"empty", "", false, false, false}, {"e/../f", "name", false, false, false}};
	struct tw_buf in;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		zip_entry(&in, &entries[i]);
	zip_end(&in);
	gives(&in, "0:a.txt=stored;1:b=deflated deflated;2:c=sizes follow;3:d=without mark;"
	           "4:empty=;5:e/../f=name;.");
}

static void test_tar(void **state)
{
	struct tw_buf in;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	tar_entry(&in, "a", '0', "first");
	tar_entry(&in, "dir/", '5', "");
	tar_entry(&in, "link", '2', "");
	tar_entry(&in, "x", 'x', "22 path=a/longer/name\n12 mtime=12\n");
	tar_entry(&in, "short", '0', "pax");
	tar_entry(&in, "y", 'L', "gnu/long/name");
	tar_entry(&in, "short", '0', "gnu");
	tar_entry(&in, "empty", '0', "");
	(void)tw_buf_reserve(&in, 1024);
	memset(in.data + in.len, 0, 1024);
	in.len += 1024;
	gives(&in, "0:a=first;1:a/longer/name=pax;2:gnu/long/name=gnu;3:empty=;.");
}

static void test_damage(void **state)
{
	struct tw_buf in;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a", "whole", true, false, false});
	zip_entry(&in, &(struct entry){"b", "cut off here", false, false, false});
	in.len -= 5;
	gives(&in, "0:a=whole;1:b=cut off!;?");
	tw_buf_init(&in, 1 << 20);
	tar_entry(&in, "a", '0', "first");
	tar_entry(&in, "b", '0', "second");
	in.data[1024 + 150] ^= 1; /* its checksum */
	gives(&in, "0:a=first;?");
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a", "readable", false, false, false});
	for (int i = 0; i < 2; i++) {
		size_t at = in.len;

		zip_entry(&in, &(struct entry){"b", "secret", i == 0, false, false});
		in.data[at + (i ? 8 : 6)] = i ? 12 : 1; /* bzip2; encrypted */
	}
	zip_entry(&in, &(struct entry){"folder/", "", false, true, true});
	zip_entry(&in, &(struct entry){"c", "readable too", true, false, false});
	zip_end(&in);
	gives(&in, "0:a=readable;1:b=;2:b=;3:c=readable too;.");
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a", "who knows where this ends", false, true, false});
	zip_end(&in);
	gives(&in, "?");
}

static void test_refusals(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_buf in;
	struct tw_buf out;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a", "0123456789", false, false, false});
	l.max_decoded_bytes = 10;
	assert_int_equal(unpack(&in, 100, &l, &out), TW_OK);
	tw_buf_done(&out);
	l.max_decoded_bytes = 9;
	assert_int_equal(unpack(&in, 100, &l, &out), TW_TOO_LARGE);
	tw_buf_done(&out);
	in.data[6] = 1; /* encrypted */
	assert_int_equal(unpack(&in, 100, NULL, &out), TW_UNSUPPORTED);
	tw_buf_done(&out);
	in.data[6] = 0;
	in.data[8] = 12; /* bzip2 */
	assert_int_equal(unpack(&in, 100, NULL, &out), TW_UNSUPPORTED);
	tw_buf_done(&out);
	tw_buf_done(&in);
}

/* Whatever a byte becomes: the same for all cuts, and nothing beyond the input. */
static void test_any_bytes(void **state)
{
	struct tw_buf in;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a", "some text some text", true, true, true});
	tar_entry(&in, "a", '0', "first");
	for (size_t i = 0; i < in.len; i++) {
		struct tw_buf one;
		struct tw_buf two;
		enum tw_status st;

		in.data[i] ^= 0x5A;
		st = unpack(&in, in.len, NULL, &one);
		assert_int_equal(unpack(&in, 1, NULL, &two), st);
		if (st == TW_OK)
			assert_string_equal((const char *)one.data, (const char *)two.data);
		tw_buf_done(&one);
		tw_buf_done(&two);
		in.data[i] ^= 0x5A;
	}
	tw_buf_done(&in);
}

/* --- bundles --- */

struct input {
	const struct tw_buf *bytes;
	int reads, inputs;
	bool without_system;
};

static enum tw_status feed(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	struct input *in = arg;

	in->reads++;
	return push(to, in->bytes->data, in->bytes->len, err);
}

static void side(void *arg, enum tw_bundle_side what)
{
	(void)what;
	((struct input *)arg)->inputs++;
}

static void trace_into(struct tw_buf *b, const char *name, uint32_t records)
{
	struct tw_buf trace;
	char text[4096];
	size_t n;

	/* the archives above are made of texts: a trace has zeros, so it goes in by hand */
	tw_buf_init(&trace, 1 << 20);
	btrace2_header(&trace, 7, 1, 1, 1);
	for (uint32_t i = 0; i < records; i++)
		btrace2_record(&trace, 100 * (uint64_t)i + 1, 50, 7, i + 1);
	n = trace.len;
	memset(text, 'x', n);
	text[n] = '\0';
	zip_entry(b, &(struct entry){name, text, false, false, false});
	memcpy(b->data + b->len - n, trace.data, n);
	tw_buf_done(&trace);
}

static enum tw_status decode_within(
        const struct tw_buf *in, uint64_t max_bytes, struct event_log *log, struct input *ret)
{
	struct tw_limits l = tw_limits_default();
	struct tw_arena *a = tw_arena_new(64 << 20);
	const struct tw_format *format = NULL;
	struct tw_bundle_task task = {
	        .arena = a, .limits = &l, .arg = ret, .feed = feed, .side = side};
	bool without_system = ret->without_system;
	uint64_t bytes = 0;
	enum tw_status st;

	l.max_decoded_bytes = max_bytes;
	event_log_run(log, "", 0, 0, NULL); /* an empty log, whose sink is used */
	*ret = (struct input){in, 0, 0, without_system};
	task.without_system = without_system;
	task.sink = &log->sink;
	st = tw_bundle_decode(&task, &format, &bytes, NULL);
	if (st == TW_OK) {
		assert_string_equal(format->name, "btrace2");
		assert_true(bytes > 0);
	}
	tw_arena_free(a);
	return st;
}

static enum tw_status decode(const struct tw_buf *in, struct event_log *log, struct input *ret)
{
	return decode_within(in, tw_limits_default().max_decoded_bytes, log, ret);
}

#define SWITCHES(n)                                                                                \
	"# tracer: nop\n#\n  a-" n " (    7) [000] d..3 1.000001: sched_switch: prev_comm=a "      \
	"prev_pid=" n " prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120\n"

/* The larger of the device's traces is part `system` of a form: marked so, and stored unchanged;
 * the other is a side file. */
static void test_bundle_with_the_system(void **state)
{
	static const char small[] = SWITCHES("7");
	static const char large[] = SWITCHES("7") SWITCHES("9");
	struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct input how = {.reads = 0};
	struct tw_buf in;

	(void)state;
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"a.txt", small, false, false, false});
	zip_entry(&in, &(struct entry){"b.txt", large, true, false, false});
	trace_into(&in, "trace", 9);
	zip_end(&in);
	event_log_run_bundle(&log, in.data, in.len, 3, NULL);
	assert_int_equal(log.status, TW_OK);
	assert_int_equal(log.kept.len, strlen(large));
	assert_memory_equal(log.kept.data, large, strlen(large));
	assert_non_null(strstr(event_log_text(&log), "side 0\n"));
	assert_non_null(strstr(event_log_text(&log), "side 2\n"));
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	how.without_system = true;
	assert_int_equal(decode_within(&in, limits.max_decoded_bytes, &log, &how), TW_OK);
	assert_int_equal(log.counts[TW_REPAIR_entry_skipped], 1);
	assert_int_equal(how.inputs, 1);
	event_log_done(&log);
	tw_buf_done(&in);
}

/* Compressed files in a compressed archive: their bytes count together. */
static void test_bundle_limit(void **state)
{
	enum { LINES = 4000 };
	char lines[LINES + 1] = "";
	uint8_t packed[LINES];
	uLongf n = sizeof packed;
	struct event_log log;
	struct input how = {.reads = 0};
	struct tw_buf in;

	(void)state;
	for (int i = 0; i < LINES; i += 8)
		(void)snprintf(lines + i, 9, "%03d,abc\n", i % 889 + 100);
	assert_int_equal(compress2(packed, &n, (const Bytef *)lines, LINES, 9), Z_OK);
	tw_buf_init(&in, 1 << 20);
	trace_into(&in, "trace", 9);
	for (int i = 0; i < 3; i++) {
		char room[LINES + 1] = "";

		memset(room, 'x', n);
		zip_entry(&in, &(struct entry){"threads", room, false, false, false});
		memcpy(in.data + in.len - n, packed, n);
	}
	zip_end(&in);
	assert_int_equal(decode_within(&in, 3 * LINES + 1000, &log, &how), TW_OK);
	assert_int_equal(event_log_repairs(&log), 0);
	event_log_done(&log);
	/* the names' are read first: the second is too much, and nothing is left for the trace */
	assert_int_equal(decode_within(&in, 2 * LINES - 1, &log, &how), TW_TOO_LARGE);
	assert_int_equal(log.counts[TW_REPAIR_side_file_unreadable], 2);
	event_log_done(&log);
	tw_buf_done(&in);
}

static void test_bundle(void **state)
{
	struct tw_buf in;
	const struct tw_limits limits = tw_limits_default();
	struct event_log log;
	struct input how = {.reads = 0};

	(void)state;
	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"notes.md", "# nothing", false, false, false});
	trace_into(&in, "small.bin", 2);
	trace_into(&in, "rhea-atrace.bin", 9); /* of two the larger is the trace */
	zip_entry(&in, &(struct entry){"threads.txt", "7,main\n", true, false, false});
	zip_end(&in);
	assert_true(tw_bundle_is(in.data, in.len, &limits));
	assert_int_equal(decode(&in, &log, &how), TW_OK);
	assert_int_equal(log.n, 9);
	assert_int_equal(how.reads, 4);
	assert_int_equal(log.counts[TW_REPAIR_entry_skipped], 2);
	assert_int_equal(log.names.len, strlen("7 main\n"));
	event_log_done(&log);
	tw_buf_done(&in);

	tw_buf_init(&in, 1 << 20);
	zip_entry(&in, &(struct entry){"notes.md", "# nothing", false, false, false});
	zip_end(&in);
	assert_int_equal(decode(&in, &log, &how), TW_UNSUPPORTED);
	event_log_done(&log);
	tw_buf_done(&in);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zip),
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_bundle_limit),
        cmocka_unit_test(test_bundle_with_the_system),
};

UNIT_TESTS("unpack", tests)
