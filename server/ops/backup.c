#include "server/ops/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/age_clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { PATH_BYTES = 1500 };
#define UNFINISHED "catalogue.new"

struct run {
	const struct tw_backup *b;
	struct tw_catalogue *copy; /* opened after it was copied */
	struct tw_backup_sums sums;
};

/* --- one upload or mapping --- */

/* TW_CORRUPT if the content does not match the hash in its name. */
static enum tw_status copy_fd(struct run *r, int fd, const char *sha256, struct tw_err *err)
{
	char got[TW_SHA256_HEX] = "";
	struct tw_blob_writer *w = NULL;
	uint64_t bytes = 0;
	enum tw_status st = tw_blob_begin(r->b->to, UINT64_MAX, &w, err);

	if (st == TW_OK)
		st = tw_blob_write_fd(w, fd, err);
	if (st == TW_OK)
		bytes = tw_blob_bytes(w);
	if (st == TW_OK)
		st = tw_blob_commit(w, got, err);
	if (st != TW_OK) {
		(void)tw_blob_discard(w);
		return st;
	}
	r->sums.copied++;
	r->sums.bytes += bytes;
	if (strcmp(got, sha256) == 0)
		return TW_OK;
	(void)tw_blob_delete(r->b->to, got, NULL);
	return tw_fail(err, TW_CORRUPT, "it is damaged");
}

static enum tw_status copy_blob(struct run *r, const char *sha256, struct tw_err *err)
{
	enum tw_status st;
	int fd = -1;

	if (tw_blob_open(r->b->to, sha256, &fd, NULL) == TW_OK) {
		(void)close(fd);
		return TW_OK;
	}
	st = tw_blob_open(r->b->from, sha256, &fd, err);
	if (st != TW_OK)
		return st;
	st = copy_fd(r, fd, sha256, err);
	(void)close(fd);
	return st;
}

static bool is_deleted(struct run *r, const struct tw_stored_file *f)
{
	bool there = true;

	return tw_catalogue_has_trace(r->b->catalogue, f->id, &there, NULL) == TW_OK && !there;
}

static bool has_decoded_copy(struct run *r, const struct tw_stored_file *f, struct tw_arena *a)
{
	struct tw_trace_row row;

	return r->b->decoded &&
	       tw_catalogue_trace_get(r->copy, f->project_id, f->id, a, &row, NULL) == TW_OK &&
	       row.state == TW_TRACE_READY;
}

/* Removes from the copy each trace that was deleted since the catalogue was copied, and each that
 * could not be read from the backup. */
static enum tw_status skip_file(
        struct run *r, const struct tw_stored_file *f, const struct tw_err *why, struct tw_arena *a)
{
	struct tw_blob_list unused = {0};
	enum tw_status st;

	if (!is_deleted(r, f)) {
		r->sums.left_out++;
		r->b->left_out(r->b->arg, f->id, why->msg);
		if (has_decoded_copy(r, f, a))
			return TW_OK;
	}
	st = tw_catalogue_trace_delete(r->copy, f->project_id, f->id, a, &unused, NULL);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static bool is_missing_or_damaged(enum tw_status st)
{
	return st == TW_NOT_FOUND || st == TW_CORRUPT;
}

static enum tw_status copy_part(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_err why;
	enum tw_status st = copy_blob(r, f->sha256, &why);

	r->sums.uploads++;
	if (r->b->step)
		r->b->step(r->b->arg, &r->sums);
	if (is_missing_or_damaged(st))
		return skip_file(r, f, &why, a);
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

static enum tw_status copy_mapping(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_err why;
	enum tw_status st = copy_blob(r, f->sha256, &why);

	(void)a;
	if (is_missing_or_damaged(st)) { /* replaced since, or damaged */
		r->sums.left_out++;
		r->b->left_out(r->b->arg, f->id, why.msg);
		return TW_OK;
	}
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

/* --- one decoded file --- */

static enum tw_status copy_file(
        struct run *r, const char *trace_id, const char *to, struct tw_err *err)
{
	int in = -1;
	enum tw_status st = tw_trace_open(r->b->from, trace_id, &in, err);

	if (st == TW_OK)
		st = tw_file_copy_from(in, to, err);
	if (in >= 0)
		(void)close(in);
	return st;
}

static bool is_same(const char *path, const struct tw_stored_file *f)
{
	char sha256[TW_SHA256_HEX];
	uint64_t bytes;

	return access(path, F_OK) == 0 && tw_sha256_file(path, sha256, &bytes, NULL) == TW_OK &&
	       strcmp(sha256, f->sha256) == 0;
}

/* A server that runs on the backup decodes the trace from its upload. */
static enum tw_status requeue_trace(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	(void)a;
	return tw_catalogue_trace_requeue(r->copy, f->project_id, f->id, err);
}

static enum tw_status copy_decoded(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	char to[PATH_BYTES], spool[PATH_BYTES];
	enum tw_status st = tw_trace_path(r->b->to, f->id, to, sizeof to, err);

	if (st != TW_OK || (f->sha256[0] && is_same(to, f)))
		return st;
	tw_spool_path(r->b->to, f->id, spool, sizeof spool);
	st = copy_file(r, f->id, spool, err);
	if (st == TW_OK && f->sha256[0] && !is_same(spool, f))
		st = TW_NOT_FOUND;
	if (st == TW_OK)
		st = tw_trace_publish(r->b->to, spool, f->id, err);
	if (st == TW_OK) {
		r->sums.copied++;
		r->sums.bytes += f->bytes;
	} else {
		(void)unlink(spool);
	}
	return st == TW_NOT_FOUND ? requeue_trace(r, f, a, err) : st;
}

/* --- all files referenced by the copied catalogue --- */

static enum tw_status copy_files(struct run *r, struct tw_err *err)
{
	enum tw_status st =
	        tw_stored_each(r->copy, tw_catalogue_stored_mappings, copy_mapping, r, err);

	if (st == TW_OK)
		st = tw_stored_each(r->copy, tw_catalogue_stored_parts, copy_part, r, err);
	if (st == TW_OK)
		st = tw_stored_each(r->copy, tw_catalogue_stored_traces,
		        r->b->decoded ? copy_decoded : requeue_trace, r, err);
	return st;
}

/* --- files of earlier backups --- */

static void delete_unreferenced(struct run *r, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		bool named = true;

		if (strlen(e->d_name) != TW_SHA256_HEX - 1 ||
		        tw_catalogue_has_blob(r->copy, e->d_name, &named, NULL) != TW_OK || named)
			continue;
		r->sums.dropped += unlinkat(dirfd(d), e->d_name, 0) == 0;
	}
	if (d)
		(void)closedir(d);
}

static void delete_all_unreferenced(struct run *r)
{
	char folder[PATH_BYTES];

	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(folder, sizeof folder, "%s/blobs/%02x", tw_blobs_dir(r->b->to), i);
		delete_unreferenced(r, folder);
	}
}

/* --- the run --- */

static bool is_there(const struct tw_backup *b, const char *name)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", tw_blobs_dir(b->to), name);
	return access(path, F_OK) == 0;
}

static bool has_uploads(const struct tw_backup *b)
{
	char path[PATH_BYTES];
	bool found = false;

	for (unsigned i = 0; i < 256 && !found; i++) {
		struct dirent *e;
		DIR *d;

		(void)snprintf(path, sizeof path, "%s/blobs/%02x", tw_blobs_dir(b->to), i);
		d = opendir(path);
		while (d && !found && (e = readdir(d)))
			found = strlen(e->d_name) == TW_SHA256_HEX - 1;
		if (d)
			(void)closedir(d);
	}
	return found;
}

/* Whether files of the target may be deleted. */
static enum tw_status may_replace(const struct tw_backup *b, struct tw_err *err)
{
	const char *const to = tw_blobs_dir(b->to);
	char path[PATH_BYTES];
	bool strange = false;
	enum tw_status st;

	if (is_there(b, "catalogue.url"))
		return tw_fail(err, TW_CONFLICT,
		        "%.120s is a data folder whose catalogue is in PostgreSQL: use another "
		        "folder",
		        to);
	if (b->replace)
		return TW_OK;
	if (!is_there(b, "catalogue.db"))
		return is_there(b, UNFINISHED) || !has_uploads(b)
		               ? TW_OK
		               : tw_fail(err, TW_CONFLICT,
		                         "%.120s has uploads but no catalogue, so it may be a "
		                         "damaged data folder: use another folder, or set "
		                         "--replace",
		                         to);
	(void)snprintf(path, sizeof path, "%s/catalogue.db", to);
	st = tw_catalogue_shares_no_project(b->catalogue, path, &strange, err);
	if (st == TW_OK && strange)
		return tw_fail(err, TW_CONFLICT,
		        "%.120s shares no project with this server and may be the only copy of "
		        "another data folder: use another folder, or set --replace",
		        to);
	if (st == TW_OK && is_there(b, TW_AGE_CLOCK_FILE))
		return tw_fail(err, TW_CONFLICT,
		        "a server has run on %.120s since the last backup, so it may have its own "
		        "traces: use another folder, or set --replace",
		        to);
	return st;
}

static enum tw_status sync_path(const char *path, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum tw_status st = fd >= 0 && fsync(fd) == 0 ? TW_OK : tw_file_fail("sync", path, err);

	if (fd >= 0)
		(void)close(fd);
	return st;
}

/* `copy` is closed, so its WAL is merged into it. */
static enum tw_status publish_catalogue(struct run *r, const char *copy, struct tw_err *err)
{
	/* left by a server that ran on the target */
	static const char *const left[] = {
	        "catalogue.db-wal", "catalogue.db-shm", TW_AGE_CLOCK_FILE};
	char path[PATH_BYTES];
	enum tw_status st = sync_path(copy, err);

	for (size_t i = 0; st == TW_OK && i < sizeof left / sizeof *left; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", tw_blobs_dir(r->b->to), left[i]);
		(void)unlink(path);
	}
	(void)snprintf(path, sizeof path, "%s/catalogue.db", tw_blobs_dir(r->b->to));
	if (st == TW_OK && rename(copy, path) != 0)
		st = tw_file_fail("rename", copy, err);
	return st == TW_OK ? sync_path(tw_blobs_dir(r->b->to), err) : st;
}

static enum tw_status copy_catalogue(struct run *r, const char *copy, struct tw_err *err)
{
	enum tw_status st;

	(void)unlink(copy); /* left by an interrupted backup */
	st = tw_catalogue_copy(r->b->catalogue, copy, err);
	if (st == TW_OK)
		st = tw_catalogue_open(copy, &r->copy, err);
	if (st == TW_OK)
		tw_catalogue_stop_record(r->copy);
	return st;
}

static enum tw_status delete_old_files(struct run *r, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(path, sizeof path, "%s/catalogue.db", tw_blobs_dir(r->b->to));
	st = tw_catalogue_open(path, &r->copy, err);
	if (st == TW_OK)
		delete_all_unreferenced(r);
	r->copy = tw_catalogue_close(r->copy);
	return st;
}

static enum tw_status run_all(struct run *r, struct tw_err *err)
{
	char copy[PATH_BYTES];
	enum tw_status st = may_replace(r->b, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(copy, sizeof copy, "%s/" UNFINISHED, tw_blobs_dir(r->b->to));
	st = copy_catalogue(r, copy, err);
	if (st == TW_OK)
		st = copy_files(r, err);
	r->copy = tw_catalogue_close(r->copy);
	if (st == TW_OK)
		st = publish_catalogue(r, copy, err);
	else if (is_there(r->b, "catalogue.db")) /* otherwise it marks an unfinished backup */
		(void)unlink(copy);
	return st == TW_OK ? delete_old_files(r, err) : st;
}

enum tw_status tw_backup_run(
        const struct tw_backup *backup, struct tw_backup_sums *ret, struct tw_err *err)
{
	struct run r = {.b = backup};
	char path[PATH_BYTES];
	int lock = -1;
	enum tw_status st;

	(void)snprintf(path, sizeof path, "%s/catalogue.db", tw_blobs_dir(backup->to));
	st = tw_catalogue_hold_file(path, &lock, err);
	if (st == TW_BUSY)
		return tw_fail(err, TW_BUSY,
		        "a server or another backup uses %.120s: use another folder, or retry "
		        "later",
		        tw_blobs_dir(backup->to));
	if (st == TW_OK)
		st = run_all(&r, err);
	if (lock >= 0)
		(void)close(lock);
	if (st == TW_OK)
		*ret = r.sums;
	return st;
}
