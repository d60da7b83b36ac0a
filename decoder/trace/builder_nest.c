/*
 * builder_nest.c - a track's records become slices in pre-order.
 *
 * Records in the order of their ends are a post-order: the subtree of a record
 * is a run of records that ends with it.  One pass with a stack of finished
 * subtrees finds the runs' lengths:
 *
 *      records   a b C d E          C = {a b C}, E = {a b C d E}
 *      stack     a | a b | C | C d | E
 *
 * Read backwards, a post-order is a pre-order with the children right to left,
 * so a second pass backwards gives each record its place in the forward
 * pre-order.  Where the ends are not rising, or two records overlap without
 * nesting, the track is sorted by begin (outer first) and overlaps are cut.
 */
#include "trace/builder_internal.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 16 };

/* Fills record.size; false when two records overlap without one holding the other: those from the
 * later of them on still have their offsets, and none before it will be cut. */
static bool measure_subtrees(struct track *t, uint32_t *stack)
{
	uint32_t n_stack = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		struct record *r = &t->records[i];
		uint32_t offset = r->size;

		r->size = 1;
		while (n_stack && t->records[stack[n_stack - 1]].start_ns >= r->start_ns)
			r->size += t->records[stack[--n_stack]].size;
		if (n_stack) {
			const struct record *left = &t->records[stack[n_stack - 1]];

			if (left->start_ns + left->dur_ns > r->start_ns) {
				r->size = offset;
				return false;
			}
		}
		stack[n_stack++] = (uint32_t)i;
	}
	return true;
}

/* Backwards over the post-order: `ends` holds, per level, the pre-order position at which the
 * next child to the left must end. */
static void order_forward(const struct track *t, uint32_t *order, uint32_t *ends, uint32_t *starts)
{
	uint32_t depth = 0;

	ends[0] = (uint32_t)t->n;
	starts[0] = 0;
	for (uint64_t i = t->n; i-- > 0;) {
		uint32_t size = t->records[i].size;
		uint32_t at;

		while (ends[depth] == starts[depth])
			depth--; /* all children of this level are placed */
		at = ends[depth] - size;
		order[at] = (uint32_t)i;
		ends[depth] = at;
		if (size > 1) {
			depth++;
			starts[depth] = at + 1;
			ends[depth] = at + size;
		}
	}
}

static int outer_first(const void *pa, const void *pb, void *records)
{
	const struct record *all = records;
	uint32_t i = *(const uint32_t *)pa;
	uint32_t k = *(const uint32_t *)pb;
	const struct record *a = &all[i];
	const struct record *b = &all[k];

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return i > k ? -1 : i < k; /* of equal ones the later ended last: it is the outer */
}

/* In sorted order: gives each its depth (in record.size) and cuts what reaches past its parent. */
static void nest_sorted(
        struct tw_builder *b, struct track *t, const uint32_t *order, uint32_t *stack)
{
	uint32_t depth = 0;
	uint64_t n_cut = 0;
	uint32_t first = NO_OFFSET_KEPT;

	for (uint64_t i = 0; i < t->n; i++) {
		struct record *r = &t->records[order[i]];
		int64_t end = 0;

		while (depth) {
			const struct record *top = &t->records[stack[depth - 1]];

			end = top->start_ns + top->dur_ns;
			if (end > r->start_ns || (r->dur_ns == 0 && end == r->start_ns &&
			                                 top->start_ns == r->start_ns))
				break;
			depth--;
		}
		if (depth && r->start_ns + r->dur_ns > end) {
			n_cut++;
			first = r->size < first ? r->size : first;
			r->dur_ns = end - r->start_ns;
		}
		r->size = depth;
		stack[depth++] = order[i];
	}
	if (n_cut)
		tw_builder_repair(b, TW_REPAIR_overlap_clipped,
		        first == NO_OFFSET_KEPT ? TW_NO_OFFSET : first, n_cut);
}

/* The records stay where they are: eight bytes each are sorted for them at most. */
static enum tw_status open_sorted(
        struct nest *n, struct tw_builder *b, struct track *t, uint32_t *stack)
{
	tw_builder_repair(b, TW_REPAIR_order_restored, t->unordered_offset, t->n);
	n->order = tw_mem_alloc(t->n, sizeof *n->order);
	if (!n->order)
		return TW_NOMEM;
	for (uint64_t i = 0; i < t->n; i++)
		n->order[i] = (uint32_t)i;
	qsort_r(n->order, t->n, sizeof *n->order, outer_first, t->records);
	nest_sorted(b, t, n->order, stack);
	n->sorted = true;
	return TW_OK;
}

static uint32_t deepest(const struct track *t)
{
	uint32_t left = 0; /* how many levels the longest chain can have: a run shrinks by ≥ 1 */

	for (uint64_t i = 0; i < t->n; i++)
		if (t->records[i].size > left)
			left = t->records[i].size;
	return left + 1;
}

static enum tw_status open_post_order(struct nest *n, struct track *t)
{
	uint32_t levels = deepest(t) + 1;
	uint32_t *ends = tw_mem_alloc(levels, 2 * sizeof *ends);

	n->order = tw_mem_alloc(t->n, sizeof *n->order);
	if (!ends || !n->order) {
		tw_mem_free(ends);
		return TW_NOMEM;
	}
	order_forward(t, n->order, ends, ends + levels);
	tw_mem_free(ends);
	return TW_OK;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct track *t)
{
	uint32_t *stack;
	enum tw_status st;

	*n = (struct nest){.track = t};
	if (t->n == 0)
		return TW_OK;
	if (t->n >= UINT32_MAX)
		return TW_TOO_LARGE;
	stack = tw_mem_alloc(t->n, sizeof *stack);
	if (!stack)
		return TW_NOMEM;
	if (t->unordered || !measure_subtrees(t, stack)) {
		t->unordered = true;
		st = open_sorted(n, b, t, stack);
		tw_mem_free(stack);
	} else {
		tw_mem_free(stack);
		st = open_post_order(n, t);
	}
	return st;
}

static bool push_end(struct nest *n, uint64_t end)
{
	if (n->depth == n->cap_ends) {
		uint32_t cap = n->cap_ends ? n->cap_ends * 2 : 256;
		uint64_t *p = tw_mem_resize(n->ends, cap, sizeof *p);

		if (!p)
			return false;
		n->ends = p;
		n->cap_ends = cap;
	}
	n->ends[n->depth++] = end;
	return true;
}

bool tw_nest_next(struct nest *n, const struct tw_builder *b, struct tw_slice *ret)
{
	const struct track *t = n->track;
	const struct record *r;
	uint64_t i;

	if (n->at >= t->n)
		return false;
	i = n->order[n->at];
	/* pre-order jumps about in the records: the next ones are asked for early */
	if (n->at + AHEAD < t->n)
		__builtin_prefetch(&t->records[n->order[n->at + AHEAD]]);
	r = &t->records[i];
	if (!n->sorted) {
		while (n->depth && n->ends[n->depth - 1] <= n->at)
			n->depth--;
		ret->depth = n->depth;
		if (r->size > 1 && !push_end(n, n->at + r->size)) {
			n->failed = true;
			return false;
		}
	} else {
		ret->depth = r->size;
	}
	ret->start_ns = r->start_ns;
	ret->dur_ns = r->dur_ns;
	ret->cpu_ns = t->cpu_ns ? t->cpu_ns[i] : -1;
	ret->method = b->indexes[r->sym - 1];
	ret->merged = 0;
	n->at++;
	return true;
}

void tw_nest_close(struct nest *n)
{
	tw_mem_free(n->order);
	tw_mem_free(n->ends);
	*n = (struct nest){0};
}
