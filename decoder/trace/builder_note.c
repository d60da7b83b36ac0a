/*
 * builder_note.c - stores notes and documents until the trace is written.
 *
 * Texts of notes are deduplicated; details rarely repeat.  Both count against the names' share of
 * memory; if they do not fit they are dropped, and the rest of the trace is kept.
 */
#include "decoder/trace/builder_internal.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/order.h"

enum { FIRST_TEXTS = 256, MAX_DOCUMENTS = 1024, DETAIL_MAX_BYTES = 64 << 10 };

static struct tw_builder *builder_of(struct tw_sink *s)
{
	return (struct tw_builder *)(void *)s;
}

static const char **text_slot(const struct tw_builder *b, struct tw_str text)
{
	uint32_t at = (uint32_t)tw_hash_str(text, b->limits.hash_salt) & (b->cap_texts - 1);

	while (b->texts[at] && !tw_str_eq(tw_str_of(b->texts[at]), text))
		at = (at + 1) & (b->cap_texts - 1);
	return &b->texts[at];
}

static bool widen_texts(struct tw_builder *b)
{
	uint32_t old_cap = b->cap_texts;
	const char **old = b->texts;
	uint32_t cap = old_cap ? old_cap * 2 : FIRST_TEXTS;
	const char **larger;

	if (b->n_texts < old_cap / 2)
		return true;
	larger = tw_mem_zalloc(cap, sizeof *larger);
	if (!larger)
		return false;
	b->texts = larger;
	b->cap_texts = cap;
	for (uint32_t i = 0; i < old_cap; i++)
		if (old[i])
			*text_slot(b, tw_str_of(old[i])) = old[i];
	tw_mem_free(old);
	return true;
}

/* NULL: out of memory.  The text ends at its first NUL. */
static const char *keep_text(struct tw_builder *b, struct tw_str *text)
{
	const char *nul = text->len ? memchr(text->ptr, 0, text->len) : NULL;
	const char **slot;

	if (nul)
		text->len = (size_t)(nul - text->ptr);
	if (text->len > b->limits.max_name_bytes)
		text->len = b->limits.max_name_bytes;
	if (!widen_texts(b))
		return NULL;
	slot = text_slot(b, *text);
	if (!*slot) {
		*slot = tw_arena_str(b->arena, *text);
		b->n_texts += *slot != NULL;
	}
	return *slot;
}

static enum tw_status no_memory(struct tw_builder *b, struct tw_err *err)
{
	b->status = TW_NOMEM;
	return tw_fail(err, TW_NOMEM, "the trace needs more memory than a decode may use");
}

static bool sane(const struct tw_builder *b, const struct tw_note *n)
{
	const int64_t most = INT64_C(1) << 61;

	return n->track <= b->n_tracks && n->ts_ns >= 0 && n->ts_ns <= most && n->dur_ns >= -1 &&
	       n->dur_ns <= most && n->detail.len <= DETAIL_MAX_BYTES;
}

static int64_t end_of(int64_t ts_ns, int64_t dur_ns)
{
	return dur_ns > 0 ? ts_ns + dur_ns : ts_ns;
}

static enum tw_status keep_note(
        struct tw_builder *b, const struct tw_note *note, struct tw_err *err)
{
	struct tw_str text = note->text;
	const char *kept;
	const char *detail = "";

	if (b->n_notes >= b->limits.max_notes) {
		tw_builder_repair(b, TW_REPAIR_note_limit, note->offset, 1);
		return TW_OK;
	}
	if (!sane(b, note)) {
		tw_builder_repair(b, TW_REPAIR_impossible_time, note->offset, 1);
		return TW_OK;
	}
	if (!tw_builder_has_room(b, text.len + note->detail.len)) {
		tw_builder_repair(b, TW_REPAIR_note_limit, note->offset, 1);
		return TW_OK;
	}
	kept = keep_text(b, &text);
	if (note->detail.len)
		detail = tw_arena_str(b->arena, note->detail);
	if (!kept || !detail || !TW_GROW_MEM(b->notes, b->n_notes, b->cap_notes))
		return no_memory(b, err);
	b->notes[b->n_notes] = (struct note){
	        .ts_ns = note->ts_ns,
	        .dur_ns = note->dur_ns,
	        .value = note->value,
	        .text = kept,
	        .detail = detail,
	        .text_bytes = (uint32_t)text.len,
	        .detail_bytes = (uint32_t)note->detail.len,
	        .track = note->track,
	        .kind = (uint8_t)note->kind,
	        .from_system = b->of_system,
	};
	b->n_notes++;
	if (end_of(note->ts_ns, note->dur_ns) > b->last_ns)
		b->last_ns = end_of(note->ts_ns, note->dur_ns);
	return TW_OK;
}

/* A process has no time. */
static bool is_timeless(const struct tw_note *note)
{
	return note->kind == TW_NOTE_process;
}

enum tw_status tw_builder_note(struct tw_sink *s, const struct tw_note *note, struct tw_err *err)
{
	struct tw_builder *b = builder_of(s);
	struct tw_note moved;

	if (!tw_builder_is_moved(b) || is_timeless(note))
		return keep_note(b, note, err);
	moved = *note;
	if (tw_builder_is_before(b, note->ts_ns, note->dur_ns)) {
		tw_builder_repair(b, TW_REPAIR_before_trace, note->offset, 1);
		return TW_OK;
	}
	if (!tw_builder_place(b, &moved.ts_ns, &moved.dur_ns, note->offset))
		return TW_OK;
	return keep_note(b, &moved, err);
}

enum tw_status tw_builder_document(
        struct tw_sink *s, const char *kind, struct tw_str json, struct tw_err *err)
{
	struct tw_builder *b = builder_of(s);
	char *copy;

	if (b->n_documents >= MAX_DOCUMENTS || !tw_builder_has_room(b, json.len)) {
		tw_builder_repair(b, TW_REPAIR_note_limit, TW_NO_OFFSET, 1);
		return TW_OK;
	}
	copy = tw_arena_str(b->arena, json);
	if (!copy || !TW_GROW_MEM(b->documents, b->n_documents, b->cap_documents))
		return no_memory(b, err);
	b->documents[b->n_documents++] = (struct document){kind, {copy, json.len}};
	return TW_OK;
}

/* --- the order of time ---
 *
 * States are emitted when they end, so nearly all notes of kernel events are out of order.  They
 * stay where they are, as moving them takes longer than sorting their numbers. */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct noted_time {
	uint32_t low, high; /* the time since the earliest one */
	uint32_t at;        /* of the note */
};

TW_ORDER_BY(by_time, struct noted_time, TW_RISING(high), TW_RISING(low), TW_RISING(at))

static uint32_t digit_of(const struct noted_time *p, unsigned shift)
{
	const uint64_t time = (uint64_t)p->high << 32 | p->low;

	return (uint32_t)(time >> shift) & (DIGITS - 1);
}

static void sort_by_digit(
        const struct noted_time *from, struct noted_time *to, uint32_t n, unsigned shift)
{
	uint32_t ends[DIGITS] = {0};
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		ends[digit_of(&from[i], shift)]++;
	for (uint32_t d = 0; d < DIGITS; d++) {
		const uint32_t count = ends[d];

		ends[d] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n; i++)
		to[ends[digit_of(&from[i], shift)]++] = from[i];
}

static void read_times(const struct tw_builder *b, struct noted_time *times, int64_t *ret_span)
{
	int64_t earliest = INT64_MAX;
	int64_t latest = 0;

	for (uint32_t i = 0; i < b->n_notes; i++) {
		const int64_t ts_ns = b->notes[i].ts_ns;

		earliest = ts_ns < earliest ? ts_ns : earliest;
		latest = ts_ns > latest ? ts_ns : latest;
	}
	for (uint32_t i = 0; i < b->n_notes; i++) {
		const uint64_t time = (uint64_t)(b->notes[i].ts_ns - earliest);

		times[i] = (struct noted_time){(uint32_t)time, (uint32_t)(time >> 32), i};
	}
	*ret_span = latest - earliest;
}

/* Equal times keep their order.  Returns the array that is sorted. */
static struct noted_time *sort_times(
        struct noted_time *times, struct noted_time *spare, uint32_t n, int64_t span_ns)
{
	if (n < DIGITS) {
		TW_SORT(times, n, by_time);
		return times;
	}
	for (unsigned shift = 0; shift < 64 && (uint64_t)span_ns >> shift; shift += DIGIT_BITS) {
		struct noted_time *const sorted = spare;

		sort_by_digit(times, sorted, n, shift);
		spare = times;
		times = sorted;
	}
	return times;
}

bool tw_builder_sort_notes(struct tw_builder *b)
{
	const uint32_t n = b->n_notes;
	struct noted_time *times;
	const struct noted_time *sorted;
	int64_t span_ns;

	if (n == 0)
		return true;
	if (!b->by_time) /* fewer notes may remain when this is called again */
		b->by_time = tw_mem_alloc(n, sizeof *b->by_time);
	times = tw_mem_alloc(n, 2 * sizeof *times);
	if (!b->by_time || !times) {
		tw_mem_free(times);
		return false;
	}
	read_times(b, times, &span_ns);
	sorted = sort_times(times, times + n, n, span_ns);
	for (uint32_t i = 0; i < n; i++)
		b->by_time[i] = sorted[i].at;
	tw_mem_free(times);
	return true;
}

void tw_builder_notes_span(const struct tw_builder *b, int64_t *start_ns, int64_t *end_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < b->n_notes; i++) {
		const struct note *n = &b->notes[i];
		int64_t end = end_of(n->ts_ns, n->dur_ns);

		if (n->kind == TW_NOTE_process)
			continue;
		if (!any || n->ts_ns < *start_ns)
			*start_ns = n->ts_ns;
		any = true;
		if (end > *end_ns)
			*end_ns = end;
	}
}

/* --- states and the length of a trace --- */

void tw_builder_states_span(const struct tw_builder *b, int64_t *start_ns, int64_t *end_ns)
{
	for (uint32_t i = 0; i < b->n_notes; i++) {
		const struct note *n = &b->notes[i];
		int64_t end = end_of(n->ts_ns, n->dur_ns);

		if (n->kind != TW_NOTE_state || n->from_system)
			continue;
		if (n->ts_ns < *start_ns)
			*start_ns = n->ts_ns;
		if (end > *end_ns)
			*end_ns = end;
	}
}

/* Whether a part of the state is within the range; the rest of it is removed. */
static bool clip(struct note *n, int64_t start_ns, int64_t end_ns)
{
	int64_t end = end_of(n->ts_ns, n->dur_ns);

	if (n->dur_ns <= 0) /* a single time */
		return n->ts_ns >= start_ns && n->ts_ns <= end_ns;
	if (n->ts_ns < start_ns)
		n->ts_ns = start_ns;
	if (end > end_ns)
		end = end_ns;
	n->dur_ns = end - n->ts_ns;
	return n->dur_ns > 0;
}

bool tw_builder_clip_states(struct tw_builder *b, int64_t start_ns, int64_t end_ns)
{
	bool any = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_notes; i++) {
		struct note *note = &b->notes[i];
		const bool clipped = note->kind == TW_NOTE_state && note->from_system;

		any |= clipped;
		if (!clipped || clip(note, start_ns, end_ns))
			b->notes[n++] = *note;
	}
	b->n_notes = n;
	return !any || tw_builder_sort_notes(b);
}

/* --- states by thread --- */

static uint32_t final_track(const struct tw_builder *b, uint32_t track)
{
	uint32_t to = b->tracks[track - 1].merged_into;

	return to ? to : track;
}

static bool is_state(const struct note *n)
{
	return n->kind == TW_NOTE_state && n->track;
}

bool tw_builder_link_states(struct tw_builder *b)
{
	bool any = false;

	for (uint32_t i = 0; !any && i < b->n_notes; i++)
		any = is_state(&b->notes[i]);
	if (!any)
		return true;
	b->first_state = tw_mem_zalloc(b->n_tracks, sizeof *b->first_state);
	b->next_state = tw_mem_alloc(b->n_notes, sizeof *b->next_state);
	if (!b->first_state || !b->next_state)
		return false;
	for (uint32_t i = b->n_notes; i-- > 0;) {
		const uint32_t at = b->by_time[i];

		if (is_state(&b->notes[at])) {
			uint32_t *first = &b->first_state[final_track(b, b->notes[at].track) - 1];

			b->next_state[at] = *first;
			*first = at + 1;
		}
	}
	return true;
}

bool tw_builder_running_of(
        const struct tw_builder *b, const struct track *t, struct tw_running *ret)
{
	*ret = (struct tw_running){.runs = NULL};
	for (uint32_t at = b->first_state ? b->first_state[t - b->tracks] : 0; at;
	        at = b->next_state[at - 1]) {
		const struct note *n = &b->notes[at - 1];

		if (!tw_running_add(ret, n->ts_ns, n->dur_ns, strcmp(n->text, "running") == 0))
			return false;
	}
	return true;
}

/* Fills a block from notes[at] on, and returns the number of its notes. */
static uint32_t fill_block(const struct tw_builder *b, uint32_t at, const uint32_t *thread_ids,
        struct tw_note_row rows[TW_NOTES_AT_ONCE])
{
	size_t text_bytes = 0;
	uint32_t n = 0;

	for (; at + n < b->n_notes && n < TW_NOTES_AT_ONCE && text_bytes < TW_NOTES_TEXT_BYTES;
	        n++) {
		const struct note *note = &b->notes[b->by_time[at + n]];

		rows[n] = (struct tw_note_row){
		        .kind = (enum tw_note_kind)note->kind,
		        .thread_id = note->track ? thread_ids[note->track - 1] : 0,
		        .ts_ns = note->ts_ns,
		        .dur_ns = note->dur_ns,
		        .value = note->value,
		        .text = {note->text, note->text_bytes},
		        .detail = {note->detail, note->detail_bytes},
		        .from_system = note->from_system,
		};
		text_bytes += (size_t)note->text_bytes + note->detail_bytes;
	}
	return n;
}

enum tw_status tw_builder_write_notes(struct tw_builder *b, const uint32_t *thread_ids,
        struct tw_trace_out *out, struct tw_err *err)
{
	struct tw_note_row *rows = tw_mem_alloc(TW_NOTES_AT_ONCE, sizeof *rows);
	enum tw_status st = rows ? TW_OK : tw_oom(err);
	uint32_t n;

	for (uint32_t i = 0; st == TW_OK && i < b->n_notes; i += n) {
		n = fill_block(b, i, thread_ids, rows);
		st = out->ops->notes(out, rows, n, err);
	}
	tw_mem_free(rows);
	for (uint32_t i = 0; st == TW_OK && i < b->n_documents; i++)
		st = out->ops->document(out, b->documents[i].kind, b->documents[i].json, err);
	return st;
}

void tw_builder_free_notes(struct tw_builder *b)
{
	tw_mem_free(b->notes);
	tw_mem_free(b->by_time);
	tw_mem_free(b->first_state);
	tw_mem_free(b->next_state);
	tw_mem_free(b->texts);
	tw_mem_free(b->documents);
}
