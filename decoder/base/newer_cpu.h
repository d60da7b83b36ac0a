/*
 * newer_cpu.h - compiles a function twice.
 *
 * Processors since about 2015 (x86-64-v3) shift by a variable number and count leading zeros in one
 * instruction each; the oldest ones take three and more.  A function with TW_NEWER_CPU is compiled
 * for both, and the loader selects one.  Sanitizers are not ready when the loader asks.
 */
#ifndef TW_NEWER_CPU_H
#define TW_NEWER_CPU_H

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12 &&          \
        !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TW_NEWER_CPU __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TW_NEWER_CPU
#endif

#endif
