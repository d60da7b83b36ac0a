/*
 * child.h - starting a limited child, waiting for its answer, ending it.
 *
 * The child is this program again (`/proc/self/exe worker`), with exactly these
 * descriptors: 0 /dev/null, 1 the answer, 2 a bounded place for complaints,
 * 3 the task, 4 the output, 5 a second one, 6.. the inputs.  Its environment is empty, but in
 * builds for tests.  Thread: any; a child belongs to the thread that started it.
 */
#ifndef TW_CHILD_H
#define TW_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "decoder/base/err.h"

enum { TW_CHILD_INPUTS = 16 };

/* How a decoder died; a refusal in words is no death. */
enum tw_death {
	TW_DEATH_NONE,
	TW_DEATH_CRASH,
	TW_DEATH_LOOP,
	TW_DEATH_MEMORY,
	TW_DEATH_FORBIDDEN,
	TW_DEATH_NO_ANSWER,
	TW_DEATH_BUG,
	TW_DEATHS
};
const char *tw_death_word(enum tw_death d); /* "crash", "" for none */

struct tw_child_end {
	enum tw_death death;
	int signal;      /* 0 none */
	char format[24]; /* of tw_format_by_name, that it had recognised; "" not yet */
};

struct tw_child {
	pid_t pid;
	int pidfd; /* readable when it has ended */
	int answer_fd, complaints_fd;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
	bool killed;         /* for its time */
	json_t **early;      /* where its last whole line goes when it dies; NULL: it tells none */
};

struct tw_child_task {
	const json_t *task;
	int output;        /* an empty file, open for reading and writing */
	int second;        /* another, for what it finds beside; -1: /dev/null */
	const int *inputs; /* open for reading */
	size_t n_inputs;
	unsigned wall_s; /* seconds it may take */
	bool background; /* with a lower priority (thread/background.h) */
};

/* The descriptors stay the caller's. */
enum tw_status tw_child_start(
        struct tw_child *c, const struct tw_child_task *task, struct tw_err *err) TW_MUST_USE;

/* Waits until it has ended, or its deadline has passed and it was killed; then collects. */
void tw_child_wait(struct tw_child *c);
void tw_child_kill(struct tw_child *c);

/* Who sets child.early after the start gets there, when collecting fails, what the child told in a
 * line before it died (json_decref is owed; NULL nothing).
 *
 * After pidfd became readable: the answer's object (json_decref is owed), or why there is none
 * in words.  *ret_end, also on failure, tells how it ended.  Frees everything of the child. */
enum tw_status tw_child_collect(struct tw_child *c, json_t **ret, struct tw_child_end *ret_end,
        struct tw_err *err) TW_MUST_USE;

struct tw_config;
/* The limits of a decoder, as its task carries them; NULL: no memory. */
json_t *tw_child_limits(const struct tw_config *c);
/* The error that a child answered with. */
void tw_child_error(const json_t *answer, struct tw_err *ret);

#endif
