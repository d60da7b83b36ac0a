/*
 * lost.h - data/lost/: files without a row in the catalogue, kept for a time instead of deleted.
 *
 * lost/YYYY-MM-DD/KEY, with the day (UTC) on which the file was moved and its key in the data
 * folder (blobs/ab/..., traces/ab/..., records/x/...).  The file keeps its modification time.
 * If a newer catalogue with a row for the file is restored, the next start moves the file back.
 * Only data folders have lost/: objects of a store remain in place.
 * Thread: any.
 */
#ifndef TW_LOST_H
#define TW_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder/base/err.h"

struct tw_lost_file {
	char day[12];    /* "2026-11-23" */
	const char *key; /* "blobs/ab/..." */
	uint64_t bytes;
};

typedef enum tw_status tw_lost_each_fn(void *arg, const struct tw_lost_file *f, struct tw_err *err);

/* Moves data/KEY there.  TW_OK if the file does not exist. */
enum tw_status tw_lost_take(const char *data, const char *key, struct tw_err *err) TW_MUST_USE;
/* Moves the file back, unless its old path exists. */
enum tw_status tw_lost_return(
        const char *data, const struct tw_lost_file *f, struct tw_err *err) TW_MUST_USE;
/* The same for the file of a key, if there is one. */
enum tw_status tw_lost_return_key(
        const char *data, const char *key, struct tw_err *err) TW_MUST_USE;
/* All files, unordered; stops at the first failure of `each`. */
enum tw_status tw_lost_each(
        const char *data, tw_lost_each_fn *each, void *arg, struct tw_err *err) TW_MUST_USE;
/* Deletes the files that were moved here more than `days` days before now; 0: all. */
enum tw_status tw_lost_expire(const char *data, unsigned days, int64_t now_ms, uint64_t *ret_files,
        struct tw_err *err) TW_MUST_USE;

#endif
