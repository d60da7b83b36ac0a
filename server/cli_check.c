/* `tracewell check`: is a data folder whole? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cli.h"
#include "cli_data.h"
#include "cli_line.h"
#include "cli_term.h"
#include "stored.h"

static const char synopsis[] = "check --data DIR [--quick] [--repair] [--json]";

static void tell_text(void *arg, const struct tw_finding *f)
{
	tw_progress_clear(arg);
	(void)printf("%s%s%s: %s\n", tw_term_paint(stdout, f->repaired ? TW_YELLOW : TW_RED),
	        f->repaired ? "repaired" : "wrong", tw_term_paint(stdout, TW_PLAIN), f->text);
}

static void tell_json(void *arg, const struct tw_finding *f)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	tw_progress_clear(arg);
	tw_json_key_str(j, "project", tw_str_of(f->project_id));
	tw_json_key_str(j, "id", tw_str_of(f->id));
	tw_json_key_str(j, "what", tw_str_of(f->what));
	tw_json_key_bool(j, "repaired", f->repaired);
	tw_json_key_str(j, "text", tw_str_of(f->text));
	if (tw_cli_line_end(&line, NULL) != TW_OK)
		(void)fputs("tracewell check: standard output cannot be written\n", stderr);
}

static void step(void *arg, const struct tw_check_sums *s)
{
	tw_progress_at(arg, s->uploads + s->mappings + s->decoded, s->bytes);
}

static void tell_sums(const struct tw_check_sums *s)
{
	(void)fprintf(stderr,
	        "looked at %" PRIu64 " uploads, %" PRIu64 " mappings and %" PRIu64
	        " decoded files, read %.1f MB: ",
	        s->uploads, s->mappings, s->decoded, (double)s->bytes / 1e6);
	if (s->wrong)
		(void)fprintf(
		        stderr, "%" PRIu64 " wrong, %" PRIu64 " repaired\n", s->wrong, s->repaired);
	else
		(void)fprintf(stderr, "all as it should be\n");
}

int tw_cli_check(int argc, char **argv)
{
	const char *data = "./data";
	bool quick = false, repair = false, json = false;
	const struct tw_flag flags[] = {{.name = "data", .value = &data},
	        {.name = "quick", .on = &quick}, {.name = "repair", .on = &repair},
	        {.name = "json", .on = &json}};
	struct tw_progress bar = tw_progress_of("check: files", 0);
	struct tw_check check = {.step = step, .arg = &bar};
	struct tw_check_sums sums = {0};
	struct tw_err err;
	enum tw_status st;
	int n = tw_cli_flags(synopsis, flags, 4, argc, argv);

	if (n != 0) {
		if (n > 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	check.quick = quick;
	check.repair = repair;
	check.found = json ? tell_json : tell_text;
	st = tw_cli_data_open(data, &check.catalogue, &check.blobs, &err);
	if (st == TW_OK && bar.what)
		bar.total = tw_stored_count(check.catalogue, tw_catalogue_stored_parts) +
		            tw_stored_count(check.catalogue, tw_catalogue_stored_mappings) +
		            tw_stored_count(check.catalogue, tw_catalogue_stored_traces);
	if (st == TW_OK)
		st = tw_check_run(&check, &sums, &err);
	if (st == TW_OK && strcmp(tw_catalogue_engine(check.catalogue), "postgresql") == 0)
		(void)fputs(
		        "The catalogue's own pages are PostgreSQL's: pg_amcheck looks at them.\n",
		        stderr);
	tw_catalogue_close(check.catalogue);
	tw_blobs_close(check.blobs);
	tw_progress_clear(&bar);
	if (st != TW_OK)
		return tw_cli_failed("check", &err);
	tell_sums(&sums);
	return sums.wrong > sums.repaired ? TW_EXIT_FAILED : TW_EXIT_OK;
}
