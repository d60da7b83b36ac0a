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

/* Fills sizes.  Returns the index of the first record that overlaps an earlier one without nesting,
 * or the number of records if there is none; then *ret_largest is the size of the largest subtree.
 */
static uint64_t measure_subtrees(
        const struct track *t, uint32_t *sizes, uint32_t *stack, uint32_t *ret_largest)
{
	uint32_t n_stack = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		const struct call c = tw_record_call(&t->records, i);
		uint32_t size = 1;

		for (; n_stack; size += sizes[stack[--n_stack]]) {
			const struct call left = tw_record_call(&t->records, stack[n_stack - 1]);

			if (left.start_ns >= c.start_ns)
				continue;
			if (left.start_ns + left.dur_ns > c.start_ns)
				return i;
			break;
		}
		sizes[i] = size;
		stack[n_stack++] = (uint32_t)i;
	}
	*ret_largest = 0; /* the roots are left on the stack */
	for (uint32_t i = 0; i < n_stack; i++)
		if (sizes[stack[i]] > *ret_largest)
			*ret_largest = sizes[stack[i]];
	return t->n;
}

/* Goes backwards over the post-order: `ends` holds, per level, the pre-order position at which the
 * next child to the left must end.  A size is replaced by the record's depth once it is read. */
static void order_forward(struct nest *n, uint32_t *ends, uint32_t *starts)
{
	const struct track *t = n->track;
	uint32_t depth = 0;

	ends[0] = (uint32_t)t->n;
	starts[0] = 0;
	for (uint64_t i = t->n; i-- > 0;) {
		uint32_t size = n->depths[i];
		uint32_t at;

		while (ends[depth] == starts[depth])
			depth--; /* all children of this level are placed */
		at = ends[depth] - size;
		n->order[at] = (uint32_t)i;
		n->depths[i] = depth;
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
	uint32_t i = *(const uint32_t *)pa;
	uint32_t k = *(const uint32_t *)pb;
	const struct call a = tw_record_call(records, i);
	const struct call b = tw_record_call(records, k);

	if (a.start_ns != b.start_ns)
		return a.start_ns < b.start_ns ? -1 : 1;
	if (a.dur_ns != b.dur_ns)
		return a.dur_ns > b.dur_ns ? -1 : 1;
	return i > k ? -1 : i < k; /* for equal ones, the later ended last: it is the outer one */
}

/* Finds the parent of the call c, whose depth is at most *depth, at the top of the stack; returns
 * its end. */
static int64_t find_parent(
        const struct track *t, const struct call *c, const uint32_t *stack, uint32_t *depth)
{
	int64_t end = 0;

	for (; *depth; --*depth) {
		const struct call top = tw_record_call(&t->records, stack[*depth - 1]);

		end = top.start_ns + top.dur_ns;
		if (end > c->start_ns ||
		        (c->dur_ns == 0 && end == c->start_ns && top.start_ns == c->start_ns))
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
	uint64_t first = TW_NO_OFFSET;

	for (uint64_t i = 0; i < t->n; i++) {
		const struct call c = tw_record_call(&t->records, n->order[i]);
		int64_t end = find_parent(t, &c, stack, &depth);

		if (depth && c.start_ns + c.dur_ns > end) {
			uint64_t offset = tw_record_offset(&t->records.at[n->order[i]]);

			n_cut++;
			first = offset < first ? offset : first;
			tw_record_shorten(&t->records, n->order[i], end - c.start_ns);
		}
		n->depths[n->order[i]] = depth;
		stack[depth++] = n->order[i];
	}
	if (n_cut)
		tw_builder_repair(b, TW_REPAIR_overlap_clipped, first, n_cut);
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
	qsort_r(n->order, t->n, sizeof *n->order, outer_first, &t->records);
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

	n->depths = sorted ? tw_mem_alloc(t->n, sizeof *n->depths) : NULL;
	if (!stack || !n->depths) {
		tw_mem_free(stack);
		return TW_NOMEM;
	}
	n_cut = nest_sorted(n, b, stack);
	tw_mem_free(stack);
	if (t->any_order)
		return TW_OK;
	if (t->unordered)
		tw_builder_repair(b, TW_REPAIR_order_restored, t->unordered_offset, t->n);
	else if (n_cut == 0) /* of two calls with equal ends, the outer was written first */
		tw_builder_repair(
		        b, TW_REPAIR_order_restored, tw_record_offset(&t->records.at[found]), t->n);
	return TW_OK;
}

/* A chain can have no more levels than the largest subtree has records. */
static enum tw_status open_post_order(struct nest *n, uint32_t largest)
{
	uint32_t levels = largest + 2;
	uint32_t *ends = tw_mem_alloc(levels, 2 * sizeof *ends);

	if (!ends)
		return TW_NOMEM;
	order_forward(n, ends, ends + levels);
	tw_mem_free(ends);
	return TW_OK;
}

/* Fills n->depths with sizes, using the memory of the later order as the stack.  *ret_found: as
 * returned by measure_subtrees. */
static enum tw_status measure(struct nest *n, uint64_t *ret_found, uint32_t *ret_largest)
{
	n->order = tw_mem_alloc(n->track->n, sizeof *n->order);
	n->depths = tw_mem_alloc(n->track->n, sizeof *n->depths);
	if (!n->order || !n->depths)
		return TW_NOMEM;
	tw_mem_will_fill(n->order, n->track->n * sizeof *n->order);
	tw_mem_will_fill(n->depths, n->track->n * sizeof *n->depths);
	*ret_found = measure_subtrees(n->track, n->depths, n->order, ret_largest);
	return TW_OK;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct track *t)
{
	uint64_t found = 0;
	uint32_t largest = 0;
	enum tw_status st = TW_OK;

	*n = (struct nest){.track = t};
	if (t->n == 0)
		return TW_OK;
	if (t->n >= UINT32_MAX)
		return TW_TOO_LARGE;
	if (!t->unordered)
		st = measure(n, &found, &largest);
	if (st != TW_OK)
		return st;
	if (n->depths && found == t->n)
		return open_post_order(n, largest);
	tw_mem_free(n->depths);
	tw_mem_free(n->order);
	n->depths = n->order = NULL;
	return open_sorted(n, b, found);
}

uint32_t tw_nest_read(
        struct nest *n, const struct tw_builder *b, struct tw_slice *ret, uint32_t max)
{
	const struct records *records = &n->track->records;
	const int64_t *cpu_ns = n->track->cpu_ns;
	const uint32_t *indexes = b->indexes;
	const uint32_t *order;
	uint64_t left = n->track->n - n->at;

	if (left == 0)
		return 0;
	order = n->order + n->at;
	if (max > left)
		max = (uint32_t)left;
	for (uint32_t k = 0; k < max; k++) {
		uint32_t i = order[k];
		const struct call c = tw_record_call(records, i);

		/* pre-order accesses records at random: prefetch the next ones */
		if (k + AHEAD < left)
			__builtin_prefetch(&records->at[order[k + AHEAD]]);
		ret[k] = (struct tw_slice){.start_ns = c.start_ns,
		        .dur_ns = c.dur_ns,
		        .cpu_ns = cpu_ns ? cpu_ns[i] : -1,
		        .method = indexes[c.sym - 1],
		        .depth = n->depths[i]};
	}
	n->at += max;
	return max;
}

uint64_t tw_nest_offset(const struct nest *n, uint32_t back)
{
	return tw_record_offset(&n->track->records.at[n->order[n->at - back]]);
}

void tw_nest_rewind(struct nest *n)
{
	n->at = 0;
}

void tw_nest_close(struct nest *n)
{
	tw_mem_free(n->order);
	tw_mem_free(n->depths);
	*n = (struct nest){0};
}
