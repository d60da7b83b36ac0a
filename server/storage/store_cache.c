#include "server/storage/store_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "decoder/base/hash.h"
#include "decoder/base/order.h"
#include "server/base/file/disk.h"
#include "server/base/file/io.h"
#include "server/base/thread/cond.h"
#include "server/base/thread/pool.h"

enum { PATH_BYTES = 1500, SLOTS = 1 << 14, SHARE_OF_FULL = 8, FETCHERS = 16 };

static const char unfinished[] = ".fill-";

struct entry {
	struct entry *next;          /* in its hash slot */
	struct entry *newer, *older; /* by last use */
	uint64_t bytes;
	char name[TW_CACHE_NAME];
};

struct flight {                   /* a fetch in progress, for one or more requests */
	struct tw_pool_task task; /* first member: the pool returns it */
	struct flight *next;      /* of fetches that can be joined */
	struct tw_cache *cache;
	struct tw_cache_request request; /* its strings are: */
	char name[TW_CACHE_NAME], key[TW_CACHE_NAME];
	unsigned holders;  /* waiting requests, and the fetching thread */
	bool done, doomed; /* doomed: the fetched file must not enter the cache */
	int fd;            /* for waiting requests */
	enum tw_status status;
	struct tw_err err;
};

struct tw_cache {
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t landed;
	struct entry *slots[SLOTS];
	struct entry *newest, *oldest;
	struct flight *flights;
	struct tw_pool *fetchers;
	struct tw_cache_stats stats;
	uint64_t max_bytes, serial;
	unsigned min_free_percent;
	char dir[PATH_BYTES / 2];
};

/* --- entries --- */

static size_t slot_of(const char *name)
{
	return tw_fnv32(tw_str_of(name)) & (SLOTS - 1);
}

static struct entry *find(struct tw_cache *c, const char *name)
{
	struct entry *e = c->slots[slot_of(name)];

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

static void unchain(struct tw_cache *c, struct entry *e)
{
	if (e->newer)
		e->newer->older = e->older;
	else
		c->newest = e->older;
	if (e->older)
		e->older->newer = e->newer;
	else
		c->oldest = e->newer;
	e->newer = e->older = NULL;
}

static void make_newest(struct tw_cache *c, struct entry *e)
{
	e->older = c->newest;
	e->newer = NULL;
	if (c->newest)
		c->newest->newer = e;
	else
		c->oldest = e;
	c->newest = e;
}

static void forget(struct tw_cache *c, struct entry *e)
{
	struct entry **at = &c->slots[slot_of(e->name)];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	unchain(c, e);
	c->stats.bytes -= e->bytes;
	c->stats.files--;
	tw_mem_free(e);
}

static void path_of(const struct tw_cache *c, const char *name, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/%s", c->dir, name);
}

static void evict(struct tw_cache *c, uint64_t down_to)
{
	char path[PATH_BYTES];

	while (c->oldest && (c->stats.bytes > down_to || c->stats.files > TW_CACHE_FILES)) {
		path_of(c, c->oldest->name, path);
		(void)unlink(path);
		forget(c, c->oldest);
		c->stats.evicted++;
	}
}

/* False if out of memory. */
static bool note(struct tw_cache *c, const char *name, uint64_t bytes)
{
	struct entry *e = find(c, name);
	struct entry **slot = &c->slots[slot_of(name)];

	if (e) {
		c->stats.bytes += bytes - e->bytes;
		e->bytes = bytes;
		unchain(c, e);
	} else {
		e = tw_mem_zalloc(1, sizeof *e);
		if (!e)
			return false;
		(void)snprintf(e->name, sizeof e->name, "%s", name);
		e->bytes = bytes;
		e->next = *slot;
		*slot = e;
		c->stats.bytes += bytes;
		c->stats.files++;
	}
	make_newest(c, e);
	return true;
}

static bool has_space(const struct tw_cache *c)
{
	struct tw_disk d;

	return tw_disk_of(c->dir, &d) && tw_disk_free_percent(&d) >= c->min_free_percent;
}

/* Evicts the least recently used until enough of the disk is free, or the cache is empty. */
static bool free_space(struct tw_cache *c)
{
	const uint64_t step = c->max_bytes / SHARE_OF_FULL;

	while (!has_space(c) && c->oldest)
		evict(c, c->stats.bytes > step ? c->stats.bytes - step : 0);
	return has_space(c);
}

/* Gives the file at `path` its name, or deletes it if the cache lacks space.  Call with the lock
 * held. */
static void install_file(struct tw_cache *c, const char *name, const char *path)
{
	char to[PATH_BYTES];
	struct stat s;
	const bool fits = free_space(c);
	struct entry *e = find(c, name);

	path_of(c, name, to);
	if (fits && stat(path, &s) == 0 && (uint64_t)s.st_size <= c->max_bytes &&
	        rename(path, to) == 0) {
		if (!note(c, name, (uint64_t)s.st_size))
			(void)unlink(to);
		evict(c, c->max_bytes);
		return;
	}
	(void)unlink(path);
	if (e) { /* it is replaced */
		(void)unlink(to);
		forget(c, e);
	}
}

/* --- start --- */

struct found {
	char name[TW_CACHE_NAME];
	uint64_t bytes;
	struct timespec used;
};

TW_ORDER_BY(by_use, struct found, TW_RISING(used.tv_sec), TW_RISING(used.tv_nsec))

/* Deletes files that are not complete cache entries. */
static size_t read_folder(DIR *d, struct found *all, size_t cap)
{
	struct dirent *e;
	struct stat s;
	size_t n = 0;

	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (e->d_name[0] == '.' || len >= TW_CACHE_NAME || n == cap ||
		        fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
		        !S_ISREG(s.st_mode)) {
			(void)unlinkat(dirfd(d), e->d_name, 0);
			continue;
		}
		memcpy(all[n].name, e->d_name, len + 1);
		all[n].bytes = (uint64_t)s.st_size;
		all[n++].used = s.st_mtim;
	}
	return n;
}

static enum tw_status remember(struct tw_cache *c, struct tw_err *err)
{
	struct found *all = tw_mem_zalloc(TW_CACHE_FILES, sizeof *all);
	DIR *d = all ? opendir(c->dir) : NULL;
	size_t n;

	if (!d) {
		tw_mem_free(all);
		return tw_fail_errno(err, TW_IO, "the folder of cached files cannot be read");
	}
	n = read_folder(d, all, TW_CACHE_FILES);
	(void)closedir(d);
	TW_SORT(all, n, by_use);
	for (size_t i = 0; i < n; i++)
		(void)!note(c, all[i].name, all[i].bytes);
	tw_mem_free(all);
	evict(c, c->max_bytes);
	c->stats.evicted = 0;
	return TW_OK;
}

enum tw_status tw_cache_open(const char *dir, uint64_t max_bytes, unsigned min_free_percent,
        struct tw_cache **ret, struct tw_err *err)
{
	struct tw_cache *c = tw_mem_zalloc(1, sizeof *c);
	enum tw_status st;

	if (!c)
		return tw_oom(err);
	(void)pthread_mutex_init(&c->lock, NULL);
	tw_cond_init(&c->landed);
	c->max_bytes = max_bytes;
	c->min_free_percent = min_free_percent;
	if (snprintf(c->dir, sizeof c->dir, "%s", dir) >= (int)sizeof c->dir)
		st = tw_fail(err, TW_BAD_REQUEST, "a path is too long");
	else
		st = remember(c, err);
	if (st == TW_OK)
		st = tw_pool_start(FETCHERS, &c->fetchers, err);
	if (st == TW_OK)
		*ret = c;
	else
		(void)tw_cache_close(c);
	return st;
}

struct tw_cache *tw_cache_close(struct tw_cache *c)
{
	if (!c)
		return NULL;
	c->fetchers = tw_pool_stop(c->fetchers);
	while (c->oldest)
		forget(c, c->oldest);
	(void)pthread_cond_destroy(&c->landed);
	(void)pthread_mutex_destroy(&c->lock);
	tw_mem_free(c);
	return NULL;
}

/* --- fetching --- */

static struct flight *flight_of(struct tw_cache *c, const char *name)
{
	struct flight *f = c->flights;

	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	return f;
}

/* A separate descriptor of the same file, at its start. */
static int open_again(int fd)
{
	char path[40];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static enum tw_status fetch(struct flight *f, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	enum tw_status st;

	if (fd < 0)
		return tw_fail_errno(&f->err, tw_disk_status(errno), "a file cannot be cached");
	st = f->request.fill(f->request.arg, f->key, fd, &f->err);
	if (st == TW_OK && fdatasync(fd) != 0)
		st = tw_fail_errno(&f->err, TW_IO, "a file cannot be cached");
	f->fd = st == TW_OK ? open_again(fd) : -1;
	(void)close(fd);
	if (st == TW_OK && f->fd < 0)
		st = tw_fail_errno(&f->err, TW_IO, "a cached file cannot be opened");
	return st;
}

/* Call with the lock held. */
static void release_fetch(struct flight *f)
{
	if (--f->holders)
		return;
	if (f->fd >= 0)
		(void)close(f->fd);
	tw_mem_free(f);
}

/* Makes the fetch unreachable for new requests.  Call with the lock held. */
static void finish_fetch(struct tw_cache *c, struct flight *f)
{
	struct flight **at = &c->flights;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	f->done = true;
	(void)pthread_cond_broadcast(&c->landed);
	release_fetch(f);
}

static void run_fetch(struct tw_pool_task *task, bool stopping)
{
	struct flight *f = (struct flight *)task;
	struct tw_cache *c = f->cache;
	char temporary[32], path[PATH_BYTES];

	(void)pthread_mutex_lock(&c->lock);
	(void)snprintf(
	        temporary, sizeof temporary, "%s%llu", unfinished, (unsigned long long)c->serial++);
	(void)free_space(c);
	(void)pthread_mutex_unlock(&c->lock);
	path_of(c, temporary, path);
	f->status = stopping ? tw_fail(&f->err, TW_BUSY, "the server is shutting down")
	                     : fetch(f, path);
	(void)pthread_mutex_lock(&c->lock);
	if (f->status == TW_OK && !f->doomed)
		install_file(c, f->name, path);
	else
		(void)unlink(path);
	finish_fetch(c, f);
	(void)pthread_mutex_unlock(&c->lock);
}

/* Call with the lock held.  NULL if out of memory. */
static struct flight *start_fetch(struct tw_cache *c, const struct tw_cache_request *request)
{
	struct flight *f = tw_mem_zalloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->task.run = run_fetch;
	f->cache = c;
	f->request = *request;
	(void)snprintf(f->name, sizeof f->name, "%s", request->name);
	(void)snprintf(f->key, sizeof f->key, "%s", request->key);
	f->holders = 1;
	f->fd = -1;
	f->next = c->flights;
	c->flights = f;
	c->stats.misses++;
	if (tw_pool_submit(c->fetchers, &f->task))
		return f;
	f->holders++; /* the requester releases its own hold later */
	f->status = tw_fail(&f->err, TW_BUSY, "the server is shutting down");
	finish_fetch(c, f);
	f->holders--;
	return f;
}

/* False: timeout.  Call with the lock held. */
static bool wait_fetch(struct tw_cache *c, const struct flight *f, int64_t until_ms)
{
	while (!f->done) {
		if (!until_ms)
			(void)pthread_cond_wait(&c->landed, &c->lock);
		else if (tw_cond_wait_until(&c->landed, &c->lock, until_ms) == ETIMEDOUT)
			return f->done;
	}
	return true;
}

/* Call with the lock held. */
static enum tw_status join_fetch(
        struct tw_cache *c, struct flight *f, int64_t until_ms, int *ret_fd, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	f->holders++;
	if (!wait_fetch(c, f, until_ms))
		st = tw_fail(err, TW_BUSY,
		        "a file of this trace is being fetched from the store; retry in a moment");
	else if (f->status != TW_OK)
		tw_err_copy(err, &f->err);
	if (f->done && f->status == TW_OK) {
		*ret_fd = open_again(f->fd);
		if (*ret_fd < 0)
			st = tw_fail_errno(err, TW_IO, "a fetched file cannot be opened");
	} else if (f->done) {
		st = f->status;
	}
	release_fetch(f);
	return st;
}

static bool open_kept(struct tw_cache *c, const char *name, int *ret_fd)
{
	struct entry *e = find(c, name);
	char path[PATH_BYTES];

	if (!e)
		return false;
	path_of(c, name, path);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd < 0) { /* the folder was emptied from outside */
		forget(c, e);
		return false;
	}
	(void)futimens(*ret_fd, NULL); /* keeps the order of use across a restart */
	unchain(c, e);
	make_newest(c, e);
	c->stats.hits++;
	return true;
}

enum tw_status tw_cache_get(
        struct tw_cache *c, const struct tw_cache_request *request, int *ret_fd, struct tw_err *err)
{
	struct flight *f;
	enum tw_status st = TW_OK;

	(void)pthread_mutex_lock(&c->lock);
	f = flight_of(c, request->name);
	if (f && !f->doomed) {
		c->stats.shared++;
		st = join_fetch(c, f, request->until_ms, ret_fd, err);
	} else if (f || !open_kept(c, request->name, ret_fd)) {
		f = start_fetch(c, request);
		st = f ? join_fetch(c, f, request->until_ms, ret_fd, err) : tw_oom(err);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return st;
}

bool tw_cache_yield(struct tw_cache *c)
{
	bool space;

	(void)pthread_mutex_lock(&c->lock);
	space = free_space(c);
	(void)pthread_mutex_unlock(&c->lock);
	return space;
}

static void discard_fetch(struct tw_cache *c, const char *name)
{
	for (struct flight *f = c->flights; f; f = f->next)
		if (strcmp(f->name, name) == 0)
			f->doomed = true;
}

void tw_cache_take(struct tw_cache *c, const char *name, const char *path)
{
	(void)pthread_mutex_lock(&c->lock);
	discard_fetch(c, name);
	install_file(c, name, path);
	(void)pthread_mutex_unlock(&c->lock);
}

bool tw_cache_drop(struct tw_cache *c, const char *name)
{
	char path[PATH_BYTES];
	struct entry *e;

	(void)pthread_mutex_lock(&c->lock);
	discard_fetch(c, name);
	e = find(c, name);
	if (e) {
		path_of(c, name, path);
		(void)unlink(path);
		forget(c, e);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return e != NULL;
}

void tw_cache_stats(struct tw_cache *c, struct tw_cache_stats *ret)
{
	(void)pthread_mutex_lock(&c->lock);
	*ret = c->stats;
	(void)pthread_mutex_unlock(&c->lock);
}
