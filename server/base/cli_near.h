/*
 * cli_near.h - what was meant by a word that nobody knows.
 */
#ifndef TW_CLI_NEAR_H
#define TW_CLI_NEAR_H

#include <stddef.h>

/* How many letters must be put in, left out, changed or swapped to make one of the other; words of
 * more than 63 bytes are like none: 99. */
unsigned tw_cli_distance(const char *a, const char *b);

struct tw_cli_nearest {
	const char *best; /* NULL: nothing is like it */
	unsigned distance;
};
/* Holds one more name against `word`: the nearest stays, of those that differ in a third of it,
 * three letters or less, or begin with it. */
void tw_cli_near(struct tw_cli_nearest *n, const char *word, const char *name);

#endif
