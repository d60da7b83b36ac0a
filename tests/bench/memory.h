/*
 * memory.h - memory of this process, as the kernel counts it.
 */
#ifndef TW_BENCH_MEMORY_H
#define TW_BENCH_MEMORY_H

/* "VmRSS:" (resident now) or "VmHWM:" (the peak since bench_forget_peak), in bytes. */
double bench_memory(const char *key);
void bench_forget_peak(void);

#endif
