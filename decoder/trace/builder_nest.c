/*
 * builder_nest.c - turns a track's records into slices in pre-order.
 *
 * Records in the order of their ends are a post-order: the subtree of a record is a run of records
 * that ends with it.  One pass with a stack of finished subtrees finds the runs' lengths:
 *
 *   records   a b C d E    C = {a b C}, E = {a b C d E}
 *   stack     a | a b | C | C d | E
 *
 * Read backwards, a post-order is a pre-order with the children right to left, so a second pass
 * backwards gives each record its position in the forward pre-order.  If the ends are not rising,
 * or two records overlap without nesting, the track is sorted by begin (outer first) and overlaps
 * are clipped.
 */
#include "decoder/trace/builder_internal.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 16 };

static uint64_t offset_of(const struct record *r)
{
	return r->offset == NO_OFFSET_KEPT ? TW_NO_OFFSET : r->offset;
}

/* Fills sizes.  Returns the index of the first record that overlaps an earlier one without nesting,
 * or the number of records if there is none. */
static uint64_t measure_subtrees(const struct track *t, uint32_t *sizes, uint32_t *stack)
{
	uint32_t n_stack = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		const struct record *r = &t->records[i];
		uint32_t size = 1;

		while (n_stack && t->records[stack[n_stack - 1]].start_ns >= r->start_ns)
			size += sizes[stack[--n_stack]];
		if (n_stack) {
			const struct record *left = &t->records[stack[n_stack - 1]];

			if (left->start_ns + left->dur_ns > r->start_ns)
				return i;
		}
		sizes[i] = size;
		stack[n_stack++] = (uint32_t)i;
	}
	return t->n;
}

/* Goes backwards over the post-order: `ends` holds, per level, the pre-order position at which the
 * next child to the left must end. */
static void order_forward(struct nest *n, uint32_t *ends, uint32_t *starts)
{
	const struct track *t = n->track;
	uint32_t depth = 0;

	ends[0] = (uint32_t)t->n;
	starts[0] = 0;
	for (uint64_t i = t->n; i-- > 0;) {
		uint32_t size = n->sizes[i];
		uint32_t at;

		while (ends[depth] == starts[depth])
			depth--; /* all children of this level are placed */
		at = ends[depth] - size;
		n->order[at] = (uint32_t)i;
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
	return i > k ? -1 : i < k; /* for equal ones, the later ended last: it is the outer one */
}

/* Finds the parent of the call r, whose depth is at most *depth, at the top of the stack; returns
 * its end. */
static int64_t find_parent(
        const struct track *t, const struct record *r, const uint32_t *stack, uint32_t *depth)
{
	int64_t end = 0;

	for (; *depth; --*depth) {
		const struct record *top = &t->records[stack[*depth - 1]];

		end = top->start_ns + top->dur_ns;
		if (end > r->start_ns ||
		        (r->dur_ns == 0 && end == r->start_ns && top->start_ns == r->start_ns))
			break;
	}
	return end;
}

/* In sorted order: sets each depth and clips calls that exceed their parent; returns the number
 * clipped. */
static uint64_t nest_sorted(struct nest *n, struct tw_builder *b, uint32_t *stack)
{
	struct track *t = n->track;
	uint32_t depth = 0;
	uint64_t n_cut = 0;
	uint32_t first = NO_OFFSET_KEPT;

	for (uint64_t i = 0; i < t->n; i++) {
		struct record *r = &t->records[n->order[i]];
		int64_t end = find_parent(t, r, stack, &depth);

		if (depth && r->start_ns + r->dur_ns > end) {
			n_cut++;
			first = r->offset < first ? r->offset : first;
			r->dur_ns = end - r->start_ns;
		}
		n->sizes[n->order[i]] = depth;
		stack[depth++] = n->order[i];
	}
	if (n_cut)
		tw_builder_repair(b, TW_REPAIR_overlap_clipped,
		        first == NO_OFFSET_KEPT ? TW_NO_OFFSET : first, n_cut);
	return n_cut;
}

static bool sort_records(struct nest *n)
{
	struct track *t = n->track;

	n->order = tw_mem_alloc(t->n, sizeof *n->order);
	if (!n->order)
		return false;
	for (uint64_t i = 0; i < t->n; i++)
		n->order[i] = (uint32_t)i;
	qsort_r(n->order, t->n, sizeof *n->order, outer_first, t->records);
	return true;
}

/* The records stay in place; sorting takes at most eight bytes each.  found: the record at which
 * the order was found to be wrong. */
static enum tw_status open_sorted(struct nest *n, struct tw_builder *b, uint64_t found)
{
	struct track *t = n->track;
	bool sorted = sort_records(n);
	uint32_t *stack = sorted ? tw_mem_alloc(t->n, sizeof *stack) : NULL;
	uint64_t n_cut;

	n->sizes = sorted ? tw_mem_alloc(t->n, sizeof *n->sizes) : NULL;
	if (!stack || !n->sizes) {
		tw_mem_free(stack);
		return TW_NOMEM;
	}
	n_cut = nest_sorted(n, b, stack);
	tw_mem_free(stack);
	n->sorted = true;
	if (t->any_order)
		return TW_OK;
	if (t->unordered)
		tw_builder_repair(b, TW_REPAIR_order_restored, t->unordered_offset, t->n);
	else if (n_cut == 0) /* of two calls with equal ends, the outer was written first */
		tw_builder_repair(b, TW_REPAIR_order_restored, offset_of(&t->records[found]), t->n);
	return TW_OK;
}

/* A chain can have no more levels than the largest subtree has records. */
static uint32_t most_levels(const struct nest *n)
{
	uint32_t largest = 0;

	for (uint64_t i = 0; i < n->track->n; i++)
		if (n->sizes[i] > largest)
			largest = n->sizes[i];
	return largest + 2;
}

static enum tw_status open_post_order(struct nest *n)
{
	uint32_t levels = most_levels(n);
	uint32_t *ends = tw_mem_alloc(levels, 2 * sizeof *ends);

	if (!ends)
		return TW_NOMEM;
	order_forward(n, ends, ends + levels);
	tw_mem_free(ends);
	return TW_OK;
}

/* Fills n->sizes, using the memory of the later order as the stack.  *ret_found: as returned by
 * measure_subtrees. */
static enum tw_status measure(struct nest *n, uint64_t *ret_found)
{
	n->order = tw_mem_alloc(n->track->n, sizeof *n->order);
	n->sizes = tw_mem_alloc(n->track->n, sizeof *n->sizes);
	if (!n->order || !n->sizes)
		return TW_NOMEM;
	*ret_found = measure_subtrees(n->track, n->sizes, n->order);
	return TW_OK;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct track *t)
{
	uint64_t found = 0;
	enum tw_status st = TW_OK;

	*n = (struct nest){.track = t};
	if (t->n == 0)
		return TW_OK;
	if (t->n >= UINT32_MAX)
		return TW_TOO_LARGE;
	if (!t->unordered)
		st = measure(n, &found);
	if (st != TW_OK)
		return st;
	if (n->sizes && found == t->n)
		return open_post_order(n);
	tw_mem_free(n->sizes);
	tw_mem_free(n->order);
	n->sizes = n->order = NULL;
	return open_sorted(n, b, found);
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
	/* pre-order accesses records at random: prefetch the next ones */
	if (n->at + AHEAD < t->n)
		__builtin_prefetch(&t->records[n->order[n->at + AHEAD]]);
	r = &t->records[i];
	if (!n->sorted) {
		while (n->depth && n->ends[n->depth - 1] <= n->at)
			n->depth--;
		ret->depth = n->depth;
		if (n->sizes[i] > 1 && !push_end(n, n->at + n->sizes[i])) {
			n->failed = true;
			return false;
		}
	} else {
		ret->depth = n->sizes[i];
	}
	ret->start_ns = r->start_ns;
	ret->dur_ns = r->dur_ns;
	ret->cpu_ns = t->cpu_ns ? t->cpu_ns[i] : -1;
	ret->method = b->indexes[r->sym - 1];
	ret->merged = 0;
	n->at++;
	return true;
}

uint64_t tw_nest_offset(const struct nest *n)
{
	return n->at ? offset_of(&n->track->records[n->order[n->at - 1]]) : TW_NO_OFFSET;
}

void tw_nest_close(struct nest *n)
{
	tw_mem_free(n->order);
	tw_mem_free(n->sizes);
	tw_mem_free(n->ends);
	*n = (struct nest){0};
}
