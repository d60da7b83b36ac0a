/* tracewell: one binary, subcommands by table (cli.def). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/text/find.h"
#include "server/base/text/json.h"
#include "server/cli/cli.h"
#include "server/trace/trace_sql_memory.h"

typedef int (*command_fn)(int argc, char **argv);

static const struct {
	const char *name;
	command_fn run;
	const char *synopsis, *summary;
} commands[] = {
#define COMMAND(name, synopsis, summary, about) {#name, tw_cli_##name, synopsis, summary},
#include "server/cli/cli.def"
#undef COMMAND
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *to)
{
	(void)fprintf(to, "tracewell %s: server for method traces of Android apps\n\n", TW_VERSION);
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (*commands[i].summary)
			(void)fprintf(to, "  tracewell %s\n      %s\n", commands[i].synopsis,
			        commands[i].summary);
	(void)fprintf(to, "  tracewell version [--json]\n  tracewell help [COMMAND]\n\nexit codes: "
	                  "0 done, 1 failed, 2 wrong usage; details of a command: tracewell help "
	                  "COMMAND, man tracewell\n");
	return to == stdout ? TW_EXIT_OK : TW_EXIT_USAGE;
}

static int version(bool json)
{
	(void)puts(json ? "{\"version\":\"" TW_VERSION "\"}" : "tracewell " TW_VERSION);
	return TW_EXIT_OK;
}

/* A command whose output could not be written has failed. */
static int exit_code(const char *name, int code)
{
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == TW_EXIT_OK) {
		(void)fprintf(stderr, "tracewell %s: the output cannot be written\n", name);
		return TW_EXIT_FAILED;
	}
	return code;
}

static int run(int argc, char **argv, command_fn command)
{
	int code = command(argc, argv);

	return exit_code(argv[0], tw_cli_helped() ? TW_EXIT_OK : code);
}

static command_fn command_of(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run;
	return NULL;
}

static int unknown(const char *name)
{
	struct tw_near_match near = {NULL, 0};

	for (size_t i = 0; i < N_COMMANDS; i++)
		if (*commands[i].summary)
			tw_near_match_try(&near, name, commands[i].name);
	tw_near_match_try(&near, name, "version");
	tw_near_match_try(&near, name, "help");
	(void)fprintf(stderr, "tracewell: unknown command %s%s%s%s\n", name,
	        near.best ? "; did you mean " : "", near.best ? near.best : "",
	        near.best ? "?" : "");
	(void)fprintf(stderr, "`tracewell help` lists all commands\n");
	return TW_EXIT_USAGE;
}

/* "help push" prints the same as "push --help". */
static int help_of(const char *name)
{
	char of[32], flag[] = "--help";
	char *argv[] = {of, flag, NULL};
	command_fn command = command_of(name);

	if (strcmp(name, "version") == 0 || strcmp(name, "help") == 0) {
		(void)printf("usage: tracewell %s\n",
		        *name == 'v' ? "version [--json]" : "help [COMMAND]");
		return exit_code(name, TW_EXIT_OK);
	}
	if (!command || strcmp(name, "worker") == 0)
		return unknown(name);
	(void)snprintf(of, sizeof of, "%s", name);
	return run(2, argv, command);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	command_fn command = command_of(name);

	tw_json_watch();
	tw_sql_memory_watch();
	tw_close_on_exec_from(STDERR_FILENO + 1); /* for every program that this one starts */
	if (command)
		return run(argc - 1, argv + 1, command);
	if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0)
		return exit_code(name, version(argc > 2 && strcmp(argv[2], "--json") == 0));
	if (strcmp(name, "help") == 0 && argc > 2)
		return help_of(argv[2]);
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0)
		return exit_code(name, help(stdout));
	return *name ? unknown(name) : help(stderr);
}
