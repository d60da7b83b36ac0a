/*
 * note_keys.h - numbers the distinct keys of notes: kind, thread and text.
 *
 * Thread: one at a time.
 */
#ifndef TW_NOTE_KEYS_H
#define TW_NOTE_KEYS_H

#include "decoder/trace/trace_out.h"

struct tw_note_key {
	enum tw_note_kind kind;
	uint32_t thread_id; /* 0: the trace itself */
	struct tw_str text;
};

/* Initialise with zeros except a and max. */
struct tw_note_keys {
	struct tw_arena *a;
	struct tw_note_key *keys; /* by number; texts are copies */
	uint32_t *slots;          /* number + 1; 0 free */
	uint32_t n, cap;
	uint32_t max; /* maximum number of keys */
};

enum tw_note_found { TW_NOTE_KNOWN, TW_NOTE_ADDED, TW_NOTE_FULL, TW_NOTE_NO_MEMORY };

/* The number of a key, from 0; new keys are added. */
enum tw_note_found tw_note_keys_number(struct tw_note_keys *t, struct tw_note_key k, uint32_t *ret);

/* The track on which a note of its kind and thread is drawn: a counter's name; for a frame "actual
 * surface", "expected display" and so on, because they overlap; empty if the kind has one track. */
struct tw_str tw_note_track(const struct tw_note_row *n);

/* How an actual frame was shown, by rising weight.  A frame with several janks has the heaviest. */
enum tw_note_outcome {
	TW_OUTCOME_NONE, /* not an actual frame, or its jank is unknown to the device */
	TW_OUTCOME_ON_TIME,
	TW_OUTCOME_QUEUED,     /* behind earlier frames of the app: smooth, but late */
	TW_OUTCOME_DROPPED,    /* replaced by a newer frame */
	TW_OUTCOME_LATE_OTHER, /* because of the compositor, the display, or for unknown reasons */
	TW_OUTCOME_LATE_APP,
	TW_OUTCOME_COUNT
};

enum tw_note_outcome tw_note_outcome(const struct tw_note_row *n);

/* "late_app" and so on; empty for TW_OUTCOME_NONE. */
const char *tw_note_outcome_name(enum tw_note_outcome o);

/* The key for sums: with the text for states, and with the track. */
struct tw_note_key tw_note_key_of_sum(const struct tw_note_row *n);

#endif
