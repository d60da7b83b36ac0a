/*
 * export_d3.c - the merged flame graph as nested JSON for d3-flame-graph.
 *
 * A node is {name, value, self, count, children}; `value` includes the children. Omitted nodes are
 * added as `(other)`, so every sum is correct.
 */
#include "server/export/export_format.h"

static void close_to(struct tw_export *x, uint32_t from, uint32_t depth)
{
	for (uint32_t d = from + 1; d > depth; d--) {
		tw_json_close(&x->j, ']');
		tw_json_close(&x->j, '}');
	}
}

static void node(struct tw_export *x, uint32_t i)
{
	const struct tw_flame_node *n = &x->flame.nodes[i];

	if (i)
		close_to(x, x->flame.nodes[i - 1].depth, n->depth);
	tw_json_open(&x->j, '{');
	tw_json_key_str(&x->j, "name", tw_export_node_name(x, i));
	TW_JSON_MEMBERS(&x->j, n, value, self, count);
	tw_json_key_open(&x->j, "children", '[');
}

static void tail(struct tw_export *x, uint32_t i)
{
	(void)i;
	close_to(x, x->flame.nodes[x->flame.n - 1].depth, 0);
}

static const struct tw_export_step program[] = {
        {TW_WALK_FLAME, node},
        {TW_WALK_ONCE, tail},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_d3 = {
        .kind = {.name = "d3",
                .suffix = ".d3.json",
                .type = "application/json",
                .summary = "the merged flame graph as nested JSON"},
        .program = program,
        .flame_nodes = 20000,
        .metrics = 1 << TW_EXPORT_WALL | 1 << TW_EXPORT_COUNT,
};
