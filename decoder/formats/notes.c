/* notes.c - names of notes and of sources. */
#include "decoder/formats/notes.h"

#include <string.h>

#include "decoder/formats/sink.h"

static const struct tw_note_info infos[TW_NOTE_COUNT] = {
#define NOTE(name, value, text, meaning) {#name, value, text, meaning},
#include "decoder/formats/notes.def"
#undef NOTE
};

const struct tw_note_info *tw_note_info(enum tw_note_kind kind)
{
	return &infos[kind];
}

enum tw_note_kind tw_note_of_name(const char *name)
{
	for (int i = 0; i < TW_NOTE_COUNT; i++)
		if (strcmp(infos[i].name, name) == 0)
			return (enum tw_note_kind)i;
	return TW_NOTE_COUNT;
}

static const char *const source_words[] = {
        [TW_SOURCE_CALLS] = "calls",
        [TW_SOURCE_SAMPLES] = "samples",
        [TW_SOURCE_COUNTS] = "counts",
};

const char *tw_slice_source_name(enum tw_source source)
{
	return source_words[source];
}

enum tw_source tw_slice_source_of_name(const char *word)
{
	for (int i = TW_SOURCE_COUNTS; i > TW_SOURCE_CALLS; i--)
		if (strcmp(source_words[i], word) == 0)
			return (enum tw_source)i;
	return TW_SOURCE_CALLS;
}
