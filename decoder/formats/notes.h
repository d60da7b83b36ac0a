/*
 * notes.h - events of a trace other than calls (notes.def).
 *
 * Counters, scheduler states, lock waits, thread starts, collections and markers share one record,
 * so that a format can emit a new kind of fact without a new table in every layer.
 */
#ifndef TW_NOTES_H
#define TW_NOTES_H

#include <stdint.h>

#include "decoder/base/str.h"

enum tw_note_kind {
#define NOTE(name, value, text, meaning) TW_NOTE_##name,
#include "decoder/formats/notes.def"
#undef NOTE
	TW_NOTE_COUNT
};

struct tw_note {
	enum tw_note_kind kind;
	uint32_t track; /* 0: of the trace as a whole */
	int64_t ts_ns;
	int64_t dur_ns; /* -1: an instant */
	int64_t value;
	uint64_t offset;      /* in the decoded input */
	struct tw_str text;   /* borrowed */
	struct tw_str detail; /* a JSON object with further facts, or "" */
};

struct tw_note_info {
	const char *name, *value, *text, *meaning;
};

/* Never NULL; kind must be below TW_NOTE_COUNT. */
const struct tw_note_info *tw_note_info(enum tw_note_kind kind);
/* TW_NOTE_COUNT if the name is unknown. */
enum tw_note_kind tw_note_of_name(const char *name);

#endif
