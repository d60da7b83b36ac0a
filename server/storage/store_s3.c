/*
 * store_s3.c - files in an S3-compatible store, and recently used ones also in data/cache.
 *
 * A file is verified before put returns, and is in the cache then, as a decoder needs it next.  A
 * store that did not answer for the complete time of an operation is away: requests that need it
 * are refused immediately until a probe (or an operation in progress) gets a response, so that
 * clients that can retry do so instead of waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/file/crash_point.h"
#include "server/base/metric.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"
#include "server/storage/s3/s3.h"
#include "server/storage/store_cache.h"

enum {
	PATH_BYTES = 1400,
	BUCKETS = 8,
	QUIET_MS = 450,
	SILENT_MS = 2000, /* no answer for this time: not ready */
	AWAY_MS = 5000,   /* no answer for this time: requests are refused */
	DOUBTS = 256,
	DOUBT_MS = 16 * 60 * 1000 /* a signature is valid for 15 minutes */
};

static const int64_t bounds_ms[BUCKETS] = {10, 30, 100, 300, 1000, 3000, 10000, 30000};

struct counts {
	_Atomic uint64_t ended[TW_S3_OPS][TW_S3_OUTCOMES];
	_Atomic uint64_t within[TW_S3_OPS][BUCKETS + 1];
	_Atomic uint64_t ms[TW_S3_OPS];
	_Atomic uint64_t sent, received;
};

struct doubt { /* a key whose deletion may still take effect */
	int64_t until_ms;
	char key[TW_STORE_KEY];
};

struct store {
	struct tw_s3 *s3;
	struct tw_cache *cache; /* NULL: a program other than the server */
	struct counts counts;
	_Atomic unsigned unanswered; /* consecutive requests without an answer */
	_Atomic bool held;
	_Atomic bool refused; /* by the last probe: a response is not enough to make it ready */
	_Atomic uint64_t serial;
	pthread_mutex_t lock; /* of doubts and why */
	struct doubt doubts[DOUBTS];
	size_t n_doubts;
	struct tw_err why; /* why it is unavailable */
	int cache_lock;    /* of data/cache.lock, -1: none */
	char spool[PATH_BYTES];
};

/* --- availability --- */

static void count(void *arg, enum tw_s3_op op, enum tw_s3_outcome outcome, int64_t ms)
{
	struct store *s = arg;
	size_t bucket = 0;

	while (bucket < BUCKETS && ms > bounds_ms[bucket])
		bucket++;
	(void)atomic_fetch_add(&s->counts.ended[op][outcome], 1);
	(void)atomic_fetch_add(&s->counts.within[op][bucket], 1);
	(void)atomic_fetch_add(&s->counts.ms[op], (uint64_t)ms);
	if (outcome == TW_S3_OK || outcome == TW_S3_MISSING || outcome == TW_S3_BROKEN)
		atomic_store(&s->unanswered, 0);
	else if (outcome != TW_S3_REFUSED) /* a refusal may concern one object only; the probe
	                                    * decides */
		(void)atomic_fetch_add(&s->unanswered, 1);
}

/* why NULL: it answers.  Programs other than the server are not refused.  The store's client has
 * the state, so that operations and requests agree on it. */
static void set_away(struct store *s, const struct tw_err *why)
{
	if (why) {
		(void)pthread_mutex_lock(&s->lock);
		s->why = *why;
		(void)pthread_mutex_unlock(&s->lock);
	}
	tw_s3_give_up(s->s3, why && s->cache);
}

static bool is_away(const struct store *s)
{
	return tw_s3_given_up(s->s3);
}

/* Updates the state, and turns errors into ones that clients can retry. */
static enum tw_status record_result(struct store *s, enum tw_status st, struct tw_err *err)
{
	if (st == TW_OK || st == TW_NOT_FOUND) {
		set_away(s, NULL);
		return st;
	}
	if (st != TW_BUSY && st != TW_DENIED)
		return st;
	if (atomic_load(&s->unanswered))
		set_away(s, err);
	err->code = TW_BUSY;
	return TW_BUSY;
}

static enum tw_status ready(void *store, struct tw_err *err)
{
	struct store *s = store;
	struct tw_err why;

	if (!is_away(s) && !atomic_load(&s->held))
		return TW_OK;
	(void)pthread_mutex_lock(&s->lock);
	why = s->why;
	(void)pthread_mutex_unlock(&s->lock);
	return tw_fail(err, TW_BUSY, "the store is unavailable (%.150s); retry later", why.msg);
}

/* Distinguishes errors for which retrying is pointless. */
static enum tw_status probe(void *store, struct tw_err *err)
{
	struct store *s = store;
	struct tw_err why = {.msg = ""};
	enum tw_status st = tw_s3_probe(s->s3, &why);

	atomic_store(&s->refused, st == TW_DENIED);
	(void)record_result(s, st, &(struct tw_err){why.code, why.offset, {0}});
	if (st != TW_OK) {
		set_away(s, &why);
		tw_err_copy(err, &why);
	}
	return st;
}

/* A store that answered recently, if only by accepting bytes, is available: the line may be slow,
 * and 500 and 503 may concern one request.  A single timeout is reported, but ends no other
 * request: a busy store may be late once. */
static enum tw_status ping(void *store, struct tw_err *err)
{
	struct store *s = store;
	struct tw_err why = {.msg = ""};
	const bool away = is_away(s);
	int64_t silent_ms = tw_monotonic_ms() - tw_s3_responded_ms(s->s3);

	if (!away && silent_ms < QUIET_MS)
		return TW_OK;
	if (tw_s3_ping(s->s3, &why) == TW_OK) {
		if (away && !atomic_load(&s->refused))
			set_away(s, NULL);
		return TW_OK;
	}
	silent_ms = tw_monotonic_ms() - tw_s3_responded_ms(s->s3);
	if (silent_ms >= AWAY_MS)
		set_away(s, &why);
	return silent_ms >= SILENT_MS ? tw_fail(err, TW_BUSY, "%s", why.msg) : TW_OK;
}

static void hold(void *store, const struct tw_err *why)
{
	struct store *s = store;

	if (why) {
		(void)pthread_mutex_lock(&s->lock);
		s->why = *why;
		(void)pthread_mutex_unlock(&s->lock);
	}
	atomic_store(&s->held, why != NULL);
}

/* --- open and close --- */

static void close_store(void *store)
{
	struct store *s = store;

	s->cache = tw_cache_close(s->cache);
	s->s3 = tw_s3_free(s->s3);
	if (s->cache_lock >= 0)
		(void)close(s->cache_lock);
	(void)pthread_mutex_destroy(&s->lock);
	tw_mem_free(s);
}

static void stop(void *store)
{
	tw_s3_stop(((struct store *)store)->s3);
}

/* Two servers in one cache would delete each other's files, including those being fetched. */
static enum tw_status lock_cache(struct store *s, const char *data_dir, struct tw_err *err)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/cache.lock", data_dir);
	s->cache_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->cache_lock >= 0 && flock(s->cache_lock, LOCK_EX | LOCK_NB) == 0)
		return TW_OK;
	if (errno == EWOULDBLOCK)
		return tw_fail(err, TW_CONFLICT,
		        "another server uses the data folder %.200s as its cache: with --blobs in "
		        "a store, each server needs a separate --data",
		        data_dir);
	return tw_fail_errno(err, TW_IO, "%.120s cannot be locked", path);
}

static enum tw_status open_cache(
        struct store *s, const struct tw_store_endpoint *p, struct tw_err *err)
{
	char path[PATH_BYTES];
	enum tw_status st;

	(void)snprintf(path, sizeof path, "%s/cache", p->data_dir);
	st = lock_cache(s, p->data_dir, err);
	if (st == TW_OK)
		st = tw_folder_make(path, err);
	return st == TW_OK ? tw_cache_open(path, p->storage->cache_bytes, p->min_free_percent,
	                             &s->cache, err)
	                   : st;
}

static enum tw_status open_store(const struct tw_store_endpoint *p, void **ret, struct tw_err *err)
{
	struct store *s = tw_mem_zalloc(1, sizeof *s);
	const struct tw_storage *of = p->storage;
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->cache_lock = -1;
	(void)snprintf(s->spool, sizeof s->spool, "%s/spool", p->data_dir);
	st = tw_s3_new(&(struct tw_s3_endpoint){.where = of->blobs,
	                       .endpoint = of->endpoint,
	                       .region = of->region,
	                       .ca_file = of->ca_file,
	                       .credentials_file = of->credentials_file,
	                       .virtual_host = of->virtual_host,
	                       .timeout_s = of->timeout_s,
	                       .part_bytes = of->part_bytes,
	                       .count = count,
	                       .arg = s},
	        &s->s3, err);
	if (st == TW_OK && p->serves)
		st = open_cache(s, p, err);
	if (st == TW_OK)
		*ret = s;
	else
		close_store(s);
	return st;
}

/* --- writing --- */

/* The last part of the key of content and traces is unique; otherwise uses the complete key. */
static const char *name_of(const char *key, char out[TW_STORE_KEY])
{
	const char *slash = strrchr(key, '/');
	bool content_name =
	        slash && (strncmp(key, "blobs/", 6) == 0 || strncmp(key, "traces/", 7) == 0);

	(void)snprintf(out, TW_STORE_KEY, "%s", content_name ? slash + 1 : key);
	for (char *at = out; (at = strchr(at, '/'));)
		*at = '_';
	return out;
}

static bool is_content(const char *key)
{
	return strncmp(key, "blobs/", 6) == 0;
}

/* Records (trace_record.h) are replaced under their key and only read by a rebuild. */
static bool is_cached(const char *key)
{
	return strncmp(key, "owner/", 6) != 0 && strncmp(key, "records/", 8) != 0;
}

/* A deletion without an answer may take effect later: until its signature expires, a new object
 * under that key is not safe.  Deletions of an earlier server process are not known. */
static void note_doubt(struct store *s, const char *key)
{
	struct doubt *d;

	(void)pthread_mutex_lock(&s->lock);
	d = &s->doubts[s->n_doubts++ % DOUBTS];
	d->until_ms = tw_monotonic_ms() + DOUBT_MS;
	(void)snprintf(d->key, sizeof d->key, "%s", key);
	(void)pthread_mutex_unlock(&s->lock);
}

static bool is_doubted(struct store *s, const char *key)
{
	const int64_t now = tw_monotonic_ms();
	bool found = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < DOUBTS; i++)
		found = found ||
		        (now < s->doubts[i].until_ms && strcmp(s->doubts[i].key, key) == 0);
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

static enum tw_status put(void *store, struct tw_store_put *p, struct tw_err *err)
{
	struct store *s = store;
	const struct tw_s3_object o = {p->key, p->sha256, p->bytes, 0};
	struct tw_err why = {.msg = ""};
	char name[TW_STORE_KEY];
	enum tw_status st = ready(s, err);

	if (st != TW_OK)
		return st;
	if (is_doubted(s, p->key))
		return tw_fail(err, TW_BUSY,
		        "the same content is being deleted, and the store has not confirmed it; "
		        "retry in a few minutes");
	st = record_result(s, tw_s3_put(s->s3, &o, p->fd, &why), &why);
	if (st != TW_OK) {
		tw_err_copy(err, &why);
		return st;
	}
	(void)atomic_fetch_add(&s->counts.sent, p->bytes);
	tw_crash_point("object_put");
	if (s->cache && is_cached(p->key) && fdatasync(p->fd) == 0)
		tw_cache_take(s->cache, name_of(p->key, name), p->path);
	else if (p->path[0])
		(void)unlink(p->path);
	return TW_OK;
}

static enum tw_status wait_put(void *store, struct tw_store_put *p, struct tw_err *err)
{
	(void)store;
	(void)p;
	(void)err;
	return TW_OK; /* put has waited */
}

static void end_put(void *store, struct tw_store_put *p)
{
	(void)store;
	(void)p;
}

static enum tw_status address(void *store, const struct tw_store_put *p, unsigned expires_s,
        struct tw_buf *out, struct tw_err *err)
{
	struct store *s = store;
	const struct tw_s3_object o = {p->key, p->sha256, p->bytes, 0};

	return tw_s3_put_address(s->s3, &o, expires_s, out, err);
}

/* --- reading --- */

static enum tw_status fill(void *arg, const char *key, int fd, struct tw_err *err)
{
	struct store *s = arg;
	char sha256[TW_SHA256_HEX] = "", name[TW_STORE_KEY];
	struct tw_err why = {.msg = ""};
	uint64_t bytes = 0;
	enum tw_status st = ready(s, err);

	if (st != TW_OK)
		return st;
	st = record_result(s, tw_s3_get(s->s3, key, fd, sha256, &bytes, &why), &why);
	if (st == TW_OK && is_content(key) && strcmp(sha256, name_of(key, name)) != 0)
		st = tw_fail(&why, TW_CORRUPT,
		        "its object in the store is damaged: %llu bytes of another SHA-256",
		        (unsigned long long)bytes);
	(void)atomic_fetch_add(&s->counts.received, bytes);
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

/* For files that are not cached. */
static enum tw_status get_once(struct store *s, const char *key, int *ret_fd, struct tw_err *err)
{
	char path[PATH_BYTES + 64];
	enum tw_status st;
	int fd;

	(void)snprintf(path, sizeof path, "%s/.fetched-%d-%llu", s->spool, (int)getpid(),
	        (unsigned long long)atomic_fetch_add(&s->serial, 1));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return tw_fail_errno(err, TW_IO, "%.120s cannot be created", path);
	(void)unlink(path);
	st = fill(s, key, fd, err);
	if (st == TW_OK && lseek(fd, 0, SEEK_SET) != 0)
		st = tw_fail(err, TW_IO, "a file cannot be read");
	if (st == TW_OK)
		*ret_fd = fd;
	else
		(void)close(fd);
	return st;
}

static enum tw_status get(
        void *store, const char *key, int64_t until_ms, int *ret_fd, struct tw_err *err)
{
	struct store *s = store;
	char name[TW_STORE_KEY];

	return s->cache && is_cached(key) ? tw_cache_get(s->cache,
	                                            &(struct tw_cache_request){name_of(key, name),
	                                                    key, fill, s, until_ms},
	                                            ret_fd, err)
	                                  : get_once(s, key, ret_fd, err);
}

static bool forget(void *store, const char *key)
{
	struct store *s = store;
	char name[TW_STORE_KEY];

	return s->cache && tw_cache_drop(s->cache, name_of(key, name));
}

static bool yield(void *store)
{
	struct store *s = store;

	return s->cache && tw_cache_yield(s->cache);
}

static enum tw_status stat_file(
        void *store, const char *key, struct tw_store_file *ret, struct tw_err *err)
{
	struct store *s = store;
	struct tw_s3_metadata o = {.bytes = 0};
	struct tw_err why = {.msg = ""};
	enum tw_status st = record_result(s, tw_s3_head(s->s3, key, &o, &why), &why);

	if (st == TW_OK) {
		*ret = (struct tw_store_file){
		        .key = key, .bytes = o.bytes, .modified_ms = o.modified_ms};
		memcpy(ret->sha256, o.sha256, sizeof ret->sha256);
	} else {
		tw_err_copy(err, &why);
	}
	return st;
}

static enum tw_status drop(struct store *s, const char *key, bool once, struct tw_err *err)
{
	struct tw_err why = {.msg = ""};
	bool doubt = false;
	enum tw_status st;

	(void)forget(s, key);
	st = record_result(s, tw_s3_delete(s->s3, key, once, &doubt, &why), &why);
	(void)forget(s, key); /* another request may have fetched it in the meantime */
	if (doubt)
		note_doubt(s, key);
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

static enum tw_status remove_object(void *store, const char *key, struct tw_err *err)
{
	return drop(store, key, false, err);
}

static enum tw_status remove_once(void *store, const char *key, struct tw_err *err)
{
	return drop(store, key, true, err);
}

static int64_t now_ms(void *store)
{
	return tw_unix_ms() + tw_s3_ahead_ms(((const struct store *)store)->s3);
}

struct listing {
	tw_store_each *each;
	void *arg;
};

static enum tw_status report_file(void *arg, const struct tw_s3_object *o, struct tw_err *err)
{
	const struct listing *l = arg;
	const struct tw_store_file f = {
	        .key = o->key, .bytes = o->bytes, .modified_ms = o->modified_ms};

	return strlen(o->key) < TW_STORE_KEY ? l->each(l->arg, &f, err) : TW_OK;
}

static enum tw_status list(
        void *store, const char *folder, tw_store_each *each, void *arg, struct tw_err *err)
{
	struct store *s = store;
	struct listing l = {each, arg};
	char prefix[TW_STORE_KEY];

	(void)snprintf(prefix, sizeof prefix, "%s/", folder);
	return tw_s3_list(s->s3, prefix, report_file, &l, err);
}

static enum tw_status tidy(void *store, int64_t before_ms, struct tw_err *err)
{
	uint64_t dropped = 0;

	return tw_s3_drop_parts(((struct store *)store)->s3, before_ms, &dropped, err);
}

/* --- metrics --- */

static const char *const op_names[] = {"put", "get", "head", "delete", "list", "multipart"};
static const char *const outcome_names[] = {
        "ok", "missing", "refused", "slow_down", "failed", "no_answer", "broken"};

static uint64_t of(_Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void write_seconds(struct counts *c, struct tw_buf *out)
{
	for (int op = 0; op < TW_S3_OPS; op++) {
		uint64_t n = 0;

		for (int i = 0; i <= BUCKETS; i++) {
			n += of(&c->within[op][i]);
			tw_buf_printf(out, "tracewell_storage_seconds_bucket{op=\"%s\",le=\"",
			        op_names[op]);
			if (i < BUCKETS)
				tw_buf_printf(out, "%g", (double)bounds_ms[i] / 1000);
			tw_buf_printf(out, "%s\"} %" PRIu64 "\n", i < BUCKETS ? "" : "+Inf", n);
		}
		tw_buf_printf(out,
		        "tracewell_storage_seconds_sum{op=\"%s\"} %.3f\n"
		        "tracewell_storage_seconds_count{op=\"%s\"} %" PRIu64 "\n",
		        op_names[op], (double)of(&c->ms[op]) / 1000, op_names[op], n);
	}
}

static void metrics(void *store, struct tw_buf *out)
{
	static struct counts none;
	struct store *s = store;
	struct counts *c = s ? &s->counts : &none;
	struct tw_cache_stats cache = {0};

	if (s && s->cache)
		tw_cache_stats(s->cache, &cache);
	for (int op = 0; op < TW_S3_OPS; op++)
		for (int how = 0; how < TW_S3_OUTCOMES; how++)
			tw_buf_printf(out,
			        "tracewell_storage_requests_total{op=\"%s\",outcome=\"%s\"} "
			        "%" PRIu64 "\n",
			        op_names[op], outcome_names[how], of(&c->ended[op][how]));
	write_seconds(c, out);
	tw_metric(out, "tracewell_storage_bytes_total{direction=\"sent\"}", of(&c->sent));
	tw_metric(out, "tracewell_storage_bytes_total{direction=\"received\"}", of(&c->received));
	tw_metric(out, "tracewell_storage_unavailable", s && is_away(s));
	tw_metric(out, "tracewell_cache_reads_total{outcome=\"hit\"}", cache.hits);
	tw_metric(out, "tracewell_cache_reads_total{outcome=\"miss\"}", cache.misses);
	tw_metric(out, "tracewell_cache_reads_total{outcome=\"shared\"}", cache.shared);
	tw_metric(out, "tracewell_cache_evictions_total", cache.evicted);
	tw_metric(out, "tracewell_cache_bytes", cache.bytes);
	tw_metric(out, "tracewell_cache_files", cache.files);
}

const struct tw_store_engine tw_store_s3 = {
        .scheme = "s3://",
        .remote = true,
        .open = open_store,
        .close = close_store,
        .stop = stop,
        .put = put,
        .wait = wait_put,
        .end = end_put,
        .get = get,
        .forget = forget,
        .yield = yield,
        .stat_file = stat_file,
        .remove = remove_object,
        .remove_once = remove_once,
        .now_ms = now_ms,
        .list = list,
        .ready = ready,
        .probe = probe,
        .ping = ping,
        .hold = hold,
        .tidy = tidy,
        .metrics = metrics,
        .address = address,
};
