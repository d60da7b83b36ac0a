#include "server/decode/scratch_file.h"

#include <errno.h>
#include <unistd.h>

#include "server/base/file/io.h"

static enum tw_status write_at(void *arg, uint64_t at, const void *p, size_t n, struct tw_err *err)
{
	struct tw_scratch_file *f = arg;

	f->used = true;
	if (tw_pwrite_all(f->fd, p, n, f->from + at))
		return TW_OK;
	return tw_fail_errno(err, tw_disk_status(errno),
	        "the temporary file for the calls of a large trace could not be written");
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
