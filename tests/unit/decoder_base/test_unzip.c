/* Unit tests of decoder/base/unzip: kinds, nesting, members and frames, cuts, damage, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "decoder/base/ahead.h"
#include "tests/fixtures/event_log.h"
#include "tests/unit/unit.h"

enum { ROOM = 8 << 20 };

struct unzipped {
	enum tw_status status;
	enum tw_unzip_end end;
	struct tw_err err;
	struct tw_buf out;
	char kinds[64];
	uint64_t bytes;
};

static enum tw_status keep(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	(void)err;
	return tw_buf_add(arg, p, n);
}

/* Receives decompressed data, directly or from a thread that reads ahead. */
struct taker {
	struct tw_ahead *ahead;
	struct tw_buf *out;
};

static enum tw_status take(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct taker *t = arg;

	return t->ahead ? tw_ahead_put(t->ahead, p, n, err) : keep(t->out, p, n, err);
}

static enum tw_status push(
        struct taker *t, struct tw_unzip *z, const uint8_t *p, size_t n, struct tw_err *err)
{
	return t->ahead ? tw_ahead_push(t->ahead, z, p, n, err) : tw_unzip_push(z, p, n, err);
}

enum reader { SAME_THREAD, AHEAD, AHEAD_IN_PLACE };

/* Pushes in pieces of step bytes (0: all at once). */
static struct unzipped unzip_by(
        const struct tw_buf *in, size_t step, const struct tw_limits *l, enum reader reader)
{
	struct tw_limits limits = l ? *l : tw_limits_default();
	struct tw_arena *a = tw_arena_new(32 << 20);
	struct unzipped u = {.status = TW_NOMEM};
	struct taker t = {NULL, &u.out};
	struct tw_unzip *z;

	tw_buf_init(&u.out, 64 << 20);
	t.ahead = reader != SAME_THREAD ? tw_ahead_new(keep, &u.out) : NULL;
	z = a ? tw_unzip_new(a, &limits, take, &t) : NULL;
	if (z && reader == AHEAD_IN_PLACE)
		tw_unzip_write_to(z, tw_ahead_space, t.ahead);
	if (z)
		u.status = TW_OK;
	for (size_t at = 0; u.status == TW_OK && at < in->len;) {
		size_t n = step && step < in->len - at ? step : in->len - at;

		u.status = push(&t, z, in->data + at, n, &u.err);
		at += n;
	}
	if (u.status == TW_OK && t.ahead)
		u.status = tw_ahead_finish(t.ahead, &u.err);
	if (u.status == TW_OK)
		u.status = tw_unzip_finish(z, &u.end, &u.err);
	if (z) {
		memcpy(u.kinds, tw_unzip_kinds(z), strlen(tw_unzip_kinds(z)) + 1);
		u.bytes = tw_unzip_bytes(z);
	}
	tw_ahead_free(t.ahead);
	tw_unzip_free(z);
	tw_arena_free(a);
	return u;
}

/* A thread that reads ahead changes nothing. */
static struct unzipped unzip(const struct tw_buf *in, size_t step, const struct tw_limits *l)
{
	struct unzipped u = unzip_by(in, step, l, SAME_THREAD);

	if (step && in->len / step > 64) /* a push is two words from thread to thread */
		return u;
	for (enum reader reader = AHEAD; reader <= AHEAD_IN_PLACE; reader++) {
		struct unzipped v = unzip_by(in, step, l, reader);

		assert_int_equal(u.status, v.status);
		assert_int_equal(u.err.offset, v.err.offset);
		assert_string_equal(u.err.msg, v.err.msg);
		assert_int_equal(u.end, v.end);
		assert_string_equal(u.kinds, v.kinds);
		assert_int_equal(u.bytes, v.bytes);
		assert_int_equal(u.out.len, v.out.len);
		if (u.out.len)
			assert_memory_equal(u.out.data, v.out.data, u.out.len);
		tw_buf_done(&v.out);
	}
	return u;
}

static void add_zstd(struct tw_buf *out, const void *p, size_t n, int checksum)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(n);

	assert_int_equal(tw_buf_reserve(out, room), TW_OK);
	assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum)));
	room = ZSTD_compress2(c, out->data + out->len, room, p, n);
	assert_false(ZSTD_isError(room));
	out->len += room;
	(void)ZSTD_freeCCtx(c);
}

/* window_bits: 15 zlib, 31 gzip */
static void add_zlib(struct tw_buf *out, const void *p, size_t n, int window_bits)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, 0), Z_OK);
	assert_int_equal(tw_buf_reserve(out, deflateBound(&z, (uLong)n)), TW_OK);
	z.next_out = out->data + out->len;
	z.avail_out = (uInt)deflateBound(&z, (uLong)n);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	assert_int_equal(deflateEnd(&z), Z_OK);
}

/* Half compressible bytes, the same each time. */
static void fill(struct tw_buf *b, size_t n)
{
	uint64_t state = 7;

	tw_buf_init(b, ROOM);
	while (b->len < n)
		(void)tw_buf_add_u8(b, (uint8_t)(test_random(&state) >> 60));
}

static void gives(struct tw_buf *in, const struct tw_buf *want, size_t n, const char *kinds)
{
	static const size_t steps[] = {0, 1, 3, 4, 5, 17, 1000, 131072, 131073};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct unzipped u = unzip(in, steps[i], NULL);

		assert_int_equal(u.status, TW_OK);
		assert_int_equal(u.end, TW_UNZIP_COMPLETE);
		assert_string_equal(u.kinds, kinds);
		assert_int_equal(u.out.len, n);
		assert_int_equal(u.bytes, n);
		if (n)
			assert_memory_equal(u.out.data, want->data, n);
		tw_buf_done(&u.out);
	}
	tw_buf_done(in);
}

static void test_kinds(void **state)
{
	struct tw_buf plain, in, outer;

	(void)state;
	fill(&plain, 300000);
	fill(&in, 300000);
	gives(&in, &plain, plain.len, "");
	for (size_t n = 0; n < 6; n++) { /* shorter than a magic */
		fill(&in, n);
		gives(&in, &plain, n, "");
	}
	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 1);
	gives(&in, &plain, plain.len, "zstd");
	tw_buf_init(&in, ROOM);
	add_zlib(&in, plain.data, plain.len, 15 + 16);
	gives(&in, &plain, plain.len, "gzip");
	tw_buf_init(&in, ROOM);
	add_zlib(&in, plain.data, plain.len, 15);
	gives(&in, &plain, plain.len, "zlib");

	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 1);
	tw_buf_init(&outer, ROOM);
	add_zlib(&outer, in.data, in.len, 15 + 16);
	tw_buf_done(&in);
	gives(&outer, &plain, plain.len, "gzip,zstd");
	tw_buf_done(&plain);
}

/* Frames and members that follow each other are one stream, cut between them or not. */
static void test_members(void **state)
{
	struct tw_buf plain, in;

	(void)state;
	fill(&plain, 300000);
	for (int kind = 0; kind < 2; kind++) {
		size_t at = 0;

		tw_buf_init(&in, ROOM);
		for (size_t n = 1; at < plain.len; n = n * 7 + 1) {
			size_t take = n < plain.len - at ? n : plain.len - at;

			if (kind)
				add_zlib(&in, plain.data + at, take, 15 + 16);
			else
				add_zstd(&in, plain.data + at, take, 1);
			at += take;
		}
		gives(&in, &plain, plain.len, kind ? "gzip" : "zstd");
	}
	/* a skippable frame before and between */
	tw_buf_init(&in, ROOM);
	(void)tw_buf_add(&in, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
	add_zstd(&in, plain.data, 1000, 1);
	(void)tw_buf_add(&in, "\x5f\x2a\x4d\x18\0\0\0\0", 8);
	add_zstd(&in, plain.data + 1000, 1000, 1);
	gives(&in, &plain, 2000, "zstd");
	tw_buf_done(&plain);
}

/* Only the truncated part is missing; every truncation is reported. */
static void test_cut(void **state)
{
	struct tw_buf plain, whole;

	(void)state;
	fill(&plain, 3000);
	for (int kind = 0; kind < 3; kind++) {
		tw_buf_init(&whole, ROOM);
		if (kind)
			add_zlib(&whole, plain.data, plain.len, kind == 1 ? 15 : 31);
		else
			add_zstd(&whole, plain.data, plain.len, 1);
		for (size_t n = 4; n < whole.len; n++) {
			struct tw_buf part = {.data = whole.data, .len = n};
			struct unzipped a = unzip(&part, 0, NULL);
			struct unzipped b = unzip(&part, 1, NULL);

			assert_int_equal(a.status, TW_OK);
			assert_int_equal(a.end, TW_UNZIP_CUT);
			assert_int_equal(b.end, TW_UNZIP_CUT);
			assert_int_equal(a.out.len, b.out.len);
			assert_in_range(a.out.len, 0, plain.len);
			if (a.out.len)
				assert_memory_equal(a.out.data, plain.data, a.out.len);
			tw_buf_done(&a.out);
			tw_buf_done(&b.out);
		}
		tw_buf_done(&whole);
	}
	tw_buf_done(&plain);
}

/* Every byte damaged in turn: the same whatever the cut, and never an error. */
static void test_damage(void **state)
{
	static const size_t steps[] = {0, 1, 4, 7, 100};
	struct tw_buf plain, whole;
	size_t damaged = 0;

	(void)state;
	fill(&plain, 600);
	for (int kind = 0; kind < 3; kind++) {
		tw_buf_init(&whole, ROOM);
		for (int i = 0; i < 2; i++) {
			if (kind)
				add_zlib(&whole, plain.data, plain.len, kind == 1 ? 15 : 31);
			else
				add_zstd(&whole, plain.data, plain.len, 1);
		}
		for (size_t at = 4; at < whole.len; at++) {
			struct unzipped first;

			whole.data[at] ^= 0x55;
			first = unzip(&whole, 0, NULL);
			assert_int_equal(first.status, TW_OK);
			damaged += first.end == TW_UNZIP_DAMAGED;
			for (size_t i = 1; i < sizeof steps / sizeof *steps; i++) {
				struct unzipped u = unzip(&whole, steps[i], NULL);

				assert_int_equal(u.status, TW_OK);
				assert_int_equal(u.end, first.end);
				assert_int_equal(u.out.len, first.out.len);
				if (u.out.len)
					assert_memory_equal(u.out.data, first.out.data, u.out.len);
				tw_buf_done(&u.out);
			}
			tw_buf_done(&first.out);
			whole.data[at] ^= 0x55;
		}
		tw_buf_done(&whole);
	}
	assert_in_range(damaged, 1000, 4000);
	tw_buf_done(&plain);
}

static void ends(
        const struct tw_buf *in, const struct tw_limits *l, enum tw_status st, const char *words)
{
	struct unzipped u = unzip(in, 0, l);

	assert_int_equal(u.status, st);
	if (st != TW_OK)
		assert_non_null(strstr(u.err.msg, words));
	tw_buf_done(&u.out);
}

static void test_size_limit(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_buf plain, in;

	(void)state;
	fill(&plain, 5000);
	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 0);
	for (int packed = 0; packed < 2; packed++) {
		const struct tw_buf *b = packed ? &in : &plain;

		l.max_decoded_bytes = plain.len;
		ends(b, &l, TW_OK, "");
		l.max_decoded_bytes = plain.len - 1;
		ends(b, &l, TW_TOO_LARGE, "larger than 4999 bytes");
	}
	tw_buf_done(&in);
	tw_buf_done(&plain);
}

static void test_ratio_limit(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_buf zeros, in;

	(void)state;
	tw_buf_init(&zeros, ROOM);
	assert_int_equal(tw_buf_reserve(&zeros, 3 << 20), TW_OK);
	memset(zeros.data, 0, 3 << 20);
	zeros.len = 1 << 20; /* up to a MiB is not checked */
	tw_buf_init(&in, ROOM);
	add_zstd(&in, zeros.data, zeros.len, 0);
	ends(&in, &l, TW_OK, "");
	tw_buf_clear(&in);
	zeros.len = 3 << 20;
	add_zstd(&in, zeros.data, zeros.len, 0);
	ends(&in, &l, TW_TOO_LARGE, "more than 200 times");
	tw_buf_clear(&in);
	add_zlib(&in, zeros.data, zeros.len, 31);
	ends(&in, &l, TW_TOO_LARGE, "more than 200 times");
	l.max_ratio = 2000;
	ends(&in, &l, TW_OK, "");
	tw_buf_done(&in);
	tw_buf_done(&zeros);
}

/* n bytes that a zstd decoder skips. */
static void add_skipped(struct tw_buf *out, uint32_t n)
{
	const uint32_t magic = 0x184D2A50;

	assert_int_equal(tw_buf_reserve(out, 8 + (size_t)n), TW_OK);
	(void)tw_buf_add(out, &magic, 4);
	(void)tw_buf_add(out, &n, 4);
	memset(out->data + out->len, 0, n);
	out->len += n;
}

/* A stage whose output never leaves the chain is limited like one whose output does. */
static void test_hidden_output(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_buf skipped, once, twice, many;

	(void)state;
	tw_buf_init(&skipped, ROOM);
	tw_buf_init(&once, ROOM);
	tw_buf_init(&twice, ROOM);
	tw_buf_init(&many, ROOM);
	add_skipped(&skipped, 4 << 20);
	add_zlib(&once, skipped.data, skipped.len, 31);
	ends(&once, &l, TW_TOO_LARGE, "more than 200 times");
	for (int i = 0; i < 20; i++)
		(void)tw_buf_add(&many, once.data, once.len);
	add_zlib(&twice, many.data, many.len, 31);
	ends(&twice, &l, TW_TOO_LARGE, "more than 200 times");
	l.max_ratio = 100 << 20;
	ends(&twice, &l, TW_OK, "");
	l.max_decoded_bytes = 70 << 20;
	ends(&twice, &l, TW_TOO_LARGE, "larger than 73400320 bytes");
	l.max_decoded_bytes = 2 << 20;
	ends(&once, &l, TW_TOO_LARGE, "larger than 2097152 bytes");
	tw_buf_done(&skipped);
	tw_buf_done(&once);
	tw_buf_done(&twice);
	tw_buf_done(&many);
}

/* Empty frames and members count too. */
static void test_empty_frames(void **state)
{
	struct tw_limits l = tw_limits_default();

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		struct tw_buf empty, many, in;

		tw_buf_init(&empty, ROOM);
		tw_buf_init(&many, ROOM);
		tw_buf_init(&in, ROOM);
		if (kind)
			add_zlib(&empty, "", 0, 31);
		else
			add_zstd(&empty, "", 0, 0);
		for (int i = 0; i < 20000; i++)
			(void)tw_buf_add(&many, empty.data, empty.len);
		l.max_decoded_bytes = (uint64_t)4 << 30;
		ends(&many, &l, TW_OK, "");
		l.max_decoded_bytes = 4 << 20;
		ends(&many, &l, TW_TOO_LARGE, "more than 16384 frames");
		l.max_decoded_bytes = (uint64_t)4 << 30;
		add_zlib(&in, many.data, many.len, 31); /* a thousandth of their size */
		ends(&in, &l, TW_TOO_LARGE, "more than 200 times");
		tw_buf_done(&empty);
		tw_buf_done(&many);
		tw_buf_done(&in);
	}
}

static void test_nesting_limit(void **state)
{
	struct tw_limits l = tw_limits_default();
	struct tw_buf plain, in;

	(void)state;
	fill(&plain, 100);
	tw_buf_init(&in, ROOM);
	(void)tw_buf_add(&in, plain.data, plain.len);
	for (unsigned depth = 1; depth < 12; depth++) {
		struct tw_buf outer;

		tw_buf_init(&outer, ROOM);
		add_zstd(&outer, in.data, in.len, 0);
		tw_buf_done(&in);
		in = outer;
		l.max_nesting = 3;
		ends(&in, &l, depth <= 3 ? TW_OK : TW_TOO_LARGE, "more than 3 times");
		l.max_nesting = 1000; /* the chain has its own end */
		ends(&in, &l, depth <= 7 ? TW_OK : TW_TOO_LARGE, "times over");
	}
	tw_buf_done(&in);
	tw_buf_done(&plain);
}

/* A window larger than the chain will hold is refused with words, not 2 GiB of memory. */
static void test_window(void **state)
{
	/* frame header: no single segment, window descriptor; then an empty raw block */
	static uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00};
	struct tw_buf in = {.data = frame, .len = sizeof frame};
	static const struct {
		uint8_t descriptor; /* exponent above 10, eighths of it */
		uint32_t log;
		bool fits;
	} cases[] = {{0x88, 27, true}, {0x89, 27, false}, {0xA0, 27, false}, {0x68, 23, true},
	        {0x69, 23, false}, {0x88, 23, false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tw_limits l = tw_limits_default();

		l.max_window_log = cases[i].log;
		frame[5] = cases[i].descriptor;
		ends(&in, &l, cases[i].fits ? TW_OK : TW_TOO_LARGE,
		        cases[i].log == 27 ? "larger than 128 MiB" : "larger than 8 MiB");
	}
}

/* The n-th allocation fails: a status, no leak, and in the end success. */
static void test_no_memory(void **state)
{
	struct tw_buf plain, in;
	bool done = false;

	(void)state;
	fill(&plain, 1000);
	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 0);
	{
		struct tw_buf outer;

		tw_buf_init(&outer, ROOM);
		add_zlib(&outer, in.data, in.len, 31);
		tw_buf_done(&in);
		in = outer;
	}
	for (uint64_t n = 1; !done; n++) {
		struct unzipped u;

		tw_mem_fail_at(n);
		u = unzip_by(&in, 0, NULL, false);
		done = tw_mem_count() < n;
		tw_mem_fail_at(0);
		if (done)
			assert_int_equal(u.status, TW_OK);
		else if (u.status != TW_NOMEM) /* zstd reports that as damage */
			assert_int_equal(u.status == TW_OK ? u.end : 99, TW_UNZIP_DAMAGED);
		tw_buf_done(&u.out);
		assert_in_range(n, 1, 100);
	}
	tw_buf_done(&in);
	tw_buf_done(&plain);
}

/* Dense and thin stretches, so that the verdict falls in the middle: the same for every cut. */
static void add_dense_and_thin(struct tw_buf *plain)
{
	enum { DENSE = 1400 << 10, THIN = 6000 };
	uint64_t state = 11;

	tw_buf_init(plain, ROOM);
	for (int k = 0; k < 4; k++) {
		for (size_t i = 0; i < THIN; i++) /* hardly compressible */
			(void)tw_buf_add_u8(plain, (uint8_t)(test_random(&state) >> 56));
		assert_int_equal(tw_buf_reserve(plain, DENSE), TW_OK);
		memset(plain->data + plain->len, k, DENSE);
		plain->len += DENSE;
	}
}

static void compress_as(unsigned kind, const struct tw_buf *plain, struct tw_buf *ret)
{
	struct tw_buf inner;

	tw_buf_init(ret, ROOM);
	if (kind == 0)
		add_zstd(ret, plain->data, plain->len, 0);
	else if (kind == 1)
		add_zlib(ret, plain->data, plain->len, 31);
	else {
		tw_buf_init(&inner, ROOM);
		add_zstd(&inner, plain->data, plain->len, 0);
		add_zlib(ret, inner.data, inner.len, kind == 2 ? 31 : 15);
		tw_buf_done(&inner);
	}
}

static void test_ratio_does_not_depend_on_cuts(void **state)
{
	static const size_t steps[] = {1, 3, 64, 1000, 4099, 32767, 32768, 65536, 131072};
	static const uint32_t ratios[] = {160, 180, 190, 200, 210, 220, 1000};
	struct tw_buf plain, in;
	unsigned refused = 0;

	(void)state;
	add_dense_and_thin(&plain);
	for (unsigned kind = 0; kind < 4; kind++) {
		compress_as(kind, &plain, &in);
		for (size_t r = 0; r < sizeof ratios / sizeof *ratios; r++) {
			struct tw_limits l = tw_limits_default();
			struct unzipped whole, u;

			l.max_ratio = ratios[r];
			whole = unzip(&in, 0, &l);
			refused += whole.status == TW_TOO_LARGE;
			for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
				u = unzip(&in, steps[i], &l);
				assert_int_equal(u.status, whole.status);
				assert_int_equal(u.out.len, whole.out.len);
				if (whole.status != TW_OK)
					assert_true(u.err.offset == whole.err.offset);
				tw_buf_done(&u.out);
			}
			tw_buf_done(&whole.out);
		}
		tw_buf_done(&in);
	}
	assert_in_range(refused, 1, 4 * sizeof ratios / sizeof *ratios - 1);
	tw_buf_done(&plain);
}

struct limited { /* accepts this many bytes, then fails */
	size_t room, taken;
};

static enum tw_status take_some(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct limited *l = arg;

	(void)p;
	if (n > l->room - l->taken)
		return tw_fail_at(err, TW_FULL, l->room, "no more than %zu", l->room);
	l->taken += n;
	return TW_OK;
}

static void reader_fails(bool in_place)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct limited l = {.room = 1 << 20};
	struct tw_ahead *ahead = tw_ahead_new(take_some, &l);
	struct tw_unzip *z = tw_unzip_new(a, &limits, tw_ahead_put, ahead);
	struct tw_buf plain, in;
	struct tw_err err = {0};

	fill(&plain, 4 << 20);
	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 1);
	in.data[in.len - 9] ^= 1;
	assert_non_null(ahead);
	if (in_place)
		tw_unzip_write_to(z, tw_ahead_space, ahead);
	assert_int_equal(tw_ahead_push(ahead, z, in.data, in.len, &err), TW_FULL);
	assert_string_equal(err.msg, "no more than 1048576");
	assert_int_equal(tw_unzip_bytes(z) < 3 << 20, true);
	assert_null(tw_ahead_free(ahead));
	tw_unzip_free(z);
	tw_arena_free(a);
	tw_buf_done(&plain);
	tw_buf_done(&in);
}

/* A reader's failure stops the thread and is reported, not damage in later bytes. */
static void test_reader_fails(void **state)
{
	(void)state;
	reader_fails(false);
	reader_fails(true);
}

/* Its failure in one of the last pieces is returned at the latest by tw_ahead_finish. */
static void test_reader_fails_late(void **state)
{
	enum { BYTES = 4 << 20 };
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct limited l = {.room = BYTES - BYTES / 4};
	struct tw_ahead *ahead = tw_ahead_new(take_some, &l);
	struct tw_unzip *z = tw_unzip_new(a, &limits, tw_ahead_put, ahead);
	struct tw_buf plain, in;
	struct tw_err err = {0};
	enum tw_status st;

	(void)state;
	fill(&plain, BYTES);
	tw_buf_init(&in, ROOM);
	add_zstd(&in, plain.data, plain.len, 1);
	assert_non_null(ahead);
	st = tw_ahead_push(ahead, z, in.data, in.len, &err);
	if (st == TW_OK)
		st = tw_ahead_finish(ahead, &err);
	assert_int_equal(st, TW_FULL);
	assert_int_equal(err.offset, l.room);
	tw_ahead_free(ahead);
	tw_unzip_free(z);
	tw_arena_free(a);
	tw_buf_done(&plain);
	tw_buf_done(&in);
}

static void test_ahead_without_memory(void **state)
{
	(void)state;
	tw_mem_fail_at(1);
	assert_null(tw_ahead_new(keep, NULL));
	tw_mem_fail_at(0);
	assert_null(tw_ahead_free(NULL));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_ratio_limit),
        cmocka_unit_test(test_ratio_does_not_depend_on_cuts),
        cmocka_unit_test(test_hidden_output),
        cmocka_unit_test(test_empty_frames),
        cmocka_unit_test(test_nesting_limit),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_reader_fails),
        cmocka_unit_test(test_reader_fails_late),
        cmocka_unit_test(test_ahead_without_memory),
};

UNIT_TESTS("unzip", tests)
