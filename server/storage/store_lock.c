#include "server/storage/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

enum { PATH_BYTES = 1400 };

enum tw_status tw_store_lock_open(
        const char *data_dir, bool serves, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES];
	int fd;

	(void)snprintf(path, sizeof path, "%s/storage.lock", data_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	*ret_fd = fd;
	if (fd >= 0 && (serves || flock(fd, LOCK_SH) == 0))
		return TW_OK;
	return tw_fail_errno(err, TW_IO, "%.120s cannot be locked", path);
}

bool tw_store_lock_try(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void tw_store_lock_end(int fd)
{
	(void)flock(fd, LOCK_UN);
}
