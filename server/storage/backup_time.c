#include "server/storage/backup_time.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1500 };

static void path_of(const char *data_dir, char path[PATH_BYTES])
{
	(void)snprintf(path, PATH_BYTES, "%.1480s/backup.done", data_dir);
}

enum tw_status tw_backup_record_time(const char *data_dir, struct tw_err *err)
{
	char path[PATH_BYTES];
	bool done;
	int fd;

	path_of(data_dir, path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	done = fd >= 0 && futimens(fd, NULL) == 0;
	if (!done)
		(void)tw_fail_errno(err, TW_IO, "%.200s", path);
	if (fd >= 0)
		(void)close(fd);
	return done ? TW_OK : TW_IO;
}

int64_t tw_backup_time_ms(const char *data_dir)
{
	char path[PATH_BYTES];
	struct stat s;

	path_of(data_dir, path);
	if (stat(path, &s) != 0)
		return 0;
	return (int64_t)s.st_mtim.tv_sec * 1000 + s.st_mtim.tv_nsec / 1000000;
}
