/*
 * bench_formats.c - CPU time of reading formats, which depends little on the machine's load.
 *
 * ART, kernel text, Perfetto, Chrome JSON and speedscope: MB of input per second and nanoseconds
 * per event, both into a sink that discards all events and to a trace file, compared with a search
 * for line ends in the same bytes (memchr).  mapping.txt: compiled and opened.  An ANR report of
 * 100 MB: time and memory.  Inputs are generated and always the same: random calls, or those of a
 * recording.  Each time is the best of several runs, followed by the median.  Peak memory is that
 * of one decode in a new process, without the input.
 *
 *   bench_formats [-m MAPPING.txt] [-c RECORDING [-x TIMES]] [-o INPUT] [-p QUERY.sql]
 *
 * -m: a real R8 mapping instead of a made one.  -c: the calls of a recording by btrace 2.0.
 * -x: inputs TIMES times as large, except speedscope's, which is the complete recording; each is
 * decoded once.
 * -o: only this input: art-dual, art-wall, atrace, perfetto, chrome, speedscope, all six of them
 * (calls), mapping, anr.
 * -p: also runs $TRACE_PROCESSOR with this query on each input that it can read.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decoder/decoder.h"
#include "decoder/formats/sinks/null_sink.h"
#include "decoder/symbols/retrace.h"
#include "decoder/trace/builder.h"
#include "memory.h"
#include "server/decode/scratch_file.h"
#include "server/decode/worker.h"
#include "server/query/query.h"
#include "server/trace/trace_file.h"

enum {
	TIMES = 5,
	MAX_THREADS = 64,
	MAX_METHODS = 16384,
	DRAWN_THREADS = 8,
	DRAWN_METHODS = 4000,
	DRAWN_STEPS = 3000000,
	MAX_DEPTH = 60,
	MAX_OPEN = 4096
};

#define MB 1e6

static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const struct tw_err *err)
{
	(void)fprintf(stderr, "bench_formats: %s: %s\n", what, err ? err->msg : "");
	exit(1);
}

static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void decode(const struct tw_buf *in, struct tw_sink *sink, struct tw_arena *a)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_decoder *d = tw_decoder_new(a, &limits, NULL, NULL, sink);
	struct tw_err err;

	for (size_t at = 0; at < in->len; at += 1 << 16) { /* as the worker reads */
		size_t n = in->len - at < 1 << 16 ? in->len - at : 1 << 16;

		if (tw_decoder_push(d, in->data + at, n, &err))
			die("decoding", &err);
	}
	if (tw_decoder_finish(d, &err))
		die("decoding", &err);
	tw_decoder_free(d);
}

/* --- calls --- */

struct step { /* a method is entered or left */
	int64_t ts_ns;
	uint32_t thread, method;
	bool leave;
};

static size_t n_events;    /* of the input being made */
static size_t larger = 1;  /* factor of -x */
static struct step *steps; /* in order of time */
static size_t n_steps;
static size_t cap_steps;

static void add_step(const struct step *s)
{
	if (n_steps == cap_steps) {
		cap_steps = cap_steps ? 2 * cap_steps : 1 << 20;
		steps = tw_mem_resize(steps, cap_steps, sizeof *steps);
		if (!steps)
			die("no memory", NULL);
	}
	steps[n_steps++] = *s;
}

/* Threads that call and return at random, in turns of 64 steps of a microsecond. */
static void draw_steps(void)
{
	static uint32_t stack[DRAWN_THREADS][MAX_DEPTH];
	unsigned depth[DRAWN_THREADS] = {0};
	uint64_t state = 7;

	for (uint32_t us = 0; us < DRAWN_STEPS; us++) {
		unsigned t = us / 64 % DRAWN_THREADS;
		struct step s = {.ts_ns = (int64_t)us * 1000, .thread = t};

		s.leave = depth[t] == MAX_DEPTH || (depth[t] && draw(&state) % 2);
		if (!s.leave)
			stack[t][depth[t]++] = draw(&state) % DRAWN_METHODS;
		s.method = s.leave ? stack[t][--depth[t]] : stack[t][depth[t] - 1];
		add_step(&s);
	}
}

static struct tw_event *recorded;
static size_t n_recorded, cap_recorded;

static enum tw_status record_events(
        struct tw_sink *s, const struct tw_event *ev, size_t n, struct tw_err *err)
{
	(void)s, (void)err;
	while (n_recorded + n > cap_recorded) {
		cap_recorded = cap_recorded ? 2 * cap_recorded : 1 << 20;
		recorded = tw_mem_resize(recorded, cap_recorded, sizeof *recorded);
		if (!recorded)
			die("no memory", NULL);
	}
	memcpy(recorded + n_recorded, ev, n * sizeof *ev);
	n_recorded += n;
	return TW_OK;
}

static uint32_t record_track(struct tw_sink *s, uint32_t pid, uint64_t tid, enum tw_tid_kind kind)
{
	static uint64_t tids[MAX_THREADS];
	uint32_t i = 0;

	(void)s, (void)pid, (void)kind;
	while (i < MAX_THREADS && tids[i] && tids[i] != tid)
		i++;
	if (i == MAX_THREADS)
		return 0;
	tids[i] = tid;
	return i + 1;
}

/* btrace 2.0 numbers methods from 1. */
static uint32_t record_method(struct tw_sink *s, uint64_t id)
{
	(void)s;
	return id < MAX_METHODS ? (uint32_t)id + 1 : 0;
}

/* Outer calls first, and those of a thread together. */
static int outer_first(const void *pa, const void *pb)
{
	const struct tw_event *a = pa;
	const struct tw_event *b = pb;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->offset > b->offset ? -1 : 1; /* a call is recorded when it ends */
}

static void leave(const struct tw_event *e)
{
	add_step(&(struct step){e->ts_ns + e->dur_ns, e->track - 1, e->sym - 1, true});
}

/* Stable for the steps of a thread, as mergesort is. */
static int by_time(const void *pa, const void *pb)
{
	const struct step *a = pa;
	const struct step *b = pb;

	return a->ts_ns < b->ts_ns ? -1 : a->ts_ns > b->ts_ns;
}

/* The calls of a recording as enters and exits. */
static void record_steps(const struct tw_buf *file)
{
	struct tw_sink_ops ops = *tw_null_sink().ops;
	struct tw_sink sink = {&ops};
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	const struct tw_event *open[MAX_OPEN];
	size_t depth = 0;

	ops.events = record_events;
	ops.edges = NULL;
	ops.track = record_track;
	ops.method = record_method;
	decode(file, &sink, a);
	tw_arena_free(a);
	qsort(recorded, n_recorded, sizeof *recorded, outer_first);
	for (size_t i = 0; i < n_recorded; i++) {
		const struct tw_event *e = &recorded[i];

		while (depth && (open[depth - 1]->track != e->track ||
		                        open[depth - 1]->ts_ns + open[depth - 1]->dur_ns <
		                                e->ts_ns + e->dur_ns))
			leave(open[--depth]);
		if (!e->track || !e->sym || e->kind != TW_EV_SLICE || depth == MAX_OPEN)
			continue;
		add_step(&(struct step){e->ts_ns, e->track - 1, e->sym - 1, false});
		open[depth++] = e;
	}
	while (depth)
		leave(open[--depth]);
	qsort(steps, n_steps, sizeof *steps, by_time);
	tw_mem_free(recorded);
}

/* Step i of an endless recording: the same calls are repeated. */
static struct step step_at(size_t i)
{
	struct step s = steps[i % n_steps];

	s.ts_ns += (int64_t)(i / n_steps) * (steps[n_steps - 1].ts_ns + 1000000) - steps[0].ts_ns;
	return s;
}

static void from_file(struct tw_buf *b, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	if (fd < 0)
		die(path, NULL);
	while (n > 0) {
		if (tw_buf_reserve(b, 1 << 20))
			die(path, NULL);
		n = read(fd, b->data + b->len, 1 << 20);
		b->len += n > 0 ? (size_t)n : 0;
	}
	(void)close(fd);
}

/* --- inputs --- */

static void put16(struct tw_buf *b, unsigned v)
{
	const char bytes[] = {(char)v, (char)(v >> 8)};

	(void)tw_buf_add_str(b, (struct tw_str){bytes, 2});
}

static void make_art(struct tw_buf *b, bool dual, size_t bytes)
{
	(void)tw_buf_printf(b, "*version\n%d\nclock=%s\nvm=art\n*threads\n", dual ? 3 : 2,
	        dual ? "dual" : "wall");
	for (int i = 1; i <= MAX_THREADS; i++)
		(void)tw_buf_printf(b, "%d\tpool-%d\n", i, i);
	(void)tw_buf_printf(b, "*methods\n");
	for (unsigned i = 0; i < MAX_METHODS; i++)
		(void)tw_buf_printf(b,
		        "0x%x\tcom.acme.shop.part%u.Class%u\tmethod%u\t(ILjava/lang/"
		        "String;)V\tC.java\n",
		        i * 4 + 4, i % 40, i % 700, i);
	(void)tw_buf_printf(b, "*end\nSLOW");
	put16(b, dual ? 3 : 2);
	put16(b, 32);
	(void)tw_buf_add_u64le(b, 1000000);
	put16(b, dual ? 14 : 0);
	for (int i = 0; i < 14; i++)
		(void)tw_buf_add_u8(b, 0);
	for (size_t i = 0; b->len < bytes; i++) {
		struct step s = step_at(i);
		uint32_t us = (uint32_t)(s.ts_ns / 1000);

		put16(b, s.thread + 1);
		(void)tw_buf_add_u32le(b, (s.method * 4 + 4) | s.leave);
		if (dual)
			(void)tw_buf_add_u32le(b, us / 8);
		(void)tw_buf_add_u32le(b, us);
		n_events++;
	}
}

static void make_art_dual(struct tw_buf *b)
{
	make_art(b, true, larger * 60 * 1000000);
}

static void make_art_wall(struct tw_buf *b)
{
	make_art(b, false, larger * 60 * 1000000);
}

/* Begins and ends, and complete events when every fourth method ends, as Chrome writes them. */
static void make_chrome(struct tw_buf *b)
{
	static int64_t begun_ns[MAX_THREADS][MAX_OPEN];
	static unsigned depth[MAX_THREADS];

	memset(depth, 0, sizeof depth);
	(void)tw_buf_printf(b, "{\"traceEvents\":[\n");
	for (size_t i = 0; b->len < larger * 100 * 1000000; i++) {
		struct step s = step_at(i);
		unsigned *d = &depth[s.thread];
		bool whole = s.method % 4 == 0;
		int64_t begin_ns;

		if (!s.leave)
			begun_ns[s.thread][(*d)++ % MAX_OPEN] = s.ts_ns;
		begin_ns = s.leave && *d ? begun_ns[s.thread][--*d % MAX_OPEN] : s.ts_ns;
		if (whole && !s.leave)
			continue;
		n_events++;
		if (!whole) {
			(void)tw_buf_printf(b,
			        "{\"name\":\"Class%u::method%u\",\"cat\":\"shop\",\"ph\":\"%c\","
			        "\"ts\":%lld,\"pid\":4000,\"tid\":%u},\n",
			        s.method % 700, s.method, s.leave ? 'E' : 'B',
			        (long long)s.ts_ns / 1000, 4001 + s.thread);
			continue;
		}
		(void)tw_buf_printf(b,
		        "{\"name\":\"Class%u::part%u\",\"cat\":\"shop\",\"ph\":\"X\","
		        "\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,\"pid\":4000,\"tid\":%u,"
		        "\"args\":{\"items\":%u}},\n",
		        s.method % 700, s.method % 40, (long long)begin_ns / 1000,
		        (long long)begin_ns % 1000, (long long)(s.ts_ns - begin_ns) / 1000,
		        (long long)(s.ts_ns - begin_ns) % 1000, 4001 + s.thread, s.method % 9);
	}
	b->len -= 2;
	(void)tw_buf_printf(b, "]}\n");
}

/* One profile per thread, as it is written by speedscope's exporters. */
static void make_speedscope(struct tw_buf *b)
{
	uint32_t n_threads = 0;

	(void)tw_buf_printf(b, "{\"shared\":{\"frames\":[");
	for (unsigned i = 0; i < MAX_METHODS; i++)
		(void)tw_buf_printf(b, "%s{\"name\":\"com.acme.shop.Class%u.method%u\"}",
		        i ? "," : "", i % 700, i);
	(void)tw_buf_printf(b, "]},\"profiles\":[");
	for (size_t i = 0; i < n_steps; i++)
		if (steps[i].thread >= n_threads)
			n_threads = steps[i].thread + 1;
	for (uint32_t t = 0; t < n_threads; t++) {
		(void)tw_buf_printf(b,
		        "%s{\"type\":\"evented\",\"name\":\"pool-%u\",\"unit\":\"microseconds\","
		        "\"startValue\":0,\"events\":[",
		        t ? "," : "", t);
		for (size_t i = 0, n = 0; i < n_steps; i++) {
			struct step s = step_at(i);

			if (s.thread != t)
				continue;
			n_events++;
			(void)tw_buf_printf(b,
			        "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%lld.%03lld}",
			        n++ ? "," : "", s.leave ? 'C' : 'O', s.method,
			        (long long)s.ts_ns / 1000, (long long)s.ts_ns % 1000);
		}
		(void)tw_buf_printf(b, "]}");
	}
	(void)tw_buf_printf(b, "]}\n");
}

/* --- protobuf: a field's number times 8 plus its wire type, then its value --- */

static void put_varint(struct tw_buf *b, uint64_t v)
{
	for (; v > 0x7F; v >>= 7)
		(void)tw_buf_add_u8(b, (uint8_t)(v | 0x80));
	(void)tw_buf_add_u8(b, (uint8_t)v);
}

static void put_number(struct tw_buf *b, unsigned field, uint64_t v)
{
	put_varint(b, field << 3);
	put_varint(b, v);
}

static void put_bytes(struct tw_buf *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	(void)tw_buf_add(b, p, n);
}

static void put_message(struct tw_buf *b, unsigned field, struct tw_buf *message)
{
	put_bytes(b, field, message->data, message->len);
	message->len = 0;
}

/* The packet that describes a thread's track, on its own sequence of packets. */
static void put_thread_track(
        struct tw_buf *b, struct tw_buf *packet, struct tw_buf *part, unsigned t)
{
	struct tw_buf thread;
	char name[16];

	tw_buf_init(&thread, 1 << 10);
	(void)snprintf(name, sizeof name, "pool-%u", t);
	put_number(&thread, 1, 4000);
	put_number(&thread, 2, 4001 + t);
	put_bytes(&thread, 5, name, strlen(name));
	put_number(part, 1, 100 + t);
	put_message(part, 4, &thread);
	put_number(packet, 10, 1 + t);
	put_number(packet, 13, 1); /* incremental state cleared */
	put_message(packet, 60, part);
	put_message(b, 1, packet);
	tw_buf_done(&thread);
}

/* Track events with interned names, a sequence of packets per thread. */
static void make_perfetto(struct tw_buf *b)
{
	static bool known[MAX_THREADS][MAX_METHODS];
	struct tw_buf packet;
	struct tw_buf part;
	struct tw_buf name;

	tw_buf_init(&packet, 1 << 16);
	tw_buf_init(&part, 1 << 16);
	tw_buf_init(&name, 1 << 10);
	memset(known, 0, sizeof known);
	for (unsigned t = 0; t < MAX_THREADS; t++)
		put_thread_track(b, &packet, &part, t);
	for (size_t i = 0; b->len < larger * 60 * 1000000; i++) {
		struct step s = step_at(i);

		n_events++;
		put_number(&packet, 8, (uint64_t)s.ts_ns);
		put_number(&packet, 10, 1 + s.thread);
		if (!s.leave && !known[s.thread][s.method]) {
			char text[48];

			(void)snprintf(
			        text, sizeof text, "Class%u.method%u", s.method % 700, s.method);
			put_number(&name, 1, s.method + 1);
			put_bytes(&name, 2, text, strlen(text));
			put_message(&part, 2, &name); /* InternedData.event_names */
			put_message(&packet, 12, &part);
			known[s.thread][s.method] = true;
		}
		put_number(&part, 9, s.leave ? 2 : 1);
		put_number(&part, 11, 100 + s.thread);
		if (!s.leave)
			put_number(&part, 10, s.method + 1);
		put_message(&packet, 11, &part);
		put_message(b, 1, &packet);
	}
	tw_buf_done(&packet);
	tw_buf_done(&part);
	tw_buf_done(&name);
}

/* Sections of several threads, and a context switch for every four of their lines. */
static void make_atrace(struct tw_buf *b)
{
	(void)tw_buf_printf(b, "# tracer: nop\n#\n");
	for (size_t i = 0; b->len < larger * 100 * 1000000; i++) {
		struct step s = step_at(i);
		unsigned t = s.thread;
		long long us = s.ts_ns / 1000 + 5000000000;
		char head[96];

		(void)snprintf(head, sizeof head,
		        "  pool-%u-%u  ( 4000) [00%u] d..%u %lld.%06lld: ", t, 4001 + t, t % 4,
		        t % 3, us / 1000000, us % 1000000);
		n_events++;
		if (i % 4 == 0) {
			(void)tw_buf_printf(b,
			        "%ssched_switch: prev_comm=pool-%u prev_pid=%u prev_prio=120 "
			        "prev_state=S ==> next_comm=pool-%u next_pid=%u next_prio=120\n",
			        head, t, 4001 + t, (t + 1) % 8, 4001 + (t + 1) % 8);
			n_events++;
		}
		if (s.leave)
			(void)tw_buf_printf(b, "%stracing_mark_write: E|4000\n", head);
		else
			(void)tw_buf_printf(b,
			        "%stracing_mark_write: B|4000|Class%u#method%u part %u\n", head,
			        s.method % 700, s.method, s.method % 40);
	}
}

static void make_mapping(struct tw_buf *b)
{
	uint64_t state = 7;

	for (unsigned c = 0; b->len < 2300000; c++) {
		(void)tw_buf_printf(b, "com.acme.shop.part%u.Class%u -> a.b%u:\n", c % 40, c, c);
		for (unsigned m = 0; m < 20; m++)
			(void)tw_buf_printf(b,
			        "    %u:%u:void method%u(int,java.lang.String):%u:%u -> %c\n",
			        m + 1, m + 3, draw(&state) % 999, m + 40, m + 42,
			        'a' + (char)(m % 20));
	}
}

static void make_anr(struct tw_buf *b)
{
	uint64_t state = 7;

	for (unsigned pid = 1; b->len < 100 * 1000000; pid++) {
		(void)tw_buf_printf(b,
		        "----- pid %u at 2026-01-01 00:00:00 -----\nCmd line: com.acme.shop%u\n\n"
		        "DALVIK THREADS (200):\n",
		        pid, pid);
		for (unsigned t = 1; t <= 200; t++) {
			(void)tw_buf_printf(b,
			        "\"pool-%u\" prio=5 tid=%u %s\n"
			        "  | group=\"main\" sCount=1 ucsCount=0 flags=1 obj=0x1 self=0x2\n"
			        "  | sysTid=%u nice=0 cgrp=default sched=0/0 handle=0x3\n",
			        t, t, t % 5 ? "Waiting" : "Blocked", pid * 1000 + t);
			for (unsigned i = 0; i < 30; i++)
				(void)tw_buf_printf(b,
				        "  at com.acme.shop.Class%u.method%u(Class.java:%u)\n",
				        draw(&state) % 700, draw(&state) % DRAWN_METHODS, i);
			if (t % 5 == 0)
				(void)tw_buf_printf(b,
				        "  - waiting to lock <0x%08x> (a java.lang.Object) held by "
				        "thread %u\n",
				        t, t % 200 + 1);
			(void)tw_buf_printf(b, "\n");
		}
		(void)tw_buf_printf(b, "----- end %u -----\n", pid);
	}
}

/* --- runs --- */

static double to_nothing(const struct tw_buf *in)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	struct tw_sink sink = tw_null_sink();
	double t = cpu_seconds();

	decode(in, &sink, a);
	t = cpu_seconds() - t;
	tw_arena_free(a);
	return t;
}

static double to_file(const struct tw_buf *in)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	struct tw_builder *b = tw_builder_new(&limits);
	FILE *scratch = tmpfile();
	struct tw_scratch_file records_file = {.max_bytes = UINT64_MAX};
	const struct tw_scratch records = tw_scratch_file(&records_file);
	struct tw_trace_facts facts = {"bench", in->len, in->len, TW_DECODER_VERSION};
	struct tw_trace_writer *w = NULL;
	char path[64];
	struct tw_err err;
	double t = cpu_seconds();

	if (!scratch)
		die("tmpfile", NULL);
	records_file.fd = fileno(scratch);
	tw_builder_use_scratch(b, &records);
	(void)snprintf(path, sizeof path, "/tmp/bench_formats-%d.db", (int)getpid());
	decode(in, tw_builder_sink(b), a);
	if (tw_trace_writer_new(path, tw_query_summary, &w, &err) ||
	        tw_builder_write(b, tw_trace_writer_out(w), &err) ||
	        tw_trace_writer_commit(w, &facts, &err))
		die("writing", &err);
	t = cpu_seconds() - t;
	tw_trace_writer_free(w);
	tw_builder_free(b);
	tw_arena_free(a);
	(void)fclose(scratch);
	(void)unlink(path);
	return t;
}

struct times {
	double best, median;
};

static int rising(const void *pa, const void *pb)
{
	const double *a = pa;
	const double *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static struct times times_of(
        double (*run)(const struct tw_buf *), const struct tw_buf *in, int times)
{
	double t[TIMES];

	for (int i = 0; i < times; i++)
		t[i] = run(in);
	qsort(t, (size_t)times, sizeof *t, rising);
	return (struct times){t[0], t[times / 2]};
}

/* The lower bound for formats of lines: one pass over the bytes. */
static double lines_only(const struct tw_buf *in)
{
	const uint8_t *p = in->data;
	const uint8_t *end = in->data + in->len;
	volatile size_t lines = 0;
	double t = cpu_seconds();

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		lines = lines + 1;
		p++;
	}
	return cpu_seconds() - t;
}

/* Memory of one decode in a new process, as a worker is. */
static double peak_of_one(const struct tw_buf *in)
{
	double peak = 0;
	double before;
	int fds[2];
	pid_t child;

	if (pipe(fds) != 0 || (child = fork()) < 0)
		die("starting a process", NULL);
	if (child == 0) {
		(void)malloc_trim(0);
		before = bench_memory("VmRSS:");
		bench_forget_peak();
		(void)to_file(in);
		peak = bench_memory("VmHWM:") - before;
		_exit(write(fds[1], &peak, sizeof peak) != sizeof peak);
	}
	(void)close(fds[1]);
	if (read(fds[0], &peak, sizeof peak) != sizeof peak)
		die("decoding in another process", NULL);
	(void)close(fds[0]);
	(void)waitpid(child, NULL, 0);
	return peak;
}

/* --- Perfetto's trace_processor --- */

static void write_file(const char *path, const struct tw_buf *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n <= 0)
			die(path, NULL);
		at += (size_t)n;
	}
	(void)close(fd);
}

/* CPU seconds of the program with this query; 0: it failed. */
static double peer_seconds(const char *program, const char *query, const char *path)
{
	struct rusage used;
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(fd, STDOUT_FILENO);
		(void)dup2(fd, STDERR_FILENO);
		(void)execl(program, program, "-q", query, path, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &used) != child)
		die("starting trace_processor", NULL);
	if (status != 0)
		return 0;
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* ours_s: from the input to the trace file. */
static void report_peer(const struct tw_buf *in, const char *query, double ours_s)
{
	const char *program = getenv("TRACE_PROCESSOR");
	char path[64];
	double s;

	if (!query || !program)
		return;
	(void)snprintf(path, sizeof path, "/tmp/bench_formats-%d.trace", (int)getpid());
	write_file(path, in);
	s = peer_seconds(program, query, path);
	(void)unlink(path);
	if (s > 0)
		(void)printf(
		        "           trace_processor %.2f s, to the trace file %.2f s: %.1f x\n", s,
		        ours_s, s / ours_s);
	else
		(void)printf("           trace_processor failed\n");
}

struct input {
	const char *name;
	void (*make)(struct tw_buf *b);
	int times;
	bool of_calls; /* from the recording or the random calls */
	bool for_peer; /* trace_processor can read it */
	const char *must;
};

static void report(const struct input *i, const struct tw_buf *in, const char *query)
{
	double n = n_events ? (double)n_events : (double)in->len;
	const char *unit = n_events ? "event" : "byte";
	const int times = larger > 1 ? 1 : i->times;
	double peak = peak_of_one(in);
	struct times nothing = times_of(to_nothing, in, times);
	struct times file = times_of(to_file, in, times);

	(void)printf("%-10s %6.1f MB  read %6.1f MB/s %6.1f (%.1f) ns/%s  to trace file %6.1f MB/s "
	             "%6.1f (%.1f) ns/%s  read %2.0f %%  memchr %.0f MB/s  peak %.1f MiB  (%s)\n",
	        i->name, (double)in->len / MB, (double)in->len / MB / nothing.best,
	        nothing.best / n * 1e9, nothing.median / n * 1e9, unit,
	        (double)in->len / MB / file.best, file.best / n * 1e9, file.median / n * 1e9, unit,
	        nothing.best / file.best * 100, (double)in->len / MB / lines_only(in),
	        peak / 1048576, i->must);
	if (i->for_peer)
		report_peer(in, query, file.best);
	(void)fflush(stdout);
}

static double compile(const struct tw_buf *in, struct tw_buf *image)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(64 << 20);
	struct tw_retrace_stats stats;
	struct tw_err err;
	double t = cpu_seconds();

	if (tw_retrace_writer_push(w, in->data, in->len, &err) ||
	        tw_retrace_writer_finish(w, image, &stats, &err))
		die("mapping", &err);
	t = cpu_seconds() - t;
	tw_retrace_writer_free(w);
	return t;
}

static void report_mapping(const struct tw_buf *in)
{
	double load = 1e9;
	double open = 1e9;

	for (int i = 0; i < TIMES; i++) {
		struct tw_buf image;
		struct tw_retrace r;
		double t;

		tw_buf_init(&image, 256 << 20);
		t = compile(in, &image);
		if (t < load)
			load = t;
		t = cpu_seconds();
		if (tw_retrace_open(image.data, image.len, &r, NULL))
			die("opening a mapping", NULL);
		t = cpu_seconds() - t;
		if (t < open)
			open = t;
		tw_buf_done(&image);
	}
	(void)printf("%-18s %6.1f MB  compiled in %.1f ms, opened in %.3f ms (floor: 50 ms for 2.3 "
	             "MB)\n",
	        "R8 mapping", (double)in->len / MB, load * 1e3, open * 1e3);
}

/* Goals with -c: half of the time of the first version in decoder/decisions/0018. */
static const struct input inputs[] = {{"art-dual", make_art_dual, TIMES, true, true,
                                              "goal: 42 ns/event with -c; floor: read 150 MB/s"},
        {"art-wall", make_art_wall, TIMES, true, true, "floor: read 150 MB/s"},
        {"atrace", make_atrace, TIMES, true, true,
                "goal: 317 ns/event with -c; floor: read 150 MB/s"},
        {"perfetto", make_perfetto, TIMES, true, true, "track events; goal: 83 ns/event with -c"},
        {"chrome", make_chrome, TIMES, true, true,
                "begins, ends and complete events; goal: 283 ns/event with -c"},
        {"speedscope", make_speedscope, TIMES, true, false,
                "begins and ends; goal: 181 ns/event with -c"},
        {"anr", make_anr, 1, false, false, "limits of a decode: 120 s of CPU, 1.5 GiB"}};

static bool is_selected(const struct input *i, const char *only)
{
	return !only || strcmp(only, i->name) == 0 || (i->of_calls && strcmp(only, "calls") == 0);
}

/* In a new process, as memory that an earlier input freed would distort its peak. */
static void run(const struct input *i, struct tw_buf *in, const char *query)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		in->len = n_events = 0;
		i->make(in);
		report(i, in, query);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		die(i->name, NULL);
}

static void make_calls(struct tw_buf *b, const char *recording)
{
	if (!recording) {
		draw_steps();
		return;
	}
	from_file(b, recording);
	record_steps(b);
}

int main(int argc, char **argv)
{
	const char *mapping = NULL;
	const char *calls = NULL;
	const char *only = NULL;
	const char *query = NULL;
	struct tw_buf in;
	int c;

	tw_worker_set_heap();
	while ((c = getopt(argc, argv, "m:c:o:p:x:")) != -1) {
		if (c == 'm')
			mapping = optarg;
		else if (c == 'c')
			calls = optarg;
		else if (c == 'o')
			only = optarg;
		else if (c == 'p')
			query = optarg;
		else if (c != 'x' || (larger = strtoul(optarg, NULL, 10)) == 0)
			return 2;
	}
	tw_buf_init(&in, larger * 256 << 20);
	make_calls(&in, calls);
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
		if (is_selected(&inputs[i], only))
			run(&inputs[i], &in, query);
	if (!only || strcmp(only, "mapping") == 0) {
		in.len = 0;
		if (mapping)
			from_file(&in, mapping);
		else
			make_mapping(&in);
		report_mapping(&in);
	}
	tw_buf_done(&in);
	return 0;
}
