/*
 * migrate_files.c - uploads, mappings and decoded files of one data folder, in another.
 *
 * None of them is ever changed where it lies, so one file with a name in each folder will do where
 * one file system has both: it takes no room and no time.  Each is read against its sum before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "file_copy.h"
#include "migrate.h"
#include "stored.h"

enum { PATH_BYTES = 1500 };

struct files {
	struct tw_migrate *m;
	struct tw_migrate_files sums;
};

static void tell(struct files *f)
{
	const struct tw_migrate_rows *rows = &f->m->rows;

	f->sums.files++;
	if (rows->progress && f->sums.files % 50 == 0)
		rows->progress(rows->arg, f->m->only_compare ? "compare" : "bring", "files",
		        f->sums.files);
}

/* What the source lacks or has damaged the target lacks too: it is told, and no reason to stay.
 * While its server goes on it may have been deleted or decoded again just now. */
static enum tw_status judge(struct files *f, const struct tw_stored_file *of, enum tw_status st,
        const struct tw_err *why, struct tw_err *err)
{
	if (st != TW_NOT_FOUND && st != TW_CORRUPT) {
		if (st != TW_OK && err)
			*err = *why;
		return st;
	}
	if (f->m->beside)
		return TW_OK;
	f->sums.lost++;
	f->m->lost(f->m->arg, of->id, why->msg);
	return TW_OK;
}

/* --- by content --- */

static enum tw_status copy_blob(struct files *f, const char *sha256, struct tw_err *err)
{
	char got[TW_SHA256_HEX] = "";
	struct tw_blob_writer *w = NULL;
	int fd = -1;
	enum tw_status st = tw_blob_open(f->m->from, sha256, &fd, err);

	if (st == TW_OK)
		st = tw_blob_begin(f->m->to, UINT64_MAX, &w, err);
	if (st == TW_OK)
		st = tw_blob_write_fd(w, fd, err);
	if (st == TW_OK) {
		f->sums.bytes += tw_blob_bytes(w);
		st = tw_blob_commit(w, got, err);
	}
	if (st != TW_OK)
		(void)tw_blob_discard(w);
	if (fd >= 0)
		(void)close(fd);
	if (st == TW_OK && strcmp(got, sha256) != 0) {
		(void)tw_blob_delete(f->m->to, got, NULL);
		st = tw_fail(err, TW_CORRUPT, TW_NO_OFFSET, "it is damaged");
	}
	f->sums.copied += st == TW_OK;
	return st;
}

static bool has_blob(struct tw_blobs *b, const char *sha256)
{
	int fd = -1;

	if (tw_blob_open(b, sha256, &fd, NULL) != TW_OK)
		return false;
	(void)close(fd);
	return true;
}

static uint64_t bytes_of(struct tw_blobs *b, const char *sha256)
{
	struct stat st;
	int fd = -1;
	uint64_t bytes = 0;

	if (tw_blob_open(b, sha256, &fd, NULL) != TW_OK)
		return 0;
	if (fstat(fd, &st) == 0)
		bytes = (uint64_t)st.st_size;
	(void)close(fd);
	return bytes;
}

static bool is_one_blob(struct tw_blobs *a, struct tw_blobs *b, const char *sha256)
{
	struct stat one, other;
	int fd[2] = {-1, -1};
	const bool both = tw_blob_open(a, sha256, &fd[0], NULL) == TW_OK &&
	                  tw_blob_open(b, sha256, &fd[1], NULL) == TW_OK;
	const bool alike = both && fstat(fd[0], &one) == 0 && fstat(fd[1], &other) == 0 &&
	                   one.st_dev == other.st_dev && one.st_ino == other.st_ino;

	for (size_t i = 0; i < 2; i++)
		if (fd[i] >= 0)
			(void)close(fd[i]);
	return alike;
}

/* What a run before left may have been cut short by a loss of power. */
static bool is_there(struct files *f, const char *sha256)
{
	return is_one_blob(f->m->from, f->m->to, sha256) ||
	       (has_blob(f->m->to, sha256) && tw_blob_check(f->m->to, sha256,
	                                              bytes_of(f->m->from, sha256), NULL) == TW_OK);
}

static enum tw_status bring_blob(struct files *f, const char *sha256, struct tw_err *err)
{
	bool linked = false;
	enum tw_status st;

	if (is_there(f, sha256))
		return TW_OK;
	st = tw_blob_check(f->m->from, sha256, bytes_of(f->m->from, sha256), err);
	if (st == TW_OK)
		st = tw_blob_delete(f->m->to, sha256, err);
	if (st == TW_OK)
		st = tw_blob_link(f->m->from, f->m->to, sha256, &linked, err);
	f->sums.linked += linked;
	return st == TW_OK && !linked ? copy_blob(f, sha256, err) : st;
}

static enum tw_status one_blob(
        void *arg, struct tw_stored_file *of, struct tw_arena *a, struct tw_err *err)
{
	struct files *f = arg;
	struct tw_err why = {.msg = ""};

	(void)a;
	tell(f);
	return judge(f, of, bring_blob(f, of->sha256, &why), &why, err);
}

/* --- decoded files --- */

static bool is_one_file(const char *a, const char *b)
{
	struct stat one, other;

	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* An older program kept no sum: its length is all that is known. */
static bool is_it(const char *path, const struct tw_stored_file *of)
{
	char sha256[TW_SHA256_HEX];
	uint64_t bytes = 0;
	struct stat st;

	if (!of->sha256[0])
		return stat(path, &st) == 0 && (!of->bytes || (uint64_t)st.st_size == of->bytes);
	return tw_digest_file(path, sha256, &bytes, NULL) == TW_OK &&
	       strcmp(sha256, of->sha256) == 0;
}

static enum tw_status copy_decoded(
        struct files *f, const struct tw_stored_file *of, const char *from, struct tw_err *err)
{
	char spool[PATH_BYTES];
	enum tw_status st;

	tw_spool_path(f->m->to, of->id, spool, sizeof spool);
	st = tw_file_copy(from, spool, err);
	if (st == TW_OK && !is_it(spool, of))
		st = tw_fail(err, TW_CORRUPT, TW_NO_OFFSET, "its decoded file changed meanwhile");
	if (st == TW_OK)
		st = tw_trace_publish(f->m->to, spool, of->id, err);
	if (st != TW_OK)
		(void)unlink(spool);
	f->sums.copied += st == TW_OK;
	f->sums.bytes += st == TW_OK ? of->bytes : 0;
	return st;
}

static enum tw_status bring_decoded(
        struct files *f, const struct tw_stored_file *of, struct tw_err *err)
{
	char from[PATH_BYTES], to[PATH_BYTES];
	enum tw_status st = tw_trace_path(f->m->from, of->id, from, sizeof from, err);

	if (st == TW_OK)
		st = tw_trace_path(f->m->to, of->id, to, sizeof to, err);
	if (st != TW_OK || is_one_file(from, to))
		return st;
	if (access(from, F_OK) != 0)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "its decoded file is not there");
	if (access(to, F_OK) == 0 && is_it(to, of))
		return TW_OK;
	if (!is_it(from, of))
		return tw_fail(err, TW_CORRUPT, TW_NO_OFFSET, "its decoded file is damaged");
	(void)unlink(to); /* of a run before: it was decoded again since */
	if (link(from, to) == 0) {
		f->sums.linked++;
		return TW_OK;
	}
	return copy_decoded(f, of, from, err);
}

static enum tw_status one_decoded(
        void *arg, struct tw_stored_file *of, struct tw_arena *a, struct tw_err *err)
{
	struct files *f = arg;
	struct tw_err why = {.msg = ""};

	(void)a;
	tell(f);
	return judge(f, of, bring_decoded(f, of, &why), &why, err);
}

/* --- all --- */

/* What seals secrets, and what was sent of today's allowances. */
static enum tw_status bring_own(struct tw_migrate *m, struct tw_err *err)
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

/* Names of links too. */
static enum tw_status make_durable(const struct tw_migrate *m, struct tw_err *err)
{
	int fd = open(tw_blobs_dir(m->to), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const bool fine = fd >= 0 && syncfs(fd) == 0;

	if (fd >= 0)
		(void)close(fd);
	return fine ? TW_OK
	            : tw_fail(err, TW_IO, TW_NO_OFFSET,
	                      "the target folder cannot be made durable (errno %d)", errno);
}

static enum tw_status each(
        struct files *f, tw_stored_fn blob, tw_stored_fn decoded, struct tw_err *err)
{
	struct tw_catalogue *c = f->m->rows.from;
	enum tw_status st = tw_stored_each(c, tw_catalogue_stored_mappings, blob, f, err);

	if (st == TW_OK)
		st = tw_stored_each(c, tw_catalogue_stored_parts, blob, f, err);
	return st == TW_OK ? tw_stored_each(c, tw_catalogue_stored_traces, decoded, f, err) : st;
}

enum tw_status tw_migrate_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err)
{
	struct files f = {.m = m};
	enum tw_status st;

	f.sums = *ret;
	f.sums.files = f.sums.lost = 0;
	st = bring_own(m, err);
	if (st == TW_OK)
		st = each(&f, one_blob, one_decoded, err);
	*ret = f.sums;
	return st == TW_OK ? make_durable(m, err) : st;
}

/* --- compared --- */

static enum tw_status not_alike(
        const struct tw_stored_file *of, const struct tw_err *why, struct tw_err *err)
{
	return tw_fail(err, TW_CORRUPT, TW_NO_OFFSET, "the target's %s of %s: %.100s", of->what,
	        of->id, why->msg);
}

static enum tw_status compare_blob(
        void *arg, struct tw_stored_file *of, struct tw_arena *a, struct tw_err *err)
{
	struct files *f = arg;
	struct tw_err why = {.msg = ""};
	uint64_t bytes = bytes_of(f->m->from, of->sha256);

	(void)a;
	tell(f);
	if (!has_blob(f->m->from, of->sha256))
		return judge(f, of, TW_NOT_FOUND,
		        &(struct tw_err){.msg = "the content is not there"}, err);
	if (tw_blob_check(f->m->to, of->sha256, bytes, &why) == TW_OK)
		return TW_OK;
	if (tw_blob_check(f->m->from, of->sha256, bytes, NULL) != TW_OK)
		return judge(f, of, TW_CORRUPT, &why, err);
	return not_alike(of, &why, err);
}

static enum tw_status compare_decoded(
        void *arg, struct tw_stored_file *of, struct tw_arena *a, struct tw_err *err)
{
	struct files *f = arg;
	char from[PATH_BYTES], to[PATH_BYTES];
	const struct tw_err why = {.msg = "it is not there or not what was decoded"};
	enum tw_status st = tw_trace_path(f->m->from, of->id, from, sizeof from, err);

	(void)a;
	tell(f);
	if (st == TW_OK)
		st = tw_trace_path(f->m->to, of->id, to, sizeof to, err);
	if (st != TW_OK || is_it(to, of))
		return st;
	return is_it(from, of) ? not_alike(of, &why, err) : judge(f, of, TW_CORRUPT, &why, err);
}

enum tw_status tw_migrate_compare_files(
        struct tw_migrate *m, struct tw_migrate_files *ret, struct tw_err *err)
{
	struct files f = {.m = m};
	enum tw_status st = each(&f, compare_blob, compare_decoded, err);

	*ret = f.sums;
	return st;
}
