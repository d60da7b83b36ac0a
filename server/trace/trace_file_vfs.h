/*
 * trace_file_vfs.h - the bytes of a trace file, or of an export, as an SQLite database.
 *
 * The decoder process may not open files, so its database is a descriptor created by its parent.  A
 * small database stays in memory while it is written; its file is a compressed copy (16 nearly
 * empty pages are 2 KB), which is read into memory again.  Larger databases are stored
 * unchanged; adjacent pages are written together.
 * One file per database; no journal, no locks, no temporary files.
 * Thread: any; an image belongs to its database.
 */
#ifndef TW_TRACE_FILE_VFS_H
#define TW_TRACE_FILE_VFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "decoder/base/buf.h"

enum { TW_TRACE_PACKED_BYTES = 256 << 10 }; /* of the database, at most */

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

struct tw_trace_image {
	bool in_memory;       /* false: the database is the file */
	struct tw_buf memory; /* the database, if in_memory */
	int fd;               /* the caller's */
	struct tw_buf run;    /* adjacent pages that are not yet in the file */
	uint64_t run_at;      /* their offset */
};

/* For writing: in memory until it is larger than TW_TRACE_PACKED_BYTES.  Set fd before more than a
 * schema is written. */
void tw_trace_image_begin(struct tw_trace_image *i);
/* Writes the file, if it is not written yet, and returns its size.  `zstd` has its parameters. */
enum tw_status tw_trace_image_store(struct tw_trace_image *i, struct ZSTD_CCtx_s *zstd,
        uint64_t *ret_bytes, struct tw_err *err) TW_MUST_USE;
/* For reading: TW_CORRUPT if the file is a damaged compressed copy. */
enum tw_status tw_trace_image_load(
        struct tw_trace_image *i, int fd, struct ZSTD_DCtx_s *zstd, struct tw_err *err) TW_MUST_USE;
/* Returns the number of bytes read: fewer than n at the end of the database, -1 on failure. */
ssize_t tw_trace_image_read(struct tw_trace_image *i, void *to, size_t n, uint64_t at);
void tw_trace_image_done(struct tw_trace_image *i);

/* A database in memory may be replaced by another between statements if both have the same schema.
 * SQLite then discards its page cache, as the file change counter differs. */
enum { TW_TRACE_SCHEMA_BYTES = 4096 }; /* a page */
/* Copies the schema; all zeros: the database cannot be replaced. */
void tw_trace_image_schema(const struct tw_trace_image *i, uint8_t ret[TW_TRACE_SCHEMA_BYTES]);
bool tw_trace_image_has_schema(
        const struct tw_trace_image *i, const uint8_t schema[TW_TRACE_SCHEMA_BYTES]);

/* As sqlite3_open_v2.  The image must outlive the database and may not move. */
int tw_trace_vfs_open(struct tw_trace_image *i, int flags, sqlite3 **ret);

#endif
