#include "server/catalogue/storage/small_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/base/file/io.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/storage/blob.h"

static enum tw_status write_content(struct tw_str content, int *ret_fd, struct tw_err *err)
{
	const int fd = memfd_create("small_file", MFD_CLOEXEC);

	if (fd >= 0 && tw_write_all(fd, content.ptr, content.len) && lseek(fd, 0, SEEK_SET) == 0) {
		*ret_fd = fd;
		return TW_OK;
	}
	(void)tw_fail_errno(err, TW_IO, "a small file cannot be opened");
	if (fd >= 0)
		(void)close(fd);
	return TW_IO;
}

/* Equal uploads have a row each, of which any is read. */
#define UPLOAD(column) /* part_by_content, primary key */                                          \
	"SELECT " column " FROM part p JOIN small_file f USING(trace_id,part)"                     \
	" WHERE p.sha256=? LIMIT 1"
#define DECODED(column) /* primary key */                                                          \
	"SELECT " column " FROM small_file WHERE trace_id=? AND part='" TW_SMALL_DECODED "'"

static enum tw_status get(
        void *arg, const char *sha256, const char *trace_id, int *ret_fd, struct tw_err *err)
{
	struct tw_catalogue *c = arg;
	struct tw_cat_query q;
	struct tw_db *db = NULL;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st == TW_OK)
		st = tw_cat_query(&q, db, err, sha256 ? UPLOAD("f.content") : DECODED("content"),
		        "t", sha256 ? sha256 : trace_id);
	if (st == TW_OK) {
		st = tw_cat_row(&q) ? write_content(tw_cat_blob(&q, 0), ret_fd, err) : TW_NOT_FOUND;
		st = tw_cat_close_after(&q, st, err);
	}
	tw_cat_done(c, db);
	return st;
}

static enum tw_status size(
        void *arg, const char *sha256, const char *trace_id, uint64_t *ret, struct tw_err *err)
{
	int64_t bytes = -1;
	enum tw_status st = tw_cat_read_int(arg, &bytes, err,
	        sha256 ? UPLOAD("octet_length(f.content)") : DECODED("octet_length(content)"), "t",
	        sha256 ? sha256 : trace_id);

	if (st == TW_OK && bytes < 0)
		st = TW_NOT_FOUND;
	if (st == TW_OK)
		*ret = (uint64_t)bytes;
	return st;
}

/* Rows that other servers add later are still found, after a request to the store. */
void tw_small_files_use(struct tw_blobs *b, struct tw_catalogue *c, uint64_t most_bytes)
{
	int64_t any = 1;

	if (!tw_blobs_remote(b) || tw_cat_is_sqlite(c))
		return;
	if (most_bytes == 0)
		(void)tw_cat_read_int(c, &any, NULL,
		        "SELECT count(*) FROM (SELECT 1 FROM small_file LIMIT 1) s", "");
	tw_blobs_use_rows(b, &(struct tw_blob_rows){get, size, c, most_bytes, any == 0});
}

enum tw_status tw_cat_small_drop(
        struct tw_db *w, const char *trace_id, unsigned which, unsigned *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st;

	*ret = 0;
	if (!w->adds_drops || !w->engine->is_shared)
		return TW_OK;
	st = tw_cat_query(&q, w, err, /* primary key */
	        "DELETE FROM small_file WHERE trace_id=?1 AND (?2&CASE part WHEN '" TW_SMALL_DECODED
	        "' THEN 2 WHEN 'system' THEN 4 ELSE 1 END)<>0 RETURNING part",
	        "ti", trace_id, (int64_t)which);
	while (tw_cat_row(&q))
		*ret |= strcmp(tw_cat_str(&q, 0), TW_SMALL_DECODED) == 0 ? TW_CAT_SMALL_DECODED
		                                                         : TW_CAT_SMALL_UPLOAD;
	return tw_cat_close_after(&q, st, err);
}
