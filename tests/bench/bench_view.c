/*
 * bench_view.c - the cost of responses for a decoded trace: flame graphs and Perfetto.
 *
 * Each time is compared with a plain scan: decoding every chunk of the trace once.  Memory is the
 * growth of the process during one response.
 *
 *   bench_view UPLOAD [ROW TIMES]
 *
 * With a ROW (scan, slices, top-down, bottom-up, range, range-bottom-up) it computes only that one
 * and prints the least processor time, for a profile or a comparison under load.  `slices` are
 * those of all threads, as queries on single calls read them: decoded ahead by the free cores.
 * `-alone` after a row's name: by one thread; `-longest`: with the longest call of each node, as in
 * nested JSON.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "memory.h"
#include "server/base/thread/parallel.h"
#include "server/decode/local_trace.h"
#include "server/export/perfetto/export_perfetto.h"
#include "server/query/query.h"

/* Large traces are measured only twice: their figures vary little. */
enum { TIMES = 5, LARGE_TIMES = 2, LARGE_SLICES = 5 << 20, PIECE_BYTES = 256 << 10 };

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of the calling thread: about the time of a query on idle cores. */
static double own_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(enum tw_status st, const struct tw_err *err)
{
	if (st == TW_OK)
		return;
	(void)fprintf(stderr, "bench_view: %s\n", err->msg);
	exit(1);
}

static double scan(struct tw_trace_file *f)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct tw_chunk c;
	struct tw_err err;
	double start = seconds();

	tw_chunk_init(&c);
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_chunk_row *rows;
		uint32_t n_rows;

		check(tw_trace_file_chunks(f, t[i].thread_id, &rows, &n_rows, &err), &err);
		for (uint32_t k = 0; k < n_rows && rows[k].info.level == 0; k++)
			check(tw_trace_file_chunk(f, &rows[k], &c, &err), &err);
	}
	tw_chunk_done(&c);
	return seconds() - start;
}

static bool count_slices(void *arg, const struct tw_slice *s, size_t n)
{
	uint64_t *seen = arg;

	(void)s;
	*seen += n;
	return true;
}

static double slices(struct tw_trace_file *f)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	uint64_t seen = 0;
	struct tw_err err;
	double start = seconds();

	for (uint32_t i = 0; i < n; i++)
		check(tw_query_slices(f, t[i].thread_id, 0, INT64_MAX, count_slices, &seen, &err),
		        &err);
	start = seconds() - start;
	if (seen != tw_trace_file_info(f)->slices) {
		(void)fprintf(stderr, "bench_view: slices are missing\n");
		exit(1);
	}
	return start;
}

static bool longest;

static double flame(
        struct tw_trace_file *f, const struct tw_selection *sel, enum tw_flame_view view)
{
	const struct tw_flame_query q = {.view = view, .max_nodes = 20000, .no_longest = !longest};
	struct tw_arena *a = tw_arena_new((size_t)2 << 30);
	struct tw_flame out;
	struct tw_err err;
	double start = seconds();

	check(tw_query_graph(f, sel, &q, NULL, a, &out, &err), &err);
	start = seconds() - start;
	tw_arena_free(a);
	return start;
}

struct exported {
	double first_s, all_s;
	uint64_t bytes, zstd_bytes;
};

static void export(struct tw_trace_file *f, bool compress, struct exported *ret)
{
	const struct tw_perfetto_source source = {.file = f,
	        .sel = {.all_threads = true},
	        .facts = {.trace_id = "bench"},
	        .system_fd = -1};
	const struct tw_perfetto_options plain = {0};
	uint8_t *piece = tw_mem_alloc(PIECE_BYTES, 1);
	uint8_t *packed = tw_mem_alloc(PIECE_BYTES, 2);
	ZSTD_CCtx *z = ZSTD_createCCtx();
	struct tw_perfetto *x = NULL;
	struct tw_err err;
	size_t n = 1;
	double start = seconds();

	*ret = (struct exported){0};
	(void)ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, 3);
	check(tw_perfetto_open(&source, 1, &plain, &x, &err), &err);
	while (n > 0) {
		check(tw_perfetto_read(x, piece, PIECE_BYTES, &n, &err), &err);
		if (ret->bytes == 0)
			ret->first_s = seconds() - start;
		ret->bytes += n;
		if (compress) {
			ZSTD_inBuffer in = {piece, n, 0};
			ZSTD_outBuffer out = {packed, 2 * PIECE_BYTES, 0};

			(void)ZSTD_compressStream2(z, &out, &in, n ? ZSTD_e_continue : ZSTD_e_end);
			ret->zstd_bytes += out.pos;
		}
	}
	ret->all_s = seconds() - start;
	tw_perfetto_close(x);
	(void)ZSTD_freeCCtx(z);
	tw_mem_free(piece);
	tw_mem_free(packed);
}

/* By one thread, whatever cores there are. */
static double flame_only(struct tw_trace_file *f, const struct tw_selection *sel)
{
	double s;

	tw_parallel_set_cores(1);
	s = flame(f, sel, TW_TOP_DOWN);
	tw_parallel_set_cores(0);
	return s;
}

static double memory_mib(
        struct tw_trace_file *f, const struct tw_selection *sel, enum tw_flame_view view)
{
	double before;

	(void)malloc_trim(0);
	bench_forget_peak();
	before = bench_memory("VmHWM:");
	(void)flame(f, sel, view);
	return (bench_memory("VmHWM:") - before) / (1 << 20);
}

static double best(double a, double b)
{
	return a == 0 || b < a ? b : a;
}

static int one_row(
        struct tw_trace_file *f, const struct tw_selection *range, const char *row, long times)
{
	const struct tw_selection all = {.all_threads = true};
	bool of_range = strncmp(row, "range", 5) == 0;
	enum tw_flame_view view = strstr(row, "bottom-up") ? TW_BOTTOM_UP : TW_TOP_DOWN;
	double least_s = 0;
	double own_least_s = 0;
	double wall_s = 0;

	tw_parallel_set_cores(strstr(row, "-alone") ? 1 : 0);
	longest = strstr(row, "-longest") != NULL;
	for (long i = 0; i < times; i++) {
		double cpu = cpu_seconds();
		double own = own_seconds();
		double start = seconds();

		if (strcmp(row, "scan") == 0)
			(void)scan(f);
		else if (strncmp(row, "slices", 6) == 0)
			(void)slices(f);
		else
			(void)flame(f, of_range ? range : &all, view);
		least_s = best(least_s, cpu_seconds() - cpu);
		own_least_s = best(own_least_s, own_seconds() - own);
		wall_s = best(wall_s, seconds() - start);
	}
	(void)printf("%s %.2f ms of CPU, %.2f ms by the calling thread, %.2f ms in all\n", row,
	        least_s * 1e3, own_least_s * 1e3, wall_s * 1e3);
	tw_trace_file_close(f);
	return 0;
}

int main(int argc, char **argv)
{
	struct tw_trace_file *f = NULL;
	struct tw_selection all = {.all_threads = true};
	struct tw_selection range = {.all_threads = true, .ranged = true};
	struct exported x = {0};
	struct exported packed = {0};
	double s = 0;
	double ahead = 0;
	double top = 0;
	double bottom = 0;
	double part = 0;
	double part_only = 0;
	double part_bottom = 0;
	double perfetto = 0;
	struct tw_err err;
	uint64_t n_slices;

	if (argc != 2 && argc != 4)
		return 2;
	check(tw_local_open(argv[1], NULL, &f, &err), &err);
	(void)flame(f, &all, TW_TOP_DOWN);
	(void)printf("from the upload to a flame graph %.3f s of CPU\n", cpu_seconds());
	n_slices = tw_trace_file_info(f)->slices;
	range.from_ns = tw_trace_file_info(f)->start_ns;
	range.to_ns = tw_trace_file_info(f)->end_ns;
	range.from_ns += (range.to_ns - range.from_ns) / 4;
	if (argc == 4)
		return one_row(f, &range, argv[2], strtol(argv[3], NULL, 10));
	for (int i = 0; i < (n_slices < LARGE_SLICES ? TIMES : LARGE_TIMES); i++) {
		s = best(s, scan(f));
		ahead = best(ahead, slices(f));
		top = best(top, flame(f, &all, TW_TOP_DOWN));
		bottom = best(bottom, flame(f, &all, TW_BOTTOM_UP));
		part = best(part, flame(f, &range, TW_TOP_DOWN));
		part_only = best(part_only, flame_only(f, &range));
		part_bottom = best(part_bottom, flame(f, &range, TW_BOTTOM_UP));
		export(f, false, &x);
		perfetto = best(perfetto, x.all_s);
	}
	export(f, true, &packed);
	(void)printf(
	        "slices %llu, plain scan of all chunks %.1f ms (%.1f M slices/s) by one thread, "
	        "%.1f ms (%.1f M slices/s) by %u\n",
	        (unsigned long long)n_slices, s * 1e3, (double)n_slices / s / 1e6, ahead * 1e3,
	        (double)n_slices / ahead / 1e6, tw_parallel_threads());
	(void)printf("flame, whole trace, all threads, top-down  %.1f ms = %.2f x the scan\n",
	        top * 1e3, top / s);
	(void)printf("flame, whole trace, all threads, bottom-up %.1f ms = %.2f x\n", bottom * 1e3,
	        bottom / s);
	(void)printf("flame, three quarters of the time          %.1f ms = %.2f x by %u threads, "
	             "%.1f ms = %.2f x by one, bottom-up %.1f ms\n",
	        part * 1e3, part / s, tw_parallel_threads(), part_only * 1e3, part_only / s,
	        part_bottom * 1e3);
	(void)printf(
	        "memory of top-down %.1f MiB, bottom-up %.1f MiB, three quarters %.1f MiB by %u "
	        "threads, bottom-up %.1f MiB\n",
	        memory_mib(f, &all, TW_TOP_DOWN), memory_mib(f, &all, TW_BOTTOM_UP),
	        memory_mib(f, &range, TW_TOP_DOWN), tw_parallel_threads(),
	        memory_mib(f, &range, TW_BOTTOM_UP));
	(void)printf(
	        "perfetto %.2f M slices/s = %.2f x the scan's time, first bytes after %.1f ms\n",
	        (double)n_slices / perfetto / 1e6, perfetto / s, x.first_s * 1e3);
	(void)printf("perfetto %.2f B per slice, zstd -3 %.2f B\n",
	        (double)x.bytes / (double)n_slices, (double)packed.zstd_bytes / (double)n_slices);
	tw_trace_file_close(f);
	return 0;
}
