/*
 * query_note_sums.c - number and total duration of the notes of each kind.
 *
 * The trace file has sums of blocks of notes.  Blocks within the range are counted by their sums.
 * Notes of blocks at its ends, or of blocks with a long note that extends beyond, are counted one
 * by one.
 */
#include "server/query/query_notes.h"

#include <string.h>

#include "decoder/base/sum.h"
#include "server/trace/note_keys.h"

struct sums {
	struct tw_note_pass pass;
	struct tw_trace_file *file;
	const struct tw_selection *sel;
	struct tw_note_keys keys;
	struct tw_note_sum *sums;
	uint32_t cap;
};

static bool grow(struct sums *s)
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

static bool add(struct sums *s, struct tw_note_key key, uint64_t notes, int64_t dur_ns)
{
	uint32_t at = 0;
	enum tw_note_found found;

	if (!tw_note_pass_wants(&s->pass, key.thread_id))
		return tw_note_pass_continue(&s->pass);
	found = tw_note_keys_number(&s->keys, key, &at);
	if (found == TW_NOTE_ADDED && at >= s->cap && !grow(s))
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
	return tw_note_pass_continue(&s->pass);
}

static bool add_note(void *arg, uint64_t id, const struct tw_note_row *n)
{
	struct sums *s = arg;
	int64_t from = n->ts_ns;
	int64_t to = n->dur_ns > 0 ? n->ts_ns + n->dur_ns : n->ts_ns;

	(void)id;
	if (s->sel->ranged && from < s->sel->from_ns)
		from = s->sel->from_ns;
	if (s->sel->ranged && to > s->sel->to_ns)
		to = s->sel->to_ns;
	return add(s, tw_note_key_of_sum(n), 1, to > from ? to - from : 0);
}

static bool add_sum(void *arg, const struct tw_note_sum *n)
{
	return add(arg, (struct tw_note_key){n->kind, n->thread_id, n->text}, n->notes, n->dur_ns);
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

	return tw_trace_file_notes(s->file, &rows, add_note, s, err);
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
	enum tw_status st = tw_note_pass_begin(&s.pass, f, sel, err);

	if (st != TW_OK)
		return st;
	st = add_blocks(&s, err);
	st = tw_note_pass_end(&s.pass, st, err);
	if (st == TW_OK)
		*ret = (struct tw_note_sums){s.sums, s.keys.n, s.pass.partial};
	return st;
}
