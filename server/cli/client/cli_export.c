/* `tracewell export`: converts an upload or a trace file to another tool's format, without a
 * server. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/str.h"
#include "server/cli/admin/cli_project.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/decode/local_trace.h"
#include "server/export/export.h"

enum { ARENA_BYTES = 1 << 20 };

enum { MAX_KINDS = 32, MAX_NODES = 200000 };

struct options { /* values of the flags */
	const char *to, *threads, *thread, *range, *out;
	struct tw_local_files files;
	unsigned metric, view; /* indexes into the lists below */
	uint64_t max_nodes;
	bool merged, sanitize;
	struct tw_export_query q;
};

static const char *const metrics[] = {"wall", "count", "cpu", NULL};
static const char *const views[] = {"top_down", "bottom_up", NULL};

/* "FROM..TO" in nanoseconds; either may be left out. */
static bool read_range(const char *range, struct tw_selection *s)
{
	struct tw_str text = tw_str_of(range);
	size_t dots = tw_str_find(text, TW_STR(".."));

	if (dots == text.len)
		return false;
	s->ranged = true;
	s->from_ns = 0;
	s->to_ns = INT64_C(1) << 61;
	if (dots && !tw_str_i64((struct tw_str){text.ptr, dots}, &s->from_ns))
		return false;
	text = tw_str_from(text, dots + 2);
	if (text.len && !tw_str_i64(text, &s->to_ns))
		return false;
	return s->from_ns < s->to_ns;
}

static bool is_range(const char *text)
{
	struct tw_selection s;

	return read_range(text, &s);
}

static enum tw_status open_file(void *arg, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	FILE *f = tmpfile();

	(void)arg, (void)bytes;
	*ret_fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
	if (f)
		(void)fclose(f);
	return *ret_fd >= 0 ? TW_OK
	                    : tw_fail_errno(err, TW_IO, "a temporary file could not be created");
}

static void read_query(struct options *w)
{
	w->q.kind = tw_export_kind(w->to);
	if (w->range)
		(void)read_range(w->range, &w->q.sel);
	w->q.metric = (enum tw_export_metric)w->metric;
	w->q.view = (enum tw_flame_view)w->view;
	w->q.max_nodes = (uint32_t)w->max_nodes;
	w->q.merged = w->merged;
	w->q.open_file = open_file;
}

static void list_kinds(const char *ret[MAX_KINDS + 1])
{
	const struct tw_export_kind *kind;

	for (size_t i = 0; i < MAX_KINDS && (kind = tw_export_kind_at(i)); i++)
		ret[i] = kind->name;
}

static enum tw_status pull(void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	return tw_export_read(arg, out, cap, ret_n, err);
}

static enum tw_status run(struct options *w, const char *path, struct tw_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const struct tw_export_facts facts = {.title = w->sanitize ? "" : name};
	struct tw_trace_file *f = NULL;
	struct tw_export *x = NULL;
	struct tw_local_names names;
	struct tw_arena *a;
	enum tw_status st;

	read_query(w);
	tw_local_names_init(&names);
	a = tw_arena_new(ARENA_BYTES);
	st = a ? tw_local_names_read(&names, &w->files, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_local_open(path, w->threads, &f, err);
	if (st == TW_OK)
		st = tw_selection_threads(f, w->thread, false, a, &w->q.sel, err);
	if (st == TW_OK && w->sanitize)
		tw_trace_file_sanitize(f);
	if (st == TW_OK)
		st = tw_export_open(f, &names.names, &w->q, &facts, &x, err);
	if (st == TW_OK)
		st = tw_cli_write_out(w->out, pull, x, err);
	tw_export_close(x);
	tw_trace_file_close(f);
	tw_local_names_done(&names);
	tw_arena_free(a);
	return st;
}

static void print_kinds(void)
{
	const struct tw_export_kind *kind;

	(void)fputs("kinds:\n", stderr);
	for (size_t i = 0; (kind = tw_export_kind_at(i)); i++)
		(void)fprintf(stderr, "  %-12s%s\n", kind->name, kind->summary);
}

static bool is_of_project(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--project", 9) == 0 &&
		        (argv[i][9] == '\0' || argv[i][9] == '='))
			return true;
	return false;
}

int tw_cli_export(int argc, char **argv)
{
	static struct options w;
	const char *kinds[MAX_KINDS + 1] = {NULL};
	const struct tw_flag flags[] = {
	        {.name = "to", .value = &w.to, .choices = kinds, .needed = true},
	        TW_CLI_LOCAL_FILES(w.files), {.name = "threads", .value = &w.threads},
	        {.name = "thread", .value = &w.thread},
	        {.name = "range",
	                .value = &w.range,
	                .fits = is_range,
	                .form = "FROM..TO in nanoseconds with FROM less than TO"},
	        {.name = "metric", .choices = metrics, .choice = &w.metric},
	        {.name = "view", .choices = views, .choice = &w.view},
	        {.name = "max-nodes", .number = &w.max_nodes, .most = MAX_NODES},
	        {.name = "merged", .on = &w.merged}, {.name = "sanitize", .on = &w.sanitize},
	        {.name = "output", .value = &w.out, .needed = true}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE"};
	struct tw_err err;

	tw_cli_long_output(argc, argv);
	if (is_of_project(argc, argv))
		return tw_cli_project_export(argc, argv);
	list_kinds(kinds);
	if (tw_cli_flags(&usage, argc, argv) < 0) {
		if (!tw_cli_helped())
			print_kinds();
		return TW_EXIT_USAGE;
	}
	if (run(&w, argv[1], &err) != TW_OK)
		return tw_cli_failed("export", &err);
	return TW_EXIT_OK;
}
