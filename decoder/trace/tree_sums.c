#include "decoder/trace/tree_sums.h"

#include "decoder/base/list.h"
#include "decoder/base/order.h"

bool tw_tree_sums_begin(struct tw_tree_sums *s, uint32_t max_nodes)
{
	*s = (struct tw_tree_sums){
	        .nodes = tw_mem_alloc_to_fill(max_nodes * sizeof *s->nodes), .cap_open = 64};
	s->open = tw_mem_alloc(s->cap_open, sizeof *s->open);
	if (s->nodes && s->open)
		return true;
	tw_tree_sums_done(s);
	return false;
}

/* Nodes whose subtree is complete, down to the given depth, get its size. */
static void close_nodes(struct tw_tree_sums *s, uint32_t depth)
{
	while (s->depth > depth) {
		const uint32_t node = s->open[--s->depth];

		s->nodes[node].subtree = s->n - node;
	}
}

static bool add_wide(struct tw_tree_sums *s, const struct tw_tree_node *node)
{
	if (!TW_GROW_MEM(s->wide, s->n_wide, s->cap_wide))
		return false;
	s->wide[s->n_wide++] = (struct tw_wide_sums){node->count, node->max_ns, s->n};
	return true;
}

bool tw_tree_sums_add(struct tw_tree_sums *s, const struct tw_tree_node *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_tree_node *const node = &nodes[i];
		const bool wide = node->count >= TW_WIDE_SUMS || node->max_ns >= TW_WIDE_SUMS;

		if ((wide && !add_wide(s, node)) || !TW_GROW_MEM(s->open, node->depth, s->cap_open))
			return false;
		close_nodes(s, node->depth);
		s->open[s->depth++] = s->n;
		s->nodes[s->n++] = (struct tw_node_sums){
		        .method = node->method,
		        .total_ns = node->total_ns,
		        .count = wide ? TW_WIDE_SUMS : (uint32_t)node->count,
		        .max_ns = wide ? TW_WIDE_SUMS : (uint32_t)node->max_ns,
		};
	}
	return true;
}

void tw_tree_sums_end(struct tw_tree_sums *s)
{
	close_nodes(s, 0);
	tw_mem_free(s->open);
	s->open = NULL;
}

void tw_tree_sums_done(struct tw_tree_sums *s)
{
	tw_mem_free(s->nodes);
	tw_mem_free(s->wide);
	tw_mem_free(s->open);
	*s = (struct tw_tree_sums){0};
}

const struct tw_wide_sums *tw_tree_sums_wide(const struct tw_tree_sums *s, uint32_t node)
{
	uint32_t i;

	TW_BISECT(i, s->n_wide, s->wide[i].node < node);
	return &s->wide[i];
}
