/*
 * spool.h - folders in spool/ of servers that share a data folder: one each, which the others
 * remove when its server is dead.
 *
 * Whose server lives is known by a lock on a file in it, which ends with the process; so the file
 * system must have flock over all machines.
 */
#ifndef TW_SPOOL_H
#define TW_SPOOL_H

#include <stdbool.h>

#include "decoder/base/err.h"

/* Makes the folder and holds it as long as *ret_lock, whose close is owed, is open. */
enum tw_status tw_spool_own(const char *path, int *ret_lock, struct tw_err *err) TW_MUST_USE;
/* Its server is dead.  Who says so is to remove what is in it. */
bool tw_spool_is_dead(const char *path);

#endif
