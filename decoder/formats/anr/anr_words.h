/*
 * anr_words.h - sentences with names in them that may be told otherwise later.
 *
 * A verdict is made with whole names between marks.  What is shown has the last
 * parts of them; the document carries the pieces too, so that a mapping that comes
 * later can name them (I8).  Texts of a report have no control characters, so that
 * none of them can be taken for a mark.  Pure.  Thread: any.
 */
#ifndef TW_ANR_WORDS_H
#define TW_ANR_WORDS_H

#include <stdbool.h>

#include "decoder/base/arena.h"
#include "decoder/base/str.h"

#define TW_ANR_MARK_METHOD "\x01" /* pkg.Class.method up to the end mark */
#define TW_ANR_MARK_CLASS  "\x02" /* pkg.Class */
#define TW_ANR_MARK_END    "\x03"

enum tw_anr_part { TW_ANR_PART_TEXT, TW_ANR_PART_METHOD, TW_ANR_PART_CLASS };

/* Cuts the first piece off *marked; false when nothing is left. */
bool tw_anr_next_part(struct tw_str *marked, struct tw_str *ret, enum tw_anr_part *ret_kind);
/* "Class.method" or "Class" of a whole name; as it is when it is text.  Not more than fits a
 * sentence, whole characters. */
struct tw_str tw_anr_short(struct tw_str name, enum tw_anr_part kind);
/* The sentence as it is shown; NULL: no memory. */
char *tw_anr_plain(struct tw_arena *a, const char *marked);

#endif
