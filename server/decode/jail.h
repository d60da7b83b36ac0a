/*
 * jail.h - what a process that reads strangers' bytes may still do.
 *
 * Compute, use the memory it is given, read and write the descriptors it has,
 * start threads of its own, and end.  No file is opened, made or removed, no
 * socket, no process, no program, no signal to others, no memory made
 * executable, no limit raised again.  Who is given a folder may read what lies below it: the kernel
 * must have Landlock then, for a filter sees no paths.  Threads: enter before any is started;
 * all later ones are held alike.
 */
#ifndef TW_JAIL_H
#define TW_JAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

/* Sanitizers reserve terabytes of addresses and read /proc: under one the jail has neither a filter
 * nor a limit of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_JAIL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TW_JAIL_SANITIZED 1
#endif
#endif
#ifndef TW_JAIL_SANITIZED
#define TW_JAIL_SANITIZED 0
#endif

struct tw_jail {
	uint64_t memory_bytes; /* addresses; 0: no limit */
	uint64_t cpu_s;        /* processor seconds; 0: no limit */
	uint64_t file_bytes;   /* a file may grow to; 0: no limit */
	bool filter;           /* system calls too, not only limits */
	int folder; /* descriptor of the one folder below which files may be read; 0: none */
};

/* For the rest of the process's life.  TW_IO: the kernel has no system call filter, in words that
 * say what an operator can do. */
enum tw_status tw_jail_enter(const struct tw_jail *jail, struct tw_err *err) TW_MUST_USE;

#endif
