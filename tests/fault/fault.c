/*
 * fault.c - a library for LD_PRELOAD that makes the n-th operation of a kind in a process tree
 * fail: a disk operation, a new descriptor or an allocation; or the first allocation at each place
 * of the program; or that kills the process at a disk operation or a message; or that writes half
 * of the bytes.
 *
 * Controlled by the file <library>.ctl, which all processes map: the test makes a
 * copy of the library, writes the file, and may change it at any time.  Disk
 * operations on files below `under` count; sockets, pipes and the log do not fail.
 * It needs no environment, because the server clears that of its decoders.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAME = 512 };

enum kind { OF_DISK, OF_DESCRIPTORS, OF_MEMORY, OF_MEMORY_PLACES, OF_STEPS, OF_SHORT_WRITES };

/* The control file; e2e/faults.mjs writes the same layout. */
struct control {
	atomic_uint_least64_t calls; /* so far */
	uint64_t at;                 /* the call that fails, from 1; 0: none */
	uint64_t until;              /* and those after it up to this one */
	atomic_uint_least64_t hits;  /* failures made */
	uint64_t error;              /* errno of a failure */
	uint64_t kind;               /* enum kind */
	uint64_t pid;                /* of the one process meant, 0: all */
	char what[120];              /* the operation that failed first, and its file */
	char only[16];               /* the operation that counts, "": all */
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
	(void)backtrace(&at, 1); /* loads what it needs */
}

static bool is_under(const char *path)
{
	return control && strncmp(path, control->under, strlen(control->under)) == 0;
}

static bool counts_disk(void)
{
	return control && control->at != 0 &&
	       (control->kind == OF_DISK || control->kind == OF_STEPS ||
	               control->kind == OF_SHORT_WRITES);
}

/* The path of an open file that counts; false for others. */
static bool is_file_under(int fd, char path[MAX_NAME])
{
	char link[64];
	struct stat st;
	ssize_t n;

	if (!counts_disk() || fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, MAX_NAME - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return is_under(path);
}

static bool is_meant(enum kind kind)
{
	return control && control->at != 0 && control->kind == kind &&
	       (control->pid == 0 || control->pid == (uint64_t)getpid());
}

/* Counts one operation; true when it is to fail, errno set.  Allocates nothing. */
static bool falls_on(const char *what, const char *about)
{
	uint64_t n;

	if (control->only[0] && strcmp(control->only, what) != 0)
		return false;
	n = atomic_fetch_add(&control->calls, 1) + 1;
	if (n < control->at || n > control->until)
		return false;
	if (atomic_fetch_add(&control->hits, 1) == 0)
		(void)snprintf(control->what, sizeof control->what, "%s %.100s", what, about);
	if (control->kind == OF_STEPS)
		(void)raise(SIGKILL);
	errno = (int)control->error;
	return true;
}

static bool fails(const char *what, const char *path)
{
	return (is_meant(OF_DISK) || is_meant(OF_STEPS)) && is_under(path) &&
	       falls_on(what, path + strlen(control->under));
}

static bool fails_at(const char *what, int fd)
{
	char path[MAX_NAME];

	return is_file_under(fd, path) && fails(what, path);
}

/* The number of bytes that the system writes. */
static size_t written(const char *what, int fd, size_t n)
{
	char path[MAX_NAME];

	return n > 1 && is_meant(OF_SHORT_WRITES) && is_file_under(fd, path) &&
	                       falls_on(what, path + strlen(control->under))
	               ? n / 2
	               : n;
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
	return fails_at("write", fd) ? -1 : real_write(fd, p, written("write", fd, n));
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
	return fails_at("pwrite", fd) ? -1 : real_pwrite64(fd, p, written("pwrite", fd, n), at);
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
	if (fails("open", path) || (is_meant(OF_DESCRIPTORS) && falls_on("open", path)))
		return -1;
	return real_open64(path, flags, mode);
}

/* --- descriptors --- */

static bool lacks(const char *what)
{
	return is_meant(OF_DESCRIPTORS) && falls_on(what, "");
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict len, int flags)
{
	REAL(int, accept4, int, __SOCKADDR_ARG, socklen_t *restrict, int);
	return lacks("accept") ? -1 : real_accept4(fd, from, len, flags);
}

int socket(int domain, int type, int protocol)
{
	REAL(int, socket, int, int, int);
	return lacks("socket") ? -1 : real_socket(domain, type, protocol);
}

int pipe2(int fds[2], int flags)
{
	REAL(int, pipe2, int *, int);
	return lacks("pipe") ? -1 : real_pipe2(fds, flags);
}

int eventfd(unsigned count, int flags)
{
	REAL(int, eventfd, unsigned, int);
	return lacks("eventfd") ? -1 : real_eventfd(count, flags);
}

int memfd_create(const char *name, unsigned flags)
{
	REAL(int, memfd_create, const char *, unsigned);
	return lacks("memfd") ? -1 : real_memfd_create(name, flags);
}

/* --- messages --- */

static void step(const char *what)
{
	if (is_meant(OF_STEPS))
		(void)falls_on(what, "");
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	REAL(ssize_t, send, int, const void *, size_t, int);
	step("send");
	return real_send(fd, p, n, flags);
}

ssize_t sendto(int fd, const void *p, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t len)
{
	REAL(ssize_t, sendto, int, const void *, size_t, int, __CONST_SOCKADDR_ARG, socklen_t);
	step("send");
	return real_sendto(fd, p, n, flags, to, len);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
	step("send");
	return real_sendmsg(fd, m, flags);
}

/* --- memory --- */

enum { PLACES = 1 << 15, FRAMES = 12 };

static atomic_uint_least64_t tried[PLACES]; /* places that failed in this process; 0: free */
static _Thread_local bool looking;          /* the look may allocate */

/* Identifies the caller by its call stack. */
static uint64_t place(void)
{
	void *frames[FRAMES] = {NULL};
	int n = backtrace(frames, FRAMES);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < n; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

/* True the first time; a full table knows every place. */
static bool is_new(uint64_t hash)
{
	for (size_t i = hash % PLACES, n = 0; n < 64; i = (i + 1) % PLACES, n++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&tried[i], &none, hash))
			return true;
		if (none == hash)
			return false;
	}
	return false;
}

/* "libsqlite3.so.0+0x12 of tracewell+0x34 +0x56": where it is asked, and from where in the program.
 */
static void print_location(const char *caller, char *out, size_t cap)
{
	void *frames[5 * FRAMES] = {NULL};
	int n = backtrace(frames, 5 * FRAMES);
	size_t len = 0;
	Dl_info of;

	if (dladdr(caller, &of))
		len = (size_t)snprintf(out, cap, "%s+0x%tx of tracewell",
		        strrchr(of.dli_fname, '/') ? strrchr(of.dli_fname, '/') + 1 : of.dli_fname,
		        caller - (char *)of.dli_fbase);
	for (int i = 0; i < n && len < cap; i++)
		if (dladdr(frames[i], &of) && strstr(of.dli_fname, "/tracewell") &&
		        !strstr(of.dli_fname, ".so"))
			len += (size_t)snprintf(out + len, cap - len, " +0x%tx",
			        (char *)frames[i] - (char *)of.dli_fbase);
}

/* One failure a round, of a place that had none in an earlier one. */
static bool falls_on_location(const char *what, const char *caller)
{
	char about[120] = "";
	bool is_one;

	if (looking || atomic_load(&control->hits) > 0)
		return false;
	looking = true;
	is_one = is_new(place());
	if (is_one)
		print_location(caller, about, sizeof about);
	looking = false;
	return is_one && falls_on(what, about);
}

static bool lacks_memory(const char *what, const char *caller)
{
	return (is_meant(OF_MEMORY) && falls_on(what, "")) ||
	       (is_meant(OF_MEMORY_PLACES) && falls_on_location(what, caller));
}

/* dlsym itself allocates, so these go by the names that glibc gives them. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	return lacks_memory("malloc", __builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return lacks_memory("calloc", __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return lacks_memory("realloc", __builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}
