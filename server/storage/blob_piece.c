#include "server/storage/blob_piece.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/ulid.h"
#include "server/storage/blob_int.h"

/* Ids begin with their time; their last characters are evenly distributed. */
static void name(const char *upload_id, char out[TW_STORE_KEY])
{
	char id[TW_ID_BYTES];

	tw_ulid_new(tw_unix_ms(), id);
	(void)snprintf(out, TW_STORE_KEY, "pieces/%.2s/%.26s-%.26s", upload_id + TW_ID_CHARS - 2,
	        upload_id, id);
}

static enum tw_status put(struct tw_blobs *b, struct tw_blob_writer *w, struct tw_err *err)
{
	enum tw_status st;

	if (fdatasync(w->fd) != 0)
		return tw_is_disk_full(errno)
		               ? tw_fail(err, TW_FULL, "no space left for uploads")
		               : tw_fail_errno(err, TW_IO, "a piece cannot be synced");
	w->stored = true;
	w->put = (struct tw_store_put){.key = w->key,
	        .sha256 = w->sha256,
	        .bytes = w->bytes,
	        .path = w->path,
	        .fd = w->fd,
	        .replaces = true};
	st = b->engine->put(b->store, &w->put, err);
	return st == TW_OK ? b->engine->wait(b->store, &w->put, err) : st;
}

enum tw_status tw_piece_put(struct tw_blobs *b, struct tw_blob_writer *w, const char *upload_id,
        char ret_object[TW_STORE_KEY], char ret_sha256[TW_SHA256_HEX], struct tw_err *err)
{
	uint8_t hash[32];
	enum tw_status st;

	name(upload_id, w->key);
	gnutls_hash_output(w->sha, hash);
	tw_sha256_hex(hash, w->sha256);
	st = put(b, w, err);
	memcpy(ret_object, w->key, TW_STORE_KEY);
	memcpy(ret_sha256, w->sha256, TW_SHA256_HEX);
	if (st == TW_OK)
		(void)tw_blob_end(w);
	else
		(void)tw_blob_discard(w);
	return st;
}

static bool is_piece(const char *object)
{
	return strncmp(object, "pieces/", 7) == 0 && strlen(object) < TW_STORE_KEY &&
	       !strstr(object, "..");
}

enum tw_status tw_piece_open(
        struct tw_blobs *b, const char *object, int *ret_fd, struct tw_err *err)
{
	if (!is_piece(object))
		return tw_fail(err, TW_NOT_FOUND, "no such chunk");
	return b->engine->get(b->store, object, 0, ret_fd, err);
}

enum tw_status tw_piece_remove(struct tw_blobs *b, const char *object, struct tw_err *err)
{
	return is_piece(object) ? b->engine->remove(b->store, object, err) : TW_OK;
}

enum tw_status tw_piece_scratch(struct tw_blobs *b, uint64_t bytes, int *ret_fd, struct tw_err *err)
{
	struct tw_blob_writer *w = NULL;
	enum tw_status st = tw_blobs_check_space(b, bytes, err);

	if (st == TW_OK)
		st = tw_blob_begin(b, 0, &w, err);
	if (st != TW_OK)
		return st;
	*ret_fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd < 0)
		st = tw_fail_errno(err, TW_IO, "no descriptor");
	(void)tw_blob_discard(w);
	return st;
}
