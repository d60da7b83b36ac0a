/*
 * calltree_first.c - reads call trees of the first form, which older trace files have
 * (schema/columns.md, "The first form").
 *
 * Totals are stored as the difference from the previous sibling (or, for a first child, from the
 * parent), as siblings are sorted by falling total; the maximum of a node with one call is its
 * total and takes no byte.
 */
#include "decoder/trace/calltree_internal.h"

enum column { COL_STEP, COL_METHOD, COL_COUNT, COL_TOTAL, COL_MAX, COL_CPU };
enum { COLUMNS = 6, HEADER = 8 + 8 + 4 * COLUMNS };

/* The open nodes form a path, one node per depth: so parent and previous sibling are found without
 * climbing, and a node's size is known when it closes. */
struct reader {
	const uint8_t *at[COLUMNS];
	const uint8_t *end[COLUMNS];
	struct tw_tree_node *nodes;
	uint32_t *path;
	uint32_t depth; /* of the previous node */
	bool cpu;
	bool bad;
};

/* The slow path: long values, those at the column's end, and damaged ones. */
static uint64_t take_carefully(const uint8_t **at, const uint8_t *end, bool *bad)
{
	uint64_t v = 0;

	*bad |= !tw_get_varint(at, end, &v);
	return v;
}

/* Joins the 7-bit groups of eight bytes. */
static inline uint64_t join_groups(uint64_t x)
{
	x = (x & 0x007F007F007F007Fu) | (x & 0x7F007F007F007F00u) >> 1;
	x = (x & 0x00003FFF00003FFFu) | (x & 0x3FFF00003FFF0000u) >> 2;
	return (x & 0x000000000FFFFFFFu) | (x & 0x0FFFFFFF00000000u) >> 4;
}

/* Without a branch on the length, which is unpredictable for times and methods. */
static inline uint64_t take(struct reader *r, enum column c, uint64_t max)
{
	const uint8_t *p = r->at[c];
	bool bad = r->bad;
	uint64_t bytes = r->end[c] - p >= 8 ? tw_u64le(p) : UINT64_MAX;
	uint64_t stops = ~bytes & 0x8080808080808080u;
	uint64_t v;

	if (stops) {
		unsigned last = (unsigned)__builtin_ctzll(stops); /* top bit of the last byte */

		v = join_groups(bytes & UINT64_MAX >> (63 - last));
		p += (last + 1) / 8;
	} else {
		v = take_carefully(&p, r->end[c], &bad);
	}
	r->at[c] = p;
	r->bad = bad | (v > max);
	return v;
}

/* For columns whose values nearly always take one byte. */
static inline uint64_t take_small(struct reader *r, enum column c, uint64_t max)
{
	const uint8_t *p = r->at[c];
	bool bad = r->bad;
	uint64_t v = p < r->end[c] && *p < 0x80 ? *p++ : take_carefully(&p, r->end[c], &bad);

	r->at[c] = p;
	r->bad = bad | (v > max);
	return v;
}

/* Closes the nodes at `depth` and below before node i. */
static inline void close_nodes(struct reader *r, uint32_t depth, uint32_t i)
{
	for (uint32_t d = depth; d <= r->depth; d++)
		r->nodes[r->path[d]].subtree = i - r->path[d];
}

static inline void read_node(struct reader *r, uint32_t i)
{
	uint64_t step = take_small(r, COL_STEP, r->depth);
	uint32_t depth = r->depth + 1 - (uint32_t)step;
	struct tw_tree_node *above;
	uint64_t most;
	uint64_t total;
	uint64_t longest;
	uint64_t count;
	uint32_t method;

	if (r->bad)
		return;
	above = &r->nodes[r->path[depth - 1]];
	most = (uint64_t)(step ? r->nodes[r->path[depth]].total_ns : above->total_ns);
	method = (uint32_t)take(r, COL_METHOD, UINT32_MAX - 1);
	count = take_small(r, COL_COUNT, UINT64_MAX);
	total = most - take(r, COL_TOTAL, most);
	longest = total - (count > 1 ? take(r, COL_MAX, total) : 0);
	r->bad |= (uint64_t)above->self_ns < total;
	if (r->bad)
		return;
	close_nodes(r, depth, i);
	r->depth = depth;
	r->path[depth] = i;
	above->self_ns -= (int64_t)total;
	r->nodes[i] = (struct tw_tree_node){
	        .parent = r->path[depth - 1],
	        .method = method,
	        .subtree = 1,
	        .depth = depth,
	        .count = count,
	        .total_ns = (int64_t)total,
	        .self_ns = (int64_t)total,
	        .cpu_ns = r->cpu ? (int64_t)(take(r, COL_CPU, INT64_MAX) - 1) : -1,
	        .max_ns = (int64_t)longest,
	};
}

static enum tw_status read_header(
        struct reader *r, const uint8_t *p, size_t len, uint32_t *ret_n, struct tw_err *err)
{
	const uint8_t *at = p + HEADER;
	uint64_t left = len < HEADER ? 0 : len - HEADER;

	if (len < HEADER || tw_u32le(p) != TW_TREE_MAGIC_FIRST || tw_u64le(p + 8) > INT64_MAX)
		return tw_fail_at(err, TW_CORRUPT, 0, "not a call tree");
	for (size_t c = 0; c < COLUMNS; c++) {
		uint32_t bytes = tw_u32le(p + 16 + 4 * c);

		if (bytes > left)
			return tw_fail_at(
			        err, TW_CORRUPT, 0, "a call tree's columns do not fit it");
		r->at[c] = at;
		r->end[c] = at += bytes;
		left -= bytes;
	}
	*ret_n = tw_u32le(p + 4);
	r->cpu = r->end[COL_CPU] > r->at[COL_CPU];
	if (*ret_n == 0 || *ret_n - 1 > (size_t)(r->end[COL_STEP] - r->at[COL_STEP]))
		return tw_fail_at(
		        err, TW_CORRUPT, 4, "a call tree's size does not fit its columns");
	return TW_OK;
}

static enum tw_status read_nodes(struct reader *r, uint32_t n, int64_t total_ns, struct tw_err *err)
{
	r->path[0] = 0;
	r->nodes[0] = (struct tw_tree_node){
	        .method = TW_NO_METHOD, .total_ns = total_ns, .self_ns = total_ns, .cpu_ns = -1};
	for (uint32_t i = 1; i < n && !r->bad; i++)
		read_node(r, i);
	for (int c = 0; c < COLUMNS; c++)
		r->bad = r->bad || r->at[c] != r->end[c];
	if (r->bad)
		return tw_fail_at(err, TW_CORRUPT, 0, "a call tree is damaged");
	close_nodes(r, 0, n);
	return TW_OK;
}

enum tw_status tw_tree_decode_first(
        const uint8_t *p, size_t len, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct reader r = {0};
	uint32_t n = 0;
	enum tw_status st = read_header(&r, p, len, &n, err);

	if (st != TW_OK)
		return st;
	r.nodes = tw_arena_alloc(a, n, sizeof *r.nodes);
	r.path = r.nodes ? tw_mem_alloc(n, sizeof *r.path) : NULL; /* only used up to the tree's
	                                                            * depth */
	if (!r.path)
		return tw_oom(err);
	st = read_nodes(&r, n, (int64_t)tw_u64le(p + 8), err);
	tw_mem_free(r.path);
	if (st == TW_OK)
		*ret = (struct tw_tree){r.nodes, n};
	return st;
}
