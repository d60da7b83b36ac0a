/*
 * query_notes.c - lanes and sums of notes, activity of threads.
 *
 * Lanes: one pass over the notes by time. Each is assigned to its track by a hash of kind, thread
 * and track name, to the first free row of the track, and to its lane by row and outcome. A lane
 * holds one open run: a note shorter than a cell joins it if it begins in the same cell; any other
 * note closes it. Rows depend on all earlier notes of the track, so the pass begins at the trace's
 * start: a note is on the same row in every range.
 */
#include "server/query/query_notes.h"

#include "decoder/base/list.h"
#include "decoder/base/sum.h"

/* --- one pass over notes --- */

enum { CHECK_EVERY = 1024 };

/* State of one pass over notes: the selected threads and the deadline. */
struct pass { /* the caller sets a and deadline first */
	struct tw_arena *a;
	const struct tw_deadline *deadline;
	const bool *wanted; /* by thread id, 0: notes of the whole trace */
	uint32_t n_wanted;
	uint32_t seen;
	bool no_memory, partial;
};

static enum tw_status pass_begin(struct pass *p, const struct tw_trace_file *f,
        const struct tw_selection *sel, struct tw_err *err)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	bool *wanted = tw_arena_zalloc(p->a, (size_t)n + 1, sizeof *wanted);

	if (!wanted)
		return tw_oom(err);
	wanted[0] = sel->all_threads;
	for (uint32_t i = 0; i < n; i++)
		wanted[i + 1] = tw_selection_has(sel, &t[i]);
	p->wanted = wanted;
	p->n_wanted = n + 1;
	return TW_OK;
}

/* Returns whether the thread (0: the whole trace) is selected. */
static bool pass_wants(const struct pass *p, uint32_t thread_id)
{
	return thread_id < p->n_wanted && p->wanted[thread_id];
}

/* Call after each note; false: stop at the deadline, without memory, or at a limit. */
static bool pass_continue(struct pass *p)
{
	if (++p->seen % CHECK_EVERY == 0 && tw_deadline_passed(p->deadline))
		p->partial = true;
	return !p->partial && !p->no_memory;
}

/* Returns st, or TW_NOMEM if memory ran out. */
static enum tw_status pass_end(const struct pass *p, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && p->no_memory)
		return tw_oom(err);
	return st;
}

/* --- lanes --- */

enum { PARTS = 8 };

struct part { /* a text of an open run, and its time */
	uint32_t text;
	int64_t time_ns, longest_ns, value;
};

struct open_run {
	struct tw_lane_run run;
	int64_t cell; /* -1: no run is open */
	struct part parts[PARTS];
	uint32_t n_parts;
};

struct track {
	int64_t end_ns[TW_LANE_ROWS_MAX];                   /* of each row */
	uint32_t lanes[TW_LANE_ROWS_MAX][TW_OUTCOME_COUNT]; /* number + 1; 0: no lane */
};

struct lanes {
	struct pass pass;
	const struct tw_lanes_query *q;
	int64_t width_ns;
	struct tw_note_keys tracks, texts;
	struct track **of;      /* tracks by number */
	struct tw_lane *lanes;  /* TW_LANES_MAX */
	struct open_run *opens; /* open runs, by lane */
	uint32_t n_lanes, n_runs;
};

static int64_t end_of(const struct tw_note_row *n)
{
	return n->dur_ns > 0 ? n->ts_ns + n->dur_ns : n->ts_ns;
}

static bool push_run(struct lanes *l, struct tw_lane *lane, const struct tw_lane_run *r)
{
	if (l->n_runs == TW_LANE_RUNS_MAX) {
		l->pass.partial = true;
		return false;
	}
	if (!TW_GROW_FROM(16, l->pass.a, lane->runs, lane->n, lane->cap)) {
		l->pass.no_memory = true;
		return false;
	}
	lane->runs[lane->n++] = *r;
	l->n_runs++;
	return true;
}

static bool close_run(struct lanes *l, struct tw_lane *lane, struct open_run *o)
{
	const struct part *most = &o->parts[0];

	if (o->cell < 0)
		return true;
	o->cell = -1;
	for (uint32_t i = 1; i < o->n_parts; i++)
		if (o->parts[i].time_ns > most->time_ns)
			most = &o->parts[i];
	o->run.text = most->text;
	if (lane->kind != TW_NOTE_counter)
		o->run.value = most->value;
	return push_run(l, lane, &o->run);
}

/* A ninth text replaces the one with the least time, which cannot become the one with the most. */
static struct part *part_of(struct open_run *o, uint32_t text)
{
	struct part *least = &o->parts[0];

	for (uint32_t i = 0; i < o->n_parts; i++) {
		if (o->parts[i].text == text)
			return &o->parts[i];
		if (o->parts[i].time_ns < least->time_ns)
			least = &o->parts[i];
	}
	if (o->n_parts < PARTS)
		least = &o->parts[o->n_parts++];
	*least = (struct part){.text = text, .longest_ns = -2};
	return least;
}

static void join_run(struct open_run *o, const struct tw_note_row *n, uint32_t text)
{
	struct part *p = part_of(o, text);
	int64_t end = end_of(n);

	p->time_ns += n->dur_ns > 0 ? n->dur_ns : 1;
	if (n->dur_ns > p->longest_ns) {
		p->longest_ns = n->dur_ns;
		p->value = n->value;
	}
	o->run.notes++;
	o->run.value = n->value;
	if (n->value < o->run.low)
		o->run.low = n->value;
	if (n->value > o->run.high)
		o->run.high = n->value;
	if (end > o->run.ts_ns + (o->run.dur_ns > 0 ? o->run.dur_ns : 0))
		o->run.dur_ns = end - o->run.ts_ns;
}

static struct tw_lane_run run_of(const struct tw_note_row *n, uint32_t text)
{
	return (struct tw_lane_run){.ts_ns = n->ts_ns,
	        .dur_ns = n->dur_ns,
	        .value = n->value,
	        .low = n->value,
	        .high = n->value,
	        .text = text,
	        .notes = 1};
}

static bool lane_add(struct lanes *l, uint32_t number, const struct tw_note_row *n, uint32_t text)
{
	struct tw_lane *lane = &l->lanes[number];
	struct open_run *o = &l->opens[number];
	struct tw_lane_run single = run_of(n, text);
	int64_t at = n->ts_ns > l->q->from_ns ? n->ts_ns - l->q->from_ns : 0;
	int64_t cell = at / l->width_ns;

	if (n->dur_ns >= l->width_ns)
		return close_run(l, lane, o) && push_run(l, lane, &single);
	if (o->cell != cell) {
		if (!close_run(l, lane, o))
			return false;
		o->run = single;
		o->run.notes = 0;
		o->cell = cell;
		o->n_parts = 0;
	}
	join_run(o, n, text);
	return true;
}

/* Finds or creates the note's track. NULL: there is none, and the reason is recorded. */
static struct track *find_track(struct lanes *l, const struct tw_note_row *n, struct tw_str *ret)
{
	struct tw_note_key key = {n->kind, n->thread_id, tw_note_track(n)};
	uint32_t number = 0;
	enum tw_note_found found = tw_note_keys_number(&l->tracks, key, &number);

	if (found == TW_NOTE_ADDED) {
		l->of[number] = tw_arena_zalloc(l->pass.a, 1, sizeof **l->of);
		for (int i = 0; l->of[number] && i < TW_LANE_ROWS_MAX; i++)
			l->of[number]->end_ns[i] = INT64_MIN;
		if (!l->of[number])
			found = TW_NOTE_NO_MEMORY;
	}
	l->pass.no_memory = l->pass.no_memory || found == TW_NOTE_NO_MEMORY;
	l->pass.partial = l->pass.partial || found == TW_NOTE_FULL;
	if (found != TW_NOTE_KNOWN && found != TW_NOTE_ADDED)
		return NULL;
	*ret = l->tracks.keys[number].text;
	return l->of[number];
}

/* The first row that is free when the note begins, otherwise the last. Thread states and values of
 * counters follow each other. */
static uint32_t take_row(struct track *t, const struct tw_note_row *n)
{
	uint32_t row = 0;

	if (n->kind == TW_NOTE_state || n->kind == TW_NOTE_counter)
		return 0;
	while (row < TW_LANE_ROWS_MAX - 1 && t->end_ns[row] > n->ts_ns)
		row++;
	if (end_of(n) > t->end_ns[row])
		t->end_ns[row] = end_of(n);
	return row;
}

static bool find_lane(struct lanes *l, struct track *t, struct tw_lane like, uint32_t *ret)
{
	uint32_t *number = &t->lanes[like.row][like.outcome];

	if (!*number && l->n_lanes == TW_LANES_MAX) {
		l->pass.partial = true;
		return false;
	}
	if (!*number) {
		l->lanes[l->n_lanes] = like;
		l->opens[l->n_lanes].cell = -1;
		*number = ++l->n_lanes;
	}
	*ret = *number - 1;
	return true;
}

static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct lanes *l = arg;
	struct tw_note_row early = *n;
	struct tw_lane like = {.kind = n->kind, .thread_id = n->thread_id};
	struct track *track;
	uint32_t text = 0;
	uint32_t lane = 0;
	bool ended; /* before the range */
	enum tw_note_found found;

	(void)id;
	if (n->ts_ns >= l->q->to_ns)
		return false; /* they come by time */
	if (!(l->q->kinds >> n->kind & 1) || !pass_wants(&l->pass, n->thread_id))
		return pass_continue(&l->pass);
	ended = n->ts_ns < l->q->from_ns && end_of(n) < l->q->from_ns;
	if (ended && n->kind == TW_NOTE_state)
		return pass_continue(&l->pass);
	track = find_track(l, n, &like.name);
	if (!track)
		return false;
	like.row = take_row(track, n);
	if (ended && n->kind != TW_NOTE_counter)
		return pass_continue(&l->pass);
	like.outcome = tw_note_outcome(n);
	found = tw_note_keys_number(&l->texts, (struct tw_note_key){.text = n->text}, &text);
	l->pass.no_memory = l->pass.no_memory || found == TW_NOTE_NO_MEMORY;
	l->pass.partial = l->pass.partial || found == TW_NOTE_FULL;
	if (!pass_continue(&l->pass) || !find_lane(l, track, like, &lane))
		return false;
	if (n->kind == TW_NOTE_counter && n->ts_ns < l->q->from_ns) {
		early.ts_ns = l->q->from_ns; /* the value at from_ns, unless another note follows */
		l->opens[lane].cell = -1;
		n = &early;
	}
	return lane_add(l, lane, n, text) && pass_continue(&l->pass);
}

/* By track, row and outcome. */
static void order_lanes(const struct lanes *l, struct tw_lane *ret)
{
	for (uint32_t i = 0; i < l->tracks.n; i++)
		for (uint32_t row = 0; row < TW_LANE_ROWS_MAX; row++)
			for (uint32_t o = 0; o < TW_OUTCOME_COUNT; o++)
				if (l->of[i]->lanes[row][o])
					*ret++ = l->lanes[l->of[i]->lanes[row][o] - 1];
}

static enum tw_status lanes_done(struct lanes *l, struct tw_lanes *ret, struct tw_err *err)
{
	struct tw_str *texts = tw_arena_alloc(l->pass.a, l->texts.n + 1, sizeof *texts);
	struct tw_lane *lanes = tw_arena_zalloc(l->pass.a, l->n_lanes + 1, sizeof *lanes);

	if (!texts || !lanes)
		return tw_oom(err);
	for (uint32_t i = 0; i < l->texts.n; i++)
		texts[i] = l->texts.keys[i].text;
	for (uint32_t i = 0; i < l->n_lanes && !l->pass.no_memory; i++)
		if (!close_run(l, &l->lanes[i], &l->opens[i]))
			break;
	if (!l->pass.no_memory)
		order_lanes(l, lanes);
	*ret = (struct tw_lanes){lanes, l->n_lanes, texts, l->texts.n, l->pass.partial};
	return pass_end(&l->pass, TW_OK, err);
}

enum tw_status tw_query_lanes(struct tw_trace_file *f, const struct tw_lanes_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_lanes *ret,
        struct tw_err *err)
{
	struct lanes l = {.pass = {.a = a, .deadline = deadline},
	        .q = q,
	        .tracks = {.a = a, .max = TW_LANES_MAX},
	        .texts = {.a = a, .max = TW_NOTE_SUMS_MAX}};
	struct tw_note_query rows = {.kind = TW_NOTE_COUNT,
	        .from_ns = q->kinds == UINT64_C(1) << TW_NOTE_state ? q->from_ns : INT64_MIN,
	        .to_ns = q->to_ns,
	        .limit = UINT32_MAX};
	enum tw_status st = pass_begin(&l.pass, f, q->sel, err);

	if (st != TW_OK)
		return st;
	l.width_ns = (q->to_ns - q->from_ns) / q->cells + 1;
	l.of = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.of);
	l.lanes = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.lanes);
	l.opens = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.opens);
	if (!l.of || !l.lanes || !l.opens)
		return tw_oom(err);
	st = pass_end(&l.pass, tw_trace_file_notes(f, &rows, add_note, &l, err), err);
	return st == TW_OK ? lanes_done(&l, ret, err) : st;
}

/* --- activity of threads ---
 *
 * A thread's activity over time, as cells.
 *
 * Outermost calls cover cells, except for waits in them. Coarser levels merge calls across small
 * gaps, which a cell cannot show anyway; the finest level with few enough slices in the range is
 * used. The running time is the CPU time of outermost calls, if known.
 */

enum { SLICES_FEW = 1 << 17 };

struct strip {
	int64_t from_ns, to_ns, width_ns;
	int64_t covered_ns[TW_LANE_CELLS_MAX];
	int64_t cpu_ns;   /* of outermost calls */
	bool cpu_unknown; /* an outermost call has no CPU time */
	uint32_t cells;
	const struct tw_waits *waits;
	uint64_t few; /* maximum number of slices to read; 0: the coarsest level */
};

struct level { /* neighbours in a chunk directory */
	const struct tw_chunk_row *rows;
	uint32_t n;
};

/* sign: 1 for a call, -1 for a wait in it. */
static void cover(struct strip *s, const struct tw_slice *slice, int sign)
{
	int64_t end = slice->start_ns + slice->dur_ns;
	int64_t from = (slice->start_ns > s->from_ns ? slice->start_ns : s->from_ns) - s->from_ns;
	int64_t to = (end < s->to_ns ? end : s->to_ns) - s->from_ns;

	for (int64_t cell = from / s->width_ns; cell < s->cells && from < to; cell++) {
		int64_t edge = (cell + 1) * s->width_ns;
		int64_t upto = to < edge ? to : edge;

		s->covered_ns[cell] += sign * (upto - from);
		from = upto;
	}
}

/* The chunks of one level that may overlap the range; at most one begins before it. */
static struct level in_range(struct level l, const struct strip *s)
{
	while (l.n > 1 && l.rows[1].info.start_ns <= s->from_ns) {
		l.rows++;
		l.n--;
	}
	while (l.n && l.rows[l.n - 1].info.start_ns >= s->to_ns)
		l.n--;
	return l;
}

static struct level next_level(const struct tw_chunk_row *rows, uint32_t n, uint32_t at)
{
	struct level l = {rows + at, 0};

	while (at + l.n < n && l.rows[l.n].info.level == l.rows[0].info.level)
		l.n++;
	return l;
}

static struct level pick_level(const struct tw_chunk_row *rows, uint32_t n, const struct strip *s)
{
	struct level best = {rows, 0};

	for (uint32_t at = 0; at < n;) {
		struct level l = next_level(rows, n, at);
		uint64_t slices = 0;

		at += l.n;
		best = in_range(l, s);
		for (uint32_t i = 0; i < best.n; i++)
			slices += best.rows[i].info.slices;
		if (slices <= s->few)
			break;
	}
	return best;
}

/* A wait within a wait is not subtracted twice: slices are in pre-order. */
static int64_t add(struct strip *s, const struct tw_slice *slice, int64_t wait_end)
{
	int64_t end = slice->start_ns + slice->dur_ns;

	if (slice->depth == 0) {
		cover(s, slice, 1);
		s->cpu_unknown |= slice->cpu_ns < 0;
		s->cpu_ns = tw_sum_ns(
		        s->cpu_ns, slice->cpu_ns < slice->dur_ns ? slice->cpu_ns : slice->dur_ns);
	}
	if (!s->waits || !tw_waits(s->waits, slice->method) || end <= wait_end)
		return wait_end;
	cover(s, slice, -1);
	return end;
}

/* A root that began in an earlier chunk was covered there, except before the first chunk. */
static enum tw_status cover_level(
        struct tw_trace_file *f, struct level l, struct strip *s, struct tw_err *err)
{
	struct tw_chunk c;
	int64_t wait_end = INT64_MIN;
	enum tw_status st = TW_OK;

	tw_chunk_init(&c);
	for (uint32_t i = 0; st == TW_OK && i < l.n; i++) {
		st = tw_trace_file_chunk(f, &l.rows[i], &c, err);
		for (size_t k = 0; st == TW_OK && i == 0 && k < c.n_open; k++)
			wait_end = add(s, &c.open[k], wait_end);
		for (size_t k = 0; st == TW_OK && k < c.n; k++)
			wait_end = add(s, &c.slices[k], wait_end);
	}
	tw_chunk_done(&c);
	return st;
}

static enum tw_status shares(struct tw_trace_file *f, const struct tw_thread_info *t,
        struct strip *s, uint8_t *ret_cells, struct tw_err *err)
{
	const struct tw_chunk_row *rows = NULL;
	uint32_t n = 0;
	enum tw_status st = tw_trace_file_chunks(f, t->thread_id, &rows, &n, err);

	s->width_ns = (s->to_ns - s->from_ns) / s->cells + 1;
	if (st == TW_OK)
		st = cover_level(f, pick_level(rows, n, s), s, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < s->cells; i++) {
		double share = (double)s->covered_ns[i] * 255 / (double)s->width_ns;
		uint8_t cell = share >= 255 ? 255 : share > 0 ? (uint8_t)share : 0;

		ret_cells[i] = cell == 0 && s->covered_ns[i] > 0 ? 1 : cell;
	}
	return TW_OK;
}

enum tw_status tw_query_activity_range(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_lanes_query *q, uint8_t *ret_cells, struct tw_err *err)
{
	struct strip s = {.from_ns = q->from_ns,
	        .to_ns = q->to_ns,
	        .cells = q->cells,
	        .waits = &q->waits,
	        .few = SLICES_FEW};

	return shares(f, t, &s, ret_cells, err);
}

enum tw_status tw_query_activity(struct tw_trace_file *f, const struct tw_thread_info *t,
        const struct tw_waits *waits, uint8_t ret[TW_ACTIVITY_CELLS], int64_t *ret_running_ns,
        struct tw_err *err)
{
	const struct tw_trace_info *info = tw_trace_file_info(f);
	struct strip s = {.from_ns = info->start_ns,
	        .to_ns = info->end_ns > info->start_ns ? info->end_ns : info->start_ns + 1,
	        .waits = waits,
	        .cells = TW_ACTIVITY_CELLS};
	enum tw_status st = shares(f, t, &s, ret, err);

	if (ret_running_ns && !s.cpu_unknown)
		*ret_running_ns = s.cpu_ns;
	for (uint32_t i = 0; ret_running_ns && s.cpu_unknown && i < s.cells; i++)
		*ret_running_ns = (i ? *ret_running_ns : 0) + s.covered_ns[i];
	return st;
}

/* --- sums ---
 *
 * Number and total duration of the notes of each kind.
 *
 * The trace file has sums of blocks of notes.  Blocks within the range are counted by their sums.
 * Notes of blocks at its ends, or of blocks with a long note that extends beyond, are counted one
 * by one.
 */

struct sums {
	struct pass pass;
	struct tw_trace_file *file;
	const struct tw_selection *sel;
	struct tw_note_keys keys;
	struct tw_note_sum *sums;
	uint32_t cap;
};

static bool add_key(struct sums *s, struct tw_note_key key, uint64_t notes, int64_t dur_ns)
{
	uint32_t at = 0;
	enum tw_note_found found;

	if (!pass_wants(&s->pass, key.thread_id))
		return pass_continue(&s->pass);
	found = tw_note_keys_number(&s->keys, key, &at);
	if (found == TW_NOTE_ADDED && !TW_GROW(s->pass.a, s->sums, at, s->cap))
		found = TW_NOTE_NO_MEMORY;
	s->pass.no_memory = found == TW_NOTE_NO_MEMORY;
	s->pass.partial = s->pass.partial || found == TW_NOTE_FULL;
	if (found == TW_NOTE_ADDED) {
		const struct tw_note_key *k = &s->keys.keys[at];

		s->sums[at] = (struct tw_note_sum){k->kind, k->thread_id, k->text, 0, 0};
	}
	if (found == TW_NOTE_ADDED || found == TW_NOTE_KNOWN) {
		s->sums[at].notes += notes;
		s->sums[at].dur_ns = tw_sum_ns(s->sums[at].dur_ns, dur_ns);
	}
	return pass_continue(&s->pass);
}

static bool count_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct sums *s = arg;
	int64_t from = n->ts_ns;
	int64_t to = n->dur_ns > 0 ? n->ts_ns + n->dur_ns : n->ts_ns;

	(void)id;
	if (s->sel->ranged && from < s->sel->from_ns)
		from = s->sel->from_ns;
	if (s->sel->ranged && to > s->sel->to_ns)
		to = s->sel->to_ns;
	return add_key(s, tw_note_key_of_sum(n), 1, to > from ? to - from : 0);
}

static bool add_sum(void *arg, const struct tw_note_sum *n)
{
	return add_key(
	        arg, (struct tw_note_key){n->kind, n->thread_id, n->text}, n->notes, n->dur_ns);
}

/* Consecutive blocks that are read in the same way: by sums, or note by note. */
struct block_range {
	struct sums *sums;
	uint64_t first, last; /* last < first: none yet */
	uint64_t last_id;
	bool complete;
	enum tw_status status;
	struct tw_err *err;
};

static enum tw_status add_notes(struct sums *s, uint64_t first, uint64_t last, struct tw_err *err)
{
	struct tw_note_query rows = {.kind = TW_NOTE_COUNT,
	        .from_ns = s->sel->ranged ? s->sel->from_ns : 0,
	        .to_ns = s->sel->ranged ? s->sel->to_ns : INT64_MAX,
	        .after = first - 1,
	        .until = last,
	        .limit = UINT32_MAX};

	return tw_trace_file_notes(s->file, &rows, count_note, s, err);
}

static bool take(struct block_range *t)
{
	struct sums *s = t->sums;

	if (t->last < t->first)
		return true;
	if (tw_deadline_passed(s->pass.deadline))
		s->pass.partial = true;
	else if (t->complete)
		t->status = tw_trace_file_note_sums(s->file, t->first, t->last, add_sum, s, t->err);
	else
		t->status = add_notes(s, t->first, t->last_id, t->err);
	t->last = t->first - 1;
	return t->status == TW_OK && !s->pass.partial && !s->pass.no_memory;
}

static bool next_block(void *arg, const struct tw_note_block *b)
{
	struct block_range *t = arg;
	const struct tw_selection *sel = t->sums->sel;
	bool complete = !sel->ranged || (b->start_ns >= sel->from_ns && b->end_ns < sel->to_ns);
	bool outside = sel->ranged && (b->end_ns < sel->from_ns || b->start_ns >= sel->to_ns);
	bool joins = t->last >= t->first && t->complete == complete && !outside;

	if (!joins && !take(t))
		return false;
	if (outside)
		return true;
	if (!joins)
		t->first = b->first;
	t->complete = complete;
	t->last = b->first;
	t->last_id = b->last;
	return true;
}

static enum tw_status add_blocks(struct sums *s, struct tw_err *err)
{
	struct block_range t = {.sums = s, .first = 1, .last = 0, .status = TW_OK, .err = err};
	enum tw_status st = tw_trace_file_note_blocks(s->file, next_block, &t, err);

	if (st == TW_OK && t.status == TW_OK)
		(void)take(&t);
	return st == TW_OK ? t.status : st;
}

enum tw_status tw_query_note_sums(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_note_sums *ret,
        struct tw_err *err)
{
	struct sums s = {.pass = {.a = a, .deadline = deadline},
	        .file = f,
	        .sel = sel,
	        .keys = {.a = a, .max = TW_NOTE_SUMS_MAX}};
	enum tw_status st = pass_begin(&s.pass, f, sel, err);

	if (st != TW_OK)
		return st;
	st = add_blocks(&s, err);
	st = pass_end(&s.pass, st, err);
	if (st == TW_OK)
		*ret = (struct tw_note_sums){s.sums, s.keys.n, s.pass.partial};
	return st;
}
