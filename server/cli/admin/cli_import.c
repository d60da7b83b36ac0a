/* `tracewell export --project` and `tracewell import`: a project as one file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/catalogue/catalogue.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/admin/cli_project.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/ops/project_archive.h"

enum { MIN_FREE_PERCENT = 5 }; /* the default of a server */

/* `to_stdout`: stdout has the archive, so the message goes to stderr. */
static enum tw_status print_exported(const struct tw_project_sums *s, uint64_t bytes, bool json,
        bool to_stdout, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	if (!json || to_stdout) {
		(void)fprintf(to_stdout ? stderr : stdout,
		        "%" PRIu64 " traces and %" PRIu64 " builds exported (%.1f MB)\n", s->traces,
		        s->builds, (double)bytes / 1e6);
		return TW_OK;
	}
	j = tw_cli_line(&line);
	TW_JSON_MEMBERS(j, s, traces, builds);
	tw_json_key_int(j, "bytes", (int64_t)bytes);
	return tw_cli_line_end(&line, err);
}

static void step(void *arg, uint64_t files, uint64_t bytes)
{
	tw_progress_at(arg, files, bytes);
}

static enum tw_status export_project(
        const char *data, const char *project, const char *out, bool json, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	struct tw_blobs *b = NULL;
	struct tw_progress bar = tw_progress_of("export: files");
	const struct tw_project_watch watch = {step, &bar};
	struct tw_project_sums sums = {0};
	uint64_t bytes = 0;
	enum tw_status st;

	(void)umask(077);
	st = tw_cli_data_open(data, &c, &b, err);
	if (st == TW_OK)
		st = tw_project_export(c, b, project, out, &watch, &sums, &bytes, err);
	tw_progress_clear(&bar);
	tw_catalogue_close(c);
	tw_blobs_close(b);
	return st == TW_OK ? print_exported(&sums, bytes, json, strcmp(out, "-") == 0, err) : st;
}

int tw_cli_project_export(int argc, char **argv)
{
	const char *data = "./data", *project = NULL, *out = NULL;
	bool json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "project", .value = &project, .needed = true},
	        {.name = "output", .value = &out, .needed = true}, {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};
	struct tw_err err;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	if (strcmp(out, "-") == 0 && isatty(STDOUT_FILENO))
		return tw_cli_misused(argv[0],
		        "the archive is not for a terminal: send it to a file or a program");
	if (export_project(data, project, out, json, &err) != TW_OK)
		return tw_cli_failed("export", &err);
	return TW_EXIT_OK;
}

static enum tw_status import_file(const char *data, const char *project, const char *path,
        struct tw_project_sums *ret, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	struct tw_blobs *b = NULL;
	struct tw_progress bar = tw_progress_of("import: files");
	const struct tw_project_watch watch = {step, &bar};
	enum tw_status st = tw_cli_data_make(data, &c, err);

	if (st == TW_OK)
		st = tw_cli_data_files(data, MIN_FREE_PERCENT, &b, err);
	if (st == TW_OK)
		st = tw_project_import(c, b, path, project, &watch, ret, err);
	tw_progress_clear(&bar);
	tw_catalogue_close(c);
	tw_blobs_close(b);
	return st;
}

static enum tw_status print_imported(const struct tw_project_sums *s, bool json, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	if (!json) {
		(void)printf("%" PRIu64 " traces and %" PRIu64 " builds imported, %" PRIu64
		             " traces existed already, %" PRIu64
		             " have new ids because another project has theirs\n",
		        s->traces, s->builds, s->existing, s->renamed);
		return TW_OK;
	}
	j = tw_cli_line(&line);
	TW_JSON_MEMBERS(j, s, traces, builds, existing, renamed);
	return tw_cli_line_end(&line, err);
}

int tw_cli_import(int argc, char **argv)
{
	const char *data = "./data", *project = NULL;
	bool json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "project", .value = &project}, {.name = "json", .on = &json}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, "FILE"};
	struct tw_project_sums sums = {0};
	struct tw_err err;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	if (import_file(data, project, argv[1], &sums, &err) != TW_OK)
		return tw_cli_failed("import", &err);
	if (print_imported(&sums, json, &err) != TW_OK)
		return tw_cli_failed("import", &err);
	return TW_EXIT_OK;
}
