/*
 * builder_nest.c - turns a track's records into slices in pre-order.
 *
 * Records in the order of their ends are a post-order: each call follows its callees.  One pass
 * from the last record to the first moves them to pre-order in place, without an index:
 *
 *   post-order a b C d E, where C = {a b C} and E = {a b C d E}, becomes E C a b d
 *
 * A stack has the calls that contain the record being read.  Those on top that begin later do not
 * contain it: they follow it, and all their callees were moved.  They leave the stack for the end
 * of the space between the records that remain and those that were moved, which is as large as the
 * stack.
 *
 * If the ends are not rising, or two records overlap without nesting, the track is sorted by begin
 * (outer first) and overlaps are clipped.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

enum { AHEAD = 16, SORT_BLOCK = 8, FIRST_OPEN = 256 };

struct open {
	struct record record;
	int64_t start_ns, cpu_ns;
};

struct mover {
	struct track *track;
	uint32_t *depths; /* by place in pre-order */
	struct open *open;
	uint32_t cap;
};

static bool more_open(struct mover *m)
{
	uint32_t cap = m->cap ? 2 * m->cap : FIRST_OPEN;
	struct open *p = tw_mem_resize(m->open, cap, sizeof *p);

	if (!p)
		return false;
	m->open = p;
	m->cap = cap;
	return true;
}

/* Puts an open call in the place of record i. */
static inline void put(const struct track *t, uint64_t i, const struct open *o)
{
	t->records.at[i] = o->record;
	if (t->cpu_ns)
		t->cpu_ns[i] = o->cpu_ns;
}

static inline struct open open_of(const struct track *t, uint64_t i, int64_t start_ns)
{
	return (struct open){t->records.at[i], start_ns, t->cpu_ns ? t->cpu_ns[i] : -1};
}

/* Returns the number of records that remain: 0 unless the last of them overlaps without nesting or
 * memory ran out.  The place of a call is after those that remain and the open ones. */
static uint64_t move_to_pre_order(struct mover *m, enum tw_status *ret)
{
	const struct track t = *m->track;
	uint32_t depth = 0;
	uint64_t left = t.n;
	int64_t innermost_ns = INT64_MIN; /* its begin */

	*ret = TW_OK;
	for (; left > 0; left--) {
		const struct call c = tw_record_call(&t.records, left - 1);
		int64_t next_ns = INT64_MAX; /* begin of the call after it */

		while (innermost_ns > c.start_ns) {
			next_ns = innermost_ns;
			depth--;
			put(&t, left + depth, &m->open[depth]);
			m->depths[left + depth] = depth;
			innermost_ns = depth ? m->open[depth - 1].start_ns : INT64_MIN;
		}
		if (c.start_ns + c.dur_ns > next_ns)
			break;
		if (depth == m->cap && !more_open(m)) {
			*ret = TW_NOMEM;
			break;
		}
		m->open[depth++] = open_of(&t, left - 1, c.start_ns);
		innermost_ns = c.start_ns;
	}
	while (depth-- > 0) {
		put(&t, left + depth, &m->open[depth]);
		m->depths[left + depth] = depth;
	}
	return left;
}

/* Undoes it. */
static void move_to_post_order(struct mover *m, uint64_t left)
{
	const struct track *t = m->track;
	uint32_t depth = 0;
	uint64_t to = left;

	for (uint64_t i = left; i < t->n; i++) {
		while (depth > m->depths[i])
			put(t, to++, &m->open[--depth]);
		m->open[depth++] = open_of(t, i, 0);
	}
	while (depth > 0)
		put(t, to++, &m->open[--depth]);
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
		n->depths[i] = depth;
		stack[depth++] = n->order[i];
	}
	if (n_cut)
		tw_builder_repair(b, TW_REPAIR_overlap_clipped, first, n_cut);
	return n_cut;
}

/* The first record that overlaps an earlier one without nesting. */
static uint64_t first_overlap(const struct track *t, uint32_t *stack)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct call c = tw_record_call(&t->records, i);
		int64_t end = 0;

		for (; depth; depth--) {
			const struct call top = tw_record_call(&t->records, stack[depth - 1]);

			end = top.start_ns + top.dur_ns;
			if (top.start_ns < c.start_ns)
				break;
		}
		if (depth && end > c.start_ns)
			return i;
		stack[depth++] = i;
	}
	return 0;
}

static void report_order(
        struct tw_builder *b, const struct track *t, uint64_t n_cut, uint32_t *stack)
{
	if (t->any_order)
		return;
	if (t->unordered)
		tw_builder_repair(b, TW_REPAIR_order_restored, t->unordered_offset, t->n);
	else if (n_cut == 0) /* of two calls with equal ends, the outer was written first */
		tw_builder_repair(b, TW_REPAIR_order_restored,
		        tw_record_offset(&t->records.at[first_overlap(t, stack)]), t->n);
}

static void report_depth(const struct nest *n, struct tw_builder *b)
{
	const struct track *t = n->track;

	for (uint64_t i = 0; i < t->n; i++)
		if (n->depths[i] >= b->limits.max_depth)
			tw_builder_repair(b, TW_REPAIR_depth_clipped,
			        tw_record_offset(&t->records.at[n->order ? n->order[i] : i]), 1);
}

/* The records stay in place; sorting takes twelve bytes each. */
static enum tw_status open_sorted(struct nest *n, struct tw_builder *b)
{
	struct track *t = n->track;
	uint32_t *stack = tw_mem_alloc(t->n, sizeof *stack);

	n->order = tw_mem_alloc(t->n, sizeof *n->order);
	if (!stack || !n->order) {
		tw_mem_free(stack);
		return TW_NOMEM;
	}
	for (uint64_t i = 0; i < t->n; i++)
		n->order[i] = (uint32_t)i;
	sort_indices(&t->records, n->order, t->n, stack);
	report_order(b, t, nest_sorted(n, b, stack), stack);
	report_depth(n, b);
	tw_mem_free(stack);
	return TW_OK;
}

/* *ret_moved: whether the records are in pre-order now. */
static enum tw_status open_post_order(struct nest *n, struct tw_builder *b, bool *ret_moved)
{
	struct mover m = {.track = n->track, .depths = n->depths};
	enum tw_status st;
	uint64_t left = move_to_pre_order(&m, &st);

	*ret_moved = left == 0;
	if (left)
		move_to_post_order(&m, left);
	else if (m.cap > b->limits.max_depth)
		report_depth(n, b);
	tw_mem_free(m.open);
	return st;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct track *t)
{
	enum tw_status st = TW_OK;
	bool moved = false;

	*n = (struct nest){.track = t};
	if (t->n == 0)
		return TW_OK;
	if (t->n > UINT32_MAX)
		return TW_TOO_LARGE;
	n->depths = tw_mem_alloc(t->n, sizeof *n->depths);
	if (!n->depths)
		return TW_NOMEM;
	tw_mem_will_fill(n->depths, t->n * sizeof *n->depths);
	if (!t->unordered)
		st = open_post_order(n, b, &moved);
	if (st == TW_OK && !moved)
		st = open_sorted(n, b);
	return st;
}

void tw_nest_close(struct nest *n)
{
	tw_mem_free(n->order);
	tw_mem_free(n->depths);
	tw_running_free(&n->running);
	if (n->track)
		tw_builder_free_records(n->track);
	*n = (struct nest){0};
}

/* Everything but the reader is passed by value, as slices could otherwise be stored where it is. */
static inline uint32_t read_slices(struct nest_reader *r, const struct nest n,
        const struct records records, const int64_t *cpu_ns, struct tw_slice *ret, uint32_t max)
{
	const uint32_t *indexes = r->builder->indexes;
	const uint32_t max_depth = r->builder->limits.max_depth;
	const uint64_t end = n.track->n;
	uint32_t at = r->at;
	uint32_t read = 0;

	for (; read < max && at < end; at++) {
		uint32_t i = n.order ? n.order[at] : at;
		const struct call c = tw_record_call(&records, i);

		if (n.order && at + AHEAD < end) /* records are accessed at random */
			__builtin_prefetch(&records.at[n.order[at + AHEAD]]);
		if (n.depths[at] >= max_depth)
			continue;
		ret[read++] = (struct tw_slice){.start_ns = c.start_ns,
		        .dur_ns = c.dur_ns,
		        .cpu_ns = cpu_ns ? cpu_ns[i] : -1,
		        .method = indexes[c.sym - 1],
		        .depth = n.depths[at]};
	}
	r->at = at;
	return read;
}

uint32_t tw_nest_read(struct nest_reader *r, struct tw_slice *ret, uint32_t max)
{
	const struct nest *nest = r->nest;
	const struct track *t = nest->track;
	const struct tw_running *running = &nest->running;
	const struct nest in_order = {.track = nest->track, .depths = nest->depths};
	uint32_t n;

	if (!nest->order && !t->cpu_ns) /* the same, without their checks */
		n = read_slices(r, in_order, t->records, NULL, ret, max);
	else
		n = read_slices(r, *nest, t->records, t->cpu_ns, ret, max);
	for (uint32_t i = 0; running->any && i < n; i++)
		ret[i].cpu_ns = tw_running_within(
		        running, ret[i].start_ns, ret[i].start_ns + ret[i].dur_ns, &r->running_at);
	return n;
}
