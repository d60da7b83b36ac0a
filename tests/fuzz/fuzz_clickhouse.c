/*
 * Results of ClickHouse in RowBinary, from any bytes, against a second reader of the same format.
 *
 * The first byte is the number of columns, the next ones their kinds; what follows is the result.
 * Both readers must find the same values up to the first that does not fit, and nothing after it.
 * A result of values that fit is written again to the same bytes.
 */
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "server/fleet/store/clickhouse/clickhouse.h"

enum kind { U8, U16, U64, I64, DOUBLE, FIXED, TEXT, ARRAY, KINDS };
enum { COLUMNS_MAX = 16, FIXED_BYTES = 26, ROWS_MAX = 4096 };

/* --- the second reader: an offset that fails once and for all --- */

struct oracle {
	const uint8_t *data;
	size_t n, at;
	bool failed;
};

static const uint8_t *take(struct oracle *o, uint64_t n)
{
	const uint8_t *p = o->data + o->at;

	if (o->failed || n > o->n - o->at) {
		o->failed = true;
		return NULL;
	}
	o->at += (size_t)n;
	return p;
}

static uint64_t take_number(struct oracle *o, unsigned bytes)
{
	const uint8_t *p = take(o, bytes);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* LEB128 of at most 64 bits.  Each counted element has at least a byte. */
static uint64_t take_count(struct oracle *o)
{
	uint64_t v = 0;

	for (unsigned shift = 0; !o->failed; shift += 7) {
		const uint8_t *p = take(o, 1);

		if (!p)
			break;
		if (shift > 63 || (shift == 63 && *p > 1)) {
			o->failed = true;
			break;
		}
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			break;
	}
	if (v > o->n - o->at)
		o->failed = true;
	return o->failed ? 0 : v;
}

/* --- both --- */

static bool same_bytes(struct tw_str s, const uint8_t *p, size_t n)
{
	return s.len == n && (n == 0 || memcmp(s.ptr, p, n) == 0);
}

static void read_number(
        enum kind kind, struct tw_clickhouse_reader *r, struct oracle *o, struct tw_buf *out)
{
	static const unsigned widths[] = {1, 2, 8, 8, 8};
	const uint64_t want = take_number(o, widths[kind]);
	uint64_t got = 0;
	double d;

	switch (kind) {
	case U8:
		got = tw_clickhouse_u8(r);
		break;
	case U16:
		got = tw_clickhouse_u16(r);
		break;
	case I64:
		got = (uint64_t)tw_clickhouse_i64(r);
		FUZZ_CHECK(got == (want > INT64_MAX ? INT64_MAX : want));
		got = want;
		break;
	case DOUBLE:
		d = tw_clickhouse_double(r);
		memcpy(&got, &d, sizeof got);
		break;
	case U64:
	case FIXED:
	case TEXT:
	case ARRAY:
	case KINDS:
	default:
		got = tw_clickhouse_u64(r);
		break;
	}
	FUZZ_CHECK(got == want);
	for (unsigned i = 0; i < widths[kind]; i++)
		(void)tw_buf_add_u8(out, (uint8_t)(want >> (8 * i)));
}

static void read_text(
        enum kind kind, struct tw_clickhouse_reader *r, struct oracle *o, struct tw_buf *out)
{
	const uint64_t n = kind == FIXED ? FIXED_BYTES : take_count(o);
	const uint8_t *want = take(o, n);
	const struct tw_str got =
	        kind == FIXED ? tw_clickhouse_fixed(r, FIXED_BYTES) : tw_clickhouse_text(r);
	char copy[256];

	FUZZ_CHECK(got.ptr);
	FUZZ_CHECK(same_bytes(got, want, want ? (size_t)n : 0));
	if (kind == TEXT && got.len < sizeof copy && !memchr(got.ptr, 0, got.len)) {
		memcpy(copy, got.ptr, got.len);
		copy[got.len] = '\0';
		tw_clickhouse_put_text(out, copy); /* as it is written */
		return;
	}
	if (kind == TEXT)
		(void)tw_buf_add_varint(out, got.len);
	(void)tw_buf_add_str(out, got);
}

static void read_array(struct tw_clickhouse_reader *r, struct oracle *o, struct tw_buf *out)
{
	const uint64_t want = take_count(o), got = tw_clickhouse_n(r);

	FUZZ_CHECK(got == want);
	FUZZ_CHECK(got <= o->n);
	(void)tw_buf_add_varint(out, got);
	for (uint64_t i = 0; i < got && !o->failed; i++)
		read_number(U64, r, o, out);
}

/* A number of more bytes than it needs is read, and written shorter. */
static bool is_shorter(const struct tw_buf *out, size_t n)
{
	return out->len < n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t columns = size ? 1 + data[0] % COLUMNS_MAX : 1;
	const size_t head = size > columns ? 1 + columns : size;
	struct oracle o = {data + head, size - head, 0, false};
	struct tw_buf result, out;
	struct tw_clickhouse_reader r;
	size_t rows = 0;

	tw_buf_init(&result, 1 << 26);
	tw_buf_init(&out, 1 << 26);
	(void)tw_buf_add(&result, o.data,
	        o.n); /* copied, so that the sanitizers detect a read past its end */
	r = (struct tw_clickhouse_reader){
	        .p = result.data, .end = result.data ? result.data + result.len : NULL};
	while (size > columns && tw_clickhouse_more(&r) && rows++ < ROWS_MAX)
		for (size_t i = 0; i < columns; i++) {
			const enum kind kind = (enum kind)(data[1 + i] % KINDS);

			if (kind < FIXED)
				read_number(kind, &r, &o, &out);
			else if (kind == ARRAY)
				read_array(&r, &o, &out);
			else
				read_text(kind, &r, &o, &out);
			FUZZ_CHECK(r.damaged == o.failed);
			FUZZ_CHECK(r.damaged || (size_t)(r.end - r.p) == o.n - o.at);
		}
	FUZZ_CHECK(!tw_clickhouse_more(&r) || rows > ROWS_MAX || size <= columns);
	if (!o.failed && o.at == o.n && size > columns)
		FUZZ_CHECK(
		        same_bytes((struct tw_str){(const char *)out.data, out.len}, o.data, o.n) ||
		        is_shorter(&out, o.n));
	tw_buf_done(&result);
	tw_buf_done(&out);
	return 0;
}
