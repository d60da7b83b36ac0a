/*
 * note_columns.h - notes as columns: the bytes of a block of notes (schema/columns.md).
 *
 * Thread: any.
 */
#ifndef TW_NOTE_COLUMNS_H
#define TW_NOTE_COLUMNS_H

#include "decoder/trace/trace_out.h"

/* Appends the block of 1 to TW_NOTES_AT_ONCE notes.  Texts are made valid UTF-8.  One that several
 * notes share by its address is stored once. */
enum tw_status tw_notes_encode(
        const struct tw_note_row *rows, size_t n, struct tw_buf *out) TW_MUST_USE;

struct tw_notes {
	struct tw_note_row *rows;
	size_t n;
};

/* Decodes a payload into the arena; texts remain in the payload.  A note of a kind that this
 * program does not know has the kind TW_NOTE_COUNT.  Accepts any bytes: TW_CORRUPT if invalid. */
enum tw_status tw_notes_decode(const uint8_t *payload, size_t len, struct tw_arena *a,
        struct tw_notes *ret, struct tw_err *err) TW_MUST_USE;

#endif
