#include "server/base/file/file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "server/base/file/io.h"

static enum tw_status fail_errno(const char *doing, const char *path, struct tw_err *err)
{
	return tw_fail_errno(err, tw_disk_status(errno), "%.120s cannot be %s", path, doing);
}

static enum tw_status copy_all(int from, int to, const char *path, struct tw_err *err)
{
	bool reading = false;

	if (!tw_copy_fd(from, to, NULL, &reading))
		return fail_errno(reading ? "read" : "written", path, err);
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
		return tw_fail(err, TW_NOT_FOUND, "it is not there");
	st = tw_file_copy_from(in, to, err);
	(void)close(in);
	return st;
}
