/*
 * store_folder.c - files in the data folder itself: blobs/ab/<sha256>, traces/ab/<id>.db.
 *
 * An upload survives power loss (I1) because it is renamed from spool/ into its folder under
 * blobs/, then the file and the folder are synced; the 256 folders are created and synced at start.
 * The two syncs run in separate threads, in parallel with the row's sync
 * (catalogue_commit_upload.c), and a journalling file system combines all three.  A file without a
 * row has no effect.  An existing blob may have a row, so it is replaced only by one whose bytes
 * are already synced.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/thread/pool.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1400, BLOB_DIRS = 256, SYNC_THREADS = 16 };

struct folder {
	struct tw_pool *syncs;
	char dir[PATH_BYTES / 2 + 1];
};

struct sync {                     /* of a file or folder, in a thread of the pool */
	struct tw_pool_task task; /* first member: the pool returns it */
	struct placing *placing;
	const char *done; /* crash point */
	int fd;
	int error; /* errno, 0 on success */
};

struct placing { /* state of a put until its end */
	struct folder *folder;
	int dir_fd;           /* the file was renamed into it */
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t synced;
	unsigned syncing;
	struct sync file, dir;
};

enum tw_status tw_store_fail_errno(const char *doing, const char *path, struct tw_err *err)
{
	int why = errno;
	char text[96];

	if (tw_is_disk_full(why))
		return tw_fail(err, TW_FULL, "no space left for uploads");
	if (why == EMFILE || why == ENFILE || why == ENOMEM)
		return tw_fail(
		        err, TW_BUSY, "%s %s: %s", doing, path, strerror_r(why, text, sizeof text));
	return tw_fail(err, TW_IO, "%s %s: %s", doing, path, strerror_r(why, text, sizeof text));
}

enum tw_status tw_store_sync_folder(const char *path, struct tw_err *err)
{
	return tw_sync_folder(path) ? TW_OK : tw_store_fail_errno("fsync", path, err);
}

/* --- folders --- */

/* Creates all folders of blobs/ in advance, so that no upload waits for one to become durable. */
static enum tw_status make_blob_dirs(struct folder *s, struct tw_err *err)
{
	char path[PATH_BYTES];
	bool made = false;

	for (unsigned i = 0; i < BLOB_DIRS; i++) {
		(void)snprintf(path, sizeof path, "%s/blobs/%02x", s->dir, i);
		if (mkdir(path, 0700) == 0)
			made = true;
		else if (errno != EEXIST)
			return tw_store_fail_errno("cannot make the folder", path, err);
	}
	(void)snprintf(path, sizeof path, "%s/blobs", s->dir);
	return made ? tw_store_sync_folder(path, err) : TW_OK;
}

static enum tw_status make_sub(struct folder *s, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", s->dir, name);
	return tw_folder_make(path, err);
}

static enum tw_status open_folder(const struct tw_store_endpoint *p, void **ret, struct tw_err *err)
{
	struct folder *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	(void)snprintf(s->dir, sizeof s->dir, "%s", p->data_dir);
	st = make_sub(s, "blobs", err);
	if (st == TW_OK)
		st = make_blob_dirs(s, err);
	if (st == TW_OK)
		st = make_sub(s, "traces", err);
	if (st == TW_OK)
		st = tw_pool_start(SYNC_THREADS, &s->syncs, err);
	if (st == TW_OK)
		*ret = s;
	else
		tw_mem_free(s);
	return st;
}

static void close_folder(void *store)
{
	struct folder *s = store;

	s->syncs = tw_pool_stop(s->syncs);
	tw_mem_free(s);
}

static void path_of(const struct folder *s, const char *key, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/%s", s->dir, key);
}

/* --- renaming and syncing --- */

static void run_sync(struct tw_pool_task *task, bool stopping)
{
	struct sync *s = (struct sync *)(void *)task;
	struct placing *w = s->placing;
	int error = fsync(s->fd) == 0 ? 0 : errno;

	(void)stopping; /* the waiting thread needs it completed */
	if (!error)
		tw_crash_point(s->done);
	(void)pthread_mutex_lock(&w->lock);
	s->error = error;
	w->syncing--;
	(void)pthread_cond_broadcast(&w->synced);
	(void)pthread_mutex_unlock(&w->lock);
}

static void begin_sync(struct placing *w, struct sync *s, int fd, const char *done)
{
	*s = (struct sync){.task.run = run_sync, .placing = w, .done = done, .fd = fd};
	(void)pthread_mutex_lock(&w->lock);
	w->syncing++;
	(void)pthread_mutex_unlock(&w->lock);
	if (!tw_pool_submit(w->folder->syncs, &s->task))
		run_sync(&s->task, true);
}

static enum tw_status wait_put(void *store, struct tw_store_put *p, struct tw_err *err)
{
	struct placing *w = p->state;
	char path[PATH_BYTES];

	(void)store;
	if (!w)
		return TW_OK;
	(void)pthread_mutex_lock(&w->lock);
	while (w->syncing)
		(void)pthread_cond_wait(&w->synced, &w->lock);
	(void)pthread_mutex_unlock(&w->lock);
	errno = w->file.error ? w->file.error : w->dir.error;
	if (errno)
		return tw_store_fail_errno("fsync", p->path, err);
	path_of(w->folder, p->key, path);
	/* another server may have deleted the file, as no row referred to it yet */
	return access(path, F_OK) == 0 ? TW_OK : tw_store_fail_errno("find", path, err);
}

static void end_put(void *store, struct tw_store_put *p)
{
	struct placing *w = p->state;

	if (!w)
		return;
	(void)wait_put(store, p, NULL);
	if (w->dir_fd >= 0)
		(void)close(w->dir_fd);
	(void)pthread_cond_destroy(&w->synced);
	(void)pthread_mutex_destroy(&w->lock);
	tw_mem_free(w);
	p->state = NULL;
}

/* Replaces an existing file of the same content, as that may not be durable yet.  Also used for
 * file systems that cannot refuse to replace. */
static enum tw_status replace(struct tw_store_put *p, const char *path, struct tw_err *err)
{
	if (fsync(p->fd) != 0)
		return tw_store_fail_errno("fsync", p->path, err);
	if (rename(p->path, path) != 0)
		return tw_store_fail_errno("rename", path, err);
	return TW_OK;
}

static enum tw_status rename_in(struct tw_store_put *p, const char *path, struct tw_err *err)
{
	struct placing *w = p->state;

	if (renameat2(AT_FDCWD, p->path, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
		begin_sync(w, &w->file, p->fd, "content_synced");
		return TW_OK;
	}
	if (errno == EEXIST || errno == EINVAL || errno == ENOSYS)
		return replace(p, path, err);
	return tw_store_fail_errno("rename", path, err);
}

static enum tw_status put_content(struct tw_store_put *p, char path[PATH_BYTES], struct tw_err *err)
{
	struct placing *w = p->state;
	char dir[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(dir, sizeof dir, "%s", path);
	*strrchr(dir, '/') = '\0';
	w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir_fd < 0)
		return tw_store_fail_errno("open", dir, err);
	st = rename_in(p, path, err);
	if (st != TW_OK)
		return st;
	tw_crash_point("blob_renamed");
	begin_sync(w, &w->dir, w->dir_fd, "name_synced");
	return TW_OK;
}

/* base and base/ab */
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

/* Existing folders may have been created by a process that did not get to sync them.  Files that
 * can be recreated need not wait for it. */
static enum tw_status sync_shards(
        const struct tw_store_put *p, const char *leaf, struct tw_err *err)
{
	char upper[PATH_BYTES];
	enum tw_status st;

	if (strncmp(p->key, "pieces/", 7) != 0)
		return TW_OK;
	(void)snprintf(upper, sizeof upper, "%s", leaf);
	*strrchr(upper, '/') = '\0';
	st = tw_store_sync_folder(upper, err);
	*strrchr(upper, '/') = '\0';
	return st == TW_OK ? tw_store_sync_folder(upper, err) : st;
}

static enum tw_status put_named(struct tw_store_put *p, char path[PATH_BYTES], struct tw_err *err)
{
	char *slash = strrchr(path, '/');
	enum tw_status st;

	*slash = '\0';
	st = make_shards(path, err);
	if (st == TW_OK)
		st = sync_shards(p, path, err);
	*slash = '/';
	if (st != TW_OK)
		return st;
	if (rename(p->path, path) != 0)
		return tw_store_fail_errno("rename", path, err);
	*slash = '\0';
	return tw_store_sync_folder(path, err);
}

static enum tw_status put(void *store, struct tw_store_put *p, struct tw_err *err)
{
	struct placing *w;
	char path[PATH_BYTES];

	path_of(store, p->key, path);
	if (p->replaces)
		return put_named(p, path, err);
	w = tw_mem_zalloc(1, sizeof *w);
	if (!w)
		return tw_oom(err);
	w->folder = store;
	w->dir_fd = -1;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->synced, NULL);
	p->state = w;
	return put_content(p, path, err);
}

/* --- reading --- */

static enum tw_status get(
        void *store, const char *key, int64_t until_ms, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES];
	int fd;

	(void)until_ms;
	path_of(store, key, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return tw_fail(err, TW_NOT_FOUND, "the content is no longer stored");
	if (fd < 0)
		return tw_store_fail_errno("open", path, err);
	*ret_fd = fd;
	return TW_OK;
}

static enum tw_status stat_file(
        void *store, const char *key, struct tw_store_file *ret, struct tw_err *err)
{
	char path[PATH_BYTES];
	struct stat s;

	path_of(store, key, path);
	if (stat(path, &s) != 0)
		return errno == ENOENT
		               ? tw_fail(err, TW_NOT_FOUND, "the content is no longer stored")
		               : tw_store_fail_errno("stat", path, err);
	*ret = (struct tw_store_file){.key = key,
	        .bytes = (uint64_t)s.st_size,
	        .modified_ms = (int64_t)s.st_mtim.tv_sec * 1000};
	return TW_OK;
}

static enum tw_status remove_file(void *store, const char *key, struct tw_err *err)
{
	char path[PATH_BYTES];

	path_of(store, key, path);
	if (unlink(path) != 0 && errno != ENOENT)
		return tw_store_fail_errno("unlink", path, err);
	return TW_OK;
}

struct walk {
	struct folder *store;
	tw_store_each *each;
	void *arg;
};

/* Files are `levels` folders below. */
/* NOLINTNEXTLINE(misc-no-recursion) limited by levels */
static enum tw_status walk(const struct walk *w, const char *key, int levels, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st = TW_OK;
	struct dirent *e;
	DIR *d;

	path_of(w->store, key, path);
	d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? TW_OK
		                                           : tw_store_fail_errno("list", path, err);
	while (st == TW_OK && (errno = 0, e = readdir(d))) {
		char below[TW_STORE_KEY + 256];
		const struct tw_store_file f = {.key = below};

		if (e->d_name[0] == '.' ||
		        snprintf(below, sizeof below, "%s/%s", key, e->d_name) >= (int)sizeof below)
			continue;
		st = levels ? walk(w, below, levels - 1, err) : w->each(w->arg, &f, err);
	}
	if (st == TW_OK && errno)
		st = tw_store_fail_errno("list", path, err);
	(void)closedir(d);
	return st;
}

static enum tw_status list(
        void *store, const char *folder, tw_store_each *each, void *arg, struct tw_err *err)
{
	const struct walk w = {store, each, arg};

	return walk(&w, folder, 1, err);
}

const struct tw_store_engine tw_store_folder = {
        .scheme = "",
        .open = open_folder,
        .close = close_folder,
        .put = put,
        .wait = wait_put,
        .end = end_put,
        .get = get,
        .stat_file = stat_file,
        .remove = remove_file,
        .list = list,
};
