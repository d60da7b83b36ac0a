/* `tracewell check`: verifies a data folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"
#include "server/cli/cli_term.h"
#include "server/ops/check.h"
#include "server/storage/lost.h"

enum { LOST_DAYS = 64 };

static void print_text(void *arg, const struct tw_finding *f)
{
	tw_progress_clear(arg);
	(void)printf("%s%s%s: %s\n", tw_term_paint(stdout, f->repaired ? TW_YELLOW : TW_RED),
	        f->repaired ? "repaired" : "wrong", tw_term_paint(stdout, TW_PLAIN), f->text);
}

static void print_json(void *arg, const struct tw_finding *f)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	tw_progress_clear(arg);
	tw_json_key_text(j, "project", f->project_id);
	tw_json_key_text(j, "id", f->id);
	tw_json_key_text(j, "problem", f->what);
	tw_json_key_bool(j, "repaired", f->repaired);
	tw_json_key_text(j, "message", f->text);
	if (tw_cli_line_end(&line, NULL) != TW_OK)
		(void)fputs("tracewell check: the output cannot be written\n", stderr);
}

static void step(void *arg, const struct tw_check_sums *s)
{
	tw_progress_at(arg, s->uploads + s->mappings + s->decoded, s->bytes);
}

static void print_sums(const struct tw_check_sums *s)
{
	(void)fprintf(stderr,
	        "checked %" PRIu64 " uploads, %" PRIu64 " mappings and %" PRIu64
	        " decoded files, read %.1f MB: ",
	        s->uploads, s->mappings, s->decoded, (double)s->bytes / 1e6);
	if (s->wrong)
		(void)fprintf(
		        stderr, "%" PRIu64 " wrong, %" PRIu64 " repaired\n", s->wrong, s->repaired);
	else
		(void)fprintf(stderr, "no problems found\n");
}

/* --- lost/ --- */

struct lost_day {
	char day[sizeof((struct tw_lost_file *)0)->day];
	uint64_t files, bytes;
};

struct lost {
	bool json;
	void *bar;
	struct lost_day days[LOST_DAYS]; /* further days are counted with the last one */
	size_t n;
};

static void print_lost(const struct lost *l, const struct tw_lost_file *f)
{
	char text[320];
	const struct tw_finding finding = {"", f->key, "lost", text, false};

	(void)snprintf(text, sizeof text,
	        "%.120s, %" PRIu64
	        " bytes, was moved to lost/ on %s: it has no row in the catalogue",
	        f->key, f->bytes, f->day);
	print_json(l->bar, &finding);
}

static enum tw_status add_lost(void *arg, const struct tw_lost_file *f, struct tw_err *err)
{
	struct lost *l = arg;
	size_t i = 0;

	(void)err;
	if (l->json)
		print_lost(l, f);
	while (i < l->n && strcmp(l->days[i].day, f->day) != 0)
		i++;
	if (i == l->n && l->n == LOST_DAYS)
		i--;
	if (i == l->n)
		(void)snprintf(l->days[l->n++].day, sizeof l->days->day, "%s", f->day);
	l->days[i].files++;
	l->days[i].bytes += f->bytes;
	return TW_OK;
}

static enum tw_status list_lost(
        const char *data, bool json, struct tw_progress *bar, struct tw_err *err)
{
	struct lost l = {.json = json, .bar = bar};
	enum tw_status st = tw_lost_each(data, add_lost, &l, err);

	tw_progress_clear(bar);
	for (size_t i = 0; i < l.n && !json; i++)
		(void)printf("lost: %" PRIu64 " files, %.1f MB, in %s/lost/%s: no rows in the "
		             "catalogue\n",
		        l.days[i].files, (double)l.days[i].bytes / 1e6, data, l.days[i].day);
	return st;
}

/* --- check --- */

static int check_data(const char *data, bool quick, bool repair, bool json)
{
	struct tw_progress bar = tw_progress_of("check: files");
	struct tw_check check = {.quick = quick,
	        .repair = repair,
	        .found = json ? print_json : print_text,
	        .step = step,
	        .arg = &bar};
	struct tw_check_sums sums = {0};
	struct tw_err err;
	enum tw_status st = tw_cli_data_open(data, &check.catalogue, &check.blobs, &err);

	if (st == TW_OK && bar.what)
		bar.total = tw_stored_count(check.catalogue, tw_catalogue_stored_parts) +
		            tw_stored_count(check.catalogue, tw_catalogue_stored_mappings) +
		            tw_stored_count(check.catalogue, tw_catalogue_stored_traces);
	if (st == TW_OK)
		st = tw_check_run(&check, &sums, &err);
	if (st == TW_OK && strcmp(tw_catalogue_engine(check.catalogue), "postgresql") == 0)
		(void)fputs("The pages of the catalogue belong to PostgreSQL: check them with "
		            "pg_amcheck.\n",
		        stderr);
	tw_catalogue_close(check.catalogue);
	tw_blobs_close(check.blobs);
	if (st == TW_OK)
		st = list_lost(data, json, &bar, &err);
	tw_progress_clear(&bar);
	if (st != TW_OK)
		return tw_cli_failed("check", &err);
	print_sums(&sums);
	return sums.wrong > sums.repaired ? TW_EXIT_FAILED : TW_EXIT_OK;
}

/* --- rebuild --- */

static void print_skipped(void *arg, const char *key, const char *why)
{
	tw_progress_clear(arg);
	(void)fprintf(stderr, "not rebuilt: %s: %s\n", key, why);
}

static void step_rebuild(void *arg, const struct tw_rebuild_sums *s)
{
	tw_progress_at(arg, s->records, 0);
}

static enum tw_status print_rebuilt(
        const char *data, const struct tw_rebuild_sums *s, bool json, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j;

	(void)fprintf(stderr,
	        "The records do not contain accounts, keys, project settings and figures of "
	        "deleted traces. Create a key with `tracewell key create --data %s` and start the "
	        "server: it counts and indexes the traces again.\n",
	        data);
	if (!json) {
		(void)printf("rebuilt the catalogue of %s from %" PRIu64 " records: %" PRIu64
		             " traces ready, %" PRIu64 " to be decoded, %" PRIu64
		             " failed, %" PRIu64 " builds; %" PRIu64 " records skipped\n",
		        data, s->records, s->ready, s->queued, s->failed, s->builds, s->skipped);
		return TW_OK;
	}
	j = tw_cli_line(&line);
	TW_JSON_MEMBERS(j, s, records, ready, queued, failed, builds, skipped);
	return tw_cli_line_end(&line, err);
}

static int rebuild_data(const struct tw_cli_rebuild *of, bool json)
{
	struct tw_progress bar = tw_progress_of("rebuild: records");
	struct tw_rebuild r = {.skip = print_skipped, .step = step_rebuild, .arg = &bar};
	struct tw_rebuild_sums sums = {0};
	struct tw_cli_rebuilt made;
	struct tw_err err;
	enum tw_status st = tw_cli_rebuild_open(of, &made, &err);

	if (st == TW_OK) {
		r.catalogue = made.catalogue;
		r.blobs = made.blobs;
		st = tw_rebuild_run(&r, &sums, &err);
	}
	st = tw_cli_rebuild_close(&made, st, &err);
	tw_progress_clear(&bar);
	if (st == TW_OK)
		st = print_rebuilt(of->data, &sums, json, &err);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("check", &err);
}

int tw_cli_check(int argc, char **argv)
{
	struct tw_cli_rebuild rebuild = {.data = "./data"};
	bool quick = false, repair = false, json = false, rebuilds = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &rebuild.data},
	        {.name = "quick", .on = &quick}, {.name = "repair", .on = &repair},
	        {.name = "json", .on = &json}, {.name = "rebuild", .on = &rebuilds},
	        {.name = "config", .value = &rebuild.config},
	        {.name = "catalog", .value = &rebuild.catalog},
	        {.name = "blobs", .value = &rebuild.blobs},
	        {.name = "s3-endpoint", .value = &rebuild.endpoint},
	        {.name = "s3-region", .value = &rebuild.region},
	        {.name = "s3-ca-file", .value = &rebuild.ca_file},
	        {.name = "s3-credentials-file", .value = &rebuild.credentials_file},
	        {.name = "s3-virtual-host", .on = &rebuild.virtual_host}};
	const struct tw_usage usage = {flags, sizeof flags / sizeof *flags, ""};

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	if (rebuilds && (quick || repair))
		return tw_cli_misused(argv[0], "--rebuild excludes --quick and --repair");
	if (!rebuilds && (rebuild.config || rebuild.catalog || rebuild.blobs || rebuild.endpoint ||
	                         rebuild.region || rebuild.ca_file || rebuild.credentials_file ||
	                         rebuild.virtual_host))
		return tw_cli_misused(argv[0],
		        "--config, --catalog, --blobs and --s3-... are only for --rebuild: other "
		        "checks read them from the data folder");
	return rebuilds ? rebuild_data(&rebuild, json)
	                : check_data(rebuild.data, quick, repair, json);
}
