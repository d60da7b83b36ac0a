/* Property: however an upload arrives, its events are the same (I3).  Random recordings, sound and
 * damaged, plain and compressed, run whole and in random pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zstd.h>

#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

static uint64_t pick(uint64_t *state, uint64_t below)
{
	return (test_random(state) >> 16) % below;
}

/* Mostly in order; now and then late, far ahead, empty or nonsense. */
static void draw_record(struct tw_buf *b, uint64_t *state, uint64_t *now)
{
	uint64_t start = *now += pick(state, 5000);

	switch (pick(state, 300)) {
	case 0:
		btrace2_record(b, 0, 0, 0, 0);
		return;
	case 1:
		btrace2_record(b, test_random(state) >> 8, test_random(state) >> 20, 7, 7);
		return;
	case 2:
		start += 70u * 1000000000u;
		break;
	case 3:
		start /= 2;
		break;
	case 4:
		*now += 2u * 1000000000u;
		break;
	default:
		break;
	}
	btrace2_record(
	        b, start, pick(state, 9000) + 1, 30000 + pick(state, 9), pick(state, 99) + 1);
}

static void draw_file(struct tw_buf *b, uint64_t *state)
{
	uint64_t now = pick(state, 1000000);
	uint64_t records = pick(state, 1500);

	tw_buf_init(b, 1 << 20);
	btrace2_header(b, 30000, 9000000, 8000000, 8000000 + pick(state, 2) * now);
	for (uint64_t i = 0; i < records; i++)
		draw_record(b, state, &now);
	for (uint64_t i = pick(state, 40); i > 0; i--)
		(void)tw_buf_add_u8(b, pick(state, 3) ? 0 : (uint8_t)pick(state, 256));
}

/* Two frames, so that the second may come whole in one push. */
static void compress(struct tw_buf *b)
{
	size_t half = b->len / 2;
	struct tw_buf out;

	tw_buf_init(&out, 1 << 20);
	for (int i = 0; i < 2; i++) {
		size_t room = ZSTD_compressBound(b->len);
		size_t n;

		assert_int_equal(tw_buf_reserve(&out, room), TW_OK);
		n = ZSTD_compress(out.data + out.len, room, b->data + (i ? half : 0),
		        i ? b->len - half : half, 1);
		assert_false(ZSTD_isError(n));
		out.len += n;
	}
	tw_buf_done(b);
	*b = out;
}

static void damage(struct tw_buf *b, uint64_t *state)
{
	for (uint64_t i = pick(state, 4); i > 0; i--)
		b->data[pick(state, b->len)] ^= (uint8_t)(1 + pick(state, 255));
	if (pick(state, 4) == 0)
		b->len = pick(state, b->len) + 1;
}

static void test_any_cut(void **state)
{
	uint64_t reported = 0, repaired = 0, random = 2026;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct event_log whole, pieces;
		struct tw_buf b;

		draw_file(&b, &random);
		if (round % 3 == 0)
			compress(&b);
		if (round % 2)
			damage(&b, &random);
		event_log_run(&whole, b.data, b.len, 0, NULL);
		for (uint64_t seed = 1; seed < 4; seed++) {
			const char *why;

			event_log_run(&pieces, b.data, b.len,
			        seed + (uint64_t)round * 4 * (seed > 1), NULL);
			why = event_log_differs(&whole, &pieces);
			if (why)
				fail_msg("round %d, seed %d: %s", round, (int)seed, why);
			event_log_done(&pieces);
		}
		reported += whole.n;
		repaired += event_log_repairs(&whole);
		event_log_done(&whole);
		tw_buf_done(&b);
	}
	/* the inputs contained events, and were damaged */
	assert_in_range(reported, 50000, 400 * 1500);
	assert_in_range(repaired, 1000, UINT64_MAX);
}

/* The decoder looks this far ahead: a lone record far off waits for the next one, a short run far
 * after it is late instead of the end (btrace2.c). */
enum { LOOKAHEAD = 17 };

static size_t common_events(const struct event_log *a, const struct event_log *b)
{
	size_t n = 0;

	while (n < a->n && n < b->n && event_log_same(&a->events[n], &b->events[n]))
		n++;
	return n;
}

/* Emitted events are not withdrawn when more input arrives: the events of a prefix are
 * a prefix of the events, but for what the decoder was still looking at. */
static void test_any_prefix(void **state)
{
	uint64_t random = 77;
	size_t compared = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct event_log whole, part;
		struct tw_buf b;
		size_t common;

		draw_file(&b, &random);
		if (round % 2)
			damage(&b, &random);
		event_log_run(&whole, b.data, b.len, 0, NULL);
		for (int i = 0; i < 8; i++) {
			event_log_run(&part, b.data, (size_t)pick(&random, b.len + 1), 0, NULL);
			common = common_events(&whole, &part);
			if (common + LOOKAHEAD < part.n)
				fail_msg("round %d: %zu of %zu events of the prefix", round, common,
				        part.n);
			compared += common;
			event_log_done(&part);
		}
		event_log_done(&whole);
		tw_buf_done(&b);
	}
	assert_in_range(compared, 300000, SIZE_MAX);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_any_prefix),
};

UNIT_TESTS("cuts", tests)
