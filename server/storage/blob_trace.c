/*
 * blob_trace.c - trace files: their location, replacement, and protection until their row is
 * written.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/sha256.h"
#include "server/storage/blob_int.h"

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
	return tw_blob_get(b, &(struct tw_blob_at){key, NULL, trace_id}, until_ms, ret_fd, err);
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
	return tw_blob_size(b, &(struct tw_blob_at){key, NULL, trace_id}, ret_bytes, err);
}

static enum tw_status put_trace(struct tw_blobs *b, struct tw_store_put *p, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	enum tw_status st = TW_OK;

	if (b->engine->remote) /* the object's metadata contains the hash */
		st = tw_sha256_fd(p->fd, sha256, &p->bytes, err);
	p->sha256 = sha256;
	if (st == TW_OK)
		st = tw_blob_put_held(b, p, err);
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
