/*
 * note_keys.h - numbers for what notes are told apart by: kind, thread and text.
 *
 * Thread: one at a time.
 */
#ifndef TW_NOTE_KEYS_H
#define TW_NOTE_KEYS_H

#include "decoder/trace/builder.h"

struct tw_note_key {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: of the whole trace */
	struct tw_str text;
};

/* All zeros but a and max to begin with. */
struct tw_note_keys {
	struct tw_arena *a;
	struct tw_note_key *keys; /* in the order in which they came; texts are copies */
	uint32_t *slots;          /* number + 1; 0 free */
	uint32_t n, cap;
	uint32_t max; /* so many keys and no more */
};

enum tw_note_found { TW_NOTE_MET, TW_NOTE_ADDED, TW_NOTE_FULL, TW_NOTE_NO_MEMORY };

/* The number of a key, from 0, a new one where it was not met before. */
enum tw_note_found tw_note_keys_number(struct tw_note_keys *t, struct tw_note_key k, uint32_t *ret);

/* Notes of states and counters are told apart by their text; of others it is left out. */
struct tw_note_key tw_note_key_of_sum(const struct tw_note_row *n);

#endif
