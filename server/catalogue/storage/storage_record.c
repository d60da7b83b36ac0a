#include "server/catalogue/storage/storage_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/config.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

enum { PATH_BYTES = 1500, CHECKED_MOST = 5, ROWS_MOST = 200, LINE_BYTES = 1100 };

static void path_of(const char *data_dir, char out[PATH_BYTES])
{
	(void)snprintf(out, PATH_BYTES, "%s/storage", data_dir);
}

bool tw_storage_is_recorded(const char *data_dir)
{
	char path[PATH_BYTES];

	path_of(data_dir, path);
	return access(path, F_OK) == 0;
}

enum tw_status tw_storage_of(
        const char *data_dir, struct tw_arena *a, struct tw_storage *ret, struct tw_err *err)
{
	char path[PATH_BYTES];
	struct tw_config config = {.storage = {.blobs = ""}};
	enum tw_status st;

	path_of(data_dir, path);
	st = tw_settings_record_read(path, a, &config, err);
	*ret = config.storage;
	return st;
}

/* The text after "blobs = ", "" if the file does not exist. */
static enum tw_status read_blobs(const char *data_dir, char out[LINE_BYTES], struct tw_err *err)
{
	static const char name[] = "blobs = ";
	char path[PATH_BYTES];
	FILE *f;

	out[0] = '\0';
	path_of(data_dir, path);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? TW_OK
		                       : tw_fail_errno(err, TW_IO, "%.150s cannot be read", path);
	while (fgets(out, LINE_BYTES, f)) {
		out[strcspn(out, "\n")] = '\0';
		if (strncmp(out, name, sizeof name - 1) == 0) {
			memmove(out, out + sizeof name - 1, strlen(out + sizeof name - 1) + 1);
			break;
		}
		out[0] = '\0';
	}
	(void)fclose(f);
	return TW_OK;
}

enum tw_status tw_storage_check(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err)
{
	char recorded[LINE_BYTES];
	enum tw_status st = read_blobs(data_dir, recorded, err);

	if (st != TW_OK || !recorded[0] || strcmp(recorded, s->blobs) == 0)
		return st;
	return tw_fail(err, TW_CONFLICT,
	        "the files of this data folder are in %.60s: set --blobs=%.60s, or move them with "
	        "`tracewell migrate`",
	        recorded, recorded);
}

struct proof {
	struct tw_blobs *blobs;
	unsigned checked, found;
	unsigned rows; /* files that are rows of the catalogue, which prove nothing */
};

static enum tw_status stat_object(struct tw_blobs *b, const char *sha256, struct tw_err *err)
{
	struct tw_store_file f = {.bytes = 0};
	char key[TW_STORE_KEY];
	void *store;
	const struct tw_store_engine *e = tw_blobs_engine(b, &store);

	return tw_blob_key(sha256, key) ? e->stat_file(store, key, &f, err) : TW_NOT_FOUND;
}

static enum tw_status check_file(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	struct proof *p = arg;
	uint64_t bytes;
	enum tw_status st = stat_object(p->blobs, f->sha256, err);

	(void)a;
	if (st != TW_OK && st != TW_NOT_FOUND)
		return st;
	if (st == TW_NOT_FOUND && tw_blobs_have_rows(p->blobs) &&
	        tw_blob_stat(p->blobs, f->sha256, &bytes, NULL) == TW_OK)
		p->rows++;
	else
		p->checked++;
	p->found += st == TW_OK;
	return p->found || p->checked == CHECKED_MOST || p->rows == ROWS_MOST
	               ? tw_fail(err, TW_PRECONDITION, "enough was seen")
	               : TW_OK;
}

enum tw_status tw_storage_verify(
        struct tw_catalogue *c, struct tw_blobs *b, bool *ret_names, struct tw_err *err)
{
	struct proof p = {.blobs = b};
	enum tw_status st;

	if (!tw_blobs_remote(b))
		return TW_OK;
	st = tw_stored_each(c, tw_catalogue_stored_parts, check_file, &p, err);
	if (st != TW_OK && st != TW_PRECONDITION)
		return st;
	*ret_names = p.checked + p.rows > 0;
	if (p.found || !p.checked)
		return TW_OK;
	return tw_fail(err, TW_CONFLICT,
	        "none of the first %u uploads of the catalogue is in the store: check bucket and "
	        "prefix, or copy the folders blobs and traces there first",
	        p.checked);
}

enum tw_status tw_storage_record(
        const char *data_dir, const struct tw_storage *s, struct tw_err *err)
{
	const struct tw_setting_line lines[] = {{"blobs", s->blobs}, {"s3-endpoint", s->endpoint},
	        {"s3-region", s->region}, {"s3-ca-file", s->ca_file},
	        {"s3-credentials-file", s->credentials_file},
	        {"s3-virtual-host", s->virtual_host ? "true" : "false"}};
	char path[PATH_BYTES];

	path_of(data_dir, path);
	return tw_settings_record_write(path,
	        "written by tracewell: where the files of this folder are", lines,
	        sizeof lines / sizeof *lines, err);
}
