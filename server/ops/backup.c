#include "server/ops/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_job.h"
#include "server/catalogue/traces/catalogue_trace.h"

enum { PATH_BYTES = 1500, KEY_BYTES = 128 };
#define CATALOGUE  "catalogue.db"
#define UNFINISHED "catalogue.new"

struct run {
	const struct tw_backup *b;
	struct tw_catalogue *copy;      /* opened after it was copied */
	struct tw_s3_metadata replaces; /* of the previous backup in the store; bytes 0: none */
	struct tw_backup_sums sums;
};

/* --- content to a folder --- */

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

static enum tw_status copy_trace(struct run *r, const struct tw_stored_file *f, struct tw_err *err)
{
	char to[PATH_BYTES], spool[PATH_BYTES];
	enum tw_status st = tw_trace_path(r->b->to, f->id, to, sizeof to, err);

	if (st != TW_OK || (f->sha256[0] && is_same(to, f)))
		return st;
	tw_spool_path(r->b->to, f->id, spool, sizeof spool);
	st = copy_file(r, f->id, spool, err);
	if (st == TW_OK && f->sha256[0] && !is_same(spool, f))
		st = tw_fail(err, TW_CORRUPT, "its decoded file is damaged");
	if (st == TW_OK)
		st = tw_trace_publish(r->b->to, spool, f->id, err);
	if (st == TW_OK) {
		r->sums.copied++;
		r->sums.bytes += f->bytes;
	} else {
		(void)unlink(spool);
	}
	return st;
}

/* --- content to a store --- */

/* Reads the file twice, so that a damaged file is never uploaded. */
static enum tw_status upload_verified(
        struct run *r, const char *key, int fd, const char *sha256, struct tw_err *err)
{
	char found[TW_SHA256_HEX] = "";
	uint64_t bytes = 0;
	enum tw_status st = tw_sha256_fd(fd, found, &bytes, err);

	if (st == TW_OK && sha256[0] && strcmp(found, sha256) != 0)
		return tw_fail(err, TW_CORRUPT, "it is damaged");
	if (st == TW_OK)
		st = tw_s3_put(r->b->s3,
		        &(struct tw_s3_object){.key = key, .sha256 = found, .bytes = bytes}, fd,
		        err);
	if (st == TW_OK) {
		r->sums.copied++;
		r->sums.bytes += bytes;
	}
	return st;
}

static enum tw_status send_content(struct run *r, const char *sha256, struct tw_err *err)
{
	char key[KEY_BYTES];
	bool there = false;
	int fd = -1;
	enum tw_status st;

	(void)snprintf(key, sizeof key, "blobs/%.2s/%.64s", sha256, sha256);
	st = tw_s3_has(r->b->s3, key, &there, err);
	if (st != TW_OK || there)
		return st;
	st = tw_blob_open(r->b->from, sha256, &fd, err);
	if (st != TW_OK)
		return st;
	st = upload_verified(r, key, fd, sha256, err);
	(void)close(fd);
	return st;
}

static enum tw_status send_trace(struct run *r, const struct tw_stored_file *f, struct tw_err *err)
{
	char path[PATH_BYTES];
	int fd = -1;
	enum tw_status st = tw_trace_path(r->b->from, f->id, path, sizeof path, err);

	if (st == TW_OK)
		st = tw_trace_open(r->b->from, f->id, &fd, err);
	if (st != TW_OK)
		return st;
	st = upload_verified(r, path + strlen(tw_blobs_dir(r->b->from)) + 1, fd, f->sha256, err);
	(void)close(fd);
	return st;
}

/* --- files that the copied catalogue references --- */

static bool is_missing_or_damaged(enum tw_status st)
{
	return st == TW_NOT_FOUND || st == TW_CORRUPT;
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

static void report_skipped(struct run *r, const struct tw_stored_file *f, const struct tw_err *why)
{
	r->sums.left_out++;
	r->b->left_out(r->b->arg, f->id, why->msg);
}

static enum tw_status put_content(struct run *r, const char *sha256, struct tw_err *err)
{
	return r->b->s3 ? send_content(r, sha256, err) : copy_blob(r, sha256, err);
}

/* Removes from the backup each trace that was deleted since the catalogue was copied, and each
 * whose upload cannot be read and that has no decoded file in the backup. */
static enum tw_status put_part(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_err why;
	struct tw_blob_list unused;
	enum tw_status st = put_content(r, f->sha256, &why);

	r->sums.uploads++;
	if (r->b->step)
		r->b->step(r->b->arg, &r->sums);
	if (!is_missing_or_damaged(st)) {
		if (st != TW_OK)
			tw_err_copy(err, &why);
		return st;
	}
	if (!is_deleted(r, f)) {
		report_skipped(r, f, &why);
		if (has_decoded_copy(r, f, a))
			return TW_OK;
	} else {
		r->sums.uploads--;
	}
	st = tw_catalogue_trace_delete(r->copy, f->project_id, f->id, a, &unused, err);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status put_mapping(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_err why;
	enum tw_status st = put_content(r, f->sha256, &why);

	(void)a;
	if (is_missing_or_damaged(st)) { /* replaced since, or damaged */
		report_skipped(r, f, &why);
		return TW_OK;
	}
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

/* A decoded file is needed if it is the only copy of its trace; otherwise a server that runs on the
 * backup decodes the upload again. */
static enum tw_status put_trace(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_err why = {.msg = ""};
	enum tw_status st = TW_NOT_FOUND;

	(void)a;
	if (!f->has_upload || r->b->decoded)
		st = r->b->s3 ? send_trace(r, f, &why) : copy_trace(r, f, &why);
	if (!is_missing_or_damaged(st)) {
		if (st != TW_OK)
			tw_err_copy(err, &why);
		return st;
	}
	if (f->has_upload)
		return tw_catalogue_trace_requeue(r->copy, f->project_id, f->id, err);
	report_skipped(r, f, &why);
	return TW_OK;
}

static enum tw_status put_files(struct run *r, struct tw_err *err)
{
	enum tw_status st =
	        tw_stored_each(r->copy, tw_catalogue_stored_mappings, put_mapping, r, err);

	if (st == TW_OK)
		st = tw_stored_each(r->copy, tw_catalogue_stored_parts, put_part, r, err);
	return st == TW_OK ? tw_stored_each(r->copy, tw_catalogue_stored_traces, put_trace, r, err)
	                   : st;
}

/* `path` is then the closed catalogue of the backup, with its WAL merged. */
static enum tw_status copy_all(struct run *r, const char *path, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_copy(r->b->catalogue, path, err);

	if (st == TW_OK)
		st = tw_catalogue_open(path, &r->copy, err);
	if (st == TW_OK)
		tw_catalogue_stop_record(r->copy);
	if (st == TW_OK)
		st = put_files(r, err);
	r->copy = tw_catalogue_close(r->copy);
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

/* --- a folder --- */

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

static enum tw_status to_folder(struct run *r, struct tw_err *err)
{
	char copy[PATH_BYTES];
	enum tw_status st = may_replace(r->b, err);

	if (st != TW_OK)
		return st;
	(void)snprintf(copy, sizeof copy, "%s/" UNFINISHED, tw_blobs_dir(r->b->to));
	(void)unlink(copy); /* left by an interrupted backup */
	st = copy_all(r, copy, err);
	if (st == TW_OK)
		st = publish_catalogue(r, copy, err);
	else if (is_there(r->b, CATALOGUE)) /* otherwise it marks an unfinished backup */
		(void)unlink(copy);
	return st == TW_OK ? delete_old_files(r, err) : st;
}

static enum tw_status to_locked_folder(struct run *r, struct tw_err *err)
{
	char path[PATH_BYTES];
	int lock = -1;
	enum tw_status st;

	(void)snprintf(path, sizeof path, "%s/" CATALOGUE, tw_blobs_dir(r->b->to));
	st = tw_catalogue_hold_file(path, &lock, err);
	if (st == TW_BUSY)
		return tw_fail(err, TW_BUSY,
		        "a server or another backup uses %.120s: use another folder, or retry "
		        "later",
		        tw_blobs_dir(r->b->to));
	if (st == TW_OK)
		st = to_folder(r, err);
	if (lock >= 0)
		(void)close(lock);
	return st;
}

/* --- a store --- */

static enum tw_status read_previous(struct run *r, struct tw_s3_metadata *ret, struct tw_err *err)
{
	enum tw_status st = tw_s3_head(r->b->s3, CATALOGUE, ret, err);

	if (st != TW_NOT_FOUND)
		return st;
	*ret = (struct tw_s3_metadata){0};
	return TW_OK;
}

static enum tw_status set_found(void *arg, const struct tw_s3_object *o, struct tw_err *err)
{
	(void)o;
	(void)err;
	*(bool *)arg = true;
	return TW_OK;
}

/* Refuses the prefix of a server: it deletes objects that its catalogue does not name. */
static enum tw_status check_unowned(struct run *r, struct tw_err *err)
{
	bool owned = false;
	enum tw_status st = tw_s3_list(r->b->s3, "owner/", set_found, &owned, err);

	return st == TW_OK && owned
	               ? tw_fail(err, TW_CONFLICT,
	                         "a server stores its files below this prefix (--blobs): "
	                         "use another prefix")
	               : st;
}

static void unlink_database(const char *path)
{
	static const char *const files[] = {"", "-wal", "-shm"};
	char file[PATH_BYTES + 8];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(file, sizeof file, "%s%s", path, files[i]);
		(void)unlink(file);
	}
}

/* Refuses to replace another server's backup.  `there`: a path for downloading its catalogue. */
static enum tw_status check_previous(struct run *r, const char *there, struct tw_err *err)
{
	const int fd = open(there, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char sha256[TW_SHA256_HEX];
	uint64_t bytes = 0;
	bool strange = false;
	enum tw_status st = fd < 0 ? tw_file_fail("create", there, err)
	                           : tw_s3_get(r->b->s3, CATALOGUE, fd, sha256, &bytes, err);

	if (fd >= 0)
		(void)close(fd);
	if (st == TW_OK)
		st = tw_catalogue_shares_no_project(r->b->catalogue, there, &strange, err);
	unlink_database(there);
	return strange ? tw_fail(err, TW_CONFLICT,
	                         "the backup there shares no project with this server and may be "
	                         "the only copy of its data: use another prefix, or set --replace")
	               : st;
}

/* Not every store has locks, so two backups that end within the same second are not detected. */
static enum tw_status send_catalogue(struct run *r, const char *path, struct tw_err *err)
{
	struct tw_s3_metadata now;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (fd < 0)
		return tw_fail(
		        err, TW_IO, "the copy of the catalogue was removed during the backup");
	st = read_previous(r, &now, err);
	if (st == TW_OK &&
	        (now.bytes != r->replaces.bytes || strcmp(now.sha256, r->replaces.sha256) != 0))
		st = tw_fail(err, TW_BUSY,
		        "another backup has replaced " CATALOGUE " during this one: run it again");
	if (st == TW_OK)
		st = upload_verified(r, CATALOGUE, fd, "", err);
	(void)close(fd);
	return st;
}

static enum tw_status to_store(struct run *r, struct tw_err *err)
{
	char copy[PATH_BYTES], id[TW_ID_BYTES], name[TW_ID_BYTES + 8];
	enum tw_status st = read_previous(r, &r->replaces, err);

	if (st == TW_OK)
		st = check_unowned(r, err);
	tw_ulid_new(tw_unix_ms(), id);
	(void)snprintf(name, sizeof name, ".backup-%s", id); /* a starting server removes it */
	tw_spool_path(r->b->from, name, copy, sizeof copy);
	if (st == TW_OK && r->replaces.bytes && !r->b->replace)
		st = check_previous(r, copy, err);
	if (st == TW_OK)
		st = copy_all(r, copy, err);
	if (st == TW_OK)
		st = send_catalogue(r, copy, err);
	unlink_database(copy);
	return st;
}

enum tw_status tw_backup_run(
        const struct tw_backup *backup, struct tw_backup_sums *ret, struct tw_err *err)
{
	struct run r = {.b = backup};
	enum tw_status st = backup->s3 ? to_store(&r, err) : to_locked_folder(&r, err);

	if (st == TW_OK)
		*ret = r.sums;
	return st;
}
