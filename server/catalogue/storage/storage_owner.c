#include "server/catalogue/storage/storage_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/storage_record.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1500, OTHERS_MOST = 16 };

static const char folder[] = "owner/";

struct owners {
	char ours[TW_STORAGE_OWNER]; /* "" none yet */
	bool is_ours;
	char others[OTHERS_MOST][TW_STORE_KEY];
	size_t n_others;
};

/* --- local state --- */

static enum tw_status read_id(const char *path, char out[TW_STORAGE_OWNER], struct tw_err *err)
{
	const bool is_read = tw_file_text(path, out, TW_ID_BYTES);

	if (is_read ? tw_ulid_valid(out) : errno == ENOENT)
		return TW_OK;
	return tw_fail(err, TW_CONFLICT, "%.150s is damaged: restore it from a backup", path);
}

static enum tw_status keep_id(const struct tw_storage_claim *c, const char *id, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/storage_owner", c->data_dir);
	return tw_file_replace(path, id, strlen(id), err);
}

/* A catalogue in a database server has its own id; for one in a file the folder stores it. */
static bool has_identity(const struct tw_storage_claim *c)
{
	return strcmp(tw_catalogue_engine(c->catalogue), "postgresql") == 0;
}

enum tw_status tw_storage_id(
        const struct tw_storage_claim *c, char out[TW_STORAGE_OWNER], struct tw_err *err)
{
	char path[PATH_BYTES];

	if (has_identity(c))
		return tw_catalogue_identity(c->catalogue, out, TW_STORAGE_OWNER, err);
	(void)snprintf(path, sizeof path, "%s/storage_owner", c->data_dir);
	return read_id(path, out, err);
}

/* --- remote state --- */

static enum tw_status take_owner(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct owners *o = arg;
	const char *id = f->key + sizeof folder - 1;

	if (o->ours[0] && strcmp(id, o->ours) == 0)
		o->is_ours = true;
	else if (o->n_others < OTHERS_MOST)
		(void)snprintf(o->others[o->n_others++], TW_STORE_KEY, "%s", f->key);
	else
		return tw_fail(err, TW_CONFLICT, "the prefix has too many owners");
	return TW_OK;
}

static enum tw_status take_any(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	(void)f;
	*(bool *)arg = true;
	return tw_fail(err, TW_PRECONDITION, "enough was seen");
}

static enum tw_status has_files(
        const struct tw_store_engine *e, void *store, bool *ret, struct tw_err *err)
{
	enum tw_status st = e->list(store, "blobs", take_any, ret, err);

	if (st == TW_OK)
		st = e->list(store, "traces", take_any, ret, err);
	return st == TW_PRECONDITION ? TW_OK : st;
}

/* --- taking ownership --- */

static enum tw_status write_id(const char *path, const char *id, int *ret_fd, struct tw_err *err)
{
	size_t n = strlen(id);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	*ret_fd = fd;
	if (fd >= 0 && tw_write_all(fd, id, n) && fsync(fd) == 0)
		return TW_OK;
	return tw_fail_errno(err, TW_IO, "%.120s cannot be written", path);
}

static enum tw_status put_owner(
        const struct tw_storage_claim *c, const char *id, struct tw_err *err)
{
	char key[TW_STORE_KEY], sha256[TW_SHA256_HEX], path[PATH_BYTES];
	struct tw_store_put p = {.key = key, .sha256 = sha256, .path = path, .fd = -1};
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(c->blobs, &store);
	enum tw_status st;

	(void)snprintf(key, sizeof key, "%s%s", folder, id);
	tw_spool_path(c->blobs, "storage_owner", path, sizeof path);
	st = write_id(path, id, &p.fd, err);
	if (st == TW_OK)
		st = tw_sha256_fd(p.fd, sha256, &p.bytes, err);
	if (st == TW_OK) {
		st = e->put(store, &p, err);
		if (st == TW_OK)
			st = e->wait(store, &p, err);
		e->end(store, &p);
	}
	if (p.fd >= 0)
		(void)close(p.fd);
	return st;
}

static enum tw_status take(const struct tw_storage_claim *c, struct owners *o, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(c->blobs, &store);
	enum tw_status st = TW_OK;

	if (!o->ours[0])
		tw_ulid_new(tw_unix_ms(), o->ours);
	if (!has_identity(c)) /* stored locally first: an owner object is never without a known
	                       * catalogue */
		st = keep_id(c, o->ours, err);
	if (st == TW_OK && !o->is_ours)
		st = put_owner(c, o->ours, err);
	for (size_t i = 0; st == TW_OK && i < o->n_others; i++)
		st = e->remove(store, o->others[i], err);
	return st;
}

static bool is_source_prefix(const struct tw_storage_claim *c, const struct owners *o)
{
	for (size_t i = 0; c->never[0] && i < o->n_others; i++)
		if (strcmp(o->others[i] + sizeof folder - 1, c->never) == 0)
			return true;
	return false;
}

/* Whether the prefix may be taken. */
static enum tw_status check_claim(const struct tw_storage_claim *c, const struct owners *o,
        bool names_files, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(c->blobs, &store);
	const char *where = c->storage->blobs;
	bool any = false;
	enum tw_status st = TW_OK;

	if (is_source_prefix(c, o))
		return tw_fail(err, TW_BAD_REQUEST,
		        "%.100s has the files of the source, under another name: a prefix belongs "
		        "to one catalogue, so use another with --to-blobs",
		        where);
	if (c->storage->adopt)
		return TW_OK;
	if (o->n_others)
		return tw_fail(err, TW_CONFLICT,
		        "%.60s belongs to another catalogue (%.40s): use another prefix, restore "
		        "the file data/storage_owner, or set --s3-adopt once",
		        where, o->others[0]);
	if (!o->is_ours && !names_files)
		st = has_files(e, store, &any, err);
	if (st == TW_OK && any)
		st = tw_fail(err, TW_CONFLICT,
		        "%.50s has files, but this catalogue has none: restore its catalogue, run "
		        "`tracewell check --rebuild`, use another prefix, or set --s3-adopt once",
		        where);
	return st;
}

enum tw_status tw_storage_claim(const struct tw_storage_claim *c, struct tw_err *err)
{
	struct owners o = {.is_ours = false};
	bool names_files = false;
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(c->blobs, &store);
	enum tw_status st;

	if (!e->remote)
		return TW_OK;
	st = tw_storage_id(c, o.ours, err);
	if (st == TW_OK && !c->fresh)
		st = tw_storage_verify(c->catalogue, c->blobs, &names_files, err);
	if (st == TW_OK)
		st = e->list(store, "owner", take_owner, &o, err);
	if (st == TW_OK)
		st = check_claim(c, &o, names_files, err);
	if (st != TW_OK)
		return st;
	if (e->hold)
		e->hold(store, NULL);
	return o.is_ours && !o.n_others ? TW_OK : take(c, &o, err);
}
