/*
 * trace_file_vfs.c - the SQLite VFS methods that a private file needs.
 */
#include "server/trace/trace_file_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/str.h"
#include "server/base/file/io.h"

struct fd_file {
	sqlite3_file base; /* first member */
	int fd;
};

static int fd_of(sqlite3_file *file)
{
	return ((const struct fd_file *)(const void *)file)->fd;
}

static int close_nothing(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

static int read_at(sqlite3_file *file, void *to, int amount, sqlite3_int64 at)
{
	size_t want = (size_t)amount;
	const ssize_t n = tw_pread_full(fd_of(file), to, want, (uint64_t)at);
	const size_t have = n > 0 ? (size_t)n : 0;

	if (n < 0)
		return SQLITE_IOERR_READ;
	if (have == want)
		return SQLITE_OK;
	memset((char *)to + have, 0, want - have);
	return SQLITE_IOERR_SHORT_READ;
}

static int write_at(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at)
{
	if (tw_pwrite_all(fd_of(file), from, (size_t)amount, (uint64_t)at))
		return SQLITE_OK;
	return tw_is_disk_full(errno) ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int truncate_to(sqlite3_file *file, sqlite3_int64 size)
{
	return ftruncate(fd_of(file), (off_t)size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int sync_now(sqlite3_file *file, int flags)
{
	(void)flags;
	return fsync(fd_of(file)) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int size_of(sqlite3_file *file, sqlite3_int64 *ret)
{
	struct stat st;

	if (fstat(fd_of(file), &st) != 0)
		return SQLITE_IOERR_FSTAT;
	*ret = st.st_size;
	return SQLITE_OK;
}

static int lock_nothing(sqlite3_file *file, int level)
{
	(void)file;
	(void)level;
	return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *ret)
{
	(void)file;
	*ret = 0;
	return SQLITE_OK;
}

static int control(sqlite3_file *file, int op, void *arg)
{
	(void)file;
	(void)op;
	(void)arg;
	return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
	(void)file;
	return 4096;
}

static int no_promises(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static const sqlite3_io_methods methods = {
        .iVersion = 1,
        .xClose = close_nothing,
        .xRead = read_at,
        .xWrite = write_at,
        .xTruncate = truncate_to,
        .xSync = sync_now,
        .xFileSize = size_of,
        .xLock = lock_nothing,
        .xUnlock = lock_nothing,
        .xCheckReservedLock = is_reserved,
        .xFileControl = control,
        .xSectorSize = sector_size,
        .xDeviceCharacteristics = no_promises,
};

static const char prefix[] = "fd:";

/* Journals and temporary files have no descriptor and cannot be opened. */
static int open_named(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	struct fd_file *f = (struct fd_file *)(void *)file;
	struct tw_str number = tw_str_of(name ? name : "");
	uint64_t fd = 0;

	(void)vfs;
	f->base.pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB) || number.len < sizeof prefix ||
	        memcmp(number.ptr, prefix, sizeof prefix - 1) != 0)
		return SQLITE_CANTOPEN;
	number.ptr += sizeof prefix - 1;
	number.len -= sizeof prefix - 1;
	if (!tw_str_u64(number, INT32_MAX, &fd))
		return SQLITE_CANTOPEN;
	f->fd = (int)fd;
	f->base.pMethods = &methods;
	if (ret)
		*ret = flags;
	return SQLITE_OK;
}

static int remove_nothing(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_OK;
}

static int is_there(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*ret = 0;
	return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int cap, char *ret)
{
	(void)vfs;
	(void)sqlite3_snprintf(cap, ret, "%s", name);
	return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int n, char *to)
{
	ssize_t got = getrandom(to, (size_t)n, 0);

	(void)vfs;
	return got > 0 ? (int)got : 0;
}

static int sleep_not(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	(void)us;
	return 0;
}

/* The writer does not use the time. */
static int no_time(sqlite3_vfs *vfs, double *ret)
{
	(void)vfs;
	*ret = 0;
	return SQLITE_ERROR;
}

static int last_error(sqlite3_vfs *vfs, int cap,
        char *ret) /* NOLINT(readability-non-const-parameter) SQLite's type */
{
	(void)vfs;
	(void)cap;
	(void)ret;
	return 0;
}

static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = sizeof(struct fd_file),
        .mxPathname = TW_TRACE_VFS_NAME_BYTES,
        .zName = "tracewell-fd",
        .xOpen = open_named,
        .xDelete = remove_nothing,
        .xAccess = is_there,
        .xFullPathname = full_path,
        .xRandomness = randomness,
        .xSleep = sleep_not,
        .xCurrentTime = no_time,
        .xGetLastError = last_error,
};

static int registered = SQLITE_ERROR;

static void register_once(void)
{
	registered = sqlite3_vfs_register(&vfs, 0);
}

const char *tw_trace_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, register_once);
	return registered == SQLITE_OK ? vfs.zName : NULL;
}

void tw_trace_vfs_name(int fd, char *ret, size_t cap)
{
	(void)snprintf(ret, cap, "%s%d", prefix, fd);
}

char *tw_trace_path_uri(struct tw_arena *a, const char *path)
{
	static const char hex[] = "0123456789ABCDEF";
	char *uri = tw_arena_alloc(a, strlen(path) * 3 + sizeof "file:?immutable=1", 1);
	char *at = uri;

	if (!uri)
		return NULL;
	memcpy(at, "file:", 5); /* NOLINT(bugprone-not-null-terminated-result) goes on below */
	at += 5;
	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		             (*p >= '0' && *p <= '9') || strchr("/._-", *p);

		if (plain) {
			*at++ = (char)*p;
		} else {
			*at++ = '%';
			*at++ = hex[*p >> 4];
			*at++ = hex[*p & 15];
		}
	}
	memcpy(at, "?immutable=1", sizeof "?immutable=1");
	return uri;
}
