/*
 * source.h - where a thread's calls come from, and the number of its process.
 */
#ifndef TW_SOURCE_H
#define TW_SOURCE_H

#include <stdint.h>

/* The origin of a track's calls, so that a count of samples is not mistaken for a count of
 * calls. */
enum tw_source {
	TW_SOURCE_CALLS,   /* every call was recorded */
	TW_SOURCE_SAMPLES, /* stacks at intervals: a slice is a frame that was present in
	                    * consecutive samples */
	TW_SOURCE_COUNTS   /* counts only: durations are numbers of calls */
};

/* The interval of snapshots: their durations are nominal, not times. */
enum { TW_INTERVAL_NONE = -1 };

const char *tw_slice_source_name(enum tw_source source);  /* "calls", "samples", "counts" */
enum tw_source tw_slice_source_of_name(const char *word); /* CALLS if unknown */

/* A process whose number in its trace is 0, as in some Chrome JSON.  Elsewhere in this interface
 * pid 0 means unknown.  tw_pid_number returns the number to display. */
enum { TW_PID_ZERO = 1 << 30 };

static inline uint32_t tw_pid_number(uint32_t pid)
{
	return pid == TW_PID_ZERO ? 0 : pid;
}

#endif
