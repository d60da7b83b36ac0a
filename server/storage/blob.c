/*
 * blob.c - uploads in spool/, hashed while they arrive, and passed to a storage engine when
 * complete; trace files.
 *
 * The engine makes them durable (store_*.c).  With a remote store, a writer holds a claim on its
 * key until the row exists (store_claims.c).
 */
#include "server/storage/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/disk.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/storage/blob_int.h"
#include "server/storage/blob_store.h"

enum {
	PATH_BYTES = TW_BLOB_PATH,
	SPOOL_TRIES = 10,
	PIECE_BYTES = 1 << 16,
	CHECK_EVERY_BYTES = 16 << 20,
	MISSING_PROBES = 20,       /* a deleted reserve may mean that the folder is being deleted */
	LINGER_MS = 15 * 60 * 1000 /* a file put without a row must have one by then */
};

enum tw_status tw_folder_make(const char *path, struct tw_err *err)
{
	char parent[PATH_BYTES];
	char *slash;

	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? TW_OK
		                       : tw_store_fail_errno("cannot make the folder", path, err);
	(void)snprintf(parent, sizeof parent, "%s", path);
	for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0'; /* below the root: the root */
	return tw_store_sync_folder(slash ? parent : ".", err);
}

static enum tw_status make_sub(struct tw_blobs *b, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", b->dir, name);
	return tw_folder_make(path, err);
}

static const struct tw_store_engine *const engines[] = {
        &tw_store_folder,
        &tw_store_s3,
        NULL,
};

enum tw_status tw_store_engine_of(
        const char *blobs, const struct tw_store_engine **ret, struct tw_err *err)
{
	for (const struct tw_store_engine *const *e = engines; *e; e++) {
		size_t n = strlen((*e)->scheme);

		if (n ? strncmp(blobs, (*e)->scheme, n) == 0 : !*blobs) {
			*ret = *e;
			return TW_OK;
		}
	}
	return tw_fail(err, TW_BAD_REQUEST,
	        "--blobs is s3://BUCKET or s3://BUCKET/PREFIX, or empty for the data folder");
}

/* data/storage.lock prevents deletions by the server while another program uses a data folder whose
 * files are in an object store: objects written by such a program have no row yet, and claims are
 * per process.  The program (serves false) takes the lock until *ret_fd is closed, waiting while
 * the server deletes a file. */
static enum tw_status lock_open(const char *data_dir, bool serves, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES];
	int fd;

	(void)snprintf(path, sizeof path, "%s/storage.lock", data_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	*ret_fd = fd;
	if (fd >= 0 && (serves || flock(fd, LOCK_SH) == 0))
		return TW_OK;
	return tw_fail_errno(err, TW_IO, "%.120s cannot be locked", path);
}

/* For the server: false while another program uses the folder. */
static bool lock_try(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void lock_end(int fd)
{
	(void)flock(fd, LOCK_UN);
}

static enum tw_status open_engine(
        struct tw_blobs *b, const struct tw_store_endpoint *p, struct tw_err *err)
{
	enum tw_status st = tw_store_engine_of(p->storage->blobs, &b->engine, err);

	if (st == TW_OK && b->engine->remote) {
		b->claims = tw_key_claims_new();
		st = b->claims ? lock_open(b->dir, p->serves, &b->in_use, err) : tw_oom(err);
	}
	return st == TW_OK ? b->engine->open(p, &b->store, err) : st;
}

enum tw_status tw_blobs_check_reserve(const struct tw_blobs *b, struct tw_err *err)
{
	return tw_reserve_check(b->dir, b->reserve_bytes, err);
}

enum tw_status tw_blobs_probe(struct tw_blobs *b, struct tw_err *err)
{
	if (!b->reserve_bytes)
		return TW_OK;
	if (tw_blobs_check_reserve(b, NULL) == TW_OK)
		b->probes_missing = 0;
	else if (tw_reserve_exists(b->dir) || ++b->probes_missing % MISSING_PROBES == 0)
		(void)tw_reserve_fill(b->dir, b->reserve_bytes, NULL);
	return tw_reserve_probe(b->dir, err);
}

/* A start on a full disk releases space here; a disk that never had the space is reported by
 * /readyz. */
static void open_reserve(struct tw_blobs *b, uint64_t bytes)
{
	struct tw_err err;

	if (!bytes)
		return;
	b->reserve_bytes = tw_reserve_size(b->dir, bytes);
	tw_reserve_release_if_low(b->dir);
	if (tw_reserve_fill(b->dir, b->reserve_bytes, &err) != TW_OK)
		tw_log_err(TW_LOG_WARN, "reserve_missing", b->dir, &err);
}

enum tw_status tw_blobs_open_at(
        const struct tw_store_endpoint *p, struct tw_blobs **ret, struct tw_err *err)
{
	size_t len = strlen(p->data_dir);
	struct tw_blobs *b;
	enum tw_status st;

	if (len == 0 || len > PATH_BYTES / 2)
		return tw_fail(err, TW_BAD_REQUEST, "the data folder's path is too long");
	b = tw_mem_zalloc(1, sizeof *b + len + 1);
	if (!b)
		return tw_oom(err);
	(void)pthread_rwlock_init(&b->use, NULL);
	memcpy(b->dir, p->data_dir, len + 1);
	b->min_free_percent = p->min_free_percent;
	b->in_use = -1;
	(void)snprintf(b->spool, sizeof b->spool, "spool");
	b->spool_lock = -1;
	st = tw_folder_make(b->dir, err);
	if (st == TW_OK)
		open_reserve(b, p->reserve_bytes);
	if (st == TW_OK)
		st = make_sub(b, "spool", err);
	if (st == TW_OK)
		st = open_engine(b, p, err);
	if (st == TW_OK)
		*ret = b;
	else
		(void)tw_blobs_close(b);
	return st;
}

enum tw_status tw_blobs_open(
        const char *data_dir, unsigned min_free_percent, struct tw_blobs **ret, struct tw_err *err)
{
	const struct tw_storage folder = {.blobs = ""};

	return tw_blobs_open_at(&(struct tw_store_endpoint){.data_dir = data_dir,
	                                .storage = &folder,
	                                .min_free_percent = min_free_percent},
	        ret, err);
}

struct tw_blobs *tw_blobs_close(struct tw_blobs *b)
{
	if (!b)
		return NULL;
	if (b->store)
		b->engine->close(b->store);
	b->claims = tw_key_claims_free(b->claims);
	if (b->in_use >= 0)
		(void)close(b->in_use);
	if (b->spool_lock >= 0)
		(void)close(b->spool_lock);
	(void)pthread_rwlock_destroy(&b->use);
	tw_mem_free(b);
	return NULL;
}

void tw_blob_use_begin(struct tw_blobs *b)
{
	if (!tw_blobs_remote(b))
		(void)pthread_rwlock_rdlock(&b->use);
}

void tw_blob_use_end(struct tw_blobs *b)
{
	if (!tw_blobs_remote(b))
		(void)pthread_rwlock_unlock(&b->use);
}

void tw_blob_drop_begin(struct tw_blobs *b)
{
	if (!tw_blobs_remote(b))
		(void)pthread_rwlock_wrlock(&b->use);
}

void tw_blob_drop_end(struct tw_blobs *b)
{
	tw_blob_use_end(b);
}

enum tw_status tw_blobs_check_space(const struct tw_blobs *b, uint64_t bytes, struct tw_err *err)
{
	enum tw_status st = tw_blobs_check_reserve(b, err);
	struct tw_disk d, left;

	if (st != TW_OK)
		return st;
	if (!tw_disk_of(b->dir, &d))
		return tw_store_fail_errno("statvfs", b->dir, err);
	left = (struct tw_disk){.size_bytes = d.size_bytes,
	        .free_bytes = d.free_bytes > bytes ? d.free_bytes - bytes : 0};
	if (tw_disk_free_percent(&left) < b->min_free_percent &&
	        !(b->engine->yield && b->engine->yield(b->store)))
		return tw_fail(err, TW_FULL,
		        "less than %u %% of the disk is free: uploads are refused until there is "
		        "space",
		        b->min_free_percent);
	if (bytes > d.free_bytes)
		return tw_fail(err, TW_FULL, "no space left for uploads");
	return TW_OK;
}

static uint64_t min_free_of(const struct tw_blobs *b, const struct tw_disk *d)
{
	return d->total_bytes / 100 * b->min_free_percent;
}

uint64_t tw_blobs_min_free_bytes(const struct tw_blobs *b)
{
	struct tw_disk d;

	(void)tw_disk_of(b->dir, &d);
	return min_free_of(b, &d);
}

uint64_t tw_blobs_spare_bytes(const struct tw_blobs *b)
{
	struct tw_disk d;
	uint64_t held;

	if (!tw_disk_of(b->dir, &d))
		return 0;
	held = min_free_of(b, &d);
	return d.free_bytes > held ? d.free_bytes - held : 0;
}

void tw_spool_path(struct tw_blobs *b, const char *name, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s/%s/%s", b->dir, b->spool, name);
}

/* --- spool folders of servers that share a data folder --- */

static bool lock_of(const char *path, char out[PATH_BYTES])
{
	return snprintf(out, PATH_BYTES, "%s/.lock", path) < PATH_BYTES;
}

/* Another server may have removed the folder as a dead server's before it was locked. */
static bool is_there(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_nlink > 0;
}

/* Creates the folder and holds it until *ret_lock is closed. */
static enum tw_status own_spool(const char *path, int *ret_lock, struct tw_err *err)
{
	char lock[PATH_BYTES];
	int fd = -1;

	if (!lock_of(path, lock))
		return tw_fail(err, TW_BAD_REQUEST, "--data is too long");
	for (int i = 0; i < SPOOL_TRIES; i++) {
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			break;
		fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0 && flock(fd, LOCK_EX) == 0 && is_there(fd)) {
			*ret_lock = fd;
			return TW_OK;
		}
		if (fd >= 0)
			(void)close(fd);
	}
	return tw_fail_errno(err, TW_IO, "%s cannot be created and locked", path);
}

bool tw_spool_is_dead(const char *path)
{
	char lock[PATH_BYTES];
	int fd = lock_of(path, lock) ? open(lock, O_RDWR | O_CLOEXEC) : -1;
	const bool dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (dead)
		(void)unlink(lock); /* a server waiting for the lock creates another */
	if (fd >= 0)
		(void)close(fd);
	return dead;
}

enum tw_status tw_blobs_own_spool(struct tw_blobs *b, const char *name, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(b->spool, sizeof b->spool, "spool/%s", name);
	tw_spool_path(b, "", path, sizeof path);
	return own_spool(path, &b->spool_lock, err);
}

/* --- the file of a writer --- */

static enum tw_status open_spool(struct tw_blob_writer *w, struct tw_err *err)
{
	struct timespec t;
	char name[96];

	(void)clock_gettime(CLOCK_REALTIME, &t);
	(void)snprintf(name, sizeof name, "up-%lld-%ld-%d-%llu", (long long)t.tv_sec, t.tv_nsec,
	        (int)getpid(), (unsigned long long)atomic_fetch_add(&w->blobs->serial, 1));
	tw_spool_path(w->blobs, name, w->path, sizeof w->path);
	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return tw_store_fail_errno("create", w->path, err);
	tw_crash_point("spool_created");
	return TW_OK;
}

static void close_writer(struct tw_blob_writer *w, int64_t linger_ms)
{
	uint8_t hash[32];

	if (w->stored)
		w->blobs->engine->end(w->blobs->store, &w->put);
	if (w->claimed)
		tw_claim_end(w->blobs->claims, w->key, linger_ms);
	if (w->fd >= 0)
		(void)close(w->fd);
	if (w->sha)
		gnutls_hash_deinit(w->sha, hash);
	tw_mem_free(w);
}

enum tw_status tw_blobs_ready(const struct tw_blobs *b, struct tw_err *err)
{
	return b->engine->ready ? b->engine->ready(b->store, err) : TW_OK;
}

enum tw_status tw_blob_begin(
        struct tw_blobs *b, uint64_t max_bytes, struct tw_blob_writer **ret, struct tw_err *err)
{
	enum tw_status st = tw_blobs_check_space(b, 0, err);
	struct tw_blob_writer *w;

	if (st == TW_OK)
		st = tw_blobs_ready(b, err);
	if (st != TW_OK)
		return st;
	w = tw_mem_zalloc(1, sizeof *w);
	if (!w)
		return tw_oom(err);
	w->blobs = b;
	w->max_bytes = max_bytes;
	w->next_check = CHECK_EVERY_BYTES;
	w->fd = -1;
	st = tw_sha256_begin(GNUTLS_DIG_SHA256, &w->sha, err);
	if (st == TW_OK)
		st = open_spool(w, err);
	if (st == TW_OK)
		*ret = w;
	else
		tw_blob_discard(w);
	return st;
}

enum tw_status tw_blob_write(struct tw_blob_writer *w, const void *p, size_t n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (n == 0)
		return TW_OK;
	if (n > w->max_bytes - w->bytes)
		return tw_fail_at(err, TW_TOO_LARGE, w->max_bytes, "larger than %llu bytes",
		        (unsigned long long)w->max_bytes);
	if (w->bytes + n > w->next_check) {
		w->next_check = w->bytes + n + CHECK_EVERY_BYTES;
		st = tw_blobs_check_space(w->blobs, n, err);
	}
	if (st == TW_OK)
		st = tw_write_all(w->fd, p, n) ? TW_OK : tw_store_fail_errno("write", w->path, err);
	if (st != TW_OK)
		return st;
	if (gnutls_hash(w->sha, p, n) != 0)
		return tw_fail(err, TW_BUG, "hashing failed");
	w->bytes += n;
	return TW_OK;
}

enum tw_status tw_blob_write_fd(struct tw_blob_writer *w, int fd, struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES];
	enum tw_status st = TW_OK;
	ssize_t n = 1;

	while (st == TW_OK && n > 0) {
		n = tw_read_some(fd, piece, sizeof piece);
		if (n > 0)
			st = tw_blob_write(w, piece, (size_t)n, err);
	}
	return n < 0 ? tw_store_fail_errno("copying an upload to", w->path, err) : st;
}

/* --- names --- */

static bool is_sha256(const char *s)
{
	return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

bool tw_blob_key(const char *sha256, char out[TW_STORE_KEY])
{
	(void)snprintf(out, TW_STORE_KEY, "blobs/%.2s/%.64s", sha256, sha256);
	return is_sha256(sha256);
}

/* --- writing --- */

/* Ends the hash of what was written. */
static void end_hash(struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX])
{
	uint8_t hash[32];

	gnutls_hash_output(w->sha, hash);
	tw_sha256_hex(hash, ret_sha256);
}

static enum tw_status put_held(struct tw_blobs *b, struct tw_store_put *p, struct tw_err *err)
{
	const struct tw_blob_peers *peers = &b->peers;
	uint64_t held = 0;
	enum tw_status st, released;

	if (!peers->hold)
		return b->engine->put(b->store, p, err);
	st = peers->hold(peers->arg, p->key, false, &held, err);
	if (st != TW_OK)
		return st;
	st = b->engine->put(b->store, p, err);
	released = peers->let_go(peers->arg, p->key, false, held, st == TW_OK ? err : NULL);
	return st == TW_OK ? released : st;
}

enum tw_status tw_blob_wait(struct tw_blob_writer *w, struct tw_err *err)
{
	return w->stored ? w->blobs->engine->wait(w->blobs->store, &w->put, err) : TW_OK;
}

enum tw_status tw_blob_store(struct tw_blob_writer *w, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	tw_crash_point("spool_written");
	end_hash(w, w->sha256);
	(void)tw_blob_key(w->sha256, w->key);
	if (w->blobs->claims)
		st = tw_claim(w->blobs->claims, w->key, err);
	if (st != TW_OK)
		return st;
	w->claimed = w->blobs->claims != NULL;
	w->stored = true;
	w->put = (struct tw_store_put){.key = w->key,
	        .sha256 = w->sha256,
	        .bytes = w->bytes,
	        .path = w->path,
	        .fd = w->fd};
	return put_held(w->blobs, &w->put, err);
}

enum tw_status tw_blob_take_content(
        struct tw_blob_writer *w, char *out, size_t cap, struct tw_err *err)
{
	enum tw_status st = tw_fd_hex(w->fd, out, cap, err);

	if (st != TW_OK)
		return st;
	(void)unlink(w->path);
	end_hash(w, w->sha256);
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
	close_writer(w, 0);
	return NULL;
}

enum tw_status tw_blob_commit(
        struct tw_blob_writer *w, char ret_sha256[TW_SHA256_HEX], struct tw_err *err)
{
	enum tw_status st = tw_blob_store(w, err);

	if (st == TW_OK)
		st = tw_blob_wait(w, err);
	if (st != TW_OK)
		return st;
	memcpy(ret_sha256, w->sha256, TW_SHA256_HEX);
	close_writer(w, LINGER_MS);
	return TW_OK;
}

struct tw_blob_writer *tw_blob_discard(struct tw_blob_writer *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0)
		(void)unlink(w->path); /* fails if it was stored */
	return tw_blob_end(w);
}

enum tw_status tw_blob_set_aside(struct tw_blob_writer *w, const char *path,
        char ret_sha256[TW_SHA256_HEX], struct tw_err *err)
{
	if (rename(w->path, path) != 0)
		return tw_store_fail_errno("rename", w->path, err);
	end_hash(w, ret_sha256);
	close_writer(w, 0);
	return TW_OK;
}

enum tw_status tw_blob_take(
        struct tw_blobs *b, const char *path, const char *sha256, struct tw_err *err)
{
	char key[TW_STORE_KEY];
	struct tw_store_put p = {.key = key, .sha256 = sha256, .path = path};
	enum tw_status st;

	p.fd = tw_blob_key(sha256, key) ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (p.fd < 0)
		return tw_store_fail_errno("open", path, err);
	st = b->engine->put(b->store, &p, err);
	if (st == TW_OK)
		st = b->engine->wait(b->store, &p, err);
	b->engine->end(b->store, &p);
	(void)close(p.fd);
	return st;
}

/* --- reading --- */

enum tw_status tw_blob_open(struct tw_blobs *b, const char *sha256, int *ret_fd, struct tw_err *err)
{
	return tw_blob_open_by(b, sha256, 0, ret_fd, err);
}

struct blob_at { /* a file in the store, or in a row of the catalogue */
	const char *key;
	const char *sha256, *trace_id; /* either */
};

static enum tw_status get_row(
        struct tw_blobs *b, const struct blob_at *at, int *ret_fd, struct tw_err *err)
{
	return b->rows.get(b->rows.arg, at->sha256, at->trace_id, ret_fd, err);
}

static enum tw_status get(struct tw_blobs *b, const struct blob_at *at, int64_t until_ms,
        int *ret_fd, struct tw_err *err)
{
	enum tw_status st = TW_NOT_FOUND;

	if (b->rows.get && !b->rows.are_rare)
		st = get_row(b, at, ret_fd, err);
	if (st == TW_NOT_FOUND)
		st = b->engine->get(b->store, at->key, until_ms, ret_fd, err);
	if (st == TW_NOT_FOUND && b->rows.get && b->rows.are_rare)
		st = get_row(b, at, ret_fd, err);
	return st;
}

static enum tw_status size_of_row(
        struct tw_blobs *b, const struct blob_at *at, uint64_t *ret_bytes, struct tw_err *err)
{
	return b->rows.size(b->rows.arg, at->sha256, at->trace_id, ret_bytes, err);
}

static enum tw_status size_of(
        struct tw_blobs *b, const struct blob_at *at, uint64_t *ret_bytes, struct tw_err *err)
{
	struct tw_store_file f = {.bytes = 0};
	enum tw_status st = TW_NOT_FOUND;

	if (b->rows.get && !b->rows.are_rare)
		st = size_of_row(b, at, ret_bytes, err);
	if (st != TW_NOT_FOUND)
		return st;
	st = b->engine->stat_file(b->store, at->key, &f, err);
	*ret_bytes = f.bytes;
	if (st == TW_NOT_FOUND && b->rows.get && b->rows.are_rare)
		st = size_of_row(b, at, ret_bytes, err);
	return st;
}

enum tw_status tw_blob_open_by(
        struct tw_blobs *b, const char *sha256, int64_t until_ms, int *ret_fd, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_blob_key(sha256, key))
		return tw_fail(err, TW_NOT_FOUND, "no such content");
	return get(b, &(struct blob_at){key, sha256, NULL}, until_ms, ret_fd, err);
}

enum tw_status tw_blob_stat(
        struct tw_blobs *b, const char *sha256, uint64_t *ret_bytes, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_blob_key(sha256, key))
		return tw_fail(err, TW_NOT_FOUND, "no such content");
	return size_of(b, &(struct blob_at){key, sha256, NULL}, ret_bytes, err);
}

enum tw_status tw_blob_delete(struct tw_blobs *b, const char *sha256, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_blob_key(sha256, key))
		return TW_OK;
	return b->engine->remove(b->store, key, err);
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
	st = tw_sha256_fd(fd, found, &n, err);
	(void)close(fd);
	if (st == TW_OK && (n != bytes || strcmp(found, sha256) != 0))
		st = tw_fail(err, TW_CORRUPT,
		        "the file does not match the upload: %llu of %llu bytes",
		        (unsigned long long)n, (unsigned long long)bytes);
	return st;
}

/* --- the whole storage --- */

void tw_blobs_stop(struct tw_blobs *b)
{
	if (b->engine->stop)
		b->engine->stop(b->store);
}

const char *tw_blobs_dir(const struct tw_blobs *b)
{
	return b->dir;
}

bool tw_blobs_remote(const struct tw_blobs *b)
{
	return b->engine->remote;
}

const struct tw_store_engine *tw_blobs_engine(const struct tw_blobs *b, void **ret_store)
{
	*ret_store = b->store;
	return b->engine;
}

void tw_blobs_honour_peers(struct tw_blobs *b, const struct tw_blob_peers *p)
{
	b->peers = *p;
}

void tw_blobs_use_rows(struct tw_blobs *b, const struct tw_blob_rows *rows)
{
	b->rows = *rows;
}

bool tw_blobs_have_rows(const struct tw_blobs *b)
{
	return b->rows.get != NULL;
}

uint64_t tw_blobs_row_bytes(const struct tw_blobs *b)
{
	return b->rows.most_bytes;
}

bool tw_blobs_have_peers(const struct tw_blobs *b)
{
	return b->peers.hold != NULL;
}

static bool claim_here(struct tw_blobs *b, const char *key)
{
	if (lock_try(b->in_use) && tw_claim_exclusive(b->claims, key))
		return true;
	lock_end(b->in_use);
	return false;
}

bool tw_blobs_claim_exclusive(struct tw_blobs *b, const char *key)
{
	if (!b->claims)
		return true;
	if (!claim_here(b, key))
		return false;
	b->held_exclusive = 0;
	if (!b->peers.hold)
		return true;
	if (b->peers.hold(b->peers.arg, key, true, &b->held_exclusive, NULL) == TW_OK &&
	        b->held_exclusive)
		return true;
	tw_claim_exclusive_end(b->claims, key);
	lock_end(b->in_use);
	return false;
}

enum tw_status tw_blobs_still_exclusive(struct tw_blobs *b, const char *key, struct tw_err *err)
{
	return b->peers.still ? b->peers.still(b->peers.arg, key, b->held_exclusive, err) : TW_OK;
}

bool tw_blobs_claim_exclusive_end(struct tw_blobs *b, const char *key)
{
	bool held = true;

	if (!b->claims)
		return true;
	if (b->peers.let_go)
		held = b->peers.let_go(b->peers.arg, key, true, b->held_exclusive, NULL) == TW_OK;
	tw_claim_exclusive_end(b->claims, key);
	lock_end(b->in_use);
	return held;
}

/* --- trace files: their location, replacement, and protection until their row is written --- */

/* Ids begin with their time; their last characters are evenly distributed.  One folder deep: with a
 * second one nearly every trace would create a folder and sync its parent. */
bool tw_trace_key(const char *id, char out[TW_STORE_KEY])
{
	size_t len = strlen(id);

	if (len != TW_ID_CHARS || strspn(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != len)
		return false;
	(void)snprintf(out, TW_STORE_KEY, "traces/%.2s/%s.db", id + len - 2, id);
	return true;
}

static enum tw_status no_trace(struct tw_err *err)
{
	return tw_fail(err, TW_NOT_FOUND, "no such trace");
}

enum tw_status tw_trace_path(
        struct tw_blobs *b, const char *trace_id, char *out, size_t cap, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_trace_key(trace_id, key))
		return no_trace(err);
	if (snprintf(out, cap, "%s/%s", b->dir, key) >= (int)cap)
		return tw_fail(err, TW_IO, "a path is too long");
	return TW_OK;
}

enum tw_status tw_trace_open(
        struct tw_blobs *b, const char *trace_id, int *ret_fd, struct tw_err *err)
{
	return tw_trace_open_by(b, trace_id, 0, ret_fd, err);
}

bool tw_trace_forget(struct tw_blobs *b, const char *trace_id)
{
	char key[TW_STORE_KEY];

	return b->engine->forget && tw_trace_key(trace_id, key) && b->engine->forget(b->store, key);
}

enum tw_status tw_trace_open_by(
        struct tw_blobs *b, const char *trace_id, int64_t until_ms, int *ret_fd, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_trace_key(trace_id, key))
		return no_trace(err);
	return get(b, &(struct blob_at){key, NULL, trace_id}, until_ms, ret_fd, err);
}

enum tw_status tw_trace_delete(struct tw_blobs *b, const char *trace_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	return tw_trace_key(trace_id, key) ? b->engine->remove(b->store, key, err) : TW_OK;
}

enum tw_status tw_trace_stat(
        struct tw_blobs *b, const char *trace_id, uint64_t *ret_bytes, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_trace_key(trace_id, key))
		return no_trace(err);
	return size_of(b, &(struct blob_at){key, NULL, trace_id}, ret_bytes, err);
}

static enum tw_status put_trace(struct tw_blobs *b, struct tw_store_put *p, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	enum tw_status st = TW_OK;

	if (b->engine->remote) /* the object's metadata contains the hash */
		st = tw_sha256_fd(p->fd, sha256, &p->bytes, err);
	p->sha256 = sha256;
	if (st == TW_OK)
		st = put_held(b, p, err);
	if (st == TW_OK)
		st = b->engine->wait(b->store, p, err);
	b->engine->end(b->store, p);
	return st;
}

enum tw_status tw_trace_publish(
        struct tw_blobs *b, const char *tmp_path, const char *trace_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];
	struct tw_store_put p = {.key = key, .path = tmp_path, .fd = -1, .replaces = true};
	enum tw_status st;

	if (!tw_trace_key(trace_id, key))
		return no_trace(err);
	if (b->engine->remote) {
		p.fd = open(tmp_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (p.fd < 0)
			return tw_fail_errno(err, TW_IO, "%.150s cannot be opened", tmp_path);
	}
	st = put_trace(b, &p, err);
	if (p.fd >= 0)
		(void)close(p.fd);
	return st;
}

enum tw_status tw_trace_hold(struct tw_blobs *b, const char *trace_id, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	if (!tw_trace_key(trace_id, key))
		return no_trace(err);
	return b->claims ? tw_claim(b->claims, key, err) : TW_OK;
}

void tw_trace_release(struct tw_blobs *b, const char *trace_id)
{
	char key[TW_STORE_KEY];

	if (b->claims && tw_trace_key(trace_id, key))
		tw_claim_end(b->claims, key, 0);
}
