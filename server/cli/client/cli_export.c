/* `tracewell export`: an upload or a trace file in a format that other tools read, without a
 * server. */
#include <stdio.h>
#include <string.h>

#include "decoder/base/str.h"
#include "server/cli/admin/cli_project.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/decode/local_trace.h"
#include "server/export/export.h"

enum { ARENA_BYTES = 1 << 20 };

static const char synopsis[] = "export FILE --to KIND [--mapping M] [--retrace R] [--threads LIST] "
                               "[--thread main|TID|NAME,...] [--range FROM..TO] [--metric "
                               "wall|count|cpu] [--view top_down|bottom_up] [--max-nodes N] "
                               "[--merged] -o OUT";

struct wanted { /* what the flags said */
	const char *to, *mapping, *retrace, *threads, *thread, *range, *metric, *view, *max_nodes;
	const char *out;
	bool merged;
	struct tw_export_query q;
};

static enum tw_status refuse(struct tw_err *err, const char *what)
{
	return tw_fail(err, TW_BAD_REQUEST, "%s", what);
}

/* "FROM..TO" in nanoseconds; either may be left out. */
static bool read_range(struct wanted *w)
{
	struct tw_selection *s = &w->q.sel;
	struct tw_str text = tw_str_of(w->range ? w->range : "");
	size_t dots = tw_str_find(text, TW_STR(".."));

	if (!w->range)
		return true;
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

/* The index of a word, absent is the first; -1 unknown. */
static int word_of(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!text || strcmp(words[i], text) == 0)
			return i;
	return -1;
}

static enum tw_status read_query(struct wanted *w, struct tw_err *err)
{
	static const char *const metrics[] = {"wall", "count", "cpu", NULL};
	static const char *const views[] = {"top_down", "bottom_up", NULL};
	int metric = word_of(w->metric, metrics);
	int view = word_of(w->view, views);
	uint64_t nodes = 0;

	w->q.kind = tw_export_kind(w->to);
	if (!w->q.kind)
		return refuse(err, "--to knows no such kind");
	if (metric < 0)
		return refuse(err, "--metric is wall, count or cpu");
	if (view < 0)
		return refuse(err, "--view is top_down or bottom_up");
	if (w->max_nodes && !tw_str_u64(tw_str_of(w->max_nodes), 200000, &nodes))
		return refuse(err, "--max-nodes is a number up to 200000");
	if (!read_range(w))
		return refuse(err, "--range is FROM..TO in nanoseconds, FROM less than TO");
	w->q.metric = (enum tw_export_metric)metric;
	w->q.view = (enum tw_flame_view)view;
	w->q.max_nodes = (uint32_t)nodes;
	w->q.merged = w->merged;
	return TW_OK;
}

static enum tw_status pull(void *arg, uint8_t *out, size_t cap, size_t *ret_n, struct tw_err *err)
{
	return tw_export_read(arg, out, cap, ret_n, err);
}

static enum tw_status run(struct wanted *w, const char *path, struct tw_err *err)
{
	const char *slash = strrchr(path, '/');
	const struct tw_export_facts facts = {.title = slash ? slash + 1 : path};
	struct tw_trace_file *f = NULL;
	struct tw_export *x = NULL;
	struct tw_local_names names;
	struct tw_arena *a;
	enum tw_status st = read_query(w, err);

	if (st != TW_OK)
		return st;
	tw_local_names_init(&names);
	a = tw_arena_new(ARENA_BYTES);
	st = a ? tw_local_names_read(&names, w->mapping, w->retrace, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_local_open(path, w->threads, &f, err);
	if (st == TW_OK)
		st = tw_selection_threads(f, w->thread, false, a, &w->q.sel, err);
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

static void usage(FILE *to)
{
	const struct tw_export_kind *kind;

	(void)fprintf(to,
	        "usage: tracewell %s\n       tracewell export --project NAME --data DIR -o "
	        "FILE.tar[.zst]\nkinds:\n",
	        synopsis);
	for (size_t i = 0; (kind = tw_export_kind_at(i)); i++)
		(void)fprintf(to, "  %-12s%s\n", kind->name, kind->summary);
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
	static struct wanted w;
	const struct tw_flag flags[] = {{.name = "to", .value = &w.to},
	        {.name = "mapping", .value = &w.mapping}, {.name = "retrace", .value = &w.retrace},
	        {.name = "threads", .value = &w.threads}, {.name = "thread", .value = &w.thread},
	        {.name = "range", .value = &w.range}, {.name = "metric", .value = &w.metric},
	        {.name = "view", .value = &w.view}, {.name = "max-nodes", .value = &w.max_nodes},
	        {.name = "merged", .on = &w.merged}, {.name = "output", .value = &w.out}};
	struct tw_err err;
	int n;

	tw_cli_long_output(argc, argv);
	if (is_of_project(argc, argv))
		return tw_cli_project_export(argc, argv);
	n = tw_cli_flags(synopsis, flags, sizeof flags / sizeof *flags, argc, argv);
	if (n != 1 || !w.to || !w.out) {
		if (n >= 0)
			usage(stderr);
		return TW_EXIT_USAGE;
	}
	if (run(&w, argv[1], &err) != TW_OK)
		return tw_cli_failed("export", &err);
	return TW_EXIT_OK;
}
