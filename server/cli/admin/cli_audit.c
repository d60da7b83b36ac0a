/* `tracewell audit`: the audit log, read from the data folder. */
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_row.h"
#include "server/cli/admin/cli_by_name.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_term.h"

enum { ARENA_BYTES = 32 << 20, MAX_LIMIT = 500 };

struct audit_flags {
	const char *data, *project, *action, *by, *target;
	uint64_t limit;
	bool json;
};

static void print_line(const struct tw_audit_entry *e)
{
	time_t s = (time_t)(e->at_ms / 1000);
	char at[32] = "-";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		(void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)printf("%lld\t%s\t%s ", (long long)e->id, at, e->by.kind);
	tw_term_print(e->by.name[0] ? e->by.name : e->by.id);
	(void)printf("\t%s\t%s\t%s\t", e->by.address[0] ? e->by.address : "here",
	        e->project_id[0] ? e->project_id : "-", e->action);
	tw_term_print(e->target);
	(void)putchar('\t');
	tw_term_print(e->facts);
	(void)putchar('\n');
}

static void print_json(const struct tw_audit_entry *e)
{
	json_t *o = tw_row_json(&tw_audit_fields, e);

	if (o && json_dumpf(o, stdout, JSON_COMPACT) == 0)
		(void)putchar('\n');
	json_decref(o);
}

/* In pages, so that memory does not grow with the number of entries. */
static enum tw_status print_all(struct tw_catalogue *c, struct tw_audit_query *of, uint64_t left,
        bool json, struct tw_err *err)
{
	struct tw_audit_entry *rows = NULL;
	enum tw_status st = TW_OK;
	size_t n = MAX_LIMIT;

	while (st == TW_OK && left && n == MAX_LIMIT) {
		struct tw_arena *a = tw_arena_new(ARENA_BYTES);

		of->limit = left < MAX_LIMIT ? (uint32_t)left : MAX_LIMIT;
		st = a ? tw_catalogue_audit(c, of, a, &rows, &n, err) : tw_oom(err);
		for (size_t i = 0; st == TW_OK && rows && i < n; i++) {
			(json ? print_json : print_line)(&rows[i]);
			of->before = rows[i].id;
		}
		left -= st == TW_OK ? n : 0;
		(void)tw_arena_free(a);
	}
	return st;
}

static enum tw_status run(struct tw_catalogue *c, const struct audit_flags *f, struct tw_err *err)
{
	struct tw_audit_query of = {.action = f->action, .by = f->by, .target = f->target};
	char project[TW_ID_BYTES];
	enum tw_status st = TW_OK;

	if (f->project) {
		st = tw_cli_project_find(c, f->project, project, err);
		of.project_id = project;
	}
	return st == TW_OK ? print_all(c, &of, f->limit, f->json, err) : st;
}

int tw_cli_audit(int argc, char **argv)
{
	struct audit_flags f = {
	        .data = "./data", .action = "", .by = "", .target = "", .limit = 100};
	const struct tw_flag table[] = {
	        {"data", .value = &f.data},
	        {"project", .value = &f.project},
	        {"action", .value = &f.action},
	        {"actor", .value = &f.by},
	        {"target", .value = &f.target},
	        {"limit", .number = &f.limit, .least = 1, .most = INT64_MAX},
	        {"json", .on = &f.json},
	};
	const struct tw_usage usage = {table, sizeof table / sizeof *table, ""};
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;

	if (tw_cli_flags(&usage, argc, argv) < 0)
		return TW_EXIT_USAGE;
	st = tw_cli_data_open_catalogue(f.data, &c, &err);
	if (st == TW_OK)
		st = run(c, &f, &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("audit", &err);
}
