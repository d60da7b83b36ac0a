/* random_tree.c - see random_tree.h. */
#include "random_tree.h"

uint64_t random_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

struct tw_tree random_tree(struct tw_arena *a, uint64_t seed, uint32_t n)
{
	struct tw_tree t = {tw_arena_zalloc(a, n, sizeof *t.nodes), n};
	uint32_t open[RANDOM_TREE_DEPTH] = {0};
	uint32_t depth = 0;

	t.nodes[0].method = TW_NO_METHOD;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t up = (uint32_t)(random_number(&seed) % 3);

		depth = depth > up ? depth - up : 0;
		if (depth > RANDOM_TREE_DEPTH - 2)
			depth = RANDOM_TREE_DEPTH - 2;
		t.nodes[i] = (struct tw_tree_node){.parent = open[depth],
		        .method = (uint32_t)(random_number(&seed) % RANDOM_TREE_METHODS),
		        .depth = depth + 1,
		        .count = 1 + random_number(&seed) % 5,
		        .self_ns = (int64_t)(random_number(&seed) % 1000),
		        .cpu_ns = (int64_t)(random_number(&seed) % 1000),
		        .max_ns = 7};
		t.nodes[i].total_ns = t.nodes[i].self_ns;
		open[++depth] = i;
	}
	for (uint32_t i = n; i-- > 0;) {
		t.nodes[i].subtree++;
		if (i == 0)
			break;
		t.nodes[t.nodes[i].parent].subtree += t.nodes[i].subtree;
		t.nodes[t.nodes[i].parent].total_ns += t.nodes[i].total_ns;
		t.nodes[t.nodes[i].parent].cpu_ns += t.nodes[i].cpu_ns;
	}
	t.nodes[0].cpu_ns = -1;
	return t;
}
