/* regress.c - runs a fuzz target over the files in folders: each past finding is a test. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "fuzz.h"

static int inputs, unreadable;

static int run_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	uint8_t *data;
	size_t n;
	FILE *f;

	if (type != FTW_F || path[at->base] == '.')
		return 0;
	f = fopen(path, "rbe");
	n = (size_t)st->st_size;
	data = tw_mem_alloc(n, 1);
	if (f && data && fread(data, 1, n, f) == n)
		(void)LLVMFuzzerTestOneInput(data, n);
	else
		unreadable++;
	if (f)
		(void)fclose(f);
	tw_mem_free(data);
	inputs++;
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		(void)nftw(argv[i], run_file, 8, FTW_PHYS); /* not every target has every folder */
	printf("%d inputs, %d unreadable\n", inputs, unreadable);
	return unreadable || inputs == 0;
}
