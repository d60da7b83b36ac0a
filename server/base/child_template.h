/*
 * child_template.h - a process that has loaded this program and copies itself for each task.
 *
 * Loading the program's libraries takes longer than decoding a small trace.  The template reads
 * neither tasks nor inputs: each child is a copy of a process that has seen no upload, with its own
 * limits, sandbox and end, as if it had been started.  Copies are children of the caller and share
 * the template's address layout; replace the template after one has died, so that nothing learnt
 * about that layout can be used.  Thread: one at a time; the template and its copies end with the
 * thread that made the first copy.
 */
#ifndef TW_CHILD_TEMPLATE_H
#define TW_CHILD_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "decoder/base/err.h"

/* Zeroed: none yet; the first copy starts it. */
struct tw_child_template {
	pid_t pid;
	int copy_socket;
	unsigned copies;
	unsigned tasks; /* maximum per copy; the template prepares resources for that many; 0: 1 */
};

/* Starts a child that has exactly these descriptors, numbered from 0.  A template that has ended
 * or does not answer is replaced.  No other process has the descriptors then, nor after a failure:
 * a copy whose number did not reach the caller ends before it touches them.  `background`: the
 * copy has a lower priority from its start. */
enum tw_status tw_child_template_copy(struct tw_child_template *t, const int *fds, size_t n,
        bool background, pid_t *ret_pid, struct tw_err *err) TW_MUST_USE;
/* The next copy is one of a new template.  Existing copies continue. */
void tw_child_template_end(struct tw_child_template *t);

#endif
