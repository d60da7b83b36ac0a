/* `tracewell perfetto`: uploads or trace files to a Perfetto file, without a server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/client/cli_select.h"
#include "server/decode/local_trace.h"
#include "server/export/perfetto/export_perfetto.h"

enum { ARENA_BYTES = 16 << 20 };

static const char synopsis[] =
        "perfetto FILE... [--system S] [--mapping M] [--retrace R] [--threads T] [--from NS] "
        "[--to NS] [--thread main|TID|NAME,...] [--format perfetto|tar] [--compress "
        "gzip|zstd|packets] "
        "[--align clock|start|slice:NAME] -o OUT";

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
	const char *mapping, *retrace, *threads, *system, *form, *squeeze;
	const char *from, *to, *thread, *align, *out;
};

static enum tw_status read_word(const char *text, const char *name, const char *const *words,
        unsigned *ret, struct tw_err *err)
{
	*ret = 0;
	for (unsigned i = 0; text && words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return TW_OK;
		}
	if (text)
		return tw_fail(err, TW_BAD_REQUEST, "--%s does not know %.60s", name, text);
	return TW_OK;
}

static enum tw_status read_options(
        const struct flags *f, struct tw_perfetto_options *ret, struct tw_err *err)
{
	static const char *const forms[] = {"perfetto", "tar", NULL};
	static const char *const squeezes[] = {"none", "gzip", "zstd", "packets", NULL};
	static const char *const aligns[] = {"", "clock", "start", NULL};
	bool by_slice = f->align && strncmp(f->align, "slice:", 6) == 0;
	unsigned form;
	unsigned squeeze;
	unsigned align = TW_PERFETTO_BY_SLICE;
	enum tw_status st = read_word(f->form, "format", forms, &form, err);

	if (st == TW_OK)
		st = read_word(f->squeeze, "compress", squeezes, &squeeze, err);
	if (st == TW_OK && !by_slice)
		st = read_word(f->align, "align", aligns, &align, err);
	if (st == TW_OK)
		*ret = (struct tw_perfetto_options){(enum tw_perfetto_form)form,
		        (enum tw_perfetto_squeeze)squeeze, (enum tw_perfetto_align)align,
		        by_slice ? f->align + 6 : NULL};
	return st;
}

static enum tw_status open_system(const struct flags *f, struct task *t, struct tw_err *err)
{
	t->system_fd = f->system ? open(f->system, O_RDONLY | O_CLOEXEC) : -1;
	if (f->system && t->system_fd < 0)
		return tw_fail_errno(err, TW_IO, "%.120s cannot be opened", f->system);
	return TW_OK;
}

/* Which of one trace: threads that it does not have are left out, as another may have them. */
static enum tw_status select_from(
        const struct flags *f, struct task *t, size_t i, struct tw_err *err)
{
	struct tw_selection *sel = &t->sources[i].sel;
	enum tw_status st = tw_cli_range(f->from, f->to, sel, err);

	if (st == TW_OK)
		st = tw_selection_threads(t->files[i], f->thread, true, t->arena, sel, err);
	return st;
}

/* Threads that are in none of the files were a mistake. */
static enum tw_status check_threads(const struct flags *f, const struct task *t, struct tw_err *err)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->sources[i].sel.all_threads || t->sources[i].sel.n_tids)
			return TW_OK;
	return tw_fail(err, TW_NOT_FOUND,
	        "no thread %.60s is there: take main, a tid or a name; `tracewell sql FILE 'SELECT "
	        "tid, name FROM thread'` "
	        "lists them",
	        f->thread);
}

static enum tw_status open_files(const struct flags *f, char **files, size_t n,
        const struct tw_names *names, struct task *t, struct tw_err *err)
{
	enum tw_status st = t->arena ? read_options(f, &t->options, err) : tw_oom(err);

	if (st == TW_OK)
		st = open_system(f, t, err);
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
	struct flags f = {0};
	const struct tw_flag flags[] = {{.name = "mapping", .value = &f.mapping},
	        {.name = "retrace", .value = &f.retrace}, {.name = "threads", .value = &f.threads},
	        {.name = "system", .value = &f.system}, {.name = "format", .value = &f.form},
	        {.name = "compress", .value = &f.squeeze}, {.name = "from", .value = &f.from},
	        {.name = "to", .value = &f.to}, {.name = "thread", .value = &f.thread},
	        {.name = "align", .value = &f.align}, {.name = "output", .value = &f.out}};
	struct task t = {.system_fd = -1};
	struct tw_local_names names;
	struct tw_err err;
	enum tw_status st;
	int n;

	tw_cli_long_output(argc, argv);
	n = tw_cli_flags(synopsis, flags, sizeof flags / sizeof *flags, argc, argv);
	if (n < 1 || !f.out) {
		if (n >= 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	t.arena = tw_arena_new(ARENA_BYTES);
	tw_local_names_init(&names);
	st = tw_local_names_read(&names, f.mapping, f.retrace, &err);
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
