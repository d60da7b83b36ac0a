/*
 * bench_decode.c - upload file to trace file, as a worker does it.
 *
 * Prints records/s, CPU time of all threads per record, bytes per slice and peak memory, with
 * references measured in the same process, so that the ratios are comparable between machines: the
 * same file decompressed alone (libzstd), as many bytes as the trace file has written and synced,
 * and the same calls as rows of an SQLite table.  Memory is that of the first decode, without the
 * input; while records arrive in the order of their ends, it does not depend on their number.
 *
 *   bench_decode FILE.zst [TIMES [only]]
 *
 * With `only` it decodes and prints no references, for a profile.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "decoder/bundle.h"
#include "decoder/decoder.h"
#include "decoder/trace/builder.h"
#include "server/decode/scratch_file.h"
#include "server/decode/worker.h"
#include "server/query/query.h"
#include "server/trace/trace_file.h"

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const struct tw_err *err)
{
	(void)fprintf(stderr, "bench_decode: %s: %s\n", what, err ? err->msg : "");
	exit(1);
}

static uint8_t *slurp(const char *path, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *p;
	size_t at = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(path, NULL);
	p = tw_mem_alloc((size_t)st.st_size, 1);
	while (p && at < (size_t)st.st_size) {
		ssize_t n = read(fd, p + at, (size_t)st.st_size - at);

		if (n <= 0)
			die(path, NULL);
		at += (size_t)n;
	}
	(void)close(fd);
	*ret_len = at;
	return p;
}

/* Decompresses in pieces, as the worker must, and throws the result away. */
static double plain_zstd(const uint8_t *p, size_t len)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	size_t cap = ZSTD_DStreamOutSize();
	uint8_t *out = tw_mem_alloc(cap, 1);
	ZSTD_inBuffer in = {p, len, 0};
	double t = seconds();

	while (in.pos < in.size) {
		ZSTD_outBuffer o = {out, cap, 0};

		if (ZSTD_isError(ZSTD_decompressStream(z, &o, &in)))
			return -1;
	}
	t = seconds() - t;
	tw_mem_free(out);
	(void)ZSTD_freeDCtx(z);
	return t;
}

static double most_memory(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	return (double)ru.ru_maxrss * 1024;
}

static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct steps {
	double push, write, commit, cpu;
	double pushed_bytes; /* most memory until writing begins */
	uint64_t slices, bytes;
};

/* As a worker does it. */
static void push_all(struct tw_decoder *d, const uint8_t *p, size_t len)
{
	enum { PIECE = 1 << 20 };
	struct tw_err err;

	tw_decoder_read_ahead(d);
	for (size_t at = 0; at < len; at += PIECE)
		if (tw_decoder_push(d, p + at, len - at < PIECE ? len - at : PIECE, &err))
			die("decoding", &err);
	if (tw_decoder_finish(d, &err))
		die("decoding", &err);
}

static void decode_once(const uint8_t *p, size_t len, const char *path, struct steps *ret)
{
	FILE *scratch = tmpfile();
	struct tw_limits limits = tw_limits_default();
	struct tw_arena *a = tw_arena_new(limits.max_memory_bytes);
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_decoder *d = tw_decoder_new(a, &limits, NULL, NULL, tw_builder_sink(b));
	struct tw_scratch_file file = {.fd = fileno(scratch), .max_bytes = UINT64_MAX};
	const struct tw_scratch records = tw_scratch_file(&file);
	struct tw_trace_writer *w = NULL;
	struct tw_trace_facts facts = {"btrace2", len, 0, TW_DECODER_VERSION};
	struct tw_trace_file *f = NULL;
	struct tw_err err;
	struct stat st;
	double cpu = cpu_seconds();
	double t0 = seconds();
	double t1;
	double t2;

	if (!scratch)
		die("tmpfile", NULL);
	tw_builder_use_scratch(b, &records);
	(void)tw_bundle_is(p, len < TW_DECODER_HEAD_BYTES ? len : TW_DECODER_HEAD_BYTES, &limits);
	push_all(d, p, len);
	facts.decoded_bytes = tw_decoder_bytes(d);
	tw_decoder_free(d);
	ret->pushed_bytes = most_memory();
	t1 = seconds();
	(void)unlink(path);
	if (tw_trace_writer_new(path, tw_query_summary, &w, &err) ||
	        tw_builder_write(b, tw_trace_writer_out(w), &err))
		die("writing", &err);
	t2 = seconds();
	if (tw_trace_writer_commit(w, &facts, &err))
		die("committing", &err);
	ret->push = t1 - t0;
	ret->write = t2 - t1;
	ret->commit = seconds() - t2;
	ret->cpu = cpu_seconds() - cpu;
	tw_trace_writer_free(w);
	tw_builder_free(b);
	tw_arena_free(a);
	(void)fclose(scratch);
	if (stat(path, &st) != 0 || tw_trace_file_open(path, &f, &err))
		die("opening", &err);
	ret->bytes = (uint64_t)st.st_size;
	ret->slices = tw_trace_file_info(f)->slices;
	tw_trace_file_close(f);
}

/* As many bytes as the trace file has, in pieces, with a sync. */
static double plain_write(const char *path, uint64_t bytes)
{
	enum { PIECE = 1 << 16 };
	static const uint8_t zeros[PIECE];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	double t = seconds();

	for (uint64_t left = bytes; left;) {
		ssize_t n = write(fd, zeros, left < PIECE ? left : PIECE);

		if (n <= 0)
			die(path, NULL);
		left -= (uint64_t)n;
	}
	if (fd < 0 || fsync(fd) != 0)
		die(path, NULL);
	t = seconds() - t;
	(void)close(fd);
	(void)unlink(path);
	return t;
}

static void insert_slices(struct tw_trace_file *f, sqlite3_stmt *s)
{
	uint32_t n;
	const struct tw_thread_info *t = tw_trace_file_threads(f, &n);
	struct tw_chunk c;
	struct tw_err err;

	tw_chunk_init(&c);
	for (uint32_t i = 0; i < n; i++) {
		const struct tw_chunk_row *rows;
		uint32_t n_rows;

		if (tw_trace_file_chunks(f, t[i].thread_id, &rows, &n_rows, &err))
			die("reading", &err);
		for (uint32_t k = 0; k < n_rows && rows[k].info.level == 0; k++) {
			if (tw_trace_file_chunk(f, &rows[k], &c, &err))
				die("reading", &err);
			for (size_t at = 0; at < c.n; at++) {
				(void)sqlite3_bind_int64(s, 1, t[i].thread_id);
				(void)sqlite3_bind_int64(s, 2, c.slices[at].start_ns);
				(void)sqlite3_bind_int64(s, 3, c.slices[at].dur_ns);
				(void)sqlite3_bind_int64(s, 4, c.slices[at].method);
				(void)sqlite3_bind_int64(s, 5, c.slices[at].depth);
				if (sqlite3_step(s) != SQLITE_DONE)
					die("SQLite", NULL);
				(void)sqlite3_reset(s);
			}
		}
	}
	tw_chunk_done(&c);
}

/* The trace file's calls as rows: one transaction, no index, no sync. */
static double plain_rows(const char *trace, const char *path, uint64_t *ret_bytes)
{
	static const char schema[] =
	        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
	        "CREATE TABLE slice(thread INTEGER, start INTEGER, dur INTEGER, method INTEGER,"
	        " depth INTEGER)";
	struct tw_trace_file *f = NULL;
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	struct tw_err err;
	struct stat st;
	double t;

	(void)unlink(path);
	if (tw_trace_file_open(trace, &f, &err))
		die("opening", &err);
	t = seconds();
	if (sqlite3_open(path, &db) || sqlite3_exec(db, schema, NULL, NULL, NULL) ||
	        sqlite3_prepare_v2(db, "INSERT INTO slice VALUES(?,?,?,?,?)", -1, &s, NULL))
		die("SQLite", NULL);
	insert_slices(f, s);
	(void)sqlite3_finalize(s);
	if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
		die("SQLite", NULL);
	(void)sqlite3_close(db);
	t = seconds() - t;
	*ret_bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	(void)unlink(path);
	tw_trace_file_close(f);
	return t;
}

static void print_memory(double pushed_bytes, double peak_bytes, double len, uint64_t slices)
{
	const double past_bytes = peak_bytes - len - (64 << 20);

	(void)printf("peak memory without the input %.1f MiB, %.1f MiB while records arrive",
	        (peak_bytes - len) / (1 << 20), (pushed_bytes - len) / (1 << 20));
	if (slices)
		(void)printf("; past 64 MiB %.1f B per record",
		        past_bytes > 0 ? past_bytes / (double)slices : 0);
	(void)printf("\n");
}

static void print_yardsticks(const char *trace, const struct steps *best, double best_s)
{
	char path[80];
	uint64_t bytes = 0;
	double write_s;
	double rows_s;

	(void)snprintf(path, sizeof path, "%s.yardstick", trace);
	write_s = plain_write(path, best->bytes);
	rows_s = plain_rows(trace, path, &bytes);
	(void)printf("against a raw write of the trace file's bytes with a sync %.2f x (%.3f s)\n",
	        best_s / write_s, write_s);
	if (best->slices)
		(void)printf("against rows of an SQLite table %.2f x (%.3f s, %.1f B per slice)\n",
		        best_s / rows_s, rows_s, (double)bytes / (double)best->slices);
}

int main(int argc, char **argv)
{
	long times = argc > 2 ? strtol(argv[2], NULL, 10) : 3;
	bool only = argc > 3 && strcmp(argv[3], "only") == 0;
	char path[64];
	struct steps best = {0};
	/* of the first decode: later ones add memory that malloc retains */
	double pushed_bytes = 0;
	double peak_bytes = 0;
	double zstd_s = 1e9;
	double best_s = 1e9;
	double cpu_s = 1e9;
	size_t len = 0;
	uint8_t *p;

	if (argc < 2)
		return 2;
	tw_worker_set_heap();
	p = slurp(argv[1], &len);
	(void)snprintf(path, sizeof path, "/tmp/bench_decode-%d.db", (int)getpid());
	for (long i = 0; i < times; i++) {
		struct steps s;
		double z;

		decode_once(p, len, path, &s);
		if (i == 0) {
			pushed_bytes = s.pushed_bytes;
			peak_bytes = most_memory();
		}
		z = only ? zstd_s : plain_zstd(p, len); /* after its memory was measured */
		if (z < zstd_s)
			zstd_s = z;
		if (s.cpu < cpu_s)
			cpu_s = s.cpu;
		if (s.push + s.write + s.commit < best_s) {
			best_s = s.push + s.write + s.commit;
			best = s;
		}
	}
	(void)printf("slices %llu  push %.3f s  write %.3f s  commit %.3f s\n",
	        (unsigned long long)best.slices, best.push, best.write, best.commit);
	if (best.slices)
		(void)printf("records/s %.2f M  CPU of all threads %.0f ns per record\n",
		        (double)best.slices / best_s / 1e6, cpu_s * 1e9 / (double)best.slices);
	else
		(void)printf("no calls; input %.1f MB/s  CPU of all threads %.1f ns per byte\n",
		        (double)len / best_s / 1e6, cpu_s * 1e9 / (double)len);
	if (!only) {
		if (zstd_s > 0) /* the input is compressed */
			(void)printf("against zstd -d %.2f x (%.3f s)\n", best_s / zstd_s, zstd_s);
		print_yardsticks(path, &best, best_s);
	}
	(void)printf("trace file %llu B", (unsigned long long)best.bytes);
	if (best.slices)
		(void)printf(", %.3f B per slice", (double)best.bytes / (double)best.slices);
	(void)printf("\n");
	print_memory(pushed_bytes, peak_bytes, (double)len, best.slices);
	(void)unlink(path);
	tw_mem_free(p);
	return 0;
}
