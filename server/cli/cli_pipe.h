/*
 * cli_pipe.h - copies input from a pipe to a file that can be read again.
 *
 * A repeated request sends its body again, and an upload declares its length first; neither is
 * possible from a pipe.  Its content is copied to an unnamed file, which is freed with the list.
 * Thread: one.
 */
#ifndef TW_CLI_PIPE_H
#define TW_CLI_PIPE_H

#include <stdio.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_PIPES_MAX = 32 };

struct tw_pipes { /* initialise with zeros */
	FILE *files[TW_PIPES_MAX];
	unsigned n;
};

/* The path to read instead of this one: itself, unless it is a pipe or "-", the standard input.
 * Unreadable paths are returned unchanged; their reader reports the error.  *ret is in the arena,
 * or `path`. */
enum tw_status tw_pipes_path(struct tw_pipes *s, struct tw_arena *a, const char *path,
        const char **ret, struct tw_err *err) TW_MUST_USE;
void tw_pipes_done(struct tw_pipes *s);

#endif
