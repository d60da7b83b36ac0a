/*
 * columns_first.c - reads chunks of the first form, which older trace files have: columns of
 * varints (schema/columns.md, "The first form").
 */
#include "decoder/base/arena.h"
#include "decoder/trace/columns_internal.h"

enum column { COL_OPEN, COL_STEP, COL_GAP, COL_LEAF, COL_TAIL, COL_METHOD, COL_CPU, COL_MERGED };
enum { COLUMNS = 8 };

/* An open slice while walking: the base of its next child's gap. */
struct level {
	int64_t end_ns;
	int64_t cursor_ns; /* end of its last child, or its start */
	uint32_t index;    /* in the chunk; OUTSIDE for the open stack */
	bool has_child;
};

#define OUTSIDE UINT32_MAX

struct decoder {
	const uint8_t *at[COLUMNS];
	const uint8_t *end[COLUMNS];
	struct level *stack;
	size_t depth, cap;
	struct tw_chunk *chunk;
	uint32_t flags;
	bool bad;
};

static uint64_t take(struct decoder *d, enum column c, uint64_t max)
{
	uint64_t v = 0;

	if (!tw_get_varint(&d->at[c], d->end[c], &v) || v > max) {
		d->bad = true;
		return 0;
	}
	return v;
}

static int64_t later(struct decoder *d, int64_t from, uint64_t by)
{
	if (by > (uint64_t)(TW_TIME_MAX - from)) {
		d->bad = true;
		return from;
	}
	return from + (int64_t)by;
}

static void decode_close(struct decoder *d)
{
	struct level *top = &d->stack[--d->depth];
	struct tw_slice *s;
	enum column c;

	if (top->index == OUTSIDE)
		return;
	s = &d->chunk->slices[top->index];
	c = top->has_child ? COL_TAIL : COL_LEAF;
	top->end_ns = later(d, top->cursor_ns, take(d, c, (uint64_t)TW_TIME_MAX));
	s->dur_ns = top->end_ns - s->start_ns;
	if (d->depth)
		d->stack[d->depth - 1].cursor_ns = top->end_ns;
}

static bool reserve_stack(struct decoder *d)
{
	size_t cap = d->cap ? d->cap * 2 : 256;
	struct level *p;

	if (d->depth < d->cap)
		return true;
	p = tw_mem_resize(d->stack, cap, sizeof *p);
	if (!p)
		return false;
	d->stack = p;
	d->cap = cap;
	return true;
}

static bool push_level(struct decoder *d, struct level l)
{
	if (!reserve_stack(d))
		return false;
	d->stack[d->depth++] = l;
	return true;
}

static bool decode_open(struct decoder *d, int64_t start_ns)
{
	for (size_t i = 0; i < d->chunk->n_open && !d->bad; i++) {
		struct tw_slice *s = &d->chunk->open[i];
		uint64_t back = take(d, COL_OPEN, (uint64_t)start_ns);
		uint64_t dur = take(d, COL_OPEN, (uint64_t)TW_TIME_MAX);

		*s = (struct tw_slice){.start_ns = start_ns - (int64_t)back,
		        .cpu_ns = -1,
		        .method = (uint32_t)take(d, COL_OPEN, UINT32_MAX),
		        .depth = (uint32_t)i};
		s->dur_ns = later(d, s->start_ns, dur) - s->start_ns;
		if (!push_level(d, (struct level){0, start_ns, OUTSIDE, false}))
			return false;
	}
	return true;
}

/* Closes the levels given by the step, and places the slice after its previous sibling.  Siblings
 * at the chunk's outermost level count from *root_cursor. */
static bool decode_slice(struct decoder *d, uint32_t index, int64_t *root_cursor)
{
	struct tw_slice *s = &d->chunk->slices[index];
	uint64_t step = take(d, COL_STEP, index ? d->depth : 0); /* the first slice is at the
	                                                          * chunk's start */
	int64_t *cursor;

	while (step-- && !d->bad) {
		decode_close(d);
		if (d->depth == 0)
			*root_cursor =
			        d->stack[0].index == OUTSIDE ? *root_cursor : d->stack[0].end_ns;
	}
	cursor = d->depth ? &d->stack[d->depth - 1].cursor_ns : root_cursor;
	s->start_ns = later(d, *cursor, take(d, COL_GAP, index ? (uint64_t)TW_TIME_MAX : 0));
	s->method = (uint32_t)take(d, COL_METHOD, UINT32_MAX);
	s->depth = (uint32_t)d->depth;
	s->cpu_ns = d->flags & TW_FLAG_CPU_KNOWN ? (int64_t)take(d, COL_CPU, (uint64_t)TW_TIME_MAX)
	                                         : -1;
	s->merged = d->flags & TW_FLAG_MERGED ? (uint32_t)take(d, COL_MERGED, UINT32_MAX) : 0;
	if (d->depth)
		d->stack[d->depth - 1].has_child = true;
	return push_level(d, (struct level){0, s->start_ns, index, false});
}

static enum tw_status read_header(
        struct decoder *d, struct tw_chunk *c, const uint8_t *p, size_t len, struct tw_err *err)
{
	const uint8_t *at = p + TW_CHUNK_HEADER_BYTES;
	uint64_t left = len < TW_CHUNK_HEADER_BYTES ? 0 : len - TW_CHUNK_HEADER_BYTES;

	if (len < TW_CHUNK_HEADER_BYTES || tw_u32le(p) != TW_CHUNK_MAGIC_FIRST)
		return tw_fail_at(err, TW_CORRUPT, 0, "not a chunk of slices");
	c->n = tw_u32le(p + 4);
	c->n_open = tw_u32le(p + 8);
	d->flags = tw_u32le(p + 12);
	for (size_t i = 0; i < COLUMNS; i++) {
		uint32_t bytes = tw_u32le(p + 16 + 4 * i);

		if (bytes > left)
			return tw_fail_at(err, TW_CORRUPT, 0, "a chunk's columns do not fit it");
		d->at[i] = at;
		d->end[i] = at += bytes;
		left -= bytes;
	}
	/* an open slice takes at least three bytes, a slice one in each of its columns */
	if (c->n == 0 || c->n > TW_CHUNK_SLICES ||
	        c->n_open > (size_t)(d->end[COL_OPEN] - d->at[COL_OPEN]) / 3 ||
	        c->n > (size_t)(d->end[COL_GAP] - d->at[COL_GAP]))
		return tw_fail_at(err, TW_CORRUPT, 4, "a chunk's counts do not fit its columns");
	return TW_OK;
}

/* Unread bytes cannot come from an encoder. */
static bool all_read(const struct decoder *d)
{
	for (int i = 0; i < COLUMNS; i++)
		if (d->at[i] != d->end[i])
			return false;
	return true;
}

static bool walk(struct decoder *d, int64_t start_ns)
{
	int64_t root_cursor = start_ns;

	if (!decode_open(d, start_ns))
		return false;
	for (uint32_t i = 0; i < d->chunk->n && !d->bad; i++)
		if (!decode_slice(d, i, &root_cursor))
			return false;
	while (d->depth && !d->bad)
		decode_close(d);
	d->bad = d->bad || !all_read(d);
	return true;
}

enum tw_status tw_chunk_decode_first(struct tw_chunk *c, const uint8_t *payload, size_t len,
        int64_t start_ns, struct tw_err *err)
{
	struct decoder d = {.chunk = c};
	enum tw_status st = read_header(&d, c, payload, len, err);
	bool enough;

	if (st == TW_OK && (start_ns < 0 || start_ns > TW_TIME_MAX))
		st = tw_fail_at(err, TW_CORRUPT, 0, "a chunk's start is out of range");
	if (st != TW_OK) {
		c->n = c->n_open = 0;
		return st;
	}
	enough = tw_slices_reserve(&c->open, &c->cap_open, c->n_open) &&
	         tw_slices_reserve(&c->slices, &c->cap, c->n) && walk(&d, start_ns);
	tw_mem_free(d.stack);
	if (enough && !d.bad)
		return TW_OK;
	c->n = c->n_open = 0;
	return enough ? tw_fail_at(err, TW_CORRUPT, 0, "a chunk's columns are damaged")
	              : tw_oom(err);
}
