/*
 * project_export.c - writes a project to an archive.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/file/tar_head.h"
#include "server/base/text/json.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/ops/project_archive.h"

enum { PATH_BYTES = 1500, PIECE_BYTES = 1 << 16, LEVEL = 3 };

struct archive {
	int fd;
	ZSTD_CStream *zstd; /* NULL: plain */
	uint64_t bytes;
	uint64_t files, read_bytes; /* of the contents */
	const struct tw_project_watch *watch;
	uint8_t out[PIECE_BYTES];
};

struct export
{
	struct archive archive;
	struct tw_catalogue *copy;
	struct tw_blobs *blobs;
};

/* --- bytes --- */

static enum tw_status write_all(struct archive *t, const uint8_t *p, size_t n, struct tw_err *err)
{
	if (!tw_write_all(t->fd, p, n))
		return tw_file_fail("write", "the archive", err);
	t->bytes += n;
	return TW_OK;
}

static enum tw_status compress(
        struct archive *t, const void *p, size_t n, ZSTD_EndDirective directive, struct tw_err *err)
{
	ZSTD_inBuffer in = {p, n, 0};
	enum tw_status st = TW_OK;
	size_t left = 1;

	while (st == TW_OK && (in.pos < in.size || (directive == ZSTD_e_end && left > 0))) {
		ZSTD_outBuffer out = {t->out, sizeof t->out, 0};

		left = ZSTD_compressStream2(t->zstd, &out, &in, directive);
		if (ZSTD_isError(left))
			return tw_fail(err, TW_BUG, "zstd: %s", ZSTD_getErrorName(left));
		st = write_all(t, t->out, out.pos, err);
	}
	return st;
}

static enum tw_status put(struct archive *t, const void *p, size_t n, struct tw_err *err)
{
	return t->zstd ? compress(t, p, n, ZSTD_e_continue, err) : write_all(t, p, n, err);
}

/* --- members --- */

static enum tw_status put_head(
        struct archive *t, const char *name, uint64_t bytes, struct tw_err *err)
{
	uint8_t h[TW_TAR_BLOCK];

	if (!tw_tar_head(h, name, 0600, bytes))
		return tw_fail(
		        err, TW_TOO_LARGE, "%.80s exceeds 8 GiB, the limit of a tar member", name);
	return put(t, h, sizeof h, err);
}

static enum tw_status put_zeros(struct archive *t, size_t n, struct tw_err *err)
{
	static const uint8_t zeros[2 * TW_TAR_BLOCK];

	return put(t, zeros, n, err);
}

static enum tw_status put_bytes(
        struct archive *t, const char *name, const void *p, size_t n, struct tw_err *err)
{
	enum tw_status st = put_head(t, name, n, err);

	if (st == TW_OK)
		st = put(t, p, n, err);
	return st == TW_OK ? put_zeros(t, tw_tar_pad(n), err) : st;
}

/* Writes exactly as many bytes as the member's header declares: otherwise the reader would take
 * content for a header. */
static enum tw_status put_exactly(
        struct archive *t, const char *name, int fd, uint64_t bytes, struct tw_err *err)
{
	uint8_t piece[PIECE_BYTES];
	enum tw_status st = TW_OK;

	for (uint64_t left = bytes; st == TW_OK && left > 0;) {
		size_t want = left < sizeof piece ? (size_t)left : sizeof piece;
		ssize_t n = tw_read_some(fd, piece, want);

		if (n <= 0)
			return tw_fail(err, TW_IO, "%.80s ended while it was read", name);
		st = put(t, piece, (size_t)n, err);
		left -= (uint64_t)n;
		t->read_bytes += (uint64_t)n;
		if (t->watch->step)
			t->watch->step(t->watch->arg, t->files, t->read_bytes);
	}
	return st;
}

static enum tw_status put_file(struct archive *t, const char *name, int fd, struct tw_err *err)
{
	struct stat s;
	enum tw_status st;

	if (fstat(fd, &s) != 0)
		return tw_file_fail("read", name, err);
	st = put_head(t, name, (uint64_t)s.st_size, err);
	if (st == TW_OK)
		st = put_exactly(t, name, fd, (uint64_t)s.st_size, err);
	t->files++;
	return st == TW_OK ? put_zeros(t, tw_tar_pad((uint64_t)s.st_size), err) : st;
}

static enum tw_status put_path(
        struct archive *t, const char *name, const char *path, struct tw_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum tw_status st = fd < 0 ? tw_file_fail("open", path, err) : put_file(t, name, fd, err);

	if (fd >= 0)
		(void)close(fd);
	return st;
}

/* --- the archive's content --- */

static enum tw_status put_blob(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct export *e = arg;
	char name[TW_TAR_NAME_BYTES];
	int fd = -1;
	enum tw_status st = tw_blob_open(e->blobs, f->sha256, &fd, err);

	(void)a;
	if (st == TW_NOT_FOUND)
		return tw_fail(err, TW_NOT_FOUND,
		        "a file of %.60s is missing (%.60s): it was deleted during the export, or "
		        "see `tracewell check`; export again",
		        f->id, f->what);
	if (st != TW_OK)
		return st;
	(void)snprintf(name, sizeof name, "blobs/%.64s", f->sha256);
	st = put_file(&e->archive, name, fd, err);
	(void)close(fd);
	return st;
}

static enum tw_status put_decoded(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct export *e = arg;
	struct tw_trace_row row;
	char name[TW_TAR_NAME_BYTES];
	int fd = -1;
	enum tw_status st = tw_catalogue_trace_get(e->copy, f->project_id, f->id, a, &row, err);

	if (st != TW_OK || row.has_upload)
		return st;
	(void)snprintf(name, sizeof name, "decoded/%.26s.db", f->id);
	st = tw_trace_open(e->blobs, f->id, &fd, err);
	if (st != TW_OK)
		return st;
	st = put_file(&e->archive, name, fd, err);
	(void)close(fd);
	return st;
}

static enum tw_status put_manifest(
        struct archive *t, const char *project, const char *sha256, struct tw_err *err)
{
	json_t *o = json_pack(
	        "{si ss ss}", "tracewell_project", 1, "name", project, "catalogue_sha256", sha256);
	char *text = tw_json_dumps(o, JSON_COMPACT);
	enum tw_status st = text ? put_bytes(t, "tracewell-project.json", text, strlen(text), err)
	                         : tw_oom(err);

	free(text); /* NOLINT: jansson's */
	json_decref(o);
	return st;
}

static enum tw_status put_all(
        struct export *e, const char *project, const char *copy, struct tw_err *err)
{
	struct archive *t = &e->archive;
	char sha256[TW_SHA256_HEX] = "";
	uint64_t bytes;
	enum tw_status st = tw_sha256_file(copy, sha256, &bytes, err);

	if (st == TW_OK)
		st = put_manifest(t, project, sha256, err);
	if (st == TW_OK)
		st = put_path(t, "catalogue.db", copy, err);
	if (st == TW_OK)
		st = tw_catalogue_open(copy, &e->copy, err);
	if (st == TW_OK)
		st = tw_stored_each(e->copy, tw_catalogue_stored_parts, put_blob, e, err);
	if (st == TW_OK)
		st = tw_stored_each(e->copy, tw_catalogue_stored_mappings, put_blob, e, err);
	if (st == TW_OK)
		st = tw_stored_each(e->copy, tw_catalogue_stored_traces, put_decoded, e, err);
	if (st == TW_OK)
		st = put_bytes(t, "end", "", 0, err);
	if (st == TW_OK)
		st = put_zeros(t, (size_t)2 * TW_TAR_BLOCK, err);
	if (st == TW_OK && t->zstd)
		st = compress(t, NULL, 0, ZSTD_e_end, err);
	e->copy = tw_catalogue_close(e->copy);
	return st;
}

/* --- the archive --- */

/* Copies one project to a new catalogue at `copy`. */
static enum tw_status copy_project(struct tw_catalogue *c, const char *data_dir, const char *name,
        const char *copy, struct tw_project_sums *ret, struct tw_err *err)
{
	struct tw_catalogue *fresh = NULL;
	char live[PATH_BYTES];
	char id[TW_ID_BYTES];
	enum tw_status st = tw_catalogue_must_be_file(c, err);

	if (st == TW_OK)
		st = tw_catalogue_project_find(c, name, id, err);
	(void)snprintf(live, sizeof live, "%s/catalogue.db", data_dir);
	if (st == TW_OK)
		st = tw_catalogue_open(copy, &fresh, err);
	if (st == TW_OK)
		st = tw_catalogue_project_move(fresh,
		        &(struct tw_project_move){
		                .path = live, .from_id = id, .to_id = id, .name = name},
		        ret, err);
	tw_catalogue_close(fresh);
	if (st != TW_OK)
		(void)unlink(copy);
	return st;
}

static bool is_zst(const char *name)
{
	size_t len = strlen(name);

	return len >= 4 && strcmp(name + len - 4, ".zst") == 0;
}

/* "" is standard output. */
static enum tw_status open_archive(
        struct archive *t, const char *path, bool zst, struct tw_err *err)
{
	t->fd = *path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
	              : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (t->fd < 0)
		return tw_file_fail("make", path, err);
	if (!zst)
		return TW_OK;
	t->zstd = ZSTD_createCStream();
	if (!t->zstd || ZSTD_isError(ZSTD_initCStream(t->zstd, LEVEL)))
		return tw_oom(err);
	(void)ZSTD_CCtx_setParameter(t->zstd, ZSTD_c_checksumFlag, 1);
	return TW_OK;
}

static enum tw_status close_archive(
        struct archive *t, enum tw_status st, const char *from, const char *to, struct tw_err *err)
{
	(void)ZSTD_freeCStream(t->zstd);
	if (t->fd < 0)
		return st;
	if (!*from) {
		(void)close(t->fd);
		return st;
	}
	if (st == TW_OK && fsync(t->fd) != 0)
		st = tw_file_fail("sync", from, err);
	(void)close(t->fd);
	if (st == TW_OK && rename(from, to) != 0)
		st = tw_file_fail("rename", from, err);
	if (st != TW_OK)
		(void)unlink(from);
	return st;
}

static enum tw_status write_archive(
        struct export *e, const char *name, const char *copy, const char *path, struct tw_err *err)
{
	const bool to_stdout = strcmp(path, "-") == 0;
	char half[PATH_BYTES] = "";
	enum tw_status st;

	if (!to_stdout)
		(void)snprintf(half, sizeof half, "%.1400s.new", path);
	st = open_archive(&e->archive, half, to_stdout || is_zst(path), err);
	if (st == TW_OK)
		st = put_all(e, name, copy, err);
	return close_archive(&e->archive, st, half, path, err);
}

enum tw_status tw_project_export(struct tw_catalogue *c, struct tw_blobs *b, const char *name,
        const char *path, const struct tw_project_watch *watch, struct tw_project_sums *ret,
        uint64_t *ret_bytes, struct tw_err *err)
{
	struct export *e = tw_mem_zalloc(1, sizeof *e);
	struct tw_project_sums sums = {0};
	char copy[PATH_BYTES], id[TW_ID_BYTES], file[TW_ID_BYTES + 8];
	enum tw_status st;

	if (!e)
		return tw_oom(err);
	e->blobs = b;
	e->archive.fd = -1;
	e->archive.watch = watch;
	tw_ulid_new(tw_unix_ms(), id);
	(void)snprintf(file, sizeof file, ".export-%s", id); /* a starting server removes it */
	tw_spool_path(b, file, copy, sizeof copy);
	st = copy_project(c, tw_blobs_dir(b), name, copy, &sums, err);
	if (st == TW_OK) {
		st = write_archive(e, name, copy, path, err);
		(void)unlink(copy);
	}
	if (st == TW_OK) {
		*ret = sums;
		*ret_bytes = e->archive.bytes;
	}
	tw_mem_free(e);
	return st;
}
