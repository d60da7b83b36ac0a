/*
 * export_pprof.c - a pprof profile: a sample for each stack, with wall time, calls and CPU time.
 */
#include <string.h>

#include "server/export/export_format.h"
#include "server/export/pprof_write.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, MESSAGE_BYTES = 64 };

struct profile {
	struct tw_pprof w;
	uint64_t key_thread, key_tid, key_source; /* strings of label keys and values */
	uint64_t thread, source;                  /* of the current thread */
	uint32_t functions;                       /* written so far */
};

static void put_comment(struct tw_export *x, const char *key, const char *text)
{
	struct profile *p = x->state;
	const char *comment = tw_arena_printf(x->arena, "%s%s", key, text);

	if (text[0] && comment)
		tw_pprof_number(
		        &p->w, TW_PPROF_COMMENT, tw_pprof_string(&p->w, tw_str_of(comment)));
}

static void head(struct tw_export *x, uint32_t i)
{
	struct profile *p = x->state;
	uint64_t wall;

	(void)i;
	tw_pprof_begin(&p->w, &x->out);
	wall = tw_pprof_type(&p->w, TW_PPROF_SAMPLE_TYPE, "wall", "nanoseconds");
	(void)tw_pprof_type(&p->w, TW_PPROF_SAMPLE_TYPE, "calls", "count");
	if (x->info->has_cpu)
		(void)tw_pprof_type(&p->w, TW_PPROF_SAMPLE_TYPE, "cpu", "nanoseconds");
	(void)tw_pprof_type(&p->w, TW_PPROF_PERIOD_TYPE, "wall", "nanoseconds");
	tw_pprof_number(&p->w, TW_PPROF_PERIOD, 1);
	tw_pprof_number(&p->w, TW_PPROF_DEFAULT_TYPE, wall);
	if (x->facts.started_ms > 0)
		tw_pprof_number(&p->w, TW_PPROF_TIME, (uint64_t)x->facts.started_ms * 1000000);
	tw_pprof_number(&p->w, TW_PPROF_DURATION, (uint64_t)(x->info->end_ns - x->info->start_ns));
	put_comment(x, "", x->facts.title);
	put_comment(x, "trace ", x->facts.trace_id);
	put_comment(x, "", x->facts.url);
	put_comment(x, "made by tracewell ", TW_VERSION);
	p->key_thread = tw_pprof_string(&p->w, TW_STR("thread"));
	p->key_tid = tw_pprof_string(&p->w, TW_STR("tid"));
	p->key_source = tw_pprof_string(&p->w, TW_STR("source"));
}

static void thread(struct tw_export *x, uint32_t i)
{
	struct profile *p = x->state;
	const char *suffix = tw_export_source_suffix(x->thread);

	(void)i;
	p->thread = tw_pprof_string(&p->w, tw_export_thread_name(x));
	p->source = tw_pprof_string(&p->w, suffix[0] ? tw_str_of(suffix + 2) : TW_STR("calls"));
}

/* A method's location and function have the same number. */
static uint32_t location(struct tw_export *x, uint32_t method)
{
	struct profile *p = x->state;
	uint32_t id = tw_export_number(x, method);

	if (id > p->functions) {
		p->functions = id;
		tw_pprof_location(&p->w, id, tw_export_name(x, method));
	}
	return id;
}

/* Labels, encoded before the sample that contains them, as its length includes theirs. */
static size_t make_labels(const struct tw_export *x, uint8_t out[3 * MESSAGE_BYTES])
{
	const struct profile *p = x->state;
	const uint64_t labels[3][3] = {{p->key_thread, 2, p->thread},
	        {p->key_tid, 3, x->thread->tid}, {p->key_source, 2, p->source}};
	uint8_t *at = out;

	for (int i = 0; i < 3; i++) {
		*at++ = 3 << 3 | WIRE_BYTES;
		*at++ = (uint8_t)(2 + tw_pprof_varint_bytes(labels[i][0]) +
		                  tw_pprof_varint_bytes(labels[i][2]));
		*at++ = 1 << 3 | WIRE_VARINT;
		at = tw_put_varint(at, labels[i][0]);
		*at++ = (uint8_t)(labels[i][1] << 3 | WIRE_VARINT);
		at = tw_put_varint(at, labels[i][2]);
	}
	return (size_t)(at - out);
}

static void sample(struct tw_export *x, uint32_t i)
{
	struct profile *p = x->state;
	const struct tw_tree_node *n = &x->tree.nodes[i];
	const uint64_t values[3] = {
	        (uint64_t)n->self_ns, n->count, (uint64_t)tw_export_self_cpu(x, i)};
	uint8_t labels[3 * MESSAGE_BYTES];
	struct tw_pprof_sample s = {.values = values,
	        .n_values = x->info->has_cpu ? 3 : 2,
	        .labels = labels,
	        .labels_bytes = make_labels(x, labels)};

	for (uint32_t d = n->depth; d > 0; d--)
		s.stack_bytes +=
		        tw_pprof_varint_bytes(location(x, x->tree.nodes[x->path[d]].method));
	tw_pprof_sample(&p->w, &s);
	for (uint32_t d = n->depth; d > 0; d--)
		(void)tw_buf_add_varint(
		        &x->out, tw_export_number(x, x->tree.nodes[x->path[d]].method));
}

static const struct tw_export_step program[] = {
        {TW_WALK_ONCE, head},
        {TW_WALK_THREADS, NULL},
        {TW_WALK_ONCE, thread},
        {TW_WALK_NODES, sample},
        {TW_WALK_NEXT_THREAD, NULL},
        {TW_WALK_END, NULL},
};

const struct tw_export_format tw_export_pprof = {
        .kind = {.name = "pprof",
                .suffix = ".pb.gz",
                .type = "application/octet-stream",
                .packed = true,
                .summary = "a pprof profile: wall time, calls and CPU time of each stack"},
        .program = program,
        .state_bytes = sizeof(struct profile),
        .metrics = 1 << TW_EXPORT_WALL,
        .gzip = true,
};
