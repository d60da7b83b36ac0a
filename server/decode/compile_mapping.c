/* compile_mapping.c - also the task of the child that compiles an upload. */
#include "server/decode/compile_mapping.h"

#include <string.h>

#include "server/decode/worker_internal.h"

struct compiler { /* one of the writers */
	struct tw_map_writer *methods;
	struct tw_retrace_writer *retrace;
	struct tw_native_writer *symbols;
};

static enum tw_status push(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct compiler *c = arg;

	return c->methods   ? tw_map_writer_push(c->methods, p, n, err)
	       : c->retrace ? tw_retrace_writer_push(c->retrace, p, n, err)
	                    : tw_native_writer_push(c->symbols, p, n, err);
}

static enum tw_status push_unzip(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unzip_push(arg, p, n, err);
}

enum tw_status tw_compile_mapping(enum tw_mapping_kind kind, const struct tw_limits *limits,
        enum tw_status (*feed)(void *arg, tw_bytes_fn push, void *to, struct tw_err *err),
        void *arg, struct tw_buf *out, union tw_mapping_stats *ret, struct tw_err *err)
{
	const uint64_t most = limits->max_decoded_bytes;
	struct compiler c = {NULL, NULL, NULL};
	struct tw_arena *a = tw_arena_new(limits->max_memory_bytes);
	struct tw_unzip *z = a ? tw_unzip_new(a, limits, push, &c) : NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	enum tw_status st;

	if (kind == TW_MAPPING_METHODS)
		c.methods = tw_map_writer_new(most, limits->max_methods);
	else if (kind == TW_MAPPING_RETRACE)
		c.retrace = tw_retrace_writer_new(most);
	else
		c.symbols = tw_native_writer_new(most);
	st = z && (c.methods || c.retrace || c.symbols) ? feed(arg, push_unzip, z, err)
	                                                : tw_oom(err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	/* A truncated mapping would resolve only some names.  The client can send it again. */
	if (st == TW_OK && end != TW_UNZIP_COMPLETE)
		st = tw_fail_at(err, TW_CORRUPT, tw_unzip_bytes(z),
		        "the mapping's compressed data is damaged or truncated");
	if (st == TW_OK)
		st = c.methods   ? tw_map_writer_finish(c.methods, out, &ret->methods, err)
		     : c.retrace ? tw_retrace_writer_finish(c.retrace, out, &ret->retrace, err)
		                 : tw_native_writer_finish(c.symbols, out, &ret->symbols, err);
	tw_map_writer_free(c.methods);
	tw_retrace_writer_free(c.retrace);
	tw_native_writer_free(c.symbols);
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

/* --- the child's task --- */

static enum tw_status read_input(void *arg, tw_bytes_fn to_push, void *to, struct tw_err *err)
{
	return tw_worker_read(TW_WORKER_INPUT, arg, to_push, to, err);
}

/* -1: none. */
static json_int_t offset_of(uint64_t first_malformed)
{
	return first_malformed == TW_NO_OFFSET ? -1 : (json_int_t)first_malformed;
}

static json_t *answer_of(enum tw_mapping_kind kind, const union tw_mapping_stats *s)
{
	const struct tw_map_stats *m = &s->methods;
	const struct tw_retrace_stats *r = &s->retrace;

	if (kind == TW_MAPPING_METHODS)
		return json_pack("{s:I,s:I,s:I,s:I,s:I,s:s}", "lines", (json_int_t)m->lines,
		        "entries", (json_int_t)m->entries, "duplicates", (json_int_t)m->duplicates,
		        "malformed", (json_int_t)m->malformed, "first_malformed",
		        offset_of(m->first_malformed), "version", m->version);
	if (kind == TW_MAPPING_RETRACE)
		return json_pack("{s:I,s:I,s:I,s:I,s:s}", "classes", (json_int_t)r->classes,
		        "methods", (json_int_t)r->methods, "malformed", (json_int_t)r->malformed,
		        "first_malformed", offset_of(r->first_malformed), "id", r->id);
	return json_pack("{s:I,s:I,s:s}", "entries", (json_int_t)s->symbols.functions,
	        "first_malformed", (json_int_t)-1, "version", s->symbols.name);
}

/* The task's build is "elf:" and the build id that the client gave. */
static enum tw_status check_build_id(
        const json_t *task, const struct tw_native_stats *stats, struct tw_err *err)
{
	const char *build = json_string_value(json_object_get(task, "build"));
	const char *given = build ? strchr(build, ':') : NULL;

	if (given && strcmp(given + 1, stats->build_id) == 0)
		return TW_OK;
	return tw_fail(err, TW_CORRUPT, "the file's build id is %s", stats->build_id);
}

enum tw_status tw_worker_mapping(
        enum tw_mapping_kind kind, const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	union tw_mapping_stats stats;
	struct tw_buf image;
	uint64_t bytes = 0;
	enum tw_status st;

	tw_buf_init(&image, limits.max_memory_bytes);
	st = tw_compile_mapping(kind, &limits, read_input, &bytes, &image, &stats, err);
	if (st == TW_OK && kind == TW_MAPPING_SYMBOLS)
		st = check_build_id(task, &stats.symbols, err);
	if (st == TW_OK)
		st = tw_worker_write(TW_WORKER_OUTPUT, image.data, image.len, err);
	if (st == TW_OK && !(*ret = answer_of(kind, &stats)))
		st = tw_oom(err);
	tw_buf_done(&image);
	return st;
}
