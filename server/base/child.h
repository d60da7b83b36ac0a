/*
 * child.h - starts a limited child process, waits for its answer and ends it.
 *
 * The child is this program again, executed (`/proc/self/exe worker`) or copied from a process that
 * has loaded it (child_template.h), with exactly these descriptors: 0
 * /dev/null, 1 the answer, 2 error output of limited size, 3 the task, 4 the output, 5 a second
 * output, 6.. the inputs.  Its environment is empty except in builds for tests.
 * Thread: any; a child belongs to the thread that started it.
 */
#ifndef TW_CHILD_H
#define TW_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "decoder/base/err.h"

enum { TW_CHILD_INPUTS = 31, TW_CHILD_FDS = 6 + TW_CHILD_INPUTS };
/* Jobs of one child that does several: each has an input, and each but the first an output that
 * takes the place of an input.  config.decode_group is at most this. */
enum { TW_CHILD_JOBS = (TW_CHILD_INPUTS + 1) / 2 };
/* Maximum duration of a child of lower priority in multiples of wall_s (tw_child_is_overdue). */
enum { TW_CHILD_WALLS = 10 };

/* How a decoder died.  An error that it reports itself is not a death. */
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
const char *tw_death_name(enum tw_death d); /* "crash", "" for none */

struct tw_child_end {
	enum tw_death death;
	int signal;      /* 0: none */
	char format[24]; /* the format it had recognised, as in tw_format_by_name; "" none yet */
};

struct tw_child {
	pid_t pid;
	int pidfd; /* readable when it has ended */
	int answer_fd, complaints_fd;
	int64_t deadline_ms;           /* CLOCK_MONOTONIC */
	int64_t extend_ms, extensions; /* of the deadline, while it uses processor time */
	int64_t cpu_ns;                /* used at the last extension */
	bool killed;                   /* its deadline passed */
	json_t **early; /* receives its last complete line if it dies; NULL: not wanted */
};

struct tw_child_template;

struct tw_child_task {
	const json_t *task;
	int output;        /* an empty file, open for reading and writing */
	int second;        /* another output, for secondary results; -1: /dev/null */
	const int *inputs; /* open for reading */
	size_t n_inputs;
	unsigned wall_s;                /* seconds it may take */
	bool background;                /* runs at a lower priority, for longer: TW_CHILD_WALLS */
	struct tw_child_template *from; /* it is copied; NULL: the program is executed */
};

/* The caller keeps ownership of the descriptors. */
enum tw_status tw_child_start(
        struct tw_child *c, const struct tw_child_task *task, struct tw_err *err) TW_MUST_USE;

/* Waits until the child has ended, or kills it after its deadline; then collect. */
void tw_child_wait(struct tw_child *c);
/* Whether its deadline has passed.  Extends the deadline of a child of lower priority that has used
 * processor time since the last extension: it does not hang, but other processes delay it. */
bool tw_child_is_overdue(struct tw_child *c, int64_t now_ms);
void tw_child_kill(struct tw_child *c);

/* After pidfd became readable: returns the answer's object, or the error that prevented one.
 * *ret_end is set even on failure and describes how the child ended.  Releases all resources of the
 * child.  Free *ret with json_decref.
 *
 * If the caller sets child.early after the start and collecting fails, *early receives the line
 * that the child wrote before it died (NULL: none; free with json_decref). */
enum tw_status tw_child_collect(struct tw_child *c, json_t **ret, struct tw_child_end *ret_end,
        struct tw_err *err) TW_MUST_USE;

/* The same for a child that does several tasks: the objects of all complete lines, at most cap,
 * even on failure.  A line that names a format belongs to the object after it, as its "format", or
 * to the task that was not completed, in *ret_end. */
enum tw_status tw_child_collect_lines(struct tw_child *c, json_t **ret, size_t cap, size_t *ret_n,
        struct tw_child_end *ret_end, struct tw_err *err) TW_MUST_USE;

struct tw_config;
/* The limits of a decoder in the form of its task; NULL: out of memory. */
json_t *tw_child_limits(const struct tw_config *c);
/* The error reported in a child's answer. */
void tw_child_error(const json_t *answer, struct tw_err *ret);

#endif
