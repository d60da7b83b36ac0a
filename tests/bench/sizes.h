/*
 * sizes.h - a benchmark that is measured at several sizes, each in a folder of its own: `bench
 * FOLDER [SIZE...]`.
 */
#ifndef TW_BENCH_SIZES_H
#define TW_BENCH_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* CPU time of this process. */
double bench_cpu_ms(void);
/* Ends the program where it is not. */
void bench_must(bool fine, const char *what);
struct bench_plan {
	uint64_t largest, usual[2]; /* sizes: that may be asked for, and when none is */
	void (*measure)(const char *folder, uint64_t n, double *first);
	double *first; /* what the first size took */
};
/* Measures each size of the command line, or the usual ones, in FOLDER/SIZE.  The exit code. */
int bench_sizes(int argc, char **argv, const struct bench_plan *p);

#endif
