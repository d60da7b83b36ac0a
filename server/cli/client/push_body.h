/*
 * push_body.h - prepares a file, or a pipe, to be sent.
 *
 * Its content is read once: hashed, and compressed with zstd into an unnamed file, so that a
 * repeated request can send it again and the server knows its length first. Files that are
 * compressed already are sent unchanged. Memory does not grow with the file.
 * Thread: one.
 */
#ifndef TW_PUSH_BODY_H
#define TW_PUSH_BODY_H

#include <stdint.h>
#include <stdio.h>

#include "decoder/base/err.h"

struct tw_push_body {
	char path[4096];    /* the file to send */
	FILE *copy;         /* NULL: path is the original */
	uint8_t sha256[32]; /* of the content, uncompressed unless it came compressed */
};

/* "-" is the standard input.  TW_IO with the reason; on failure there is nothing to close. */
enum tw_status tw_push_body_open(
        const char *path, struct tw_push_body *ret, struct tw_err *err) TW_MUST_USE;
void tw_push_body_close(struct tw_push_body *b);

#endif
