/* Assembles an upload from its pieces. Reads them in order, 64 KiB at a time, and verifies each
 * against its SHA-256. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/ingest/tus/resume_shared.h"
#include "server/storage/blob_piece.h"

enum { ARENA = 16 << 20 };

static enum tw_status append_file(int from, int to, uint64_t bytes, struct tw_err *err)
{
	uint64_t done = 0;
	bool reading = false;

	if (!tw_copy_fd_from(from, 0, to, &done, &reading))
		return reading ? tw_fail(err, TW_IO, "a piece cannot be read")
		               : tw_fail(err, TW_FULL, "no space left for uploads");
	return done == bytes ? TW_OK
	                     : tw_fail(err, TW_CORRUPT,
	                               "a piece has %" PRIu64 " of %" PRIu64 " bytes", done, bytes);
}

/* Ignores the cache if its copy is damaged: the store's may be intact. */
static enum tw_status open_piece(
        struct tw_blobs *b, const struct tw_resumable_piece *p, int *ret_fd, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	uint64_t n = 0;
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(b, &store);
	enum tw_status st = TW_OK;

	*ret_fd = -1;
	for (int i = 0; i < 2 && st == TW_OK; i++) {
		st = tw_piece_open(b, p->object, ret_fd, err);
		if (st == TW_OK)
			st = tw_sha256_fd(*ret_fd, sha256, &n, err);
		if (st == TW_OK && strcmp(sha256, p->sha256) == 0)
			return TW_OK;
		if (*ret_fd >= 0)
			(void)close(*ret_fd);
		*ret_fd = -1;
		if (st == TW_OK && (!e->forget || !e->forget(store, p->object)))
			break;
	}
	return st != TW_OK ? st
	                   : tw_fail(err, TW_CORRUPT,
	                             "a chunk of the upload was damaged in the store: start a new "
	                             "upload");
}

static enum tw_status append_piece(struct tw_blobs *b, const struct tw_resumable_piece *p,
        uint64_t at, int to, struct tw_err *err)
{
	int fd = -1;
	enum tw_status st;

	if (p->start != at)
		return tw_fail(err, TW_CORRUPT,
		        "the upload has a hole at %" PRIu64 ": begin a new one", at);
	st = open_piece(b, p, &fd, err);
	if (st == TW_NOT_FOUND)
		return tw_fail(
		        err, TW_BUSY, "a chunk of the upload is missing: get the offset with HEAD");
	if (st != TW_OK)
		return st;
	st = append_file(fd, to, p->bytes, err);
	(void)close(fd);
	return st;
}

static enum tw_status append_all(const struct tw_resume_place *p, const struct tw_resume *r,
        struct tw_arena *a, int to, struct tw_err *err)
{
	struct tw_resumable_piece *pieces = NULL;
	uint64_t at = 0;
	size_t n = 0;
	enum tw_status st = tw_catalogue_resumable_pieces(
	        p->catalogue, r->project_id, r->id, a, &pieces, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		st = append_piece(p->blobs, &pieces[i], at, to, err);
		at += pieces[i].bytes;
	}
	if (st == TW_OK && at != r->length)
		st = tw_fail(err, TW_BUSY, "the upload changed: get its offset with HEAD");
	if (st == TW_OK && lseek(to, 0, SEEK_SET) != 0)
		st = tw_fail(err, TW_IO, "an upload cannot be read");
	return st;
}

enum tw_status tw_resume_assemble(
        const struct tw_resume_place *p, const struct tw_resume *r, int *ret_fd, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA);
	int fd = -1;
	enum tw_status st = a ? tw_piece_scratch(p->blobs, &fd, err) : tw_oom(err);

	if (st == TW_OK)
		st = append_all(p, r, a, fd, err);
	(void)tw_arena_free(a);
	if (st == TW_OK)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return st;
}
