/*
 * cli_pipe.h - what comes through a pipe, as a file that can be read again.
 *
 * A request that is repeated sends its body anew, and an upload says its length first: neither can
 * be had of a pipe.  What comes through one is copied to a file without a name, which goes with the
 * list.  Thread: one.
 */
#ifndef TW_CLI_PIPE_H
#define TW_CLI_PIPE_H

#include <stdio.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_PIPES_MAX = 32 };

struct tw_pipes { /* zeroed is empty */
	FILE *files[TW_PIPES_MAX];
	unsigned n;
};

/* The path to read in place of this one: itself, unless it is a pipe or "-", the standard input.
 * What cannot be read at all is left to who reads it.  *ret is the arena's, or `path`. */
enum tw_status tw_pipes_path(struct tw_pipes *s, struct tw_arena *a, const char *path,
        const char **ret, struct tw_err *err) TW_MUST_USE;
void tw_pipes_done(struct tw_pipes *s);

#endif
