/* `tracewell export --project` and `tracewell import`: a project as one file, and back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "cli_data.h"
#include "cli_out.h"
#include "cli_project.h"
#include "project_archive.h"

static const char export_synopsis[] = "export --project NAME --data DIR -o FILE.tar[.zst]";
enum { MIN_FREE_PERCENT = 5 }; /* as a server keeps unless told otherwise */

static const char import_synopsis[] = "import FILE --data DIR [--project NAME]";

static enum tw_status export_project(
        const char *data, const char *project, const char *out, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	struct tw_blobs *b = NULL;
	struct tw_project_sums sums = {0};
	uint64_t bytes = 0;
	enum tw_status st;

	(void)umask(077);
	st = tw_cli_data_open(data, &c, &b, err);
	if (st == TW_OK)
		st = tw_project_export(c, b, project, out, &sums, &bytes, err);
	tw_catalogue_close(c);
	tw_blobs_close(b);
	if (st == TW_OK)
		(void)printf("%" PRIu64 " traces and %" PRIu64 " builds exported (%.1f MB)\n",
		        sums.traces, sums.builds, (double)bytes / 1e6);
	return st;
}

int tw_cli_project_export(int argc, char **argv)
{
	const char *data = "./data", *project = NULL, *out = NULL;
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "project", .value = &project}, {.name = "output", .value = &out}};
	struct tw_err err;
	int n = tw_cli_flags(export_synopsis, flags, 3, argc, argv);

	if (n != 0 || !project || !out) {
		if (n >= 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", export_synopsis);
		return TW_EXIT_USAGE;
	}
	if (export_project(data, project, out, &err) != TW_OK)
		return tw_cli_failed("export", &err);
	return TW_EXIT_OK;
}

static enum tw_status import_file(const char *data, const char *project, const char *path,
        struct tw_project_sums *ret, struct tw_err *err)
{
	struct tw_catalogue *c = NULL;
	struct tw_blobs *b = NULL;
	enum tw_status st = tw_cli_data_make(data, &c, err);

	if (st == TW_OK)
		st = tw_blobs_open(data, MIN_FREE_PERCENT, &b, err);
	if (st == TW_OK)
		st = tw_project_import(c, b, path, project, ret, err);
	tw_catalogue_close(c);
	tw_blobs_close(b);
	return st;
}

int tw_cli_import(int argc, char **argv)
{
	const char *data = "./data", *project = NULL;
	const struct tw_flag flags[] = {
	        {.name = "data", .value = &data}, {.name = "project", .value = &project}};
	struct tw_project_sums sums = {0};
	struct tw_err err;
	int n = tw_cli_flags(import_synopsis, flags, 2, argc, argv);

	if (n != 1) {
		if (n >= 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", import_synopsis);
		return TW_EXIT_USAGE;
	}
	if (import_file(data, project, argv[1], &sums, &err) != TW_OK)
		return tw_cli_failed("import", &err);
	(void)printf("%" PRIu64 " traces and %" PRIu64 " builds imported, %" PRIu64
	             " traces were there already, %" PRIu64
	             " have new ids because another project has theirs\n",
	        sums.traces, sums.builds, sums.there, sums.renamed);
	return TW_EXIT_OK;
}
