/*
 * child.h - starting a limited child, waiting for its answer, ending it.
 *
 * The child is this program again (`/proc/self/exe worker`), with exactly these
 * descriptors: 0 /dev/null, 1 the answer, 2 a bounded place for complaints,
 * 3 the task, 4 the output, 5.. the inputs.  Its environment is empty but for
 * what test builds need.  Thread: any; a child belongs to the thread that started it.
 */
#ifndef TW_CHILD_H
#define TW_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

enum { TW_CHILD_INPUTS = 16 };

struct tw_child {
	pid_t pid;
	int pidfd; /* readable when it has ended */
	int answer_fd, complaints_fd;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
	bool killed;         /* for its time */
};

struct tw_child_task {
	const json_t *task;
	int output;        /* an empty file, open for reading and writing */
	const int *inputs; /* open for reading */
	size_t n_inputs;
	unsigned wall_s; /* seconds it may take */
};

/* The descriptors stay the caller's. */
enum tw_status tw_child_start(
        struct tw_child *c, const struct tw_child_task *task, struct tw_err *err) TW_MUST_USE;

/* Waits until it has ended, or its deadline has passed and it was killed; then collects. */
void tw_child_wait(struct tw_child *c);
void tw_child_kill(struct tw_child *c);

/* After pidfd became readable: the answer's object (json_decref is owed), or why there is none
 * in words.  *ret_crashed: the child did not end by itself, so a retry may help.  Frees
 * everything of the child. */
enum tw_status tw_child_collect(
        struct tw_child *c, json_t **ret, bool *ret_crashed, struct tw_err *err) TW_MUST_USE;

int64_t tw_monotonic_ms(void);

#endif
