/*
 * fault.c - a library for LD_PRELOAD that makes the n-th disk operation of a process tree fail.
 *
 * Steered by a file beside the library, <library>.ctl, that all processes map:
 * the test copies the library for itself, writes the file, and may change it at
 * any time.  Counted are the operations below that touch files under `under`;
 * sockets, pipes and the log are left alone.  No environment is needed, since
 * the server clears that of its decoders.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAME = 512 };

/* The control file; e2e/fault.test.mjs writes the same layout. */
struct control {
	atomic_uint_least64_t calls; /* so far */
	uint64_t at;                 /* the call that fails, from 1; 0: none */
	uint64_t until;              /* and those after it up to this one */
	atomic_uint_least64_t hits;  /* failures made */
	uint64_t error;              /* errno of a failure */
	char what[152];              /* the operation that failed first, and its file */
	char under[MAX_NAME];        /* folder, absolute */
};

static struct control *control;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void __attribute__((constructor)) attach(void)
{
	int (*real_open)(const char *, int, ...);
	char path[MAX_NAME + 8];
	void *symbol = next("open64"), *at;
	Dl_info self;
	int fd;

	memcpy(&real_open, &symbol, sizeof symbol);
	if (!dladdr((void *)(uintptr_t)attach, &self) || strlen(self.dli_fname) > MAX_NAME)
		return;
	(void)snprintf(path, sizeof path, "%s.ctl", self.dli_fname);
	fd = real_open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	at = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (at != MAP_FAILED)
		control = at;
}

static bool is_under(const char *path)
{
	return control && strncmp(path, control->under, strlen(control->under)) == 0;
}

/* The path of an open file that counts; false for others. */
static bool is_file_under(int fd, char path[MAX_NAME])
{
	char link[64];
	struct stat st;
	ssize_t n;

	if (!control || control->at == 0 || fstat(fd, &st) != 0 ||
	        (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, MAX_NAME - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return is_under(path);
}

/* Counts one operation; true when it is to fail, errno set. */
static bool fails(const char *what, const char *path)
{
	uint64_t n;

	if (!is_under(path) || control->at == 0)
		return false;
	n = atomic_fetch_add(&control->calls, 1) + 1;
	if (n < control->at || n > control->until)
		return false;
	if (atomic_fetch_add(&control->hits, 1) == 0)
		(void)snprintf(control->what, sizeof control->what, "%s %.100s", what,
		        path + strlen(control->under));
	errno = (int)control->error;
	return true;
}

static bool fails_at(const char *what, int fd)
{
	char path[MAX_NAME];

	return is_file_under(fd, path) && fails(what, path);
}

/* real_<name> is the next library's function of that name. */
#define REAL(type, name, ...)                                                                      \
	static type (*real_##name)(__VA_ARGS__);                                                   \
	void *symbol = real_##name ? NULL : next(#name);                                           \
	if (symbol)                                                                                \
	memcpy(&real_##name, &symbol, sizeof symbol)

ssize_t write(int fd, const void *p, size_t n)
{
	REAL(ssize_t, write, int, const void *, size_t);
	return fails_at("write", fd) ? -1 : real_write(fd, p, n);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
	return fails_at("pwrite", fd) ? -1 : real_pwrite64(fd, p, n, at);
}

int fsync(int fd)
{
	REAL(int, fsync, int);
	return fails_at("fsync", fd) ? -1 : real_fsync(fd);
}

int fdatasync(int fd)
{
	REAL(int, fdatasync, int);
	return fails_at("fdatasync", fd) ? -1 : real_fdatasync(fd);
}

int ftruncate64(int fd, off64_t size)
{
	REAL(int, ftruncate64, int, off64_t);
	return fails_at("ftruncate", fd) ? -1 : real_ftruncate64(fd, size);
}

int rename(const char *from, const char *to)
{
	REAL(int, rename, const char *, const char *);
	return fails("rename", to) ? -1 : real_rename(from, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	REAL(int, renameat2, int, const char *, int, const char *, unsigned);
	return fails("rename", to) ? -1 : real_renameat2(from_dir, from, to_dir, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
	REAL(int, mkdir, const char *, mode_t);
	return fails("mkdir", path) ? -1 : real_mkdir(path, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;
	REAL(int, open64, const char *, int, ...);

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails("open", path) ? -1 : real_open64(path, flags, mode);
}
