/*
 * resume_shared.c - resumable uploads with several servers: any server may continue any upload.
 *
 * Received bytes are a file of the storage and a row of the catalogue (catalogue_resumable.h)
 * before the response.  A piece is spooled locally while it is received; of a long one a part is
 * stored and counted every few seconds by separate threads, so that little is sent again if this
 * server dies.  A piece with a checksum counts completely or not at all.  The writer holds a lease
 * on the row for LEASE_MS, renewed while bytes arrive; it is lost when another server continues the
 * upload, and then adds nothing.  Calls are as in resume.h.  Thread: any, as there.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/base/thread/pool.h"
#include "server/base/ulid.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/ingest/tus/resume_clean.h"
#include "server/ingest/tus/resume_int.h"
#include "server/storage/blob_piece.h"

enum {
	LEASE_MS = 6000,
	RENEW_S = 2,
	QUIET_MS = 15000, /* without bytes from the client for this time, the hold is not renewed */
	THREADS = 8,
	PART_BYTES = 4 << 20, /* of a long piece, stored and counted while the rest arrives */
	PART_LEAST = 256 << 10,
	PARTS_WAITING = 4, /* if the store is slower than the client, parts get larger, not more */
	PART_MS = 3000,    /* a part of a slow upload ends after this time */
	ARENA = 32 << 10
};
_Static_assert(2 * RENEW_S * 1000 < LEASE_MS, "a hold outlives one renewal that fails");
_Static_assert(PART_LEAST <= PART_BYTES, "parts grow up to the largest");

struct tw_resume_shared {
	struct tw_resume_parts parts;
	struct tw_resume_limits limits;
	struct tw_pool *pool;
	struct tw_periodic *renewer;
	pthread_mutex_t lock; /* of the list and of the entries' members marked so */
	struct entry *all;
	size_t n;
	_Atomic uint64_t serial, begun, finished, ended;
};

struct part { /* of a piece, to be stored */
	struct part *next;
	struct tw_blob_writer *writer;
};

struct entry {                    /* an upload that a request of this server writes */
	struct tw_resume r;       /* must be first */
	struct tw_pool_task task; /* stores its parts */
	struct tw_resume_shared *s;
	struct tw_resumable_hold hold;
	struct tw_blob_writer
	        *now;      /* received bytes are written there; NULL: none since the last part */
	bool open, apart;  /* a piece is being received; it is verified before it is stored */
	uint64_t received; /* received bytes of the piece */
	int64_t since_ms;  /* begin of `now` */
	uint32_t pieces;   /* parts of the upload so far */
	/* guarded by the lock: */
	struct entry *next;
	struct part *first, **last;
	unsigned waiting;
	bool running, closing; /* task runs; released when the task ends */
	bool held, is_working; /* according to the last renewal; waiting for something other than
	                          bytes */
	int64_t received_ms;
	uint64_t arrived; /* bytes counted in the catalogue */
	enum tw_status failed;
	struct tw_err why;
	pthread_cond_t idle;
};

static struct entry *entry_of(struct tw_resume *r)
{
	return (struct entry *)(void *)r;
}

static int64_t keep_ms(const struct tw_resume_shared *s)
{
	return (int64_t)s->limits.keep_s * 1000;
}

/* --- creating, and state --- */

enum tw_status tw_resume_shared_new(
        struct tw_resume_shared *s, struct tw_resume *r, struct tw_err *err)
{
	const struct tw_resumable_limits limits = {s->limits.count, s->limits.bytes, keep_ms(s)};
	struct tw_resumable u = {.bytes = r->length, .metadata = r->metadata};
	enum tw_status st = tw_blobs_ready(s->parts.blobs, err);

	memcpy(u.id, r->id, sizeof u.id);
	memcpy(u.project_id, r->project_id, sizeof u.project_id);
	memcpy(u.key_id, r->key_id, sizeof u.key_id);
	(void)snprintf(u.key, sizeof u.key, "%s", r->key);
	if (st == TW_OK)
		st = tw_catalogue_resumable_add(s->parts.catalogue, &u, &limits, err);
	if (st == TW_OK)
		(void)atomic_fetch_add(&s->begun, 1);
	return st;
}

/* Copies all members except the metadata. */
static void fill(const struct tw_resumable *from, struct tw_resume *to)
{
	memcpy(to->id, from->id, sizeof to->id);
	memcpy(to->project_id, from->project_id, sizeof to->project_id);
	memcpy(to->key_id, from->key_id, sizeof to->key_id);
	memcpy(to->trace_id, from->trace_id, sizeof to->trace_id);
	(void)snprintf(to->key, sizeof to->key, "%s", from->key);
	to->length = from->bytes;
	to->offset = from->arrived;
	to->expires_ms = from->expires_ms;
}

enum tw_status tw_resume_shared_progress_of(struct tw_resume_shared *s, const char *project_id,
        const char *id, struct tw_resume *ret, struct tw_arena *a, struct tw_err *err)
{
	struct tw_resumable u = {.bytes = 0};
	enum tw_status st =
	        tw_catalogue_resumable_get(s->parts.catalogue, project_id, id, a, &u, err);

	if (st != TW_OK)
		return st;
	fill(&u, ret);
	ret->metadata = tw_arena_str(a, tw_str_of(u.metadata));
	return ret->metadata ? TW_OK : tw_oom(err);
}

/* --- acquiring --- */

static struct entry *free_entry(struct entry *e)
{
	(void)pthread_cond_destroy(&e->idle);
	tw_mem_free(e->r.metadata);
	tw_mem_free(e);
	return NULL;
}

static void run(struct tw_pool_task *task, bool stopping);

static struct entry *new_entry(struct tw_resume_shared *s, const char *project_id, const char *id)
{
	struct entry *e = tw_mem_zalloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->s = s;
	e->task.run = run;
	e->last = &e->first;
	(void)pthread_cond_init(&e->idle, NULL);
	(void)snprintf(e->hold.project_id, sizeof e->hold.project_id, "%s", project_id);
	(void)snprintf(e->hold.id, sizeof e->hold.id, "%s", id);
	(void)snprintf(e->hold.owner, sizeof e->hold.owner, "%s-%" PRIu64, s->parts.node,
	        atomic_fetch_add(&s->serial, 1));
	return e;
}

static enum tw_status acquire(
        struct tw_resume_shared *s, struct entry *e, struct tw_arena *a, struct tw_err *err)
{
	struct tw_resumable u = {.bytes = 0};
	enum tw_status st =
	        tw_catalogue_resumable_hold(s->parts.catalogue, &e->hold, LEASE_MS, a, &u, err);

	if (st != TW_OK)
		return st;
	fill(&u, &e->r);
	e->pieces = u.pieces;
	e->arrived = u.arrived;
	e->held = true;
	e->received_ms = tw_monotonic_ms();
	e->r.metadata = tw_mem_alloc(strlen(u.metadata) + 1, 1);
	if (!e->r.metadata) {
		(void)tw_catalogue_resumable_release(s->parts.catalogue, &e->hold, NULL);
		return tw_oom(err);
	}
	memcpy(e->r.metadata, u.metadata, strlen(u.metadata) + 1);
	return TW_OK;
}

enum tw_status tw_resume_shared_acquire(struct tw_resume_shared *s, const char *project_id,
        const char *id, struct tw_resume **ret, struct tw_err *err)
{
	struct tw_arena *a;
	struct entry *e;
	enum tw_status st;

	if (!tw_ulid_valid(id))
		return tw_fail(err, TW_NOT_FOUND, "no such upload");
	e = new_entry(s, project_id, id);
	if (!e)
		return tw_oom(err);
	a = tw_arena_new(ARENA);
	st = a ? acquire(s, e, a, err) : tw_oom(err);
	(void)tw_arena_free(a);
	if (st != TW_OK) {
		(void)free_entry(e);
		return st;
	}
	(void)pthread_mutex_lock(&s->lock);
	e->next = s->all;
	s->all = e;
	s->n++;
	(void)pthread_mutex_unlock(&s->lock);
	*ret = &e->r;
	return TW_OK;
}

/* Call once neither a request nor a task uses the entry. */
static void release_entry(struct entry *e)
{
	struct tw_resume_shared *s = e->s;
	struct entry **at;

	(void)pthread_mutex_lock(&s->lock);
	for (at = &s->all; *at && *at != e;)
		at = &(*at)->next;
	if (*at)
		*at = e->next;
	s->n--;
	(void)pthread_mutex_unlock(&s->lock);
	if (e->held && tw_catalogue_resumable_release(s->parts.catalogue, &e->hold, NULL) != TW_OK)
		tw_log(TW_LOG_INFO, "upload_not_released", tw_log_text("upload", e->r.id));
	(void)free_entry(e);
}

void tw_resume_shared_release(struct tw_resume *r)
{
	struct entry *e = entry_of(r);
	bool later;

	(void)pthread_mutex_lock(&e->s->lock);
	later = e->running;
	e->closing = later;
	(void)pthread_mutex_unlock(&e->s->lock);
	if (!later)
		release_entry(e);
}

/* --- parts of a piece --- */

/* Stores a part and counts it in the catalogue. `last`: also releases the hold, unless the upload
 * is complete. */
static enum tw_status put_part(
        struct entry *e, struct tw_blob_writer *w, bool last, struct tw_err *err)
{
	const struct tw_resume_shared *s = e->s;
	char object[TW_STORE_KEY], sha256[TW_SHA256_HEX];
	struct tw_resumable_piece p = {e->arrived, tw_blob_bytes(w), sha256, object};
	const bool ends = last && p.start + p.bytes < e->r.length;
	enum tw_status st = tw_piece_put(s->parts.blobs, w, e->r.id, object, sha256, err);

	tw_crash_point("piece_put");
	if (st != TW_OK)
		return st;
	st = tw_catalogue_resumable_append(
	        s->parts.catalogue, &e->hold, &p, ends ? 0 : LEASE_MS, keep_ms(s), err);
	tw_crash_point("piece_counted");
	if (st == TW_LOCKED) /* after other errors it may have been counted; the sweep decides */
		(void)tw_piece_remove(s->parts.blobs, object, NULL);
	(void)pthread_mutex_lock(&e->s->lock);
	if (st == TW_OK)
		e->arrived += p.bytes;
	e->held = st == TW_OK ? !ends : st != TW_LOCKED;
	(void)pthread_mutex_unlock(&e->s->lock);
	return st;
}

static struct part *next_part(struct entry *e, bool *ret_failed, bool *ret_close)
{
	struct part *p;

	(void)pthread_mutex_lock(&e->s->lock);
	p = e->first;
	if (p) {
		e->first = p->next;
		e->waiting--;
		if (!e->first)
			e->last = &e->first;
	} else {
		e->running = false;
		(void)pthread_cond_broadcast(&e->idle);
	}
	*ret_failed = e->failed != TW_OK;
	*ret_close = !p && e->closing;
	(void)pthread_mutex_unlock(&e->s->lock);
	return p;
}

static void run(struct tw_pool_task *task, bool stopping)
{
	struct entry *e = (struct entry *)(void *)((char *)task - offsetof(struct entry, task));
	struct part *p;
	bool failed, close_it;

	while ((p = next_part(e, &failed, &close_it))) {
		struct tw_err why = {.msg = ""};
		enum tw_status st = TW_BUSY;

		if (failed || stopping)
			(void)tw_blob_discard(p->writer);
		else
			st = put_part(e, p->writer, false, &why);
		tw_mem_free(p);
		if (failed || st == TW_OK)
			continue;
		(void)pthread_mutex_lock(&e->s->lock);
		e->failed = st;
		e->why = why;
		(void)pthread_mutex_unlock(&e->s->lock);
	}
	if (close_it)
		release_entry(e);
}

/* Passes the current part to the pool; later bytes begin another part. */
static enum tw_status submit_part(struct entry *e, struct tw_err *err)
{
	struct part *p = tw_mem_zalloc(1, sizeof *p);
	bool begin;

	if (!p)
		return tw_oom(err);
	p->writer = e->now;
	e->now = NULL;
	e->pieces++;
	(void)pthread_mutex_lock(&e->s->lock);
	*e->last = p;
	e->last = &p->next;
	e->waiting++;
	begin = !e->running;
	e->running = true;
	(void)pthread_mutex_unlock(&e->s->lock);
	if (begin && !tw_pool_submit(e->s->pool, &e->task))
		run(&e->task, true);
	return TW_OK;
}

static enum tw_status failure(struct entry *e, struct tw_err *err)
{
	enum tw_status st;

	(void)pthread_mutex_lock(&e->s->lock);
	st = e->failed;
	if (st != TW_OK)
		tw_err_copy(err, &e->why);
	(void)pthread_mutex_unlock(&e->s->lock);
	return st;
}

/* --- pieces --- */

static enum tw_status begin_part(struct entry *e, struct tw_err *err)
{
	if (e->pieces >= TW_RESUMABLE_PIECES && e->r.offset < e->r.length)
		return tw_fail(err, TW_TOO_LARGE,
		        "this upload has %d pieces: start a new one with larger pieces",
		        TW_RESUMABLE_PIECES);
	e->since_ms = tw_monotonic_ms();
	return tw_blob_begin(e->s->parts.blobs, e->r.length, &e->now, err);
}

enum tw_status tw_resume_shared_begin_piece(struct tw_resume *r, bool apart, struct tw_err *err)
{
	struct entry *e = entry_of(r);

	e->apart = apart;
	e->received = 0;
	e->open = true;
	return begin_part(e, err);
}

static bool is_enough(const struct entry *e, bool too_many)
{
	const uint64_t n = tw_blob_bytes(e->now), space = e->r.length / (TW_RESUMABLE_PIECES / 2);
	/* large enough that the whole upload fits the limit of parts */
	const uint64_t least = space > PART_LEAST ? space : PART_LEAST;

	return !e->apart && !too_many &&
	       (n >= PART_BYTES + space ||
	               (n >= least && tw_monotonic_ms() - e->since_ms >= PART_MS));
}

enum tw_status tw_resume_shared_write(
        struct tw_resume *r, const void *p, size_t n, struct tw_err *err)
{
	struct entry *e = entry_of(r);
	enum tw_status st = failure(e, err);
	bool too_many;

	if (st != TW_OK)
		return st;
	if (n > r->length - r->offset - e->received)
		return tw_fail_at(err, TW_TOO_LARGE, r->length,
		        "the piece exceeds Upload-Length, %" PRIu64 " bytes", r->length);
	if (!e->now)
		st = begin_part(e, err);
	if (st == TW_OK)
		st = tw_blob_write(e->now, p, n, err);
	if (st != TW_OK)
		return st;
	e->received += n;
	(void)pthread_mutex_lock(&e->s->lock);
	e->received_ms = tw_monotonic_ms();
	too_many = e->waiting >= PARTS_WAITING;
	(void)pthread_mutex_unlock(&e->s->lock);
	tw_crash_point("piece_written");
	return is_enough(e, too_many) ? submit_part(e, err) : TW_OK;
}

static enum tw_status store_all(struct entry *e, struct tw_err *err)
{
	struct tw_blob_writer *w = e->now;
	enum tw_status st;

	(void)pthread_mutex_lock(&e->s->lock);
	e->is_working = true;
	while (e->running)
		(void)pthread_cond_wait(&e->idle, &e->s->lock);
	(void)pthread_mutex_unlock(&e->s->lock);
	st = failure(e, err);
	if (st == TW_OK && w && tw_blob_bytes(w)) {
		e->now = NULL;
		e->pieces++;
		st = put_part(e, w, true, err);
	}
	e->r.offset = e->arrived;
	if (st == TW_OK)
		e->r.expires_ms = tw_unix_ms() + keep_ms(e->s);
	return st;
}

/* Received bytes of an incomplete piece are stored too, in the background. */
enum tw_status tw_resume_shared_end_piece(struct tw_resume *r, bool keep, struct tw_err *err)
{
	struct entry *e = entry_of(r);
	enum tw_status st = TW_OK;

	if (!e->open)
		return TW_OK;
	e->open = false;
	if (keep)
		st = store_all(e, err);
	else if (!e->apart && e->now && tw_blob_bytes(e->now))
		st = submit_part(e, err);
	e->now = tw_blob_discard(e->now);
	return st;
}

/* --- assembling an upload ---
 *
 * Assembles an upload from its pieces. Reads them in order, 64 KiB at a time, and verifies each
 * against its SHA-256.
 */

enum { WHOLE_ARENA = 16 << 20 };

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
	                             "a piece of the upload was damaged in the store: start a new "
	                             "upload");
}

static enum tw_status append_piece(struct tw_blobs *b, const struct tw_resumable_piece *p,
        uint64_t at, int to, struct tw_err *err)
{
	int fd = -1;
	enum tw_status st;

	if (p->start != at)
		return tw_fail(err, TW_CORRUPT,
		        "the upload lacks bytes at %" PRIu64 ": begin a new one", at);
	st = open_piece(b, p, &fd, err);
	if (st == TW_NOT_FOUND)
		return tw_fail(
		        err, TW_BUSY, "a piece of the upload is missing: get the offset with HEAD");
	if (st != TW_OK)
		return st;
	st = append_file(fd, to, p->bytes, err);
	(void)close(fd);
	return st;
}

static enum tw_status append_all(const struct tw_resume_parts *p, const struct tw_resume *r,
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

static enum tw_status assemble(
        const struct tw_resume_parts *p, const struct tw_resume *r, int *ret_fd, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(WHOLE_ARENA);
	int fd = -1;
	enum tw_status st = a ? tw_piece_scratch(p->blobs, 0, &fd, err) : tw_oom(err);

	if (st == TW_OK)
		st = append_all(p, r, a, fd, err);
	(void)tw_arena_free(a);
	if (st == TW_OK)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return st;
}

/* --- complete uploads --- */

enum tw_status tw_resume_shared_assemble(struct tw_resume *r, int *ret_fd, struct tw_err *err)
{
	struct entry *e = entry_of(r);

	(void)pthread_mutex_lock(&e->s->lock);
	e->is_working = true; /* until it is released */
	(void)pthread_mutex_unlock(&e->s->lock);
	return assemble(&e->s->parts, r, ret_fd, err);
}

static void hold_ended(struct entry *e)
{
	(void)pthread_mutex_lock(&e->s->lock);
	e->held = false;
	(void)pthread_mutex_unlock(&e->s->lock);
	tw_resume_cleaner_wake(e->s->parts.cleaner);
}

enum tw_status tw_resume_shared_done(struct tw_resume *r, const char *trace_id, struct tw_err *err)
{
	struct entry *e = entry_of(r);
	enum tw_status st = tw_catalogue_resumable_done(
	        e->s->parts.catalogue, &e->hold, trace_id, keep_ms(e->s), err);

	if (st != TW_OK)
		return st;
	(void)snprintf(r->trace_id, sizeof r->trace_id, "%s", trace_id);
	r->expires_ms = tw_unix_ms() + keep_ms(e->s);
	(void)atomic_fetch_add(&e->s->finished, 1);
	hold_ended(e);
	return TW_OK;
}

enum tw_status tw_resume_shared_drop(struct tw_resume *r, struct tw_err *err)
{
	struct entry *e = entry_of(r);
	enum tw_status st = tw_catalogue_resumable_drop(e->s->parts.catalogue, &e->hold, err);

	if (st != TW_OK)
		return st;
	(void)atomic_fetch_add(&e->s->ended, !r->trace_id[0]);
	hold_ended(e);
	return TW_OK;
}

void tw_resume_shared_sums(struct tw_resume_shared *s, struct tw_resume_sums *ret)
{
	*ret = (struct tw_resume_sums){.begun = atomic_load(&s->begun),
	        .finished = atomic_load(&s->finished),
	        .expired = tw_resume_cleaner_expired(s->parts.cleaner),
	        .ended = atomic_load(&s->ended)};
	(void)tw_catalogue_resumables_open(s->parts.catalogue, &ret->open, &ret->bytes, NULL);
}

/* --- renewing holds --- */

/* Holds of entries that received bytes lately, or that this server is working on. */
static struct tw_resumable_hold *holds_to_renew(struct tw_resume_shared *s, size_t *ret_n)
{
	const int64_t since = tw_monotonic_ms() - QUIET_MS;
	struct tw_resumable_hold *holds;
	size_t n = 0;

	(void)pthread_mutex_lock(&s->lock);
	holds = s->n ? tw_mem_alloc(s->n, sizeof *holds) : NULL;
	for (const struct entry *e = s->all; holds && e; e = e->next)
		if (e->held && (e->is_working || e->running || e->received_ms >= since))
			holds[n++] = e->hold;
	(void)pthread_mutex_unlock(&s->lock);
	*ret_n = n;
	return holds;
}

static void renew(struct tw_periodic *p, void *arg)
{
	struct tw_resume_shared *s = arg;
	struct tw_err err = {.msg = ""};
	size_t n = 0;
	struct tw_resumable_hold *holds = holds_to_renew(s, &n);

	(void)p;
	if (n && tw_catalogue_resumables_renew(s->parts.catalogue, holds, n, LEASE_MS, &err) !=
	                 TW_OK)
		tw_log_err(TW_LOG_WARN, "uploads_not_renewed", s->parts.node, &err);
	tw_mem_free(holds);
}

/* --- start and stop --- */

enum tw_status tw_resume_shared_open(const struct tw_resume_parts *p,
        const struct tw_resume_limits *limits, struct tw_resume_shared **ret, struct tw_err *err)
{
	struct tw_resume_shared *s = tw_mem_zalloc(1, sizeof *s);
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	s->parts = *p;
	s->limits = *limits;
	(void)pthread_mutex_init(&s->lock, NULL);
	st = tw_pool_start(THREADS, &s->pool, err);
	if (st == TW_OK)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"uploads_lease", renew, RENEW_S * 1000}, s,
		        &s->renewer, err);
	if (st == TW_OK)
		*ret = s;
	else
		(void)tw_resume_shared_close(s);
	return st;
}

struct tw_resume_shared *tw_resume_shared_close(struct tw_resume_shared *s)
{
	if (!s)
		return NULL;
	s->pool = tw_pool_stop(s->pool);
	s->renewer = tw_periodic_stop(s->renewer);
	(void)pthread_mutex_destroy(&s->lock);
	tw_mem_free(s);
	return NULL;
}
