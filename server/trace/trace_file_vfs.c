/*
 * trace_file_vfs.c - the SQLite VFS methods that a private file needs, and its compressed form.
 */
#include "server/trace/trace_file_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/codec_memory.h"
#include "server/base/file/io.h"
#include "server/trace/trace_file.h"

/* A skippable frame, so that the programs of zstd decompress the file too: magic number, length,
 * content. */
static const char packed_head[] = "\x50\x2A\x4D\x18\x04\0\0\0TWTR";
enum { PACKED_HEAD = sizeof packed_head - 1, HEAD = 16 };
static const char database_head[] = "SQLite format 3";
enum { RUN_BYTES = 128 << 10 };

struct image_file {
	sqlite3_file base; /* first member */
	struct tw_trace_image *image;
};

static struct tw_trace_image *image_of(sqlite3_file *file)
{
	return ((const struct image_file *)(const void *)file)->image;
}

static int close_nothing(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

/* Writes the run to the file.  On failure, errno is set and the run is retained. */
static bool write_run(struct tw_trace_image *i)
{
	if (!tw_pwrite_all(i->fd, i->run.data, i->run.len, i->run_at))
		return false;
	tw_buf_clear(&i->run);
	return true;
}

ssize_t tw_trace_image_read(struct tw_trace_image *i, void *to, size_t want, uint64_t at)
{
	const size_t len = i->memory.len;
	size_t n;

	if (!i->in_memory)
		return write_run(i) ? tw_pread_full(i->fd, to, want, at) : -1;
	n = at >= len ? 0 : want < len - at ? want : len - (size_t)at;
	if (n)
		memcpy(to, i->memory.data + at, n);
	return (ssize_t)n;
}

/* SQLite's code for a system call that failed; `code` unless errno is that of a full disk. */
static int failed(int code)
{
	return tw_is_disk_full(errno) ? SQLITE_FULL : code;
}

/* The run is written before the read, so a read can also fail because the disk is full. */
static int read_at(sqlite3_file *file, void *to, int amount, sqlite3_int64 at)
{
	size_t want = (size_t)amount;
	const ssize_t n = tw_trace_image_read(image_of(file), to, want, (uint64_t)at);
	const size_t have = n > 0 ? (size_t)n : 0;

	if (n < 0)
		return failed(SQLITE_IOERR_READ);
	if (have == want)
		return SQLITE_OK;
	memset((char *)to + have, 0, want - have);
	return SQLITE_IOERR_SHORT_READ;
}

/* False: there is not enough memory. */
static bool resize_memory(struct tw_buf *b, uint64_t len)
{
	if (len > b->len) {
		if (len > TW_TRACE_PACKED_BYTES || tw_buf_reserve(b, (size_t)len - b->len) != TW_OK)
			return false;
		memset(b->data + b->len, 0, (size_t)len - b->len);
	}
	b->len = (size_t)len;
	return true;
}

static int write_status(bool done)
{
	return done ? SQLITE_OK : failed(SQLITE_IOERR_WRITE);
}

/* From now on the database is the file. */
static bool move_to_file(struct tw_trace_image *i)
{
	if (!tw_pwrite_all(i->fd, i->memory.data, i->memory.len, 0))
		return false;
	i->in_memory = false;
	tw_buf_done(&i->memory);
	return true;
}

/* SQLite writes most pages in order of their offsets. */
static int add_to_run(struct tw_trace_image *i, const void *from, size_t n, uint64_t at)
{
	if ((at != i->run_at + i->run.len || n > RUN_BYTES - i->run.len) && !write_run(i))
		return write_status(false);
	if (i->run.len == 0 && tw_buf_reserve(&i->run, RUN_BYTES) != TW_OK)
		return SQLITE_NOMEM;
	if (i->run.len == 0)
		i->run_at = at;
	(void)tw_buf_add(&i->run, from, n); /* a page, which is smaller than RUN_BYTES */
	return SQLITE_OK;
}

static int write_at(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at)
{
	struct tw_trace_image *i = image_of(file);
	const uint64_t end = (uint64_t)at + (uint64_t)amount;

	if (i->in_memory && (end <= i->memory.len || resize_memory(&i->memory, end))) {
		memcpy(i->memory.data + at, from, (size_t)amount);
		return SQLITE_OK;
	}
	if (i->in_memory && !move_to_file(i))
		return write_status(false);
	return add_to_run(i, from, (size_t)amount, (uint64_t)at);
}

static int truncate_to(sqlite3_file *file, sqlite3_int64 size)
{
	struct tw_trace_image *i = image_of(file);

	if (i->in_memory && resize_memory(&i->memory, (uint64_t)size))
		return SQLITE_OK;
	if (i->in_memory && !move_to_file(i))
		return SQLITE_IOERR_TRUNCATE;
	if (!write_run(i))
		return write_status(false);
	return ftruncate(i->fd, (off_t)size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int sync_now(sqlite3_file *file, int flags)
{
	struct tw_trace_image *i = image_of(file);

	(void)flags;
	if (i->in_memory)
		return SQLITE_OK;
	if (!write_run(i))
		return write_status(false);
	return fsync(i->fd) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int size_of(sqlite3_file *file, sqlite3_int64 *ret)
{
	struct tw_trace_image *i = image_of(file);
	struct stat st;

	*ret = (sqlite3_int64)i->memory.len;
	if (i->in_memory)
		return SQLITE_OK;
	if (!write_run(i))
		return write_status(false);
	if (fstat(i->fd, &st) != 0)
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

/* The image of the database that this thread is opening: it is not passed by name, because names
 * may come from statements. */
static _Thread_local struct tw_trace_image *opening;

/* Journals, temporary and attached files have no image and cannot be opened. */
static int open_named(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	struct image_file *f = (struct image_file *)(void *)file;

	(void)vfs;
	(void)name;
	f->base.pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB) || !opening)
		return SQLITE_CANTOPEN;
	f->image = opening;
	f->base.pMethods = &methods;
	opening = NULL;
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
	(void)vfs;
	randombytes_buf(to, (size_t)n);
	return n;
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

#define DATABASE_NAME "trace"

static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = sizeof(struct image_file),
        .mxPathname = 32, /* with the ending of a journal */
        .zName = "tracewell-trace",
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

int tw_trace_vfs_open(struct tw_trace_image *i, int flags, sqlite3 **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	(void)pthread_once(&once, register_once);
	if (registered != SQLITE_OK)
		return registered;
	opening = i;
	rc = sqlite3_open_v2(DATABASE_NAME, ret, flags, vfs.zName);
	opening = NULL;
	return rc;
}

/* --- the file --- */

void tw_trace_image_begin(struct tw_trace_image *i)
{
	*i = (struct tw_trace_image){.in_memory = true, .fd = -1};
	tw_buf_init(&i->memory, TW_TRACE_PACKED_BYTES);
	tw_buf_init(&i->run, RUN_BYTES);
}

void tw_trace_image_done(struct tw_trace_image *i)
{
	tw_buf_done(&i->memory);
	tw_buf_done(&i->run);
}

static enum tw_status pack(
        const struct tw_buf *database, ZSTD_CCtx *zstd, struct tw_buf *file, struct tw_err *err)
{
	size_t n;

	if (tw_buf_add(file, packed_head, PACKED_HEAD) != TW_OK ||
	        tw_buf_reserve(file, ZSTD_compressBound(database->len)) != TW_OK)
		return tw_oom(err);
	(void)ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
	n = ZSTD_compress2(
	        zstd, file->data + file->len, file->cap - file->len, database->data, database->len);
	if (ZSTD_isError(n))
		return tw_fail(err, TW_BUG, "zstd: %s", ZSTD_getErrorName(n));
	file->len += n;
	return TW_OK;
}

static enum tw_status fail_write(struct tw_err *err)
{
	return tw_fail_errno(err, tw_disk_status(errno), "a trace file cannot be written");
}

static enum tw_status end_file(struct tw_trace_image *i, uint64_t *ret, struct tw_err *err)
{
	struct stat st;

	if (!write_run(i))
		return fail_write(err);
	if (fstat(i->fd, &st) != 0)
		return tw_fail_errno(err, TW_IO, "a trace file cannot be read");
	*ret = (uint64_t)st.st_size;
	return TW_OK;
}

enum tw_status tw_trace_image_store(
        struct tw_trace_image *i, struct ZSTD_CCtx_s *zstd, uint64_t *ret_bytes, struct tw_err *err)
{
	struct tw_buf file;
	enum tw_status st;

	if (!i->in_memory)
		return end_file(i, ret_bytes, err);
	tw_buf_init(&file, SIZE_MAX / 2);
	st = pack(&i->memory, zstd, &file, err);
	if (st == TW_OK && !tw_pwrite_all(i->fd, file.data, file.len, 0))
		st = fail_write(err);
	*ret_bytes = file.len;
	tw_buf_done(&file);
	return st;
}

static enum tw_status damaged(struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT, "the trace file is damaged (frame)");
}

static enum tw_status unpack(ZSTD_DCtx *zstd, const uint8_t *frame, size_t len,
        struct tw_buf *database, struct tw_err *err)
{
	const unsigned long long size = ZSTD_getFrameContentSize(frame, len);

	if (size > TW_TRACE_PACKED_BYTES) /* or unknown */
		return damaged(err);
	if (tw_buf_reserve(database, (size_t)size) != TW_OK)
		return tw_oom(err);
	database->len = ZSTD_decompressDCtx(zstd, database->data, (size_t)size, frame, len);
	if (database->len == size)
		return TW_OK;
	tw_buf_clear(database);
	return damaged(err);
}

static bool is_packed(const char *head)
{
	return memcmp(head, packed_head, PACKED_HEAD) == 0;
}

bool tw_trace_file_is(const char *head, size_t n)
{
	return n >= HEAD && (is_packed(head) || memcmp(head, database_head, HEAD) == 0);
}

/* Of the header (https://www.sqlite.org/fileformat.html): the file change counter, then the counts
 * of pages and free pages; the change counter again, and the SQLite version that wrote the file. */
enum { CHANGES = 24, AFTER_PAGES = 40, CHANGES_AGAIN = 92, PAGE_TYPE = 100, LEAF = 13 };

/* Each image of this process gets a different file change counter. */
static void number_changes(struct tw_trace_image *i)
{
	static _Atomic uint32_t images;
	const uint32_t n = atomic_fetch_add(&images, 1);
	uint8_t *at = i->memory.data;

	if (i->memory.len < TW_TRACE_SCHEMA_BYTES ||
	        memcmp(at + CHANGES, at + CHANGES_AGAIN, sizeof n) != 0)
		return;
	memcpy(at + CHANGES, &n, sizeof n);
	memcpy(at + CHANGES_AGAIN, &n, sizeof n);
}

static enum tw_status load_packed(struct tw_trace_image *i, ZSTD_DCtx *zstd, struct tw_err *err)
{
	struct stat st;
	struct tw_buf file;
	enum tw_status status;
	ssize_t n;

	if (fstat(i->fd, &st) != 0)
		return tw_fail_errno(err, TW_IO, "a trace file cannot be read");
	if ((uint64_t)st.st_size > PACKED_HEAD + ZSTD_COMPRESSBOUND(TW_TRACE_PACKED_BYTES))
		return damaged(err);
	tw_buf_init(&file, SIZE_MAX / 2);
	if (tw_buf_reserve(&file, (size_t)st.st_size) != TW_OK)
		return tw_oom(err);
	n = tw_pread_full(i->fd, file.data, (size_t)st.st_size, 0);
	if (n < 0)
		status = tw_fail_errno(err, TW_IO, "a trace file cannot be read");
	else if (n < PACKED_HEAD)
		status = damaged(err);
	else
		status = unpack(
		        zstd, file.data + PACKED_HEAD, (size_t)n - PACKED_HEAD, &i->memory, err);
	tw_buf_done(&file);
	return status;
}

enum tw_status tw_trace_image_load(
        struct tw_trace_image *i, int fd, ZSTD_DCtx *zstd, struct tw_err *err)
{
	char head[HEAD] = "";
	enum tw_status st;

	*i = (struct tw_trace_image){.fd = fd};
	tw_buf_init(&i->memory, TW_TRACE_PACKED_BYTES);
	tw_buf_init(&i->run, RUN_BYTES);
	if (tw_pread_full(fd, head, sizeof head, 0) < 0)
		return tw_fail_errno(err, TW_IO, "a trace file cannot be read");
	i->in_memory = is_packed(head);
	if (!i->in_memory)
		return TW_OK;
	st = load_packed(i, zstd, err);
	if (st == TW_OK)
		number_changes(i);
	return st;
}

/* --- replacing a database --- */

/* The first page, if it is all of the schema's table, without what may differ. */
void tw_trace_image_schema(const struct tw_trace_image *i, uint8_t ret[TW_TRACE_SCHEMA_BYTES])
{
	static const uint8_t page_size[] = {TW_TRACE_SCHEMA_BYTES >> 8, 0};
	const uint8_t *at = i->memory.data;

	memset(ret, 0, TW_TRACE_SCHEMA_BYTES);
	if (!i->in_memory || i->memory.len < TW_TRACE_SCHEMA_BYTES || at[PAGE_TYPE] != LEAF ||
	        memcmp(at + 16, page_size, sizeof page_size) != 0 ||
	        memcmp(at + CHANGES, at + CHANGES_AGAIN, 4) != 0)
		return;
	memcpy(ret, at, TW_TRACE_SCHEMA_BYTES);
	memset(ret + CHANGES, 0, AFTER_PAGES - CHANGES);
	memset(ret + CHANGES_AGAIN, 0, PAGE_TYPE - CHANGES_AGAIN);
}

bool tw_trace_image_has_schema(
        const struct tw_trace_image *i, const uint8_t schema[TW_TRACE_SCHEMA_BYTES])
{
	uint8_t own[TW_TRACE_SCHEMA_BYTES];

	tw_trace_image_schema(i, own);
	return own[0] && memcmp(own, schema, sizeof own) == 0;
}
