/*
 * random_tree.h - random call trees, for tests of operations on trees.
 */
#ifndef TW_RANDOM_TREE_H
#define TW_RANDOM_TREE_H

#include "decoder/trace/calltree.h"

enum { RANDOM_TREE_METHODS = 9, RANDOM_TREE_DEPTH = 24 };

/* The next number of a sequence, below 2^31. */
uint64_t random_number(uint64_t *state);

/* n nodes in pre-order, each below one of the open ones; siblings may share a method, as in a
 * reshaped tree. */
struct tw_tree random_tree(struct tw_arena *a, uint64_t seed, uint32_t n);

#endif
