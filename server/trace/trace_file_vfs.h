/*
 * trace_file_vfs.h - SQLite on a descriptor that is open already.
 *
 * The process that decodes may open nothing, so its database is a descriptor
 * its parent made.  One file, no journal, no locks, nothing temporary on disk.
 * Thread: any.
 */
#ifndef TW_TRACE_FILE_VFS_H
#define TW_TRACE_FILE_VFS_H

#include <stddef.h>

#include "decoder/base/arena.h"

enum { TW_TRACE_VFS_NAME_BYTES = 16 };

/* The name for sqlite3_open_v2's last argument; NULL when SQLite has no memory. */
const char *tw_trace_vfs(void);
/* The file name that stands for a descriptor in it.  The descriptor stays the caller's and must
 * outlive the database. */
void tw_trace_vfs_name(int fd, char *ret, size_t cap);

/* For SQLite's own files: a file: URI of the path, read as one that nobody changes, with everything
 * but plain characters escaped; NULL when memory is short. */
char *tw_trace_path_uri(struct tw_arena *a, const char *path);

#endif
