#include "server/ingest/tus/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/metric.h"
#include "server/base/ulid.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/ingest/tus/resume_int.h"

enum { PATH_BYTES = 1500, CHECK_EVERY_BYTES = 16 << 20 };

struct tw_resumes {
	struct tw_blobs *blobs;
	struct tw_resume_shared *shared; /* NULL: this server alone has the uploads, and the members
	                                    below are used */
	struct tw_resume_limits limits;
	pthread_mutex_t lock; /* of the members below, and of entries that are not busy */
	struct tw_resume_entry *all;
	uint64_t begun, finished, expired, ended;
};

static int64_t new_end(const struct tw_resumes *rs)
{
	return tw_unix_ms() + (int64_t)rs->limits.keep_s * 1000;
}

static enum tw_status fail_errno(const char *doing, struct tw_err *err)
{
	if (tw_is_disk_full(errno))
		return tw_fail(err, TW_FULL, "no space left for uploads");
	return tw_fail_errno(err, TW_IO, "an upload cannot be %s", doing);
}

enum tw_status tw_resumes_open(struct tw_blobs *blobs, const struct tw_resume_limits *limits,
        struct tw_resumes **ret, struct tw_err *err)
{
	struct tw_resumes *rs = tw_mem_zalloc(1, sizeof *rs);
	enum tw_status st;

	if (!rs)
		return tw_oom(err);
	rs->blobs = blobs;
	rs->limits = *limits;
	(void)pthread_mutex_init(&rs->lock, NULL);
	st = tw_resume_load_all(blobs, &rs->all, err);
	for (struct tw_resume_entry *e = rs->all; e; e = e->next)
		if (e->touched_ms + (int64_t)limits->keep_s * 1000 > e->r.expires_ms)
			e->r.expires_ms = e->touched_ms + (int64_t)limits->keep_s * 1000;
	if (st == TW_OK)
		*ret = rs;
	else
		(void)tw_resumes_close(rs);
	return st;
}

enum tw_status tw_resumes_open_shared(const struct tw_resume_parts *p,
        const struct tw_resume_limits *limits, struct tw_resumes **ret, struct tw_err *err)
{
	struct tw_resumes *rs = tw_mem_zalloc(1, sizeof *rs);
	enum tw_status st;

	if (!rs)
		return tw_oom(err);
	rs->blobs = p->blobs;
	rs->limits = *limits;
	(void)pthread_mutex_init(&rs->lock, NULL);
	st = tw_resume_shared_open(p, limits, &rs->shared, err);
	if (st == TW_OK)
		*ret = rs;
	else
		(void)tw_resumes_close(rs);
	return st;
}

struct tw_resumes *tw_resumes_close(struct tw_resumes *rs)
{
	if (!rs)
		return NULL;
	rs->shared = tw_resume_shared_close(rs->shared);
	while (rs->all) {
		struct tw_resume_entry *e = rs->all;

		rs->all = e->next;
		(void)tw_resume_free(e);
	}
	(void)pthread_mutex_destroy(&rs->lock);
	tw_mem_free(rs);
	return NULL;
}

/* Removes an upload from the list and the disk.  Call with the lock held. */
static void remove_upload(struct tw_resumes *rs, struct tw_resume_entry *e)
{
	struct tw_resume_entry **at = &rs->all;

	while (*at && *at != e)
		at = &(*at)->next;
	if (*at)
		*at = e->next;
	tw_resume_remove(rs->blobs, e->r.id);
	(void)tw_resume_free(e);
}

static void expire(struct tw_resumes *rs)
{
	int64_t now = tw_unix_ms();
	struct tw_resume_entry *next;

	for (struct tw_resume_entry *e = rs->all; e; e = next) {
		next = e->next;
		if (e->busy || e->r.expires_ms > now)
			continue;
		rs->expired += !e->r.trace_id[0];
		remove_upload(rs, e);
	}
}

/* The first project after io_id that has uploads; false: none. */
static bool next_project(struct tw_resumes *rs, char io_id[TW_ID_BYTES])
{
	const char *first = NULL;

	(void)pthread_mutex_lock(&rs->lock);
	for (const struct tw_resume_entry *e = rs->all; e; e = e->next)
		if (strcmp(e->r.project_id, io_id) > 0 &&
		        (!first || strcmp(e->r.project_id, first) < 0))
			first = e->r.project_id;
	if (first)
		memcpy(io_id, first, TW_ID_BYTES);
	(void)pthread_mutex_unlock(&rs->lock);
	return first != NULL;
}

/* Its keys are deleted: no request continues them. */
static void end_uploads_of(struct tw_resumes *rs, const char *project_id)
{
	(void)pthread_mutex_lock(&rs->lock);
	for (struct tw_resume_entry *e = rs->all; e; e = e->next)
		if (strcmp(e->r.project_id, project_id) == 0)
			e->r.expires_ms = 0;
	(void)pthread_mutex_unlock(&rs->lock);
}

void tw_resumes_expire(struct tw_resumes *rs, struct tw_catalogue *c)
{
	char id[TW_ID_BYTES] = "";
	bool exists;

	while (next_project(rs, id)) /* the lock is not held while the catalogue is read */
		if (tw_catalogue_project_exists(c, id, &exists, NULL) == TW_OK && !exists)
			end_uploads_of(rs, id);
	(void)pthread_mutex_lock(&rs->lock);
	expire(rs);
	(void)pthread_mutex_unlock(&rs->lock);
}

/* --- creating --- */

static enum tw_status check_limits(const struct tw_resumes *rs, const struct tw_caller *caller,
        uint64_t length, struct tw_err *err)
{
	unsigned count = 0;
	uint64_t bytes = 0;

	for (const struct tw_resume_entry *e = rs->all; e; e = e->next) {
		if (e->r.trace_id[0] || strcmp(e->r.key_id, caller->key_id) != 0 ||
		        strcmp(e->r.project_id, caller->project_id) != 0)
			continue;
		count++;
		bytes += e->r.length;
	}
	if (count >= rs->limits.count)
		return tw_fail(err, TW_RATE,
		        "%u uploads of this key are incomplete; complete or delete one first",
		        count);
	if (length > rs->limits.bytes || bytes > rs->limits.bytes - length)
		return tw_fail(err, TW_RATE,
		        "this key's unfinished uploads may have %" PRIu64
		        " bytes together; finish or delete one first",
		        rs->limits.bytes);
	return TW_OK;
}

static struct tw_resume_entry *new_entry(const struct tw_caller *caller, uint64_t length,
        const char *metadata, const char *key, struct tw_err *err)
{
	struct tw_resume_entry *e = tw_mem_zalloc(1, sizeof *e);
	size_t len = strlen(metadata) + 1;

	if (e) {
		e->fd = -1;
		e->r.metadata = tw_mem_alloc(len, 1);
	}
	if (!e || !e->r.metadata) {
		(void)tw_oom(err);
		return tw_resume_free(e);
	}
	tw_ulid_new(tw_unix_ms(), e->r.id);
	memcpy(e->r.metadata, metadata, len);
	memcpy(e->r.project_id, caller->project_id, sizeof e->r.project_id);
	memcpy(e->r.key_id, caller->key_id, sizeof e->r.key_id);
	(void)snprintf(
	        e->r.key, sizeof e->r.key, "%s%s", key[0] ? "" : "upload-", key[0] ? key : e->r.id);
	e->r.length = length;
	return e;
}

/* Adds the entry to the list before it is written to disk, so that limits count it. */
static enum tw_status add_entry(struct tw_resumes *rs, const struct tw_caller *caller,
        struct tw_resume_entry *e, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&rs->lock);
	expire(rs);
	st = check_limits(rs, caller, e->r.length, err);
	if (st == TW_OK) {
		e->busy = true;
		e->r.expires_ms = new_end(rs);
		e->next = rs->all;
		rs->all = e;
		rs->begun++;
	}
	(void)pthread_mutex_unlock(&rs->lock);
	return st;
}

enum tw_status tw_resume_new(struct tw_resumes *rs, const struct tw_caller *caller, uint64_t length,
        const char *metadata, const char *key, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_resume_entry *e;
	enum tw_status st = tw_blobs_check_space(rs->blobs, 0, err);

	if (st != TW_OK)
		return st;
	e = new_entry(caller, length, metadata, key, err);
	if (!e)
		return TW_NOMEM;
	if (rs->shared) {
		st = tw_resume_shared_new(rs->shared, &e->r, err);
		memcpy(ret_id, e->r.id, TW_ID_BYTES);
		(void)tw_resume_free(e);
		return st;
	}
	st = add_entry(rs, caller, e, err);
	if (st != TW_OK) {
		(void)tw_resume_free(e);
		return st;
	}
	st = tw_resume_store(rs->blobs, &e->r, err);
	memcpy(ret_id, e->r.id, TW_ID_BYTES);
	e->dropped = st != TW_OK;
	tw_resume_release(rs, &e->r);
	return st;
}

/* --- existing uploads --- */

static struct tw_resume_entry *find(struct tw_resumes *rs, const char *project_id, const char *id)
{
	for (struct tw_resume_entry *e = rs->all; e; e = e->next)
		if (strcmp(e->r.id, id) == 0 && strcmp(e->r.project_id, project_id) == 0)
			return e->dropped ? NULL : e;
	return NULL;
}

static enum tw_status not_found(struct tw_err *err)
{
	return tw_fail(err, TW_NOT_FOUND,
	        "no such upload: it was deleted, expired or never existed; start a new one");
}

enum tw_status tw_resume_progress_of(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume *ret, struct tw_arena *a, struct tw_err *err)
{
	const struct tw_resume_entry *e;
	enum tw_status st = TW_OK;

	if (rs->shared)
		return tw_resume_shared_progress_of(rs->shared, project_id, id, ret, a, err);
	(void)pthread_mutex_lock(&rs->lock);
	expire(rs);
	e = find(rs, project_id, id);
	if (e) {
		*ret = e->r;
		ret->metadata = tw_arena_str(a, tw_str_of(e->r.metadata));
	}
	(void)pthread_mutex_unlock(&rs->lock);
	if (!e)
		st = not_found(err);
	else if (!ret->metadata)
		st = tw_oom(err);
	return st;
}

enum tw_status tw_resume_acquire(struct tw_resumes *rs, const char *project_id, const char *id,
        struct tw_resume **ret, struct tw_err *err)
{
	struct tw_resume_entry *e;
	enum tw_status st = TW_OK;

	if (rs->shared)
		return tw_resume_shared_acquire(rs->shared, project_id, id, ret, err);
	(void)pthread_mutex_lock(&rs->lock);
	expire(rs);
	e = find(rs, project_id, id);
	if (!e)
		st = not_found(err);
	else if (e->busy)
		st = tw_fail(err, TW_LOCKED,
		        "another request is writing this upload; retry in a moment");
	else
		e->busy = true;
	(void)pthread_mutex_unlock(&rs->lock);
	if (st == TW_OK)
		*ret = &e->r;
	return st;
}

static struct tw_resume_entry *entry_of(struct tw_resume *r)
{
	return (struct tw_resume_entry *)(void *)r;
}

void tw_resume_release(struct tw_resumes *rs, struct tw_resume *r)
{
	struct tw_resume_entry *e = entry_of(r);

	if (rs->shared) {
		tw_resume_shared_release(r);
		return;
	}
	(void)pthread_mutex_lock(&rs->lock);
	e->busy = false;
	if (e->dropped)
		remove_upload(rs, e);
	(void)pthread_mutex_unlock(&rs->lock);
}

enum tw_status tw_resume_drop(struct tw_resumes *rs, struct tw_resume *r, struct tw_err *err)
{
	if (rs->shared)
		return tw_resume_shared_drop(r, err);
	(void)pthread_mutex_lock(&rs->lock);
	rs->ended += !r->trace_id[0];
	entry_of(r)->dropped = true;
	(void)pthread_mutex_unlock(&rs->lock);
	return TW_OK;
}

/* --- pieces --- */

/* Makes the names of the part file and its watermark durable. */
static enum tw_status begin_part(
        struct tw_resumes *rs, const struct tw_resume *r, struct tw_err *err)
{
	enum tw_status st = tw_resume_write_watermark(rs->blobs, r->id, 0, err);

	return st == TW_OK ? tw_resume_sync_folder(rs->blobs, err) : st;
}

enum tw_status tw_resume_begin_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool apart, struct tw_err *err)
{
	struct tw_resume_entry *e = entry_of(r);
	char path[PATH_BYTES];
	enum tw_status st = tw_blobs_check_space(rs->blobs, 0, err);

	if (st != TW_OK)
		return st;
	if (rs->shared)
		return tw_resume_shared_begin_piece(r, apart, err);
	tw_resume_path(rs->blobs, r->id, apart ? ".new" : ".part", path, sizeof path);
	e->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (apart ? O_TRUNC : 0), 0600);
	if (e->fd < 0)
		return fail_errno("opened", err);
	e->apart = apart;
	e->pending = 0;
	e->checked = r->offset;
	if (!apart && r->offset == 0)
		st = begin_part(rs, r, err);
	if (st != TW_OK) {
		(void)close(e->fd);
		e->fd = -1;
	}
	return st;
}

/* Syncs the received bytes, then records them in the watermark. */
static enum tw_status sync_part(
        struct tw_resumes *rs, const struct tw_resume *r, int fd, struct tw_err *err)
{
	if (fsync(fd) != 0)
		return fail_errno("synced", err);
	return tw_resume_write_watermark(rs->blobs, r->id, r->offset, err);
}

enum tw_status tw_resume_write(
        struct tw_resumes *rs, struct tw_resume *r, const void *p, size_t n, struct tw_err *err)
{
	struct tw_resume_entry *e = entry_of(r);
	uint64_t at;
	enum tw_status st = TW_OK;
	size_t done;

	if (rs->shared)
		return tw_resume_shared_write(r, p, n, err);
	at = r->offset + e->pending;
	if (n > r->length - at)
		return tw_fail_at(err, TW_TOO_LARGE, r->length,
		        "the piece exceeds Upload-Length, %" PRIu64 " bytes", r->length);
	if (at + n - e->checked > CHECK_EVERY_BYTES) {
		e->checked = at + n;
		st = tw_blobs_check_space(rs->blobs, 0, err);
		if (st == TW_OK && !e->apart) /* bounds the bytes that a power failure loses */
			st = sync_part(rs, r, e->fd, err);
	}
	if (st != TW_OK)
		return st;
	st = tw_write_counted(e->fd, p, n, &done) ? TW_OK : fail_errno("written", err);
	if (e->apart) {
		e->pending += done;
	} else {
		(void)pthread_mutex_lock(&rs->lock);
		r->offset += done;
		r->expires_ms = new_end(rs);
		(void)pthread_mutex_unlock(&rs->lock);
	}
	tw_crash_point("piece_written");
	return st;
}

/* Appends the verified piece to the part file. If the server is killed meanwhile, the part ends
 * with a prefix of the piece, which is valid. */
static enum tw_status append(
        struct tw_resumes *rs, struct tw_resume *r, int from, struct tw_err *err)
{
	struct tw_resume_entry *e = entry_of(r);
	uint8_t bytes[65536];
	enum tw_status st = tw_resume_begin_piece(rs, r, false, err);
	off_t at = 0;
	ssize_t n = 0;

	while (st == TW_OK && (n = tw_pread_full(from, bytes, sizeof bytes, (uint64_t)at)) > 0) {
		st = tw_resume_write(rs, r, bytes, (size_t)n, err);
		at += n;
	}
	if (st == TW_OK && n < 0)
		st = fail_errno("read", err);
	return st == TW_OK ? sync_part(rs, r, e->fd, err) : st;
}

enum tw_status tw_resume_end_piece(
        struct tw_resumes *rs, struct tw_resume *r, bool keep, struct tw_err *err)
{
	struct tw_resume_entry *e = entry_of(r);
	char path[PATH_BYTES];
	enum tw_status st = TW_OK;
	int fd;

	if (rs->shared)
		return tw_resume_shared_end_piece(r, keep, err);
	fd = e->fd;
	if (fd < 0)
		return TW_OK;
	e->fd = -1;
	if (e->apart && keep)
		st = append(rs, r, fd, err);
	else if (keep)
		st = sync_part(rs, r, fd, err);
	if (e->fd >= 0)
		(void)close(e->fd);
	e->fd = -1;
	(void)close(fd);
	tw_resume_path(rs->blobs, r->id, ".new", path, sizeof path);
	(void)unlink(path);
	e->apart = false;
	e->pending = 0;
	return st;
}

/* --- complete uploads --- */

enum tw_status tw_resume_open(
        struct tw_resumes *rs, struct tw_resume *r, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES];

	if (rs->shared)
		return tw_resume_shared_assemble(r, ret_fd, err);
	tw_resume_path(rs->blobs, r->id, ".part", path, sizeof path);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd >= 0 ? TW_OK : fail_errno("opened", err);
}

enum tw_status tw_resume_done(
        struct tw_resumes *rs, struct tw_resume *r, const char *trace_id, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	if (rs->shared)
		return tw_resume_shared_done(r, trace_id, err);
	(void)pthread_mutex_lock(&rs->lock);
	memcpy(r->trace_id, trace_id, sizeof r->trace_id);
	r->expires_ms = new_end(rs);
	rs->finished++;
	(void)pthread_mutex_unlock(&rs->lock);
	st = tw_resume_store(rs->blobs, r, err);
	if (st != TW_OK)
		return st;
	tw_resume_path(rs->blobs, r->id, ".part", path, sizeof path);
	(void)unlink(path);
	tw_resume_path(rs->blobs, r->id, ".watermark", path, sizeof path);
	(void)unlink(path);
	return TW_OK;
}

static void count_own(struct tw_resumes *rs, struct tw_resume_sums *ret)
{
	(void)pthread_mutex_lock(&rs->lock);
	expire(rs);
	*ret = (struct tw_resume_sums){.begun = rs->begun,
	        .finished = rs->finished,
	        .expired = rs->expired,
	        .ended = rs->ended};
	for (const struct tw_resume_entry *e = rs->all; e; e = e->next)
		if (!e->r.trace_id[0]) {
			ret->open++;
			ret->bytes += e->r.offset;
		}
	(void)pthread_mutex_unlock(&rs->lock);
}

void tw_resumes_metrics(struct tw_resumes *rs, struct tw_buf *out)
{
	struct tw_resume_sums n;

	if (rs->shared)
		tw_resume_shared_sums(rs->shared, &n);
	else
		count_own(rs, &n);
	tw_metric(out, "tracewell_resumable_open", n.open);
	tw_metric(out, "tracewell_resumable_bytes", n.bytes);
	tw_metric(out, "tracewell_resumable_total{step=\"begun\"}", n.begun);
	tw_metric(out, "tracewell_resumable_total{step=\"finished\"}", n.finished);
	tw_metric(out, "tracewell_resumable_total{step=\"expired\"}", n.expired);
	tw_metric(out, "tracewell_resumable_total{step=\"deleted\"}", n.ended);
}

/* --- headers --- */

/* The bytes of standard base64 as text in the arena. */
static const char *decode_base64(
        struct tw_arena *a, struct tw_str in, size_t *ret_len, struct tw_err *err)
{
	const gnutls_datum_t from = {(unsigned char *)(uintptr_t)in.ptr, (unsigned)in.len};
	gnutls_datum_t to = {0};
	char *text;

	*ret_len = 0;
	if (in.len == 0)
		return "";
	if (gnutls_base64_decode2(&from, &to) != 0) {
		(void)tw_fail(err, TW_BAD_REQUEST,
		        "values of Upload-Metadata and Upload-Checksum must be base64");
		return NULL;
	}
	text = tw_arena_str(a, (struct tw_str){(const char *)to.data, to.size});
	*ret_len = to.size;
	gnutls_free(to.data);
	if (!text)
		(void)tw_oom(err);
	return text;
}

/* Metadata that tus clients add by themselves; traces have no file name. */
static bool is_of_file(const char *name)
{
	static const char *const names[] = {"filename", "filetype", "name", "type", "relativePath"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* *ret_taken: whether the pair is metadata of ours. */
static enum tw_status read_pair(struct tw_arena *a, struct tw_str one, struct tw_ingest_pair *pair,
        bool *ret_taken, struct tw_err *err)
{
	struct tw_str rest = one;
	struct tw_str name = tw_str_split(&rest, ' ');
	size_t len;

	pair->name = tw_arena_str(a, name);
	if (!pair->name)
		return tw_oom(err);
	if (is_of_file(pair->name))
		return TW_OK;
	pair->value = decode_base64(a, tw_str_trim(rest), &len, err);
	if (!pair->value)
		return err->code;
	if (strlen(pair->value) != len)
		return tw_fail(
		        err, TW_BAD_REQUEST, "Upload-Metadata: %.64s contains NUL", pair->name);
	*ret_taken = true;
	return TW_OK;
}

enum tw_status tw_resume_read_metadata(struct tw_arena *a, const char *text,
        struct tw_ingest_pair pairs[TW_RESUME_PAIRS], size_t *ret_n, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (rest.len && st == TW_OK) {
		struct tw_str one = tw_str_trim(tw_str_split(&rest, ','));
		bool taken = false;

		if (n == TW_RESUME_PAIRS)
			return tw_fail(err, TW_BAD_REQUEST,
			        "Upload-Metadata has more than %d pairs", TW_RESUME_PAIRS);
		if (one.len)
			st = read_pair(a, one, &pairs[n], &taken, err);
		n += taken;
	}
	if (st == TW_OK)
		*ret_n = n;
	return st;
}

enum tw_status tw_resume_read_sum(
        struct tw_arena *a, const char *text, struct tw_resume_sum *ret, struct tw_err *err)
{
	struct tw_str rest = tw_str_of(text);
	struct tw_str name = tw_str_split(&rest, ' ');
	bool sha1 = name.len == 4 && memcmp(name.ptr, "sha1", 4) == 0;
	bool sha256 = name.len == 6 && memcmp(name.ptr, "sha256", 6) == 0;
	const char *bytes;
	size_t len;

	if (!sha1 && !sha256)
		return tw_fail(
		        err, TW_BAD_REQUEST, "Upload-Checksum may be sha1 or sha256, and base64");
	bytes = decode_base64(a, tw_str_trim(rest), &len, err);
	if (!bytes)
		return err->code;
	if (len != (sha1 ? 20u : 32u))
		return tw_fail(err, TW_BAD_REQUEST, "Upload-Checksum has the wrong length");
	*ret = (struct tw_resume_sum){.sha1 = sha1, .len = len};
	memcpy(ret->bytes, bytes, len);
	return TW_OK;
}
