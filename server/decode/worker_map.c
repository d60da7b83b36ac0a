/*
 * worker_map.c - the child that compiles a mapping, or the symbols of a native library, to an image
 * in which names are looked up.
 */
#include "server/decode/worker_internal.h"

#include <string.h>

#include "decoder/base/unzip.h"
#include "decoder/symbols/method_map.h"
#include "decoder/symbols/retrace.h"
#include "server/decode/native_write.h"

static enum tw_status push_map(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_map_writer_push(arg, p, n, err);
}

static enum tw_status push_retrace(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_retrace_writer_push(arg, p, n, err);
}

static enum tw_status push_unzip(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unzip_push(arg, p, n, err);
}

static enum tw_status read_map(
        tw_worker_push_fn push, void *writer, const struct tw_limits *limits, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(limits->max_memory_bytes);
	struct tw_unzip *z = a ? tw_unzip_new(a, limits, push, writer) : NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	uint64_t bytes = 0;
	enum tw_status st;

	if (!z)
		st = tw_oom(err);
	else
		st = tw_worker_read(TW_WORKER_INPUT, &bytes, push_unzip, z, err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	/* A truncated mapping would resolve some names only: refuse it, the client can send it
	 * again. */
	if (st == TW_OK && end != TW_UNZIP_COMPLETE)
		st = tw_fail_at(err, TW_CORRUPT, tw_unzip_bytes(z),
		        "the mapping's compressed data is damaged or cut");
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

/* Ends a task: sends the image, and returns the answer with its counts. */
static enum tw_status send(
        enum tw_status st, struct tw_buf *image, json_t *answer, json_t **ret, struct tw_err *err)
{
	if (st == TW_OK && !answer)
		st = tw_oom(err);
	if (st == TW_OK)
		st = tw_worker_write(TW_WORKER_OUTPUT, image->data, image->len, err);
	if (st == TW_OK)
		*ret = answer;
	else
		json_decref(answer);
	tw_buf_done(image);
	return st;
}

/* -1: none. */
static json_int_t offset_of(uint64_t first_malformed)
{
	return first_malformed == TW_NO_OFFSET ? -1 : (json_int_t)first_malformed;
}

static json_t *map_answer(const struct tw_map_stats *s)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:s}", "lines", (json_int_t)s->lines, "entries",
	        (json_int_t)s->entries, "duplicates", (json_int_t)s->duplicates, "malformed",
	        (json_int_t)s->malformed, "first_malformed", offset_of(s->first_malformed),
	        "version", s->version);
}

enum tw_status tw_worker_map(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	struct tw_map_writer *w = tw_map_writer_new(limits.max_decoded_bytes, limits.max_methods);
	struct tw_map_stats stats;
	struct tw_buf image;
	enum tw_status st;

	tw_buf_init(&image, limits.max_memory_bytes);
	st = w ? read_map(push_map, w, &limits, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_map_writer_finish(w, &image, &stats, err);
	st = send(st, &image, st == TW_OK ? map_answer(&stats) : NULL, ret, err);
	tw_map_writer_free(w);
	return st;
}

static json_t *retrace_answer(const struct tw_retrace_stats *s)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:s}", "classes", (json_int_t)s->classes, "methods",
	        (json_int_t)s->methods, "malformed", (json_int_t)s->malformed, "first_malformed",
	        offset_of(s->first_malformed), "id", s->id);
}

enum tw_status tw_worker_retrace(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	struct tw_retrace_writer *w = tw_retrace_writer_new(limits.max_decoded_bytes);
	struct tw_retrace_stats stats;
	struct tw_buf image;
	enum tw_status st;

	tw_buf_init(&image, limits.max_memory_bytes);
	st = w ? read_map(push_retrace, w, &limits, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_retrace_writer_finish(w, &image, &stats, err);
	st = send(st, &image, st == TW_OK ? retrace_answer(&stats) : NULL, ret, err);
	tw_retrace_writer_free(w);
	return st;
}

static enum tw_status push_symbols(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_native_writer_push(arg, p, n, err);
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

enum tw_status tw_worker_symbols(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	struct tw_native_writer *w = tw_native_writer_new(limits.max_decoded_bytes);
	struct tw_native_stats stats;
	json_t *answer = NULL;
	struct tw_buf image;
	enum tw_status st;

	tw_buf_init(&image, limits.max_memory_bytes);
	st = w ? read_map(push_symbols, w, &limits, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_native_writer_finish(w, &image, &stats, err);
	if (st == TW_OK)
		st = check_build_id(task, &stats, err);
	if (st == TW_OK)
		answer = json_pack("{s:I,s:I,s:s}", "entries", (json_int_t)stats.functions,
		        "first_malformed", (json_int_t)-1, "version", stats.name);
	st = send(st, &image, answer, ret, err);
	tw_native_writer_free(w);
	return st;
}
