/* `tracewell perfetto`: an upload or a trace file to a Perfetto file, without a server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "export_perfetto.h"
#include "local_trace.h"

static const char synopsis[] = "perfetto FILE [--mapping M] [--retrace R] [--threads T] -o OUT";

enum { PIECE_BYTES = 256 << 10 };

static enum tw_status write_all(int fd, const uint8_t *p, size_t n, struct tw_err *err)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return tw_fail(err, errno == ENOSPC ? TW_FULL : TW_IO, TW_NO_OFFSET,
			        "the output cannot be written (errno %d)", errno);
		p += k;
		n -= (size_t)k;
	}
	return TW_OK;
}

static enum tw_status copy_out(struct tw_perfetto *x, int fd, struct tw_err *err)
{
	uint8_t *piece = tw_mem_alloc(PIECE_BYTES, 1);
	enum tw_status st =
	        piece ? TW_OK : tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory to export");
	size_t n = 1;

	while (st == TW_OK && n > 0) {
		st = tw_perfetto_read(x, piece, PIECE_BYTES, &n, err);
		if (st == TW_OK)
			st = write_all(fd, piece, n, err);
	}
	tw_mem_free(piece);
	return st;
}

static enum tw_status export(struct tw_trace_file *f, const struct tw_names *names, const char *out,
        struct tw_err *err) {
	const struct tw_selection all = {.all_threads = true};
	const struct tw_perfetto_facts facts = {.trace_id = out};
	bool to_stdout = strcmp(out, "-") == 0;
	struct tw_perfetto *x = NULL;
	int fd = to_stdout ? dup(1) : open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	enum tw_status st;

	if (fd < 0) return tw_fail(
	        err, TW_IO, TW_NO_OFFSET, "%.120s cannot be written (errno %d)", out, errno);
	st = tw_perfetto_open(f, names, &all, &facts, &x, err);
	if (st == TW_OK) st = copy_out(x, fd, err);
	tw_perfetto_close(x);
	if (close(fd) != 0 && st == TW_OK)
	        st = tw_fail(err, TW_IO, TW_NO_OFFSET, "%.120s cannot be written", out);
	if (st != TW_OK && !to_stdout)(void) unlink(out);
	return st;
}

/* "-o" as people type it becomes "--o". */
static void long_flags(int argc, char **argv)
{
	static char output[] = "--output";

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-o") == 0)
			argv[i] = output;
}

int tw_cli_perfetto(int argc, char **argv)
{
	const char *mapping = NULL;
	const char *retrace = NULL;
	const char *threads = NULL;
	const char *out = NULL;
	const struct tw_flag flags[] = {{.name = "mapping", .value = &mapping},
	        {.name = "retrace", .value = &retrace}, {.name = "threads", .value = &threads},
	        {.name = "output", .value = &out}};
	struct tw_trace_file *f = NULL;
	struct tw_local_names names;
	struct tw_err err;
	enum tw_status st;
	int n;

	long_flags(argc, argv);
	n = tw_cli_flags(synopsis, flags, 4, argc, argv);
	if (n != 1 || !out) {
		if (n >= 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	tw_local_names_init(&names);
	st = tw_local_names_read(&names, mapping, retrace, &err);
	if (st == TW_OK)
		st = tw_local_open(argv[1], threads, &f, &err);
	if (st == TW_OK)
		st = export(f, &names.names, out, &err);
	tw_trace_file_close(f);
	tw_local_names_done(&names);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("perfetto", &err);
}
