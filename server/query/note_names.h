/*
 * note_names.h - original names of the classes and methods in notes, by the mapping of their build.
 *
 * Like anr_names.h: names are resolved when a note is read, so that a mapping may arrive late (I8).
 * Independent of HTTP and SQL.  Thread: any.
 */
#ifndef TW_NOTE_NAMES_H
#define TW_NOTE_NAMES_H

#include <jansson.h>

#include "decoder/formats/notes.h"
#include "decoder/symbols/retrace.h"

/* The text of a note: the original name if it is a class, otherwise unchanged. */
struct tw_str tw_note_text(
        const struct tw_retrace *retrace, enum tw_note_kind kind, struct tw_str text);

/* Changes the methods and sources of a note's detail in place.  False: out of memory. */
bool tw_note_detail(const struct tw_retrace *retrace, json_t *detail);

#endif
