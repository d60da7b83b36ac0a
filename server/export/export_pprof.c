/*
 * export_pprof.c - a pprof profile: a sample for each stack, with wall time, calls and CPU time.
 *
 *   1 sample_type {1 type, 2 unit}      2 sample {1 locations, innermost first; 2 values; 3 labels}
 *   4 location {1 id, 4 line {1 function}}       5 function {1 id, 2 name}      6 string_table
 *   9 time_nanos  10 duration_nanos  11 period_type  12 period  13 comment  14 default_sample_type
 *
 * Fields of a message may come in any order and a repeated one in pieces, so each
 * function, location and string is written where it is first needed, and nothing
 * is gathered.  Learned from the public profile.proto; it is gzip'ed outside.
 */
#include <string.h>

#include "server/export/export_format.h"

enum { /* fields of Profile, all of them messages, strings or varints */
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	TIME = 9,
	DURATION = 10,
	PERIOD_TYPE = 11,
	PERIOD = 12,
	COMMENT = 13,
	DEFAULT_TYPE = 14
};
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, MESSAGE_BYTES = 64 };

struct profile {
	uint64_t strings;                         /* written so far */
	uint64_t key_thread, key_tid, key_source; /* strings of label keys and values */
	uint64_t thread, source;                  /* of the current thread */
	uint32_t functions;                       /* written so far */
};

static void put_tag(struct tw_buf *out, unsigned field, unsigned wire)
{
	(void)tw_buf_add_u8(out, (uint8_t)(field << 3 | wire));
}

static void put_number(struct tw_buf *out, unsigned field, uint64_t v)
{
	put_tag(out, field, WIRE_VARINT);
	(void)tw_buf_add_varint(out, v);
}

static size_t varint_bytes(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

/* Returns the string's index in the table. */
static uint64_t put_string(struct tw_export *x, struct tw_str s)
{
	struct profile *p = x->state;

	put_tag(&x->out, STRING, WIRE_BYTES);
	(void)tw_buf_add_varint(&x->out, s.len);
	(void)tw_buf_add_str(&x->out, s);
	return p->strings++;
}

/* Writes a message of two numbers. */
static void put_pair(
        struct tw_buf *out, unsigned field, const unsigned fields[2], const uint64_t values[2])
{
	put_tag(out, field, WIRE_BYTES);
	(void)tw_buf_add_varint(out, 2 + varint_bytes(values[0]) + varint_bytes(values[1]));
	put_number(out, fields[0], values[0]);
	put_number(out, fields[1], values[1]);
}

static uint64_t put_type(struct tw_export *x, unsigned field, const char *type, const char *unit)
{
	uint64_t names[2] = {put_string(x, tw_str_of(type)), put_string(x, tw_str_of(unit))};

	put_pair(&x->out, field, (const unsigned[]){1, 2}, names);
	return names[0];
}

static void put_comment(struct tw_export *x, const char *key, const char *text)
{
	size_t n = strlen(key) + strlen(text);
	struct profile *p = x->state;

	if (!text[0])
		return;
	put_tag(&x->out, STRING, WIRE_BYTES);
	(void)tw_buf_add_varint(&x->out, n);
	(void)tw_buf_add_str(&x->out, tw_str_of(key));
	(void)tw_buf_add_str(&x->out, tw_str_of(text));
	put_number(&x->out, COMMENT, p->strings++);
}

static void head(struct tw_export *x, uint32_t i)
{
	struct profile *p = x->state;
	uint64_t wall;

	(void)i;
	(void)put_string(x, TW_STR("")); /* the format requires "" at index 0 */
	wall = put_type(x, SAMPLE_TYPE, "wall", "nanoseconds");
	(void)put_type(x, SAMPLE_TYPE, "calls", "count");
	if (x->info->has_cpu)
		(void)put_type(x, SAMPLE_TYPE, "cpu", "nanoseconds");
	(void)put_type(x, PERIOD_TYPE, "wall", "nanoseconds");
	put_number(&x->out, PERIOD, 1);
	put_number(&x->out, DEFAULT_TYPE, wall);
	if (x->facts.started_ms > 0)
		put_number(&x->out, TIME, (uint64_t)x->facts.started_ms * 1000000);
	put_number(&x->out, DURATION, (uint64_t)(x->info->end_ns - x->info->start_ns));
	put_comment(x, "", x->facts.title);
	put_comment(x, "trace ", x->facts.trace_id);
	put_comment(x, "", x->facts.url);
	put_comment(x, "made by tracewell ", TW_VERSION);
	p->key_thread = put_string(x, TW_STR("thread"));
	p->key_tid = put_string(x, TW_STR("tid"));
	p->key_source = put_string(x, TW_STR("source"));
}

static void thread(struct tw_export *x, uint32_t i)
{
	struct profile *p = x->state;
	const char *suffix = tw_export_source_suffix(x->thread);

	(void)i;
	p->thread = put_string(x, tw_export_thread_name(x));
	p->source = put_string(x, suffix[0] ? tw_str_of(suffix + 2) : TW_STR("calls"));
}

/* A method's location and function have the same number. */
static uint32_t location(struct tw_export *x, uint32_t method)
{
	struct profile *p = x->state;
	uint32_t id = tw_export_number(x, method);

	if (id > p->functions) {
		uint64_t name = put_string(x, tw_export_name(x, method));

		p->functions = id;
		put_pair(&x->out, FUNCTION, (const unsigned[]){1, 2}, (const uint64_t[]){id, name});
		put_tag(&x->out, LOCATION, WIRE_BYTES);
		(void)tw_buf_add_varint(&x->out, 4 + 2 * varint_bytes(id));
		put_number(&x->out, 1, id);
		put_tag(&x->out, 4, WIRE_BYTES);
		(void)tw_buf_add_varint(&x->out, 1 + varint_bytes(id));
		put_number(&x->out, 1, id);
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
		*at++ = (uint8_t)(2 + varint_bytes(labels[i][0]) + varint_bytes(labels[i][2]));
		*at++ = 1 << 3 | WIRE_VARINT;
		at = tw_put_varint(at, labels[i][0]);
		*at++ = (uint8_t)(labels[i][1] << 3 | WIRE_VARINT);
		at = tw_put_varint(at, labels[i][2]);
	}
	return (size_t)(at - out);
}

static void sample(struct tw_export *x, uint32_t i)
{
	const struct tw_tree_node *n = &x->tree.nodes[i];
	const uint64_t values[3] = {
	        (uint64_t)n->self_ns, n->count, (uint64_t)tw_export_self_cpu(x, i)};
	unsigned n_values = x->info->has_cpu ? 3 : 2;
	uint8_t labels[3 * MESSAGE_BYTES];
	size_t labels_bytes = make_labels(x, labels);
	size_t stack_bytes = 0;
	size_t value_bytes = 0;

	for (uint32_t d = n->depth; d > 0; d--)
		stack_bytes += varint_bytes(location(x, x->tree.nodes[x->path[d]].method));
	for (unsigned v = 0; v < n_values; v++)
		value_bytes += varint_bytes(values[v]);
	put_tag(&x->out, SAMPLE, WIRE_BYTES);
	(void)tw_buf_add_varint(&x->out, 2 + varint_bytes(stack_bytes) + stack_bytes +
	                                         varint_bytes(value_bytes) + value_bytes +
	                                         labels_bytes);
	put_tag(&x->out, 1, WIRE_BYTES);
	(void)tw_buf_add_varint(&x->out, stack_bytes);
	for (uint32_t d = n->depth; d > 0; d--)
		(void)tw_buf_add_varint(
		        &x->out, tw_export_number(x, x->tree.nodes[x->path[d]].method));
	put_tag(&x->out, 2, WIRE_BYTES);
	(void)tw_buf_add_varint(&x->out, value_bytes);
	for (unsigned v = 0; v < n_values; v++)
		(void)tw_buf_add_varint(&x->out, values[v]);
	(void)tw_buf_add(&x->out, labels, labels_bytes);
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
