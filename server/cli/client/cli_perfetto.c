/* `tracewell perfetto`: converts uploads or trace files to a Perfetto file, without a server. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/decode/local_trace.h"
#include "server/export/perfetto/export_perfetto.h"

enum { ARENA_BYTES = 16 << 20 };

#define MAX_TIME_NS ((uint64_t)1 << 61)

struct task {
	struct tw_trace_file *files[TW_PERFETTO_MAX_SOURCES];
	struct tw_perfetto_source sources[TW_PERFETTO_MAX_SOURCES];
	size_t n;
	struct tw_perfetto_options options;
	int system_fd;
	struct tw_arena *arena; /* of the selections */
};

static enum tw_status read_some(
        void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	return tw_perfetto_read(arg, out, cap, ret_n, err);
}

static enum tw_status write_file(const struct task *t, const char *out, struct tw_err *err)
{
	struct tw_perfetto *x = NULL;
	enum tw_status st = tw_perfetto_open(t->sources, t->n, &t->options, &x, err);

	if (st == TW_OK)
		st = tw_cli_write_out(out, read_some, x, err);
	tw_perfetto_close(x);
	return st;
}

/* --- flags --- */

struct flags {
	const char *threads, *system;
	struct tw_local_files files;
	unsigned form, compression; /* indexes into the lists below */
	const char *thread, *align, *out;
	uint64_t from_ns, to_ns;
	bool sanitize;
};

static const char *const forms[] = {"perfetto", "tar", NULL};
static const char *const compressions[] = {"none", "gzip", "zstd", "packets", NULL};

static bool is_slice(const char *align)
{
	return strncmp(align, "slice:", 6) == 0 && align[6];
}

static bool is_align(const char *text)
{
	return strcmp(text, "clock") == 0 || strcmp(text, "start") == 0 || is_slice(text);
}

static struct tw_perfetto_options options_of(const struct flags *f)
{
	struct tw_perfetto_options o = {.form = (enum tw_perfetto_form)f->form,
	        .compression = (enum tw_perfetto_compression)f->compression};

	if (f->align && is_slice(f->align)) {
		o.align = TW_PERFETTO_BY_SLICE;
		o.slice = f->align + 6;
	} else if (f->align) {
		o.align = strcmp(f->align, "clock") == 0 ? TW_PERFETTO_BY_CLOCK
		                                         : TW_PERFETTO_BY_START;
	}
	return o;
}

static enum tw_status open_system(const struct flags *f, struct task *t, struct tw_err *err)
{
	t->system_fd = f->system ? open(f->system, O_RDONLY | O_CLOEXEC) : -1;
	if (f->system && t->system_fd < 0)
		return tw_fail_errno(err, TW_IO, "%.120s cannot be opened", f->system);
	return TW_OK;
}

/* Selects the threads that this trace has; others may be in another file. */
static enum tw_status select_from(
        const struct flags *f, struct task *t, size_t i, struct tw_err *err)
{
	struct tw_selection *sel = &t->sources[i].sel;

	sel->ranged = f->from_ns > 0 || f->to_ns < MAX_TIME_NS;
	sel->from_ns = (int64_t)f->from_ns;
	sel->to_ns = (int64_t)f->to_ns;
	return tw_selection_threads(t->files[i], f->thread, true, t->arena, sel, err);
}

/* Refuses threads that none of the files has. */
static enum tw_status check_threads(const struct flags *f, const struct task *t, struct tw_err *err)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->sources[i].sel.all_threads || t->sources[i].sel.n_tids)
			return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "no thread %.60s: use main, a tid or a name; `tracewell sql FILE 'SELECT "
	        "tid, name FROM thread'` "
	        "lists them",
	        f->thread);
}

static enum tw_status open_files(const struct flags *f, char **files, size_t n,
        const struct tw_names *names, struct task *t, struct tw_err *err)
{
	enum tw_status st = t->arena ? open_system(f, t, err) : tw_oom(err);

	t->options = options_of(f);
	if (st == TW_OK && n > TW_PERFETTO_MAX_SOURCES)
		st = tw_fail(err, TW_BAD_REQUEST, "at most %d files go into one",
		        TW_PERFETTO_MAX_SOURCES);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		struct tw_perfetto_source *s = &t->sources[i];

		st = tw_local_open(files[i], f->threads, &t->files[i], err);
		if (st == TW_OK)
			st = tw_trace_file_inline(t->files[i], names, err);
		if (st == TW_OK)
			st = select_from(f, t, i, err);
		if (st == TW_OK && f->sanitize)
			tw_trace_file_sanitize(t->files[i]);
		s->file = t->files[i];
		s->names = names;
		s->facts.trace_id = files[i];
		s->system_fd = i == 0 ? t->system_fd : -1;
		t->n = i + 1;
	}
	return st == TW_OK ? check_threads(f, t, err) : st;
}

int tw_cli_perfetto(int argc, char **argv)
{
	struct flags f = {.to_ns = MAX_TIME_NS};
	const struct tw_flag flags[] = {TW_CLI_LOCAL_FILES(f.files),
	        {.name = "threads", .value = &f.threads}, {.name = "system", .value = &f.system},
	        {.name = "format", .choices = forms, .choice = &f.form},
	        {.name = "compress", .choices = compressions, .choice = &f.compression},
	        {.name = "from", .number = &f.from_ns, .most = MAX_TIME_NS},
	        {.name = "to", .number = &f.to_ns, .most = MAX_TIME_NS},
	        {.name = "thread", .value = &f.thread},
	        {.name = "align",
	                .value = &f.align,
	                .fits = is_align,
	                .form = "clock, start or slice:NAME"},
	        {.name = "sanitize", .on = &f.sanitize},
	        {.name = "output", .value = &f.out, .needed = true}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE..."};
	struct task t = {.system_fd = -1};
	struct tw_local_names names;
	struct tw_err err;
	enum tw_status st;
	int n;

	tw_cli_long_output(argc, argv);
	n = tw_cli_flags(&usage, argc, argv);
	if (n < 0)
		return TW_EXIT_USAGE;
	if (f.sanitize && f.system)
		return tw_cli_misused(
		        argv[0], "--sanitize omits the system trace: use it without --system");
	if (f.from_ns >= f.to_ns)
		return tw_cli_misused(argv[0], "--from must be less than --to");
	t.arena = tw_arena_new(ARENA_BYTES);
	tw_local_names_init(&names);
	st = tw_local_names_read(&names, &f.files, &err);
	if (st == TW_OK)
		st = open_files(&f, argv + 1, (size_t)n, &names.names, &t, &err);
	if (st == TW_OK)
		st = write_file(&t, f.out, &err);
	for (size_t i = 0; i < t.n; i++)
		tw_trace_file_close(t.files[i]);
	if (t.system_fd >= 0)
		(void)close(t.system_fd);
	tw_local_names_done(&names);
	tw_arena_free(t.arena);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("perfetto", &err);
}
