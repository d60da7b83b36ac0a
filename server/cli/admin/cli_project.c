/* `tracewell project`: changes the data folder directly, also while a server runs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/cli/admin/cli_by_name.h"
#include "server/cli/admin/cli_data.h"
#include "server/cli/cli.h"
#include "server/cli/cli_out.h"

enum { NAME_BYTES = 520, LIST_BYTES = 1 << 20, LIST_ROWS = 500 /* per read */ };

/* A typing error, or the wrong line of a shell's history, must not delete data. */
static enum tw_status confirm(const char *name, struct tw_err *err)
{
	char typed[NAME_BYTES] = "";

	if (isatty(STDIN_FILENO))
		(void)fprintf(stderr,
		        "This permanently deletes all traces, builds and settings of project "
		        "%.120s.\nType its name to confirm: ",
		        name);
	if (!fgets(typed, sizeof typed, stdin))
		typed[0] = '\0';
	typed[strcspn(typed, "\r\n")] = '\0';
	if (strcmp(typed, name) != 0)
		return tw_fail(err, TW_BAD_REQUEST,
		        "the name does not match; nothing was deleted: enter the project's name "
		        "on standard input");
	return TW_OK;
}

static enum tw_status delete_project(struct tw_catalogue *c, const char *name, struct tw_err *err)
{
	char id[TW_ID_BYTES];
	enum tw_status st = tw_cli_project_find(c, name, id, err);

	if (st == TW_OK)
		st = confirm(name, err);
	if (st == TW_OK)
		st = tw_catalogue_project_delete(c, name, err);
	if (st == TW_OK)
		(void)fprintf(stderr,
		        "project %s deleted; the server removes its data in the background\n",
		        name);
	return st;
}

/* --- the list --- */

static enum tw_status print_text(const struct tw_project_row *p, struct tw_err *err)
{
	char created[TW_CLI_TIME_BYTES];

	return printf("%s\t%s\t%s\n", p->id, tw_cli_time(p->created_ms, created), p->name) > 0
	               ? TW_OK
	               : tw_fail(err, TW_IO, "the output cannot be written");
}

static enum tw_status print_json(const struct tw_project_row *p, struct tw_err *err)
{
	struct tw_cli_line line;
	struct tw_json *j = tw_cli_line(&line);

	TW_JSON_MEMBERS(j, p, id, name, created_ms);
	return tw_cli_line_end(&line, err);
}

static enum tw_status list(struct tw_catalogue *c, bool json, struct tw_err *err)
{
	char after[TW_ID_BYTES] = "";
	size_t n = LIST_ROWS;
	enum tw_status st = TW_OK;

	while (st == TW_OK && n == LIST_ROWS) {
		struct tw_arena *a = tw_arena_new(LIST_BYTES);
		struct tw_project_row *rows = NULL;

		st = a ? tw_catalogue_projects_after(c, "", after, LIST_ROWS, a, &rows, &n, err)
		       : tw_oom(err);
		for (size_t i = 0; st == TW_OK && i < n; i++)
			st = (json ? print_json : print_text)(&rows[i], err);
		if (st == TW_OK && n > 0)
			(void)snprintf(after, sizeof after, "%s", rows[n - 1].id);
		(void)tw_arena_free(a);
	}
	return st;
}

int tw_cli_project(int argc, char **argv)
{
	const char *data = "./data";
	bool json = false;
	const struct tw_flag table[] = {{"data", .value = &data}, {"json", .on = &json}};
	static const struct tw_verb verbs[] = {
	        {"list", "", NULL}, {"delete", "NAME", NULL}, {NULL}};
	const struct tw_usage usage = {table, sizeof table / sizeof *table, .verbs = verbs};
	const int n = tw_cli_flags(&usage, argc, argv);
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;

	if (n < 0)
		return TW_EXIT_USAGE;
	st = tw_cli_data_open_catalogue(data, &c, &err);
	if (st == TW_OK)
		st = strcmp(argv[1], "list") == 0 ? list(c, json, &err)
		                                  : delete_project(c, argv[n], &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("project", &err);
}
