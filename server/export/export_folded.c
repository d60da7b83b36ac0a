/*
 * export_folded.c - folded stacks, `thread;a;b;c value` per line, for flamegraph.pl and similar
 * tools.
 *
 * The value is the innermost frame's own: wall or CPU nanoseconds, or calls. Lines with value 0
 * are omitted. The format has no escapes: `;` in a name becomes `:`, control characters become
 * spaces, and an empty name `?`.
 */
#include "server/export/export_format.h"

void tw_folded_frame(struct tw_buf *out, struct tw_str name)
{
	size_t at = out->len;

	if (tw_buf_add_str(out, name.len ? name : TW_STR("?")) != TW_OK)
		return;
	for (; at < out->len; at++) {
		if (out->data[at] == ';')
			out->data[at] = ':';
		else if (out->data[at] < 0x20 || out->data[at] == 0x7F)
			out->data[at] = ' ';
	}
}

static void line(struct tw_export *x, uint32_t i)
{
	const struct tw_tree_node *n = &x->tree.nodes[i];
	int64_t value = tw_export_self(x, i);

	if (value == 0)
		return;
	if (!x->q.merged)
		tw_folded_frame(&x->out, tw_export_thread_name(x));
	for (uint32_t d = 1; d <= n->depth; d++) {
		if (d > 1 || !x->q.merged)
			(void)tw_buf_add(&x->out, ";", 1);
		tw_folded_frame(&x->out, tw_export_name(x, x->tree.nodes[x->path[d]].method));
	}
	(void)tw_buf_add(&x->out, " ", 1);
	tw_export_decimal(&x->out, value, 0);
	(void)tw_buf_add(&x->out, "\n", 1);
}

static const struct tw_export_step program[] = {
        {TW_WALK_THREADS, NULL},
        {TW_WALK_NODES, line},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_folded = {
        .kind = {.name = "folded",
                .suffix = ".folded.txt",
                .type = "text/plain; charset=utf-8",
                .summary = "folded stacks with wall time, CPU time or calls"},
        .program = program,
        .metrics = 1 << TW_EXPORT_WALL | 1 << TW_EXPORT_COUNT | 1 << TW_EXPORT_CPU,
};
