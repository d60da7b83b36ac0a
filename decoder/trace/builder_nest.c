/*
 * builder_nest.c - turns a track's records into slices in pre-order.
 *
 * Records in the order of their ends are a post-order: the subtree of a record is a run of records
 * that ends with it.  One pass with a stack of finished subtrees finds the children of each record:
 *
 *   records   a b C d E    C = {a b C}, E = {a b C d E}
 *   stack     a | a b | C | C d | E
 *
 * and links the records in pre-order, E C a b d: a record to its first child, and the last record
 * of a subtree to the next sibling of the subtree's root.  The stack is kept in links that are not
 * set yet, so there is nothing but eight bytes per record, and reading needs no decisions.
 *
 * If the ends are not rising, or two records overlap without nesting, the track is sorted by begin
 * (outer first) and overlaps are clipped.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

enum { AHEAD = 16, SORT_BLOCK = 8 };
#define NONE UINT32_MAX
#define LAST (UINT32_C(1) << 31)

/* A subtree on the stack: its last record in pre-order, whose link is not set yet and holds the
 * subtree below on the stack and how much deeper than the root that record is. */
static inline uint32_t last_of(const struct link *links, uint32_t root)
{
	uint32_t step = links[root].step;

	return step & LAST ? step & ~LAST : root;
}

/* The subtree on top of the stack. */
struct top {
	uint32_t root;
	int64_t start_ns, end_ns; /* without one, before all times */
};

static inline struct top top_of(const struct track *t, uint32_t root)
{
	struct call c;

	if (root == NONE)
		return (struct top){NONE, INT64_MIN, INT64_MIN};
	c = tw_record_call(&t->records, root);
	return (struct top){root, c.start_ns, c.start_ns + c.dur_ns};
}

/* Takes the children of record i, which begins at start_ns, from the stack and links them. */
static inline void take_children(
        const struct track *t, struct link *links, int64_t start_ns, struct top *top, uint32_t i)
{
	uint32_t first = NONE;
	uint32_t last = NONE; /* of the whole subtree */
	uint32_t deeper = 0;

	while (top->start_ns >= start_ns) {
		uint32_t end = last_of(links, top->root);
		struct link below = links[end];

		if (first == NONE) {
			last = end;
			deeper = below.step + 1;
		} else {
			links[end] = (struct link){first, below.step + 1};
		}
		first = top->root;
		*top = top_of(t, below.next);
	}
	if (first == NONE) {
		links[i] = (struct link){top->root, 0};
		return;
	}
	links[i] = (struct link){first, LAST | last};
	links[last] = (struct link){top->root, deeper};
}

/* Links the records.  Returns the index of the first one that overlaps an earlier one without
 * nesting, or the number of records if there is none; then *ret_first is the first root. */
static uint64_t link_records(const struct track *t, struct link *links, uint32_t *ret_first)
{
	struct top last = top_of(t, NONE);
	uint32_t top;
	uint32_t next = NONE;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct call c = tw_record_call(&t->records, i);

		take_children(t, links, c.start_ns, &last, i);
		if (last.end_ns > c.start_ns)
			return i;
		last = (struct top){i, c.start_ns, c.start_ns + c.dur_ns};
	}
	top = last.root;
	while (top != NONE) { /* the roots */
		uint32_t end = last_of(links, top);
		struct link below = links[end];

		links[end] = (struct link){next, below.step + 1};
		next = top;
		top = below.next;
	}
	*ret_first = next;
	return t->n;
}

/* Whether record i is before record k in the sorted order: outer calls first. */
static inline bool is_before(const struct records *records, uint32_t i, uint32_t k)
{
	const struct call a = tw_record_call(records, i);
	const struct call b = tw_record_call(records, k);

	if (a.start_ns != b.start_ns)
		return a.start_ns < b.start_ns;
	if (a.dur_ns != b.dur_ns)
		return a.dur_ns > b.dur_ns;
	return i > k; /* for equal ones, the later ended last: it is the outer one */
}

static void sort_block(const struct records *r, uint32_t *v, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint32_t x = v[i];
		uint64_t at = i;

		for (; at && is_before(r, x, v[at - 1]); at--)
			v[at] = v[at - 1];
		v[at] = x;
	}
}

/* Number of elements of the sorted array before x, by galloping search. */
static uint64_t count_before(const struct records *r, const uint32_t *v, uint64_t n, uint32_t x)
{
	uint64_t low = 0;
	uint64_t high = 1;

	while (high <= n && is_before(r, v[high - 1], x)) {
		low = high;
		high *= 2;
	}
	high = high <= n ? high - 1 : n;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (is_before(r, v[middle], x))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Merges the sorted halves of v, which has n elements.  spare has space for the first half. */
static void merge_halves(
        const struct records *r, uint32_t *v, uint64_t half, uint64_t n, uint32_t *spare)
{
	uint64_t ready = count_before(r, v, half, v[half]);
	uint64_t n_left = half - ready;
	uint64_t n_right = n - half;
	const uint32_t *left = spare;
	const uint32_t *right = v + half;
	uint32_t *out = v + ready;

	memcpy(spare, out, n_left * sizeof *v);
	while (n_left) {
		uint64_t run = n_right ? count_before(r, right, n_right, *left) : 0;

		memmove(out, right, run * sizeof *v);
		out += run;
		right += run;
		n_right -= run;
		run = n_right ? count_before(r, left, n_left, *right) : n_left;
		memcpy(out, left, run * sizeof *v);
		out += run;
		left += run;
		n_left -= run;
	}
}

/* Merge sort.  Adjacent runs already in order cost one comparison; runs that barely overlap cost
 * few more. */
static void sort_indices(const struct records *r, uint32_t *v, uint64_t n, uint32_t *spare)
{
	for (uint64_t at = 0; at < n; at += SORT_BLOCK)
		sort_block(r, v + at, n - at < SORT_BLOCK ? n - at : SORT_BLOCK);
	for (uint64_t half = SORT_BLOCK; half < n; half *= 2)
		for (uint64_t at = 0; at + half < n; at += 2 * half)
			if (is_before(r, v[at + half], v[at + half - 1]))
				merge_halves(r, v + at, half, n - at < 2 * half ? n - at : 2 * half,
				        spare);
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

/* The records stay in place; sorting takes twelve bytes each.  found: the record at which the order
 * was found to be wrong. */
static enum tw_status open_sorted(struct nest *n, struct tw_builder *b, uint64_t found)
{
	struct track *t = n->track;
	uint32_t *stack = tw_mem_alloc(t->n, sizeof *stack);
	uint64_t n_cut;

	n->order = tw_mem_alloc(t->n, sizeof *n->order);
	n->depths = tw_mem_alloc(t->n, sizeof *n->depths);
	if (!stack || !n->order || !n->depths) {
		tw_mem_free(stack);
		return TW_NOMEM;
	}
	for (uint64_t i = 0; i < t->n; i++)
		n->order[i] = (uint32_t)i;
	sort_indices(&t->records, n->order, t->n, stack);
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

/* *ret_found: as returned by link_records. */
static enum tw_status open_post_order(struct nest *n, uint64_t *ret_found)
{
	n->links = tw_mem_alloc(n->track->n, sizeof *n->links);
	if (!n->links)
		return TW_NOMEM;
	tw_mem_will_fill(n->links, n->track->n * sizeof *n->links);
	*ret_found = link_records(n->track, n->links, &n->first);
	return TW_OK;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct track *t)
{
	uint64_t found = 0;
	enum tw_status st = TW_OK;

	*n = (struct nest){.track = t};
	if (t->n == 0)
		return TW_OK;
	if (t->n >= LAST)
		return TW_TOO_LARGE;
	if (!t->unordered)
		st = open_post_order(n, &found);
	if (st != TW_OK)
		return st;
	if (found < t->n) {
		tw_nest_close(n);
		n->track = t;
		st = open_sorted(n, b, found);
	}
	tw_nest_rewind(n);
	n->again = false;
	return st;
}

static inline void take(
        struct nest *n, const uint32_t *indexes, uint32_t i, uint32_t depth, struct tw_slice *ret)
{
	const struct call c = tw_record_call(&n->track->records, i);

	*ret = (struct tw_slice){.start_ns = c.start_ns,
	        .dur_ns = c.dur_ns,
	        .cpu_ns = n->track->cpu_ns ? n->track->cpu_ns[i] : -1,
	        .method = indexes[c.sym - 1],
	        .depth = depth};
}

/* Counts a record that is too deep, once. */
static void clip(const struct nest *n, struct tw_builder *b, uint32_t i)
{
	if (!n->again)
		tw_builder_repair(
		        b, TW_REPAIR_depth_clipped, tw_record_offset(&n->track->records.at[i]), 1);
}

static uint32_t read_linked(
        struct nest *n, struct tw_builder *b, struct tw_slice *ret, uint32_t max)
{
	uint32_t depth = n->depth;
	uint32_t i = n->at;
	uint32_t read = 0;

	while (read < max && i != NONE) {
		struct link link = n->links[i];

		/* the records are visited upwards, but for those with children, which are ahead */
		if (i + AHEAD < n->track->n) {
			__builtin_prefetch(&n->links[i + AHEAD]);
			__builtin_prefetch(&n->track->records.at[i + AHEAD]);
		}
		if (depth < b->limits.max_depth)
			take(n, b->indexes, i, depth, &ret[read++]);
		else
			clip(n, b, i);
		depth += 1 - (link.step & LAST ? 0 : link.step);
		i = link.next;
	}
	n->depth = depth;
	n->at = i;
	return read;
}

static uint32_t read_sorted(
        struct nest *n, struct tw_builder *b, struct tw_slice *ret, uint32_t max)
{
	uint32_t read = 0;

	while (read < max && n->at < n->track->n) {
		uint32_t i = n->order[n->at++];

		if (n->at + AHEAD < n->track->n) /* records are accessed at random */
			__builtin_prefetch(&n->track->records.at[n->order[n->at + AHEAD]]);
		if (n->depths[i] < b->limits.max_depth)
			take(n, b->indexes, i, n->depths[i], &ret[read++]);
		else
			clip(n, b, i);
	}
	return read;
}

uint32_t tw_nest_read(struct nest *n, struct tw_builder *b, struct tw_slice *ret, uint32_t max)
{
	return n->links ? read_linked(n, b, ret, max) : read_sorted(n, b, ret, max);
}

void tw_nest_rewind(struct nest *n)
{
	n->again = true;
	n->depth = 0;
	n->at = n->links ? n->first : 0;
}

void tw_nest_close(struct nest *n)
{
	tw_mem_free(n->links);
	tw_mem_free(n->order);
	tw_mem_free(n->depths);
	*n = (struct nest){0};
}
