/* `tracewell check`: is a data folder whole? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"
#include "cli.h"
#include "cli_data.h"
#include "json_write.h"

static const char synopsis[] = "check --data DIR [--quick] [--repair] [--json]";

enum { LINE_BYTES = 1 << 16 };

static void tell_text(void *arg, const struct tw_finding *f)
{
	(void)arg;
	(void)printf("%s: %s\n", f->repaired ? "repaired" : "wrong", f->text);
}

static void tell_json(void *arg, const struct tw_finding *f)
{
	struct tw_buf *line = arg;
	struct tw_json j;

	tw_buf_clear(line);
	j = tw_json_to(line);
	tw_json_open(&j, '{');
	tw_json_key(&j, "project");
	tw_json_str(&j, tw_str_of(f->project_id));
	tw_json_key(&j, "id");
	tw_json_str(&j, tw_str_of(f->id));
	tw_json_key(&j, "what");
	tw_json_str(&j, tw_str_of(f->what));
	tw_json_key(&j, "repaired");
	tw_json_bool(&j, f->repaired);
	tw_json_key(&j, "text");
	tw_json_str(&j, tw_str_of(f->text));
	tw_json_close(&j, '}');
	(void)printf("%.*s\n", (int)line->len, (const char *)line->data);
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
	struct tw_check check = {.found = tell_text};
	struct tw_check_sums sums = {0};
	struct tw_buf line;
	struct tw_err err;
	enum tw_status st;
	int n = tw_cli_flags(synopsis, flags, 4, argc, argv);

	if (n != 0) {
		if (n > 0)
			(void)fprintf(stderr, "usage: tracewell %s\n", synopsis);
		return TW_EXIT_USAGE;
	}
	tw_buf_init(&line, LINE_BYTES);
	check.quick = quick;
	check.repair = repair;
	if (json) {
		check.found = tell_json;
		check.arg = &line;
	}
	st = tw_cli_data_open(data, &check.catalogue, &check.blobs, &err);
	if (st == TW_OK)
		st = tw_check_run(&check, &sums, &err);
	if (st == TW_OK && strcmp(tw_catalogue_engine(check.catalogue), "postgresql") == 0)
		(void)fputs(
		        "The catalogue's own pages are PostgreSQL's: pg_amcheck looks at them.\n",
		        stderr);
	tw_catalogue_close(check.catalogue);
	tw_blobs_close(check.blobs);
	tw_buf_done(&line);
	if (st != TW_OK)
		return tw_cli_failed("check", &err);
	tell_sums(&sums);
	return sums.wrong > sums.repaired ? TW_EXIT_FAILED : TW_EXIT_OK;
}
