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

enum { NAME_BYTES = 520 };

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

int tw_cli_project(int argc, char **argv)
{
	const char *data = "./data";
	const struct tw_flag table[] = {{"data", .value = &data}};
	static const struct tw_verb verbs[] = {{"delete", "NAME", NULL}, {NULL}};
	const struct tw_usage usage = {"project delete NAME --data DIR", table,
	        sizeof table / sizeof *table, .verbs = verbs};
	const int n = tw_cli_flags(&usage, argc, argv);
	struct tw_catalogue *c = NULL;
	struct tw_err err;
	enum tw_status st;

	if (n < 0)
		return TW_EXIT_USAGE;
	st = tw_cli_data_open_catalogue(data, &c, &err);
	if (st == TW_OK)
		st = delete_project(c, argv[n], &err);
	(void)tw_catalogue_close(c);
	return st == TW_OK ? TW_EXIT_OK : tw_cli_failed("project", &err);
}
