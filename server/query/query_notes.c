/*
 * query_notes.c - lanes of notes.
 *
 * One pass over the notes by time. Each is assigned to its lane by a hash of kind, thread and (for
 * counters) text. A lane holds one open run: a note shorter than a cell joins it if it begins in
 * the same cell; any other note closes it.
 */
#include "server/query/query_notes.h"

#include <string.h>

#include "server/trace/note_keys.h"

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

struct lanes {
	struct tw_note_pass pass;
	const struct tw_lanes_query *q;
	int64_t width_ns;
	struct tw_note_keys keys, texts;
	struct tw_lane *lanes;  /* TW_LANES_MAX */
	struct open_run *opens; /* open runs, by lane */
	uint32_t n_runs;
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
	if (lane->n == lane->cap) {
		uint32_t cap = lane->cap ? lane->cap * 2 : 16;
		struct tw_lane_run *runs = tw_arena_alloc(l->pass.a, cap, sizeof *runs);

		if (!runs) {
			l->pass.no_memory = true;
			return false;
		}
		if (lane->n)
			memcpy(runs, lane->runs, lane->n * sizeof *runs);
		lane->runs = runs;
		lane->cap = cap;
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

/* Finds or creates the note's lane. False: there is none, and the reason is recorded. */
static bool find_lane(struct lanes *l, const struct tw_note_row *n, uint32_t text, uint32_t *ret)
{
	struct tw_note_key key = {n->kind, n->thread_id, {"", 0}};
	enum tw_note_found found;

	if (n->kind == TW_NOTE_counter)
		key.text = n->text;
	found = tw_note_keys_number(&l->keys, key, ret);
	if (found == TW_NOTE_ADDED) {
		l->lanes[*ret] =
		        (struct tw_lane){.kind = n->kind, .thread_id = n->thread_id, .name = text};
		l->opens[*ret].cell = -1;
	}
	l->pass.no_memory = l->pass.no_memory || found == TW_NOTE_NO_MEMORY;
	l->pass.partial = l->pass.partial || found == TW_NOTE_FULL;
	return found == TW_NOTE_KNOWN || found == TW_NOTE_ADDED;
}

static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct lanes *l = arg;
	struct tw_note_row early = *n;
	uint32_t text = 0;
	uint32_t lane = 0;
	enum tw_note_found found;

	(void)id;
	if (n->ts_ns >= l->q->to_ns)
		return false; /* they come by time */
	if (!(l->q->kinds >> n->kind & 1) || !tw_note_pass_wants(&l->pass, n->thread_id))
		return tw_note_pass_continue(&l->pass);
	if (n->ts_ns < l->q->from_ns && n->kind != TW_NOTE_counter && end_of(n) < l->q->from_ns)
		return tw_note_pass_continue(&l->pass);
	found = tw_note_keys_number(&l->texts, (struct tw_note_key){.text = n->text}, &text);
	l->pass.no_memory = l->pass.no_memory || found == TW_NOTE_NO_MEMORY;
	l->pass.partial = l->pass.partial || found == TW_NOTE_FULL;
	if (!tw_note_pass_continue(&l->pass) || !find_lane(l, n, text, &lane))
		return false;
	if (n->kind == TW_NOTE_counter && n->ts_ns < l->q->from_ns) {
		early.ts_ns = l->q->from_ns; /* the value at from_ns, unless another note follows */
		l->opens[lane].cell = -1;
		n = &early;
	}
	return lane_add(l, lane, n, text) && tw_note_pass_continue(&l->pass);
}

static enum tw_status lanes_done(struct lanes *l, struct tw_lanes *ret, struct tw_err *err)
{
	struct tw_str *texts = tw_arena_alloc(l->pass.a, l->texts.n + 1, sizeof *texts);

	if (!texts)
		return tw_oom(err);
	for (uint32_t i = 0; i < l->texts.n; i++)
		texts[i] = l->texts.keys[i].text;
	for (uint32_t i = 0; i < l->keys.n && !l->pass.no_memory; i++)
		if (!close_run(l, &l->lanes[i], &l->opens[i]))
			break;
	*ret = (struct tw_lanes){l->lanes, l->keys.n, texts, l->texts.n, l->pass.partial};
	return tw_note_pass_end(&l->pass, TW_OK, err);
}

enum tw_status tw_query_lanes(struct tw_trace_file *f, const struct tw_lanes_query *q,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_lanes *ret,
        struct tw_err *err)
{
	struct lanes l = {.pass = {.a = a, .deadline = deadline},
	        .q = q,
	        .keys = {.a = a, .max = TW_LANES_MAX},
	        .texts = {.a = a, .max = TW_NOTE_SUMS_MAX}};
	struct tw_note_query rows = {.kind = TW_NOTE_COUNT,
	        .from_ns = q->kinds >> TW_NOTE_counter & 1 ? 0 : q->from_ns,
	        .to_ns = q->to_ns,
	        .limit = UINT32_MAX};
	enum tw_status st = tw_note_pass_begin(&l.pass, f, q->sel, err);

	if (st != TW_OK)
		return st;
	l.width_ns = (q->to_ns - q->from_ns) / q->cells + 1;
	l.lanes = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.lanes);
	l.opens = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.opens);
	if (!l.lanes || !l.opens)
		return tw_oom(err);
	st = tw_note_pass_end(&l.pass, tw_trace_file_notes(f, &rows, add_note, &l, err), err);
	return st == TW_OK ? lanes_done(&l, ret, err) : st;
}

/* One pass over the notes of a selection. */
enum { CHECK_EVERY = 1024 };

enum tw_status tw_note_pass_begin(struct tw_note_pass *p, const struct tw_trace_file *f,
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

bool tw_note_pass_wants(const struct tw_note_pass *p, uint32_t thread_id)
{
	return thread_id < p->n_wanted && p->wanted[thread_id];
}

bool tw_note_pass_continue(struct tw_note_pass *p)
{
	if (++p->seen % CHECK_EVERY == 0 && tw_deadline_passed(p->deadline))
		p->partial = true;
	return !p->partial && !p->no_memory;
}

enum tw_status tw_note_pass_end(const struct tw_note_pass *p, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && p->no_memory)
		return tw_oom(err);
	return st;
}
