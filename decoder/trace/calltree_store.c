/*
 * calltree_store.c - the stored form of a call tree (schema/columns.md).
 *
 * Like a chunk of slices: a header with the size of each column, then the columns, with one value
 * per node in pre-order without node 0.  A node is stored with its self time; totals are summed
 * from the last node to the first.  The longest call of a node with one call is its total and takes
 * no byte.  Times are buckets and the bits below them, as in chunks.
 */
#include "decoder/trace/calltree.h"

#include <string.h>

#include "decoder/base/sum.h"
#include "decoder/trace/columns_internal.h"

enum column { COL_PATH, COL_COUNT, COL_SELF, COL_SELF_BITS, COL_MAX, COL_MAX_BITS, COL_CPU };
enum { TREE_MAGIC = 0x33545754 /* "TWT3" */, OLDER_MAGIC = 0x32545754 /* "TWT2" */ };
enum { COLUMNS = 7, HEADER = 8 + 8 + 4 * COLUMNS };
/* The most bytes of a node in each column, and what a store of bits may write past them. */
enum { PATH_MAX = 10, VALUE_MAX = 10, BITS_MAX = 8, SLACK = 16 };
/* Keeps differences of buckets above 0 mostly, as averages have no sign. */
enum { BUCKET_BASE = 64 };

struct bits { /* bits not yet stored, lowest first */
	uint64_t held;
	unsigned n;
};

/* Self time in a context: how long a call of this method takes, once or often. */
static uint32_t self_slot(uint32_t method, uint64_t count)
{
	return tw_gap_slot(method, 0, count == 1);
}

static unsigned bucket_of(uint64_t v)
{
	unsigned bucket = tw_time_bucket(v, tw_bits_below(v));

	return bucket < TW_WIDE_BUCKET ? bucket : TW_WIDE_BUCKET;
}

static uint64_t self_of(const struct tw_tree_node *n)
{
	return n->self_ns > 0 ? (uint64_t)n->self_ns : 0;
}

static uint64_t per_call(const struct tw_tree_node *n, uint64_t ns)
{
	return n->count ? ns / n->count : 0;
}

/* --- writing --- */

/* The columns are written into parts of one block; those of longest calls are in reverse. */
struct tw_tree_encoder {
	uint8_t *memory;
	size_t cap;
	uint32_t n, max; /* nodes */
	uint32_t depth;  /* of the last one */
	uint64_t own;    /* self time of node 0 */
	bool has_cpu;
	uint8_t *base[COLUMNS], *at[COLUMNS];
	uint8_t *max_end;         /* COL_MAX is written from here to the front */
	uint64_t *more, *more_at; /* by node with several calls: the longest minus that of its
	                           * callees */
	struct tw_averages self;
	struct bits self_bits, max_bits;
};

static inline void put_bits(struct bits *b, uint8_t **at, uint64_t v, unsigned n)
{
	unsigned full;

	b->held |= v << b->n;
	b->n += n;
	full = b->n & ~7u;
	tw_put_u64le(*at, b->held);
	*at += full / 8;
	b->held >>= full;
	b->n &= 7;
}

/* Stores the bits of v below its bucket. */
static inline void put_below(struct bits *b, uint8_t **at, uint64_t v)
{
	unsigned below = tw_bits_below(v);

	if (tw_time_bucket(v, below) < TW_WIDE_BUCKET) {
		put_bits(b, at, v & ((UINT64_C(1) << below) - 1), below);
		return;
	}
	put_bits(b, at, v & UINT32_MAX, TW_HALF_BITS);
	put_bits(b, at, v >> TW_HALF_BITS, TW_HALF_BITS);
}

/* The columns, in local variables: otherwise the compiler would have to assume that storing a byte
 * changes them. */
void tw_tree_encoder_add(struct tw_tree_encoder *e, const struct tw_tree_node *nodes,
        const int64_t *longest_callee_ns, uint32_t n)
{
	uint8_t *path = e->at[COL_PATH];
	uint8_t *count = e->at[COL_COUNT];
	uint8_t *self = e->at[COL_SELF];
	uint8_t *self_bits = e->at[COL_SELF_BITS];
	uint8_t *max = e->at[COL_MAX];
	uint8_t *cpu = e->at[COL_CPU];
	struct bits bits = e->self_bits;
	uint64_t *more_at = e->more_at;
	uint32_t depth = e->depth;
	uint32_t i = 0;

	if (e->n == 0 && n > 0)
		e->own = self_of(&nodes[i++]);
	for (; i < n; i++) {
		const struct tw_tree_node *const node = &nodes[i];
		const uint64_t self_ns = self_of(node);
		uint16_t *average = &e->self.slots[self_slot(node->method, node->count)];
		const unsigned bucket =
		        (bucket_of(self_ns) - bucket_of(node->count) + BUCKET_BASE) & 255;

		path = tw_put_varint(path, depth + 1 - node->depth);
		path = tw_put_varint_branchless(path, node->method);
		count = tw_put_varint(count, node->count);
		depth = node->depth;
		*self++ = (uint8_t)(bucket - tw_expected_bucket(*average));
		*average = tw_next_average(*average, bucket);
		put_below(&bits, &self_bits, self_ns);
		cpu = tw_put_varint(cpu, (uint64_t)(node->cpu_ns + 1));
		e->has_cpu |= node->cpu_ns >= 0;
		if (node->count != 1) {
			/* A node's longest call usually contains its callees' longest call.  The
			 * difference needs fewer bits and is close to the self time per call.  It
			 * is stored in reverse, so that a reader knows the callees' value already.
			 * A callee may outlast its caller. */
			const uint64_t more =
			        node->max_ns > longest_callee_ns[i]
			                ? (uint64_t)(node->max_ns - longest_callee_ns[i])
			                : 0;

			*--max = (uint8_t)(bucket_of(more) - bucket_of(per_call(node, self_ns)));
			*more_at++ = more;
		}
	}
	e->at[COL_PATH] = path;
	e->at[COL_COUNT] = count;
	e->at[COL_SELF] = self;
	e->at[COL_SELF_BITS] = self_bits;
	e->at[COL_MAX] = max;
	e->at[COL_CPU] = cpu;
	e->self_bits = bits;
	e->more_at = more_at;
	e->depth = depth;
	e->n += n;
}

struct tw_tree_encoder *tw_tree_encoder_new(void)
{
	return tw_mem_zalloc(1, sizeof(struct tw_tree_encoder));
}

struct tw_tree_encoder *tw_tree_encoder_free(struct tw_tree_encoder *e)
{
	if (e)
		tw_mem_free(e->memory);
	tw_mem_free(e);
	return NULL;
}

enum tw_status tw_tree_encoder_begin(struct tw_tree_encoder *e, uint32_t max_nodes)
{
	static const size_t most[COLUMNS] = {
	        PATH_MAX, VALUE_MAX, 1, BITS_MAX, 1, BITS_MAX, VALUE_MAX};
	size_t all = max_nodes * sizeof *e->more;
	struct tw_tree_encoder empty = {.memory = e->memory, .cap = e->cap};

	for (int c = 0; c < COLUMNS; c++)
		all += most[c] * max_nodes + SLACK;
	*e = empty;
	if (all > e->cap) {
		tw_mem_free(e->memory);
		e->memory = tw_mem_alloc(all, 1); /* most of it is never touched */
		e->cap = e->memory ? all : 0;
	}
	if (!e->memory)
		return TW_NOMEM;
	e->more = e->more_at = (uint64_t *)(void *)e->memory;
	all = max_nodes * sizeof *e->more;
	for (int c = 0; c < COLUMNS; c++) {
		e->base[c] = e->at[c] = e->memory + all;
		all += most[c] * max_nodes + SLACK;
	}
	e->max_end = e->at[COL_MAX] += max_nodes;
	return TW_OK;
}

/* Completes the columns. */
static void finish(struct tw_tree_encoder *e)
{
	while (e->more_at > e->more)
		put_below(&e->max_bits, &e->at[COL_MAX_BITS], *--e->more_at);
	if (e->self_bits.n)
		*e->at[COL_SELF_BITS]++ = (uint8_t)e->self_bits.held;
	if (e->max_bits.n)
		*e->at[COL_MAX_BITS]++ = (uint8_t)e->max_bits.held;
	e->base[COL_MAX] = e->at[COL_MAX];
	e->at[COL_MAX] = e->max_end;
	if (!e->has_cpu)
		e->at[COL_CPU] = e->base[COL_CPU];
}

enum tw_status tw_tree_encoder_end(struct tw_tree_encoder *e, struct tw_buf *out)
{
	size_t all = HEADER;

	finish(e);
	for (int c = 0; c < COLUMNS; c++)
		all += (size_t)(e->at[c] - e->base[c]);
	(void)tw_buf_reserve(out, all);
	(void)tw_buf_add_u32le(out, TREE_MAGIC);
	(void)tw_buf_add_u32le(out, e->n);
	(void)tw_buf_add_u64le(out, e->own);
	for (int c = 0; c < COLUMNS; c++)
		(void)tw_buf_add_u32le(out, (uint32_t)(e->at[c] - e->base[c]));
	for (int c = 0; c < COLUMNS; c++)
		if (e->at[c] > e->base[c])
			(void)tw_buf_add(out, e->base[c], (size_t)(e->at[c] - e->base[c]));
	return tw_buf_status(out);
}

static int64_t longest_callee(const struct tw_tree *t, uint32_t node)
{
	uint32_t end = node + t->nodes[node].subtree;
	int64_t longest = 0;

	for (uint32_t i = node + 1; i < end; i += t->nodes[i].subtree)
		if (t->nodes[i].max_ns > longest)
			longest = t->nodes[i].max_ns;
	return longest;
}

enum tw_status tw_tree_encode(const struct tw_tree *t, struct tw_buf *out)
{
	struct tw_tree_encoder *e = tw_tree_encoder_new();
	enum tw_status st = e ? tw_tree_encoder_begin(e, t->n) : TW_NOMEM;

	for (uint32_t i = 0; st == TW_OK && i < t->n; i++) {
		const int64_t longest_ns = longest_callee(t, i);

		tw_tree_encoder_add(e, &t->nodes[i], &longest_ns, 1);
	}
	if (st == TW_OK)
		st = tw_tree_encoder_end(e, out);
	tw_tree_encoder_free(e);
	return st;
}

size_t tw_tree_cuts(const uint8_t *payload, size_t len, size_t cuts[TW_CHUNK_CUTS])
{
	size_t at = HEADER;
	size_t n = 0;

	if (len < HEADER || tw_u32le(payload) != TREE_MAGIC)
		return 0;
	for (size_t c = 0; c < COLUMNS; c++) {
		at += tw_u32le(payload + 16 + 4 * c);
		cuts[n++] = at < len ? at : len;
	}
	return n;
}

/* --- reading --- */

struct reader {
	const uint8_t *at[COLUMNS];
	const uint8_t *end[COLUMNS];
	const uint8_t *limit; /* of the payload */
	struct tw_averages self;
	uint64_t self_bit, max_bit; /* positions in the bits */
	struct tw_tree_node *nodes;
	uint32_t *path; /* the node at each depth */
	uint32_t n;
	bool cpu;
	bool older; /* longest calls are stored in full */
	bool bad;
};

static uint64_t take_slowly(struct reader *r, enum column c, uint64_t max)
{
	uint64_t v = 0;

	if (!tw_get_varint(&r->at[c], r->end[c], &v) || v > max) {
		r->bad = true;
		return 0;
	}
	return v;
}

/* For columns whose values nearly always take one byte. */
static inline uint64_t take_small(struct reader *r, enum column c, uint64_t max)
{
	if (r->at[c] < r->end[c] && *r->at[c] < 0x80 && *r->at[c] <= max)
		return *r->at[c]++;
	return take_slowly(r, c, max);
}

/* Bits past the end are arbitrary; the final position reveals it. */
static inline uint64_t take_bits(struct reader *r, enum column c, uint64_t *bit, unsigned n)
{
	const uint8_t *p = r->at[c] + *bit / 8;
	uint8_t last[8] = {0};
	uint64_t v;

	if (r->limit - p < 8) {
		if (p < r->limit)
			memcpy(last, p, (size_t)(r->limit - p));
		p = last;
	}
	v = tw_u64le(p) >> (*bit & 7);
	*bit += n;
	return v & ((UINT64_C(1) << n) - 1);
}

static inline int64_t take_time(struct reader *r, enum column c, uint64_t *bit, unsigned bucket)
{
	unsigned below = bucket >> TW_STEPS_LOG2;
	uint64_t v;

	if (bucket != TW_WIDE_BUCKET) {
		below -= below > 0;
		v = bucket - (below << TW_STEPS_LOG2);
		return (int64_t)(v << below | take_bits(r, c, bit, below));
	}
	v = take_bits(r, c, bit, TW_HALF_BITS);
	v |= take_bits(r, c, bit, TW_HALF_BITS) << TW_HALF_BITS;
	r->bad |= v > INT64_MAX;
	return (int64_t)(v & INT64_MAX);
}

static inline int64_t take_self(struct reader *r, uint32_t method, uint64_t count)
{
	uint16_t *average = &r->self.slots[self_slot(method, count)];
	unsigned bucket = (tw_expected_bucket(*average) + *r->at[COL_SELF]++) & 255;

	*average = tw_next_average(*average, bucket);
	return take_time(
	        r, COL_SELF_BITS, &r->self_bit, (bucket + bucket_of(count) - BUCKET_BASE) & 255);
}

static void read_nodes(struct reader *r)
{
	uint32_t depth = 0;

	r->path[0] = 0;
	for (uint32_t i = 1; i < r->n && !r->bad; i++) {
		uint64_t step = take_small(r, COL_PATH, depth);
		uint32_t method = (uint32_t)take_slowly(r, COL_PATH, UINT32_MAX - 1);
		uint64_t count = take_small(r, COL_COUNT, UINT64_MAX);
		int64_t self;

		if (r->bad)
			return;
		self = take_self(r, method, count);
		depth = depth + 1 - (uint32_t)step;
		r->path[depth] = i;
		r->nodes[i] = (struct tw_tree_node){.parent = r->path[depth - 1],
		        .method = method,
		        .subtree = 1,
		        .depth = depth,
		        .count = count,
		        .total_ns = self,
		        .self_ns = self,
		        .cpu_ns = r->cpu ? (int64_t)take_slowly(r, COL_CPU, INT64_MAX) - 1 : -1};
	}
}

/* Reads a node's longest call.  Requires its total, and in max_ns the longest call of its
 * callees. */
static int64_t take_longest(struct reader *r, const struct tw_tree_node *n)
{
	uint64_t expected = per_call(n, (uint64_t)(r->older ? n->total_ns : n->self_ns));
	uint64_t max;

	if (n->count == 1)
		return n->total_ns;
	if (r->at[COL_MAX] == r->end[COL_MAX]) {
		r->bad = true;
		return 0;
	}
	max = (uint64_t)take_time(
	        r, COL_MAX_BITS, &r->max_bit, (bucket_of(expected) + *r->at[COL_MAX]++) & 255);
	max += r->older ? 0 : (uint64_t)n->max_ns;
	r->bad |= max < (uint64_t)n->max_ns || max > (uint64_t)n->total_ns;
	return (int64_t)max;
}

/* Computes totals, sizes and longest calls from the last node to the first. */
static void sum_up(struct reader *r)
{
	struct tw_tree_node *nodes = r->nodes;

	for (uint32_t i = r->n; i-- > 1;) {
		struct tw_tree_node *n = &nodes[i];
		struct tw_tree_node *caller = &nodes[n->parent];
		uint32_t next = i + n->subtree;

		n->max_ns = take_longest(r, n);
		if (caller->max_ns < n->max_ns)
			caller->max_ns = n->max_ns;
		caller->total_ns = tw_sum_ns(caller->total_ns, n->total_ns);
		caller->subtree += n->subtree;
		if (next < r->n && nodes[next].parent == n->parent)
			r->bad |= nodes[next].total_ns > n->total_ns;
	}
	nodes[0].max_ns = 0;
}

static bool bits_are_read(const struct reader *r, enum column c, uint64_t bit)
{
	size_t bytes = (size_t)(r->end[c] - r->at[c]);

	return (bit + 7) / 8 == bytes && ((bit & 7) == 0 || r->at[c][bytes - 1] >> (bit & 7) == 0);
}

static bool is_whole(const struct reader *r)
{
	for (int c = 0; c < COLUMNS; c++)
		if (c != COL_SELF_BITS && c != COL_MAX_BITS && r->at[c] != r->end[c])
			return false;
	return bits_are_read(r, COL_SELF_BITS, r->self_bit) &&
	       bits_are_read(r, COL_MAX_BITS, r->max_bit);
}

static enum tw_status read_header(
        struct reader *r, const uint8_t *p, size_t len, struct tw_err *err)
{
	const uint8_t *at = p + HEADER;
	uint64_t left = len < HEADER ? 0 : len - HEADER;

	r->older = len >= HEADER && tw_u32le(p) == OLDER_MAGIC;
	if (len < HEADER || (tw_u32le(p) != TREE_MAGIC && !r->older) || tw_u64le(p + 8) > INT64_MAX)
		return tw_fail_at(err, TW_CORRUPT, 0, "not a call tree");
	r->limit = p + len;
	for (size_t c = 0; c < COLUMNS; c++) {
		uint32_t bytes = tw_u32le(p + 16 + 4 * c);

		if (bytes > left)
			return tw_fail_at(
			        err, TW_CORRUPT, 0, "a call tree's columns do not fit it");
		r->at[c] = at;
		r->end[c] = at += bytes;
		left -= bytes;
	}
	r->n = tw_u32le(p + 4);
	r->cpu = r->end[COL_CPU] > r->at[COL_CPU];
	if (r->n == 0 || r->n - 1 != (size_t)(r->end[COL_SELF] - r->at[COL_SELF]))
		return tw_fail_at(
		        err, TW_CORRUPT, 4, "a call tree's size does not fit its columns");
	return TW_OK;
}

enum tw_status tw_tree_decode_size(
        const uint8_t *p, size_t len, uint32_t *ret_n, struct tw_err *err)
{
	struct reader r = {0};
	enum tw_status st = read_header(&r, p, len, err);

	*ret_n = r.n;
	return st;
}

enum tw_status tw_tree_decode_into(
        const uint8_t *p, size_t len, struct tw_tree_node *nodes, struct tw_err *err)
{
	struct reader r = {.nodes = nodes};
	enum tw_status st = read_header(&r, p, len, err);

	if (st != TW_OK)
		return st;
	r.path = tw_mem_alloc(r.n, sizeof *r.path); /* only used up to the tree's depth */
	if (!r.path)
		return tw_oom(err);
	nodes[0] = (struct tw_tree_node){.method = TW_NO_METHOD,
	        .subtree = 1,
	        .total_ns = (int64_t)tw_u64le(p + 8),
	        .self_ns = (int64_t)tw_u64le(p + 8),
	        .cpu_ns = -1};
	read_nodes(&r);
	tw_mem_free(r.path);
	if (!r.bad)
		sum_up(&r);
	if (r.bad || !is_whole(&r))
		return tw_fail_at(err, TW_CORRUPT, 0, "a call tree is damaged");
	return TW_OK;
}

enum tw_status tw_tree_decode(
        const uint8_t *p, size_t len, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct tw_tree t;
	enum tw_status st = tw_tree_decode_size(p, len, &t.n, err);

	if (st != TW_OK)
		return st;
	t.nodes = tw_arena_alloc(a, t.n, sizeof *t.nodes);
	st = t.nodes ? tw_tree_decode_into(p, len, t.nodes, err) : tw_oom(err);
	if (st == TW_OK)
		*ret = t;
	return st;
}
