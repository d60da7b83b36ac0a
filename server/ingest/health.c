#include "server/ingest/health.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/clock.h"
#include "server/base/file/disk.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/catalogue.h"
#include "server/decode/jobs.h"
#include "server/http/metrics.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

/* A database or store that does not respond is reported within three seconds: a probe begins at
 * most EVERY_MS after the last successful one. A local disk may be slow for longer under load. */
enum {
	EVERY_MS = 500,
	REMOTE_MS = 2500,
	LOCAL_MS = 10000,
	SLOTS_MS = 1000, /* shorter bursts are not reported */
	WRITE_EVERY = 3, /* number of probes of the data folder per test write */
	SPACE_EVERY = 10
};
_Static_assert(EVERY_MS + 2000 <= REMOTE_MS,
        "a store's ping (s3.c, PING_S) ends before its result is old");

struct result {        /* of the last probe */
	int64_t at_ms; /* monotonic */
	int64_t limit_ms;
	struct tw_err last;
};

/* The results of all probes. */
struct probed {
	struct result disk, reading, storage;
	bool writable; /* the database takes writes */
	unsigned free_percent;
	int64_t full_ms; /* since when all upload slots have been in use; 0: not all are */
};

struct tw_health {
	struct tw_health_parts parts;
	_Atomic bool draining;
	bool pings; /* the storage is remote */
	struct tw_periodic *disk_thread, *catalogue_thread, *storage_thread;
	pthread_mutex_t lock; /* of probed */
	struct probed probed;
	unsigned disk_probes, catalogue_probes; /* each used by one thread */
	bool was_ok[TW_HEALTH_CHECKS];          /* used by the disk's thread, which logs changes */
	_Atomic int64_t since_ms[TW_HEALTH_CHECKS]; /* of the state in was_ok */
};

/* --- probes --- */

static void note(struct tw_health *h, struct result *r, enum tw_status st, const struct tw_err *why)
{
	(void)pthread_mutex_lock(&h->lock);
	r->at_ms = tw_monotonic_ms();
	r->last = (struct tw_err){.code = st};
	if (st != TW_OK)
		r->last = *why;
	(void)pthread_mutex_unlock(&h->lock);
}

static void note_slots(struct tw_health *h)
{
	const bool full =
	        tw_metrics_uploads_now(h->parts.metrics) >= h->parts.config->max_in_flight;

	(void)pthread_mutex_lock(&h->lock);
	if (!full)
		h->probed.full_ms = 0;
	else if (!h->probed.full_ms)
		h->probed.full_ms = tw_monotonic_ms();
	(void)pthread_mutex_unlock(&h->lock);
}

static void log_changes(struct tw_health *h)
{
	struct tw_health_check checks[TW_HEALTH_CHECKS];

	(void)tw_health_checks(h, false, checks);
	for (size_t i = 0; i < TW_HEALTH_CHECKS; i++) {
		if (checks[i].ok == h->was_ok[i])
			continue;
		atomic_store(&h->since_ms[i], tw_unix_ms());
		tw_log(checks[i].ok ? TW_LOG_INFO : TW_LOG_WARN, "ready_check",
		        tw_log_text("check", checks[i].name),
		        tw_log_text("state", checks[i].ok ? "ok" : "failed"),
		        tw_log_text("reason", checks[i].message));
		h->was_ok[i] = checks[i].ok;
	}
}

static void probe_disk(struct tw_periodic *p, void *arg)
{
	struct tw_health *h = arg;
	struct tw_err err = {.msg = ""};
	enum tw_status st = TW_OK;
	struct tw_disk d;

	(void)p;
	if (!tw_disk_of(h->parts.config->data_dir, &d))
		st = tw_fail(&err, TW_IO, "statvfs failed");
	else if (h->disk_probes++ % WRITE_EVERY == 0)
		st = tw_blobs_probe(h->parts.blobs, &err);
	else
		st = h->probed.disk.last.code; /* changed by this thread only */
	if (st == TW_OK && d.size_bytes) {
		(void)pthread_mutex_lock(&h->lock);
		h->probed.free_percent = (unsigned)tw_disk_free_percent(&d);
		(void)pthread_mutex_unlock(&h->lock);
	}
	if (st == TW_OK || err.msg[0])
		note(h, &h->probed.disk, st, &err);
	note_slots(h);
	log_changes(h);
}

static void probe_catalogue(struct tw_periodic *p, void *arg)
{
	struct tw_health *h = arg;
	struct tw_err err = {.msg = ""};
	bool writable = false;
	enum tw_status st = tw_catalogue_probe(h->parts.catalogue, &writable, &err);

	(void)p;
	(void)pthread_mutex_lock(&h->lock);
	h->probed.writable = writable;
	(void)pthread_mutex_unlock(&h->lock);
	note(h, &h->probed.reading, st, &err);
	tw_catalogue_write_again(h->parts.catalogue);
	/* the disk is full: checkpoint, as SQLite's WAL may take more than the reserve */
	if (tw_blobs_check_reserve(h->parts.blobs, NULL) != TW_OK &&
	        h->catalogue_probes++ % SPACE_EVERY == 0)
		tw_catalogue_checkpoint(h->parts.catalogue);
}

static void probe_storage(struct tw_periodic *p, void *arg)
{
	struct tw_health *h = arg;
	void *store;
	const struct tw_store_engine *engine = tw_blobs_engine(h->parts.blobs, &store);

	struct tw_err err = {.msg = ""};

	(void)p;
	note(h, &h->probed.storage, engine->ping(store, &err), &err);
}

/* --- checks --- */

static bool set(struct tw_health_check *c, const char *name, bool ok, const char *message)
{
	*c = (struct tw_health_check){.name = name, .ok = ok};
	(void)snprintf(c->message, sizeof c->message, "%s", ok ? "" : message);
	return ok;
}

/* The message of an error may contain host names, so only the status is shown. */
static bool set_status(
        struct tw_health_check *c, const char *name, const struct tw_err *why, const char *message)
{
	char text[sizeof c->message];

	(void)snprintf(text, sizeof text, "%s (%s)", message, tw_status_name(why->code));
	return set(c, name, why->code == TW_OK, text);
}

static struct tw_err state_of(const struct result *r)
{
	if (r->last.code == TW_OK && tw_monotonic_ms() - r->at_ms > r->limit_ms)
		return (struct tw_err){.code = TW_BUSY};
	return r->last;
}

static bool check_disk(
        const struct tw_health_parts *parts, const struct probed *probed, struct tw_health_check *c)
{
	const struct tw_err probe = state_of(&probed->disk);
	struct tw_err err = {.code = TW_OK};

	if (probe.code != TW_OK)
		return set_status(c, "disk", &probe, "the data folder cannot be written");
	if (probed->free_percent < parts->config->min_free_percent)
		return set(c, "disk", false,
		        "uploads are refused: free disk space is below --min-free");
	(void)tw_blobs_check_reserve(parts->blobs, &err);
	return set(c, "disk", err.code == TW_OK, err.msg);
}

static bool check_uploads(const struct probed *probed, struct tw_health_check *c)
{
	return set(c, "uploads", !probed->full_ms || tw_monotonic_ms() - probed->full_ms < SLOTS_MS,
	        "all --max-in-flight upload slots are in use; further uploads are refused");
}

bool tw_health_checks(
        struct tw_health *h, bool to_read, struct tw_health_check ret[TW_HEALTH_CHECKS])
{
	struct tw_err err = {.code = TW_OK};
	struct probed probed;
	struct tw_err reading;
	bool reads, runs, writes;

	(void)pthread_mutex_lock(&h->lock);
	probed = h->probed;
	(void)pthread_mutex_unlock(&h->lock);
	reading = state_of(&probed.reading);
	reads = set_status(&ret[0], "reading", &reading, "the catalogue cannot be read");
	(void)tw_catalogue_writes(h->parts.catalogue, &err);
	if (err.code == TW_OK && !(reads && probed.writable))
		err.code = TW_BUSY;
	writes = set_status(&ret[1], "catalogue", &err, "the catalogue cannot be written");
	runs = set(&ret[2], "running", !atomic_load(&h->draining), "the server is shutting down");
	writes = check_disk(&h->parts, &probed, &ret[3]) && writes;
	writes = check_uploads(&probed, &ret[4]) && writes;
	err = (struct tw_err){.code = TW_OK};
	(void)tw_jobs_health(h->parts.jobs, &err);
	writes = set(&ret[5], "jobs", err.code == TW_OK, err.msg) && writes;
	err = h->pings ? state_of(&probed.storage) : (struct tw_err){.code = TW_OK};
	if (err.code == TW_OK)
		(void)tw_blobs_ready(h->parts.blobs, &err);
	writes = set(&ret[6], "storage", err.code == TW_OK,
	                 "the storage of uploads and traces does not respond") &&
	         writes;
	for (size_t i = 0; i < TW_HEALTH_CHECKS; i++)
		ret[i].since_ms = atomic_load(&h->since_ms[i]);
	/* readiness does not depend on a full disk, or on the store */
	return reads && runs && (to_read || writes);
}

void tw_health_drain(struct tw_health *h)
{
	atomic_store(&h->draining, true);
}

const char *tw_health_engine(const struct tw_health *h, const char *check)
{
	if (strcmp(check, "catalogue") == 0)
		return tw_catalogue_engine(h->parts.catalogue);
	if (strcmp(check, "storage") == 0)
		return tw_blobs_remote(h->parts.blobs) ? "s3" : "folder";
	return NULL;
}

/* --- start and stop --- */

static enum tw_status start(struct tw_health *h, struct tw_err *err)
{
	enum tw_status st;

	/* uploads are refused from the first request on if the disk is below --min-free */
	probe_disk(NULL, h);
	st = tw_periodic_start(&(struct tw_periodic_task){"probe_disk", probe_disk, EVERY_MS}, h,
	        &h->disk_thread, err);
	if (st == TW_OK)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"probe_catalogue", probe_catalogue, EVERY_MS}, h,
		        &h->catalogue_thread, err);
	if (st == TW_OK && h->pings)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"probe_storage", probe_storage, EVERY_MS}, h,
		        &h->storage_thread, err);
	return st;
}

enum tw_status tw_health_start(
        const struct tw_health_parts *parts, struct tw_health **ret, struct tw_err *err)
{
	const bool local = strcmp(tw_catalogue_engine(parts->catalogue), "sqlite") == 0;
	struct tw_health *h = tw_mem_zalloc(1, sizeof *h);
	enum tw_status st;
	void *store;

	if (!h)
		return tw_oom(err);
	h->parts = *parts;
	h->pings = tw_blobs_engine(parts->blobs, &store)->ping != NULL;
	h->probed.writable = true;
	h->probed.disk = (struct result){tw_monotonic_ms(), LOCAL_MS, {.code = TW_OK}};
	h->probed.storage = (struct result){tw_monotonic_ms(), REMOTE_MS, {.code = TW_OK}};
	h->probed.reading =
	        (struct result){tw_monotonic_ms(), local ? LOCAL_MS : REMOTE_MS, {.code = TW_OK}};
	for (size_t i = 0; i < TW_HEALTH_CHECKS; i++) {
		h->was_ok[i] = true;
		atomic_store(&h->since_ms[i], tw_unix_ms());
	}
	(void)pthread_mutex_init(&h->lock, NULL);
	st = start(h, err);
	if (st == TW_OK)
		*ret = h;
	else
		(void)tw_health_stop(h);
	return st;
}

struct tw_health *tw_health_stop(struct tw_health *h)
{
	if (!h)
		return NULL;
	h->storage_thread = tw_periodic_stop(h->storage_thread);
	h->catalogue_thread = tw_periodic_stop(h->catalogue_thread);
	h->disk_thread = tw_periodic_stop(h->disk_thread);
	(void)pthread_mutex_destroy(&h->lock);
	tw_mem_free(h);
	return NULL;
}
