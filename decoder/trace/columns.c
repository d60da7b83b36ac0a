/*
 * columns.c - reads chunks of slices (schema/columns.md).
 *
 * The loop over the slices checks few values: columns of buckets have one byte per value and are
 * stored so that a read past one ends in the next, and bits past the end are arbitrary. Errors are
 * detected after the loop. Times cannot overflow: those of ordinary buckets are below 2^35, two
 * per slice, and the sum of the wide ones is limited.
 */
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/trace/columns_internal.h"

#define OUTSIDE UINT32_MAX

struct tw_chunk_level {  /* of an open slice */
	uint64_t cursor; /* end of its last child in this chunk, or its begin */
	uint32_t index;  /* in the chunk; OUTSIDE: of the open stack, or the thread */
	/* parts of the contexts' hashes: */
	uint32_t method, last_child;
	uint32_t for_child, for_later; /* the next one, and all after a first one */
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
	struct tw_averages gap, tail;
};

/* Positions in the columns of slices.  A local variable, so that they are in registers. */
struct hot {
	const uint8_t *call, *leaf, *tail, *gap;
	const uint8_t *bits, *limit;
	uint64_t bit;  /* position in the bits */
	uint64_t wide; /* sum of the times of wide buckets */
	bool overflow; /* `wide` overflowed */
};

/* The limit of the sum of wide times, and a bound of the sum of ordinary times. */
#define WIDE_MAX     ((uint64_t)1 << 63)
#define ORDINARY_MAX ((uint64_t)1 << 53)

#define ALWAYS static inline __attribute__((always_inline))

/* --- values --- */

static uint64_t last_bytes(const uint8_t *p, const uint8_t *limit)
{
	uint8_t last[8] = {0};

	if (p < limit)
		memcpy(last, p, (size_t)(limit - p));
	return tw_u64le(last);
}

ALWAYS uint64_t take_bits(struct hot *h, unsigned n)
{
	const uint8_t *p = h->bits + h->bit / 8;
	uint64_t v = h->limit - p >= 8 ? tw_u64le(p) : last_bytes(p, h->limit);

	v >>= h->bit & 7;
	h->bit += n;
	return v & ((UINT64_C(1) << n) - 1);
}

/* The inverse of tw_time_bucket. */
ALWAYS uint64_t take_time(struct hot *h, unsigned bucket)
{
	unsigned below = bucket >> TW_STEPS_LOG2;
	uint64_t step;
	uint64_t v;

	if (bucket != TW_WIDE_BUCKET) {
		below -= below > 0;
		step = bucket - (below << TW_STEPS_LOG2);
		return step << below | take_bits(h, below);
	}
	v = take_bits(h, TW_HALF_BITS);
	v |= take_bits(h, TW_HALF_BITS) << TW_HALF_BITS;
	if (v > WIDE_MAX - h->wide) {
		h->overflow = true;
		return 0;
	}
	h->wide += v;
	return v;
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

static bool take_call_slowly(
        struct reader *r, const uint8_t **at, uint64_t *ret_step, uint64_t *ret_method)
{
	bool ok;

	r->at[TW_COL_CALL] = *at;
	ok = take_slowly(r, TW_COL_CALL, UINT32_MAX, ret_step) &&
	     take_slowly(r, TW_COL_CALL, UINT32_MAX, ret_method);
	*at = r->at[TW_COL_CALL];
	return ok;
}

/* --- slices --- */

/* Ends the last slice if it has no children. */
ALWAYS void close_leaf(struct hot *h, struct tw_slice *slices, struct tw_chunk_level *l)
{
	uint64_t dur = take_time(h, *h->leaf++);

	slices[l->index].dur_ns = (int64_t)dur;
	l[-1].cursor = l->cursor + dur;
}

/* Ends a call with children in this chunk, or one of the open stack. */
ALWAYS void close_parent(
        struct reader *r, struct hot *h, struct tw_slice *slices, struct tw_chunk_level *l)
{
	unsigned bucket;
	uint64_t end;

	if (l->index == OUTSIDE)
		return;
	bucket = bucket_of(&r->tail.slots[tw_slot_of(l->method ^ l->last_child)], *h->tail++);
	end = l->cursor + take_time(h, bucket);
	slices[l->index].dur_ns = (int64_t)(end - (uint64_t)slices[l->index].start_ns);
	l[-1].cursor = end;
}

static bool reserve_levels(struct tw_chunk *c, size_t want)
{
	struct tw_chunk_level *p;

	if (want <= c->cap_levels)
		return true;
	p = tw_mem_resize(c->levels, 2 * want, sizeof *p);
	if (!p)
		return false;
	c->levels = p;
	c->cap_levels = 2 * want;
	return true;
}

static enum tw_status read_open(struct reader *r, uint64_t start)
{
	struct tw_chunk *c = r->chunk;

	if (!reserve_levels(c, c->n_open + 64))
		return TW_NOMEM;
	c->levels[0] = (struct tw_chunk_level){.cursor = start,
	        .index = OUTSIDE,
	        .for_child = TW_NO_PARENT * TW_OTHER_HASH,
	        .for_later = TW_NO_PARENT * TW_OTHER_HASH ^ TW_LATER_CHILD};
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
		c->levels[i + 1] = (struct tw_chunk_level){.cursor = start,
		        .index = OUTSIDE,
		        .for_child = (uint32_t)method * TW_OTHER_HASH,
		        .for_later = (uint32_t)method * TW_OTHER_HASH ^ TW_LATER_CHILD};
	}
	return TW_OK;
}

static enum tw_status read_slices(struct reader *r, struct hot *io)
{
	struct tw_chunk *c = r->chunk;
	struct tw_slice *slices = c->slices;
	struct tw_chunk_level *top = &c->levels[c->n_open]; /* the innermost open call */
	const uint8_t *call_end = r->end[TW_COL_CALL];
	uint32_t n = (uint32_t)c->n;
	struct hot h = *io;

	for (uint32_t i = 0; i < n; i++) {
		size_t depth = (size_t)(top - c->levels);
		uint64_t step;
		uint64_t method;
		uint64_t start;
		uint32_t hash;
		uint32_t other;
		unsigned bucket;

		if (call_end - h.call >= 3 && h.call[0] < 0x80 && (h.call[1] & h.call[2]) < 0x80) {
			unsigned two = h.call[1] >> 7; /* unpredictable: no branch */

			step = h.call[0];
			method = (h.call[1] & 0x7Fu) | (h.call[2] & (0u - two)) << 7;
			h.call += 2 + two;
		} else if (!take_call_slowly(r, &h.call, &step, &method)) {
			return TW_CORRUPT;
		}
		if (step > depth || (i == 0 && step))
			return TW_CORRUPT;
		if (step)
			close_leaf(&h, slices, top--);
		for (; step > 1; step--)
			close_parent(r, &h, slices, top--);
		depth = (size_t)(top - c->levels);
		if (depth + 2 > c->cap_levels) {
			if (!reserve_levels(c, depth + 2))
				return TW_NOMEM;
			top = &c->levels[depth];
		}
		hash = (uint32_t)method * TW_METHOD_HASH;
		other = (uint32_t)method * TW_OTHER_HASH;
		bucket = bucket_of(&r->gap.slots[tw_slot_of(hash ^ top->for_child)], *h.gap++);
		start = top->cursor + take_time(&h, bucket);
		top->for_child = top->for_later;
		top->last_child = other;
		slices[i].start_ns = (int64_t)start;
		slices[i].cpu_ns = -1;
		slices[i].method = (uint32_t)method;
		slices[i].depth = (uint32_t)depth;
		slices[i].merged = 0;
		top++;
		top->cursor = start;
		top->index = i;
		top->method = hash;
		top->for_child = other;
		top->for_later = other ^ TW_LATER_CHILD;
	}
	close_leaf(&h, slices, top--);
	while (top > c->levels)
		close_parent(r, &h, slices, top--);
	r->at[TW_COL_CALL] = h.call;
	r->at[TW_COL_LEAF] = h.leaf;
	r->at[TW_COL_TAIL] = h.tail;
	r->at[TW_COL_GAP] = h.gap;
	*io = h;
	return TW_OK;
}

/* Columns that few chunks have. */
static enum tw_status read_rare(struct reader *r)
{
	struct tw_chunk *c = r->chunk;
	const uint64_t more = r->flags & TW_FLAG_CPU ? 1 : 0; /* than the CPU time */
	uint64_t v = 0;

	for (size_t i = 0; r->flags & (TW_FLAG_CPU | TW_FLAG_CPU_KNOWN) && i < c->n; i++) {
		if (!take_slowly(r, TW_COL_CPU, (uint64_t)TW_TIME_MAX + more, &v))
			return TW_CORRUPT;
		c->slices[i].cpu_ns = (int64_t)(v - more);
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
static bool in_time(const struct tw_chunk *c, const struct hot *h, int64_t start_ns)
{
	if (h->overflow)
		return false;
	if ((uint64_t)start_ns + h->wide + ORDINARY_MAX <= (uint64_t)TW_TIME_MAX)
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
	/* an open slice takes at least three bytes; a slice has a gap and is a leaf or not */
	if (c->n == 0 || c->n > TW_CHUNK_SLICES || c->n_open > bytes[TW_COL_OPEN] / 3 ||
	        c->n != bytes[TW_COL_GAP] || c->n != bytes[TW_COL_LEAF] + bytes[TW_COL_TAIL])
		return tw_fail_at(err, TW_CORRUPT, 4, "a chunk's counts do not fit its columns");
	return TW_OK;
}

static enum tw_status decode(struct reader *r, int64_t start_ns)
{
	struct tw_chunk *c = r->chunk;
	struct hot h = {.call = r->at[TW_COL_CALL],
	        .leaf = r->at[TW_COL_LEAF],
	        .tail = r->at[TW_COL_TAIL],
	        .gap = r->at[TW_COL_GAP],
	        .bits = r->at[TW_COL_BITS],
	        .limit = r->limit};
	enum tw_status st = slices_reserve(&c->open, &c->cap_open, c->n_open) &&
	                                    slices_reserve(&c->slices, &c->cap, c->n)
	                            ? TW_OK
	                            : TW_NOMEM;

	memset(&r->gap, 0, sizeof r->gap);
	memset(&r->tail, 0, sizeof r->tail);
	if (st == TW_OK)
		st = read_open(r, (uint64_t)start_ns);
	if (st == TW_OK)
		st = read_slices(r, &h);
	if (st == TW_OK)
		st = read_rare(r);
	if (st == TW_OK && (!is_whole(r, &h) || !in_time(c, &h, start_ns) ||
	                           c->slices[0].start_ns != start_ns))
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
