/* lists.c - notes.def, repairs.def and formats.def as tables. */
#include "decoder/formats/notes.h"

#include <string.h>

#include "decoder/formats/format.h"
#include "decoder/formats/repairs.h"
#include "decoder/formats/sink.h"

static const struct tw_note_info note_infos[TW_NOTE_COUNT] = {
#define NOTE(name, value, text, meaning) {#name, value, text, meaning},
#include "decoder/formats/notes.def"
#undef NOTE
};

const struct tw_note_info *tw_note_info(enum tw_note_kind kind)
{
	return &note_infos[kind];
}

enum tw_note_kind tw_note_of_name(const char *name)
{
	for (int i = 0; i < TW_NOTE_COUNT; i++)
		if (strcmp(note_infos[i].name, name) == 0)
			return (enum tw_note_kind)i;
	return TW_NOTE_COUNT;
}

static const char *const source_names[] = {
        [TW_SOURCE_CALLS] = "calls",
        [TW_SOURCE_SAMPLES] = "samples",
        [TW_SOURCE_COUNTS] = "counts",
};

const char *tw_slice_source_name(enum tw_source source)
{
	return source_names[source];
}

enum tw_source tw_slice_source_of_name(const char *word)
{
	for (int i = TW_SOURCE_COUNTS; i > TW_SOURCE_CALLS; i--)
		if (strcmp(source_names[i], word) == 0)
			return (enum tw_source)i;
	return TW_SOURCE_CALLS;
}

/* --- repairs.def --- */

#define WORD_NOTE   "note"
#define WORD_REPAIR "repair"
#define WORD_LOSS   "loss"

static const struct tw_repair_info repair_infos[TW_REPAIR_COUNT] = {
#define REPAIR(name, kind, meaning) {#name, TW_REPAIR_##kind, WORD_##kind, meaning},
#include "decoder/formats/repairs.def"
#undef REPAIR
};

const struct tw_repair_info *tw_repair_info(enum tw_repair what)
{
	return &repair_infos[what];
}

enum tw_repair tw_repair_of_name(const char *name)
{
	for (int i = 0; i < TW_REPAIR_COUNT; i++)
		if (strcmp(repair_infos[i].name, name) == 0)
			return (enum tw_repair)i;
	return TW_REPAIR_COUNT;
}

/* --- formats.def --- */

#define FORMAT(name) extern const struct tw_format tw_format_##name;
#include "decoder/formats/formats.def"
#undef FORMAT

static const struct tw_format *const formats[] = {
#define FORMAT(name) &tw_format_##name,
#include "decoder/formats/formats.def"
#undef FORMAT
};

enum { /* NOLINTNEXTLINE(bugprone-sizeof-expression) an array of pointers */
	FORMAT_COUNT = sizeof formats / sizeof *formats
};

const struct tw_format *const *tw_formats(size_t *ret_n)
{
	*ret_n = FORMAT_COUNT;
	return formats;
}

const struct tw_format *tw_format_by_name(struct tw_str name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (tw_str_eq(tw_str_of(formats[i]->name), name))
			return formats[i];
	return NULL;
}

const struct tw_format *tw_format_probe(const uint8_t *head, size_t len)
{
	const struct tw_format *best = NULL;
	int best_score = 0;

	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		int score = formats[i]->probe(head, len);

		if (score > best_score) {
			best = formats[i];
			best_score = score;
		}
	}
	return best;
}

bool tw_format_fits(const struct tw_format *f, const char *part)
{
	struct tw_str rest = tw_str_of(f->part);

	while (part && rest.len)
		if (tw_str_eq(tw_str_split(&rest, ' '), tw_str_of(part)))
			return true;
	return part == NULL;
}
