/*
 * newer_cpu.h - TW_NEWER_CPU compiles a function twice, for all processors and for those since
 * about 2015 (x86-64-v3).
 *
 * The newer ones shift by a variable number and count leading zeros in one instruction each, and
 * process four 64-bit numbers at once.  The loader selects one.  Sanitizers are not initialised at
 * that time.
 */
#ifndef TW_NEWER_CPU_H
#define TW_NEWER_CPU_H

#include <stdint.h> /* any header of the C library defines __GLIBC__ */

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12 &&          \
        !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TW_NEWER_CPU __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TW_NEWER_CPU
#endif

#endif
