/*
 * storage_record.h - data/storage records the location of a data folder's files if it is not the
 * folder.
 *
 * Written by the server (and by `tracewell migrate` for its target), so that tools on the folder
 * use the same location, and a start without --blobs, or with a different one, does not treat files
 * as lost. Contains no secrets.
 * Thread: one.
 */
#ifndef TW_STORAGE_RECORD_H
#define TW_STORAGE_RECORD_H

#include "decoder/base/arena.h"
#include "decoder/base/err.h"
#include "server/base/storage.h"

struct tw_catalogue;

struct tw_blobs;

/* The recorded location, otherwise the folder itself; *ret points into the arena.  Settings of the
 * environment override those of the file. */
enum tw_status tw_storage_of(const char *data_dir, struct tw_arena *a, struct tw_storage *ret,
        struct tw_err *err) TW_MUST_USE;
/* Before a start: TW_CONFLICT with a message if the recorded location differs from `s`. */
enum tw_status tw_storage_check(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err) TW_MUST_USE;
/* Whether `b` has files that the catalogue refers to: checks a few without fetching them.
 * TW_CONFLICT with a message if none exists.  *ret_names: the catalogue refers to some. */
enum tw_status tw_storage_verify(struct tw_catalogue *c, struct tw_blobs *b, bool *ret_names,
        struct tw_err *err) TW_MUST_USE;
/* Whether the folder was served from another location before. */
bool tw_storage_is_recorded(const char *data_dir);
/* Writes the file; removes it if the location is the data folder itself. */
enum tw_status tw_storage_record(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err) TW_MUST_USE;

#endif
