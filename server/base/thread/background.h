/*
 * background.h - work that takes long leaves the processors to short requests.
 *
 * Compilers of mappings and long queries have the same lower priority: together with a short
 * request on one processor, each gets about a quarter of the time, and a request that wakes up
 * runs first.  Decoders keep theirs, because their time is limited and people wait for a trace.
 */
#ifndef TW_BACKGROUND_H
#define TW_BACKGROUND_H

#include <sys/resource.h>
#include <sys/types.h>

enum { TW_BACKGROUND_NICE = 5 };

/* A child or a thread, by its number; 0: the calling thread.  For the rest of its life. */
static inline void tw_to_background(pid_t id)
{
	(void)setpriority(PRIO_PROCESS, (id_t)id, TW_BACKGROUND_NICE);
}

#endif
