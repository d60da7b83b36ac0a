/*
 * columns_write.c - writes chunks of slices (schema/columns.md).
 *
 * Slices are written as they are added. Each column has space for its maximum size, so writes need
 * no checks; unused space is never touched.
 */
#include <string.h>

#include "decoder/base/list.h"
#include "decoder/base/newer_cpu.h"
#include "decoder/trace/columns_internal.h"

/* Bytes of a slice at most: two varints of 32 bits, two durations of 64 bits, a CPU time, a count.
 */
enum { CALL_MAX = 10, BITS_MAX = 16, CPU_MAX = 10, MERGED_MAX = 5, OPEN_MAX = 25, SLACK = 16 };

struct level { /* of an open slice */
	int64_t start_ns, end_ns;
	int64_t cursor_ns; /* end of its last child in this chunk, or its begin */
	uint32_t method;
	uint32_t last_child; /* method of that child */
	bool inside;         /* it is in this chunk */
	bool has_child;
};

struct tw_chunk_writer {
	struct tw_chunk_facts facts; /* first */
	struct level *levels;        /* levels[0] is the thread */
	size_t depth;
	uint32_t cap;
	uint64_t bits; /* bits not yet stored, lowest first */
	unsigned n_bits;
	bool has_cpu, has_merged;
	uint8_t *at[TW_COLUMNS];
	uint8_t *base[TW_COLUMNS];
	uint8_t *memory;
	uint8_t *open; /* the open column, which depends on the depth */
	size_t cap_open;
	struct tw_averages gap, tail;
};

static bool lay_out(struct tw_chunk_writer *w)
{
	static const size_t most[TW_COLUMNS] = {[TW_COL_BITS] = BITS_MAX,
	        [TW_COL_CALL] = CALL_MAX,
	        [TW_COL_LEAF] = 1,
	        [TW_COL_TAIL] = 1,
	        [TW_COL_GAP] = 1,
	        [TW_COL_CPU] = CPU_MAX,
	        [TW_COL_MERGED] = MERGED_MAX};
	size_t all = 0;

	for (int c = 0; c < TW_COLUMNS; c++)
		all += most[c] * TW_CHUNK_SLICES + SLACK;
	w->memory = tw_mem_alloc(all, 1);
	if (!w->memory)
		return false;
	all = 0;
	for (int c = 0; c < TW_COLUMNS; c++) {
		w->base[c] = w->memory + all;
		all += most[c] * TW_CHUNK_SLICES + SLACK;
	}
	return true;
}

struct tw_chunk_writer *tw_chunk_writer_new(void)
{
	struct tw_chunk_writer *w = tw_mem_zalloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->cap = 64;
	w->levels = tw_mem_alloc(w->cap, sizeof *w->levels);
	if (!w->levels || !lay_out(w))
		return tw_chunk_writer_free(w);
	(void)tw_chunk_writer_start(w, NULL, 0);
	return w;
}

struct tw_chunk_writer *tw_chunk_writer_free(struct tw_chunk_writer *w)
{
	if (!w)
		return NULL;
	tw_mem_free(w->levels);
	tw_mem_free(w->memory);
	tw_mem_free(w->open);
	tw_mem_free(w);
	return NULL;
}

enum tw_status tw_chunk_writer_start(
        struct tw_chunk_writer *w, const struct tw_slice *open, size_t n_open)
{
	w->facts = (struct tw_chunk_facts){0};
	w->levels[0] = (struct level){.method = TW_NO_PARENT};
	w->depth = 0;
	for (size_t i = 0; i < n_open; i++) {
		if (!TW_GROW_MEM(w->levels, w->depth + 1, w->cap))
			return TW_NOMEM;
		w->levels[++w->depth] = (struct level){.start_ns = open[i].start_ns,
		        .end_ns = open[i].start_ns + open[i].dur_ns,
		        .method = open[i].method};
	}
	return TW_OK;
}

/* Positions in the columns of slices.  A local variable while slices are added, so that they are in
 * registers. */
struct hot {
	uint8_t *call, *leaf, *tail, *gap, *stored;
	uint64_t bits; /* bits not yet stored, lowest first */
	unsigned n_bits;
};

static struct hot hot_of(const struct tw_chunk_writer *w)
{
	return (struct hot){w->at[TW_COL_CALL], w->at[TW_COL_LEAF], w->at[TW_COL_TAIL],
	        w->at[TW_COL_GAP], w->at[TW_COL_BITS], w->bits, w->n_bits};
}

static void keep_hot(struct tw_chunk_writer *w, const struct hot *h)
{
	w->at[TW_COL_CALL] = h->call;
	w->at[TW_COL_LEAF] = h->leaf;
	w->at[TW_COL_TAIL] = h->tail;
	w->at[TW_COL_GAP] = h->gap;
	w->at[TW_COL_BITS] = h->stored;
	w->bits = h->bits;
	w->n_bits = h->n_bits;
}

#define ALWAYS static inline __attribute__((always_inline))

/* n is at most TW_HALF_BITS. */
ALWAYS void put_bits(struct hot *h, uint64_t v, unsigned n)
{
	unsigned full;

	h->bits |= v << h->n_bits;
	h->n_bits += n;
	full = h->n_bits & ~7u;
	tw_put_u64le(h->stored, h->bits);
	h->stored += full / 8;
	h->bits >>= full;
	h->n_bits &= 7;
}

/* Returns the bucket; the bits below it are stored. */
ALWAYS unsigned put_time(struct hot *h, uint64_t v)
{
	unsigned below = tw_bits_below(v);
	unsigned bucket = tw_time_bucket(v, below);

	if (bucket < TW_WIDE_BUCKET) {
		put_bits(h, v & ((UINT64_C(1) << below) - 1), below);
		return bucket;
	}
	put_bits(h, v & UINT32_MAX, TW_HALF_BITS);
	put_bits(h, v >> TW_HALF_BITS, TW_HALF_BITS);
	return TW_WIDE_BUCKET;
}

ALWAYS uint8_t differs(uint16_t *average, unsigned bucket)
{
	unsigned was = *average;

	*average = tw_next_average((uint16_t)was, bucket);
	return (uint8_t)(bucket - tw_expected_bucket((uint16_t)was));
}

/* Ends the last slice if it has no children. */
ALWAYS void close_leaf(struct hot *h, const struct level *l)
{
	*h->leaf++ = (uint8_t)put_time(h, (uint64_t)(l->end_ns - l->cursor_ns));
}

/* Ends a call with children in this chunk, or one of the open stack. */
ALWAYS void close_parent(struct tw_chunk_writer *w, struct hot *h, const struct level *l)
{
	uint16_t *average;

	if (!l->inside)
		return;
	average = &w->tail.slots[tw_tail_slot(l->method, l->last_child)];
	*h->tail++ = differs(average, put_time(h, (uint64_t)(l->end_ns - l->cursor_ns)));
}

/* Writes the calls that are open at the begin of the chunk. */
static enum tw_status begin_chunk(struct tw_chunk_writer *w, const struct tw_slice *s)
{
	size_t need = s->depth * (size_t)OPEN_MAX;

	if (need > w->cap_open) {
		tw_mem_free(w->open);
		w->open = tw_mem_alloc(need, 2);
		w->cap_open = w->open ? 2 * need : 0;
		if (!w->open)
			return TW_NOMEM;
	}
	for (int c = 0; c < TW_COLUMNS; c++)
		w->at[c] = w->base[c];
	w->at[TW_COL_OPEN] = w->base[TW_COL_OPEN] = w->open ? w->open : w->memory;
	w->depth = s->depth;
	w->facts = (struct tw_chunk_facts){.start_ns = s->start_ns, .open = s->depth};
	w->bits = w->n_bits = 0;
	w->has_cpu = w->has_merged = false;
	memset(&w->gap, 0, sizeof w->gap);
	memset(&w->tail, 0, sizeof w->tail);
	for (size_t i = 0; i <= w->depth; i++) {
		struct level *l = &w->levels[i];
		uint8_t *p = w->at[TW_COL_OPEN];

		l->cursor_ns = s->start_ns;
		l->inside = l->has_child = false;
		if (i == 0)
			continue;
		p = tw_put_varint(p, (uint64_t)(s->start_ns - l->start_ns));
		p = tw_put_varint(p, (uint64_t)(l->end_ns - l->start_ns));
		w->at[TW_COL_OPEN] = tw_put_varint(p, l->method);
	}
	return TW_OK;
}

/* Where the next value of a column belongs that most chunks do not have: earlier slices of the
 * chunk have 0. */
static uint8_t *start_rare(struct tw_chunk_writer *w, enum tw_column c, bool *has)
{
	if (!*has) {
		*has = true;
		memset(w->base[c], 0, w->facts.slices);
		w->at[c] = w->base[c] + w->facts.slices;
	}
	return w->at[c];
}

static void put_cpu(struct tw_chunk_writer *w, const struct tw_slice *s, size_t n)
{
	uint8_t *at = start_rare(w, TW_COL_CPU, &w->has_cpu);

	for (size_t i = 0; i < n; i++)
		at = tw_put_varint(at, (uint64_t)(s[i].cpu_ns < 0 ? 0 : s[i].cpu_ns + 1));
	w->at[TW_COL_CPU] = at;
}

static void put_merged(struct tw_chunk_writer *w, const struct tw_slice *s, size_t n)
{
	uint8_t *at = start_rare(w, TW_COL_MERGED, &w->has_merged);

	for (size_t i = 0; i < n; i++)
		at = tw_put_varint(at, s[i].merged);
	w->at[TW_COL_MERGED] = at;
}

/* The number of calls that close, nearly always one byte, and the method. */
ALWAYS void put_call(struct hot *h, size_t closes, uint32_t method)
{
	uint32_t more = method > 0x7F;

	if (__builtin_expect((closes | method >> 7) > 0x7F, 0)) {
		h->call = tw_put_varint(tw_put_varint(h->call, closes), method);
		return;
	}
	tw_put_u32le(
	        h->call, (uint32_t)closes | (method & 0x7F) << 8 | more << 15 | method >> 7 << 16);
	h->call += 2 + more;
}

/* Adds slices until one has no level.  Returns their number. */
ALWAYS size_t add(struct tw_chunk_writer *w, struct hot *h, const struct tw_slice *slices, size_t n)
{
	const struct tw_slice *s = slices;
	struct level *top = &w->levels[w->depth];
	size_t depth = w->depth;
	size_t max_depth = w->cap - 2;
	int64_t end_ns = w->facts.end_ns;

	for (; s < slices + n && s->depth <= depth && s->depth <= max_depth; s++) {
		int64_t end = s->start_ns + s->dur_ns;
		size_t closes = depth - s->depth;
		uint16_t *average;

		put_call(h, closes, s->method);
		if (closes) {
			close_leaf(h, top--);
			while (--closes)
				close_parent(w, h, top--);
		}
		average = &w->gap.slots[tw_gap_slot(s->method, top->method, !top->has_child)];
		*h->gap++ = differs(average, put_time(h, (uint64_t)(s->start_ns - top->cursor_ns)));
		top->cursor_ns = end;
		top->last_child = s->method;
		top->has_child = true;
		*++top = (struct level){.start_ns = s->start_ns,
		        .end_ns = end,
		        .cursor_ns = s->start_ns,
		        .method = s->method,
		        .inside = true};
		depth = s->depth + (size_t)1;
		end_ns = end > end_ns ? end : end_ns;
	}
	w->depth = depth;
	w->facts.end_ns = end_ns;
	return (size_t)(s - slices);
}

static void put_rare(struct tw_chunk_writer *w, const struct tw_slice *s, size_t n)
{
	int64_t cpu = -1;
	uint32_t merged = 0;

	for (size_t i = 0; i < n; i++) {
		cpu &= s[i].cpu_ns; /* its sign */
		merged |= s[i].merged;
	}
	if (n && (w->has_cpu || cpu >= 0))
		put_cpu(w, s, n);
	if (n && (w->has_merged || merged))
		put_merged(w, s, n);
}

TW_NEWER_CPU enum tw_status tw_chunk_writer_add(
        struct tw_chunk_writer *w, const struct tw_slice *s, size_t n, size_t *ret_added)
{
	enum tw_status st = TW_OK;
	struct hot h;

	if (n > TW_CHUNK_SLICES - w->facts.slices)
		n = TW_CHUNK_SLICES - w->facts.slices;
	*ret_added = n;
	if (w->facts.slices == 0 && n > 0)
		st = s->depth > w->depth ? TW_BUG : begin_chunk(w, s);
	h = hot_of(w);
	while (st == TW_OK && n > 0) {
		size_t added = add(w, &h, s, n);

		put_rare(w, s, added);
		w->facts.slices += (uint32_t)added;
		s += added;
		n -= added;
		if (n > 0 && s->depth > w->depth)
			st = TW_BUG;
		else if (n > 0 && !TW_GROW_MEM(w->levels, w->depth + 1, w->cap))
			st = TW_NOMEM;
	}
	keep_hot(w, &h);
	return st;
}

enum tw_status tw_chunk_writer_finish(struct tw_chunk_writer *w, struct tw_buf *out)
{
	size_t bytes = TW_CHUNK_HEADER_BYTES;

	struct hot h = hot_of(w);

	close_leaf(&h, &w->levels[w->depth]);
	for (size_t i = w->depth; --i > 0;)
		close_parent(w, &h, &w->levels[i]);
	if (h.n_bits)
		*h.stored++ = (uint8_t)h.bits;
	keep_hot(w, &h);
	for (int c = 0; c < TW_COLUMNS; c++)
		bytes += (size_t)(w->at[c] - w->base[c]);
	if (tw_buf_reserve(out, bytes) != TW_OK)
		return tw_buf_status(out);
	(void)tw_buf_add_u32le(out, TW_CHUNK_MAGIC);
	(void)tw_buf_add_u32le(out, w->facts.slices);
	(void)tw_buf_add_u32le(out, w->facts.open);
	(void)tw_buf_add_u32le(
	        out, (w->has_cpu ? TW_FLAG_CPU : 0u) | (w->has_merged ? TW_FLAG_MERGED : 0u));
	for (int c = 0; c < TW_COLUMNS; c++)
		(void)tw_buf_add_u32le(out, (uint32_t)(w->at[c] - w->base[c]));
	for (int c = 0; c < TW_COLUMNS; c++)
		if (w->at[c] > w->base[c])
			(void)tw_buf_add(out, w->base[c], (size_t)(w->at[c] - w->base[c]));
	w->facts = (struct tw_chunk_facts){0};
	return tw_buf_status(out);
}

enum tw_status tw_chunk_encode(const struct tw_slice *open, size_t n_open,
        const struct tw_slice *slices, size_t n, struct tw_buf *out)
{
	struct tw_chunk_writer *w;
	enum tw_status st;
	size_t added;

	if (n == 0 || n > TW_CHUNK_SLICES || slices[0].depth != n_open)
		return TW_BUG;
	w = tw_chunk_writer_new();
	if (!w)
		return TW_NOMEM;
	st = tw_chunk_writer_start(w, open, n_open);
	if (st == TW_OK)
		st = tw_chunk_writer_add(w, slices, n, &added);
	if (st == TW_OK)
		st = tw_chunk_writer_finish(w, out);
	tw_chunk_writer_free(w);
	return st;
}

size_t tw_chunk_cuts(const uint8_t *payload, size_t len, size_t cuts[TW_CHUNK_CUTS])
{
	size_t at = TW_CHUNK_HEADER_BYTES;
	size_t n = 0;

	if (len < TW_CHUNK_HEADER_BYTES || tw_u32le(payload) != TW_CHUNK_MAGIC)
		return 0;
	for (size_t c = 0; c < TW_COLUMNS; c++) {
		at += tw_u32le(payload + 16 + 4 * c);
		cuts[n++] = at < len ? at : len;
	}
	return n;
}
