/*
 * columns.c - reads chunks of slices (schema/columns.md).
 *
 * The loop over the slices checks few values: columns of buckets have one byte per value and are
 * stored so that a read past one ends in the next, and so do calls, of which as many bytes are left
 * as the shortest ones take.  Begins and ends are in order of time, so the time of the last one is
 * all that the next one needs.  Other errors are detected after the loop. Times cannot overflow:
 * those of ordinary buckets are below 2^35, two per slice, and the sum of the wide ones is limited.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/trace/columns_internal.h"

struct tw_chunk_level {         /* of an open slice */
	struct tw_slice *slice; /* NULL: of the open stack, or the thread */
	/* parts of the contexts' hashes: */
	uint32_t method; /* for its own values */
	uint32_t other;  /* for those of callers and callees */
	uint32_t later;  /* TW_LATER_CHILD once it has a child in this chunk, otherwise 0 */
};

void tw_chunk_init(struct tw_chunk *c)
{
	*c = (struct tw_chunk){0};
}

void tw_chunk_done(struct tw_chunk *c)
{
	tw_mem_free(c->open);
	tw_mem_free(c->slices);
	tw_mem_free(c->levels);
	tw_chunk_init(c);
}

static bool slices_reserve(struct tw_slice **p, size_t *cap, size_t want)
{
	struct tw_slice *q;

	if (want <= *cap)
		return true;
	q = tw_mem_resize(*p, want, sizeof *q);
	if (!q)
		return false;
	tw_mem_will_fill(q, want * sizeof *q);
	*p = q;
	*cap = want;
	return true;
}

struct reader {
	const uint8_t *at[TW_COLUMNS];
	const uint8_t *end[TW_COLUMNS];
	const uint8_t *limit; /* of the payload */
	struct tw_chunk *chunk;
	uint32_t flags;
	uint32_t step, method; /* of a call that was read slowly */
	uint64_t n_bits;       /* in the column of bits */
	uint64_t wide;         /* sum of the times of wide buckets */
	bool overflow;         /* `wide` overflowed, or such a time is past the end */
	struct tw_averages gap, tail;
};

/* Positions in the columns of slices.  A local variable, so that they are in registers. */
struct hot {
	const uint8_t *call, *leaf, *tail, *gap;
	const uint8_t *bits;
	uint64_t bit; /* position in the bits, which is compared with their number once per slice */
	uint64_t now; /* time of the last begin or end */
};

/* Eight bytes are read at once, at most 64 bits past the end.  A chunk whose other columns have
 * fewer bytes has at most three slices, with six times of eight bytes. */
enum { PAST_END = 16, FEW = 48 };

/* The limit of the sum of wide times, and a bound of the sum of ordinary times. */
#define WIDE_MAX     ((uint64_t)1 << 63)
#define ORDINARY_MAX ((uint64_t)1 << 53)

#define ALWAYS static inline __attribute__((always_inline))

/* --- values --- */

/* The times of a bucket: the first one, and the bits below it. */
struct times {
	uint64_t first;
	uint32_t mask, below; /* mask of that many bits */
};

#define BELOW(b) (((b) >> TW_STEPS_LOG2) - ((b) >> TW_STEPS_LOG2 > 0))
#define TIMES(b)                                                                                   \
	{                                                                                          \
		(uint64_t)((b) - (BELOW(b) << TW_STEPS_LOG2)) << BELOW(b), (1u << BELOW(b)) - 1,   \
		        BELOW(b)                                                                   \
	}
#define TIMES4(b)  TIMES(b), TIMES((b) + 1), TIMES((b) + 2), TIMES((b) + 3)
#define TIMES16(b) TIMES4(b), TIMES4((b) + 4), TIMES4((b) + 8), TIMES4((b) + 12)
#define TIMES64(b) TIMES16(b), TIMES16((b) + 16), TIMES16((b) + 32), TIMES16((b) + 48)
static const struct times bucket_times[] = {
        TIMES64(0u), TIMES64(64u), TIMES64(128u), TIMES64(192u)};

/* At least TW_HALF_BITS bits, the lowest first; arbitrary past the end. */
ALWAYS uint64_t bits_at(const uint8_t *bits, uint64_t bit)
{
	return tw_u64le(bits + bit / 8) >> (bit & 7);
}

static __attribute__((noinline)) uint64_t wide_time(
        struct reader *r, const uint8_t *bits, uint64_t bit)
{
	uint64_t v;

	if (bit + (uint64_t)2 * TW_HALF_BITS > r->n_bits) {
		r->overflow = true;
		return 0;
	}
	v = (bits_at(bits, bit) & UINT32_MAX) | bits_at(bits, bit + TW_HALF_BITS) << TW_HALF_BITS;
	if (v > WIDE_MAX - r->wide) {
		r->overflow = true;
		return 0;
	}
	r->wide += v;
	return v;
}

/* The inverse of tw_time_bucket. */
ALWAYS uint64_t take_time(struct reader *r, struct hot *h, unsigned bucket)
{
	const struct times *t = &bucket_times[bucket];
	uint64_t bit = h->bit;

	if (__builtin_expect(bucket == TW_WIDE_BUCKET, 0)) {
		h->bit = bit + (uint64_t)2 * TW_HALF_BITS;
		return wide_time(r, h->bits, bit);
	}
	h->bit = bit + t->below;
	return t->first + (bits_at(h->bits, bit) & t->mask);
}

ALWAYS unsigned bucket_of(uint16_t *average, uint8_t differs)
{
	unsigned bucket = (tw_expected_bucket(*average) + differs) & 255;

	*average = tw_next_average(*average, bucket);
	return bucket;
}

/* False if the column ends, or the value is too large. */
static bool take_slowly(struct reader *r, enum tw_column c, uint64_t max, uint64_t *ret)
{
	return tw_get_varint(&r->at[c], r->end[c], ret) && *ret <= max;
}

/* Reads r->step and r->method.  Returns the end of the call, after which each of the `left` slices
 * has two bytes or more in the column; NULL if that is not so. */
static __attribute__((noinline)) const uint8_t *take_call_slowly(
        struct reader *r, const uint8_t *at, size_t left)
{
	uint64_t step;
	uint64_t method;

	r->at[TW_COL_CALL] = at;
	if (!take_slowly(r, TW_COL_CALL, UINT32_MAX, &step) ||
	        !take_slowly(r, TW_COL_CALL, UINT32_MAX, &method) ||
	        (size_t)(r->end[TW_COL_CALL] - r->at[TW_COL_CALL]) / 2 < left)
		return NULL;
	r->step = (uint32_t)step;
	r->method = (uint32_t)method;
	return r->at[TW_COL_CALL];
}

/* --- slices --- */

/* Ends the last slice, which has no children. */
ALWAYS void close_leaf(struct reader *r, struct hot *h, const struct tw_chunk_level *l)
{
	uint64_t dur = take_time(r, h, *h->leaf++);

	l->slice->dur_ns = (int64_t)dur;
	h->now += dur;
}

/* Ends a call with children in this chunk, or one of the open stack. */
ALWAYS void close_parent(
        struct reader *r, struct hot *h, const struct tw_chunk_level *l, uint64_t start)
{
	unsigned bucket;

	if (!l->slice) {
		h->now = start;
		return;
	}
	bucket = bucket_of(&r->tail.slots[tw_slot_of(l->method ^ l[1].other)], *h->tail++);
	h->now += take_time(r, h, bucket);
	l->slice->dur_ns = (int64_t)(h->now - (uint64_t)l->slice->start_ns);
}

static enum tw_status read_open(struct reader *r, uint64_t start)
{
	struct tw_chunk *c = r->chunk;

	if (!TW_RESERVE_FROM(128, NULL, c->levels, 0, c->n_open + 64, c->cap_levels))
		return TW_NOMEM;
	c->levels[0] = (struct tw_chunk_level){.other = TW_NO_PARENT * TW_OTHER_HASH};
	for (size_t i = 0; i < c->n_open; i++) {
		uint64_t back;
		uint64_t dur;
		uint64_t method;

		if (!take_slowly(r, TW_COL_OPEN, start, &back) ||
		        !take_slowly(r, TW_COL_OPEN, (uint64_t)TW_TIME_MAX, &dur) ||
		        !take_slowly(r, TW_COL_OPEN, UINT32_MAX, &method) ||
		        start - back + dur > (uint64_t)TW_TIME_MAX)
			return TW_CORRUPT;
		c->open[i] = (struct tw_slice){.start_ns = (int64_t)(start - back),
		        .dur_ns = (int64_t)dur,
		        .cpu_ns = -1,
		        .method = (uint32_t)method,
		        .depth = (uint32_t)i};
		c->levels[i + 1] =
		        (struct tw_chunk_level){.other = (uint32_t)method * TW_OTHER_HASH};
	}
	return TW_OK;
}

/* Whether the first two varints of a word are of one byte, and of one or two. */
ALWAYS bool is_short(uint32_t w)
{
	return (w & 0x80) == 0 && (w & 0x808000) != 0x808000;
}

/* Closes all calls that are open after the last slice.  False: times are past the end. */
static bool close_all(
        struct reader *r, struct hot *h, const struct tw_chunk_level *top, uint64_t start)
{
	if (h->bit > r->n_bits)
		return false;
	close_leaf(r, h, top--);
	for (; h->bit <= r->n_bits && top > r->chunk->levels; top--)
		close_parent(r, h, top, start);
	return h->bit <= r->n_bits;
}

/* `io`: at the first slice, then after the last one. */
static enum tw_status read_slices(struct reader *r, struct hot *io)
{
	struct tw_chunk *c = r->chunk;
	struct tw_chunk_level *top = &c->levels[c->n_open]; /* the innermost open call */
	struct tw_chunk_level *most = &c->levels[c->cap_levels - 2];
	const struct tw_slice *end = c->slices + c->n;
	const uint64_t chunk_start = io->now;
	uint32_t depth = (uint32_t)c->n_open;
	struct hot h = *io;

	for (struct tw_slice *s = c->slices; s < end; s++) {
		uint32_t w = tw_u32le(h.call);
		uint32_t step;
		uint32_t method;
		unsigned bucket;

		if (__builtin_expect(is_short(w), 1)) {
			uint32_t two = w >> 15 & 1; /* unpredictable: no branch */

			step = w & 0x7F;
			method = (w >> 8 & 0x7F) | (w >> 9 & 0x3F80 & (0u - two));
			h.call += 2 + two;
		} else {
			h.call = take_call_slowly(r, h.call, (size_t)(end - s) - 1);
			if (!h.call)
				return TW_CORRUPT;
			step = r->step;
			method = r->method;
		}
		if (h.bit > r->n_bits)
			return TW_CORRUPT;
		if (step) {
			if (step > depth)
				return TW_CORRUPT;
			depth -= step;
			close_leaf(r, &h, top--);
			while (--step) {
				close_parent(r, &h, top--, chunk_start);
				if (h.bit > r->n_bits)
					return TW_CORRUPT;
			}
		}
		if (top > most) {
			if (!TW_RESERVE_FROM(128, NULL, c->levels, 0, depth + 2, c->cap_levels))
				return TW_NOMEM;
			top = &c->levels[depth];
			most = &c->levels[c->cap_levels - 2];
		}
		top[1].slice = s;
		top[1].method = method * TW_METHOD_HASH;
		top[1].other = method * TW_OTHER_HASH;
		top[1].later = 0;
		bucket = bucket_of(
		        &r->gap.slots[tw_slot_of(top[1].method ^ top->other ^ top->later)],
		        *h.gap++);
		h.now += take_time(r, &h, bucket);
		top->later = TW_LATER_CHILD;
		s->start_ns = (int64_t)h.now;
		s->cpu_ns = -1;
		s->method = method;
		s->depth = depth++;
		s->merged = 0;
		top++;
	}
	*io = h;
	if (!close_all(r, io, top, chunk_start))
		return TW_CORRUPT;
	r->at[TW_COL_CALL] = io->call;
	r->at[TW_COL_LEAF] = io->leaf;
	r->at[TW_COL_TAIL] = io->tail;
	r->at[TW_COL_GAP] = io->gap;
	return TW_OK;
}

/* Columns that few chunks have. */
static enum tw_status read_rare(struct reader *r)
{
	struct tw_chunk *c = r->chunk;
	uint64_t v = 0;

	for (size_t i = 0; r->flags & TW_FLAG_CPU && i < c->n; i++) {
		if (!take_slowly(r, TW_COL_CPU, (uint64_t)TW_TIME_MAX + 1, &v))
			return TW_CORRUPT;
		c->slices[i].cpu_ns = (int64_t)v - 1;
	}
	for (size_t i = 0; r->flags & TW_FLAG_MERGED && i < c->n; i++) {
		if (!take_slowly(r, TW_COL_MERGED, UINT32_MAX, &v))
			return TW_CORRUPT;
		c->slices[i].merged = (uint32_t)v;
	}
	return TW_OK;
}

/* Unread bytes cannot come from an encoder, nor can times past the limit. */
static bool is_whole(const struct reader *r, const struct hot *h)
{
	size_t bits = (size_t)(r->end[TW_COL_BITS] - r->at[TW_COL_BITS]);

	for (int i = 0; i < TW_COLUMNS; i++)
		if (i != TW_COL_BITS && r->at[i] != r->end[i])
			return false;
	if ((h->bit + 7) / 8 != bits)
		return false;
	return (h->bit & 7) == 0 || h->bits[bits - 1] >> (h->bit & 7) == 0;
}

/* Returns whether all times are within the limit. */
static bool in_time(const struct reader *r, int64_t start_ns)
{
	const struct tw_chunk *c = r->chunk;

	if (r->overflow)
		return false;
	if ((uint64_t)start_ns + r->wide + ORDINARY_MAX <= (uint64_t)TW_TIME_MAX)
		return true;
	for (size_t i = 0; i < c->n; i++)
		if ((uint64_t)c->slices[i].start_ns + (uint64_t)c->slices[i].dur_ns >
		        (uint64_t)TW_TIME_MAX)
			return false;
	return true;
}

static enum tw_status read_header(
        struct reader *r, struct tw_chunk *c, const uint8_t *p, size_t len, struct tw_err *err)
{
	const uint8_t *at = p + TW_CHUNK_HEADER_BYTES;
	uint64_t left = len - TW_CHUNK_HEADER_BYTES;
	size_t bytes[TW_COLUMNS];

	c->n = tw_u32le(p + 4);
	c->n_open = tw_u32le(p + 8);
	r->flags = tw_u32le(p + 12);
	r->limit = p + len;
	for (size_t i = 0; i < TW_COLUMNS; i++) {
		bytes[i] = tw_u32le(p + 16 + 4 * i);
		if (bytes[i] > left)
			return tw_fail_at(err, TW_CORRUPT, 0, "a chunk's columns do not fit it");
		r->at[i] = at;
		r->end[i] = at += bytes[i];
		left -= bytes[i];
	}
	/* an open slice takes at least three bytes, a call two; a slice has a gap and is a leaf or
	 * not */
	if (c->n == 0 || c->n > TW_CHUNK_SLICES || c->n_open > bytes[TW_COL_OPEN] / 3 ||
	        c->n > bytes[TW_COL_CALL] / 2 || c->n != bytes[TW_COL_GAP] ||
	        c->n != bytes[TW_COL_LEAF] + bytes[TW_COL_TAIL])
		return tw_fail_at(err, TW_CORRUPT, 4, "a chunk's counts do not fit its columns");
	return TW_OK;
}

/* Bits are read eight bytes at a time, so those of the smallest chunks are copied to a buffer with
 * space after them. */
static enum tw_status find_bits(struct reader *r, struct hot *h, uint8_t few[FEW + PAST_END])
{
	const uint8_t *end = r->end[TW_COL_BITS];
	size_t n = (size_t)(end - r->at[TW_COL_BITS]);

	h->bits = r->at[TW_COL_BITS];
	r->n_bits = (uint64_t)n * 8;
	if (r->limit - end >= PAST_END)
		return TW_OK;
	if (n > FEW)
		return TW_CORRUPT;
	memset(few, 0, FEW + PAST_END);
	memcpy(few, h->bits, n);
	h->bits = few;
	return TW_OK;
}

static enum tw_status decode(struct reader *r, int64_t start_ns)
{
	uint8_t few[FEW + PAST_END];
	struct tw_chunk *c = r->chunk;
	struct hot h = {.call = r->at[TW_COL_CALL],
	        .leaf = r->at[TW_COL_LEAF],
	        .tail = r->at[TW_COL_TAIL],
	        .gap = r->at[TW_COL_GAP],
	        .now = (uint64_t)start_ns};
	enum tw_status st = slices_reserve(&c->open, &c->cap_open, c->n_open) &&
	                                    slices_reserve(&c->slices, &c->cap, c->n)
	                            ? TW_OK
	                            : TW_NOMEM;

	memset(&r->gap, 0, sizeof r->gap);
	memset(&r->tail, 0, sizeof r->tail);
	if (st == TW_OK && *h.call) /* nothing is closed before the first slice */
		st = TW_CORRUPT;
	if (st == TW_OK)
		st = read_open(r, (uint64_t)start_ns);
	if (st == TW_OK)
		st = find_bits(r, &h, few);
	if (st == TW_OK)
		st = read_slices(r, &h);
	if (st == TW_OK)
		st = read_rare(r);
	if (st == TW_OK &&
	        (!is_whole(r, &h) || !in_time(r, start_ns) || c->slices[0].start_ns != start_ns))
		st = TW_CORRUPT;
	return st;
}

enum tw_status tw_chunk_decode(struct tw_chunk *c, const uint8_t *payload, size_t len,
        int64_t start_ns, struct tw_err *err)
{
	struct reader r = {.chunk = c};
	uint32_t magic = len < TW_CHUNK_HEADER_BYTES ? 0 : tw_u32le(payload);
	enum tw_status st = TW_OK;

	if (magic != TW_CHUNK_MAGIC)
		st = tw_fail_at(err, TW_CORRUPT, 0, "not a chunk of slices");
	else if (start_ns < 0 || start_ns > TW_TIME_MAX)
		st = tw_fail_at(err, TW_CORRUPT, 0, "a chunk's start is out of range");
	if (st == TW_OK)
		st = read_header(&r, c, payload, len, err);
	if (st == TW_OK) {
		st = decode(&r, start_ns);
		if (st == TW_CORRUPT)
			st = tw_fail_at(err, TW_CORRUPT, 0, "a chunk's columns are damaged");
		else if (st != TW_OK)
			st = tw_oom(err);
	}
	if (st != TW_OK)
		c->n = c->n_open = 0;
	return st;
}
