/* note_keys.c - numbers keys of notes: a hash table in an arena. */
#include "server/trace/note_keys.h"

#include <string.h>

#include "decoder/base/hash.h"
#include "decoder/base/list.h"

static uint64_t hash_of(const struct tw_note_keys *t, const struct tw_note_key *k)
{
	uint64_t h = tw_fnv64((uint64_t)k->kind << 32 | k->thread_id, k->text);

	return tw_hash_id(h, (uintptr_t)t->a);
}

static bool same(const struct tw_note_key *a, const struct tw_note_key *b)
{
	return a->kind == b->kind && a->thread_id == b->thread_id && tw_str_eq(a->text, b->text);
}

static uint32_t slot_of(const struct tw_note_keys *t, const struct tw_note_key *k)
{
	uint32_t at = (uint32_t)hash_of(t, k) & (t->cap * 2 - 1);

	while (t->slots[at] && !same(&t->keys[t->slots[at] - 1], k))
		at = (at + 1) & (t->cap * 2 - 1);
	return at;
}

static bool grow(struct tw_note_keys *t)
{
	if (!TW_WIDEN(t->a, t->keys, t->n, t->cap, t->slots))
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, &t->keys[i])] = i + 1;
	return true;
}

enum tw_note_found tw_note_keys_number(struct tw_note_keys *t, struct tw_note_key k, uint32_t *ret)
{
	uint32_t at;
	char *copy;

	if (t->n == t->cap && t->n < t->max && !grow(t))
		return TW_NOTE_NO_MEMORY;
	at = slot_of(t, &k);
	if (t->slots[at]) {
		*ret = t->slots[at] - 1;
		return TW_NOTE_KNOWN;
	}
	if (t->n == t->max)
		return TW_NOTE_FULL;
	copy = tw_arena_str(t->a, k.text);
	if (!copy)
		return TW_NOTE_NO_MEMORY;
	k.text.ptr = copy;
	t->keys[t->n] = k;
	t->slots[at] = ++t->n;
	*ret = t->n - 1;
	return TW_NOTE_ADDED;
}

/* The details were written by perfetto_frames.c. */
static const struct {
	const char *detail, *track;
} FRAMES[] = {
        {"\"timeline\":\"expected\",\"of\":\"surface\"", "expected surface"},
        {"\"timeline\":\"actual\",\"of\":\"surface\"", "actual surface"},
        {"\"timeline\":\"expected\",\"of\":\"display\"", "expected display"},
        {"\"timeline\":\"actual\",\"of\":\"display\"", "actual display"},
};

struct tw_str tw_note_track(const struct tw_note_row *n)
{
	if (n->kind == TW_NOTE_counter)
		return n->text;
	for (size_t i = 0; n->kind == TW_NOTE_frame && i < sizeof FRAMES / sizeof *FRAMES; i++)
		if (tw_str_find(n->detail, tw_str_of(FRAMES[i].detail)) < n->detail.len)
			return tw_str_of(FRAMES[i].track);
	return TW_STR("");
}

/* Words of perfetto_frames.c, the heaviest first. */
static const struct {
	const char *word;
	enum tw_note_outcome outcome;
} JANKS[] = {
        {"app deadline missed", TW_OUTCOME_LATE_APP},
        {"compositor scheduling", TW_OUTCOME_LATE_OTHER},
        {"compositor CPU deadline missed", TW_OUTCOME_LATE_OTHER},
        {"compositor GPU deadline missed", TW_OUTCOME_LATE_OTHER},
        {"prediction error", TW_OUTCOME_LATE_OTHER},
        {"display HAL", TW_OUTCOME_LATE_OTHER},
        {"unknown", TW_OUTCOME_LATE_OTHER},
        {"other", TW_OUTCOME_LATE_OTHER},
        {"dropped frame", TW_OUTCOME_DROPPED},
        {"stuffing", TW_OUTCOME_QUEUED},
        {"none", TW_OUTCOME_ON_TIME},
};

enum tw_note_outcome tw_note_outcome(const struct tw_note_row *n)
{
	const struct tw_str key = TW_STR("\"jank\":\"");
	size_t at = n->kind == TW_NOTE_frame ? tw_str_find(n->detail, key) : n->detail.len;
	struct tw_str janks;

	if (at >= n->detail.len)
		return TW_OUTCOME_NONE;
	janks = tw_str_from(n->detail, at + key.len);
	janks.len = tw_str_find(janks, TW_STR("\""));
	for (size_t i = 0; i < sizeof JANKS / sizeof *JANKS; i++)
		if (tw_str_find(janks, tw_str_of(JANKS[i].word)) < janks.len)
			return JANKS[i].outcome;
	return TW_OUTCOME_NONE;
}

const char *tw_note_outcome_name(enum tw_note_outcome o)
{
	static const char *const names[TW_OUTCOME_COUNT] = {
	        "", "on_time", "queued", "dropped", "late_other", "late_app"};

	return names[o];
}

struct tw_note_key tw_note_key_of_sum(const struct tw_note_row *n)
{
	return (struct tw_note_key){
	        n->kind, n->thread_id, n->kind == TW_NOTE_state ? n->text : tw_note_track(n)};
}
