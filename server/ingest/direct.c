#include "server/ingest/direct.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1500, RECORD_MAX = 64 << 10 };

void tw_direct_key(const struct tw_direct *d, const char *kind, char out[TW_DIRECT_KEY])
{
	const char *folder = strcmp(kind, "json") == 0 ? "open/" : "";

	(void)snprintf(out, TW_DIRECT_KEY, "incoming/%.26s/%s%.26s%s%s", d->key_id, folder, d->id,
	        *kind ? "." : "", kind);
}

enum tw_status tw_direct_check_supported(struct tw_blobs *b, struct tw_err *err)
{
	void *store;

	if (tw_blobs_engine(b, &store)->address)
		return tw_blobs_ready(b, err);
	return tw_fail(err, TW_CONFLICT,
	        "this server stores uploads in its folder: send them to /api/v1/traces or "
	        "/api/v1/uploads");
}

/* --- open uploads of a key --- */

struct counting {
	int64_t since_ms;
	struct tw_direct_open *open;
};

/* Also lists some expired ones, to be deleted: a key that never finishes its uploads must not make
 * counting slow. */
static enum tw_status count_one(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct counting *c = arg;
	const char *name = strrchr(f->key, '/') + 1;

	(void)err;
	if (f->modified_ms >= c->since_ms)
		c->open->n++;
	else if (strlen(name) == TW_ID_CHARS + 5 && c->open->n_expired < TW_DIRECT_OVER &&
	         f->modified_ms < c->since_ms - (int64_t)TW_DIRECT_S * 1000)
		(void)snprintf(c->open->expired[c->open->n_expired++], TW_ID_BYTES, "%.26s", name);
	return TW_OK;
}

enum tw_status tw_direct_count(struct tw_blobs *b, const char *key_id, int64_t now_ms,
        struct tw_direct_open *ret, struct tw_err *err)
{
	struct counting c = {.since_ms = now_ms - (int64_t)TW_DIRECT_S * 1000, .open = ret};
	char folder[TW_DIRECT_KEY];
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);

	ret->n = 0;
	ret->n_expired = 0;
	(void)snprintf(folder, sizeof folder, "incoming/%.26s/open", key_id);
	return engine->list(store, folder, count_one, &c, err);
}

/* --- records --- */

static enum tw_status put_file(
        struct tw_blobs *b, const char *key, const char *path, int fd, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	struct tw_store_put p = {.key = key, .sha256 = sha256, .path = path, .fd = fd};
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	enum tw_status st = tw_sha256_fd(fd, sha256, &p.bytes, err);

	if (st != TW_OK)
		return st;
	st = engine->put(store, &p, err);
	if (st == TW_OK)
		st = engine->wait(store, &p, err);
	engine->end(store, &p);
	return st;
}

enum tw_status tw_direct_store(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        const json_t *record, struct tw_err *err)
{
	char *text = record ? json_dumps(record, JSON_COMPACT) : NULL;
	char path[PATH_BYTES], name[64], key[TW_DIRECT_KEY];
	enum tw_status st = TW_OK;
	int fd;

	if (!text)
		return tw_oom(err);
	if (strlen(text) > RECORD_MAX) { /* a longer text could not be read back */
		free(text);              /* NOLINT: jansson's */
		return tw_fail_at(err, TW_TOO_LARGE, RECORD_MAX,
		        "the metadata of an upload exceeds %d bytes", RECORD_MAX);
	}
	(void)snprintf(name, sizeof name, "direct-%.26s-%.8s", d->id, kind);
	tw_spool_path(b, name, path, sizeof path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || !tw_write_all(fd, text, strlen(text)) || lseek(fd, 0, SEEK_SET) != 0)
		st = tw_fail(err, TW_IO, "%.120s cannot be written", path);
	tw_direct_key(d, kind, key);
	if (st == TW_OK)
		st = put_file(b, key, path, fd, err);
	if (fd >= 0)
		(void)close(fd);
	(void)unlink(path); /* the store has it now */
	free(text);         /* NOLINT: jansson's */
	return st;
}

enum tw_status tw_direct_read(struct tw_blobs *b, const struct tw_direct *d, const char *kind,
        json_t **ret, struct tw_err *err)
{
	char key[TW_DIRECT_KEY], text[4096];
	struct tw_buf all;
	ssize_t n;
	int fd = -1;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	enum tw_status st;

	tw_direct_key(d, kind, key);
	st = engine->get(store, key, 0, &fd, err);
	if (st != TW_OK)
		return st;
	tw_buf_init(&all, RECORD_MAX);
	while ((n = tw_read_some(fd, text, sizeof text)) > 0)
		(void)tw_buf_add(&all, text, (size_t)n);
	(void)close(fd);
	*ret = tw_buf_status(&all) == TW_OK && all.len && n == 0
	               ? json_loadb((const char *)all.data, all.len, 0, NULL)
	               : NULL;
	tw_buf_done(&all);
	return *ret ? TW_OK : tw_fail(err, TW_BUSY, "its stored metadata cannot be read");
}

/* --- the object --- */

enum tw_status tw_direct_address(
        struct tw_blobs *b, const struct tw_direct *d, struct tw_buf *out, struct tw_err *err)
{
	char key[TW_DIRECT_KEY];
	const struct tw_store_put p = {.key = key, .sha256 = d->sha256, .bytes = d->bytes};
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);

	tw_direct_key(d, "", key);
	return engine->address(store, &p, TW_DIRECT_S, out, err);
}

static enum tw_status verify(const struct tw_direct *d, int fd, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX] = "";
	uint64_t bytes = 0;
	enum tw_status st = tw_sha256_fd(fd, sha256, &bytes, err);

	if (st == TW_OK && (bytes != d->bytes || strcmp(sha256, d->sha256) != 0))
		st = tw_fail(err, TW_CHECKSUM,
		        "the object is not the announced one; start a new direct upload");
	if (st == TW_OK && lseek(fd, 0, SEEK_SET) != 0)
		st = tw_fail(err, TW_IO, "an upload cannot be read");
	return st;
}

enum tw_status tw_direct_open(
        struct tw_blobs *b, const struct tw_direct *d, int *ret_fd, struct tw_err *err)
{
	struct tw_store_file f = {.bytes = 0};
	char key[TW_DIRECT_KEY];
	int fd = -1;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	enum tw_status st;

	tw_direct_key(d, "", key);
	/* downloads only objects of the declared size */
	st = engine->stat_file(store, key, &f, err);
	if (st == TW_OK && f.bytes != d->bytes)
		return tw_fail(err, TW_CHECKSUM,
		        "the object has %" PRIu64 " bytes instead of the announced %" PRIu64
		        "; start a new direct upload",
		        f.bytes, d->bytes);
	if (st == TW_OK)
		st = engine->get(store, key, 0, &fd, err);
	if (st == TW_NOT_FOUND)
		return tw_fail(err, TW_CONFLICT,
		        "the object was not uploaded yet: upload it with PUT, then complete the "
		        "upload");
	if (st == TW_OK)
		st = verify(d, fd, err);
	if (st == TW_OK)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return st;
}
