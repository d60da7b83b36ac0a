#include "file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 17 };

static enum tw_status fail_errno(const char *doing, const char *path, struct tw_err *err)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	return tw_fail(err, full ? TW_FULL : TW_IO, TW_NO_OFFSET, "%.120s cannot be %s (errno %d)",
	        path, doing, errno);
}

static enum tw_status copy_all(int from, int to, const char *path, struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES];
	ssize_t n;

	while ((n = read(from, piece, sizeof piece)) > 0)
		for (ssize_t at = 0, put; at < n; at += put) {
			put = write(to, piece + at, (size_t)(n - at));
			if (put < 0)
				return fail_errno("written", path, err);
		}
	if (n < 0)
		return fail_errno("read", path, err);
	return fsync(to) == 0 ? TW_OK : fail_errno("made durable", path, err);
}

enum tw_status tw_file_copy_from(int from, const char *to, struct tw_err *err)
{
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum tw_status st = out < 0 ? fail_errno("made", to, err) : copy_all(from, out, to, err);

	if (out >= 0)
		(void)close(out);
	return st;
}

enum tw_status tw_file_copy(const char *from, const char *to, struct tw_err *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (in < 0)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "it is not there");
	st = tw_file_copy_from(in, to, err);
	(void)close(in);
	return st;
}
