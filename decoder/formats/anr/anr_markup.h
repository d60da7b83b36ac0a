/*
 * anr_markup.h - texts with embedded names that can be renamed later.
 *
 * A verdict is built with full names between markup bytes.  The displayed text shows only their
 * last parts.  The document also stores the pieces, so that a later mapping can rename them (I8).
 * Texts of a report contain no control characters, so they cannot be mistaken for markup.
 * Pure.  Thread: any.
 */
#ifndef TW_ANR_MARKUP_H
#define TW_ANR_MARKUP_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/str.h"

#define TW_ANR_MARKUP_METHOD "\x01" /* pkg.Class.method, up to the end byte */
#define TW_ANR_MARKUP_CLASS  "\x02" /* pkg.Class */
#define TW_ANR_MARKUP_END    "\x03"

enum tw_anr_part { TW_ANR_PART_TEXT, TW_ANR_PART_METHOD, TW_ANR_PART_CLASS };

/* Removes the first piece from *with_markup; false if nothing is left. */
bool tw_anr_next_part(struct tw_str *with_markup, struct tw_str *ret, enum tw_anr_part *ret_kind);
/* "Class.method" or "Class" of a full name; text is returned unchanged.  Truncated at a character
 * boundary to a length that fits a sentence. */
struct tw_str tw_anr_short(struct tw_str name, enum tw_anr_part kind);
/* The text as displayed; NULL: out of memory. */
char *tw_anr_plain(struct tw_arena *a, const char *with_markup);

#endif
