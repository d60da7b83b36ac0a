/*
 * background.h - a child that nobody waits for as for an answer.
 *
 * Compilers of mappings have a lower priority than requests: together with one on a processor, a
 * compiler gets about a quarter of the time.  Decoders keep theirs, because their time is limited
 * and people wait for a trace.
 */
#ifndef TW_BACKGROUND_H
#define TW_BACKGROUND_H

#include <sys/resource.h>
#include <sys/types.h>

enum { TW_BACKGROUND_NICE = 5 };

/* For the rest of its life: below the calling thread, which may itself run at a lower priority. */
static inline void tw_to_background(pid_t child)
{
	int own = getpriority(PRIO_PROCESS, 0); /* cannot fail: -1 is a priority */

	(void)setpriority(PRIO_PROCESS, (id_t)child, own + TW_BACKGROUND_NICE); /* at most 19 */
}

#endif
