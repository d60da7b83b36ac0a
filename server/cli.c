#include "cli.h"

#include <stdio.h>
#include <string.h>

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

int tw_cli_flags(
        const char *synopsis, const struct tw_flag *flags, size_t n_flags, int argc, char **argv)
{
	int kept = 1;
	bool only_arguments = false;

	for (int i = 1; i < argc; i++) {
		char *arg = argv[i];
		const char *equals = strchr(arg, '=');
		const struct tw_flag *f;

		if (only_arguments || arg[0] != '-' || arg[1] == '\0') {
			argv[kept++] = arg;
			continue;
		}
		only_arguments = strcmp(arg, "--") == 0;
		if (only_arguments)
			continue;
		if (strcmp(arg, "--help") == 0) {
			(void)printf("usage: tracewell %s\n", synopsis);
			return -1;
		}
		f = strncmp(arg, "--", 2) != 0
		            ? NULL
		            : find(flags, n_flags, arg + 2,
		                      equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2);
		if (!f || (f->on && equals))
			return usage(synopsis, arg, " is not known here");
		if (f->on) {
			*f->on = true;
			continue;
		}
		if (!equals && i + 1 == argc)
			return usage(synopsis, arg, " needs a value");
		if (!set(f, equals ? equals + 1 : argv[++i]))
			return usage(synopsis, arg, " comes too often");
	}
	return kept - 1;
}

int tw_cli_failed(const char *command, const struct tw_err *err)
{
	(void)fprintf(stderr, "tracewell %s: %s\n", command, err->msg);
	return TW_EXIT_FAILED;
}
