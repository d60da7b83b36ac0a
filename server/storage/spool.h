/*
 * spool.h - the spool folders of servers that share a data folder: one each; the others remove it
 * when its server is dead.
 *
 * A server is alive while it holds a lock on a file in its folder, which ends with the process; so
 * the file system must support flock across machines.
 */
#ifndef TW_SPOOL_H
#define TW_SPOOL_H

#include <stdbool.h>

#include "decoder/base/err.h"

/* Creates the folder and holds it until *ret_lock is closed. */
enum tw_status tw_spool_own(const char *path, int *ret_lock, struct tw_err *err) TW_MUST_USE;
/* Whether its server is dead.  If so, the caller removes its contents. */
bool tw_spool_is_dead(const char *path);

#endif
