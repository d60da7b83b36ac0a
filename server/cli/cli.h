/*
 * cli.h - the subcommands of tracewell (cli.def), and how they read their flags.
 *
 * A subcommand is `int tw_cli_<name>(int argc, char **argv)` in cli_<name>.c:
 * argv[0] is its name, the result is the exit code.  Results go to stdout and
 * nothing else does; sentences for people go to stderr.
 */
#ifndef TW_CLI_H
#define TW_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

/* What they mean of each subcommand stands in deploy/guides/commands.md. */
enum { TW_EXIT_OK = 0, TW_EXIT_FAILED = 1, TW_EXIT_USAGE = 2, TW_EXIT_SERVER = 3 };

#define COMMAND(name, synopsis, summary) int tw_cli_##name(int argc, char **argv);
#include "server/cli/cli.def"
#undef COMMAND

/* A flag of a subcommand: --name VALUE, --name=VALUE, or --name alone for a switch. */
struct tw_flag {
	const char *name;   /* without dashes */
	const char **value; /* where the (last) value goes, or */
	bool *on;           /* a switch, which --name=value may say more of where both are, or */
	const char **list;  /* each value in turn, room for max, */
	size_t max;
	size_t *n; /* how many there were */
};

/* Reads the flags wherever they stand, up to a lone `--`, and moves the other arguments to the
 * front of argv (from 1 on); returns their number.  An unknown flag or one without its value is
 * told on stderr with the synopsis, and gives -1; so does --help, told on stdout: main() makes a
 * success of that. */
int tw_cli_flags(
        const char *synopsis, const struct tw_flag *flags, size_t n_flags, int argc, char **argv);

/* --help was asked for, and told. */
bool tw_cli_helped(void);

/* "tracewell push: cannot open x: No such file" on stderr; returns TW_EXIT_FAILED. */
int tw_cli_failed(const char *command, const struct tw_err *err);

#endif
