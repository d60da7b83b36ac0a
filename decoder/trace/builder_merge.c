/*
 * builder_merge.c - merges several inputs into one trace.
 *
 * Side files have their own clocks: the first input's clock is the trace's, and times of a later
 * input are shifted by the difference of their readings.  Times of a side file before the trace's
 * zero are clamped to it; notes that ended before are dropped.
 *
 * The same thread may occur in several forms: with 15 bits of its id in one file and in full in
 * another, or without its process.  At the end, ids and processes are completed and such tracks
 * become one: two orders of ends are merged into one, and nesting proceeds as usual. Tracks of
 * different sources (calls, samples) stay separate.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

#include "decoder/base/order.h"

#define FARTHEST_NS ((int64_t)24 * 3600 * 1000000000)

/* --- clocks --- */

void tw_builder_next_input(struct tw_builder *b)
{
	b->input++;
	b->shift_ns = 0;
	b->placed = false;
	b->unplaced = false;
	b->of_system = false;
}

void tw_builder_input_is_system(struct tw_builder *b)
{
	b->of_system = true;
}

void tw_builder_next_input_at_end(struct tw_builder *b)
{
	tw_builder_next_input(b);
	b->shift_ns = b->last_ns;
	b->placed = true;
}

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

/* The difference from `reading` to the nearest known base. */
static bool nearest(int64_t reading, const int64_t *bases, unsigned n, int64_t *ret_shift_ns)
{
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		if (bases[i] <= 0)
			continue;
		if (!found || distance(reading, bases[i]) < distance(*ret_shift_ns, 0))
			*ret_shift_ns = reading - bases[i];
		found = true;
	}
	return found;
}

static bool shift_between(
        const struct tw_clock *first, const struct tw_clock *side, int64_t *ret_shift_ns)
{
	const int64_t of_first[] = {first->mono_base_ns, first->boot_base_ns, first->some_base_ns};
	const int64_t of_side[] = {side->mono_base_ns, side->boot_base_ns, side->some_base_ns};

	for (unsigned i = 0; i < 2; i++)
		if (of_first[i] >= 0 && of_side[i] >= 0) {
			*ret_shift_ns = of_side[i] - of_first[i];
			return true;
		}
	if (side->some_base_ns > 0)
		return nearest(side->some_base_ns, of_first, 3, ret_shift_ns);
	if (first->some_base_ns > 0 && nearest(first->some_base_ns, of_side, 2, ret_shift_ns)) {
		*ret_shift_ns = -*ret_shift_ns;
		return true;
	}
	return false;
}

void tw_builder_clock(struct tw_builder *b, const struct tw_clock *clock)
{
	if (b->input == 0) {
		b->clock = *clock;
		return;
	}
	if (b->placed)
		return; /* events already added cannot be shifted */
	b->placed = true;
	b->unplaced = !shift_between(&b->clock, clock, &b->shift_ns) ||
	              distance(b->shift_ns, 0) > FARTHEST_NS;
	if (b->unplaced)
		b->shift_ns = 0;
}

bool tw_builder_is_before(const struct tw_builder *b, int64_t ts_ns, int64_t dur_ns)
{
	int64_t end;

	if (b->unplaced || b->shift_ns >= 0 || ts_ns < 0)
		return false;
	return !__builtin_add_overflow(ts_ns, dur_ns > 0 ? dur_ns : 0, &end) && end < -b->shift_ns;
}

bool tw_builder_place(struct tw_builder *b, int64_t *ts_ns, int64_t *dur_ns, uint64_t offset)
{
	int64_t begin;
	int64_t end;

	if (b->unplaced) {
		tw_builder_repair(b, TW_REPAIR_side_clock_unknown, offset, 1);
		return false;
	}
	if (b->shift_ns == 0 || *ts_ns < 0 || *ts_ns > INT64_MAX / 4)
		return true;
	begin = *ts_ns + b->shift_ns;
	if (begin < 0) {
		end = *dur_ns > 0 && *dur_ns < INT64_MAX / 4 ? begin + *dur_ns : begin;
		if (*dur_ns > 0)
			*dur_ns = end > 0 ? end : 0;
		tw_builder_repair(b, TW_REPAIR_begin_clamped, offset, 1);
		begin = 0;
	}
	*ts_ns = begin;
	return true;
}

/* --- processes and ids --- */

void tw_builder_process(struct tw_builder *b, uint64_t tid, uint32_t pid)
{
	if (b->n_processes >= b->limits.max_threads)
		return;
	if (!TW_GROW_MEM(b->processes, b->n_processes, b->cap_processes)) {
		b->status = TW_NOMEM;
		return;
	}
	b->processes[b->n_processes++] = (struct thread_process){tid, pid};
}

static void complete_pid(const struct tw_builder *b, struct track *t)
{
	for (uint32_t i = 0; t->pid == 0 && i < b->n_processes; i++)
		if (b->processes[i].tid == t->tid)
			t->pid = b->processes[i].pid;
}

struct fit { /* full ids with the low bits of a track */
	uint64_t found;
	uint32_t n;
};

static bool low_bits_agree(const struct track *t, uint64_t full)
{
	return (full & (t->kind == TW_TID_LOW15 ? 0x7FFF : 0xFFFF)) == t->tid;
}

static void count_fit(struct fit *f, uint64_t full, const struct track *t)
{
	if (!low_bits_agree(t, full) || (f->n && f->found == full))
		return;
	f->found = full;
	f->n++;
}

/* The one matching full id, among those of the thread list and of files with full ids.  If several
 * match, the main thread's, which nearly always has the most calls; otherwise the low bits
 * unchanged. */
static uint64_t complete_tid(struct tw_builder *b, const struct track *t)
{
	struct fit f = {0};

	if (b->clock.pid)
		count_fit(&f, b->clock.pid, t);
	for (uint32_t i = 0; i < b->n_names; i++)
		if (b->names[i].pid == 0 || b->names[i].pid == t->pid)
			count_fit(&f, b->names[i].tid, t);
	for (uint32_t i = 0; i < b->n_tracks; i++)
		if (b->tracks[i].kind == TW_TID_FULL && b->tracks[i].pid == t->pid)
			count_fit(&f, b->tracks[i].tid, t);
	if (f.n > 1)
		tw_builder_repair(b, TW_REPAIR_thread_id_ambiguous, t->first_offset, t->n);
	if (b->clock.pid && low_bits_agree(t, b->clock.pid))
		return b->clock.pid;
	return f.n == 1 ? f.found : t->tid;
}

static struct thread_name *listed(struct tw_builder *b, uint64_t tid)
{
	for (uint32_t i = 0; i < b->n_names; i++)
		if (b->names[i].tid == tid)
			return &b->names[i];
	return NULL;
}

/* Newer ART numbers its threads from 1 and lists them so: 16 bits are all there is.  Only the main
 * thread's id is known: that of the process. */
static uint64_t complete_low16(struct tw_builder *b, const struct track *t)
{
	struct thread_name *name = listed(b, t->tid);

	if (!name)
		return complete_tid(b, t);
	if (!b->clock.pid || !tw_str_eq(name->name, TW_STR("main")) || listed(b, b->clock.pid))
		return t->tid;
	name->tid = b->clock.pid;
	return b->clock.pid;
}

static uint64_t full_tid(struct tw_builder *b, const struct track *t)
{
	if (t->kind == TW_TID_LOW15)
		return complete_tid(b, t);
	return t->kind == TW_TID_LOW16 ? complete_low16(b, t) : t->tid;
}

static void complete_ids(struct tw_builder *b)
{
	for (uint32_t i = 0; i < b->n_tracks; i++)
		complete_pid(b, &b->tracks[i]);
	for (uint32_t i = 0; i < b->n_tracks; i++) {
		struct track *t = &b->tracks[i];
		uint64_t tid = full_tid(b, t);

		if (tid != t->tid && low_bits_agree(t, tid))
			tw_builder_repair(b, TW_REPAIR_thread_id_truncated, t->first_offset, t->n);
		t->tid = tid;
	}
}

/* --- tracks of one thread --- */

struct cursor { /* reads the records of a track in order */
	const struct track *track;
	struct piece piece;
	uint64_t at; /* in the piece */
};

/* Reads the next piece if necessary.  False: at the end, or failed. */
static bool has_more(struct tw_builder *b, struct cursor *c)
{
	if (c->at < c->piece.part.n)
		return true;
	b->status = tw_piece_read(b, c->track, c->piece.first + c->at, &c->piece, &b->why);
	if (b->status != TW_OK)
		return false;
	c->at = 0;
	return c->piece.part.n > 0;
}

/* By end; for equal ends the inner one first. */
static bool precedes(const struct cursor *a, const struct cursor *b)
{
	const struct call x = tw_record_call(&a->piece.part.records, a->at);
	const struct call y = tw_record_call(&b->piece.part.records, b->at);
	int64_t x_end = x.start_ns + x.dur_ns;
	int64_t y_end = y.start_ns + y.dur_ns;

	return x_end != y_end ? x_end < y_end : x.start_ns >= y.start_ns;
}

/* Makes space for a record, in memory if scratch has none. Only false: memory's share is used up.
 */
static bool reserve_copy(struct tw_builder *b, struct track *to)
{
	const uint64_t more = tw_piece_records(b);

	if (to->n < to->cap)
		return true;
	if (tw_builder_must_spill(b, to, more))
		return tw_builder_spill(b, to);
	return tw_builder_left_for_records(b) >= more * tw_track_record_bytes(to) &&
	       tw_builder_resize_records(b, to, to->cap + more);
}

static void copy_record(struct tw_builder *b, struct track *to, struct cursor *from)
{
	const struct track *part = &from->piece.part;
	const struct call c = tw_record_call(&part->records, from->at);
	const int64_t cpu_ns = part->records.cpu ? tw_record_cpu(&part->records, from->at) : -1;

	if (!reserve_copy(b, to)) {
		if (b->status == TW_OK)
			tw_builder_repair(b, TW_REPAIR_slice_limit, TW_NO_OFFSET, 1);
		from->at++;
		return;
	}
	if (!tw_builder_grow_rare(b, to, &c, cpu_ns))
		return;
	tw_record_put(&to->records, to->n - to->n_spilled, &c, part->records.at[from->at].offset);
	if (to->records.cpu)
		tw_record_put_cpu(&to->records, to->n - to->n_spilled, cpu_ns);
	to->n++;
	from->at++;
}

static void interleave(
        struct tw_builder *b, struct track *to, const struct track *one, const struct track *two)
{
	bool by_end = !one->unordered && !two->unordered;
	struct cursor x = {.track = one};
	struct cursor y = {.track = two};

	while (b->status == TW_OK) {
		bool more_x = has_more(b, &x);
		bool more_y = has_more(b, &y);

		if (b->status != TW_OK || (!more_x && !more_y))
			break;
		copy_record(b, to, more_x && (!more_y || !by_end || precedes(&x, &y)) ? &x : &y);
	}
	tw_piece_done(&x.piece);
	tw_piece_done(&y.piece);
	to->unordered = !by_end;
	to->any_order = one->any_order || two->any_order;
}

/* Space for the records of both tracks; a part of them if some are in scratch. */
static bool make_room(
        struct tw_builder *b, struct track *both, const struct track *t, const struct track *side)
{
	bool with_cpu = t->records.cpu || side->records.cpu;

	both->cap = t->spilled || side->spilled ? tw_piece_records(b) : t->n + side->n;
	both->records = (struct records){.at = tw_mem_alloc(both->cap, sizeof *both->records.at),
	        .cpu = with_cpu ? tw_mem_alloc(both->cap, sizeof *both->records.cpu) : NULL,
	        .base_ns = t->n ? t->records.base_ns : side->records.base_ns};
	b->record_bytes += both->cap * tw_track_record_bytes(both);
	if (!both->records.at || (with_cpu && !both->records.cpu))
		b->status = TW_NOMEM;
	return b->status == TW_OK;
}

static void release(struct tw_builder *b, struct track *t)
{
	b->record_bytes -=
	        (t->cap - t->n_spilled) * tw_track_record_bytes(t) + tw_rare_bytes(&t->records);
	tw_builder_free_records(t);
}

static enum tw_status join(struct tw_builder *b, uint32_t into, uint32_t from)
{
	struct track *t = &b->tracks[into];
	struct track *side = &b->tracks[from];
	struct track both = *t;

	side->merged_into = into + 1;
	if (t->pid == 0)
		both.pid = t->pid = side->pid;
	if (side->n == 0)
		return TW_OK;
	both.n = both.n_spilled = 0;
	both.spilled = NULL;
	if (make_room(b, &both, t, side)) /* ties: records of the side file are the inner ones */
		interleave(b, &both, side, t);
	if (b->status != TW_OK) {
		release(b, &both);
		return b->status;
	}
	if (!t->unordered)
		both.unordered_offset = side->unordered_offset;
	if (t->n == 0 || side->first_ns < t->first_ns)
		both.first_ns = side->first_ns;
	if (side->last_end_ns > both.last_end_ns)
		both.last_end_ns = side->last_end_ns;
	if (t->n == 0) {
		both.source = side->source;
		both.interval_ns = side->interval_ns;
	}
	release(b, side);
	release(b, t);
	*t = both;
	return TW_OK;
}

struct same { /* tracks sorted so that those of one thread are adjacent */
	uint64_t tid;
	uint32_t pid, at;
};

/* An unknown process last. */
TW_ORDER_BY(by_thread, struct same, TW_RISING(tid), TW_FALLING(pid), TW_RISING(at))

static bool one_thread(const struct track *a, const struct track *b)
{
	return a->tid == b->tid && (a->pid == b->pid || b->pid == 0) &&
	       (a->source == b->source || a->n == 0 || b->n == 0);
}

static enum tw_status join_same(struct tw_builder *b, const struct same *list)
{
	enum tw_status st = TW_OK;

	for (uint32_t i = 0; i < b->n_tracks; i++) {
		uint32_t into = list[i].at;

		if (b->tracks[into].merged_into)
			continue;
		for (uint32_t k = i + 1; st == TW_OK && k < b->n_tracks; k++) {
			uint32_t from = list[k].at;

			if (b->tracks[from].tid != b->tracks[into].tid)
				break;
			if (!b->tracks[from].merged_into &&
			        one_thread(&b->tracks[into], &b->tracks[from]))
				st = join(b, into, from);
		}
	}
	return st;
}

enum tw_status tw_builder_join_tracks(struct tw_builder *b)
{
	struct same *list;
	enum tw_status st;

	complete_ids(b);
	if (b->n_tracks < 2)
		return TW_OK;
	list = tw_mem_alloc(b->n_tracks, sizeof *list);
	if (!list)
		return TW_NOMEM;
	for (uint32_t i = 0; i < b->n_tracks; i++)
		list[i] = (struct same){b->tracks[i].tid, b->tracks[i].pid, i};
	TW_SORT(list, b->n_tracks, by_thread);
	st = join_same(b, list);
	tw_mem_free(list);
	return st;
}
