/*
 * blob.c - uploads on disk by content.
 *
 * What makes an upload survive power loss (I1): it is renamed from spool/ into
 * its folder under blobs/, then the file and the folder are fsynced; the 256
 * folders are made and synced at start.  The row comes after, and without one a
 * file counts for nothing.  In this order a journalling file system writes its
 * journal once: making the file durable takes its name along.  A blob that
 * exists already may have a row, and so is only ever replaced by one whose bytes
 * are fsynced before.
 */
#include "blob.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "crash_point.h"

enum { PATH_BYTES = 1400, CHECK_EVERY_BYTES = 16 << 20, BLOB_DIRS = 256 };

struct tw_blobs {
	unsigned min_free_percent;
	_Atomic uint64_t serial;
	size_t dir_len;
	char dir[];
};

struct tw_blob_writer {
	struct tw_blobs *blobs;
	int fd;
	uint64_t bytes, max_bytes, next_check;
	gnutls_hash_hd_t sha;
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

/* Makes a folder under dir; a new one is fsynced into its parent. */
static enum tw_status make_dir(const char *path, struct tw_err *err)
{
	char parent[PATH_BYTES];
	char *slash;

	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? TW_OK : fail_errno("mkdir", path, err);
	(void)snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return TW_OK;
	*slash = '\0';
	return sync_dir(parent, err);
}

static enum tw_status make_sub(struct tw_blobs *b, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", b->dir, name);
	return make_dir(path, err);
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
	st = make_dir(b->dir, err);
	if (st == TW_OK)
		st = make_sub(b, "spool", err);
	if (st == TW_OK)
		st = make_sub(b, "blobs", err);
	if (st == TW_OK)
		st = make_blob_dirs(b, err);
	if (st == TW_OK)
		st = make_sub(b, "traces", err);
	if (st == TW_OK)
		*ret = b;
	else
		tw_mem_free(b);
	return st;
}

struct tw_blobs *tw_blobs_close(struct tw_blobs *b)
{
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
	(void)snprintf(out, cap, "%s/spool/%s", b->dir, name);
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
	if (gnutls_hash_init(&w->sha, GNUTLS_DIG_SHA256) != 0) {
		tw_mem_free(w);
		return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	}
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

static void hex_of(const uint8_t hash[32], char ret[TW_SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 32; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[64] = '\0';
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
	st = make_dir(upper, err);
	return st == TW_OK ? make_dir(leaf, err) : st;
}

static enum tw_status sync_content(const struct tw_blob_writer *w, struct tw_err *err)
{
	if (fsync(w->fd) != 0)
		return fail_errno("fsync", w->path, err);
	tw_crash_point("content_synced");
	return TW_OK;
}

/* Under its content's name, whoever has it already: perhaps not durable yet, so what is there is
 * not built upon.  File systems that cannot refuse to replace take this way too. */
static enum tw_status replace(struct tw_blob_writer *w, const char *path, struct tw_err *err)
{
	enum tw_status st = sync_content(w, err);

	if (st == TW_OK && rename(w->path, path) != 0)
		st = fail_errno("rename", path, err);
	return st;
}

static enum tw_status place(struct tw_blob_writer *w, const char *sha, struct tw_err *err)
{
	char dir[PATH_BYTES];
	char path[PATH_BYTES];
	enum tw_status st;

	blob_dir(w->blobs, sha, dir, sizeof dir);
	blob_path(w->blobs, sha, path, sizeof path);
	if (renameat2(AT_FDCWD, w->path, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
		tw_crash_point("blob_renamed");
		st = sync_content(w, err);
	} else if (errno == EEXIST || errno == EINVAL || errno == ENOSYS) {
		st = replace(w, path, err);
	} else {
		st = fail_errno("rename", path, err);
	}
	return st == TW_OK ? sync_dir(dir, err) : st;
}

static void close_writer(struct tw_blob_writer *w)
{
	uint8_t hash[32];

	if (w->fd >= 0)
		(void)close(w->fd);
	if (w->sha)
		gnutls_hash_deinit(w->sha, hash);
	tw_mem_free(w);
}

enum tw_status tw_blob_commit(struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX],
        uint64_t *ret_bytes, struct tw_err *err)
{
	uint8_t hash[32];
	char sha[TW_SHA256_HEX];
	enum tw_status st;

	tw_crash_point("spool_written");
	gnutls_hash_output(w->sha, hash);
	hex_of(hash, sha);
	st = place(w, sha, err);
	if (st != TW_OK)
		return st;
	memcpy(ret_sha256, sha, sizeof sha);
	*ret_bytes = w->bytes;
	close_writer(w);
	return TW_OK;
}

struct tw_blob_writer *tw_blob_discard(struct tw_blob_writer *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0)
		(void)unlink(w->path);
	close_writer(w);
	return NULL;
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
