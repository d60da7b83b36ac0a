#include "server/decode/scratch_file.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server/base/file/io.h"

enum { CHECK_BYTES = 64 << 20 };

static enum tw_status fail_write(enum tw_status st, const char *why, struct tw_err *err)
{
	return tw_fail(err, st,
	        "the temporary file for the calls of a large trace could not be written: %s", why);
}

/* Before scratch grows to `bytes`. */
static enum tw_status check_free(struct tw_scratch_file *f, uint64_t bytes, struct tw_err *err)
{
	struct statfs fs;

	if (bytes <= f->checked_bytes)
		return TW_OK;
	if (fstatfs(f->fd, &fs) != 0)
		return fail_write(TW_IO, strerror(errno), err);
	if ((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < f->min_free_bytes)
		return fail_write(TW_FULL, "less than --min-free of the disk is free", err);
	f->checked_bytes = bytes + CHECK_BYTES;
	return TW_OK;
}

static enum tw_status write_at(void *arg, uint64_t at, const void *p, size_t n, struct tw_err *err)
{
	struct tw_scratch_file *f = arg;
	enum tw_status st = check_free(f, at + n, err);

	if (st != TW_OK)
		return st;
	f->used = true;
	if (tw_pwrite_all(f->fd, p, n, f->from + at))
		return TW_OK;
	return fail_write(tw_disk_status(errno), strerror(errno), err);
}

static enum tw_status read_at(void *arg, uint64_t at, void *p, size_t n, struct tw_err *err)
{
	const struct tw_scratch_file *f = arg;
	const ssize_t got = tw_pread_full(f->fd, p, n, f->from + at);

	if (got == (ssize_t)n)
		return TW_OK;
	return tw_fail(
	        err, TW_IO, "the temporary file for the calls of a large trace could not be read");
}

struct tw_scratch tw_scratch_file(struct tw_scratch_file *file)
{
	return (struct tw_scratch){
	        file, TW_SCRATCH_WINDOW_BYTES, file->max_bytes, write_at, read_at};
}

enum tw_status tw_scratch_file_end(struct tw_scratch_file *file, uint64_t bytes, struct tw_err *err)
{
	if (!file->used || ftruncate(file->fd, (off_t)bytes) == 0)
		return TW_OK;
	return tw_fail_errno(err, TW_IO, "a temporary file could not be truncated");
}
