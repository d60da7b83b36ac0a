/*
 * io.h - complete reads and writes of descriptors, with all handling of EINTR and short counts;
 * durable copies of files.
 *
 * For blocking descriptors: EAGAIN is an error.  errno has the reason of a failure.  Thread:
 * any.
 */
#ifndef TW_IO_H
#define TW_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decoder/base/err.h"

/* One read(2), repeated on EINTR: 0 at the end, -1 on failure. */
ssize_t tw_read_some(int fd, void *p, size_t n);
/* n bytes, or fewer if the file ends before; -1 on failure. */
ssize_t tw_read_full(int fd, void *p, size_t n);
ssize_t tw_pread_full(int fd, void *p, size_t n, uint64_t at);
/* Reads up to n bytes from the start of a file.  Returns the count, or -1. */
ssize_t tw_file_read(const char *path, void *p, size_t n);
/* Reads up to cap - 1 bytes as a NUL-terminated string.  On failure returns false and sets out
 * to "". */
bool tw_file_text(const char *path, char *out, size_t cap);
/* The complete content as hex digits and a 0. */
enum tw_status tw_fd_hex(int fd, char *out, size_t cap, struct tw_err *err) TW_MUST_USE;
bool tw_write_all(int fd, const void *p, size_t n);
/* The same; *ret_done bytes were written, also on failure. */
bool tw_write_counted(int fd, const void *p, size_t n, size_t *ret_done);
bool tw_pwrite_all(int fd, const void *p, size_t n, uint64_t at);
/* Copies `from` from an offset on to `to`; the position of `from` is neither used nor changed.
 * *ret_bytes (may be NULL): number of bytes.  On failure *ret_reading (may be NULL) is true if the
 * read failed, false if the write failed. */
bool tw_copy_fd_from(int from, uint64_t at, int to, uint64_t *ret_bytes, bool *ret_reading);

/* Replaces a small file, readable by its owner only: writes path.new, syncs and renames it, so that
 * a crash leaves the old or the new content.  TW_FULL if the disk is full.  The name is durable
 * after tw_sync_folder. */
enum tw_status tw_file_replace(
        const char *path, const void *p, size_t n, struct tw_err *err) TW_MUST_USE;
/* Makes the names in a folder durable. */
bool tw_sync_folder(const char *path);

/* Whether this errno means that the disk, or its quota, is full. */
bool tw_is_disk_full(int error);
/* TW_FULL for such an errno, otherwise TW_IO. */
enum tw_status tw_disk_status(int error);
/* Fails with tw_disk_status(errno) and the message "cannot open /data/x" and errno's. */
enum tw_status tw_file_fail(const char *doing, const char *path, struct tw_err *err);

/* Marks every open descriptor from `first` on close-on-exec: child programs must not inherit
 * descriptors that this program's launcher left open. */
void tw_close_on_exec_from(int first);

/* Copies to `to`, which is replaced and readable by its owner only.  TW_NOT_FOUND if `from` does
 * not exist or is a link. */
enum tw_status tw_file_copy(const char *from, const char *to, struct tw_err *err) TW_MUST_USE;

/* Copies the rest of an open file. */
enum tw_status tw_file_copy_from(int from, const char *to, struct tw_err *err) TW_MUST_USE;

#endif
