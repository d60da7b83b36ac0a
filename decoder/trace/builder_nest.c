/*
 * builder_nest.c - turns a track's records into slices in pre-order.
 *
 * Records in the order of their ends are a post-order: each call follows its callees.  One pass
 * from the last record to the first moves them to pre-order in place, without an index:
 *
 *   post-order a b C d E, where C = {a b C} and E = {a b C d E}, becomes E C a b d
 *
 * A stack has the calls that contain the record being read.  Those on top that begin later do not
 * contain it: they follow it, and all their callees were moved.  They move from the stack to the
 * end of the gap between the unread records and the moved ones, which has a place for each call on
 * the stack.
 *
 * If the ends are not rising, two records overlap without nesting, or a record is inside more calls
 * than a stored depth can number, the track is sorted by begin (outer first) and overlaps are
 * clipped.
 *
 * Records in scratch are moved in the same way, piece by piece; their depths are written to scratch
 * too.  If they overlap, they are read into memory, and the moves are undone there.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

enum { AHEAD = 16, SORT_BLOCK = 8, FIRST_OPEN = 256 };
/* If more calls contain a record, the track is sorted. */
enum { MOST_OPEN = TW_MOST_DEPTH + 1 };

struct open {
	struct record record;
	int64_t start_ns;
	uint32_t cpu;
};

struct mover {
	struct track *track;
	uint16_t *depths; /* by place in pre-order */
	struct open *open;
	uint32_t cap;
};

/* Moving counts the durations. */
static bool start_counts(struct track *t)
{
	t->by_bits = tw_mem_zalloc(TW_DURATION_BITS + 1, sizeof *t->by_bits);
	return t->by_bits;
}

static void drop_counts(struct track *t)
{
	tw_mem_free(t->by_bits);
	t->by_bits = NULL;
}

static bool grow_open(struct mover *m)
{
	return m->cap < MOST_OPEN && TW_GROW_FROM(FIRST_OPEN, NULL, m->open, m->cap, m->cap);
}

/* Puts an open call in the place of record i. */
static inline void put(const struct track *t, uint64_t i, const struct open *o)
{
	t->records.at[i] = o->record;
	if (t->records.cpu)
		t->records.cpu[i] = o->cpu;
}

static inline void set_open(struct open *o, const struct track *t, uint64_t i, int64_t start_ns)
{
	o->record = t->records.at[i];
	o->start_ns = start_ns;
	if (t->records.cpu)
		o->cpu = t->records.cpu[i];
}

/* Returns the number of records that were not moved: 0 unless the last of these overlaps another
 * without nesting, too many calls contain it, or memory ran out.  A call that leaves the stack is
 * placed after the unread records and the calls that remain on the stack.  The track is passed by
 * value: otherwise the compiler would have to assume that moving a record changes it. */
static inline uint64_t move(struct mover *m, const struct track t, enum tw_status *ret)
{
	uint16_t *const depths = m->depths;
	uint64_t *const by_bits = t.by_bits;
	struct open *top = m->open;
	uint64_t depth = 0;
	uint64_t left = t.n;

	*ret = TW_OK;
	for (; left > 0; left--) {
		const struct call c = tw_record_call(&t.records, left - 1);
		int64_t next_ns = INT64_MAX; /* begin of the call after it */

		for (; top->start_ns > c.start_ns; top--) {
			next_ns = top->start_ns;
			put(&t, left + --depth, top);
			depths[left + depth] = (uint16_t)depth;
		}
		if (c.start_ns + c.dur_ns > next_ns)
			break;
		if (++depth == m->cap) {
			if (!grow_open(m)) {
				*ret = m->cap == MOST_OPEN ? TW_OK : TW_NOMEM;
				depth--;
				break;
			}
			top = m->open + depth - 1;
		}
		set_open(++top, &t, left - 1, c.start_ns);
		by_bits[tw_duration_bits(c.dur_ns)]++;
	}
	for (; depth > 0; top--) {
		put(&t, left + --depth, top);
		depths[left + depth] = (uint16_t)depth;
	}
	return left;
}

/* The stack begins with a call that no other precedes, so that searches end there. */
static uint64_t move_to_pre_order(struct mover *m, enum tw_status *ret)
{
	struct track without_cpu;

	if (!start_counts(m->track) || !grow_open(m)) {
		*ret = TW_NOMEM;
		return m->track->n;
	}
	m->open[0].start_ns = INT64_MIN;
	if (m->track->records.cpu)
		return move(m, *m->track, ret);
	without_cpu = *m->track;
	without_cpu.records.cpu = NULL; /* compiled to a shorter loop */
	return move(m, without_cpu, ret);
}

/* Undoes move_to_pre_order. */
static void move_to_post_order(struct mover *m, uint64_t left)
{
	const struct track *t = m->track;
	uint32_t depth = 0;
	uint64_t to = left;

	for (uint64_t i = left; i < t->n; i++) {
		while (depth > m->depths[i])
			put(t, to++, &m->open[--depth]);
		set_open(&m->open[depth++], t, i, 0);
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
		n->depths[i] = depth < TW_MOST_DEPTH ? (uint16_t)depth : TW_MOST_DEPTH;
		stack[depth++] = n->order[i];
	}
	if (n_cut)
		tw_builder_repair(b, TW_REPAIR_overlap_clipped, first, n_cut);
	return n_cut;
}

/* The first record that overlaps an earlier one without nesting; t->n if there is none. */
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
	return t->n;
}

static void report_order(
        struct tw_builder *b, const struct track *t, uint64_t n_cut, uint32_t *stack)
{
	uint64_t overlap;

	if (t->any_order)
		return;
	if (t->unordered) {
		tw_builder_repair(b, TW_REPAIR_order_restored, t->unordered_offset, t->n);
		return;
	}
	/* of two calls with equal ends, the outer was written first */
	overlap = n_cut ? t->n : first_overlap(t, stack);
	if (overlap < t->n)
		tw_builder_repair(b, TW_REPAIR_order_restored,
		        tw_record_offset(&t->records.at[overlap]), t->n);
}

static void report_depth(const struct nest *n, struct tw_builder *b)
{
	const struct track *t = n->track;

	for (uint64_t i = 0; i < t->n; i++)
		if (n->depths[i] >= b->limits.max_depth)
			tw_builder_repair(b, TW_REPAIR_depth_clipped,
			        tw_record_offset(&t->records.at[n->order ? n->order[i] : i]), 1);
}

/* The records stay in place; sorting takes ten bytes each. */
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

static enum tw_status move_in_memory(struct nest *n)
{
	struct mover m = {.track = n->track, .depths = n->depths};
	enum tw_status st;
	uint64_t left = move_to_pre_order(&m, &st);

	n->moved = left == 0;
	n->most_open = m.cap;
	if (left) {
		drop_counts(n->track);
		move_to_post_order(&m, left);
	}
	tw_mem_free(m.open);
	return st;
}

static bool reserve_depths(struct nest *n)
{
	if (!n->depths)
		n->depths = tw_mem_alloc_to_fill(n->track->n * sizeof *n->depths);
	return n->depths;
}

void tw_nest_move(struct nest *n, struct track *t)
{
	*n = (struct nest){.track = t};
	if (t->n == 0 || t->n > UINT32_MAX || t->spilled || t->unordered)
		return;
	n->status = reserve_depths(n) ? move_in_memory(n) : TW_NOMEM;
}

/* --- records in scratch --- */

struct spill_mover {
	struct mover m; /* its depths are those of the output */
	struct tw_builder *b;
	struct nest *nest;
	struct piece in;
	struct piece out;
};

static bool start_spill_mover(struct spill_mover *s)
{
	const uint64_t step = tw_piece_records(s->b);
	const struct track *t = s->nest->track;

	s->m.track = s->nest->track;
	s->m.depths = tw_mem_alloc(step, sizeof *s->m.depths);
	s->out.part.records.at = tw_mem_alloc(step, sizeof(struct record));
	s->out.part.records.cpu =
	        t->records.cpu ? tw_mem_alloc(step, sizeof *t->records.cpu) : NULL;
	s->out.cap = step;
	s->nest->depths_at = s->b->scratch_bytes;
	s->b->scratch_bytes += t->n * sizeof *s->m.depths;
	if (!s->m.depths || !s->out.part.records.at || (t->records.cpu && !s->out.part.records.cpu))
		s->b->status = TW_NOMEM;
	if (s->b->status == TW_OK && !start_counts(s->m.track))
		s->b->status = TW_NOMEM;
	return s->b->status == TW_OK && tw_spilled_prepare_moves(s->b, s->nest->track);
}

static void end_spill_mover(struct spill_mover *s)
{
	tw_mem_free(s->m.depths);
	tw_mem_free(s->m.open);
	tw_piece_done(&s->in);
	tw_piece_done(&s->out);
}

/* Writes the output piece from `place` to its end. */
static bool write_moved(struct spill_mover *s, uint64_t place)
{
	struct track *t = s->nest->track;
	const struct tw_scratch *scratch = &s->b->scratch;
	const uint64_t i = place % tw_piece_records(s->b);
	uint64_t n = tw_piece_records(s->b) - i;

	if (n > t->n - place)
		n = t->n - place;
	if (!tw_spilled_replace(s->b, t, place, n, s->out.part.records.at + i,
	            t->records.cpu ? s->out.part.records.cpu + i : NULL))
		return false;
	s->b->status =
	        scratch->write(scratch->arg, s->nest->depths_at + place * sizeof *s->m.depths,
	                s->m.depths + i, n * sizeof *s->m.depths, &s->b->why);
	return s->b->status == TW_OK;
}

/* Adds an open call to the output piece, and writes the piece once its first place is filled:
 * places are filled in descending order. */
static bool output_open(struct spill_mover *s, uint64_t place, uint32_t depth)
{
	const uint64_t i = place % tw_piece_records(s->b);

	put(&s->out.part, i, &s->m.open[depth]);
	s->m.depths[i] = (uint16_t)depth;
	return i || write_moved(s, place);
}

/* Moves the records of a piece; *left and *depth as in move_to_pre_order.  False: the next record
 * cannot be moved, or b->status is set. */
static bool move_piece(struct spill_mover *s, uint64_t *left, uint32_t *depth)
{
	int64_t innermost_ns = *depth ? s->m.open[*depth - 1].start_ns : INT64_MIN;

	for (; *left > s->in.first; --*left) {
		const uint64_t i = *left - 1 - s->in.first;
		const struct call c = tw_record_call(&s->in.part.records, i);
		int64_t next_ns = INT64_MAX;

		while (innermost_ns > c.start_ns) {
			next_ns = innermost_ns;
			--*depth;
			if (!output_open(s, *left + *depth, *depth))
				return false;
			innermost_ns = *depth ? s->m.open[*depth - 1].start_ns : INT64_MIN;
		}
		if (c.start_ns + c.dur_ns > next_ns || *depth == MOST_OPEN)
			return false;
		if (*depth == s->m.cap && !grow_open(&s->m)) {
			s->b->status = TW_NOMEM;
			return false;
		}
		set_open(&s->m.open[(*depth)++], &s->in.part, i, c.start_ns);
		s->m.track->by_bits[tw_duration_bits(c.dur_ns)]++;
		innermost_ns = c.start_ns;
	}
	return true;
}

/* Returns the number of records that were not moved; on failure b->status is set. */
static uint64_t move_spilled(struct spill_mover *s)
{
	const uint64_t step = tw_piece_records(s->b);
	uint64_t left = s->nest->track->n;
	uint32_t depth = 0;
	bool more = true;

	while (more && left) {
		s->b->status = tw_piece_read(
		        s->b, s->nest->track, (left - 1) / step * step, &s->in, &s->b->why);
		more = s->b->status == TW_OK && move_piece(s, &left, &depth);
	}
	while (s->b->status == TW_OK && depth-- > 0)
		(void)output_open(s, left + depth, depth);
	if (s->b->status == TW_OK && left % step && left < s->nest->track->n)
		(void)write_moved(s, left);
	return left;
}

/* Reads the next piece in pre-order, and its depths. */
static bool next_piece(struct nest_reader *r)
{
	const struct tw_scratch *scratch = &r->builder->scratch;
	const struct track *t = r->nest->track;
	const uint64_t first = r->piece.first + r->piece.part.n;

	if (first == t->n || r->status != TW_OK)
		return false;
	r->at = 0;
	r->status = tw_piece_read(r->builder, t, first, &r->piece, &r->why);
	if (!r->depths)
		r->depths = tw_mem_alloc(tw_piece_records(r->builder), sizeof *r->depths);
	if (r->status == TW_OK && !r->depths)
		r->status = tw_oom(&r->why);
	if (r->status == TW_OK)
		r->status =
		        scratch->read(scratch->arg, r->nest->depths_at + first * sizeof *r->depths,
		                r->depths, r->piece.part.n * sizeof *r->depths, &r->why);
	return r->status == TW_OK;
}

static enum tw_status report_depth_of_pieces(const struct nest *n, struct tw_builder *b)
{
	struct nest_reader r = {.nest = n, .builder = b};

	while (next_piece(&r))
		for (uint64_t i = 0; i < r.piece.part.n; i++)
			if (r.depths[i] >= b->limits.max_depth)
				tw_builder_repair(b, TW_REPAIR_depth_clipped,
				        tw_record_offset(&r.piece.part.records.at[i]), 1);
	b->status = tw_nest_read_end(&r, TW_OK, &b->why);
	return b->status;
}

/* *ret_left: the number of records that were not moved, because the last of these overlaps another,
 * or too many calls contain it. */
static enum tw_status open_spilled(struct nest *n, struct tw_builder *b, uint64_t *ret_left)
{
	struct spill_mover s = {.b = b, .nest = n};
	bool deep;

	if (start_spill_mover(&s))
		*ret_left = move_spilled(&s);
	if (*ret_left)
		drop_counts(n->track);
	deep = s.m.cap > b->limits.max_depth;
	end_spill_mover(&s);
	return b->status == TW_OK && *ret_left == 0 && deep ? report_depth_of_pieces(n, b)
	                                                    : b->status;
}

/* Undoes the moves of the records after the first `left`, once all are in memory. */
static enum tw_status move_back(struct nest *n, struct tw_builder *b, uint64_t left)
{
	struct mover m = {.track = n->track, .depths = n->depths};
	uint32_t deepest = 0;

	b->status = b->scratch.read(b->scratch.arg, n->depths_at + left * sizeof *n->depths,
	        n->depths + left, (n->track->n - left) * sizeof *n->depths, &b->why);
	if (b->status != TW_OK)
		return b->status;
	for (uint64_t i = left; i < n->track->n; i++)
		if (n->depths[i] > deepest)
			deepest = n->depths[i];
	while (m.cap <= deepest)
		if (!grow_open(&m)) {
			tw_mem_free(m.open);
			return b->status = TW_NOMEM;
		}
	move_to_post_order(&m, left);
	tw_mem_free(m.open);
	return TW_OK;
}

/* --- all tracks --- */

/* left: as returned by open_spilled. */
static enum tw_status open_in_memory(struct nest *n, struct tw_builder *b, uint64_t left)
{
	struct track *t = n->track;
	enum tw_status st = TW_OK;

	n->loaded = t->spilled;
	if (t->spilled && !tw_builder_load(b, t))
		return b->status;
	if (!reserve_depths(n))
		return TW_NOMEM;
	if (left < t->n)
		st = move_back(n, b, left);
	if (st == TW_OK && n->loaded && !t->unordered)
		st = move_in_memory(n);
	if (st == TW_OK && !n->moved)
		return open_sorted(n, b);
	if (st == TW_OK && n->most_open > b->limits.max_depth)
		report_depth(n, b);
	return st;
}

enum tw_status tw_nest_open(struct nest *n, struct tw_builder *b, struct tw_err *err)
{
	struct track *t = n->track;
	uint64_t left = t->n;
	enum tw_status st = n->status;

	if (t->n > UINT32_MAX)
		st = TW_TOO_LARGE;
	if (st == TW_OK && t->spilled && !t->unordered && tw_spilled_may_move(b, t))
		st = open_spilled(n, b, &left);
	if (st == TW_OK && left)
		st = open_in_memory(n, b, left);
	if (st != TW_OK && st == b->status && st != TW_NOMEM)
		return tw_builder_fail(b, err);
	return st == TW_OK ? TW_OK : tw_fail(err, st, "a thread's calls do not fit in memory");
}

void tw_nest_drop(const struct nest *nest, uint64_t n)
{
	const struct track *t = nest->track;

	if (nest->order || t->spilled)
		return;
	tw_mem_drop(t->records.at, n * sizeof *t->records.at);
	tw_mem_drop(t->records.cpu, n * sizeof *t->records.cpu);
	tw_mem_drop(nest->depths, n * sizeof *nest->depths);
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

/* Nest and records are passed by value: otherwise the compiler would have to assume that storing a
 * slice changes them. */
static inline uint32_t read_slices(struct nest_reader *r, const struct nest n,
        const struct records records, struct tw_slice *ret, uint32_t max)
{
	const uint32_t *indexes = r->builder->indexes;
	const uint32_t max_depth = r->builder->limits.max_depth;
	const uint64_t end = n.track->n;
	struct tw_slice *to = ret;
	uint64_t at = r->at;

	for (; to < ret + max && at < end; at++) {
		const uint64_t i = n.order ? n.order[at] : at;
		const struct call c = tw_record_call(&records, i);

		if (n.order && at + AHEAD < end) /* records are accessed at random */
			__builtin_prefetch(&records.at[n.order[at + AHEAD]]);
		if (n.depths[at] >= max_depth)
			continue;
		*to++ = (struct tw_slice){.start_ns = c.start_ns,
		        .dur_ns = c.dur_ns,
		        .cpu_ns = records.cpu ? tw_record_cpu(&records, i) : -1,
		        .method = indexes[c.sym - 1],
		        .depth = n.depths[at]};
	}
	r->at = (uint32_t)at;
	return (uint32_t)(to - ret);
}

static uint32_t read_nest(
        struct nest_reader *r, const struct nest *nest, struct tw_slice *ret, uint32_t max)
{
	const struct track *t = nest->track;
	const struct nest in_order = {.track = nest->track, .depths = nest->depths};
	struct records without_cpu = t->records;

	/* the same loop three times, so that it need not check for either */
	if (nest->order)
		return read_slices(r, *nest, t->records, ret, max);
	if (t->records.cpu)
		return read_slices(r, in_order, t->records, ret, max);
	without_cpu.cpu = NULL;
	return read_slices(r, in_order, without_cpu, ret, max);
}

static uint32_t read_pieces(struct nest_reader *r, struct tw_slice *ret, uint32_t max)
{
	uint32_t n = 0;

	while (n == 0 && (r->at < r->piece.part.n || next_piece(r))) {
		const struct nest piece = {.track = &r->piece.part, .depths = r->depths};

		n = read_nest(r, &piece, ret, max);
	}
	return n;
}

uint32_t tw_nest_read(struct nest_reader *r, struct tw_slice *ret, uint32_t max)
{
	const struct tw_running *running = &r->nest->running;
	uint32_t n = r->nest->track->spilled ? read_pieces(r, ret, max)
	                                     : read_nest(r, r->nest, ret, max);

	for (uint32_t i = 0; running->any && i < n; i++)
		ret[i].cpu_ns = tw_running_within(
		        running, ret[i].start_ns, ret[i].start_ns + ret[i].dur_ns, &r->running_at);
	return n;
}

enum tw_status tw_nest_read_end(struct nest_reader *r, enum tw_status st, struct tw_err *err)
{
	tw_piece_done(&r->piece);
	tw_mem_free(r->depths);
	r->depths = NULL;
	if (st == TW_OK && r->status != TW_OK && err)
		tw_err_copy(err, &r->why);
	return st == TW_OK ? r->status : st;
}
