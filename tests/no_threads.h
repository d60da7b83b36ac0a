/*
 * no_threads.h - a system that has no thread to give.
 *
 * Linked with -Wl,--wrap=pthread_create: while no_threads is set each call fails
 * with EAGAIN, else it is the system's own; threads_made counts those.
 */
#ifndef TW_NO_THREADS_H
#define TW_NO_THREADS_H

#include <stdbool.h>
#include <stdint.h>

extern bool no_threads;
extern uint32_t threads_made;

#endif
