/*
 * worker.c - the child: enters its sandbox, decodes one upload or checks the first bytes of many,
 * answers, and exits.
 *
 * Exits with 0 and an answer whatever the input was; any other end is a crash or a limit, which the
 * parent explains.
 */
#include "server/decode/worker.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "decoder/base/unzip.h"
#include "decoder/bundle.h"
#include "decoder/decoder.h"
#include "decoder/formats/sink.h"
#include "decoder/formats/sinks/aside_sink.h"
#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "server/base/child.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/text/json.h"
#include "server/decode/jail.h"
#include "server/decode/preflight.h"
#include "server/decode/scratch_file.h"
#include "server/decode/worker_internal.h"
#include "server/export/perfetto/system/export_system.h"
#include "server/export/perfetto/system/export_system_facts.h"
#include "server/query/query.h"
#include "server/trace/trace_file.h"

enum { ANSWER_FD = 1, TASK_FD = 3, SYSTEM_FD = 5 };
enum { READ_BYTES = 1 << 20 };
enum { MORE_CPU_S = 1, MORE_WALL_S = 10 };
/* Offset of scratch in SYSTEM_FD: system traces are smaller, and the file-size limit leaves enough
 * space after it. */
#define SCRATCH_FROM ((uint64_t)4 << 30)

static bool input_failed; /* included in the answer */
/* In a copy of a template they are prepared: one per trace of a group. */
static struct tw_trace_writer *writers[TW_CHILD_JOBS];
enum {
	PARTS_MAX = 16,
	BUNDLE_HEAD = TW_DECODER_HEAD_BYTES,
	REPORT_BYTES = 4096,
	ANR_GROUP_BYTES = 32
};

static bool is_source(const json_t *task)
{
	return strcmp(tw_json_text(task, "kind"), "source") == 0;
}

static enum tw_status enter_sandbox(const json_t *task, struct tw_err *err)
{
	const json_t *limits = json_object_get(task, "limits");
	const struct tw_jail jail = {.memory_bytes = tw_json_count(limits, "memory_bytes"),
	        .cpu_s = tw_json_count(limits, "cpu_s"),
	        .file_bytes = tw_json_count(limits, "file_bytes"),
	        .filter = json_is_true(json_object_get(limits, "jail")),
	        .folder = is_source(task) ? TW_WORKER_INPUT : 0};
	enum tw_status st = is_source(task) ? tw_worker_source_begin(err) : TW_OK;

	return st == TW_OK ? tw_jail_enter(&jail, err) : st;
}

struct tw_limits tw_worker_limits(const json_t *o)
{
	struct tw_limits l = tw_limits_default();

	if (tw_json_count(o, "decoded_bytes"))
		l.max_decoded_bytes = tw_json_count(o, "decoded_bytes");
	if (tw_json_count(o, "ratio"))
		l.max_ratio = (uint32_t)tw_json_count(o, "ratio");
	if (tw_json_count(o, "slices"))
		l.max_slices = tw_json_count(o, "slices");
	if (tw_json_count(o, "depth"))
		l.max_depth = (uint32_t)tw_json_count(o, "depth");
	if (tw_json_count(o, "threads"))
		l.max_threads = (uint32_t)tw_json_count(o, "threads");
	if (tw_json_count(o, "name_bytes"))
		l.max_name_bytes = (uint32_t)tw_json_count(o, "name_bytes");
	if (tw_json_count(o, "memory_bytes"))
		l.max_memory_bytes = tw_json_count(o, "memory_bytes");
	randombytes_buf(&l.hash_salt, sizeof l.hash_salt);
	return l;
}

enum tw_status tw_worker_read(int fd, uint64_t *ret_bytes,
        enum tw_status (*push)(void *arg, const uint8_t *p, size_t n, struct tw_err *err),
        void *arg, struct tw_err *err)
{
	static uint8_t piece[READ_BYTES];
	enum tw_status st = TW_OK;
	ssize_t n;

	*ret_bytes = 0;
	while (st == TW_OK && (n = tw_read_some(fd, piece, sizeof piece)) != 0) {
		if (n < 0) {
			input_failed = true;
			return tw_fail_at(err, TW_IO, *ret_bytes,
			        "the upload cannot be read from storage: %s", strerror(errno));
		}
		*ret_bytes += (uint64_t)n;
		st = push(arg, piece, (size_t)n, err);
	}
	return st;
}

enum tw_status tw_worker_write(int fd, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (tw_write_all(fd, p, n))
		return TW_OK;
	return tw_fail_errno(err, tw_disk_status(errno), "the result could not be written");
}

/* The first line of the answer, written before the decoder can crash. */
static void write_format(void *arg, const struct tw_format *format)
{
	char line[32];
	int n = snprintf(line, sizeof line, "%s\n", format->name);

	(void)arg;
	if (n > 0 && n < (int)sizeof line)
		(void)tw_write_all(ANSWER_FD, line, (size_t)n);
}

static enum tw_status push_decoder(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_decoder_push(arg, p, n, err);
}

struct job {
	struct tw_limits limits;
	int input, output; /* descriptors of its first part and of its trace file */
	struct tw_trace_writer **writer;
	bool in_group; /* the parent syncs the files of a group in parallel */
	struct tw_arena *arena;
	struct tw_builder *builder;
	struct tw_trace_facts facts;
	int system_fd;         /* the device's system trace; -1: none */
	uint64_t system_bytes; /* of the system trace, written to SYSTEM_FD: it was in an archive */
	struct tw_scratch_file scratch; /* of the builder, at the end of SYSTEM_FD */
};

static enum tw_status decode_part(struct job *j, const json_t *part, int fd, struct tw_err *err)
{
	const char *forced = tw_json_text(part, "format");
	const char *name = tw_json_text(part, "part");
	const struct tw_format *format = forced[0] ? tw_format_by_name(tw_str_of(forced)) : NULL;
	struct tw_sink *sink = tw_builder_sink(j->builder);
	struct tw_decoder *d;
	uint64_t bytes = 0;
	enum tw_status st;

	/* next to a trace, the stacks of an ANR report are not calls */
	if (strcmp(name, "anr") == 0)
		sink = tw_aside_sink_new(j->arena, sink);
	d = sink ? tw_decoder_new(j->arena, &j->limits, format, name, sink) : NULL;
	if (!d)
		return tw_oom(err);
	if (strcmp(name, "trace") == 0)
		tw_decoder_on_format(d, write_format, NULL);
	tw_decoder_read_ahead(d);
	st = tw_worker_read(fd, &bytes, push_decoder, d, err);
	if (st == TW_OK)
		st = tw_decoder_finish(d, err);
	j->facts.input_bytes += bytes;
	j->facts.decoded_bytes += tw_decoder_bytes(d);
	if (strcmp(name, "trace") == 0 && tw_decoder_format(d))
		j->facts.format = tw_decoder_format(d)->name;
	tw_decoder_free(d);
	return st;
}

/* Announces an input other than the trace; `fd` has its bytes. An ANR report describes the end of
 * the trace: the application had not responded for a while. */
static void begin_side(struct job *j, enum tw_bundle_side what, int fd)
{
	if (what == TW_BUNDLE_ANR)
		tw_builder_next_input_at_end(j->builder);
	else
		tw_builder_next_input(j->builder);
	if (what == TW_BUNDLE_SYSTEM) {
		tw_builder_input_is_system(j->builder);
		j->system_fd = fd;
	}
}

static enum tw_bundle_side side_of(const char *part)
{
	if (strcmp(part, "anr") == 0)
		return TW_BUNDLE_ANR;
	return strcmp(part, "system") == 0 ? TW_BUNDLE_SYSTEM : TW_BUNDLE_SIDE;
}

struct bundle_input {
	struct job *job;
	int fd;
	uint64_t bytes; /* of the archive, for each pass */
};

static enum tw_status feed_bundle(void *arg, tw_bytes_fn push, void *to, struct tw_err *err)
{
	struct bundle_input *in = arg;

	if (lseek(in->fd, 0, SEEK_SET) != 0)
		return tw_fail(err, TW_IO, "an input cannot be read again");
	return tw_worker_read(in->fd, &in->bytes, push, to, err);
}

static void side_of_bundle(void *arg, enum tw_bundle_side what)
{
	begin_side(((struct bundle_input *)arg)->job, what, SYSTEM_FD);
}

static enum tw_status copy_system(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct job *j = ((struct bundle_input *)arg)->job;

	j->system_bytes += n;
	if (j->system_bytes > SCRATCH_FROM)
		return tw_fail(err, TW_TOO_LARGE, "the system trace exceeds 4 GiB");
	return tw_worker_write(SYSTEM_FD, p, n, err);
}

static enum tw_status decode_bundle(struct job *j, int fd, bool without_system, struct tw_err *err)
{
	struct bundle_input in = {j, fd, 0};
	const struct tw_bundle_task task = {.arena = j->arena,
	        .limits = &j->limits,
	        .sink = tw_builder_sink(j->builder),
	        .without_system = without_system,
	        .arg = &in,
	        .feed = feed_bundle,
	        .side = side_of_bundle,
	        .keep = copy_system};
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
	ssize_t n = tw_pread_full(fd, head, sizeof head, 0);

	return n > 0 && tw_bundle_is(head, (size_t)n, &j->limits);
}

/* Parts that only have names are read first, so that the names are known when they are needed. Then
 * comes the trace, whose clock is the reference for all other parts. */
static int pass_of(const char *part)
{
	if (strcmp(part, "threads") == 0 || strcmp(part, "binder") == 0)
		return 0;
	return strcmp(part, "trace") == 0 ? 1 : 2;
}

/* An unreadable side file is reported as a loss; the trace is decoded without it. */
static void decode_side(struct job *j, const json_t *part, int fd, struct tw_err *err)
{
	struct tw_sink *sink = tw_builder_sink(j->builder);

	if (decode_part(j, part, fd, err) != TW_OK)
		sink->ops->repair(sink, TW_REPAIR_side_file_unreadable, TW_NO_OFFSET, 1);
}

static bool has_part(const json_t *parts, const char *name)
{
	for (size_t i = 0; i < json_array_size(parts); i++)
		if (strcmp(tw_json_text(json_array_get(parts, i), "part"), name) == 0)
			return true;
	return false;
}

static enum tw_status decode_parts(struct job *j, const json_t *parts, struct tw_err *err)
{
	bool system = has_part(parts, "system");
	size_t n = json_array_size(parts);
	enum tw_status st = TW_OK;

	for (int pass = 0; pass <= 2; pass++)
		for (size_t i = 0; st == TW_OK && i < n && i < PARTS_MAX; i++) {
			const json_t *p = json_array_get(parts, i);

			if (pass_of(tw_json_text(p, "part")) != pass)
				continue;
			if (pass == 2)
				begin_side(j, side_of(tw_json_text(p, "part")), j->input + (int)i);
			if (pass == 1 && is_bundle(j, j->input + (int)i))
				st = decode_bundle(j, j->input + (int)i, system, err);
			else if (pass == 1)
				st = decode_part(j, p, j->input + (int)i, err);
			else
				decode_side(j, p, j->input + (int)i, err);
		}
	return st;
}

/* Stores a report of how an export will merge the system trace, with the losses and repairs. */
static enum tw_status write_system_report(
        const struct tw_system *s, struct tw_trace_writer *w, struct tw_err *err)
{
	struct tw_trace_out *out = tw_trace_writer_out(w);
	struct tw_buf json;
	enum tw_status st;

	tw_buf_init(&json, REPORT_BYTES);
	st = tw_system_report(s, &tw_trace_writer_written(w)->info, &json, err);
	if (st == TW_OK)
		st = out->ops->document(out, "system", tw_buf_str(&json), err);
	tw_buf_done(&json);
	return st;
}

/* Stores facts that an export needs, so that it need not scan the system trace. */
static enum tw_status write_system_facts(
        const struct tw_system *s, struct tw_trace_writer *w, struct tw_err *err)
{
	struct tw_buf facts;
	enum tw_status st;

	tw_buf_init(&facts, TW_SYSTEM_FACTS_BYTES);
	st = tw_system_pack(s, &facts, err);
	if (st == TW_OK && facts.len)
		st = tw_trace_writer_system(w, tw_buf_str(&facts), err);
	tw_buf_done(&facts);
	return st;
}

static enum tw_status write_system(
        const struct job *j, struct tw_trace_writer *w, struct tw_err *err)
{
	struct tw_system *s = NULL;
	enum tw_status st;

	if (j->system_fd < 0)
		return TW_OK;
	st = tw_system_scan(j->system_fd, &s, err);
	if (st == TW_OK)
		st = write_system_report(s, w, err);
	if (st == TW_OK)
		st = write_system_facts(s, w, err);
	tw_system_free(s);
	return st;
}

static void count_repairs(
        const struct tw_trace_written *w, uint32_t *ret_losses, uint32_t *ret_repairs)
{
	for (uint32_t i = 0; i < w->n_repairs; i++) {
		enum tw_repair_kind kind = tw_repair_info(w->repairs[i].what)->kind;

		*ret_losses += kind == TW_REPAIR_LOSS;
		*ret_repairs += kind == TW_REPAIR_REPAIR;
	}
}

static json_t *repairs_json(const struct tw_trace_written *w)
{
	json_t *by_name = json_object();

	for (uint32_t i = 0; i < w->n_repairs; i++)
		(void)json_object_set_new(by_name, tw_repair_info(w->repairs[i].what)->name,
		        json_integer((json_int_t)w->repairs[i].count));
	return by_name;
}

/* "": not an ANR, as far as is known. */
static void anr_group(struct tw_str report, char group[ANR_GROUP_BYTES])
{
	json_t *o = report.len ? json_loadb(report.ptr, report.len, 0, NULL) : NULL;

	(void)snprintf(group, ANR_GROUP_BYTES, "%.31s",
	        !o                              ? ""
	        : tw_json_text(o, "cluster")[0] ? tw_json_text(o, "cluster")
	                                        : "?");
	json_decref(o);
}

static enum tw_status summarise(
        const struct job *j, const struct tw_trace_written *w, json_t **ret, struct tw_err *err)
{
	const struct tw_trace_info *i = &w->info;
	uint32_t losses = 0;
	uint32_t repairs = 0;
	char anr[ANR_GROUP_BYTES];

	count_repairs(w, &losses, &repairs);
	anr_group(w->anr, anr);
	*ret = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:o}", "slices",
	        (json_int_t)i->slices, "threads", (json_int_t)i->threads, "methods",
	        (json_int_t)i->methods, "max_depth", (json_int_t)i->max_depth, "duration_ns",
	        (json_int_t)w->duration_ns, "input_bytes", (json_int_t)j->facts.input_bytes,
	        "decoded_bytes", (json_int_t)j->facts.decoded_bytes, "file_bytes",
	        (json_int_t)w->file_bytes, "losses", (json_int_t)losses, "repairs",
	        (json_int_t)repairs, "decoder_version", (json_int_t)TW_DECODER_VERSION,
	        "system_bytes", (json_int_t)j->system_bytes, "format", j->facts.format, "anr", anr,
	        "repairs_by_name", repairs_json(w));
	return *ret ? TW_OK : tw_oom(err);
}

static enum tw_status write_trace(struct job *j, struct tw_err *err)
{
	enum tw_status st = *j->writer ? TW_OK : tw_trace_writer_prepare(j->writer, err);

	if (st == TW_OK)
		st = tw_trace_writer_begin(*j->writer, j->output, tw_query_summary, err);
	if (st == TW_OK && j->in_group)
		tw_trace_writer_leave_unsynced(*j->writer);
	if (st == TW_OK)
		st = tw_builder_write(j->builder, tw_trace_writer_out(*j->writer), err);
	if (st == TW_OK)
		st = tw_scratch_file_end(&j->scratch, j->system_bytes, err);
	if (st == TW_OK)
		st = write_system(j, *j->writer, err);
	if (st == TW_OK)
		st = tw_trace_writer_commit(*j->writer, &j->facts, err);
	if (st != TW_OK) /* its thread may still read what the builder has */
		*j->writer = tw_trace_writer_free(*j->writer);
	return st;
}

static enum tw_status decode_and_write(
        struct job *j, const json_t *parts, json_t **ret, struct tw_err *err)
{
	const struct tw_scratch scratch = tw_scratch_file(&j->scratch);
	enum tw_status st;

	j->arena = tw_arena_new(j->limits.max_memory_bytes);
	j->builder = j->arena ? tw_builder_new(&j->limits) : NULL;
	if (j->builder)
		tw_builder_use_scratch(j->builder, &scratch);
	st = j->builder ? decode_parts(j, parts, err) : tw_oom(err);
	tw_crash_point("child_decoded");
	if (st == TW_OK)
		st = write_trace(j, err);
	if (st == TW_OK)
		st = summarise(j, tw_trace_writer_written(*j->writer), ret, err);
	tw_builder_free(j->builder);
	tw_arena_free(j->arena);
	return st;
}

/* Number `i` of n. */
static struct job begin_job(const json_t *task, size_t i, size_t n)
{
	const json_t *limits = json_object_get(task, "limits");

	return (struct job){.system_fd = -1,
	        .scratch = {.fd = SYSTEM_FD,
	                .from = SCRATCH_FROM,
	                .max_bytes = tw_json_count(limits, "scratch_bytes"),
	                .min_free_bytes = tw_json_count(limits, "min_free_bytes")},
	        .limits = tw_worker_limits(limits),
	        .input = TW_WORKER_INPUT + (int)i,
	        .output = i ? TW_WORKER_INPUT + (int)(n + i) - 1 : TW_WORKER_OUTPUT,
	        .writer = &writers[i],
	        .facts = {.format = "", .decoder_version = TW_DECODER_VERSION}};
}

static enum tw_status run_trace(const json_t *task, json_t **ret, struct tw_err *err)
{
	struct job j = begin_job(task, 0, 1);

	return decode_and_write(&j, json_object_get(task, "parts"), ret, err);
}

/* --- answer --- */

static bool send_json(const json_t *o, bool line)
{
	char *s = tw_json_dumps(o, JSON_COMPACT);
	size_t len = s ? strlen(s) : 0;
	bool sent;

	if (len && line) /* replaces the terminator, so that line and newline are one write */
		s[len++] = '\n';
	sent = len && tw_write_all(ANSWER_FD, s, len);
	free(s);
	return sent;
}

static json_t *answer_json(enum tw_status st, json_t *summary, const struct tw_err *why)
{
	return st == TW_OK ? json_pack("{s:b,s:o}", "ok", 1, "summary", summary)
	                   : json_pack("{s:b,s:b,s:{s:s,s:s,s:I}}", "ok", 0, "input_failed",
	                             input_failed && st == TW_IO, "error", "status",
	                             tw_status_name(st), "message", why->msg, "offset",
	                             why->offset == TW_NO_OFFSET ? (json_int_t)-1
	                                                         : (json_int_t)why->offset);
}

static bool answer(enum tw_status st, json_t *summary, const struct tw_err *why)
{
	json_t *o = answer_json(st, summary, why);
	bool sent = send_json(o, false);

	json_decref(o);
	return sent;
}

bool tw_worker_send_line(const json_t *o)
{
	return send_json(o, true);
}

/* Well below the limits of a group (jobs_group.c), so that a slow group ends. */
static bool may_continue(time_t began_s)
{
	struct timespec used, now;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 &&
	       clock_gettime(CLOCK_MONOTONIC, &now) == 0 && used.tv_sec < MORE_CPU_S &&
	       now.tv_sec - began_s < MORE_WALL_S;
}

/* Small traces of one project, one after the other.  Each is answered by a line.  Ends early after
 * an error, after a trace that wrote to the only second output, and after one that took long: the
 * parent gives the others to another child. */
static enum tw_status run_group(const json_t *task, json_t **ret, struct tw_err *err)
{
	const json_t *jobs = json_object_get(task, "jobs");
	const size_t n =
	        json_array_size(jobs) < TW_CHILD_JOBS ? json_array_size(jobs) : TW_CHILD_JOBS;
	struct timespec began = {0};
	bool more = true;
	bool sent = true;

	(void)clock_gettime(CLOCK_MONOTONIC, &began);
	for (size_t i = 0; sent && more && i < n; i++) {
		json_t *summary = NULL, *line;
		struct job j = begin_job(task, i, n);
		enum tw_status st = TW_OK;

		j.in_group = true;
		if (i)
			st = tw_worker_fault("TRACEWELL_WORKER_FAULT", err);
		if (st == TW_OK)
			st = decode_and_write(&j, json_array_get(jobs, i), &summary, err);
		more = st == TW_OK && !j.system_bytes && may_continue(began.tv_sec);
		if (st == TW_OK)
			writers[i] = tw_trace_writer_free(writers[i]);
		(void)close(j.input); /* what comes later cannot change it */
		(void)close(j.output);
		line = answer_json(st, summary, err);
		sent = tw_worker_send_line(line); /* or the next line would be taken for it */
		json_decref(line);
	}
	*ret = sent ? json_object() : NULL;
	return *ret ? TW_OK : tw_oom(err);
}

/* --- preflight (preflight.h): the output is a socket --- */

/* False: the input ended, or is not a request. */
static bool read_exactly(void *to, size_t n)
{
	return tw_read_full(TW_WORKER_OUTPUT, to, n) == (ssize_t)n;
}

static struct tw_preflight_response preflight(
        const struct tw_preflight_request *r, const uint8_t *head, struct tw_limits limits)
{
	const struct tw_format *forced =
	        r->forced[0] ? tw_format_by_name(tw_str_of(r->forced)) : NULL;
	const struct tw_format *found = NULL;
	struct tw_preflight_response a;
	struct tw_err err = {0};
	enum tw_status st = tw_worker_fault("TRACEWELL_PREFLIGHT_FAULT", &err);

	limits.max_window_log = r->window_log;
	if (st == TW_OK)
		st = tw_decoder_preflight(head, r->n, r->whole, forced, &limits, &found, &err);
	memset(&a, 0, sizeof a); /* the padding is sent too */
	a.status = (uint32_t)st;
	a.offset = err.offset;
	(void)snprintf(a.msg, sizeof a.msg, "%s", st == TW_OK ? "" : err.msg);
	(void)snprintf(a.format, sizeof a.format, "%s", found ? found->name : "");
	return a;
}

/* Checks the first bytes of uploads, one after the other, until its input ends. */
static enum tw_status run_preflight(const json_t *task, json_t **ret, struct tw_err *err)
{
	static uint8_t head[TW_HEAD_BYTES];
	struct tw_limits limits = tw_worker_limits(json_object_get(task, "limits"));
	struct tw_preflight_request request;
	enum tw_status st = TW_OK;

	while (st == TW_OK && read_exactly(&request, sizeof request) && request.n <= sizeof head &&
	        read_exactly(head, request.n)) {
		const struct tw_preflight_response a = preflight(&request, head, limits);

		st = tw_worker_write(TW_WORKER_OUTPUT, (const uint8_t *)&a, sizeof a, err);
	}
	*ret = json_object();
	return st;
}

/* --- start --- */

static enum tw_status run(const json_t *task, json_t **ret, struct tw_err *err)
{
	const char *kind = tw_json_text(task, "kind");
	enum tw_status st;

	if (strcmp(kind, "preflight") == 0)
		return run_preflight(task, ret, err);
	st = tw_worker_fault("TRACEWELL_WORKER_FAULT", err);
	if (st != TW_OK)
		return st;
	if (is_source(task))
		return tw_worker_source(task, ret, err);
	for (int i = TW_MAPPING_METHODS; i <= TW_MAPPING_SYMBOLS; i++)
		if (strcmp(kind, tw_mapping_kind_words[i]) == 0)
			return tw_worker_mapping((enum tw_mapping_kind)i, task, ret, err);
	return strcmp(kind, "traces") == 0 ? run_group(task, ret, err) : run_trace(task, ret, err);
}

void tw_worker_prepare(size_t traces)
{
	tw_worker_set_heap();
	json_object_seed(0);
	tw_jail_prepare();
	for (size_t i = 0; i < TW_CHILD_JOBS && i < traces; i++)
		if (tw_trace_writer_prepare(&writers[i], NULL) != TW_OK)
			writers[i] = NULL;
	(void)malloc_trim(0); /* or each copy would merge what was freed here */
}

int tw_worker_main(void)
{
	json_t *task = tw_json_load_fd(TASK_FD);
	json_t *summary = NULL;
	struct tw_err err = {0};
	enum tw_status st;
	bool sent;

	if (!json_is_object(task)) {
		json_decref(task);
		return 64; /* started by hand */
	}
	if (!writers[0])
		tw_worker_set_heap();
	st = enter_sandbox(task, &err);
	tw_crash_point("child_started");
	if (st == TW_OK)
		st = run(task, &summary, &err);
	sent = answer(st, summary, &err);
	json_decref(task);
	return sent ? 0 : 1;
}

/* --- misbehaviour for tests --- */

#if TW_TEST_FAULTS
enum tw_status tw_worker_fault(const char *variable, struct tw_err *err)
{
	static unsigned calls;
	const char *how = getenv(variable);
	volatile uint64_t spin = 0;

	if (!how)
		return TW_OK;
	if (strcmp(how, "crash") == 0)
		(void)raise(SIGSEGV);
	if (strcmp(how, "tire") == 0 && ++calls > 1) /* as if its CPU time were used up */
		(void)raise(SIGXCPU);
	if (strcmp(how, "unlocked") == 0)
		return tw_fail(err, TW_IO, "its sandbox could not be set up");
	while (strcmp(how, "loop") == 0)
		spin++;
	while (strcmp(how, "eat") == 0) {
		void *p = tw_mem_alloc(1 << 20, 1);

		if (!p)
			return tw_oom(err);
		memset(p, 1, 1 << 20);
	}
	if (strcmp(how, "sleep") == 0)
		(void)sleep(3600);
	if (strcmp(how, "run") == 0)
		(void)execl("/bin/true", "true", (char *)NULL);
	return TW_OK;
}

#endif
