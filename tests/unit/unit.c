/* The main function of every program of unit tests, and the paths of their inputs. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static struct unit_file *files; /* in the order of their names */

void unit_register(struct unit_file *file)
{
	struct unit_file **at = &files;

	while (*at && strcmp((*at)->name, file->name) < 0)
		at = &(*at)->next;
	file->next = *at;
	*at = file;
}

static const char *join(char *path, const char *folder, const char *name)
{
	int n = snprintf(path, PATH_BYTES, "%s/%s", folder, name);

	if (n < 0 || n >= PATH_BYTES)
		fail_msg("the path of %s is too long", name);
	return path;
}

const char *unit_source(const char *name)
{
	static char path[PATH_BYTES];
	const char *root = getenv("TW_SOURCE_ROOT");

	return join(path, root ? root : ".", name);
}

void unit_needs(bool there, const char *what)
{
	if (!there) {
		print_message("# skipped: needs %s\n", what);
		skip();
	}
}

const char *unit_sample(const char *name)
{
	static char path[PATH_BYTES];
	const char *folder = getenv("TRACEWELL_SAMPLES");

	if (!folder || !folder[0])
		folder = unit_source("../shared/samples");
	unit_needs(access(join(path, folder, name), R_OK) == 0, path);
	return path;
}

static int run(const struct unit_file *f)
{
	return _cmocka_run_group_tests(f->name, f->tests, f->n, f->setup, f->teardown);
}

int main(int argc, char **argv)
{
	int failed = 0, found = 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (const struct unit_file *f = files; f; f = f->next) {
			for (size_t i = 0; i < f->n; i++)
				(void)printf("%s %s\n", f->name, f->tests[i].name);
		}
		return 0;
	}
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	for (const struct unit_file *f = files; f; f = f->next) {
		if (argc < 2 || strcmp(f->name, argv[1]) == 0) {
			failed += run(f);
			found++;
		}
	}
	if (!found)
		(void)fprintf(stderr, "no file of tests is named %s: see --list\n",
		        argc > 1 ? argv[1] : "");
	return found && !failed ? 0 : 1;
}
