/*
 * resume_file.c - the files of resumable uploads.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/file/io.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/base/ulid.h"
#include "server/ingest/tus/resume_int.h"

enum { PATH_BYTES = 1500, ID = TW_ID_BYTES - 1 };

void tw_resume_path(
        const struct tw_blobs *b, const char *id, const char *suffix, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s/uploads/%s%s", tw_blobs_dir(b), id, suffix);
}

struct tw_resume_entry *tw_resume_free(struct tw_resume_entry *e)
{
	if (!e)
		return NULL;
	if (e->fd >= 0)
		(void)close(e->fd);
	tw_mem_free(e->r.metadata);
	tw_mem_free(e);
	return NULL;
}

void tw_resume_remove(struct tw_blobs *b, const char *id)
{
	static const char *const suffixes[] = {".json", ".part", ".watermark", ".new"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		tw_resume_path(b, id, suffixes[i], path, sizeof path);
		(void)unlink(path);
	}
}

/* --- writing an upload's state --- */

static enum tw_status sync_folder(const char *path, struct tw_err *err)
{
	return tw_sync_folder(path) ? TW_OK : tw_file_fail("sync", path, err);
}

enum tw_status tw_resume_sync_folder(const struct tw_blobs *b, struct tw_err *err)
{
	char path[PATH_BYTES];

	tw_resume_path(b, "", "", path, sizeof path);
	return sync_folder(path, err);
}

enum tw_status tw_resume_store(struct tw_blobs *b, const struct tw_resume *r, struct tw_err *err)
{
	char path[PATH_BYTES];
	json_t *o = json_pack("{ss ss sI sI ss ss ss}", "project_id", r->project_id, "key_id",
	        r->key_id, "length", (json_int_t)r->length, "expires_ms", (json_int_t)r->expires_ms,
	        "key", r->key, "metadata", r->metadata, "trace_id", r->trace_id);
	char *text = tw_json_dumps(o, JSON_COMPACT);
	enum tw_status st;

	tw_resume_path(b, r->id, ".json", path, sizeof path);
	st = text ? tw_file_replace(path, text, strlen(text), err) : tw_oom(err);
	json_decref(o);
	free(text); /* jansson's */
	return st == TW_OK ? tw_resume_sync_folder(b, err) : st;
}

/* --- reading an upload's state --- */

static bool copy_text(const json_t *o, const char *name, char *out, size_t cap)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text && snprintf(out, cap, "%s", text) < (int)cap;
}

static bool read_json(const json_t *o, struct tw_resume *r)
{
	const char *metadata = json_string_value(json_object_get(o, "metadata"));
	json_int_t length = json_integer_value(json_object_get(o, "length"));
	json_int_t expires = json_integer_value(json_object_get(o, "expires_ms"));
	size_t len = metadata ? strlen(metadata) + 1 : 0;

	if (!metadata || length <= 0 || expires <= 0 ||
	        !copy_text(o, "project_id", r->project_id, sizeof r->project_id) ||
	        !copy_text(o, "key_id", r->key_id, sizeof r->key_id) ||
	        !copy_text(o, "key", r->key, sizeof r->key) ||
	        !copy_text(o, "trace_id", r->trace_id, sizeof r->trace_id))
		return false;
	r->length = (uint64_t)length;
	r->expires_ms = (int64_t)expires;
	r->metadata = tw_mem_alloc(len, 1);
	if (r->metadata)
		memcpy(r->metadata, metadata, len);
	return r->metadata != NULL;
}

/* Truncates a part to its trusted bytes: after a power failure it may be longer. */
static bool truncate_untrusted(
        struct tw_blobs *b, struct tw_resume *r, const char *part, uint64_t size)
{
	bool of_this_boot;

	r->offset = tw_resume_trusted_bytes(b, r->id, size, &of_this_boot);
	if (r->offset == size)
		return of_this_boot || tw_resume_write_watermark(b, r->id, size, NULL) == TW_OK;
	tw_log(TW_LOG_WARN, "upload_truncated", tw_log_text("upload", r->id),
	        tw_log_number("from", (int64_t)size), tw_log_number("to", (int64_t)r->offset));
	return truncate(part, (off_t)r->offset) == 0 &&
	       tw_resume_write_watermark(b, r->id, r->offset, NULL) == TW_OK;
}

/* The offset is the size of the part file. */
static bool read_offset(struct tw_blobs *b, struct tw_resume_entry *e)
{
	struct tw_resume *r = &e->r;
	char path[PATH_BYTES];
	struct stat s;

	r->offset = r->trace_id[0] ? r->length : 0;
	tw_resume_path(b, r->id, ".part", path, sizeof path);
	if (r->trace_id[0] || stat(path, &s) != 0)
		return r->trace_id[0] || errno == ENOENT;
	e->touched_ms = (int64_t)s.st_mtim.tv_sec * 1000;
	return truncate_untrusted(b, r, path, (uint64_t)s.st_size) && r->offset <= r->length;
}

static struct tw_resume_entry *load(struct tw_blobs *b, const char *id)
{
	struct tw_resume_entry *e = tw_mem_zalloc(1, sizeof *e);
	char path[PATH_BYTES];
	json_t *o;
	bool fine;

	if (!e)
		return NULL;
	e->fd = -1;
	memcpy(e->r.id, id, ID);
	tw_resume_path(b, e->r.id, ".json", path, sizeof path);
	o = json_load_file(path, 0, NULL);
	fine = o && read_json(o, &e->r) && read_offset(b, e);
	json_decref(o);
	if (fine)
		return e;
	tw_log(TW_LOG_WARN, "upload_unreadable", tw_log_text("upload", e->r.id));
	return tw_resume_free(e);
}

static bool is_in(const struct tw_resume_entry *all, const char *name)
{
	for (; all; all = all->next)
		if (strncmp(all->r.id, name, ID) == 0)
			return strcmp(name + ID, ".json") == 0 ||
			       ((strcmp(name + ID, ".part") == 0 ||
			                strcmp(name + ID, ".watermark") == 0) &&
			               !all->r.trace_id[0]);
	return false;
}

static enum tw_status open_folder(struct tw_blobs *b, DIR **ret, struct tw_err *err)
{
	char path[PATH_BYTES];

	tw_resume_path(b, "", "", path, sizeof path);
	if (mkdir(path, 0700) == 0) {
		enum tw_status st = sync_folder(tw_blobs_dir(b), err);

		if (st != TW_OK)
			return st;
	} else if (errno != EEXIST) {
		return tw_file_fail("make", path, err);
	}
	*ret = opendir(path);
	return *ret ? TW_OK : tw_file_fail("read", path, err);
}

static bool is_upload(const char *name)
{
	char id[TW_ID_BYTES] = "";

	if (strlen(name) != ID + 5 || strcmp(name + ID, ".json") != 0)
		return false;
	memcpy(id, name, ID);
	return tw_ulid_valid(id);
}

enum tw_status tw_resume_load_all(
        struct tw_blobs *b, struct tw_resume_entry **ret, struct tw_err *err)
{
	struct tw_resume_entry *all = NULL;
	struct dirent *d;
	DIR *dir = NULL;
	enum tw_status st = open_folder(b, &dir, err);

	if (!dir)
		return st;
	while ((d = readdir(dir))) {
		struct tw_resume_entry *e = is_upload(d->d_name) ? load(b, d->d_name) : NULL;

		if (!e)
			continue;
		e->next = all;
		all = e;
	}
	rewinddir(dir);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && !is_in(all, d->d_name))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	(void)closedir(dir);
	*ret = all;
	return TW_OK;
}
