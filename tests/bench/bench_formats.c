/*
 * bench_formats.c - what reading formats costs, in CPU time, so that a busy machine says the same.
 *
 * ART, kernel text, Perfetto and Chrome JSON: MB of input a second into a sink
 * that keeps nothing, and all the way to a trace file; mapping.txt: compiled and opened; an ANR
 * report of 100 MB: time and memory.  Inputs are made here and are the same every time. Each is the
 * best of several runs; peak memory is beside the input's own.
 *
 *   bench_formats [MAPPING.txt]      a real R8 mapping instead of a made one
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decoder/decoder.h"
#include "decoder/formats/sinks/null_sink.h"
#include "decoder/symbols/retrace.h"
#include "decoder/trace/builder.h"
#include "server/query/query.h"
#include "server/trace/trace_file.h"

enum { TIMES = 5, THREADS = 8, METHODS = 4000, MAX_DEPTH = 60 };

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

/* VmHWM or VmRSS, in bytes. */
static double memory(const char *key)
{
	char line[128];
	double kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtod(line + strlen(key) + 1, NULL);
	if (f)
		(void)fclose(f);
	return kb * 1024;
}

static void forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "5", 1) != 1)
		(void)fprintf(stderr, "bench_formats: peaks hold the inputs too\n");
	if (fd >= 0)
		(void)close(fd);
}

static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* --- inputs --- */

static void put16(struct tw_buf *b, unsigned v)
{
	const char bytes[] = {(char)v, (char)(v >> 8)};

	(void)tw_buf_add_str(b, (struct tw_str){bytes, 2});
}

struct walker { /* a thread that calls and returns at random */
	uint32_t stack[MAX_DEPTH];
	unsigned depth;
};

/* The method that is entered (*ret_exit false) or left. */
static uint32_t step(struct walker *w, uint64_t *state, bool *ret_exit)
{
	*ret_exit = w->depth == MAX_DEPTH || (w->depth && draw(state) % 2);
	if (*ret_exit)
		return w->stack[--w->depth];
	return w->stack[w->depth++] = draw(state) % METHODS;
}

static void make_art(struct tw_buf *b, bool dual, size_t bytes)
{
	struct walker threads[THREADS] = {0};
	uint64_t state = 7;

	(void)tw_buf_printf(b, "*version\n%d\nclock=%s\nvm=art\n*threads\n", dual ? 3 : 2,
	        dual ? "dual" : "wall");
	for (int i = 1; i <= THREADS; i++)
		(void)tw_buf_printf(b, "%d\tpool-%d\n", i, i);
	(void)tw_buf_printf(b, "*methods\n");
	for (unsigned i = 0; i < METHODS; i++)
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
	for (uint32_t us = 0; b->len < bytes; us++) {
		unsigned t = us / 64 % THREADS; /* threads write blocks */
		bool leave;
		uint32_t method = step(&threads[t], &state, &leave);

		put16(b, t + 1);
		(void)tw_buf_add_u32le(b, (method * 4 + 4) | leave);
		if (dual)
			(void)tw_buf_add_u32le(b, us / THREADS);
		(void)tw_buf_add_u32le(b, us);
	}
}

/* Complete events as Chrome and many tools write them, in order of their begins. */
static void make_chrome(struct tw_buf *b, size_t bytes)
{
	struct walker threads[THREADS] = {0};
	uint64_t state = 7;

	(void)tw_buf_printf(b, "{\"traceEvents\":[\n");
	for (uint32_t us = 0; b->len < bytes; us++) {
		unsigned t = us / 64 % THREADS;
		bool leave;
		uint32_t method = step(&threads[t], &state, &leave);

		if (us % 4 == 0) {
			(void)tw_buf_printf(b,
			        "{\"name\":\"Class%u::part%u\",\"cat\":\"shop\",\"ph\":\"X\","
			        "\"ts\":%u.%03u,"
			        "\"dur\":0.%03u,\"pid\":4000,\"tid\":%u,\"args\":{\"items\":%u}},"
			        "\n",
			        method % 700, method % 40, us, us % 1000, method % 900, 4001 + t,
			        method % 9);
			continue;
		}
		(void)tw_buf_printf(b,
		        "{\"name\":\"Class%u::method%u\",\"cat\":\"shop\",\"ph\":\"%c\",\"ts\":%u,"
		        "\"pid\":4000,\"tid\":%u},\n",
		        method % 700, method, leave ? 'E' : 'B', us + 1, 4001 + t);
	}
	b->len -= 2;
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
static void make_perfetto(struct tw_buf *b, size_t bytes)
{
	static bool known[THREADS][METHODS];
	struct walker threads[THREADS] = {0};
	uint64_t state = 7;
	struct tw_buf packet;
	struct tw_buf part;
	struct tw_buf name;

	tw_buf_init(&packet, 1 << 16);
	tw_buf_init(&part, 1 << 16);
	tw_buf_init(&name, 1 << 10);
	memset(known, 0, sizeof known);
	for (unsigned t = 0; t < THREADS; t++)
		put_thread_track(b, &packet, &part, t);
	for (uint32_t us = 0; b->len < bytes; us++) {
		unsigned t = us / 64 % THREADS;
		bool leave;
		uint32_t method = step(&threads[t], &state, &leave);

		put_number(&packet, 8, (uint64_t)us * 1000 + method % 1000);
		put_number(&packet, 10, 1 + t);
		if (!leave && !known[t][method]) {
			char text[48];

			(void)snprintf(text, sizeof text, "Class%u.method%u", method % 700, method);
			put_number(&name, 1, method + 1);
			put_bytes(&name, 2, text, strlen(text));
			put_message(&part, 2, &name); /* InternedData.event_names */
			put_message(&packet, 12, &part);
			known[t][method] = true;
		}
		put_number(&part, 9, leave ? 2 : 1);
		put_number(&part, 11, 100 + t);
		if (!leave)
			put_number(&part, 10, method + 1);
		put_message(&packet, 11, &part);
		put_message(b, 1, &packet);
	}
	tw_buf_done(&packet);
	tw_buf_done(&part);
	tw_buf_done(&name);
}

/* Sections of several threads, among what the scheduler does: four lines of marks for a switch. */
static void make_atrace(struct tw_buf *b, size_t bytes)
{
	struct walker threads[THREADS] = {0};
	uint64_t state = 7;

	(void)tw_buf_printf(b, "# tracer: nop\n#\n");
	for (uint32_t us = 0; b->len < bytes; us++) {
		unsigned t = us / 64 % THREADS;
		bool leave;
		uint32_t method;

		(void)tw_buf_printf(b, "  pool-%u-%u  ( 4000) [00%u] d..%u %u.%06u: ", t, 4001 + t,
		        t % 4, t % 3, 5000 + us / 1000000, us % 1000000);
		if (us % 5 == 0) {
			(void)tw_buf_printf(b,
			        "sched_switch: prev_comm=pool-%u prev_pid=%u prev_prio=120 "
			        "prev_state=S ==> next_comm=pool-%u next_pid=%u next_prio=120\n",
			        t, 4001 + t, (t + 1) % THREADS, 4001 + (t + 1) % THREADS);
			continue;
		}
		method = step(&threads[t], &state, &leave);
		if (leave)
			(void)tw_buf_printf(b, "tracing_mark_write: E|4000\n");
		else
			(void)tw_buf_printf(b,
			        "tracing_mark_write: B|4000|Class%u#method%u part %u\n",
			        method % 700, method, method % 40);
	}
}

static void make_mapping(struct tw_buf *b, size_t bytes)
{
	uint64_t state = 7;

	for (unsigned c = 0; b->len < bytes; c++) {
		(void)tw_buf_printf(b, "com.acme.shop.part%u.Class%u -> a.b%u:\n", c % 40, c, c);
		for (unsigned m = 0; m < 20; m++)
			(void)tw_buf_printf(b,
			        "    %u:%u:void method%u(int,java.lang.String):%u:%u -> %c\n",
			        m + 1, m + 3, draw(&state) % 999, m + 40, m + 42,
			        'a' + (char)(m % 20));
	}
}

static void make_anr(struct tw_buf *b, size_t bytes)
{
	uint64_t state = 7;

	for (unsigned pid = 1; b->len < bytes; pid++) {
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
				        draw(&state) % 700, draw(&state) % METHODS, i);
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
	struct tw_trace_facts facts = {"bench", in->len, in->len, TW_DECODER_VERSION};
	struct tw_trace_writer *w = NULL;
	char path[64];
	struct tw_err err;
	double t = cpu_seconds();

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
	(void)unlink(path);
	return t;
}

static double best_of(double (*run)(const struct tw_buf *), const struct tw_buf *in, int times)
{
	double best = run(in);

	while (--times > 0) {
		double t = run(in);

		if (t < best)
			best = t;
	}
	return best;
}

static void report(const char *what, const struct tw_buf *in, int times, const char *must)
{
	double before;
	double nothing = best_of(to_nothing, in, times);
	double file;

	(void)malloc_trim(0);
	before = memory("VmRSS:");
	forget_peak();
	file = best_of(to_file, in, times > 3 ? 3 : times);
	(void)printf("%-18s %6.1f MB  read %7.1f MB/s  to trace file %6.1f MB/s  peak %6.1f MiB"
	             "  (%s)\n",
	        what, (double)in->len / MB, (double)in->len / MB / nothing,
	        (double)in->len / MB / file, (memory("VmHWM:") - before) / 1048576, must);
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

int main(int argc, char **argv)
{
	struct tw_buf in;

	(void)mallopt(M_ARENA_MAX, 1); /* as the server's decoder does */
	tw_buf_init(&in, 256 << 20);
	make_art(&in, true, 28 * 1000000);
	report("ART, dual clock", &in, TIMES, "floor: read 150 MB/s");
	in.len = 0;
	make_art(&in, false, 28 * 1000000);
	report("ART, wall clock", &in, TIMES, "floor: read 150 MB/s");
	in.len = 0;
	make_atrace(&in, 40 * 1000000);
	report("kernel text", &in, TIMES, "floor: read 150 MB/s");
	in.len = 0;
	make_perfetto(&in, 28 * 1000000);
	report("Perfetto", &in, TIMES, "track events");
	in.len = 0;
	make_chrome(&in, 40 * 1000000);
	report("Chrome JSON", &in, TIMES, "begins, ends and complete events");
	in.len = 0;
	if (argc > 1)
		from_file(&in, argv[1]);
	else
		make_mapping(&in, 2300000);
	report_mapping(&in);
	in.len = 0;
	make_anr(&in, 100 * 1000000);
	report("ANR report", &in, 1, "limits of a decode: 120 s of CPU, 1.5 GiB");
	tw_buf_done(&in);
	return 0;
}
