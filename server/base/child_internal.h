/*
 * child_internal.h - shared by the two ways to start a child: executing the program, and copying a
 * template of it.
 */
#ifndef TW_CHILD_INTERNAL_H
#define TW_CHILD_INTERNAL_H

#include <stddef.h>
#include <sys/types.h>

#include "decoder/base/err.h"

/* Executes this program with the descriptors, all 100 or higher, as 0, 1, ...  tasks > 0 starts
 * a template whose copies perform at most `tasks` tasks.  Returns 0 or an errno. */
int tw_child_exec(const int *fds, size_t n, unsigned tasks, pid_t *ret_pid);
/* Lowers the priority of a child that has no threads yet: later ones inherit it. */
void tw_child_to_background(pid_t child);
enum tw_status tw_child_fail_errno(const char *doing, struct tw_err *err);

#endif
