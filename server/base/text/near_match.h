/*
 * near_match.h - suggests the intended word for an unknown one.
 * Pure.  Thread: any.
 */
#ifndef TW_NEAR_MATCH_H
#define TW_NEAR_MATCH_H

#include <stddef.h>

/* Edit distance: insertions, deletions, substitutions and swaps of neighbours; 99 if a word has
 * more than 63 bytes. */
unsigned tw_near_distance(const char *a, const char *b);

struct tw_near_match {
	const char *best; /* NULL: none is close enough */
	unsigned distance;
};
/* Compares `name` with `word` and keeps the nearest.  Eligible are names that begin with `word`, or
 * differ by at most three letters and a third of it. */
void tw_near_match_try(struct tw_near_match *n, const char *word, const char *name);

#endif
