#include "server/base/file/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/log.h"

enum { PATH_BYTES = 1400, SHARE_OF_DISK = 20, STEP_LEAST = 64 << 10, PROBE_BYTES = 512 };
_Static_assert((int)PROBE_BYTES <= (int)TW_RESERVE_MIN, "the probe writes allocated blocks alone");

static enum tw_status fail_errno(const char *doing, struct tw_err *err)
{
	int why = errno;
	char text[96];

	if (tw_is_disk_full(why))
		return tw_fail(err, TW_FULL, "no space left for the reserve");
	return tw_fail(err, TW_IO, "the data folder cannot be %s: %s", doing,
	        strerror_r(why, text, sizeof text));
}

static void path_of(const char *dir, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%.1300s/reserve", dir);
}

static uint64_t free_bytes(const char *dir)
{
	struct tw_disk d;

	(void)tw_disk_of(dir, &d);
	return d.free_bytes;
}

/* Space usable by this process: root can use the blocks that the file system reserves for it. */
static uint64_t usable_bytes(const char *dir)
{
	struct statvfs v;

	if (statvfs(dir, &v) != 0)
		return 0;
	return (uint64_t)(geteuid() == 0 ? v.f_bfree : v.f_bavail) * v.f_frsize;
}

static uint64_t size_of(const char *dir)
{
	char path[PATH_BYTES];
	struct stat s;

	path_of(dir, path);
	return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

/* 0 for a sparse file, as a copy may be: writing to it needs space, and shortening it frees none.
 * Used only before allocating: with compressed blocks, the count stays low. */
static uint64_t allocated_size(const char *dir)
{
	char path[PATH_BYTES];
	struct stat s;

	path_of(dir, path);
	return stat(path, &s) == 0 && s.st_blocks >= s.st_size / 512 ? (uint64_t)s.st_size : 0;
}

uint64_t tw_reserve_size(const char *dir, uint64_t bytes)
{
	struct tw_disk d;

	(void)tw_disk_of(dir, &d);
	if (bytes > d.total_bytes / SHARE_OF_DISK)
		bytes = d.total_bytes / SHARE_OF_DISK;
	bytes -= bytes % TW_RESERVE_MIN;
	return bytes < TW_RESERVE_MIN ? TW_RESERVE_MIN : bytes;
}

/* Allocates blocks without writing them if the file system supports that. */
static enum tw_status allocate(int fd, uint64_t from, uint64_t size, struct tw_err *err)
{
	int rc = posix_fallocate(fd, (off_t)from, (off_t)(size - from));

	if (rc != 0) {
		if (ftruncate(fd, (off_t)from) != 0)
			rc = errno;
		errno = rc;
		return fail_errno("written", err);
	}
	return fsync(fd) == 0 ? TW_OK : fail_errno("synced", err);
}

enum tw_status tw_reserve_fill(const char *dir, uint64_t size, struct tw_err *err)
{
	const uint64_t has = allocated_size(dir);
	char path[PATH_BYTES];
	enum tw_status st;
	int fd;

	if (has >= size)
		return TW_OK;
	path_of(dir, path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail_errno("written", err);
	st = free_bytes(dir) < size - has + size
	             ? tw_fail(err, TW_FULL, "no space left for the reserve")
	             : allocate(fd, has, size, err);
	(void)close(fd);
	if (st == TW_OK)
		tw_log(TW_LOG_INFO, "reserve_filled", tw_log_text("file", path),
		        tw_log_number("bytes", (int64_t)size));
	return st;
}

bool tw_reserve_exists(const char *dir)
{
	char path[PATH_BYTES];

	path_of(dir, path);
	return access(path, F_OK) == 0;
}

/* An eighth of the rest: a program that fills the disk takes one step, not all of them. */
static off_t size_after_step(off_t size)
{
	const off_t step =
	        size / TW_RESERVE_STEPS > STEP_LEAST ? size / TW_RESERVE_STEPS : STEP_LEAST;
	off_t left = size > step ? size - step : 0;

	left -= left % TW_RESERVE_MIN;
	return left < TW_RESERVE_MIN ? TW_RESERVE_MIN : left;
}

static uint64_t release(const char *dir)
{
	char path[PATH_BYTES];
	struct stat s;
	off_t given = 0;
	int fd;

	path_of(dir, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	if (fstat(fd, &s) == 0 && s.st_size > TW_RESERVE_MIN)
		given = ftruncate(fd, size_after_step(s.st_size)) == 0
		                ? s.st_size - size_after_step(s.st_size)
		                : 0;
	(void)close(fd);
	if (given)
		tw_log(TW_LOG_WARN, "reserve_used", tw_log_text("file", path),
		        tw_log_number("bytes_left", (int64_t)size_after_step(s.st_size)));
	return (uint64_t)given;
}

static bool folder_of(const char *path, char out[PATH_BYTES])
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash || slash - path >= PATH_BYTES)
		return false;
	(void)snprintf(out, PATH_BYTES, "%.*s", (int)(slash - path), path);
	return true;
}

uint64_t tw_reserve_release(const char *path)
{
	char dir[PATH_BYTES];

	return folder_of(path, dir) ? release(dir) : 0;
}

bool tw_reserve_release_to(const char *path, uint64_t at)
{
	const uint64_t bytes = tw_reserve_release(path);
	int fd = bytes ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

	if (fd >= 0) { /* on failure another program may take the blocks */
		(void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes);
		(void)close(fd);
	}
	return bytes != 0;
}

void tw_reserve_ensure(const char *path, uint64_t bytes)
{
	char dir[PATH_BYTES];

	if (!folder_of(path, dir) || size_of(dir) <= TW_RESERVE_MIN)
		return;
	while (usable_bytes(dir) < bytes && release(dir))
		continue;
}

void tw_reserve_release_if_low(const char *dir)
{
	const uint64_t has = size_of(dir);

	if (has > TW_RESERVE_MIN && usable_bytes(dir) < has - (uint64_t)size_after_step((off_t)has))
		(void)release(dir);
}

enum tw_status tw_reserve_check(const char *dir, uint64_t size, struct tw_err *err)
{
	if (size == 0 || (size_of(dir) >= size && free_bytes(dir) >= size / TW_RESERVE_STEPS))
		return TW_OK;
	return tw_fail(
	        err, TW_FULL, "the disk is full: uploads are not accepted until there is space");
}

enum tw_status tw_reserve_probe(const char *dir, struct tw_err *err)
{
	static const uint8_t block[PROBE_BYTES];
	char path[PATH_BYTES];
	enum tw_status st = TW_OK;
	int fd;

	path_of(dir, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? TW_OK : fail_errno("written", err);
	if (!tw_pwrite_all(fd, block, sizeof block, 0) || fdatasync(fd) != 0)
		st = fail_errno("written", err);
	(void)close(fd);
	return st;
}

bool tw_disk_of(const char *folder, struct tw_disk *ret)
{
	struct statvfs fs;

	*ret = (struct tw_disk){0};
	if (statvfs(folder, &fs) != 0)
		return false;
	ret->used_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	ret->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	ret->size_bytes = ret->used_bytes + ret->free_bytes;
	ret->total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	return true;
}

double tw_disk_free_percent(const struct tw_disk *d)
{
	return d->size_bytes ? (double)d->free_bytes * 100 / (double)d->size_bytes : 0;
}

uint64_t tw_disk_bytes_above(const struct tw_disk *d, unsigned percent)
{
	const uint64_t most = d->size_bytes / 100 * percent + d->size_bytes % 100 * percent / 100;

	return d->used_bytes > most ? d->used_bytes - most : 0;
}
