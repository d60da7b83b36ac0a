/* Blocks of notes: the bytes of schema/columns.md, all values back, and damage refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/trace/note_columns.h"
#include "tests/unit/unit.h"

enum { ARENA_BYTES = 4 << 20 };

static const char running[] = "running", detail[] = "{\"a\":1}", name[] = "a\xFF";

static const struct tw_note_row notes[] = {
        {.kind = TW_NOTE_state,
                .thread_id = 200,
                .ts_ns = 1000,
                .dur_ns = 127,
                .value = 3,
                .text = {running, 7},
                .detail = {"", 0},
                .from_system = true},
        {.kind = TW_NOTE_counter,
                .ts_ns = 1000,
                .dur_ns = -1,
                .value = -1,
                .text = {name, 2},
                .detail = {detail, 7}},
        {.kind = TW_NOTE_state,
                .thread_id = 1,
                .ts_ns = 1300,
                .value = INT64_MIN,
                .text = {running, 7},
                .detail = {"", 0}},
};
enum { NOTES = sizeof notes / sizeof *notes };

static const uint8_t bytes[] = {
        'T',
        'W',
        'N',
        '1',
        3,
        0,
        0,
        0, /* magic, notes */
        14,
        0,
        0,
        0,
        3,
        0,
        0,
        0,
        4,
        0,
        0,
        0, /* kinds, kind, thread */
        5,
        0,
        0,
        0,
        4,
        0,
        0,
        0,
        12,
        0,
        0,
        0, /* time, duration, value */
        3,
        0,
        0,
        0,
        3,
        0,
        0,
        0,
        21,
        0,
        0,
        0, /* text, detail, texts */
        's',
        't',
        'a',
        't',
        'e',
        0,
        'c',
        'o',
        'u',
        'n',
        't',
        'e',
        'r',
        0,
        1,
        2,
        0, /* kind */
        0xC8,
        1,
        0,
        1, /* thread */
        0xE8,
        7,
        0,
        0xAC,
        2, /* time */
        0x80,
        1,
        0,
        1, /* duration */
        6,
        1,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        0xFF,
        1,
        1,
        2,
        1, /* text */
        0,
        3,
        0, /* detail */
        'r',
        'u',
        'n',
        'n',
        'i',
        'n',
        'g',
        0,
        'a',
        0xEF,
        0xBF,
        0xBD,
        0,
        '{',
        '"',
        'a',
        '"',
        ':',
        '1',
        '}',
        0,
};

static void encode(struct tw_buf *out)
{
	tw_buf_init(out, 1 << 20);
	assert_int_equal(tw_notes_encode(notes, NOTES, out), TW_OK);
}

static void test_bytes(void **state)
{
	struct tw_buf out;

	(void)state;
	encode(&out);
	assert_int_equal(out.len, sizeof bytes);
	assert_memory_equal(out.data, bytes, sizeof bytes);
	tw_buf_done(&out);
}

static void test_values(void **state)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_notes d;

	(void)state;
	assert_int_equal(tw_notes_decode(bytes, sizeof bytes, a, &d, NULL), TW_OK);
	assert_int_equal(d.n, NOTES);
	for (size_t i = 0; i < NOTES; i++) {
		assert_int_equal(d.rows[i].kind, notes[i].kind);
		assert_int_equal(d.rows[i].thread_id, notes[i].thread_id);
		assert_int_equal(d.rows[i].ts_ns, notes[i].ts_ns);
		assert_int_equal(d.rows[i].dur_ns, notes[i].dur_ns);
		assert_true(d.rows[i].value == notes[i].value);
		assert_true(d.rows[i].from_system == notes[i].from_system);
		assert_true(tw_str_eq(d.rows[i].detail, notes[i].detail));
	}
	assert_string_equal(d.rows[0].text.ptr, "running");
	assert_ptr_equal(d.rows[0].text.ptr, d.rows[2].text.ptr);
	assert_string_equal(d.rows[1].text.ptr, "a\xEF\xBF\xBD");
	tw_arena_free(a);
}

/* A kind of a newer version. */
static void test_unknown_kind(void **state)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	uint8_t newer[sizeof bytes];
	struct tw_notes d;

	(void)state;
	memcpy(newer, bytes, sizeof bytes);
	newer[44] = 'z';
	assert_int_equal(tw_notes_decode(newer, sizeof newer, a, &d, NULL), TW_OK);
	assert_int_equal(d.rows[0].kind, TW_NOTE_COUNT);
	assert_int_equal(d.rows[1].kind, TW_NOTE_counter);
	tw_arena_free(a);
}

static void refuse(const uint8_t *p, size_t len)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_notes d;

	assert_int_equal(tw_notes_decode(p, len, a, &d, NULL), TW_CORRUPT);
	tw_arena_free(a);
}

static void test_damage(void **state)
{
	static const struct {
		size_t at;
		uint8_t is;
	} changes[] = {
	        {0, 'X'},   /* magic */
	        {4, 2},     /* fewer notes than values */
	        {4, 0},     /* none */
	        {11, 1},    /* a column longer than the payload */
	        {8, 13},    /* kinds without a NUL at the end */
	        {58, 4},    /* a kind that is not listed */
	        {61, 0x48}, /* more values than notes */
	        {85, 0x81}, /* a value that continues past its column */
	        {86, 4},    /* a text that is not listed */
	        {89, 5},    /* the same for a detail */
	};

	(void)state;
	for (size_t len = 0; len < sizeof bytes; len++)
		refuse(bytes, len);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		uint8_t changed[sizeof bytes];

		memcpy(changed, bytes, sizeof bytes);
		changed[changes[i].at] = changes[i].is;
		refuse(changed, sizeof changed);
	}
}

/* Times whose end is not a time. */
static void test_overflow(void **state)
{
	const struct tw_note_row late = {.kind = TW_NOTE_state,
	        .ts_ns = INT64_MAX,
	        .dur_ns = 1,
	        .text = TW_STR(""),
	        .detail = TW_STR("")};
	struct tw_buf out;

	(void)state;
	tw_buf_init(&out, 1 << 20);
	assert_int_equal(tw_notes_encode(&late, 1, &out), TW_OK);
	refuse(out.data, out.len);
	tw_buf_done(&out);
}

static void test_no_memory(void **state)
{
	struct tw_arena *a = tw_arena_new(64);
	struct tw_notes d;
	uint64_t steps = 0;
	enum tw_status st = TW_NOMEM;

	(void)state;
	assert_int_equal(tw_notes_decode(bytes, sizeof bytes, a, &d, NULL), TW_NOMEM);
	tw_arena_free(a);
	while (st != TW_OK && ++steps < 20) {
		struct tw_buf out;

		tw_buf_init(&out, 1 << 20);
		tw_mem_fail_at(steps);
		st = tw_notes_encode(notes, NOTES, &out);
		tw_mem_fail_at(0);
		assert_true(st == TW_OK || st == TW_NOMEM);
		tw_buf_done(&out);
	}
	assert_in_range(steps, 3, 19);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_unknown_kind),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("note_columns", tests)
