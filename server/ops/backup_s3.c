#include "server/ops/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

#define CATALOGUE "catalogue.db"

struct run {
	const struct tw_backup *b;
	struct tw_s3 *to;
	struct tw_catalogue *copy; /* opened after it was copied */
	struct tw_s3_metadata
	        replaces; /* the previous backup's catalogue; bytes 0: there is none */
	struct tw_backup_sums sums;
};

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
		st = tw_s3_put(r->to,
		        &(struct tw_s3_object){.key = key, .sha256 = found, .bytes = bytes}, fd,
		        err);
	if (st == TW_OK) {
		r->sums.copied++;
		r->sums.bytes += bytes;
	}
	return st;
}

static enum tw_status put_content(struct run *r, const char *sha256, struct tw_err *err)
{
	char key[KEY_BYTES];
	bool there = false;
	int fd = -1;
	enum tw_status st;

	(void)snprintf(key, sizeof key, "blobs/%.2s/%.64s", sha256, sha256);
	st = tw_s3_has(r->to, key, &there, err);
	if (st != TW_OK || there)
		return st;
	st = tw_blob_open(r->b->from, sha256, &fd, err);
	if (st != TW_OK)
		return st;
	st = upload_verified(r, key, fd, sha256, err);
	(void)close(fd);
	return st;
}

static bool is_deleted(struct run *r, const char *trace_id)
{
	bool there = true;

	return tw_catalogue_has_trace(r->b->catalogue, trace_id, &there, NULL) == TW_OK && !there;
}

static void report_skipped(struct run *r, const char *id, const struct tw_err *why)
{
	r->sums.left_out++;
	r->b->left_out(r->b->arg, id, why->msg);
}

static enum tw_status put_part(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_blob_list unused = {0};
	enum tw_status st = put_content(r, f->sha256, err);

	r->sums.uploads++;
	if (r->b->step)
		r->b->step(r->b->arg, &r->sums);
	if (st != TW_NOT_FOUND && st != TW_CORRUPT)
		return st;
	if (!is_deleted(r, f->id))
		report_skipped(r, f->id, err);
	else
		r->sums.uploads--;
	st = tw_catalogue_trace_delete(r->copy, f->project_id, f->id, a, &unused, err);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status put_mapping(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	enum tw_status st = put_content(r, f->sha256, err);

	(void)a;
	if (st != TW_NOT_FOUND && st != TW_CORRUPT)
		return st;
	report_skipped(r, f->id, err); /* replaced since, or damaged */
	return TW_OK;
}

static enum tw_status put_only_copy(
        struct run *r, const struct tw_stored_file *f, struct tw_err *err)
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

static enum tw_status put_decoded(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct run *r = arg;
	struct tw_trace_row row;
	enum tw_status st = tw_catalogue_trace_get(r->copy, f->project_id, f->id, a, &row, err);

	if (st == TW_OK && row.has_upload)
		return tw_catalogue_trace_requeue(r->copy, f->project_id, f->id, err);
	if (st == TW_OK)
		st = put_only_copy(r, f, err);
	if (st == TW_NOT_FOUND || st == TW_CORRUPT) {
		report_skipped(r, f->id, err);
		return TW_OK;
	}
	return st;
}

static enum tw_status put_files(struct run *r, struct tw_err *err)
{
	enum tw_status st =
	        tw_stored_each(r->copy, tw_catalogue_stored_mappings, put_mapping, r, err);

	if (st == TW_OK)
		st = tw_stored_each(r->copy, tw_catalogue_stored_parts, put_part, r, err);
	return st == TW_OK
	               ? tw_stored_each(r->copy, tw_catalogue_stored_traces, put_decoded, r, err)
	               : st;
}

/* --- the catalogue --- */

static enum tw_status read_previous(struct run *r, struct tw_s3_metadata *ret, struct tw_err *err)
{
	enum tw_status st = tw_s3_head(r->to, CATALOGUE, ret, err);

	if (st != TW_NOT_FOUND)
		return st;
	*ret = (struct tw_s3_metadata){0};
	return TW_OK;
}

static enum tw_status note_any(void *arg, const struct tw_s3_object *o, struct tw_err *err)
{
	(void)o;
	(void)err;
	*(bool *)arg = true;
	return TW_OK;
}

/* A server deletes the objects below its prefix that its catalogue does not name. */
static enum tw_status is_unowned(struct run *r, struct tw_err *err)
{
	bool owned = false;
	enum tw_status st = tw_s3_list(r->to, "owner/", note_any, &owned, err);

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

/* Whether the previous backup is one of this server.  `there`: a path for its catalogue. */
static enum tw_status may_replace(struct run *r, const char *there, struct tw_err *err)
{
	const int fd = open(there, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char sha256[TW_SHA256_HEX];
	uint64_t bytes = 0;
	bool strange = false;
	enum tw_status st = fd < 0 ? tw_file_fail("create", there, err)
	                           : tw_s3_get(r->to, CATALOGUE, fd, sha256, &bytes, err);

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

/* Without a lock, which not every store has: two backups that end within the same second are not
 * detected. */
static enum tw_status put_catalogue(struct run *r, const char *path, struct tw_err *err)
{
	struct tw_s3_metadata now;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st;

	if (fd < 0)
		return tw_fail(err, TW_IO, "the copy of the catalogue is gone");
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

enum tw_status tw_backup_s3_run(const struct tw_backup *backup, struct tw_s3 *to,
        struct tw_backup_sums *ret, struct tw_err *err)
{
	struct run r = {.b = backup, .to = to};
	char copy[PATH_BYTES], id[TW_ID_BYTES], name[TW_ID_BYTES + 8];
	enum tw_status st = read_previous(&r, &r.replaces, err);

	if (st == TW_OK)
		st = is_unowned(&r, err);
	tw_ulid_new(tw_unix_ms(), id);
	(void)snprintf(name, sizeof name, ".backup-%s", id); /* a starting server removes it */
	tw_spool_path(backup->from, name, copy, sizeof copy);
	if (st == TW_OK && r.replaces.bytes && !backup->replace)
		st = may_replace(&r, copy, err);
	if (st == TW_OK)
		st = tw_catalogue_copy(backup->catalogue, copy, err);
	if (st == TW_OK)
		st = tw_catalogue_open(copy, &r.copy, err);
	if (st == TW_OK)
		tw_catalogue_stop_record(r.copy);
	if (st == TW_OK)
		st = put_files(&r, err);
	r.copy = tw_catalogue_close(r.copy); /* closing merges the WAL into the file */
	if (st == TW_OK)
		st = put_catalogue(&r, copy, err);
	unlink_database(copy);
	if (st == TW_OK)
		*ret = r.sums;
	return st;
}
