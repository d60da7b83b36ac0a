/*
 * calltree_store.c - the stored form of a call tree (schema/columns.md).
 *
 * Like a chunk of slices: a header with the size of each column, then columns
 * of varints, a value per node in pre-order without node 0.  Totals are stored as what is
 * missing to the sibling before (or, for a first child, to the parent), for
 * siblings fall; a single call's maximum is its total and takes no byte.
 */
#include "trace/calltree.h"

#include <string.h>

enum column { COL_STEP, COL_METHOD, COL_COUNT, COL_TOTAL, COL_MAX, COL_CPU };
enum { COLUMNS = 6, MAGIC = 0x31545754 /* "TWT1" */, HEADER = 8 + 8 + 4 * COLUMNS };

static int64_t upper(const struct tw_tree_node *nodes, uint32_t i, uint32_t prev_sibling)
{
	return prev_sibling ? nodes[prev_sibling].total_ns : nodes[nodes[i].parent].total_ns;
}

/* The node before i under the same parent, 0 when i is a first child. */
static uint32_t sibling_before(const struct tw_tree_node *nodes, uint32_t i)
{
	uint32_t at = i - 1;

	while (nodes[at].depth > nodes[i].depth)
		at = nodes[at].parent;
	return nodes[at].depth == nodes[i].depth ? at : 0;
}

static void encode_node(const struct tw_tree *t, uint32_t i, bool cpu, struct tw_buf cols[COLUMNS])
{
	const struct tw_tree_node *n = &t->nodes[i];
	int64_t most = upper(t->nodes, i, sibling_before(t->nodes, i));

	(void)tw_buf_add_varint(&cols[COL_STEP], t->nodes[i - 1].depth + 1 - n->depth);
	(void)tw_buf_add_varint(&cols[COL_METHOD], n->method);
	(void)tw_buf_add_varint(&cols[COL_COUNT], n->count);
	(void)tw_buf_add_varint(&cols[COL_TOTAL], (uint64_t)(most - n->total_ns));
	if (n->count > 1)
		(void)tw_buf_add_varint(&cols[COL_MAX], (uint64_t)(n->total_ns - n->max_ns));
	if (cpu)
		(void)tw_buf_add_varint(&cols[COL_CPU], (uint64_t)(n->cpu_ns + 1));
}

static bool has_cpu(const struct tw_tree *t)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->nodes[i].cpu_ns >= 0)
			return true;
	return false;
}

enum tw_status tw_tree_encode(const struct tw_tree *t, struct tw_buf *out)
{
	struct tw_buf cols[COLUMNS];
	bool cpu = has_cpu(t);
	enum tw_status st = TW_OK;

	for (int c = 0; c < COLUMNS; c++)
		tw_buf_init(&cols[c], SIZE_MAX / 2);
	for (uint32_t i = 1; i < t->n; i++)
		encode_node(t, i, cpu, cols);
	(void)tw_buf_add_u32le(out, MAGIC);
	(void)tw_buf_add_u32le(out, t->n);
	(void)tw_buf_add_u64le(out, (uint64_t)t->nodes[0].total_ns);
	for (int c = 0; c < COLUMNS; c++) {
		if (cols[c].status != TW_OK)
			st = cols[c].status;
		(void)tw_buf_add_u32le(out, (uint32_t)cols[c].len);
	}
	for (int c = 0; c < COLUMNS; c++) {
		(void)tw_buf_add(out, cols[c].data, cols[c].len);
		tw_buf_done(&cols[c]);
	}
	return st == TW_OK ? tw_buf_status(out) : st;
}

struct reader {
	const uint8_t *at[COLUMNS];
	const uint8_t *end[COLUMNS];
	bool cpu;
	bool bad;
};

static uint64_t take(struct reader *r, enum column c, uint64_t max)
{
	uint64_t v = 0;

	if (!tw_get_varint(&r->at[c], r->end[c], &v) || v > max) {
		r->bad = true;
		return 0;
	}
	return v;
}

static void decode_node(struct reader *r, struct tw_tree_node *nodes, uint32_t i)
{
	struct tw_tree_node *n = &nodes[i];
	uint32_t before = i - 1;
	uint64_t step = take(r, COL_STEP, nodes[before].depth);
	uint32_t prev = 0;
	int64_t most;

	for (; step; step--) { /* up to the parent, remembering the last child passed */
		prev = before;
		before = nodes[before].parent;
	}
	*n = (struct tw_tree_node){.parent = before, .subtree = 1};
	n->depth = nodes[before].depth + 1;
	n->method = (uint32_t)take(r, COL_METHOD, UINT32_MAX - 1);
	n->count = take(r, COL_COUNT, UINT64_MAX);
	most = prev ? nodes[prev].total_ns : nodes[before].total_ns;
	n->total_ns = most - (int64_t)take(r, COL_TOTAL, (uint64_t)most);
	n->max_ns = n->total_ns;
	if (n->count > 1)
		n->max_ns -= (int64_t)take(r, COL_MAX, (uint64_t)n->total_ns);
	n->cpu_ns = r->cpu ? (int64_t)take(r, COL_CPU, INT64_MAX) - 1 : -1;
}

/* Self times and subtree sizes follow from the rest. */
static bool derive(struct tw_tree_node *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		nodes[i].self_ns = nodes[i].total_ns;
	for (uint32_t i = n; i-- > 1;) {
		nodes[nodes[i].parent].subtree += nodes[i].subtree;
		if (nodes[i].total_ns > nodes[nodes[i].parent].self_ns)
			return false;
		nodes[nodes[i].parent].self_ns -= nodes[i].total_ns;
	}
	return true;
}

static enum tw_status read_header(
        struct reader *r, const uint8_t *p, size_t len, uint32_t *ret_n, struct tw_err *err)
{
	const uint8_t *at = p + HEADER;
	uint64_t left = len < HEADER ? 0 : len - HEADER;

	if (len < HEADER || tw_u32le(p) != MAGIC || tw_u64le(p + 8) > INT64_MAX)
		return tw_fail(err, TW_CORRUPT, 0, "not a call tree");
	for (size_t c = 0; c < COLUMNS; c++) {
		uint32_t bytes = tw_u32le(p + 16 + 4 * c);

		if (bytes > left)
			return tw_fail(err, TW_CORRUPT, 0, "a call tree's columns do not fit it");
		r->at[c] = at;
		r->end[c] = at += bytes;
		left -= bytes;
	}
	*ret_n = tw_u32le(p + 4);
	r->cpu = r->end[COL_CPU] > r->at[COL_CPU];
	if (*ret_n == 0 || *ret_n - 1 > (size_t)(r->end[COL_STEP] - r->at[COL_STEP]))
		return tw_fail(err, TW_CORRUPT, 4, "a call tree's size does not fit its columns");
	return TW_OK;
}

enum tw_status tw_tree_decode(
        const uint8_t *p, size_t len, struct tw_arena *a, struct tw_tree *ret, struct tw_err *err)
{
	struct reader r = {0};
	uint32_t n = 0;
	enum tw_status st = read_header(&r, p, len, &n, err);
	struct tw_tree_node *nodes;

	if (st != TW_OK)
		return st;
	nodes = tw_arena_alloc(a, n, sizeof *nodes);
	if (!nodes)
		return tw_fail(err, TW_NOMEM, 0, "no memory for a call tree");
	nodes[0] = (struct tw_tree_node){.method = TW_NO_METHOD,
	        .subtree = 1,
	        .total_ns = (int64_t)tw_u64le(p + 8),
	        .cpu_ns = -1};
	for (uint32_t i = 1; i < n && !r.bad; i++)
		decode_node(&r, nodes, i);
	for (int c = 0; c < COLUMNS; c++)
		r.bad = r.bad || r.at[c] != r.end[c];
	if (r.bad || !derive(nodes, n))
		return tw_fail(err, TW_CORRUPT, 0, "a call tree is damaged");
	*ret = (struct tw_tree){nodes, n};
	return TW_OK;
}
