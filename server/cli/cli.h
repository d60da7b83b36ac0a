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
#include <stdint.h>

#include "decoder/base/err.h"

/* deploy/guides/commands.md describes their meaning per subcommand. */
enum { TW_EXIT_OK = 0, TW_EXIT_FAILED = 1, TW_EXIT_USAGE = 2, TW_EXIT_SERVER = 3 };

#define COMMAND(name, synopsis, summary, about) int tw_cli_##name(int argc, char **argv);
#include "server/cli/cli.def"
#undef COMMAND

/*
 * A flag of a subcommand: --name VALUE, --name=VALUE, or --name alone for a switch.  The fields of
 * the second part say which values are right: tw_cli_flags() refuses others and names these.
 */
struct tw_flag {
	const char *name;   /* without dashes */
	const char **value; /* receives the (last) value, or */
	bool *on;          /* a switch, to which --name=value may add a value if both are set, or */
	const char **list; /* receives each value, with capacity max, */
	size_t max;
	size_t *n; /* number of values */

	bool needed;
	const char *env; /* the environment variable that sets an absent flag; may be NULL */
	const char *const *choices; /* up to NULL */
	unsigned *choice;           /* receives the value's index in choices; may be NULL */
	uint64_t *number;           /* receives the value, a number from least to most */
	uint64_t least, most;
	bool (*fits)(const char *value); /* any other form, */
	const char *form;                /* as in the help text: "K=V" */
};

/* Flags of commands that name methods: the members of a struct tw_local_files. */
#define TW_CLI_LOCAL_FILES(of)                                                                     \
	{"mapping", .value = &(of).mapping}, {"retrace", .value = &(of).retrace},                  \
	{                                                                                          \
		"symbols", .list = (of).symbols, .max = TW_LOCAL_SYMBOLS, .n = &(of).n_symbols     \
	}

/* A first argument that selects a subcommand: `key create`. */
struct tw_verb {
	const char *word;
	const char *arguments; /* after it, as in struct tw_usage */
	const char *needs;     /* names of flags, separated by spaces; may be NULL */
};

struct tw_usage {
	const struct tw_flag *flags;
	size_t n_flags;
	const char *arguments;       /* separated by spaces: "FILE QUERY"; "FILE..." one or more,
	                                "[FILE...]"       any number; "" none */
	const struct tw_verb *verbs; /* instead of arguments: up to a word of NULL */
};

/* Reads the flags at any position, up to a lone `--`, and moves the other arguments to the front of
 * argv (from 1 on); returns their number.  Wrong usage is reported on stderr with the synopsis and
 * returns -1: an unknown flag or verb, a wrong value, a missing or additional flag or argument.  So
 * does --help, which prints the texts of cli.def on stdout; main() turns it into success. */
int tw_cli_flags(const struct tw_usage *usage, int argc, char **argv);

/* Returns whether --help was given and printed. */
bool tw_cli_helped(void);

/* Reports wrong usage that the table cannot express ("--markdown and --json exclude each other"),
 * with the synopsis; returns TW_EXIT_USAGE. */
int tw_cli_misused(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "tracewell push: cannot open x: No such file" on stderr; returns TW_EXIT_FAILED, or TW_EXIT_USAGE
 * for TW_BAD_REQUEST, which a wrong value of a flag or argument causes. */
int tw_cli_failed(const char *command, const struct tw_err *err);

#endif
