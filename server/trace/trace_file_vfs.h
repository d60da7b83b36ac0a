/*
 * trace_file_vfs.h - an SQLite VFS on an open descriptor.
 *
 * The decoder process may not open files, so its database is a descriptor created by its parent.
 * One file; no journal, no locks, no temporary files.
 * Thread: any.
 */
#ifndef TW_TRACE_FILE_VFS_H
#define TW_TRACE_FILE_VFS_H

#include <stddef.h>

#include "decoder/base/arena.h"

enum { TW_TRACE_VFS_NAME_BYTES = 16 };

/* The name for sqlite3_open_v2's last argument; NULL if SQLite has no memory. */
const char *tw_trace_vfs(void);
/* The file name that represents a descriptor.  The caller keeps the descriptor, which must outlive
 * the database. */
void tw_trace_vfs_name(int fd, char *ret, size_t cap);

/* For SQLite's default VFS: a file: URI of the path, immutable, with special characters escaped;
 * NULL if memory is short. */
char *tw_trace_path_uri(struct tw_arena *a, const char *path);

#endif
