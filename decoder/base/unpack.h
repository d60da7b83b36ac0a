/*
 * unpack.h - extracts the files of a zip or tar archive from a stream.
 *
 * Reads forwards only: zip files by their local headers (stored or deflated entries, zip64, sizes
 * after the data), tar files as ustar, pax and GNU write them.  Folders, links and devices are
 * skipped.  Names are data, never a path.  Fails with TW_TOO_LARGE if the entries exceed
 * max_decoded_bytes in total, or max_ratio of the input.
 * Thread: one at a time.
 */
#ifndef TW_UNPACK_H
#define TW_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "decoder/limits.h"

struct tw_unpack_ops {
	/* A file begins; `index` counts files from 0.  The name is valid during the call. */
	enum tw_status (*begin)(void *arg, uint32_t index, struct tw_str name, struct tw_err *err);
	enum tw_status (*data)(void *arg, const uint8_t *p, size_t n, struct tw_err *err);
	/* `cut`: the archive ended or was damaged inside the file. */
	enum tw_status (*end)(void *arg, bool cut, struct tw_err *err);
};

struct tw_unpack;

/* Whether these first bytes are an archive's; 512 bytes are enough. */
bool tw_unpack_knows(const uint8_t *head, size_t len);

struct tw_unpack *tw_unpack_new(struct tw_arena *a, const struct tw_limits *limits,
        const struct tw_unpack_ops *ops, void *arg);
struct tw_unpack *tw_unpack_free(struct tw_unpack *u);
enum tw_status tw_unpack_push(
        struct tw_unpack *u, const uint8_t *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* *ret_whole: the end of the archive was reached. */
enum tw_status tw_unpack_finish(
        struct tw_unpack *u, bool *ret_whole, struct tw_err *err) TW_MUST_USE;

#endif
