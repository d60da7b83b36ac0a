/*
 * record.c - a library for LD_PRELOAD that records the operations of a process tree on a folder, in
 * order.
 *
 * e2e/power_cut.mjs derives from the record the states that a power cut may leave.  Two
 * files in the library's folder control it: <library>.ctl, mapped by all processes,
 * and <library>.log, to which each appends.  An operation and its line are one step
 * under a lock.  A sync has two lines, its begin and its end, with other operations
 * between: only operations before the begin are durable at the end.  The heads of
 * responses are recorded before they are sent, so that the reader knows the time of
 * each promise.
 *
 * SQLite's -shm files are left out: they are created again after a crash.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	MAX_NAME = 512,
	MAX_SENT = 2048,
	LOG_FD = 300
}; /* above the inherited descriptors of a child */

enum op { CREATE = 1, TRUNCATE, WRITE, RENAME, UNLINK, LINK, MKDIR, SYNC_BEGIN, SYNC_END, SENT };

/* The control file and the lines of the log; e2e/power_cut.mjs reads and writes the same. */
struct control {
	atomic_uint lock;
	uint32_t unused;
	atomic_uint_least64_t serial; /* of syncs */
	char under[MAX_NAME];         /* folder, absolute */
};

struct line {
	uint32_t bytes; /* all of it: this, path, path2, data */
	uint32_t op;
	uint64_t ino;
	uint64_t arg; /* offset, size, or the sync's serial */
	uint32_t path_bytes, path2_bytes;
};

static struct control *control;
static int log_fd = -1;

/* real_<name> is the next library's function of that name. */
#define REAL(type, name, ...)                                                                      \
	static type (*real_##name)(__VA_ARGS__);                                                   \
	void *symbol = real_##name ? NULL : dlsym(RTLD_NEXT, #name);                               \
	if (symbol)                                                                                \
	memcpy(&real_##name, &symbol, sizeof symbol)

static int open_real(const char *path, int flags, mode_t mode)
{
	REAL(int, open64, const char *, int, ...);
	return real_open64(path, flags, mode);
}

static void __attribute__((constructor)) attach(void)
{
	char path[MAX_NAME + 8];
	Dl_info self;
	void *at;
	int fd;

	if (!dladdr((void *)(uintptr_t)attach, &self) || strlen(self.dli_fname) > MAX_NAME)
		return;
	(void)snprintf(path, sizeof path, "%s.log", self.dli_fname);
	fd = open_real(path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
	log_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
	(void)close(fd);
	(void)snprintf(path, sizeof path, "%s.ctl", self.dli_fname);
	fd = open_real(path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0 || log_fd < 0)
		return;
	at = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (at != MAP_FAILED)
		control = at;
}

static bool counts(const char *path)
{
	size_t n = strlen(path);
	size_t under = control ? strlen(control->under) : 0;

	return control && strncmp(path, control->under, under) == 0 &&
	       (path[under] == '/' || path[under] == '\0') &&
	       !(n > 4 && strcmp(path + n - 4, "-shm") == 0);
}

/* The file of a descriptor, if it is below the folder. */
static bool is_file(int fd, struct stat *ret)
{
	char link[64], path[MAX_NAME];
	ssize_t n;

	if (!control || fd == log_fd || fstat(fd, ret) != 0 ||
	        (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode)))
		return false;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return counts(path);
}

static void lock(void)
{
	unsigned none = 0;

	while (!atomic_compare_exchange_weak(&control->lock, &none, 1)) {
		none = 0;
		(void)sched_yield();
	}
}

static void unlock(void)
{
	atomic_store(&control->lock, 0);
}

static void put(enum op op, uint64_t ino, uint64_t arg, const char *path, const char *path2,
        const struct iovec *data)
{
	struct line head = {.op = op,
	        .ino = ino,
	        .arg = arg,
	        .path_bytes = path ? (uint32_t)strlen(path) : 0,
	        .path2_bytes = path2 ? (uint32_t)strlen(path2) : 0};
	const struct iovec all[] = {{&head, sizeof head},
	        {(void *)(uintptr_t)path, head.path_bytes},
	        {(void *)(uintptr_t)path2, head.path2_bytes}, data ? *data : (struct iovec){0}};

	for (size_t i = 0; i < 4; i++)
		head.bytes += (uint32_t)all[i].iov_len;
	{
		REAL(ssize_t, writev, int, const struct iovec *, int);
		(void)!real_writev(log_fd, all, 4);
	}
}

static uint64_t ino_of(const char *path)
{
	struct stat s;

	return lstat(path, &s) == 0 ? s.st_ino : 0;
}

/* --- contents --- */

static void put_write(const struct stat *s, uint64_t at, const void *p, ssize_t n)
{
	const struct iovec data = {(void *)(uintptr_t)p, n > 0 ? (size_t)n : 0};

	if (n > 0)
		put(WRITE, s->st_ino, at, NULL, NULL, &data);
}

ssize_t write(int fd, const void *p, size_t n)
{
	struct stat s;
	off64_t at;
	ssize_t done;
	REAL(ssize_t, write, int, const void *, size_t);

	if (!is_file(fd, &s))
		return real_write(fd, p, n);
	lock();
	(void)fstat(fd, &s);
	at = fcntl(fd, F_GETFL) & O_APPEND ? s.st_size : lseek64(fd, 0, SEEK_CUR);
	done = real_write(fd, p, n);
	put_write(&s, (uint64_t)at, p, done);
	unlock();
	return done;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	struct stat s;
	ssize_t done;
	REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);

	if (!is_file(fd, &s))
		return real_pwrite64(fd, p, n, at);
	lock();
	done = real_pwrite64(fd, p, n, at);
	put_write(&s, (uint64_t)at, p, done);
	unlock();
	return done;
}

int ftruncate64(int fd, off64_t size)
{
	struct stat s;
	int rc;
	REAL(int, ftruncate64, int, off64_t);

	if (!is_file(fd, &s))
		return real_ftruncate64(fd, size);
	lock();
	rc = real_ftruncate64(fd, size);
	if (rc == 0)
		put(TRUNCATE, s.st_ino, (uint64_t)size, NULL, NULL, NULL);
	unlock();
	return rc;
}

/* --- syncs --- */

static int put_sync(int fd, int (*sync)(int fd))
{
	struct stat s;
	uint64_t serial;
	int rc;

	if (!is_file(fd, &s))
		return sync(fd);
	serial = atomic_fetch_add(&control->serial, 1);
	lock();
	put(SYNC_BEGIN, s.st_ino, serial, NULL, NULL, NULL);
	unlock();
	rc = sync(fd);
	lock();
	if (rc == 0)
		put(SYNC_END, s.st_ino, serial, NULL, NULL, NULL);
	unlock();
	return rc;
}

int fsync(int fd)
{
	REAL(int, fsync, int);
	return put_sync(fd, real_fsync);
}

int fdatasync(int fd)
{
	REAL(int, fdatasync, int);
	return put_sync(fd, real_fdatasync);
}

/* --- names --- */

int open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;
	bool is_new;
	int fd;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!counts(path) || !(flags & (O_CREAT | O_TRUNC)))
		return open_real(path, flags, mode);
	lock();
	is_new = ino_of(path) == 0;
	fd = open_real(path, flags, mode);
	if (fd >= 0 && is_new)
		put(CREATE, ino_of(path), 0, path, NULL, NULL);
	else if (fd >= 0 && flags & O_TRUNC)
		put(TRUNCATE, ino_of(path), 0, NULL, NULL, NULL);
	unlock();
	return fd;
}

int mkdir(const char *path, mode_t mode)
{
	int rc;
	REAL(int, mkdir, const char *, mode_t);

	if (!counts(path))
		return real_mkdir(path, mode);
	lock();
	rc = real_mkdir(path, mode);
	if (rc == 0)
		put(MKDIR, ino_of(path), 0, path, NULL, NULL);
	unlock();
	return rc;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	int rc;
	REAL(int, renameat2, int, const char *, int, const char *, unsigned);

	if (!counts(to))
		return real_renameat2(from_dir, from, to_dir, to, flags);
	lock();
	rc = real_renameat2(from_dir, from, to_dir, to, flags);
	if (rc == 0)
		put(RENAME, 0, 0, from, to, NULL);
	unlock();
	return rc;
}

int rename(const char *from, const char *to)
{
	int rc;
	REAL(int, rename, const char *, const char *);

	if (!counts(to))
		return real_rename(from, to);
	lock();
	rc = real_rename(from, to);
	if (rc == 0)
		put(RENAME, 0, 0, from, to, NULL);
	unlock();
	return rc;
}

int link(const char *from, const char *to)
{
	int rc;
	REAL(int, link, const char *, const char *);

	if (!counts(to))
		return real_link(from, to);
	lock();
	rc = real_link(from, to);
	if (rc == 0)
		put(LINK, 0, 0, from, to, NULL);
	unlock();
	return rc;
}

int unlink(const char *path)
{
	int rc;
	REAL(int, unlink, const char *);

	if (!counts(path))
		return real_unlink(path);
	lock();
	rc = real_unlink(path);
	if (rc == 0)
		put(UNLINK, 0, 0, path, NULL, NULL);
	unlock();
	return rc;
}

int unlinkat(int dir, const char *name, int flags)
{
	char link[64], path[2 * MAX_NAME] = "";
	ssize_t n;
	int rc;
	REAL(int, unlinkat, int, const char *, int);

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	n = readlink(link, path, MAX_NAME);
	if (n > 0)
		(void)snprintf(path + n, sizeof path - (size_t)n, "/%s", name);
	if (!counts(path))
		return real_unlinkat(dir, name, flags);
	lock();
	rc = real_unlinkat(dir, name, flags);
	if (rc == 0)
		put(UNLINK, 0, 0, path, NULL, NULL);
	unlock();
	return rc;
}

/* --- answers --- */

static void put_sent(const void *p, size_t n)
{
	const struct iovec head = {(void *)(uintptr_t)p, n < MAX_SENT ? n : MAX_SENT};

	if (!control || n < 10 || memcmp(p, "HTTP/1.1 2", 10) != 0)
		return;
	lock();
	put(SENT, 0, 0, NULL, NULL, &head);
	unlock();
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	REAL(ssize_t, send, int, const void *, size_t, int);
	put_sent(p, n);
	return real_send(fd, p, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
	if (m->msg_iovlen)
		put_sent(m->msg_iov[0].iov_base, m->msg_iov[0].iov_len);
	return real_sendmsg(fd, m, flags);
}
