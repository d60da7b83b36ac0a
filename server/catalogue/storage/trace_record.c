#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_build.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "decoder/base/hash.h"
#include "server/base/clock.h"
#include "server/base/file/io.h"
#include "server/base/file/sha256.h"
#include "server/base/log.h"
#include "server/base/text/json.h"
#include "server/base/thread/periodic.h"
#include "server/base/thread/pool.h"
#include "server/base/ulid.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/traces/catalogue_record.h"

enum {
	PATH_BYTES = 1500,
	STRIPES = 64,
	THREADS = 2,
	THREADS_REMOTE = 6,
	PENDING_MAX = 16384,
	DELAY_MS = 10000, /* most traces are decoded by then */
	DELAY_STEP_MS = 500,
	DELAY_LISTS = 256,
	AGAIN_FIRST_MS = 1000,
	AGAIN_MOST_MS = 3600 * 1000,
	BUILD_BYTES = 1024
};

#define LISTED_BYTES ((size_t)1 << 30)

/* An id ends with one of these, a hash begins with one. */
#define FOLDERS "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdef"

struct tw_recorder {
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	struct tw_record_reader *rows;
	struct tw_pool *pool;
	_Atomic bool stopping, completing;
	struct tw_pool_task complete;
	/* Missing records could not be written: when the next attempt starts, monotonic, 0: never;
	 * and the wait before it. */
	_Atomic int64_t again_ms;
	int64_t wait_ms;
	_Atomic unsigned pending;
	pthread_mutex_t stripes[STRIPES]; /* by key, from reading its rows to writing the file */
	pthread_mutex_t delayed_lock;
	/* First records of traces by their ids, oldest first. */
	struct delayed {
		struct later *first, **end;
	} delayed[DELAY_LISTS];
	struct tw_periodic *delay;
};

/* --- names --- */

void tw_record_key(const char *id, char out[TW_STORE_KEY])
{
	(void)snprintf(out, TW_STORE_KEY, "records/%.1s/%.26s", id + TW_ID_CHARS - 1, id);
}

void tw_record_build_key(const char *project_id, const char *build_id, char out[TW_STORE_KEY])
{
	char text[BUILD_BYTES], hex[TW_SHA256_HEX];
	uint8_t hash[32];

	(void)snprintf(text, sizeof text, "%s %s", project_id, build_id);
	tw_sha256_bytes(tw_str_of(text), hash);
	tw_sha256_hex(hash, hex);
	(void)snprintf(out, TW_STORE_KEY, "records/%.1s/%.64s", hex, hex);
}

bool tw_record_is_of_trace(const char *key)
{
	return strncmp(key, "records/", 8) == 0 && strlen(strrchr(key, '/') + 1) == TW_ID_CHARS;
}

static pthread_mutex_t *stripe_of(struct tw_recorder *r, const char *key)
{
	uint32_t h = 5381;

	while (*key)
		h = h * 33 + (uint8_t)*key++;
	return &r->stripes[h % STRIPES];
}

/* --- writing --- */

static enum tw_status fail_errno(const char *path, struct tw_err *err)
{
	return tw_fail_errno(err, tw_disk_status(errno), "%.150s cannot be written", path);
}

static enum tw_status write_text(int fd, const struct tw_buf *text, struct tw_err *err)
{
	return tw_write_all(fd, text->data, text->len) ? TW_OK : fail_errno("a record", err);
}

static enum tw_status put_in_store(
        struct tw_blobs *b, const char *key, const struct tw_buf *text, struct tw_err *err)
{
	char sha256[TW_SHA256_HEX];
	uint8_t hash[32];
	struct tw_store_put p = {.key = key,
	        .sha256 = sha256,
	        .bytes = text->len,
	        .path = "",
	        .fd = memfd_create("record", MFD_CLOEXEC),
	        .replaces = true};
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	enum tw_status st = p.fd < 0 ? fail_errno("a record", err) : write_text(p.fd, text, err);

	tw_sha256_bytes(tw_buf_str(text), hash);
	tw_sha256_hex(hash, sha256);
	if (st == TW_OK) {
		st = engine->put(store, &p, err);
		if (st == TW_OK)
			st = engine->wait(store, &p, err);
		engine->end(store, &p);
	}
	if (p.fd >= 0)
		(void)close(p.fd);
	return st;
}

/* Written in place by one call: a record that a crash left empty is written again at the next
 * start. */
static enum tw_status put_in_folder(
        struct tw_blobs *b, const char *key, const struct tw_buf *text, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s", tw_blobs_dir(b), key);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	st = fd < 0 ? fail_errno(path, err) : write_text(fd, text, err);
	if (fd >= 0)
		(void)close(fd);
	return st;
}

static enum tw_status put(
        struct tw_recorder *r, const char *key, const struct tw_buf *text, struct tw_err *err)
{
	return tw_blobs_remote(r->blobs) ? put_in_store(r->blobs, key, text, err)
	                                 : put_in_folder(r->blobs, key, text, err);
}

/* build_id "": the record of the trace. */
static enum tw_status record(struct tw_recorder *r, const char *project_id, const char *trace_id,
        const char *build_id, bool waits, struct tw_err *err)
{
	char key[TW_STORE_KEY];
	struct tw_buf text;
	enum tw_status st;

	if (build_id[0])
		tw_record_build_key(project_id, build_id, key);
	else
		tw_record_key(trace_id, key);
	tw_buf_init(&text, TW_RECORD_BYTES);
	(void)pthread_mutex_lock(stripe_of(r, key));
	st = build_id[0] ? tw_record_of_build(r->rows, project_id, build_id, &text, err)
	                 : tw_record_of_trace(r->rows, project_id, trace_id, waits, &text, err);
	if (st == TW_OK)
		st = put(r, key, &text, err);
	(void)pthread_mutex_unlock(stripe_of(r, key));
	tw_buf_done(&text);
	return st == TW_NOT_FOUND ? TW_OK : st; /* deleted since */
}

static void record_or_log(struct tw_recorder *r, const char *project_id, const char *trace_id,
        const char *build_id, bool waits)
{
	struct tw_err err;

	if (record(r, project_id, trace_id, build_id, waits, &err) != TW_OK)
		tw_log_err(
		        TW_LOG_WARN, "record_not_written", build_id[0] ? build_id : trace_id, &err);
}

/* --- queue --- */

struct later {
	struct tw_pool_task task; /* first member: the pool passes it to run */
	struct later *next;       /* delayed */
	int64_t since_ms;
	struct tw_recorder *recorder;
	char project_id[TW_ID_BYTES], trace_id[TW_ID_BYTES];
	bool waits;
	char build_id[];
};

static void free_later(struct later *l)
{
	(void)atomic_fetch_sub(&l->recorder->pending, 1);
	tw_mem_free(l);
}

static void run_later(struct tw_pool_task *task, bool stopping)
{
	struct later *l = (struct later *)(void *)task;

	(void)stopping;
	record_or_log(l->recorder, l->project_id, l->trace_id, l->build_id, l->waits);
	free_later(l);
}

/* NULL: too many are pending, or out of memory. */
static struct later *make_later(struct tw_recorder *r, const char *project_id, const char *trace_id,
        const char *build_id, bool waits)
{
	const size_t len = strlen(build_id);
	struct later *l = atomic_load(&r->pending) < PENDING_MAX
	                          ? tw_mem_zalloc(1, sizeof *l + len + 1)
	                          : NULL;

	if (!l)
		return NULL;
	l->task.run = run_later;
	l->recorder = r;
	l->waits = waits;
	(void)snprintf(l->project_id, sizeof l->project_id, "%s", project_id);
	(void)snprintf(l->trace_id, sizeof l->trace_id, "%s", trace_id);
	memcpy(l->build_id, build_id, len + 1);
	(void)atomic_fetch_add(&r->pending, 1);
	return l;
}

static void submit(struct later *l)
{
	if (!tw_pool_submit(l->recorder->pool, &l->task))
		run_later(&l->task, true);
}

static void queue_or_record(
        struct tw_recorder *r, const char *project_id, const char *trace_id, const char *build_id)
{
	struct later *l = make_later(r, project_id, trace_id, build_id, false);

	if (l)
		submit(l);
	else
		record_or_log(r, project_id, trace_id, build_id, false);
}

static struct delayed *delayed_of(struct tw_recorder *r, const char *trace_id)
{
	return &r->delayed[tw_hash_str(tw_str_of(trace_id), 0) % DELAY_LISTS];
}

/* NULL: no trace of that id, or none at all if it is NULL, came until then. */
static struct later *take_delayed(
        struct tw_recorder *r, struct delayed *d, const char *trace_id, int64_t until_ms)
{
	struct later **at, *l;

	(void)pthread_mutex_lock(&r->delayed_lock);
	for (at = &d->first; trace_id && *at && strcmp((*at)->trace_id, trace_id) != 0;
	        at = &(*at)->next)
		continue;
	l = *at && (*at)->since_ms <= until_ms ? *at : NULL;
	if (l) {
		*at = l->next;
		d->end = l->next ? d->end : at;
	}
	(void)pthread_mutex_unlock(&r->delayed_lock);
	return l;
}

static void submit_delayed(struct tw_recorder *r, int64_t until_ms)
{
	struct later *l;

	for (int i = 0; i < DELAY_LISTS; i++)
		while ((l = take_delayed(r, &r->delayed[i], NULL, until_ms)))
			submit(l);
}

static void end_delay(struct tw_periodic *p, void *arg)
{
	struct tw_recorder *r = arg;
	const int64_t now = tw_monotonic_ms(), again = atomic_load(&r->again_ms);

	(void)p;
	submit_delayed(r, now - DELAY_MS);
	if (again && now >= again)
		tw_records_complete(r);
}

static void cancel_delayed(struct tw_recorder *r, const char *trace_id)
{
	struct later *l = take_delayed(r, delayed_of(r, trace_id), trace_id, INT64_MAX);

	if (l)
		free_later(l);
}

void tw_record_trace(struct tw_recorder *r, const char *project_id, const char *trace_id)
{
	if (!r)
		return;
	cancel_delayed(r, trace_id);
	queue_or_record(r, project_id, trace_id, "");
}

void tw_record_new_trace(struct tw_recorder *r, const char *project_id, const char *trace_id)
{
	struct later *l = r ? make_later(r, project_id, trace_id, "", true) : NULL;
	struct delayed *d;

	if (!l) {
		if (r)
			record_or_log(r, project_id, trace_id, "", true);
		return;
	}
	d = delayed_of(r, trace_id);
	(void)pthread_mutex_lock(&r->delayed_lock);
	l->since_ms = tw_monotonic_ms();
	*d->end = l;
	d->end = &l->next;
	(void)pthread_mutex_unlock(&r->delayed_lock);
}

void tw_record_build(struct tw_recorder *r, const char *project_id, const char *build_id)
{
	if (r)
		queue_or_record(r, project_id, "", build_id);
}

static bool is_written(struct tw_blobs *b, const char *key)
{
	struct tw_store_file f = {.bytes = 0};
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	enum tw_status st = engine->stat_file(store, key, &f, NULL);

	/* a power failure may leave an empty file */
	return st == TW_OK ? f.bytes > 0 : st != TW_NOT_FOUND;
}

void tw_record_new_build(struct tw_recorder *r, const char *project_id, const char *build_id)
{
	char key[TW_STORE_KEY];

	if (!r)
		return;
	tw_record_build_key(project_id, build_id, key);
	if (!is_written(r->blobs, key))
		tw_record_build(r, project_id, build_id);
}

/* In object storage the record is deleted by its key (file_drop.h). */
static void drop(struct tw_recorder *r, const char *key)
{
	void *store;

	if (tw_blobs_remote(r->blobs))
		return;
	(void)pthread_mutex_lock(stripe_of(r, key));
	(void)tw_blobs_engine(r->blobs, &store)->remove(store, key, NULL);
	(void)pthread_mutex_unlock(stripe_of(r, key));
}

void tw_record_drop(struct tw_recorder *r, const char *trace_id)
{
	char key[TW_STORE_KEY];

	if (!r || strlen(trace_id) != TW_ID_CHARS)
		return;
	cancel_delayed(r, trace_id);
	tw_record_key(trace_id, key);
	drop(r, key);
}

void tw_record_drop_build(struct tw_recorder *r, const char *project_id, const char *build_id)
{
	char key[TW_STORE_KEY];

	if (!r)
		return;
	tw_record_build_key(project_id, build_id, key);
	drop(r, key);
}

/* --- missing records --- */

struct completing {
	struct tw_recorder *recorder;
	struct tw_buf listed; /* ids of traces that have a record, sorted, TW_ID_CHARS each */
	uint64_t written;
};

static enum tw_status check_stopping(const struct completing *w, struct tw_err *err)
{
	return atomic_load(&w->recorder->stopping) ? tw_fail(err, TW_BUSY, "the server is stopping")
	                                           : TW_OK;
}

static enum tw_status complete(struct completing *w, const char *key, const char *project_id,
        const char *trace_id, const char *build_id, struct tw_err *err)
{
	enum tw_status st = check_stopping(w, err);

	if (st != TW_OK || is_written(w->recorder->blobs, key))
		return st;
	w->written++;
	return record(w->recorder, project_id, trace_id, build_id, false, err);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, TW_ID_CHARS);
}

static enum tw_status complete_trace(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	const struct completing *w = arg;
	char key[TW_STORE_KEY];

	(void)a;
	if (w->listed.len && strlen(f->id) == TW_ID_CHARS &&
	        bsearch(f->id, w->listed.data, w->listed.len / TW_ID_CHARS, TW_ID_CHARS, by_id))
		return check_stopping(w, err);
	tw_record_key(f->id, key);
	return complete(arg, key, f->project_id, f->id, "", err);
}

static enum tw_status complete_build(
        void *arg, struct tw_stored_file *f, struct tw_arena *a, struct tw_err *err)
{
	char key[TW_STORE_KEY];

	(void)a;
	tw_record_build_key(f->project_id, f->id, key);
	return complete(arg, key, f->project_id, "", f->id, err);
}

static enum tw_status add_listed(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct completing *w = arg;
	const char *id = strrchr(f->key, '/') + 1;

	if (tw_record_is_of_trace(f->key) && tw_buf_add(&w->listed, id, TW_ID_CHARS) != TW_OK)
		return tw_oom(err);
	return check_stopping(w, err);
}

/* One listing of a store instead of a request per trace; without it each is requested. */
static void list_objects(struct completing *w)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(w->recorder->blobs, &store);

	if (!engine->remote)
		return;
	if (engine->list(store, "records", add_listed, w, NULL) != TW_OK)
		w->listed.len = 0;
	if (w->listed.len)
		qsort(w->listed.data, w->listed.len / TW_ID_CHARS, TW_ID_CHARS, by_id);
}

static enum tw_status write_missing(struct completing *w, struct tw_err *err)
{
	struct tw_catalogue *c = w->recorder->catalogue;
	enum tw_status st;

	tw_buf_init(&w->listed, LISTED_BYTES);
	list_objects(w);
	st = tw_stored_each(c, tw_catalogue_recorded_traces, complete_trace, w, err);
	if (st == TW_OK)
		st = tw_stored_each(c, tw_catalogue_recorded_builds, complete_build, w, err);
	tw_buf_done(&w->listed);
	return st;
}

static void try_again_later(struct tw_recorder *r)
{
	r->wait_ms = r->wait_ms ? 2 * r->wait_ms : AGAIN_FIRST_MS;
	if (r->wait_ms > AGAIN_MOST_MS)
		r->wait_ms = AGAIN_MOST_MS;
	atomic_store(&r->again_ms, tw_monotonic_ms() + r->wait_ms);
}

static void run_complete(struct tw_pool_task *task, bool stopping)
{
	struct tw_recorder *r =
	        (struct tw_recorder *)(void *)((char *)task -
	                                       offsetof(struct tw_recorder, complete));
	struct completing w = {.recorder = r};
	struct tw_err err = {.msg = ""};
	enum tw_status st = TW_OK;

	atomic_store(&r->again_ms, 0);
	if (!stopping)
		st = write_missing(&w, &err);
	if (st == TW_OK) {
		r->wait_ms = 0;
	} else if (!atomic_load(&r->stopping)) {
		tw_log_err(TW_LOG_WARN, "records_not_complete", "writing missing records", &err);
		try_again_later(r);
	}
	if (w.written)
		tw_log(TW_LOG_INFO, "records_written",
		        tw_log_number("records", (int64_t)w.written));
	atomic_store(&r->completing, false);
}

void tw_records_complete(struct tw_recorder *r)
{
	if (!r || atomic_exchange(&r->completing, true))
		return;
	r->complete.run = run_complete;
	if (!tw_pool_submit(r->pool, &r->complete))
		atomic_store(&r->completing, false);
}

/* --- reading --- */

enum tw_status tw_record_read(struct tw_blobs *b, const char *key, json_t **ret, struct tw_err *err)
{
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(b, &store);
	json_t *record;
	int fd = -1;
	enum tw_status st = engine->get(store, key, 0, &fd, err);

	if (st != TW_OK)
		return st;
	record = tw_json_load_fd(fd);
	(void)close(fd);
	if (json_integer_value(json_object_get(record, "tracewell_record")) == 1 &&
	        tw_record_row(record, "project") &&
	        (tw_record_row(record, "trace") || tw_record_row(record, "build"))) {
		*ret = record;
		return TW_OK;
	}
	json_decref(record);
	return tw_fail(err, TW_CORRUPT, "%.100s is not a record", key);
}

static enum tw_status build_known(
        struct tw_catalogue *c, struct tw_blobs *b, const char *key, bool *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_build_row row;
	json_t *record = NULL;
	const json_t *build;
	enum tw_status st = a ? tw_record_read(b, key, &record, err) : tw_oom(err);

	if (st == TW_OK) {
		build = tw_record_row(record, "build");
		st = tw_catalogue_build_get(c, tw_json_text(build, "project_id"),
		        tw_json_text(build, "build_id"), a, &row, err);
	}
	json_decref(record);
	tw_arena_free(a);
	*ret = st == TW_OK;
	return st == TW_NOT_FOUND || st == TW_CORRUPT ? TW_OK : st;
}

enum tw_status tw_record_known(
        struct tw_catalogue *c, struct tw_blobs *b, const char *key, bool *ret, struct tw_err *err)
{
	return tw_record_is_of_trace(key)
	               ? tw_catalogue_has_trace(c, strrchr(key, '/') + 1, ret, err)
	               : build_known(c, b, key, ret, err);
}

/* --- the recorder --- */

/* Creates all in advance, so that no record waits for its folder. */
static enum tw_status make_folders(struct tw_blobs *b, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(path, sizeof path, "%s/records", tw_blobs_dir(b));
	st = tw_folder_make(path, err);
	for (const char *c = FOLDERS; st == TW_OK && *c; c++) {
		(void)snprintf(path, sizeof path, "%s/records/%c", tw_blobs_dir(b), *c);
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			st = fail_errno(path, err);
	}
	return st;
}

enum tw_status tw_recorder_start(
        struct tw_catalogue *c, struct tw_blobs *b, struct tw_recorder **ret, struct tw_err *err)
{
	struct tw_recorder *r = tw_mem_zalloc(1, sizeof *r);
	enum tw_status st = TW_OK;

	if (!r)
		return tw_oom(err);
	r->catalogue = c;
	r->blobs = b;
	for (int i = 0; i < DELAY_LISTS; i++)
		r->delayed[i].end = &r->delayed[i].first;
	(void)pthread_mutex_init(&r->delayed_lock, NULL);
	for (int i = 0; i < STRIPES; i++)
		(void)pthread_mutex_init(&r->stripes[i], NULL);
	if (!tw_blobs_remote(b))
		st = make_folders(b, err);
	if (st == TW_OK)
		st = tw_record_reader_new(c, &r->rows, err);
	if (st == TW_OK)
		st = tw_pool_start(tw_blobs_remote(b) ? THREADS_REMOTE : THREADS, &r->pool, err);
	if (st == TW_OK)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"first_records", end_delay, DELAY_STEP_MS}, r,
		        &r->delay, err);
	if (st == TW_OK)
		*ret = r;
	else
		(void)tw_recorder_stop(r);
	return st;
}

struct tw_recorder *tw_recorder_stop(struct tw_recorder *r)
{
	if (!r)
		return NULL;
	atomic_store(&r->stopping, true);
	r->delay = tw_periodic_stop(r->delay);
	submit_delayed(r, INT64_MAX);
	r->pool = tw_pool_stop(r->pool);
	r->rows = tw_record_reader_free(r->rows);
	for (int i = 0; i < STRIPES; i++)
		(void)pthread_mutex_destroy(&r->stripes[i]);
	(void)pthread_mutex_destroy(&r->delayed_lock);
	tw_mem_free(r);
	return NULL;
}
