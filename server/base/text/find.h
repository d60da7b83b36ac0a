/*
 * find.h - finds names by a search text: all its words must occur, ignoring case (ASCII).
 *
 * `*` in a word matches any text; such a word matches from the start of a part of the name and,
 * unless it ends with `*`, to the name's end: `*.warmUp`, `com.acme.*Parser.parse`.  A method's
 * name ends before its parameters.  The cost is at most words x text x name.
 * Thread: any.
 */
#ifndef TW_FIND_H
#define TW_FIND_H

#include <stdint.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"

enum { TW_FIND_BYTES = 200, TW_FIND_WORDS = 8 };

struct tw_find { /* borrows the text */
	struct tw_str words[TW_FIND_WORDS];
	size_t n; /* 0: finds nothing */
};

/* TW_BAD_REQUEST if the text is too long or has too many words. */
enum tw_status tw_find_read(const char *text, struct tw_find *ret, struct tw_err *err) TW_MUST_USE;

/* How well a name fits: the rank of the word with the worst position in it. */
enum tw_find_rank {
	TW_FIND_NOT,
	TW_FIND_WITHIN, /* inside a part of the name */
	TW_FIND_BEGIN,  /* a part begins with it */
	TW_FIND_END, /* a part or several, up to the end: Parser.parse of com.acme.Parser.parse */
	TW_FIND_WHOLE
};
enum tw_find_rank tw_find_rank(const struct tw_find *f, struct tw_str name);

/* --- typing errors --- */

enum { TW_FIND_LETTERS = 64, TW_FIND_FAR = 99 };

struct tw_find_near { /* the words as bits: bit i of at[c] is set if letter i of the word is c */
	struct tw_find_near_word {
		uint64_t at[256];
		unsigned len, errors; /* errors: the maximum */
	} words[TW_FIND_WORDS];
	size_t n; /* 0: a word has a `*` or too many letters */
};
void tw_find_near_read(const struct tw_find *f, struct tw_find_near *ret);

/* The number of letters that are missing, added, replaced or swapped with their neighbour where the
 * words occur in the name; TW_FIND_FAR: too many.  A word of up to 3 letters may have no error, up
 * to 5 one, up to 11 two, a longer one three.  Costs words x name. */
unsigned tw_find_errors(const struct tw_find_near *f, struct tw_str name);

/* The number of such errors by which a complete name differs; TW_FIND_FAR if the word is empty or
 * has too many letters. */
unsigned tw_near_distance(const char *word, const char *name);

struct tw_near_match {    /* suggests the intended name for an unknown word */
	const char *best; /* NULL: none is close enough */
	unsigned distance;
};
/* Compares `name` with `word` and keeps the nearest.  Eligible are names that begin with `word`, or
 * differ by at most three letters and a third of it. */
void tw_near_match_try(struct tw_near_match *n, const char *word, const char *name);

#endif
