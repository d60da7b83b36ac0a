/*
 * sizes.h - a benchmark that is measured at several sizes, each in a separate folder: `bench
 * FOLDER [SIZE...]`.
 */
#ifndef TW_BENCH_SIZES_H
#define TW_BENCH_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

/* CPU time of this process. */
double bench_cpu_ms(void);
/* Ends the program where it is not. */
void bench_must(bool fine, const char *what);
/* The times of one operation at each size. */
struct bench_took {
	double first, before;
};
/* Prints it with its ratios to the first and to the previous size. */
void bench_print(const char *what, double ms, struct bench_took *io);
/* Prints a number of the database: what there is more of as it grows. */
void bench_print_number(sqlite3 *db, const char *what, const char *sql);
struct bench_plan {
	uint64_t largest, usual[2]; /* sizes: that may be asked for, and when none is */
	void (*measure)(const char *folder, uint64_t n, struct bench_took *took);
	struct bench_took *took;
};
/* Measures each size of the command line, or the usual ones, in FOLDER/SIZE.  The exit code. */
int bench_sizes(int argc, char **argv, const struct bench_plan *p);

#endif
