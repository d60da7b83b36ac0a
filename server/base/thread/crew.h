/*
 * crew.h - runs one task in parallel on idle cores.
 *
 * The caller works together with helper threads that live for the call.  One call uses at most
 * TW_CREW_MOST threads including the caller; all helpers of the process together are at most one
 * fewer than the cores.  If no helper is available the caller does all the work without waiting.
 * Thread: any.
 */
#ifndef TW_CREW_H
#define TW_CREW_H

enum { TW_CREW_MOST = 4 };

/* Executed by each thread: takes pieces of the work until none is left. */
typedef void (*tw_crew_fn)(void *arg);

/* The most threads that a call can use: a good number of pieces to divide the work into. */
unsigned tw_crew_hands(void);

/* Runs `work` in at most `hands` threads including the caller, and waits for all. */
void tw_crew_run(unsigned hands, tw_crew_fn work, void *arg);

/* Tests and measurements: overrides the number of cores; 0 restores it. */
void tw_crew_pretend(unsigned cores);

#endif
