/*
 * crew.h - more hands for one piece of work, as far as cores are free for it.
 *
 * A crew is the caller and helpers that live as long as the call.  One crew has
 * at most TW_CREW_MOST hands; all helpers of the process together are one fewer
 * than there are cores, however many ask.  Where none can be had the caller does
 * the work alone, so nobody waits for a helper.
 * Thread: any.
 */
#ifndef TW_CREW_H
#define TW_CREW_H

enum { TW_CREW_MOST = 4 };

/* What one hand does: takes pieces of the work until none is left. */
typedef void (*tw_crew_fn)(void *arg);

/* The hands that a crew can have at best; what work should be cut for. */
unsigned tw_crew_hands(void);

/* Runs `work` in at most `hands` threads, of which the caller is one, and waits for all. */
void tw_crew_run(unsigned hands, tw_crew_fn work, void *arg);

/* Tests and measurements: as if there were so many cores; 0 ends it. */
void tw_crew_pretend(unsigned cores);

#endif
