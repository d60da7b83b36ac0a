/*
 * query_notes.c - lanes and sums of notes.
 *
 * One pass over the notes by time.  Each is sent to its lane or sum by a hash of
 * kind, thread and (for counters and states) text.  A lane keeps the run that may
 * still grow: a note shorter than a cell joins it when it begins in the same cell,
 * anything else closes it.
 */
#include "query_notes.h"

#include <string.h>

#include "base/hash.h"

enum { PARTS = 8, LOOK_EVERY = 1024 };

/* --- tables of keys --- */

struct key {
	enum tw_note_kind kind;
	uint32_t thread_id;
	struct tw_str text;
};

struct table { /* keys by number, in the order in which they came */
	struct tw_arena *a;
	struct key *keys;
	uint32_t *slots; /* number + 1; 0 free */
	uint32_t n, cap, max;
};

static uint64_t hash_of(const struct table *t, const struct key *k)
{
	uint64_t h = (uint64_t)k->kind << 32 | k->thread_id;

	for (size_t i = 0; i < k->text.len; i++)
		h = (h ^ (unsigned char)k->text.ptr[i]) * 0x100000001B3u;
	return tw_hash_id(h, t->a);
}

static bool same(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->thread_id == b->thread_id && tw_str_eq(a->text, b->text);
}

static uint32_t slot_of(const struct table *t, const struct key *k)
{
	uint32_t at = (uint32_t)hash_of(t, k) & (t->cap * 2 - 1);

	while (t->slots[at] && !same(&t->keys[t->slots[at] - 1], k))
		at = (at + 1) & (t->cap * 2 - 1);
	return at;
}

static bool table_grow(struct table *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64;
	struct key *keys = tw_arena_alloc(t->a, cap, sizeof *keys);
	uint32_t *slots = tw_arena_zalloc(t->a, (size_t)cap * 2, sizeof *slots);

	if (!keys || !slots)
		return false;
	if (t->n)
		memcpy(keys, t->keys, t->n * sizeof *keys);
	t->keys = keys;
	t->slots = slots;
	t->cap = cap;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, &t->keys[i])] = i + 1;
	return true;
}

enum found { FOUND, ADDED, FULL, NO_MEMORY };

static enum found table_number(struct table *t, struct key k, uint32_t *ret)
{
	uint32_t at;
	char *copy;

	if (t->n == t->cap && t->n < t->max && !table_grow(t))
		return NO_MEMORY;
	at = slot_of(t, &k);
	if (t->slots[at]) {
		*ret = t->slots[at] - 1;
		return FOUND;
	}
	if (t->n == t->max)
		return FULL;
	copy = tw_arena_str(t->a, k.text);
	if (!copy)
		return NO_MEMORY;
	k.text.ptr = copy;
	t->keys[t->n] = k;
	t->slots[at] = ++t->n;
	*ret = t->n - 1;
	return ADDED;
}

/* --- which notes --- */

struct pass {
	struct tw_arena *a;
	const struct tw_deadline *deadline;
	const bool *wanted; /* by thread id, 0 the whole trace */
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
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for threads");
	wanted[0] = sel->all_threads;
	for (uint32_t i = 0; i < n; i++)
		wanted[i + 1] = tw_selection_has(sel, &t[i]);
	p->wanted = wanted;
	p->n_wanted = n + 1;
	return TW_OK;
}

static bool is_wanted(const struct pass *p, const struct tw_note_row *n)
{
	return n->thread_id < p->n_wanted && p->wanted[n->thread_id];
}

/* False stops: the time is up, memory is short, or a limit is reached. */
static bool go_on(struct pass *p)
{
	if (++p->seen % LOOK_EVERY == 0 && tw_deadline_passed(p->deadline))
		p->partial = true;
	return !p->partial && !p->no_memory;
}

static enum tw_status pass_end(const struct pass *p, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK && p->no_memory)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for notes");
	return st;
}

/* --- lanes --- */

struct part { /* of a run that may still grow */
	uint32_t text;
	int64_t time_ns, longest_ns, value;
};

struct open_run {
	struct tw_lane_run run;
	int64_t cell; /* -1: none is open */
	struct part parts[PARTS];
	uint32_t n_parts;
};

struct lanes {
	struct pass pass;
	const struct tw_lanes_query *q;
	int64_t width_ns;
	struct table keys, texts;
	struct tw_lane *lanes;  /* TW_LANES_MAX */
	struct open_run *opens; /* beside them */
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

/* A ninth text of a run replaces the one with least time: it cannot be the one with most. */
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
	struct tw_lane_run whole = run_of(n, text);
	int64_t at = n->ts_ns > l->q->from_ns ? n->ts_ns - l->q->from_ns : 0;
	int64_t cell = at / l->width_ns;

	if (n->dur_ns >= l->width_ns)
		return close_run(l, lane, o) && push_run(l, lane, &whole);
	if (o->cell != cell) {
		if (!close_run(l, lane, o))
			return false;
		o->run = whole;
		o->run.notes = 0;
		o->cell = cell;
		o->n_parts = 0;
	}
	join_run(o, n, text);
	return true;
}

/* The number of the note's lane, made at the first; false: none, and why is noted. */
static bool find_lane(struct lanes *l, const struct tw_note_row *n, uint32_t text, uint32_t *ret)
{
	struct key key = {n->kind, n->thread_id, {"", 0}};
	enum found found;

	if (n->kind == TW_NOTE_counter)
		key.text = n->text;
	found = table_number(&l->keys, key, ret);
	if (found == ADDED) {
		l->lanes[*ret] =
		        (struct tw_lane){.kind = n->kind, .thread_id = n->thread_id, .name = text};
		l->opens[*ret].cell = -1;
	}
	l->pass.no_memory = l->pass.no_memory || found == NO_MEMORY;
	l->pass.partial = l->pass.partial || found == FULL;
	return found == FOUND || found == ADDED;
}

static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct lanes *l = arg;
	struct tw_note_row early = *n;
	uint32_t text = 0;
	uint32_t lane = 0;
	enum found found;

	(void)id;
	if (n->ts_ns >= l->q->to_ns)
		return false; /* they come by time */
	if (!(l->q->kinds >> n->kind & 1) || !is_wanted(&l->pass, n))
		return go_on(&l->pass);
	if (n->ts_ns < l->q->from_ns && n->kind != TW_NOTE_counter && end_of(n) < l->q->from_ns)
		return go_on(&l->pass);
	found = table_number(&l->texts, (struct key){.text = n->text}, &text);
	l->pass.no_memory = l->pass.no_memory || found == NO_MEMORY;
	l->pass.partial = l->pass.partial || found == FULL;
	if (!go_on(&l->pass) || !find_lane(l, n, text, &lane))
		return false;
	if (n->kind == TW_NOTE_counter && n->ts_ns < l->q->from_ns) {
		early.ts_ns = l->q->from_ns; /* in force there, unless another follows */
		l->opens[lane].cell = -1;
		n = &early;
	}
	return lane_add(l, lane, n, text) && go_on(&l->pass);
}

static enum tw_status lanes_done(struct lanes *l, struct tw_lanes *ret, struct tw_err *err)
{
	struct tw_str *texts = tw_arena_alloc(l->pass.a, l->texts.n + 1, sizeof *texts);

	if (!texts)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for notes");
	for (uint32_t i = 0; i < l->texts.n; i++)
		texts[i] = l->texts.keys[i].text;
	for (uint32_t i = 0; i < l->keys.n && !l->pass.no_memory; i++)
		if (!close_run(l, &l->lanes[i], &l->opens[i]))
			break;
	*ret = (struct tw_lanes){l->lanes, l->keys.n, texts, l->texts.n, l->pass.partial};
	return pass_end(&l->pass, TW_OK, err);
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
	enum tw_status st = pass_begin(&l.pass, f, q->sel, err);

	if (st != TW_OK)
		return st;
	l.width_ns = (q->to_ns - q->from_ns) / q->cells + 1;
	l.lanes = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.lanes);
	l.opens = tw_arena_alloc(a, TW_LANES_MAX, sizeof *l.opens);
	if (!l.lanes || !l.opens || !table_grow(&l.keys) || !table_grow(&l.texts))
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for notes");
	st = pass_end(&l.pass, tw_trace_file_notes(f, &rows, add_note, &l, err), err);
	return st == TW_OK ? lanes_done(&l, ret, err) : st;
}

/* --- sums --- */

struct sums {
	struct pass pass;
	const struct tw_selection *sel;
	struct table keys;
	struct tw_note_sum *sums;
	uint32_t cap;
};

static bool sum_grow(struct sums *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : 64;
	struct tw_note_sum *sums = tw_arena_zalloc(s->pass.a, cap, sizeof *sums);

	if (!sums)
		return false;
	if (s->cap)
		memcpy(sums, s->sums, s->cap * sizeof *sums);
	s->sums = sums;
	s->cap = cap;
	return true;
}

static void sum_add(struct sums *s, uint32_t number, const struct tw_note_row *n)
{
	const struct key *k = &s->keys.keys[number];
	int64_t from = n->ts_ns;
	int64_t to = end_of(n);

	if (s->sel->ranged && from < s->sel->from_ns)
		from = s->sel->from_ns;
	if (s->sel->ranged && to > s->sel->to_ns)
		to = s->sel->to_ns;
	s->sums[number].kind = k->kind;
	s->sums[number].thread_id = k->thread_id;
	s->sums[number].text = k->text;
	s->sums[number].notes++;
	s->sums[number].dur_ns += to > from ? to - from : 0;
}

static bool sum_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct sums *s = arg;
	struct key key = {n->kind, n->thread_id, {"", 0}};
	uint32_t number = 0;
	enum found found;

	(void)id;
	if (!is_wanted(&s->pass, n))
		return go_on(&s->pass);
	if (n->kind == TW_NOTE_state || n->kind == TW_NOTE_counter)
		key.text = n->text;
	found = table_number(&s->keys, key, &number);
	if (found == ADDED && number >= s->cap && !sum_grow(s))
		found = NO_MEMORY;
	s->pass.no_memory = found == NO_MEMORY;
	s->pass.partial = found == FULL;
	if (found == FOUND || found == ADDED)
		sum_add(s, number, n);
	return go_on(&s->pass);
}

enum tw_status tw_query_note_sums(struct tw_trace_file *f, const struct tw_selection *sel,
        const struct tw_deadline *deadline, struct tw_arena *a, struct tw_note_sums *ret,
        struct tw_err *err)
{
	struct sums s = {.pass = {.a = a, .deadline = deadline},
	        .sel = sel,
	        .keys = {.a = a, .max = TW_NOTE_SUMS_MAX}};
	struct tw_note_query rows = {.kind = TW_NOTE_COUNT,
	        .from_ns = sel->ranged ? sel->from_ns : 0,
	        .to_ns = sel->ranged ? sel->to_ns : INT64_MAX,
	        .limit = UINT32_MAX};
	enum tw_status st = pass_begin(&s.pass, f, sel, err);

	if (st != TW_OK)
		return st;
	if (!table_grow(&s.keys))
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for notes");
	st = pass_end(&s.pass, tw_trace_file_notes(f, &rows, sum_note, &s, err), err);
	if (st == TW_OK)
		*ret = (struct tw_note_sums){s.sums, s.keys.n, s.pass.partial};
	return st;
}
