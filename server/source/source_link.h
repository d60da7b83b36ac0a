/*
 * source_link.h - builds a URL from a template and untrusted values.
 *
 *   https://git.example.com/app/blob/{commit}/{path}#L{line}
 *
 * The scheme is http or https and the host has no placeholder, so that no value leads elsewhere;
 * values are percent-encoded, except slashes of {path}; a path with dot segments gives no link.  If
 * no line is known, the part from # on is omitted if it uses one.  Pure.  Thread: any.
 */
#ifndef TW_SOURCE_LINK_H
#define TW_SOURCE_LINK_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"

enum { TW_LINK_TEMPLATE_BYTES = 512 };

struct tw_link_values {
	const char *commit, *path, *version;
	uint32_t line, end; /* 0: unknown */
};

/* Validates a template before it is stored.  TW_BAD_REQUEST begins with `what`.  needs_path: it
 * must contain {path}; otherwise {commit} and no file. */
enum tw_status tw_link_check(
        const char *what, const char *text, bool needs_path, struct tw_err *err) TW_MUST_USE;

/* NULL: out of memory; "": no link.  text passed tw_link_check. */
const char *tw_link_make(const char *text, const struct tw_link_values *values, struct tw_arena *a);

#endif
