/* tracewell: one binary, subcommands by table (cli.def). */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "json_memory.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *synopsis, *summary;
} commands[] = {
#define COMMAND(name, synopsis, summary) {#name, tw_cli_##name, synopsis, summary},
#include "cli.def"
#undef COMMAND
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *to)
{
	(void)fprintf(to,
	        "tracewell %s: method traces of Android apps, received, decoded and shown\n\n",
	        TW_VERSION);
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (*commands[i].summary)
			(void)fprintf(to, "  tracewell %s\n      %s\n", commands[i].synopsis,
			        commands[i].summary);
	(void)fprintf(to, "  tracewell version [--json]\n  tracewell help\n");
	return to == stdout ? TW_EXIT_OK : TW_EXIT_USAGE;
}

static int version(bool json)
{
	(void)puts(json ? "{\"version\":\"" TW_VERSION "\"}" : "tracewell " TW_VERSION);
	return TW_EXIT_OK;
}

/* What was lost is lost, whatever the command made of it. */
static int settle(const char *name, int code)
{
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == TW_EXIT_OK) {
		(void)fprintf(stderr, "tracewell %s: standard output cannot be written\n", name);
		return TW_EXIT_FAILED;
	}
	return code;
}

static int run(int argc, char **argv, int (*command)(int argc, char **argv))
{
	int code = command(argc, argv);

	return settle(argv[0], tw_cli_helped() ? TW_EXIT_OK : code);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	tw_json_watch();
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return run(argc - 1, argv + 1, commands[i].run);
	if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0)
		return settle(name, version(argc > 2 && strcmp(argv[2], "--json") == 0));
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0)
		return settle(name, help(stdout));
	if (*name)
		(void)fprintf(stderr, "tracewell: unknown command %s\n\n", name);
	return help(stderr);
}
