/* Unit tests of the zstd frames of chunks, whose matches tracewell finds itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/trace/trace_file_internal.h"
#include "tests/unit/unit.h"

enum { MAX = TW_CHUNK_SLICES, REPEAT = 300 };

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Calls below one root, of methods below 2^bits; `repeats`: the same REPEAT calls again and again,
 * with another one in between. */
static void make_calls(struct tw_slice *s, uint32_t n, unsigned bits, bool repeats)
{
	uint64_t random = bits * 2 + repeats;
	uint32_t depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t same = i >= REPEAT && i % REPEAT && repeats ? i - REPEAT : i;
		uint32_t method = next_random(&random) >> 1 & ((1u << bits) - 1);

		if (same != i) {
			method = s[same].method;
			depth = s[same].depth < depth + 1 ? s[same].depth : depth + 1;
		} else if (i) {
			depth = 1 + next_random(&random) % (depth + 1) % 30;
		}
		s[i] = (struct tw_slice){.method = method, .depth = depth, .cpu_ns = -1};
	}
	/* Each call takes a nanosecond of its own, and ends before the next one as high or higher.
	 */
	for (uint32_t i = n; i-- > 0;) {
		uint32_t end = i + 1;

		while (end < n && s[end].depth > s[i].depth)
			end += (uint32_t)s[end].dur_ns;
		s[i].start_ns = i;
		s[i].dur_ns = end - i;
	}
}

static size_t pack(struct tw_packer *p, const struct tw_buf *payload, struct tw_buf *frame)
{
	uint8_t *back = malloc(payload->len);

	assert_int_equal(tw_packer_pack(p, false, payload, frame, NULL), TW_OK);
	assert_int_equal(ZSTD_getFrameContentSize(frame->data, frame->len), payload->len);
	assert_int_equal(
	        ZSTD_decompress(back, payload->len, frame->data, frame->len), payload->len);
	assert_memory_equal(back, payload->data, payload->len);
	free(back);
	return frame->len;
}

/* Returns the bytes of the frame. */
static size_t check(struct tw_packer *p, uint32_t n, unsigned bits, bool repeats)
{
	struct tw_slice *s = calloc(n, sizeof *s);
	struct tw_buf payload;
	struct tw_buf frame;
	size_t bytes;

	tw_buf_init(&payload, SIZE_MAX / 2);
	tw_buf_init(&frame, SIZE_MAX / 2);
	make_calls(s, n, bits, repeats);
	assert_int_equal(tw_chunk_encode(NULL, 0, s, n, &payload), TW_OK);
	bytes = pack(p, &payload, &frame);
	free(s);
	tw_buf_done(&frame);
	tw_buf_done(&payload);
	return bytes;
}

/* Calls of two to six bytes: columns of one block and of several, which end between calls. */
static void test_chunks(void **state)
{
	static const uint32_t sizes[] = {1, 2, 500, 4096, 8191, 30000, MAX};
	struct tw_packer *p = tw_packer_new(1);

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (unsigned bits = 1; bits <= 31; bits += 3) {
			size_t plain = check(p, sizes[i], bits, false);
			size_t repeated = check(p, sizes[i], bits, true);

			if (sizes[i] == MAX)
				assert_in_range(repeated, 1, plain / 4);
		}
	tw_packer_free(p);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
};

UNIT_TESTS("pack", tests)
