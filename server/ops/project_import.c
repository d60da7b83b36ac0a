/*
 * project_import.c - imports a project from an archive.
 *
 * The archive is not trusted until it was read to its end: its files are written to the spool (with
 * object storage uploads are stored immediately; without rows they have no effect). Its catalogue
 * must have exactly this version's schema, and each file that it references must exist. Only then
 * files and rows are imported, some traces per transaction, so that uploads to a running server
 * continue. Files that were not imported are deleted at the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/unpack.h"
#include "decoder/base/unzip.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/decode/local_trace.h"
#include "server/ops/project_archive.h"

enum {
	PATH_BYTES = 1500,
	MANIFEST_BYTES = 64 << 10,
	NAME_BYTES = 256,
	ARENA_BYTES = 64 << 20,
	MAX_RATIO = 10000
};

enum member { MANIFEST, CATALOGUE, BLOB, DECODED, END, OTHER };

struct import {
	struct tw_blobs *blobs;
	struct tw_catalogue *copy; /* the archive's catalogue */
	char run[TW_ID_BYTES];     /* prefix of this run's files in the spool */
	enum member now;
	char name[96];                 /* the member's name without its folder */
	int fd;                        /* spool file of the current member; -1: none */
	struct tw_blob_writer *writer; /* of a member that is stored as a blob */
	struct tw_buf manifest;
	bool ended;
	uint64_t files, bytes; /* read so far */
	const struct tw_project_watch *watch;
};

static enum tw_status broken(struct tw_err *err, const char *why)
{
	return tw_fail(err, TW_CORRUPT,
	        "the archive cannot be imported: %.100s; nothing was changed", why);
}

/* Fails with the reason in errno. */
static enum tw_status cannot_unpack(struct tw_err *err)
{
	return tw_fail_errno(
	        err, errno == ENOSPC ? TW_FULL : TW_IO, "the archive cannot be unpacked");
}

static void spool_path(const struct import *im, const char *name, char out[PATH_BYTES])
{
	char file[160];

	/* a starting server removes it */
	(void)snprintf(file, sizeof file, ".%s-%.95s", im->run, name);
	tw_spool_path(im->blobs, file, out, PATH_BYTES);
}

/* --- members --- */

static bool is_hex(const char *s)
{
	return strlen(s) == TW_SHA256_HEX - 1 && strspn(s, "0123456789abcdef") == TW_SHA256_HEX - 1;
}

static bool is_decoded(const char *s)
{
	char id[TW_ID_BYTES];

	(void)snprintf(id, sizeof id, "%s", s);
	return strlen(s) == TW_ID_CHARS + 3 && strcmp(s + TW_ID_CHARS, ".db") == 0 &&
	       tw_ulid_valid(id);
}

static enum member member_of(struct import *im, struct tw_str name)
{
	static const char *const files[] = {
	        [MANIFEST] = "tracewell-project.json", [CATALOGUE] = "catalogue.db", [END] = "end"};
	char text[NAME_BYTES];
	const char *slash;

	(void)tw_utf8_clean(text, sizeof text, name);
	slash = strchr(text, '/');
	(void)snprintf(im->name, sizeof im->name, "%.95s", slash ? slash + 1 : text);
	for (int i = 0; i <= END; i++)
		if (files[i] && strcmp(text, files[i]) == 0)
			return (enum member)i;
	if (strncmp(text, "blobs/", 6) == 0 && is_hex(im->name))
		return BLOB;
	return strncmp(text, "decoded/", 8) == 0 && is_decoded(im->name) ? DECODED : OTHER;
}

static enum tw_status open_spool(struct import *im, struct tw_err *err)
{
	char path[PATH_BYTES];

	spool_path(im, im->name, path);
	im->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (im->fd >= 0)
		return TW_OK;
	return errno == EEXIST ? broken(err, "it contains a file twice") : cannot_unpack(err);
}

static enum tw_status begin_member(
        void *arg, uint32_t index, struct tw_str name, struct tw_err *err)
{
	struct import *im = arg;

	im->now = member_of(im, name);
	im->files++;
	if (index == 0 && im->now != MANIFEST)
		return broken(err, "it is not an export of a project");
	if (im->now == BLOB)
		return tw_blob_begin(im->blobs, UINT64_MAX, &im->writer, err);
	if (im->now == CATALOGUE || im->now == DECODED)
		return open_spool(im, err);
	im->ended = im->ended || im->now == END;
	return TW_OK;
}

static enum tw_status write_spool(struct import *im, const uint8_t *p, size_t n, struct tw_err *err)
{
	enum tw_status st = tw_blobs_check_space(im->blobs, 0, err);

	if (st != TW_OK)
		return st;
	return tw_write_all(im->fd, p, n) ? TW_OK : cannot_unpack(err);
}

static enum tw_status member_data(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	struct import *im = arg;

	im->bytes += n;
	if (im->watch->step)
		im->watch->step(im->watch->arg, im->files, im->bytes);
	if (im->now == BLOB)
		return tw_blob_write(im->writer, p, n, err);
	if (im->now == CATALOGUE || im->now == DECODED)
		return write_spool(im, p, n, err);
	if (im->now == MANIFEST && tw_buf_add(&im->manifest, p, n) != TW_OK)
		return broken(err, "its first file is too long");
	return TW_OK;
}

static enum tw_status end_blob(struct import *im, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX], path[PATH_BYTES];
	enum tw_status st;

	spool_path(im, im->name, path);
	st = tw_blobs_remote(im->blobs) ? tw_blob_commit(im->writer, sha256, err)
	                                : tw_blob_set_aside(im->writer, path, sha256, err);
	if (st != TW_OK)
		return st;
	im->writer = NULL;
	if (strcmp(sha256, im->name) == 0)
		return TW_OK;
	return broken(err, "the content of a file in it does not match its name");
}

static enum tw_status end_spool(struct import *im, struct tw_err *err)
{
	enum tw_status st = fsync(im->fd) == 0 ? TW_OK : cannot_unpack(err);

	(void)close(im->fd);
	im->fd = -1;
	return st;
}

static enum tw_status end_member(void *arg, bool cut, struct tw_err *err)
{
	struct import *im = arg;

	if (cut)
		return broken(err, "it is damaged or truncated");
	if (im->writer)
		return end_blob(im, err);
	return im->fd >= 0 ? end_spool(im, err) : TW_OK;
}

/* --- reading the archive --- */

static enum tw_status push_unpack(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unpack_push(arg, p, n, err);
}

static enum tw_status push_unzip(void *arg, const uint8_t *p, size_t n, struct tw_err *err)
{
	return tw_unzip_push(arg, p, n, err);
}

static enum tw_status read_members(
        struct tw_unzip *z, struct tw_unpack *u, const char *path, struct tw_err *err)
{
	enum tw_unzip_end end = TW_UNZIP_COMPLETE;
	bool whole = false;
	uint64_t bytes;
	enum tw_status st = tw_local_read(path, push_unzip, z, &bytes, err);

	if (st == TW_OK)
		st = tw_unzip_finish(z, &end, err);
	if (st == TW_OK)
		st = tw_unpack_finish(u, &whole, err);
	if (st == TW_OK && (end != TW_UNZIP_COMPLETE || !whole))
		st = broken(err, "it is damaged or truncated");
	return st;
}

static enum tw_status read_archive(struct import *im, const char *path, struct tw_err *err)
{
	static const struct tw_unpack_ops ops = {begin_member, member_data, end_member};
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_limits limits = tw_limits_default();
	struct tw_unpack *u;
	struct tw_unzip *z;
	enum tw_status st;

	limits.max_decoded_bytes = (uint64_t)1 << 50;
	limits.max_ratio = MAX_RATIO;
	u = a ? tw_unpack_new(a, &limits, &ops, im) : NULL;
	z = u ? tw_unzip_new(a, &limits, push_unpack, u) : NULL;
	st = z ? read_members(z, u, path, err) : tw_oom(err);
	tw_unzip_free(z);
	tw_unpack_free(u);
	tw_arena_free(a);
	if (st == TW_OK && !im->ended)
		st = broken(err, "its end is missing");
	return st;
}

/* --- checking the archive --- */

struct manifest {
	char name[NAME_BYTES], catalogue[TW_SHA256_HEX];
};

static enum tw_status read_manifest(
        const struct import *im, struct manifest *ret, struct tw_err *err)
{
	json_t *o = json_loadb((const char *)im->manifest.data, im->manifest.len, 0, NULL);
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *sha256 = json_string_value(json_object_get(o, "catalogue_sha256"));
	json_int_t version = json_integer_value(json_object_get(o, "tracewell_project"));
	enum tw_status st = TW_OK;

	if (version > 1) {
		st = tw_fail(err, TW_UNSUPPORTED, "the archive was written by a newer tracewell");
	} else if (version == 1 && name && strlen(name) < NAME_BYTES && sha256 && is_hex(sha256)) {
		memcpy(ret->name, name, strlen(name) + 1);
		memcpy(ret->catalogue, sha256, TW_SHA256_HEX);
	} else {
		st = broken(err, "it does not name its project");
	}
	json_decref(o);
	return st;
}

static void set_wrong(void *arg, const char *text)
{
	(void)text;
	*(bool *)arg = true;
}

/* Whether the file is in the spool, not stored yet. */
static bool is_in_spool(const struct import *im, const char *sha256, char path[PATH_BYTES])
{
	if (!is_hex(sha256)) /* the archive chooses this name */
		return false;
	spool_path(im, sha256, path);
	return access(path, F_OK) == 0;
}

static enum tw_status check_blob(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct import *im = arg;
	char path[PATH_BYTES];
	uint64_t bytes;
	enum tw_status st;

	(void)a;
	if (is_in_spool(im, f->sha256, path))
		return TW_OK;
	st = tw_blob_stat(im->blobs, f->sha256, &bytes, err);
	return st == TW_NOT_FOUND ? broken(err, "a file that its catalogue names is not in it")
	                          : st;
}

static enum tw_status check_decoded(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct import *im = arg;
	struct tw_trace_row row;
	char path[PATH_BYTES], name[64], sha256[TW_SHA256_HEX] = "";
	uint64_t bytes;
	enum tw_status st = tw_catalogue_trace_get(im->copy, f->project_id, f->id, a, &row, err);

	if (st != TW_OK || row.has_upload)
		return st;
	(void)snprintf(name, sizeof name, "%.26s.db", f->id);
	spool_path(im, name, path);
	if (tw_sha256_file(path, sha256, &bytes, NULL) != TW_OK ||
	        (f->sha256[0] && strcmp(sha256, f->sha256) != 0))
		return broken(err, "a decoded file is not in it, or is damaged");
	return TW_OK;
}

static enum tw_status open_catalogue(
        struct import *im, const char *path, const char *expected, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	bool wrong = false;
	uint64_t bytes;
	enum tw_status st;

	if (tw_sha256_file(path, sha256, &bytes, NULL) != TW_OK || strcmp(sha256, expected) != 0)
		return broken(err, "its catalogue is damaged or missing");
	st = tw_catalogue_open(path, &im->copy, err);
	if (st == TW_UNSUPPORTED)
		return st;
	if (st != TW_OK || tw_catalogue_verify(im->copy, set_wrong, &wrong, err) != TW_OK || wrong)
		return broken(err, "its catalogue is damaged");
	return TW_OK;
}

static enum tw_status each_blob(struct import *im, tw_stored_fn one, struct tw_err *err)
{
	enum tw_status st = tw_stored_each(im->copy, tw_catalogue_stored_parts, one, im, err);

	if (st == TW_OK)
		st = tw_stored_each(im->copy, tw_catalogue_stored_mappings, one, im, err);
	return st;
}

static enum tw_status check_files(struct import *im, struct tw_err *err)
{
	enum tw_status st = each_blob(im, check_blob, err);

	if (st == TW_OK)
		st = tw_stored_each(im->copy, tw_catalogue_stored_traces, check_decoded, im, err);
	return st;
}

/* --- importing --- */

static enum tw_status store_blob(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct import *im = arg;
	char path[PATH_BYTES];

	(void)a;
	return is_in_spool(im, f->sha256, path) ? tw_blob_take(im->blobs, path, f->sha256, err)
	                                        : TW_OK;
}

static enum tw_status store_decoded(
        void *arg, const char *old_id, const char *new_id, struct tw_err *err)
{
	struct import *im = arg;
	char path[PATH_BYTES], name[64];

	(void)snprintf(name, sizeof name, "%.26s.db", old_id);
	spool_path(im, name, path);
	return tw_trace_publish(im->blobs, path, new_id, err);
}

static enum tw_status import_rows(struct import *im, struct tw_catalogue *c, const char *catalogue,
        const char *from, const char *to, struct tw_project_sums *ret, struct tw_err *err)
{
	char from_id[TW_ID_BYTES], to_id[TW_ID_BYTES];
	enum tw_status st = tw_catalogue_project_find(im->copy, from, from_id, err);

	if (st == TW_OK)
		st = each_blob(im, store_blob, err);
	im->copy = tw_catalogue_close(im->copy);
	if (st == TW_NOT_FOUND)
		return broken(err, "its catalogue belongs to another project");
	if (st == TW_OK) {
		st = tw_catalogue_project_find(c, to, to_id, err);
		if (st == TW_NOT_FOUND) {
			tw_ulid_new(tw_unix_ms(), to_id);
			st = TW_OK;
		}
	}
	if (st != TW_OK)
		return st;
	return tw_catalogue_project_move(c,
	        &(struct tw_project_move){.path = catalogue,
	                .from_id = from_id,
	                .to_id = to_id,
	                .name = to,
	                .decode = true,
	                .decoded = store_decoded,
	                .decoded_first = tw_blobs_remote(im->blobs),
	                .arg = im},
	        ret, err);
}

/* A running server may have deleted stored files before their rows were added: unreferenced files
 * are swept. */
static enum tw_status check_stored(struct import *im, const char *catalogue, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_open(catalogue, &im->copy, err);

	if (st == TW_OK)
		st = each_blob(im, check_blob, err);
	if (st == TW_CORRUPT)
		return tw_fail(err, TW_CONFLICT,
		        "the server deleted files while they were imported: delete the project's "
		        "failed traces and import it again");
	return st;
}

/* Deletes this run's files that are still in the spool. */
static void clear_spool(const struct import *im)
{
	char path[PATH_BYTES], prefix[TW_ID_BYTES + 2];
	struct dirent *e;
	DIR *d;

	(void)snprintf(prefix, sizeof prefix, ".%s-", im->run);
	tw_spool_path(im->blobs, ".", path, sizeof path);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
}

enum tw_status tw_project_import(struct tw_catalogue *c, struct tw_blobs *b, const char *path,
        const char *name, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        struct tw_err *err)
{
	struct import im = {.blobs = b, .fd = -1, .watch = watch};
	struct manifest manifest = {0};
	char catalogue[PATH_BYTES];
	enum tw_status st;

	tw_ulid_new(tw_unix_ms(), im.run);
	tw_buf_init(&im.manifest, MANIFEST_BYTES);
	spool_path(&im, "catalogue.db", catalogue);
	st = read_archive(&im, path, err);
	if (st == TW_OK)
		st = read_manifest(&im, &manifest, err);
	if (st == TW_OK)
		st = open_catalogue(&im, catalogue, manifest.catalogue, err);
	if (st == TW_OK)
		st = check_files(&im, err);
	if (st == TW_OK)
		st = import_rows(
		        &im, c, catalogue, manifest.name, name ? name : manifest.name, ret, err);
	if (st == TW_OK)
		st = check_stored(&im, catalogue, err);
	im.copy = tw_catalogue_close(im.copy);
	(void)tw_blob_discard(im.writer);
	if (im.fd >= 0)
		(void)close(im.fd);
	clear_spool(&im);
	tw_buf_done(&im.manifest);
	return st;
}
