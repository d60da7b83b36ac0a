/*
 * cli.h - the subcommands of tracewell (cli.def), and the parser of their flags.
 *
 * A subcommand is `int tw_cli_<name>(int argc, char **argv)` in cli_<name>.c: argv[0] is its name,
 * the result is the exit code.  Only results go to stdout; messages go to stderr.
 */
#ifndef TW_CLI_H
#define TW_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder/base/err.h"

/* deploy/guides/commands.md describes their meaning per subcommand. */
enum { TW_EXIT_OK = 0, TW_EXIT_FAILED = 1, TW_EXIT_USAGE = 2, TW_EXIT_SERVER = 3 };

#define COMMAND(name, synopsis, summary) int tw_cli_##name(int argc, char **argv);
#include "server/cli/cli.def"
#undef COMMAND

/* A flag of a subcommand: --name VALUE, --name=VALUE, or --name alone for a switch. */
struct tw_flag {
	const char *name;   /* without dashes */
	const char **value; /* receives the (last) value, or */
	bool *on;          /* a switch, to which --name=value may add a value if both are set, or */
	const char **list; /* receives each value, with capacity max, */
	size_t max;
	size_t *n; /* number of values */
};

/* Reads the flags at any position, up to a lone `--`, and moves the other arguments to the front of
 * argv (from 1 on); returns their number.  An unknown flag or a missing value is reported on stderr
 * with the synopsis and returns -1; so does --help, printed on stdout, which main() turns into
 * success. */
int tw_cli_flags(
        const char *synopsis, const struct tw_flag *flags, size_t n_flags, int argc, char **argv);

/* Returns whether --help was given and printed. */
bool tw_cli_helped(void);

/* "tracewell push: cannot open x: No such file" on stderr; returns TW_EXIT_FAILED. */
int tw_cli_failed(const char *command, const struct tw_err *err);

#endif
