/*
 * note_names.h - the classes and methods that notes tell, by the mapping of their build.
 *
 * Like anr_names.h: put in when a note is read, so that a mapping may come late (I8).
 * Knows neither HTTP nor SQL.  Thread: any.
 */
#ifndef TW_NOTE_NAMES_H
#define TW_NOTE_NAMES_H

#include <jansson.h>

#include "decoder/formats/notes.h"
#include "decoder/symbols/retrace.h"

/* The text of a note: of those that tell a class its original, else as it is. */
struct tw_str tw_note_text(
        const struct tw_retrace *retrace, enum tw_note_kind kind, struct tw_str text);

/* Changes the methods and sources of a note's detail in place.  False: no memory. */
bool tw_note_detail(const struct tw_retrace *retrace, json_t *detail);

#endif
