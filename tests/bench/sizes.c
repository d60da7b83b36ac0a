#include "sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "decoder/base/str.h"

double bench_cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void bench_must(bool fine, const char *what)
{
	if (fine)
		return;
	(void)fprintf(stderr, "bench: %s failed\n", what);
	exit(1);
}

void bench_print(const char *what, double ms, struct bench_took *io)
{
	io->first = io->first > 0 ? io->first : ms;
	io->before = io->before > 0 ? io->before : ms;
	(void)printf("  %-26s %8.2f ms  %6.2f x the first  %6.2f x the size before\n", what, ms,
	        ms / io->first, ms / io->before);
	io->before = ms;
}

void bench_print_number(sqlite3 *db, const char *what, const char *sql)
{
	sqlite3_stmt *q = NULL;

	bench_must(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK &&
	                   sqlite3_step(q) == SQLITE_ROW,
	        what);
	(void)printf("    %-36s %12.1f\n", what, sqlite3_column_double(q, 0));
	(void)sqlite3_finalize(q);
}

int bench_sizes(int argc, char **argv, const struct bench_plan *p)
{
	const size_t n = argc > 2 ? (size_t)argc - 2 : sizeof p->usual / sizeof *p->usual;

	bench_must(argc > 1, "a folder");
	(void)mkdir(argv[1], 0700);
	for (size_t i = 0; i < n; i++) {
		char folder[900];
		uint64_t size = argc > 2 ? 0 : p->usual[i];

		if (argc > 2)
			bench_must(
			        tw_str_u64(tw_str_of(argv[i + 2]), p->largest, &size), "a number");
		(void)snprintf(folder, sizeof folder, "%s/%llu", argv[1], (unsigned long long)size);
		p->measure(folder, size, p->took);
	}
	return 0;
}
