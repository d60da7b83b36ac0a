#include "server/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cli_near.h"

static bool helped;

bool tw_cli_helped(void)
{
	return helped;
}

static const struct tw_flag *find(
        const struct tw_flag *flags, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0)
			return &flags[i];
	return NULL;
}

static int usage(const char *synopsis, const char *arg, const char *trouble)
{
	(void)fprintf(stderr, "tracewell: %s%s\nusage: tracewell %s\n", arg, trouble, synopsis);
	return -1;
}

static bool set(const struct tw_flag *f, const char *value)
{
	if (f->value)
		*f->value = value;
	if (!f->list)
		return true;
	if (*f->n == f->max)
		return false;
	f->list[(*f->n)++] = value;
	return true;
}

/* A flag that nobody knows, and which may have been meant. */
static int usage_of_unknown(const char *synopsis, const struct tw_flag *flags, size_t n_flags,
        const char *arg, size_t len)
{
	struct tw_cli_nearest near = {NULL, 0};
	char word[64], trouble[160] = " is not known here";

	(void)snprintf(word, sizeof word, "%.*s", len > 2 ? (int)len - 2 : 0, arg + 2);
	for (size_t i = 0; i < n_flags; i++)
		tw_cli_near(&near, word, flags[i].name);
	if (near.best)
		(void)snprintf(trouble, sizeof trouble, " is not known here; did you mean --%.64s?",
		        near.best);
	return usage(synopsis, arg, trouble);
}

/* A switch, or one with a word behind it. */
static int take_switch(const char *synopsis, const struct tw_flag *f, const char *arg)
{
	const char *equals = strchr(arg, '=');

	if (equals && !f->value)
		return usage(synopsis, arg, " is not known here");
	if (equals)
		*f->value = equals + 1;
	*f->on = true;
	return 1;
}

/* The flag at argv[0]; how many arguments it took, or -1. */
static int take_flag(
        const char *synopsis, const struct tw_flag *flags, size_t n_flags, int left, char **argv)
{
	const char *arg = argv[0];
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct tw_flag *f =
	        strncmp(arg, "--", 2) == 0 ? find(flags, n_flags, arg + 2, len - 2) : NULL;

	if (!f && strncmp(arg, "--", 2) == 0)
		return usage_of_unknown(synopsis, flags, n_flags, arg, len);
	if (!f)
		return usage(synopsis, arg, " is not known here");
	if (f->on)
		return take_switch(synopsis, f, arg);
	if (!equals && left < 2)
		return usage(synopsis, arg, " needs a value");
	if (!set(f, equals ? equals + 1 : argv[1]))
		return usage(synopsis, arg, " comes too often");
	return equals ? 1 : 2;
}

int tw_cli_flags(
        const char *synopsis, const struct tw_flag *flags, size_t n_flags, int argc, char **argv)
{
	int kept = 1;
	bool only_arguments = false;

	for (int i = 1, took; i < argc; i += took) {
		took = 1;
		if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[kept++] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			only_arguments = true;
		} else if (strcmp(argv[i], "--help") == 0) {
			(void)printf("usage: tracewell %s\n", synopsis);
			helped = true;
			return -1;
		} else {
			took = take_flag(synopsis, flags, n_flags, argc - i, argv + i);
			if (took < 0)
				return -1;
		}
	}
	return kept - 1;
}

int tw_cli_failed(const char *command, const struct tw_err *err)
{
	(void)fprintf(stderr, "tracewell %s: %s\n", command, err->msg);
	return TW_EXIT_FAILED;
}
