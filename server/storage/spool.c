#include "server/storage/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1500, TRIES = 10 };

static bool lock_of(const char *path, char out[PATH_BYTES])
{
	return snprintf(out, PATH_BYTES, "%s/.lock", path) < PATH_BYTES;
}

/* Another server may have removed the folder as a dead server's before it was locked. */
static bool is_there(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_nlink > 0;
}

enum tw_status tw_spool_own(const char *path, int *ret_lock, struct tw_err *err)
{
	char lock[PATH_BYTES];
	int fd = -1;

	if (!lock_of(path, lock))
		return tw_fail(err, TW_BAD_REQUEST, "--data is too long");
	for (int i = 0; i < TRIES; i++) {
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			break;
		fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0 && flock(fd, LOCK_EX) == 0 && is_there(fd)) {
			*ret_lock = fd;
			return TW_OK;
		}
		if (fd >= 0)
			(void)close(fd);
	}
	return tw_fail_errno(err, TW_IO, "%s cannot be made and locked", path);
}

bool tw_spool_is_dead(const char *path)
{
	char lock[PATH_BYTES];
	int fd = lock_of(path, lock) ? open(lock, O_RDWR | O_CLOEXEC) : -1;
	const bool dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (dead)
		(void)unlink(lock); /* a server waiting for the lock creates another */
	if (fd >= 0)
		(void)close(fd);
	return dead;
}
