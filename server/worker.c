/*
 * worker.c - the child: limit yourself, decode one upload, answer, end.
 *
 * Exits 0 with an answer whatever the input was like; any other end is a crash
 * or a limit, which the parent explains.
 */
#include "worker.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unzip.h"
#include "bundle.h"
#include "crash_point.h"
#include "decoder.h"
#include "export_system_report.h"
#include "formats/aside_sink.h"
#include "jail.h"
#include "symbols/method_map.h"
#include "symbols/retrace.h"
#include "trace_file.h"

enum { ANSWER_FD = 1, TASK_FD = 3, OUTPUT_FD = 4, FIRST_INPUT = 5, READ_BYTES = 256 << 10 };
enum { PARTS_MAX = 16, BUNDLE_HEAD = 64 << 10, REPORT_BYTES = 4096 };

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static enum tw_status lock_in(const json_t *limits, struct tw_err *err)
{
	const struct tw_jail jail = {.memory_bytes = number(limits, "memory_bytes"),
	        .cpu_s = number(limits, "cpu_s"),
	        .file_bytes = number(limits, "file_bytes"),
	        .filter = json_is_true(json_object_get(limits, "jail"))};

	return tw_jail_enter(&jail, err);
}

static struct tw_limits decode_limits(const json_t *o)
{
	struct tw_limits l = tw_limits_default();

	if (number(o, "decoded_bytes"))
		l.max_decoded_bytes = number(o, "decoded_bytes");
	if (number(o, "ratio"))
		l.max_ratio = (uint32_t)number(o, "ratio");
	if (number(o, "slices"))
		l.max_slices = number(o, "slices");
	if (number(o, "depth"))
		l.max_depth = (uint32_t)number(o, "depth");
	if (number(o, "threads"))
		l.max_threads = (uint32_t)number(o, "threads");
	if (number(o, "name_bytes"))
		l.max_name_bytes = (uint32_t)number(o, "name_bytes");
	if (number(o, "memory_bytes"))
		l.max_memory_bytes = number(o, "memory_bytes");
	return l;
}

/* Test builds of the server make the child misbehave, to see that it is held. */
static void misbehave(void)
{
	const char *how = getenv("TRACEWELL_WORKER_FAULT");
	volatile uint64_t spin = 0;

	if (!how)
		return;
	if (strcmp(how, "crash") == 0)
		(void)raise(SIGSEGV);
	while (strcmp(how, "loop") == 0)
		spin++;
	while (strcmp(how, "eat") == 0) {
		void *p = tw_mem_alloc(1 << 20, 1);

		if (!p)
			_exit(9);
		memset(p, 1, 1 << 20);
	}
	if (strcmp(how, "sleep") == 0)
		(void)sleep(3600);
	if (strcmp(how, "run") == 0)
		(void)execl("/bin/true", "true", (char *)NULL);
}

/* Feeds a descriptor to `push`. */
static enum tw_status each_piece(int fd, uint64_t *ret_bytes,
        enum tw_status (*push)(void *arg, const uint8_t *p, size_t n, struct tw_err *err),
        void *arg, struct tw_err *err)
{
	static uint8_t piece[READ_BYTES];
	enum tw_status st = TW_OK;
	ssize_t n;

	*ret_bytes = 0;
	while (st == TW_OK && (n = read(fd, piece, sizeof piece)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tw_fail(err, TW_IO, *ret_bytes,
			        "an input could not be read (errno %d)", errno);
		*ret_bytes += (uint64_t)n;
		st = push(arg, piece, (size_t)n, err);
	}
	return st;
}

static enum tw_status push_decoder(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_decoder_push(arg, p, n, err);
}

struct job {
	struct tw_limits limits;
	struct tw_arena *arena;
	struct tw_builder *builder;
	struct tw_trace_facts facts;
	int system_fd; /* the device's own trace beside this one, -1 none */
};

static enum tw_status decode_part(struct job *j, const json_t *part, int fd, struct tw_err *err)
{
	const char *forced = text(part, "format");
	const char *name = text(part, "part");
	const struct tw_format *format = forced[0] ? tw_format_by_name(tw_str_of(forced)) : NULL;
	struct tw_sink *sink = tw_builder_sink(j->builder);
	struct tw_decoder *d;
	uint64_t bytes = 0;
	enum tw_status st;

	if (strcmp(name, "anr") == 0) /* beside a trace its stacks are no calls */
		sink = tw_aside_sink_new(j->arena, sink);
	d = sink ? tw_decoder_new(j->arena, &j->limits, format, name, sink) : NULL;
	if (!d)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to decode");
	st = each_piece(fd, &bytes, push_decoder, d, err);
	if (st == TW_OK)
		st = tw_decoder_finish(d, err);
	j->facts.input_bytes += bytes;
	j->facts.decoded_bytes += tw_decoder_bytes(d);
	if (strcmp(name, "trace") == 0 && tw_decoder_format(d))
		j->facts.format = tw_decoder_format(d)->name;
	tw_decoder_free(d);
	return st;
}

/* An ANR report was written when the application had hung for a while: at the trace's end. */
static void next_input(struct job *j, bool is_anr)
{
	if (is_anr)
		tw_builder_next_input_at_end(j->builder);
	else
		tw_builder_next_input(j->builder);
}

static void next_side(struct job *j, const char *part, int fd)
{
	next_input(j, strcmp(part, "anr") == 0);
	if (strcmp(part, "system") == 0) {
		tw_builder_input_is_system(j->builder);
		j->system_fd = fd;
	}
}

struct bundle_input {
	struct job *job;
	int fd;
	uint64_t bytes; /* of the archive, each time it is read */
};

static enum tw_status feed_bundle(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	struct bundle_input *in = arg;

	if (lseek(in->fd, 0, SEEK_SET) != 0)
		return tw_fail(err, TW_IO, TW_NO_OFFSET, "an input cannot be read again");
	return each_piece(in->fd, &in->bytes, push, to, err);
}

static void next_of_bundle(void *arg, const struct tw_format *format)
{
	next_input(((struct bundle_input *)arg)->job, tw_format_fits(format, "anr"));
}

static enum tw_status decode_bundle(struct job *j, int fd, struct tw_err *err)
{
	struct bundle_input in = {j, fd, 0};
	const struct tw_bundle_task task = {feed_bundle, next_of_bundle, &in, j->arena, &j->limits,
	        tw_builder_sink(j->builder)};
	const struct tw_format *format = NULL;
	uint64_t bytes = 0;
	enum tw_status st = tw_bundle_decode(&task, &format, &bytes, err);

	j->facts.input_bytes += in.bytes;
	j->facts.decoded_bytes += bytes;
	if (st == TW_OK)
		j->facts.format = format->name;
	return st;
}

static bool is_bundle(const struct job *j, int fd)
{
	static uint8_t head[BUNDLE_HEAD];
	ssize_t n = pread(fd, head, sizeof head, 0);

	return n > 0 && tw_bundle_is(head, (size_t)n, &j->limits);
}

/* Parts that only name things come first, so that the names are there when they are needed; then
 * the trace, whose clock the others are put on. */
static int turn_of(const char *part)
{
	if (strcmp(part, "threads") == 0 || strcmp(part, "binder") == 0)
		return 0;
	return strcmp(part, "trace") == 0 ? 1 : 2;
}

/* A side file that cannot be read costs what it says, not the trace. */
static void decode_side(struct job *j, const json_t *part, int fd, struct tw_err *err)
{
	struct tw_sink *sink = tw_builder_sink(j->builder);

	if (decode_part(j, part, fd, err) != TW_OK)
		sink->ops->repair(sink, TW_REPAIR_side_file_unreadable, TW_NO_OFFSET, 1);
}

static enum tw_status decode_parts(struct job *j, const json_t *parts, struct tw_err *err)
{
	size_t n = json_array_size(parts);
	enum tw_status st = TW_OK;

	for (int turn = 0; turn <= 2; turn++)
		for (size_t i = 0; st == TW_OK && i < n && i < PARTS_MAX; i++) {
			const json_t *p = json_array_get(parts, i);

			if (turn_of(text(p, "part")) != turn)
				continue;
			if (turn == 2)
				next_side(j, text(p, "part"), FIRST_INPUT + (int)i);
			if (turn == 1 && is_bundle(j, FIRST_INPUT + (int)i))
				st = decode_bundle(j, FIRST_INPUT + (int)i, err);
			else if (turn == 1)
				st = decode_part(j, p, FIRST_INPUT + (int)i, err);
			else
				decode_side(j, p, FIRST_INPUT + (int)i, err);
		}
	return st;
}

/* What an export will make of the device's trace, told where losses and repairs are. */
static enum tw_status tell_system(
        const struct job *j, struct tw_trace_writer *w, struct tw_err *err)
{
	struct tw_trace_out *out = tw_trace_writer_out(w);
	struct tw_buf json;
	enum tw_status st;

	if (j->system_fd < 0)
		return TW_OK;
	tw_buf_init(&json, REPORT_BYTES);
	st = tw_system_report(j->system_fd, tw_trace_writer_info(w), &json, err);
	if (st == TW_OK)
		st = out->ops->document(
		        out, "system", (struct tw_str){(const char *)json.data, json.len}, err);
	tw_buf_done(&json);
	return st;
}

static enum tw_status write_trace(struct job *j, struct tw_err *err)
{
	struct tw_trace_writer *w = NULL;
	enum tw_status st = tw_trace_writer_on(OUTPUT_FD, &w, err);

	if (st == TW_OK)
		st = tw_builder_write(j->builder, tw_trace_writer_out(w), err);
	if (st == TW_OK)
		st = tell_system(j, w, err);
	if (st == TW_OK)
		st = tw_trace_writer_commit(w, &j->facts, err);
	tw_trace_writer_free(w);
	return st;
}

static void count_repairs(
        const struct tw_trace_file *f, uint32_t *ret_losses, uint32_t *ret_repairs)
{
	uint32_t n;
	const struct tw_repair_count *r = tw_trace_file_repairs(f, &n);

	for (uint32_t i = 0; i < n; i++) {
		enum tw_repair_kind kind = tw_repair_info(r[i].what)->kind;

		*ret_losses += kind == TW_REPAIR_LOSS;
		*ret_repairs += kind == TW_REPAIR_REPAIR;
	}
}

/* Read back from the file: what is told is what is there. */
static enum tw_status summarise(const struct job *j, json_t **ret, struct tw_err *err)
{
	struct tw_trace_file *f = NULL;
	enum tw_status st = tw_trace_file_open_on(OUTPUT_FD, &f, err);
	const struct tw_trace_info *i;
	uint32_t losses = 0;
	uint32_t repairs = 0;
	struct stat file;

	if (st != TW_OK)
		return st;
	i = tw_trace_file_info(f);
	count_repairs(f, &losses, &repairs);
	if (fstat(OUTPUT_FD, &file) != 0)
		file.st_size = 0;
	*ret = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s}", "slices",
	        (json_int_t)i->slices, "threads", (json_int_t)i->threads, "methods",
	        (json_int_t)i->methods, "max_depth", (json_int_t)i->max_depth, "duration_ns",
	        (json_int_t)(i->end_ns - i->start_ns), "input_bytes",
	        (json_int_t)j->facts.input_bytes, "decoded_bytes",
	        (json_int_t)j->facts.decoded_bytes, "file_bytes", (json_int_t)file.st_size,
	        "losses", (json_int_t)losses, "repairs", (json_int_t)repairs, "decoder_version",
	        (json_int_t)TW_DECODER_VERSION, "format", j->facts.format);
	tw_trace_file_close(f);
	return *ret ? TW_OK : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to answer");
}

static enum tw_status run_trace(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct job j = {.system_fd = -1,
	        .limits = decode_limits(json_object_get(task, "limits")),
	        .facts = {.format = "", .decoder_version = TW_DECODER_VERSION}};
	enum tw_status st;

	j.arena = tw_arena_new(j.limits.max_memory_bytes);
	j.builder = j.arena ? tw_builder_new(&j.limits) : NULL;
	if (!j.builder)
		st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to decode");
	else
		st = decode_parts(&j, json_object_get(task, "parts"), err);
	tw_crash_point("child_decoded");
	if (st == TW_OK)
		st = write_trace(&j, err);
	if (st == TW_OK)
		st = summarise(&j, ret, err);
	tw_builder_free(j.builder);
	tw_arena_free(j.arena);
	return st;
}

/* --- mappings --- */

typedef enum tw_status (*push_fn)(void *arg, const uint8_t *p, size_t n, struct tw_err *err);

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

static enum tw_status write_output(const struct tw_buf *b, struct tw_err *err)
{
	size_t at = 0;

	while (at < b->len) {
		ssize_t n = write(OUTPUT_FD, b->data + at, b->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tw_fail(err, errno == ENOSPC || errno == EDQUOT ? TW_FULL : TW_IO,
			        TW_NO_OFFSET, "a mapping could not be written (errno %d)", errno);
		at += (size_t)n;
	}
	return TW_OK;
}

static enum tw_status read_map(
        push_fn push, void *writer, const struct tw_limits *limits, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(limits->max_memory_bytes);
	struct tw_unzip *z = a ? tw_unzip_new(a, limits, push, writer) : NULL;
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	uint64_t bytes = 0;
	enum tw_status st;

	if (!z)
		st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a mapping");
	else
		st = each_piece(FIRST_INPUT, &bytes, push_unzip, z, err);
	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	/* Half a mapping would name some methods and not others: refuse, it can be sent again. */
	if (st == TW_OK && end != TW_UNZIP_COMPLETE)
		st = tw_fail(err, TW_CORRUPT, tw_unzip_bytes(z),
		        "the mapping's compressed data is damaged or cut");
	tw_unzip_free(z);
	tw_arena_free(a);
	return st;
}

static json_t *map_answer(const struct tw_map_stats *s)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:s}", "lines", (json_int_t)s->lines, "entries",
	        (json_int_t)s->entries, "duplicates", (json_int_t)s->duplicates, "malformed",
	        (json_int_t)s->malformed, "first_malformed",
	        s->first_malformed == TW_NO_OFFSET ? (json_int_t)-1
	                                           : (json_int_t)s->first_malformed,
	        "version", s->version);
}

static enum tw_status run_map(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = decode_limits(json_object_get(task, "limits"));
	struct tw_map_writer *w = tw_map_writer_new(limits.max_decoded_bytes, limits.max_methods);
	struct tw_map_stats stats;
	struct tw_buf image;
	enum tw_status st;

	tw_buf_init(&image, limits.max_decoded_bytes);
	st = w ? read_map(push_map, w, &limits, err)
	       : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a mapping");
	if (st == TW_OK)
		st = tw_map_writer_finish(w, &image, &stats, err);
	if (st == TW_OK)
		st = write_output(&image, err);
	if (st == TW_OK) {
		*ret = map_answer(&stats);
		if (!*ret)
			st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to answer");
	}
	tw_map_writer_free(w);
	tw_buf_done(&image);
	return st;
}

static json_t *retrace_answer(const struct tw_retrace_stats *s)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:s}", "classes", (json_int_t)s->classes, "methods",
	        (json_int_t)s->methods, "malformed", (json_int_t)s->malformed, "first_malformed",
	        s->first_malformed == TW_NO_OFFSET ? (json_int_t)-1
	                                           : (json_int_t)s->first_malformed,
	        "id", s->id);
}

static enum tw_status run_retrace(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct tw_limits limits = decode_limits(json_object_get(task, "limits"));
	struct tw_retrace_writer *w = tw_retrace_writer_new(limits.max_decoded_bytes);
	struct tw_retrace_stats stats;
	struct tw_buf image;
	enum tw_status st;

	tw_buf_init(&image, limits.max_memory_bytes);
	st = w ? read_map(push_retrace, w, &limits, err)
	       : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to read a mapping");
	if (st == TW_OK)
		st = tw_retrace_writer_finish(w, &image, &stats, err);
	if (st == TW_OK)
		st = write_output(&image, err);
	if (st == TW_OK) {
		*ret = retrace_answer(&stats);
		if (!*ret)
			st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to answer");
	}
	tw_retrace_writer_free(w);
	tw_buf_done(&image);
	return st;
}

/* --- answer --- */

static bool answer(enum tw_status st, json_t *summary, const struct tw_err *why)
{
	json_t *o = st == TW_OK ? json_pack("{s:b,s:o}", "ok", 1, "summary", summary)
	                        : json_pack("{s:b,s:{s:s,s:s,s:I}}", "ok", 0, "error", "status",
	                                  tw_status_word(st), "message", why->msg, "offset",
	                                  why->offset == TW_NO_OFFSET ? (json_int_t)-1
	                                                              : (json_int_t)why->offset);
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;
	size_t len = s ? strlen(s) : 0;
	bool told = len && write(ANSWER_FD, s, len) == (ssize_t)len;

	free(s);
	json_decref(o);
	return told;
}

int tw_worker_main(void)
{
	json_error_t at;
	json_t *task = json_loadfd(TASK_FD, 0, &at);
	json_t *summary = NULL;
	struct tw_err err = {0};
	enum tw_status st;
	bool told;

	if (!json_is_object(task)) {
		json_decref(task);
		return 64; /* started by hand */
	}
	/* one heap for both threads: the limit counts what a second would reserve */
	(void)mallopt(M_ARENA_MAX, 1);
	st = lock_in(json_object_get(task, "limits"), &err);
	tw_crash_point("child_started");
	misbehave();
	if (st == TW_OK && strcmp(text(task, "kind"), "map") == 0)
		st = run_map(task, &summary, &err);
	else if (st == TW_OK && strcmp(text(task, "kind"), "retrace") == 0)
		st = run_retrace(task, &summary, &err);
	else if (st == TW_OK)
		st = run_trace(task, &summary, &err);
	told = answer(st, summary, &err);
	json_decref(task);
	return told ? 0 : 1;
}
