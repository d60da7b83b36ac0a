/*
 * query_detect_notes.c - applies rules to the notes of a trace.
 *
 * Notes of the kinds in rules are collected by time, longer ones first if two begin together, so
 * that nested notes follow the enclosing ones.
 */

#include "decoder/base/list.h"
#include "decoder/base/order.h"
#include "decoder/base/sum.h"
#include "server/query/detect/query_detect_int.h"

enum { NOTES_PER_CHECK = 1024 };

struct seen {
	int64_t ts_ns, dur_ns;
	uint64_t id, rules;
	uint32_t thread_id;
	uint8_t role;
};

struct gather {
	struct tw_detector *d;
	uint64_t noting; /* rules with this kind */
	struct seen *list;
	uint32_t n, cap, inspected, n_threads;
	bool sections;
};

static bool may_continue(struct gather *g)
{
	struct tw_detector *d = g->d;

	if (g->inspected++ >= TW_DETECT_NOTES_MAX)
		d->ret->cut |= TW_CUT_NOTES;
	else if (!tw_deadline_passed(d->query->deadline))
		return true;
	else
		d->ret->cut |= TW_CUT_TIME;
	return false;
}

/* Matching a name may be costly: the deadline is checked for each note. */
static bool gather_one(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct gather *g = arg;
	struct tw_detector *d = g->d;
	const uint32_t thread = n->thread_id <= g->n_threads ? n->thread_id : 0;
	struct seen s = {n->ts_ns, n->dur_ns > 0 ? n->dur_ns : 0, id, g->noting, thread, 0};

	if (!may_continue(g))
		return false;
	if (g->sections)
		s.rules |= d->query->by_name(d->query->arg, n->text, &s.role);
	s.rules &= d->query->by_thread[thread];
	if (!s.rules && s.role == TW_CALL_NONE)
		return true;
	d->no_memory = !TW_GROW(d->arena, g->list, g->n, g->cap);
	if (!d->no_memory)
		g->list[g->n++] = s;
	return !d->no_memory;
}

static uint64_t rules_noting(const struct tw_detect_query *query, int kind)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < query->n_rules; i++)
		if (query->rules[i].notes >> kind & 1)
			bits |= UINT64_C(1) << i;
	return bits;
}

static enum tw_status gather(struct gather *g, struct tw_err *err)
{
	struct tw_note_query q = {.to_ns = INT64_MAX, .limit = UINT32_MAX};
	uint64_t counts[TW_NOTE_COUNT];
	enum tw_status st = tw_trace_file_note_counts(g->d->file, counts, err);

	for (int kind = 0; st == TW_OK && kind < TW_NOTE_COUNT; kind++) {
		g->noting = rules_noting(g->d->query, kind);
		g->sections = kind == TW_NOTE_section;
		q.kind = (enum tw_note_kind)kind;
		if (counts[kind] && (g->noting || g->sections) && !g->d->no_memory &&
		        !(g->d->ret->cut & (TW_CUT_TIME | TW_CUT_NOTES)))
			st = tw_trace_file_notes(g->d->file, &q, gather_one, g, err);
	}
	return st;
}

TW_ORDER_BY(by_time, struct seen, TW_RISING(ts_ns), TW_FALLING(dur_ns), TW_RISING(id))

/* --- calls for the same event --- */

TW_ORDER_BY(by_group, struct tw_cover, TW_RISING(thread_id), TW_RISING(group), TW_RISING(start_ns))

/* Sorts covers and merges overlapping ones, so that a binary search finds the one at a time. */
static void merge_covers(struct tw_detector *d)
{
	uint32_t n = 0;

	TW_SORT(d->covers, d->n_covers, by_group);
	for (uint32_t i = 0; i < d->n_covers; i++) {
		struct tw_cover *last = n ? &d->covers[n - 1] : NULL;
		const struct tw_cover c = d->covers[i];

		if (last && last->thread_id == c.thread_id && last->group == c.group &&
		        c.start_ns < last->end_ns)
			last->end_ns = c.end_ns > last->end_ns ? c.end_ns : last->end_ns;
		else
			d->covers[n++] = c;
	}
	d->n_covers = n;
}

/* The clocks of a call and of its note may differ, and a sampled call begins late: any overlap
 * counts. */
static bool is_covered(const struct tw_detector *d, uint32_t group, const struct seen *s)
{
	const int64_t last_ns = tw_sum_ns(s->ts_ns, s->dur_ns > 0 ? s->dur_ns - 1 : 0);
	const struct tw_cover key = {s->thread_id, group, last_ns, last_ns};
	uint32_t at;

	TW_BISECT(at, d->n_covers, by_group(&d->covers[at], &key) <= 0);
	return at && d->covers[at - 1].thread_id == s->thread_id &&
	       d->covers[at - 1].group == group && s->ts_ns < d->covers[at - 1].end_ns;
}

/* --- counting --- */

/* by thread and rule: end of the last note that the rule counted, and that its group reported */
struct ends {
	int64_t counted_ns, reported_ns;
};

static void count_one(struct tw_detector *d, struct ends *ends, const struct seen *s)
{
	const struct tw_finding f = {.thread_id = s->thread_id,
	        .start_ns = s->ts_ns,
	        .wall_ns = s->dur_ns,
	        .cpu_ns = -1,
	        .method = TW_NO_METHOD,
	        .caller = TW_NO_METHOD,
	        .note = s->id};
	const int64_t end_ns = tw_sum_ns(s->ts_ns, s->dur_ns);
	uint64_t counted = 0, reported = 0;

	for (uint64_t rest = s->rules; rest; rest &= rest - 1) {
		const uint32_t rule = tw_detect_lowest(rest);
		const struct tw_detect_spec *spec = &d->query->rules[rule];

		if (s->ts_ns < ends[rule].counted_ns || s->ts_ns < ends[spec->group].reported_ns ||
		        is_covered(d, spec->group, s))
			continue;
		counted |= UINT64_C(1) << rule;
		ends[rule].counted_ns = end_ns;
		if (s->dur_ns < spec->threshold_ns || s->dur_ns == 0)
			continue;
		reported |= UINT64_C(1) << rule;
		ends[spec->group].reported_ns = end_ns;
	}
	tw_detect_count(d, &f, counted, reported);
}

static void count_all(struct tw_detector *d, const struct gather *g)
{
	const size_t n_rules = d->query->n_rules ? d->query->n_rules : 1;
	struct ends *ends =
	        tw_arena_alloc(d->arena, ((size_t)g->n_threads + 1) * n_rules, sizeof *ends);

	d->no_memory = d->no_memory || !ends;
	for (size_t i = 0; ends && i < ((size_t)g->n_threads + 1) * n_rules; i++)
		ends[i] = (struct ends){INT64_MIN, INT64_MIN};
	for (uint32_t i = 0; !d->no_memory && i < g->n; i++) {
		const struct seen *s = &g->list[i];

		if (i % NOTES_PER_CHECK == 0 && tw_deadline_passed(d->query->deadline)) {
			d->ret->cut |= TW_CUT_TIME;
			return;
		}
		count_one(d, ends + s->thread_id * n_rules, s);
		if (s->role && s->thread_id && s->thread_id == d->query->main_id)
			tw_detect_add_role_call(d, &(struct tw_role_call){s->ts_ns, s->dur_ns,
			                                   TW_NO_METHOD, s->thread_id, s->role});
	}
}

/* --- enclosing calls --- */

struct found_in {
	const struct tw_detect_query *query;
	struct tw_finding *f;
};

static bool at_note(void *arg, const struct tw_slice *s, size_t n)
{
	const struct found_in *p = arg;

	for (size_t i = 0; i < n; i++) {
		if (s[i].start_ns > p->f->start_ns || s[i].method >= p->query->n_methods)
			continue;
		p->f->method = s[i].method;
		p->f->depth = s[i].depth;
		if (p->query->is_app[s[i].method])
			p->f->caller = s[i].method;
	}
	return true;
}

struct text {
	struct tw_arena *arena;
	const char *text;
};

static bool take_text(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct text *t = arg;

	(void)id;
	t->text = tw_arena_str(t->arena, n->text);
	return false;
}

static enum tw_status locate(struct tw_detector *d, struct tw_finding *f, struct tw_err *err)
{
	const struct tw_note_query one = {.kind = TW_NOTE_COUNT,
	        .to_ns = INT64_MAX,
	        .after = f->note - 1,
	        .until = f->note,
	        .limit = 1};
	struct text t = {d->arena, ""};
	enum tw_status st = tw_trace_file_notes(d->file, &one, take_text, &t, err);

	d->no_memory = d->no_memory || !t.text;
	f->text = t.text;
	if (st == TW_OK && f->thread_id)
		st = tw_query_slices(d->file, f->thread_id, f->start_ns, f->start_ns + 1, at_note,
		        &(struct found_in){d->query, f}, err);
	return st;
}

static enum tw_status locate_kept(struct tw_detector *d, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; i < d->query->n_rules; i++)
		for (uint32_t k = 0; st == TW_OK && k < d->ret->sums[i].n_kept; k++) {
			if (!d->ret->sums[i].kept[k].note)
				continue;
			if (tw_deadline_passed(d->query->deadline)) {
				d->ret->cut |= TW_CUT_TIME;
				return st;
			}
			st = locate(d, &d->ret->sums[i].kept[k], err);
		}
	return st;
}

enum tw_status tw_detect_notes(struct tw_detector *d, struct tw_err *err)
{
	struct gather g = {.d = d};
	enum tw_status st;

	(void)tw_trace_file_threads(d->file, &g.n_threads);
	st = gather(&g, err);
	if (st != TW_OK || d->no_memory)
		return st;
	TW_SORT(g.list, g.n, by_time);
	merge_covers(d);
	count_all(d, &g);
	return d->no_memory ? TW_OK : locate_kept(d, err);
}
