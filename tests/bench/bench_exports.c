/*
 * bench_exports.c - every export of a trace, and a Perfetto file joined to a large system trace.
 *
 *   bench_exports UPLOAD [SYSTEM_MIB [FORM]]
 *
 * For each form: slices per second of CPU time of all threads and of the calling thread (about the
 * speed of a request on idle cores), bytes per slice plain and after zstd -3, CPU time until the
 * first bytes, and growth of the process's memory.  Each runs in a separate process, so that none
 * uses memory of an earlier one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "decoder/limits.h"
#include "decoder/trace/builder.h"
#include "memory.h"
#include "print_form.h"
#include "server/decode/local_trace.h"
#include "server/export/export.h"
#include "server/export/perfetto/export_perfetto.h"
#include "server/export/perfetto/system/export_system_facts.h"
#include "tests/fixtures/system_fixture.h"

/* A large trace is exported once: its figures vary little. */
enum { PIECE_BYTES = 256 << 10, TIMES = 3, LARGE_SLICES = 5 << 20 };

static double seconds(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(enum tw_status st, const struct tw_err *err)
{
	if (st == TW_OK)
		return;
	(void)fprintf(stderr, "bench_exports: %s\n", err->msg);
	exit(1);
}

/* --- one form --- */

struct form {
	const char *name;
	const struct tw_export_kind *kind; /* NULL: a Perfetto file */
	struct tw_perfetto_options options;
	int system_fd;
	bool kept, cut;
};

struct stream {
	struct tw_export *other;
	struct tw_perfetto *perfetto;
};

static enum tw_status open_file(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	(void)arg, (void)bytes;
	*ret_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return *ret_fd < 0 ? tw_fail_errno(err, TW_IO, "/tmp") : TW_OK;
}

static struct stream open_form(struct tw_trace_file *f, const struct form *form)
{
	const struct tw_export_query q = {
	        .kind = form->kind, .sel = {.all_threads = true}, .open_file = open_file};
	const struct tw_export_facts facts = {.title = "bench", .trace_id = "bench"};
	struct tw_perfetto_source source = {.file = f,
	        .sel = {.all_threads = true},
	        .facts = {.trace_id = "bench"},
	        .system_fd = form->system_fd,
	        .system_as_sent = form->kept};
	const struct tw_trace_info *i = tw_trace_file_info(f);
	struct stream s = {NULL, NULL};
	struct tw_err err;

	if (form->cut) {
		source.sel.ranged = true;
		source.sel.from_ns = i->start_ns + (i->end_ns - i->start_ns) / 2;
		source.sel.to_ns = source.sel.from_ns + (i->end_ns - i->start_ns) / 50;
	}
	if (form->kind)
		check(tw_export_open(f, NULL, &q, &facts, &s.other, &err), &err);
	else
		check(tw_perfetto_open(&source, 1, &form->options, &s.perfetto, &err), &err);
	return s;
}

static size_t read_form(const struct stream *s, uint8_t *out)
{
	struct tw_err err;
	size_t n = 0;

	if (s->other)
		check(tw_export_read(s->other, out, PIECE_BYTES, &n, &err), &err);
	else
		check(tw_perfetto_read(s->perfetto, out, PIECE_BYTES, &n, &err), &err);
	return n;
}

struct figures {
	double first_s, all_s; /* CPU */
	double own_s;          /* of all_s: the calling thread */
	double grown_mib;
	uint64_t bytes, packed_bytes;
};

static void pull(struct tw_trace_file *f, const struct form *form, bool pack, struct figures *ret)
{
	uint8_t *piece = tw_mem_zalloc(PIECE_BYTES, 1);
	uint8_t *packed = tw_mem_zalloc(PIECE_BYTES, 2);
	ZSTD_CCtx *z = ZSTD_createCCtx();
	double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
	double own = seconds(CLOCK_THREAD_CPUTIME_ID);
	struct stream s = open_form(f, form);
	size_t n;

	(void)ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, 3);
	*ret = (struct figures){0};
	do {
		n = read_form(&s, piece);
		if (ret->bytes == 0)
			ret->first_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
		ret->bytes += n;
		if (pack) {
			ZSTD_inBuffer in = {piece, n, 0};
			ZSTD_outBuffer out = {packed, 2 * PIECE_BYTES, 0};

			(void)ZSTD_compressStream2(z, &out, &in, n ? ZSTD_e_continue : ZSTD_e_end);
			ret->packed_bytes += out.pos;
		}
	} while (n);
	ret->all_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
	ret->own_s = seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	tw_export_close(s.other);
	tw_perfetto_close(s.perfetto);
	(void)ZSTD_freeCCtx(z);
	tw_mem_free(piece);
	tw_mem_free(packed);
}

/* In a child: a fresh heap, as a request of the server nearly has. */
static void measure(const char *path, const struct form *form)
{
	struct tw_trace_file *f = NULL;
	struct figures x;
	struct figures best;
	double before;
	double slices;
	struct tw_err err;

	check(tw_trace_file_open(path, &f, &err), &err);
	slices = (double)tw_trace_file_info(f)->slices;
	bench_forget_peak();
	before = bench_memory("VmHWM:");
	pull(f, form, false, &best);
	best.grown_mib = (bench_memory("VmHWM:") - before) / (1 << 20);
	for (int i = 0; slices < LARGE_SLICES && i < TIMES; i++) {
		pull(f, form, false, &x);
		best.first_s = x.first_s < best.first_s ? x.first_s : best.first_s;
		best.all_s = x.all_s < best.all_s ? x.all_s : best.all_s;
		best.own_s = x.own_s < best.own_s ? x.own_s : best.own_s;
	}
	pull(f, form, true, &x);
	(void)printf("%-26s %7.2f %8.2f %9.2f %9.2f %9.1f %9.1f\n", form->name,
	        slices / best.all_s / 1e6, slices / best.own_s / 1e6, (double)x.bytes / slices,
	        (double)x.packed_bytes / slices, best.first_s * 1e3, best.grown_mib);
	tw_trace_file_close(f);
}

static const char *only = "";

static void run(const char *path, const struct form *form)
{
	int status = 0;
	pid_t child;

	if (!strstr(form->name, only))
		return;
	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		measure(path, form);
		(void)fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		exit(1);
}

/* --- the measured forms --- */

/* The output of btrace 2.0's script, to compare. */
static void show_print_form(const char *path)
{
	struct tw_trace_file *f = NULL;
	struct printed p;
	double slices;
	struct tw_err err;

	check(tw_trace_file_open(path, &f, &err), &err);
	slices = (double)tw_trace_file_info(f)->slices;
	print_form(f, &p);
	(void)printf("%-26s %7s %8s %9.2f %9.2f\n", "(kernel markers in text)", "", "",
	        (double)p.bytes / slices, (double)p.zstd_bytes / slices);
	tw_trace_file_close(f);
}

/* The upload as a trace file, with the facts stored of the system trace. */
static void decode(const char *upload, const char *path, int system_fd)
{
	struct tw_limits limits = tw_limits_default();
	struct tw_builder *b = tw_builder_new(&limits);
	struct tw_trace_facts facts = {.format = ""};
	struct tw_trace_writer *w = NULL;
	struct tw_system *s = NULL;
	struct tw_buf kept;
	struct tw_err err;

	tw_buf_init(&kept, TW_SYSTEM_FACTS_BYTES);
	check(tw_local_decode(upload, NULL, tw_builder_sink(b), b, &facts, &err), &err);
	check(tw_trace_writer_new(path, tw_query_summary, &w, &err), &err);
	check(tw_builder_write(b, tw_trace_writer_out(w), &err), &err);
	check(tw_system_scan(system_fd, &s, &err), &err);
	check(tw_system_pack(s, &kept, &err), &err);
	check(tw_trace_writer_system(w, (struct tw_str){(char *)kept.data, kept.len}, &err), &err);
	check(tw_trace_writer_commit(w, &facts, &err), &err);
	tw_trace_writer_free(w);
	tw_builder_free(b);
	tw_system_free(s);
	tw_buf_done(&kept);
}

/* A simulated system trace around the recording, of at least that many MiB. */
static int make_system(const char *upload, unsigned long mib)
{
	char path[] = "/tmp/tracewell-bench-system-XXXXXX";
	int fd = mkstemp(path);
	struct tw_trace_file *f = NULL;
	struct system_shape shape = {.threads = 4, .sdk = true};
	const struct tw_trace_info *i;
	struct tw_buf b;
	struct tw_err err;

	if (fd < 0)
		exit(1);
	(void)unlink(path);
	check(tw_local_open(upload, NULL, &f, &err), &err);
	i = tw_trace_file_info(f);
	shape.pid = i->pid;
	shape.mono_ns = (i->mono_base_ns > 0 ? i->mono_base_ns : 0) + i->start_ns;
	shape.boot_ns = (i->boot_base_ns > 0 ? i->boot_base_ns : shape.mono_ns) + i->start_ns;
	shape.length_ns = i->end_ns - i->start_ns + 1000;
	shape.windows = (unsigned)(mib * 490);
	tw_trace_file_close(f);
	system_make(&b, &shape);
	for (size_t at = 0; at < b.len;) {
		ssize_t n = write(fd, b.data + at, b.len - at);

		if (n <= 0)
			exit(1);
		at += (size_t)n;
	}
	(void)printf("system trace %.1f MiB\n", (double)b.len / (1 << 20));
	tw_buf_done(&b);
	return fd;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/tracewell-bench-XXXXXX";
	char path[sizeof folder + 16];
	const struct tw_perfetto_options tar = {.form = TW_PERFETTO_TAR};
	const struct tw_perfetto_options gzip = {.compression = TW_PERFETTO_GZIP};
	const struct tw_perfetto_options zstd = {.compression = TW_PERFETTO_ZSTD};
	const struct tw_perfetto_options packets = {.compression = TW_PERFETTO_PACKETS};
	int fd;

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	(void)snprintf(path, sizeof path, "%s/trace.db", folder);
	only = argc > 3 ? argv[3] : "";
	fd = make_system(argv[1], argc > 2 ? strtoul(argv[2], NULL, 10) : 16);
	decode(argv[1], path, fd);
	(void)printf("%-26s %7s %8s %9s %9s %9s %9s\n", "form", "M/s all", "M/s own", "B/slice",
	        "zstd -3", "first ms", "MiB more");
	run(path, &(struct form){.name = "perfetto", .system_fd = -1});
	run(path, &(struct form){.name = "perfetto, gzip", .options = gzip, .system_fd = -1});
	run(path, &(struct form){.name = "perfetto, zstd", .options = zstd, .system_fd = -1});
	run(path, &(struct form){
	                  .name = "perfetto, zlib packets", .options = packets, .system_fd = -1});
	run(path, &(struct form){.name = "joined", .system_fd = fd, .kept = true});
	run(path,
	        &(struct form){
	                .name = "joined, cut to 2 %", .system_fd = fd, .kept = true, .cut = true});
	run(path, &(struct form){.name = "joined, nothing kept", .system_fd = fd});
	run(path, &(struct form){
	                  .name = "joined, tar", .options = tar, .system_fd = fd, .kept = true});
	for (size_t i = 0; tw_export_kind_at(i); i++)
		run(path, &(struct form){.name = tw_export_kind_at(i)->name,
		                  .kind = tw_export_kind_at(i),
		                  .system_fd = -1});
	if (strstr("print", only))
		show_print_form(path);
	(void)close(fd);
	(void)unlink(path);
	(void)rmdir(folder);
	return 0;
}
