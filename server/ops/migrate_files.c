/*
 * migrate_files.c - copies uploads, mappings and decoded files from one server's storage to
 * another's.
 *
 * Each file is verified against its SHA-256 before it is stored. Files never change after they are
 * written, so folders on one file system share them by hard links, which takes no space and little
 * time. An object store reports the SHA-256 of each object; existing objects are not sent again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/ops/migrate.h"
#include "server/ops/migrate_seen.h"

enum { PATH_BYTES = 1500 };

struct files {
	struct tw_migrate *m;
	pthread_mutex_t lock;           /* of the members below, and of calls of m's callbacks */
	struct tw_migrate_seen *listed; /* keys that the store has; NULL: not listed */
	struct tw_migrate_files sums;
};

static void count_file(struct files *f)
{
	(void)pthread_mutex_lock(&f->lock);
	f->sums.files++;
	if (f->m->step)
		f->m->step(f->m->arg, &f->sums);
	(void)pthread_mutex_unlock(&f->lock);
}

/* A file that is missing or damaged in the source is reported and skipped. While the source is
 * served it may have been deleted or decoded again since it was listed, so it is not reported. */
static enum tw_status skip_if_lost(struct files *f, const struct tw_migrate_file *of,
        enum tw_status st, const struct tw_err *why, struct tw_err *err)
{
	if (st != TW_NOT_FOUND && st != TW_CORRUPT) {
		if (st != TW_OK)
			tw_err_copy(err, why);
		return st;
	}
	if (f->m->source_changes)
		return TW_OK;
	(void)pthread_mutex_lock(&f->lock);
	f->sums.lost++;
	f->m->lost(f->m->arg, of->id, why->msg);
	(void)pthread_mutex_unlock(&f->lock);
	return TW_OK;
}

/* --- existing files --- */

static enum tw_status get(
        struct tw_blobs *b, const struct tw_migrate_file *of, int *ret_fd, struct tw_err *err)
{
	if (!of->key[0])
		return tw_fail(err, TW_NOT_FOUND, "no file has such a name");
	return strncmp(of->key, "traces/", 7) == 0 ? tw_trace_open(b, of->id, ret_fd, err)
	                                           : tw_blob_open(b, of->sha256, ret_fd, err);
}

static bool has_content(
        const struct tw_migrate_file *of, const char sha256[TW_SHA256_HEX], uint64_t bytes)
{
	return of->sha256[0] ? strcmp(of->sha256, sha256) == 0 : !of->bytes || of->bytes == bytes;
}

/* Opens the file at offset 0 after verifying its content; sets its SHA-256 and size if unknown. */
static enum tw_status open_intact(
        struct tw_blobs *b, struct tw_migrate_file *of, int *ret_fd, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX];
	uint64_t bytes = 0;
	int fd = -1;
	enum tw_status st = get(b, of, &fd, err);

	if (st != TW_OK)
		return st;
	if (tw_sha256_fd(fd, sha256, &bytes, NULL) != TW_OK || lseek(fd, 0, SEEK_SET) != 0)
		st = tw_fail(err, TW_IO, "%.80s: its %.60s cannot be read", of->id, of->what);
	else if (!has_content(of, sha256, bytes))
		st = tw_fail(err, TW_CORRUPT, "its %.60s is damaged", of->what);
	if (st != TW_OK) {
		(void)close(fd);
		return st;
	}
	memcpy(of->sha256, sha256, sizeof sha256);
	of->bytes = bytes;
	*ret_fd = fd;
	return TW_OK;
}

static enum tw_status is_intact(
        struct tw_blobs *b, const struct tw_migrate_file *of, bool *ret, struct tw_err *err)
{
	struct tw_migrate_file read = *of;
	int fd = -1;
	enum tw_status st = open_intact(b, &read, &fd, err);

	*ret = st == TW_OK;
	if (fd >= 0)
		(void)close(fd);
	return st == TW_NOT_FOUND || st == TW_CORRUPT ? TW_OK : st;
}

static enum tw_status note_listed(void *arg, const struct tw_store_file *stored, struct tw_err *err)
{
	(void)err;
	tw_migrate_seen_add_key(arg, stored->key);
	return TW_OK;
}

/* A page of names costs one request; each missing file would cost two. Not done while the source is
 * blocked: few files are left to check then. */
static enum tw_status list_store(struct files *f, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(f->m->to, &store);
	enum tw_status st;

	if (!e->remote || (f->m->seen && !f->m->source_changes))
		return TW_OK;
	f->listed = tw_migrate_seen_new();
	if (!f->listed)
		return TW_OK;
	st = e->list(store, "blobs", note_listed, f->listed, err);
	return st == TW_OK ? e->list(store, "traces", note_listed, f->listed, err) : st;
}

static bool may_have(struct files *f, const char *key)
{
	bool may;

	(void)pthread_mutex_lock(&f->lock);
	may = !f->listed || tw_migrate_seen_may_have_key(f->listed, key);
	(void)pthread_mutex_unlock(&f->lock);
	return may;
}

/* Compares the stored SHA-256 and size; reads the object if the store does not report them. */
static enum tw_status store_has(
        struct tw_blobs *b, const struct tw_migrate_file *of, bool *ret, struct tw_err *err)
{
	struct tw_store_file stored = {.bytes = 0};
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(b, &store);
	enum tw_status st = e->stat_file(store, of->key, &stored, err);

	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK && (!stored.sha256[0] || !of->bytes))
		return is_intact(b, of, ret, err);
	/* the SHA-256 was sent with the content; the size shows if the store has truncated it */
	*ret = st == TW_OK && strcmp(stored.sha256, of->sha256) == 0 && stored.bytes == of->bytes;
	return st;
}

static void path_in(
        const struct tw_blobs *b, const struct tw_migrate_file *of, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/%s", tw_blobs_dir(b), of->key);
}

static bool both_are_folders(const struct tw_migrate *m)
{
	return !tw_blobs_remote(m->from) && !tw_blobs_remote(m->to);
}

static bool is_one_file(const struct tw_migrate *m, const struct tw_migrate_file *of)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	struct stat one, other;

	path_in(m->from, of, from);
	path_in(m->to, of, to);
	return both_are_folders(m) && stat(from, &one) == 0 && stat(to, &other) == 0 &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A file in a folder is read: a power failure may have truncated what an earlier run wrote. */
static enum tw_status is_stored(
        struct files *f, const struct tw_migrate_file *of, bool *ret, struct tw_err *err)
{
	if (!tw_blobs_remote(f->m->to))
		return is_intact(f->m->to, of, ret, err);
	return may_have(f, of->key) ? store_has(f->m->to, of, ret, err) : TW_OK;
}

/* --- storing --- */

/* Creates traces and traces/ab; the folders of blobs/ exist. */
static enum tw_status make_folders(const char *path, struct tw_err *err)
{
	char upper[PATH_BYTES], leaf[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(leaf, sizeof leaf, "%s", path);
	*strrchr(leaf, '/') = '\0';
	if (access(leaf, F_OK) == 0)
		return TW_OK;
	(void)snprintf(upper, sizeof upper, "%s", leaf);
	*strrchr(upper, '/') = '\0';
	st = tw_folder_make(upper, err);
	return st == TW_OK ? tw_folder_make(leaf, err) : st;
}

/* *ret is false if the file must be copied. */
static enum tw_status link_file(
        struct tw_migrate *m, const struct tw_migrate_file *of, bool *ret, struct tw_err *err)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	enum tw_status st;

	if (!both_are_folders(m))
		return TW_OK;
	path_in(m->from, of, from);
	path_in(m->to, of, to);
	st = make_folders(to, err);
	if (st != TW_OK)
		return st;
	(void)unlink(to); /* of an earlier run: damaged, or decoded again since */
	*ret = link(from, to) == 0 || errno == EEXIST;
	return TW_OK;
}

static enum tw_status put(struct tw_blobs *b, const struct tw_migrate_file *of, const char *path,
        int fd, struct tw_err *err)
{
	struct tw_store_put p = {.key = of->key,
	        .sha256 = of->sha256,
	        .bytes = of->bytes,
	        .path = path,
	        .fd = fd,
	        .replaces = true};
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(b, &store);
	enum tw_status st = e->put(store, &p, err);

	if (st == TW_OK)
		st = e->wait(store, &p, err);
	e->end(store, &p);
	return st;
}

static enum tw_status copy_to_folder(
        struct files *f, const struct tw_migrate_file *of, int fd, struct tw_err *err)
{
	char spool[PATH_BYTES], name[24], sha256[TW_SHA256_HEX];
	uint64_t bytes;
	enum tw_status st;

	(void)snprintf(name, sizeof name, "migrate-%u", of->thread_index);
	tw_spool_path(f->m->to, name, spool, sizeof spool);
	st = tw_file_copy_from(fd, spool, err);
	if (st == TW_OK)
		st = tw_sha256_file(spool, sha256, &bytes, err);
	if (st == TW_OK && strcmp(sha256, of->sha256) != 0)
		st = tw_fail(err, TW_IO, "%.150s differs from the written content", spool);
	if (st == TW_OK)
		st = put(f->m->to, of, spool, -1, err);
	if (st != TW_OK)
		(void)unlink(spool);
	return st;
}

static enum tw_status store_opened(
        struct files *f, const struct tw_migrate_file *of, int fd, struct tw_err *err)
{
	bool linked = false;
	enum tw_status st = link_file(f->m, of, &linked, err);

	if (st == TW_OK && !linked)
		st = tw_blobs_remote(f->m->to) ? put(f->m->to, of, "", fd, err)
		                               : copy_to_folder(f, of, fd, err);
	if (st == TW_OK) {
		(void)pthread_mutex_lock(&f->lock);
		f->sums.linked += linked;
		f->sums.copied += !linked;
		f->sums.bytes += linked ? 0 : of->bytes;
		(void)pthread_mutex_unlock(&f->lock);
		tw_crash_point("migrate_file");
	}
	/* an error of the target does not mean that the source's file is missing */
	return st == TW_NOT_FOUND || st == TW_CORRUPT ? TW_IO : st;
}

static enum tw_status copy_file(
        struct files *f, const struct tw_migrate_file *listed, struct tw_err *err)
{
	struct tw_migrate_file of = *listed;
	bool stored = is_one_file(f->m, &of);
	int fd = -1;
	enum tw_status st = TW_OK;

	if (stored)
		return TW_OK;
	if (!of.sha256[0] || !of.key[0]) /* otherwise it is read only if it must be stored */
		st = open_intact(f->m->from, &of, &fd, err);
	if (st == TW_OK)
		st = is_stored(f, &of, &stored, err);
	if (st == TW_OK && !stored && fd < 0)
		st = open_intact(f->m->from, &of, &fd, err);
	if (st == TW_OK && !stored)
		st = store_opened(f, &of, fd, err);
	if (fd >= 0)
		(void)close(fd);
	return st;
}

static bool is_seen(struct files *f, const struct tw_migrate_file *of)
{
	bool seen;

	(void)pthread_mutex_lock(&f->lock);
	seen = f->m->seen && tw_migrate_seen_has(f->m->seen, of);
	(void)pthread_mutex_unlock(&f->lock);
	return seen;
}

static enum tw_status copy_one(void *arg, const struct tw_migrate_file *of, struct tw_err *err)
{
	struct files *f = arg;
	struct tw_err why = {.msg = ""};
	enum tw_status st;

	count_file(f);
	if (is_seen(f, of))
		return TW_OK;
	st = copy_file(f, of, &why);
	if (st == TW_OK) {
		(void)pthread_mutex_lock(&f->lock);
		if (f->m->seen)
			tw_migrate_seen_add(f->m->seen, of);
		if (f->listed)
			tw_migrate_seen_add_key(f->listed, of->key);
		(void)pthread_mutex_unlock(&f->lock);
	}
	return skip_if_lost(f, of, st, &why, err);
}

/* --- all files --- */

/* Copies the key that encrypts secrets, and today's quota use. */
static enum tw_status copy_settings(struct tw_migrate *m, struct tw_err *err)
{
	static const char *const names[] = {"secret.key", "quota"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < 2; i++) {
		char from[PATH_BYTES], to[PATH_BYTES];

		(void)snprintf(from, sizeof from, "%s/%s", tw_blobs_dir(m->from), names[i]);
		(void)snprintf(to, sizeof to, "%s/%s", tw_blobs_dir(m->to), names[i]);
		if (access(from, F_OK) == 0)
			st = tw_file_copy(from, to, err);
	}
	return st;
}

/* Also makes the names of links durable. */
static enum tw_status make_durable(const struct tw_migrate *m, struct tw_err *err)
{
	int fd = open(tw_blobs_dir(m->to), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const bool fine = fd >= 0 && syncfs(fd) == 0;

	if (fd >= 0)
		(void)close(fd);
	return fine ? TW_OK : tw_fail_errno(err, TW_IO, "the target folder cannot be made durable");
}

static enum tw_status each(struct files *f, tw_migrate_one one, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_init(&f->lock, NULL);
	st = tw_migrate_each(f->m->rows.from, one, f, err);
	(void)pthread_mutex_destroy(&f->lock);
	return st;
}

enum tw_status tw_migrate_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err)
{
	struct files f = {.m = m};
	enum tw_status st;

	f.sums = *ret;
	f.sums.files = f.sums.lost = 0;
	st = copy_settings(m, err);
	if (st == TW_OK)
		st = list_store(&f, err);
	if (st == TW_OK)
		st = each(&f, copy_one, err);
	f.listed = tw_migrate_seen_free(f.listed);
	*ret = f.sums;
	return st == TW_OK ? make_durable(m, err) : st;
}

/* --- comparing --- */

static enum tw_status fail_different(
        const struct tw_migrate_file *of, const struct tw_err *why, struct tw_err *err)
{
	const bool lacks = why->code == TW_NOT_FOUND;

	return tw_fail(err, TW_CORRUPT, "the target's %.30s of %.40s%s%.110s", of->what, of->id,
	        lacks ? " is missing" : ": ", lacks ? "" : why->msg);
}

static enum tw_status compare_one(void *arg, const struct tw_migrate_file *of, struct tw_err *err)
{
	struct files *f = arg;
	struct tw_err stored = {.msg = ""}, source_err = {.msg = ""};
	bool is_alike = false, in_source = false;
	enum tw_status st;

	count_file(f);
	st = is_intact(f->m->to, of, &is_alike, &stored);
	if (st != TW_OK || is_alike)
		return skip_if_lost(f, of, st, &stored, err);
	st = is_intact(f->m->from, of, &in_source, &source_err);
	if (st == TW_OK && in_source)
		return fail_different(of, &stored, err);
	return skip_if_lost(f, of, st == TW_OK ? TW_CORRUPT : st, &source_err, err);
}

enum tw_status tw_migrate_compare_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err)
{
	struct files f = {.m = m};
	enum tw_status st = each(&f, compare_one, err);

	*ret = f.sums;
	return st;
}
