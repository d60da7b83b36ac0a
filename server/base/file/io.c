#include "server/base/file/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoder/base/str.h"

enum { COPY_BYTES = 1 << 16, PATH_BYTES = 1540 };
/* <linux/close_range.h> is missing in older headers. */
#define CLOEXEC_RANGE 4U

ssize_t tw_read_some(int fd, void *p, size_t n)
{
	ssize_t k;

	do
		k = read(fd, p, n);
	while (k < 0 && errno == EINTR);
	return k;
}

ssize_t tw_read_full(int fd, void *p, size_t n)
{
	size_t done = 0;
	ssize_t k = 1;

	while (done < n && k > 0) {
		k = tw_read_some(fd, (uint8_t *)p + done, n - done);
		done += k > 0 ? (size_t)k : 0;
	}
	return k < 0 ? -1 : (ssize_t)done;
}

static ssize_t pread_some(int fd, void *p, size_t n, uint64_t at)
{
	ssize_t k;

	do
		k = pread(fd, p, n, (off_t)at);
	while (k < 0 && errno == EINTR);
	return k;
}

ssize_t tw_pread_full(int fd, void *p, size_t n, uint64_t at)
{
	size_t done = 0;
	ssize_t k = 1;

	while (done < n && k > 0) {
		k = pread_some(fd, (uint8_t *)p + done, n - done, at + done);
		done += k > 0 ? (size_t)k : 0;
	}
	return k < 0 ? -1 : (ssize_t)done;
}

/* A count of 0 for a positive size would loop forever. */
static bool advance(ssize_t k, size_t *done)
{
	if (k > 0)
		*done += (size_t)k;
	else if (k == 0)
		errno = EIO;
	return k > 0 || (k < 0 && errno == EINTR);
}

bool tw_write_counted(int fd, const void *p, size_t n, size_t *ret_done)
{
	*ret_done = 0;
	while (*ret_done < n)
		if (!advance(write(fd, (const uint8_t *)p + *ret_done, n - *ret_done), ret_done))
			return false;
	return true;
}

ssize_t tw_file_read(const char *path, void *p, size_t n)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? tw_read_full(fd, p, n) : -1;
	const int why = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = why;
	return got;
}

bool tw_file_text(const char *path, char *out, size_t cap)
{
	const ssize_t n = tw_file_read(path, out, cap - 1);

	out[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

enum tw_status tw_fd_hex(int fd, char *out, size_t cap, struct tw_err *err)
{
	static const char digits[] = "0123456789abcdef";
	const size_t most = cap / 2;
	uint8_t *const bytes = (uint8_t *)out + cap - most; /* read there, written from the front */
	const ssize_t n = tw_pread_full(fd, bytes, most, 0);

	if (n < 0)
		return tw_fail_errno(err, TW_IO, "a file cannot be read");
	if (2 * (size_t)n >= cap)
		return tw_fail(err, TW_TOO_LARGE, "a file is larger than %zu bytes", most);
	for (size_t i = 0; i < (size_t)n; i++) {
		const uint8_t b = bytes[i];

		out[2 * i] = digits[b >> 4];
		out[2 * i + 1] = digits[b & 15];
	}
	out[2 * n] = '\0';
	return TW_OK;
}

bool tw_write_all(int fd, const void *p, size_t n)
{
	size_t done;

	return tw_write_counted(fd, p, n, &done);
}

bool tw_pwrite_all(int fd, const void *p, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;)
		if (!advance(pwrite(fd, (const uint8_t *)p + done, n - done, (off_t)(at + done)),
		            &done))
			return false;
	return true;
}

static bool copy(int from, const uint64_t *at, int to, uint64_t *ret_bytes, bool *ret_reading)
{
	uint8_t piece[COPY_BYTES];
	uint64_t bytes = 0;
	bool written = true;
	ssize_t n;

	do {
		n = at ? pread_some(from, piece, sizeof piece, *at + bytes)
		       : tw_read_some(from, piece, sizeof piece);
		written = n <= 0 || tw_write_all(to, piece, (size_t)n);
		bytes += n > 0 && written ? (uint64_t)n : 0;
	} while (n > 0 && written);
	if (ret_bytes)
		*ret_bytes = bytes;
	if (ret_reading)
		*ret_reading = n < 0;
	return n == 0;
}

bool tw_copy_fd_from(int from, uint64_t at, int to, uint64_t *ret_bytes, bool *ret_reading)
{
	return copy(from, &at, to, ret_bytes, ret_reading);
}

/* Kernels before 5.11 lack close_range with that flag (ENOSYS, EINVAL), and a seccomp filter may
 * refuse it (EPERM). */
void tw_close_on_exec_from(int first)
{
	struct dirent *e;
	DIR *d;

	if (syscall(SYS_close_range, (unsigned)first, ~0U, CLOEXEC_RANGE) == 0)
		return;
	d = opendir("/proc/self/fd");
	while (d && (e = readdir(d))) {
		uint64_t fd;

		if (tw_str_u64(tw_str_of(e->d_name), INT32_MAX, &fd) && (int)fd >= first)
			(void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	}
	if (d)
		(void)closedir(d);
}

enum tw_status tw_file_replace(const char *path, const void *p, size_t n, struct tw_err *err)
{
	char fresh[PATH_BYTES];
	int fd;
	bool ok;
	enum tw_status st;

	(void)snprintf(fresh, sizeof fresh, "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ok = fd >= 0 && tw_write_all(fd, p, n) && fsync(fd) == 0 && rename(fresh, path) == 0;
	st = ok ? TW_OK
	        : tw_fail_errno(err, tw_disk_status(errno), "%.120s cannot be replaced", path);
	if (fd >= 0)
		(void)close(fd);
	if (!ok)
		(void)unlink(fresh);
	return st;
}

bool tw_sync_folder(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const bool done = fd >= 0 && fsync(fd) == 0;
	const int why = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = why;
	return done;
}

bool tw_is_disk_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

enum tw_status tw_disk_status(int error)
{
	return tw_is_disk_full(error) ? TW_FULL : TW_IO;
}

enum tw_status tw_file_fail(const char *doing, const char *path, struct tw_err *err)
{
	return tw_fail_errno(err, tw_disk_status(errno), "cannot %s %.140s", doing, path);
}

static enum tw_status copy_all(int from, int to, const char *path, struct tw_err *err)
{
	bool reading = false;

	if (!copy(from, NULL, to, NULL, &reading))
		return tw_file_fail(reading ? "read" : "write", path, err);
	return fsync(to) == 0 ? TW_OK : tw_file_fail("sync", path, err);
}

enum tw_status tw_file_copy_from(int from, const char *to, struct tw_err *err)
{
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum tw_status st = out < 0 ? tw_file_fail("make", to, err) : copy_all(from, out, to, err);

	if (out >= 0)
		(void)close(out);
	return st;
}

enum tw_status tw_file_copy(const char *from, const char *to, struct tw_err *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (in < 0)
		return tw_fail(err, TW_NOT_FOUND, "it does not exist");
	st = tw_file_copy_from(in, to, err);
	(void)close(in);
	return st;
}
