/*
 * jail.h - the sandbox of a process that reads untrusted bytes.
 *
 * The process may compute, use the memory it is given, read and write its open descriptors, start
 * threads, and exit.  It cannot open, create or remove files, create sockets or processes, execute
 * programs, signal others, make memory executable, or raise limits.  A process that is given a
 * folder may read files below it; that requires Landlock in the kernel, because a system call
 * filter sees no paths.  Threads: enter before any is started; all later ones inherit the
 * restrictions.
 */
#ifndef TW_JAIL_H
#define TW_JAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

/* Sanitizers reserve terabytes of addresses and read /proc: with one, the sandbox has neither a
 * filter nor a memory limit. */
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
	uint64_t memory_bytes; /* address space beyond what is mapped on entry; 0: no limit */
	uint64_t cpu_s;        /* processor seconds; 0: no limit */
	uint64_t file_bytes;   /* maximum size of a file; 0: no limit */
	bool filter;           /* filter system calls, not only limits */
	int folder; /* descriptor of the only folder below which files may be read; 0: none */
};

/* Builds the filter of later calls, without a folder, of this process or a copy of it.  One call
 * may use it; a failure only costs time. */
void tw_jail_prepare(void);
/* Irrevocable.  TW_IO: the kernel has no system call filter; the message contains the remedy. */
enum tw_status tw_jail_enter(const struct tw_jail *jail, struct tw_err *err) TW_MUST_USE;

#endif
