/*
 * parallel.h - runs one task in parallel on idle cores.
 *
 * The caller works together with helper threads that live for the call or for one task.  One call
 * uses at most TW_PARALLEL_MAX threads including the caller; all helpers of the process together
 * are at most one fewer than the cores.  If no helper is available the caller does all the work
 * without waiting.
 * Thread: any.
 */
#ifndef TW_PARALLEL_H
#define TW_PARALLEL_H

#include <stdbool.h>

enum { TW_PARALLEL_MAX = 4 };

/* Executed by each thread: takes pieces of the work until none is left. */
typedef void (*tw_parallel_fn)(void *arg);

/* The most threads that a call can use: a good number of pieces to divide the work into. */
unsigned tw_parallel_threads(void);

/* Runs `work` in at most `threads` threads including the caller, and waits for all. */
void tw_parallel_for(unsigned threads, tw_parallel_fn work, void *arg);

/* Runs `work` in one helper thread while the caller does something else.  It counts memory for the
 * caller's account, which must exist until tw_parallel_join; the caller's work limit does not
 * apply, as it may end with the request.  NULL: none is available. */
struct tw_helper *tw_parallel_start(tw_parallel_fn work, void *arg);
bool tw_parallel_is_done(const struct tw_helper *h);
/* Waits until `work` has returned.  Accepts NULL; returns NULL. */
struct tw_helper *tw_parallel_join(struct tw_helper *h);

/* Tests and measurements: overrides the number of cores; 0 restores it. */
void tw_parallel_set_cores(unsigned cores);

#endif
