/*
 * blob.c - uploads on disk by content.
 *
 * What makes an upload survive power loss (I1): it is renamed from spool/ into
 * its folder under blobs/, then the file and the folder are fsynced; the 256
 * folders are made and synced at start.  The two syncs run in threads of their
 * own, because the row's sync may go on beside them (catalogue_arrive.c), and a
 * journalling file system does all three in one go.  Without a row a file counts
 * for nothing.  A blob that exists already may have a row, and so is only ever
 * replaced by one whose bytes are fsynced before.
 */
#include "blob.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "crash_point.h"
#include "digest.h"
#include "pool.h"
#include "spool.h"

enum {
	PATH_BYTES = 1400,
	PIECE_BYTES = 1 << 16,
	CHECK_EVERY_BYTES = 16 << 20,
	BLOB_DIRS = 256,
	SYNC_THREADS = 16,
	SPOOL_BYTES = 96
};

struct tw_blobs {
	unsigned min_free_percent;
	struct tw_pool *syncs;
	_Atomic uint64_t serial;
	int spool_lock;          /* of our own, -1: spool/ is */
	char spool[SPOOL_BYTES]; /* below dir */
	char dir[];
};

struct sync {                     /* of a file or folder, in a thread of the pool */
	struct tw_pool_task task; /* first: the pool hands it back */
	struct tw_blob_writer *writer;
	const char *done; /* crash point */
	int fd;
	int error; /* errno, 0 it went well */
};

struct tw_blob_writer {
	struct tw_blobs *blobs;
	int fd;
	int dir_fd;           /* of the folder, once renamed into it */
	pthread_mutex_t lock; /* of the next four */
	pthread_cond_t synced;
	unsigned syncing;
	struct sync file, dir;
	uint64_t bytes, max_bytes, next_check;
	gnutls_hash_hd_t sha;
	char sha256[TW_SHA256_HEX]; /* once placed */
	char path[PATH_BYTES];
};

static enum tw_status fail_errno(const char *doing, const char *path, struct tw_err *err)
{
	int why = errno;
	char text[96];

	if (why == ENOSPC || why == EDQUOT)
		return tw_fail(err, TW_FULL, TW_NO_OFFSET, "no space left for uploads");
	return tw_fail(err, TW_IO, TW_NO_OFFSET, "%s %s: %s", doing, path,
	        strerror_r(why, text, sizeof text));
}

static enum tw_status sync_dir(const char *path, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum tw_status st = TW_OK;

	if (fd < 0)
		return fail_errno("open", path, err);
	if (fsync(fd) != 0)
		st = fail_errno("fsync", path, err);
	(void)close(fd);
	return st;
}

enum tw_status tw_folder_make(const char *path, struct tw_err *err)
{
	char parent[PATH_BYTES];
	char *slash;

	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? TW_OK : fail_errno("mkdir", path, err);
	(void)snprintf(parent, sizeof parent, "%s", path);
	for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0'; /* below the root: the root */
	return sync_dir(slash ? parent : ".", err);
}

static enum tw_status make_sub(struct tw_blobs *b, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", b->dir, name);
	return tw_folder_make(path, err);
}

/* All folders of blobs/ at once, so that no upload waits for one to be made durable. */
static enum tw_status make_blob_dirs(struct tw_blobs *b, struct tw_err *err)
{
	char path[PATH_BYTES];
	bool made = false;

	for (unsigned i = 0; i < BLOB_DIRS; i++) {
		(void)snprintf(path, sizeof path, "%s/blobs/%02x", b->dir, i);
		if (mkdir(path, 0700) == 0)
			made = true;
		else if (errno != EEXIST)
			return fail_errno("mkdir", path, err);
	}
	(void)snprintf(path, sizeof path, "%s/blobs", b->dir);
	return made ? sync_dir(path, err) : TW_OK;
}

enum tw_status tw_blobs_open(
        const char *data_dir, unsigned min_free_percent, struct tw_blobs **ret, struct tw_err *err)
{
	size_t len = strlen(data_dir);
	struct tw_blobs *b;
	enum tw_status st;

	if (len == 0 || len > PATH_BYTES / 2)
		return tw_fail(
		        err, TW_BAD_REQUEST, TW_NO_OFFSET, "the data folder's path is too long");
	b = tw_mem_zalloc(1, sizeof *b + len + 1);
	if (!b)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	memcpy(b->dir, data_dir, len + 1);
	b->min_free_percent = min_free_percent;
	(void)snprintf(b->spool, sizeof b->spool, "spool");
	b->spool_lock = -1;
	st = tw_folder_make(b->dir, err);
	if (st == TW_OK)
		st = make_sub(b, "spool", err);
	if (st == TW_OK)
		st = make_sub(b, "blobs", err);
	if (st == TW_OK)
		st = make_blob_dirs(b, err);
	if (st == TW_OK)
		st = make_sub(b, "traces", err);
	if (st == TW_OK)
		st = tw_pool_start(SYNC_THREADS, &b->syncs, err);
	if (st == TW_OK)
		*ret = b;
	else
		tw_mem_free(b);
	return st;
}

struct tw_blobs *tw_blobs_close(struct tw_blobs *b)
{
	if (!b)
		return NULL;
	b->syncs = tw_pool_stop(b->syncs);
	if (b->spool_lock >= 0)
		(void)close(b->spool_lock);
	tw_mem_free(b);
	return NULL;
}

static enum tw_status check_room(const struct tw_blobs *b, uint64_t bytes, struct tw_err *err)
{
	struct statvfs v;

	if (statvfs(b->dir, &v) != 0)
		return fail_errno("statvfs", b->dir, err);
	if ((uint64_t)v.f_bavail * 100 < (uint64_t)v.f_blocks * b->min_free_percent)
		return tw_fail(err, TW_FULL, TW_NO_OFFSET,
		        "less than %u %% of the disk is free: uploads are not accepted until there "
		        "is room",
		        b->min_free_percent);
	if (bytes > (uint64_t)v.f_bavail * v.f_frsize)
		return tw_fail(err, TW_FULL, TW_NO_OFFSET, "no space left for uploads");
	return TW_OK;
}

enum tw_status tw_blobs_check_room(const struct tw_blobs *b, struct tw_err *err)
{
	return check_room(b, 0, err);
}

void tw_spool_path(struct tw_blobs *b, const char *name, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s/%s/%s", b->dir, b->spool, name);
}

enum tw_status tw_blobs_own_spool(struct tw_blobs *b, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(b->spool, sizeof b->spool, "spool/%s", name);
	tw_spool_path(b, "", path, sizeof path);
	return tw_spool_own(path, &b->spool_lock, err);
}

static enum tw_status open_spool(struct tw_blob_writer *w, struct tw_err *err)
{
	struct timespec t;
	char name[96];

	(void)clock_gettime(CLOCK_REALTIME, &t);
	(void)snprintf(name, sizeof name, "up-%lld-%ld-%d-%llu", (long long)t.tv_sec, t.tv_nsec,
	        (int)getpid(), (unsigned long long)atomic_fetch_add(&w->blobs->serial, 1));
	tw_spool_path(w->blobs, name, w->path, sizeof w->path);
	w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return fail_errno("create", w->path, err);
	tw_crash_point("spool_created");
	return TW_OK;
}

static void close_writer(struct tw_blob_writer *w)
{
	uint8_t hash[32];

	if (w->fd >= 0)
		(void)close(w->fd);
	if (w->dir_fd >= 0)
		(void)close(w->dir_fd);
	if (w->sha)
		gnutls_hash_deinit(w->sha, hash);
	(void)pthread_cond_destroy(&w->synced);
	(void)pthread_mutex_destroy(&w->lock);
	tw_mem_free(w);
}

enum tw_status tw_blob_begin(
        struct tw_blobs *b, uint64_t max_bytes, struct tw_blob_writer **ret, struct tw_err *err)
{
	enum tw_status st = check_room(b, 0, err);
	struct tw_blob_writer *w;

	if (st != TW_OK)
		return st;
	w = tw_mem_zalloc(1, sizeof *w);
	if (!w)
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	w->blobs = b;
	w->max_bytes = max_bytes;
	w->next_check = CHECK_EVERY_BYTES;
	w->fd = -1;
	w->dir_fd = -1;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->synced, NULL);
	st = tw_digest_begin(GNUTLS_DIG_SHA256, &w->sha, err);
	if (st == TW_OK)
		st = open_spool(w, err);
	if (st == TW_OK)
		*ret = w;
	else
		tw_blob_discard(w);
	return st;
}

static enum tw_status write_all(
        struct tw_blob_writer *w, const uint8_t *p, size_t n, struct tw_err *err)
{
	while (n > 0) {
		ssize_t k = write(w->fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return fail_errno("write", w->path, err);
		p += k;
		n -= (size_t)k;
	}
	return TW_OK;
}

enum tw_status tw_blob_write(struct tw_blob_writer *w, const void *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (n == 0)
		return TW_OK;
	if (n > w->max_bytes - w->bytes)
		return tw_fail(err, TW_TOO_LARGE, w->max_bytes, "larger than %llu bytes",
		        (unsigned long long)w->max_bytes);
	if (w->bytes + n > w->next_check) {
		w->next_check = w->bytes + n + CHECK_EVERY_BYTES;
		st = check_room(w->blobs, n, err);
	}
	if (st == TW_OK)
		st = write_all(w, p, n, err);
	if (st != TW_OK)
		return st;
	if (gnutls_hash(w->sha, p, n) != 0)
		return tw_fail(err, TW_BUG, TW_NO_OFFSET, "hashing failed");
	w->bytes += n;
	return TW_OK;
}

enum tw_status tw_blob_write_fd(struct tw_blob_writer *w, int fd, struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES];
	enum tw_status st = TW_OK;
	ssize_t n = 1;

	while (st == TW_OK && n > 0) {
		n = read(fd, piece, sizeof piece);
		if (n > 0)
			st = tw_blob_write(w, piece, (size_t)n, err);
	}
	return n < 0 ? fail_errno("read what goes to", w->path, err) : st;
}

static bool is_sha256(const char *s)
{
	return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static void blob_dir(const struct tw_blobs *b, const char *sha, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s/blobs/%.2s", b->dir, sha);
}

static void blob_path(const struct tw_blobs *b, const char *sha, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s/blobs/%.2s/%s", b->dir, sha, sha);
}

/* base/ab and base/ab/cd */
static enum tw_status make_shards(const char *leaf, struct tw_err *err)
{
	char upper[PATH_BYTES];
	enum tw_status st;

	if (access(leaf, F_OK) == 0)
		return TW_OK;
	(void)snprintf(upper, sizeof upper, "%s", leaf);
	*strrchr(upper, '/') = '\0';
	st = tw_folder_make(upper, err);
	return st == TW_OK ? tw_folder_make(leaf, err) : st;
}

/* --- into place, and durable there --- */

static void run_sync(struct tw_pool_task *task, bool stopping)
{
	struct sync *s = (struct sync *)(void *)task;
	struct tw_blob_writer *w = s->writer;
	int error = fsync(s->fd) == 0 ? 0 : errno;

	(void)stopping; /* who waits for it wants it done */
	if (!error)
		tw_crash_point(s->done);
	(void)pthread_mutex_lock(&w->lock);
	s->error = error;
	w->syncing--;
	(void)pthread_cond_broadcast(&w->synced);
	(void)pthread_mutex_unlock(&w->lock);
}

static void begin_sync(struct tw_blob_writer *w, struct sync *s, int fd, const char *done)
{
	*s = (struct sync){.task.run = run_sync, .writer = w, .done = done, .fd = fd};
	(void)pthread_mutex_lock(&w->lock);
	w->syncing++;
	(void)pthread_mutex_unlock(&w->lock);
	if (!tw_pool_submit(w->blobs->syncs, &s->task))
		run_sync(&s->task, true);
}

enum tw_status tw_blob_wait(struct tw_blob_writer *w, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)pthread_mutex_lock(&w->lock);
	while (w->syncing)
		(void)pthread_cond_wait(&w->synced, &w->lock);
	(void)pthread_mutex_unlock(&w->lock);
	errno = w->file.error ? w->file.error : w->dir.error;
	if (errno)
		return fail_errno("fsync", w->path, err);
	blob_path(w->blobs, w->sha256, path, sizeof path);
	/* another server may have dropped what nothing referred to yet */
	return !w->sha256[0] || access(path, F_OK) == 0 ? TW_OK : fail_errno("find", path, err);
}

/* Under its content's name, whoever has it already: perhaps not durable yet, so what is there is
 * not built upon.  File systems that cannot refuse to replace take this way too. */
static enum tw_status replace(struct tw_blob_writer *w, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (fsync(w->fd) != 0)
		return fail_errno("fsync", w->path, err);
	blob_path(w->blobs, w->sha256, path, sizeof path);
	if (rename(w->path, path) != 0)
		return fail_errno("rename", path, err);
	return TW_OK;
}

static enum tw_status rename_in(struct tw_blob_writer *w, struct tw_err *err)
{
	char path[PATH_BYTES];

	blob_path(w->blobs, w->sha256, path, sizeof path);
	if (renameat2(AT_FDCWD, w->path, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
		begin_sync(w, &w->file, w->fd, "content_synced");
		return TW_OK;
	}
	if (errno == EEXIST || errno == EINVAL || errno == ENOSYS)
		return replace(w, err);
	return fail_errno("rename", path, err);
}

enum tw_status tw_blob_place(struct tw_blob_writer *w, struct tw_err *err)
{
	uint8_t hash[32];
	char dir[PATH_BYTES];
	enum tw_status st;

	tw_crash_point("spool_written");
	gnutls_hash_output(w->sha, hash);
	tw_digest_hex(hash, w->sha256);
	blob_dir(w->blobs, w->sha256, dir, sizeof dir);
	w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir_fd < 0)
		return fail_errno("open", dir, err);
	st = rename_in(w, err);
	if (st != TW_OK)
		return st;
	tw_crash_point("blob_renamed");
	begin_sync(w, &w->dir, w->dir_fd, "name_synced");
	return TW_OK;
}

const char *tw_blob_sha256(const struct tw_blob_writer *w)
{
	return w->sha256;
}

uint64_t tw_blob_bytes(const struct tw_blob_writer *w)
{
	return w->bytes;
}

struct tw_blob_writer *tw_blob_end(struct tw_blob_writer *w)
{
	(void)tw_blob_wait(w, NULL);
	close_writer(w);
	return NULL;
}

enum tw_status tw_blob_commit(
        struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX], struct tw_err *err)
{
	enum tw_status st = tw_blob_place(w, err);

	if (st == TW_OK)
		st = tw_blob_wait(w, err);
	if (st != TW_OK)
		return st;
	memcpy(ret_sha256, w->sha256, TW_SHA256_HEX);
	close_writer(w);
	return TW_OK;
}

struct tw_blob_writer *tw_blob_discard(struct tw_blob_writer *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0)
		(void)unlink(w->path); /* gone when it was renamed */
	return tw_blob_end(w);
}

enum tw_status tw_blob_open(struct tw_blobs *b, const char *sha256, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES];
	int fd;

	if (!is_sha256(sha256))
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such content");
	blob_path(b, sha256, path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "the content is not kept any more");
	if (fd < 0)
		return fail_errno("open", path, err);
	*ret_fd = fd;
	return TW_OK;
}

enum tw_status tw_blob_delete(struct tw_blobs *b, const char *sha256, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (!is_sha256(sha256))
		return TW_OK;
	blob_path(b, sha256, path, sizeof path);
	if (unlink(path) != 0 && errno != ENOENT)
		return fail_errno("unlink", path, err);
	return TW_OK;
}

enum tw_status tw_blob_check(
        struct tw_blobs *b, const char *sha256, uint64_t bytes, struct tw_err *err)
{
	char found[TW_SHA256_HEX];
	uint64_t n = 0;
	int fd = -1;
	enum tw_status st = tw_blob_open(b, sha256, &fd, err);

	if (st != TW_OK)
		return st;
	st = tw_digest_fd(fd, found, &n, err);
	(void)close(fd);
	if (st == TW_OK && (n != bytes || strcmp(found, sha256) != 0))
		st = tw_fail(err, TW_CORRUPT, TW_NO_OFFSET,
		        "the file is not the upload: %llu of %llu bytes", (unsigned long long)n,
		        (unsigned long long)bytes);
	return st;
}

enum tw_status tw_trace_path(
        struct tw_blobs *b, const char *trace_id, char *out, size_t cap, struct tw_err *err)
{
	size_t len = strlen(trace_id);
	char dir[PATH_BYTES];
	enum tw_status st;

	/* ids begin with their time: their last characters spread evenly */
	if (len != TW_ID_CHARS || strspn(trace_id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != len)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "no such trace");
	(void)snprintf(dir, sizeof dir, "%s/traces/%.2s/%.2s", b->dir, trace_id + len - 2,
	        trace_id + len - 4);
	st = make_shards(dir, err);
	if (st == TW_OK && snprintf(out, cap, "%s/%s.db", dir, trace_id) >= (int)cap)
		st = tw_fail(err, TW_IO, TW_NO_OFFSET, "a path is too long");
	return st;
}

enum tw_status tw_trace_publish(
        struct tw_blobs *b, const char *tmp_path, const char *trace_id, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st = tw_trace_path(b, trace_id, path, sizeof path, err);

	if (st != TW_OK)
		return st;
	if (rename(tmp_path, path) != 0)
		return fail_errno("rename", path, err);
	*strrchr(path, '/') = '\0';
	return sync_dir(path, err);
}

const char *tw_blobs_dir(const struct tw_blobs *b)
{
	return b->dir;
}
