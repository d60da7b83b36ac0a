/* regress.c - runs a fuzz target over the files of a folder: what was found once is a test. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "fuzz.h"

static int run_file(const char *folder, const char *name)
{
	enum { MOST = 16 << 20 };
	char path[4096];
	uint8_t *data = tw_mem_alloc(MOST, 1);
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "rbe");
	if (!f || !data)
		return 1;
	n = fread(data, 1, MOST, f);
	(void)fclose(f);
	(void)LLVMFuzzerTestOneInput(data, n);
	tw_mem_free(data);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *e;
	int failed = 0;
	int n = 0;

	if (!d) {
		(void)fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	for (e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		failed += run_file(argv[1], e->d_name);
		n++;
	}
	(void)closedir(d);
	printf("%d inputs, %d unreadable\n", n, failed);
	return failed || n == 0;
}
