#include "server/decode/jobs_store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/storage/catalogue_files.h"
#include "server/catalogue/storage/file_drop.h"
#include "server/catalogue/storage/trace_record.h"
#include "server/catalogue/traces/catalogue_resumable.h"
#include "server/storage/blob.h"
#include "server/storage/blob_store.h"

enum { SHARED_SWEEP_S = 86400 };
enum {
	LOOK_S = 1,
	PROBE_MS = 15000,
	PROBE_AWAY_MS = 2000,
	YOUNG_MS = 30 * 60 * 1000, /* the row may not be visible to this server yet */
	LEASE_MS = 60000,
	RENEW_MS = 15000,
	SWEEP_FEW = 16, /* up to this number is swept in any case */
	SWEEP_SHARE = 10,
	DROPS_MS = 10000,
	ARENA = 1 << 16,
	AGAIN_LEAST_MS = 1000,
	AGAIN_MOST_MS = 5 * 60 * 1000
};
_Static_assert(2 * RENEW_MS < LEASE_MS, "the lease of the sweep outlives one renewal that fails");

struct tw_store_job {
	struct tw_store_job_parts parts;
	struct tw_catalogue *catalogue;
	struct tw_blobs *blobs;
	const struct tw_store_engine *engine;
	void *store;
	struct tw_periodic *_Atomic thread;
	_Atomic bool has_drops; /* that this server added */
	bool logged_away;
	enum tw_status logged_why; /* logged again if it differs: after an outage the store may be
	                              another one */
	int64_t probe_ms, drops_ms, sweep_ms, lease_ms; /* time of the next */
	uint64_t swept, seen, unnamed;
};

/* --- references --- */

static enum tw_status is_known(
        const struct tw_store_job *j, const char *key, bool *ret, struct tw_err *err)
{
	const char *name = strrchr(key, '/');
	char id[TW_SHA256_HEX];

	*ret = strncmp(key, "incoming/", 9) != 0; /* objects of other programs are left alone */
	if (!name || !*ret)
		return TW_OK;
	(void)snprintf(id, sizeof id, "%.64s", name + 1);
	if (strncmp(key, "blobs/", 6) == 0 && strlen(id) == TW_SHA256_HEX - 1)
		return tw_catalogue_has_blob(j->catalogue, id, ret, err);
	if (strncmp(key, "records/", 8) == 0)
		return tw_record_known(j->catalogue, j->blobs, key, ret, err);
	if (strncmp(key, "pieces/", 7) == 0)
		return tw_catalogue_resumable_refers_to(j->catalogue, key, ret, err);
	if (strncmp(key, "traces/", 7) != 0 || strlen(id) != TW_ID_CHARS + 3)
		return TW_OK;
	id[TW_ID_CHARS] = '\0';
	return tw_catalogue_has_decoded(j->catalogue, id, ret, err);
}

/* Now by the clock that sets the objects' times, which may differ from this server's. */
static int64_t store_now(const struct tw_store_job *j)
{
	return j->engine->now_ms ? j->engine->now_ms(j->store) : tw_wait_ms();
}

/* With several servers, another one may have stored the object just now. */
static enum tw_status is_settled(struct tw_store_job *j, const char *key, struct tw_err *err)
{
	struct tw_store_file f = {.bytes = 0};
	enum tw_status st;

	if (!tw_blobs_have_peers(j->blobs))
		return TW_OK;
	st = j->engine->stat_file(j->store, key, &f, err);
	if (st == TW_OK && f.modified_ms > store_now(j) - YOUNG_MS)
		st = tw_fail(err, TW_CONFLICT, "it was stored a moment ago");
	return st;
}

/* Another server may claim the key as soon as this claim is lost, so the delete is sent once,
 * without retries. */
static enum tw_status remove_claimed(struct tw_store_job *j, const char *key, struct tw_err *err)
{
	const bool once = tw_blobs_have_peers(j->blobs) && j->engine->remove_once;
	enum tw_status st = tw_blobs_still_exclusive(j->blobs, key, err);

	if (st != TW_OK)
		return st;
	return once ? j->engine->remove_once(j->store, key, err)
	            : j->engine->remove(j->store, key, err);
}

/* The claim was lost during the delete: if the key has a row now, its object may be missing. */
static void log_if_missed(struct tw_store_job *j, const char *key)
{
	struct tw_store_file f = {.bytes = 0};
	bool known = true;

	if (is_known(j, key, &known, NULL) == TW_OK && !known)
		return;
	if (j->engine->stat_file(j->store, key, &f, NULL) != TW_OK)
		tw_log(TW_LOG_ERROR, "storage_object_missing", tw_log_text("key", key),
		        tw_log_text("reason", "the catalogue was unavailable during the deletion, "
		                              "and another server may have stored it again: run "
		                              "tracewell check, and upload it again"));
}

/* TW_CONFLICT: another server is storing the object, or stored it just now. */
static enum tw_status drop_unnamed(struct tw_store_job *j, const char *key, struct tw_err *err)
{
	bool known = true, may_be_gone = false;
	enum tw_status st;

	if (!tw_blobs_claim_exclusive(j->blobs, key))
		return tw_fail(err, TW_CONFLICT, "it is being stored");
	st = is_settled(j, key, err);
	if (st == TW_OK)
		st = is_known(j, key, &known, err);
	if (st == TW_OK && !known) {
		st = remove_claimed(j, key, err);
		may_be_gone = st != TW_CONFLICT;
	}
	if (!tw_blobs_claim_exclusive_end(j->blobs, key) && may_be_gone)
		log_if_missed(j, key);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static int64_t wait_after(uint32_t attempts)
{
	int64_t ms = AGAIN_LEAST_MS;

	while (--attempts && ms < AGAIN_MOST_MS)
		ms *= 2;
	return ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS;
}

/* Deletes the objects of these keys; false: not all.  At a stop, the rest is left until it is due
 * again. */
static bool drop_taken(struct tw_store_job *j, struct tw_file_drop *of, size_t n)
{
	struct tw_err err;
	size_t n_done = 0;

	for (size_t i = 0; i < n && !tw_periodic_stopping(j->thread); i++) {
		const struct tw_file_drop d = of[i];
		enum tw_status st = j->engine->ready(j->store, &err);

		if (st == TW_OK)
			st = drop_unnamed(j, d.key, &err);
		if (st == TW_OK)
			of[n_done++] = d;
		else
			(void)tw_catalogue_file_drop_later(
			        j->catalogue, &d, wait_after(d.attempts), NULL);
	}
	return n_done && tw_catalogue_file_drops_done(j->catalogue, of, n_done, NULL) == TW_OK &&
	       n_done == n;
}

/* Those of this server immediately, those that other servers left within DROPS_MS. */
static void drop_due(struct tw_store_job *j)
{
	struct tw_file_drop *of = NULL;
	struct tw_arena *a;
	size_t n = 0;
	bool more;

	if ((!atomic_exchange(&j->has_drops, false) && tw_monotonic_ms() < j->drops_ms) ||
	        j->engine->ready(j->store, NULL) != TW_OK)
		return;
	do {
		a = tw_arena_new(ARENA);
		more = a && tw_catalogue_file_drops_take(j->catalogue, a, &of, &n, NULL) == TW_OK &&
		       drop_taken(j, of, n) && n == TW_FILE_DROPS;
		tw_arena_free(a);
	} while (more);
	j->drops_ms = tw_monotonic_ms() + DROPS_MS;
}

/* --- availability --- */

/* After a start without the store, verifies that it is this catalogue's. */
static enum tw_status check_store(struct tw_store_job *j, struct tw_err *err)
{
	enum tw_status st = j->engine->probe(j->store, err);

	if (st != TW_OK || !j->parts.unverified)
		return st;
	st = tw_storage_claim(&j->parts.claim, err);
	if (st == TW_OK)
		j->parts.unverified = false;
	else if (j->engine->hold)
		j->engine->hold(j->store, err);
	return st;
}

static void probe(struct tw_store_job *j)
{
	struct tw_err err = {.msg = ""};
	bool away = j->engine->ready(j->store, NULL) != TW_OK;
	enum tw_status st;

	if (tw_monotonic_ms() < j->probe_ms && !(away && !j->logged_away))
		return;
	st = check_store(j, &err);
	if (st == TW_OK) {
		if (j->logged_away) {
			tw_log(TW_LOG_INFO, "storage", tw_log_text("state", "available"));
			tw_records_complete(j->parts.recorder);
		}
		j->logged_away = false;
	} else if (!j->logged_away || st != j->logged_why) {
		tw_log(TW_LOG_ERROR, "storage", tw_log_text("state", "unavailable"),
		        tw_log_text("reason", err.msg));
		j->logged_away = true;
		j->logged_why = st;
	}
	j->probe_ms = tw_monotonic_ms() + (j->logged_away ? PROBE_AWAY_MS : PROBE_MS);
}

/* --- the sweep --- */

/* One of several servers sweeps.  TW_CONFLICT: another one does. */
static enum tw_status take_lease(struct tw_store_job *j, struct tw_err *err)
{
	bool mine = true;
	enum tw_status st;

	if (tw_monotonic_ms() < j->lease_ms)
		return TW_OK;
	st = tw_catalogue_take_lease(j->catalogue, "storage", j->parts.node, LEASE_MS, &mine, err);
	if (st == TW_OK && !mine)
		st = tw_fail(err, TW_CONFLICT, "another server sweeps");
	j->lease_ms = st == TW_OK ? tw_monotonic_ms() + RENEW_MS : 0;
	return st;
}

/* Work that a long sweep must not delay. */
static void do_due(struct tw_store_job *j)
{
	probe(j);
	drop_due(j);
}

static bool is_unnamed(struct tw_store_job *j, const struct tw_store_file *f, struct tw_err *err)
{
	bool known = true;

	return f->modified_ms <= store_now(j) - TW_DAY_MS &&
	       is_known(j, f->key, &known, err) == TW_OK && !known;
}

static enum tw_status count_one(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct tw_store_job *j = arg;

	if (tw_periodic_stopping(j->thread))
		return tw_fail(err, TW_BUSY, "the server is shutting down");
	do_due(j);
	j->seen++;
	j->unnamed += is_unnamed(j, f, err);
	return take_lease(j, err);
}

static enum tw_status sweep_one(void *arg, const struct tw_store_file *f, struct tw_err *err)
{
	struct tw_store_job *j = arg;
	enum tw_status st;

	if (tw_periodic_stopping(j->thread))
		return tw_fail(err, TW_BUSY, "the server is shutting down");
	do_due(j);
	st = take_lease(j, err);
	if (st != TW_OK || !is_unnamed(j, f, err))
		return st;
	st = drop_unnamed(j, f->key, err);
	j->swept += st == TW_OK;
	if (st == TW_BUSY &&
	        tw_blobs_have_peers(j->blobs)) /* the delete was sent once: another follows */
		return tw_catalogue_file_drop(j->catalogue, f->key, err);
	return st == TW_CONFLICT ? TW_OK : st;
}

static enum tw_status over_all(struct tw_store_job *j, tw_store_each *each, struct tw_err *err)
{
	static const char *const folders[] = {"blobs", "traces", "records", "incoming", "pieces"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < sizeof folders / sizeof *folders; i++)
		st = j->engine->list(j->store, folders[i], each, j, err);
	return st;
}

/* Deletes nothing if an unexpectedly large share has no row: the catalogue may be an old backup. */
static enum tw_status sweep_all(struct tw_store_job *j, struct tw_err *err)
{
	enum tw_status st;

	j->swept = j->seen = j->unnamed = 0;
	st = over_all(j, count_one, err);
	if (st == TW_OK && j->unnamed > SWEEP_FEW && j->unnamed > j->seen / SWEEP_SHARE)
		st = tw_fail(err, TW_CONFLICT,
		        "%llu of %llu files have no row: nothing was deleted; is the catalogue an "
		        "older copy?",
		        (unsigned long long)j->unnamed, (unsigned long long)j->seen);
	return st == TW_OK ? over_all(j, sweep_one, err) : st;
}

/* Killed servers leave objects that they were to delete, so several servers sweep by default. */
static int64_t sweep_every_ms(const struct tw_store_job *j)
{
	const unsigned s = j->parts.claim.storage->sweep_s;

	return (int64_t)(s || !tw_catalogue_is_shared(j->catalogue) ? s : SHARED_SWEEP_S) * 1000;
}

static void sweep(struct tw_store_job *j)
{
	const int64_t every_ms = sweep_every_ms(j);
	struct tw_err err = {.msg = ""};
	enum tw_status st;

	if (!every_ms || tw_monotonic_ms() < j->sweep_ms ||
	        j->engine->ready(j->store, NULL) != TW_OK)
		return;
	if (take_lease(j, &err) != TW_OK) { /* another server swept, or is sweeping */
		j->sweep_ms = tw_monotonic_ms() + every_ms;
		return;
	}
	st = sweep_all(j, &err);
	if (st == TW_OK && j->engine->tidy(j->store, store_now(j) - TW_DAY_MS, &err) != TW_OK)
		tw_log_err(TW_LOG_INFO, "storage_parts", "uploads in parts are not listed", &err);
	j->sweep_ms = tw_monotonic_ms() + every_ms;
	if (tw_periodic_stopping(j->thread))
		return;
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "storage_not_swept", "listing stored objects", &err);
	else
		tw_log(TW_LOG_INFO, "storage_swept", tw_log_number("removed", (int64_t)j->swept));
}

/* --- the thread --- */

static void supervise(struct tw_periodic *p, void *arg)
{
	struct tw_store_job *j = arg;

	j->thread = p;
	do_due(j);
	sweep(j);
}

enum tw_status tw_store_job_start(
        const struct tw_store_job_parts *parts, struct tw_store_job **ret, struct tw_err *err)
{
	struct tw_store_job *j = tw_mem_zalloc(1, sizeof *j);
	struct tw_periodic *thread = NULL;
	enum tw_status st = TW_OK;

	if (!j)
		return tw_oom(err);
	j->parts = *parts;
	j->catalogue = parts->claim.catalogue;
	j->blobs = parts->claim.blobs;
	j->engine = tw_blobs_engine(j->blobs, &j->store);
	j->probe_ms = tw_monotonic_ms() + PROBE_MS;
	j->sweep_ms = tw_monotonic_ms() + sweep_every_ms(j);
	if (j->engine->remote)
		st = tw_periodic_start(
		        &(struct tw_periodic_task){"storage", supervise, LOOK_S * 1000}, j, &thread,
		        err);
	if (st != TW_OK) {
		tw_mem_free(j);
		return st;
	}
	j->thread = thread;
	*ret = j;
	return TW_OK;
}

struct tw_store_job *tw_store_job_stop(struct tw_store_job *j)
{
	if (!j)
		return NULL;
	(void)tw_periodic_stop(j->thread);
	tw_mem_free(j);
	return NULL;
}

/* --- calls of other parts --- */

static enum tw_status drop_blob(void *arg, const char *sha256, struct tw_err *err)
{
	return tw_blob_delete(arg, sha256, err);
}

/* Other servers do not see this process's lock; the catalogue's lock excludes them. */
static enum tw_status drop_unused(struct tw_store_job *j, const char *sha256, struct tw_err *err)
{
	return tw_catalogue_is_shared(j->catalogue)
	               ? tw_catalogue_unless_used(j->catalogue, sha256, drop_blob, j->blobs, err)
	               : drop_blob(j->blobs, sha256, err);
}

static void wake(struct tw_store_job *j)
{
	atomic_store(&j->has_drops, true);
	tw_periodic_wake(j->thread);
}

void tw_store_drop_blobs(struct tw_store_job *j, const struct tw_blob_list *blobs)
{
	if (!blobs->n)
		return;
	if (tw_blobs_remote(j->blobs)) { /* the transaction added their keys */
		wake(j);
		return;
	}
	tw_blob_drop_begin(j->blobs);
	for (size_t i = 0; i < blobs->n; i++) {
		const char *sha256 = blobs->sha256[i];
		bool used = true; /* another upload may have the same content */
		struct tw_err err;

		if (tw_catalogue_has_blob(j->catalogue, sha256, &used, NULL) == TW_OK && !used &&
		        drop_unused(j, sha256, &err) != TW_OK)
			tw_log_err(TW_LOG_WARN, "blob_not_deleted", sha256, &err);
	}
	tw_blob_drop_end(j->blobs);
}

void tw_store_drop_orphan_blob(struct tw_store_job *j, const char *sha256)
{
	char key[TW_STORE_KEY];

	if (!tw_blobs_remote(j->blobs))
		tw_store_drop_blobs(j, &(struct tw_blob_list){&sha256, 1});
	else if (tw_blob_key(sha256, key))
		tw_store_drop_key(j, key);
}

void tw_store_drop_key(struct tw_store_job *j, const char *key)
{
	struct tw_err err;

	if (!tw_blobs_remote(j->blobs))
		return;
	if (tw_catalogue_file_drop(j->catalogue, key, &err) != TW_OK) /* the sweep finds it */
		tw_log_err(TW_LOG_WARN, "object_not_deleted", key, &err);
	wake(j);
}

void tw_store_drop_trace(struct tw_store_job *j, const char *trace_id)
{
	if (tw_blobs_remote(j->blobs))
		wake(j);
	else
		(void)tw_trace_delete(j->blobs, trace_id, NULL);
}

void tw_store_drop_orphan(struct tw_store_job *j, const char *trace_id)
{
	char key[TW_STORE_KEY];

	tw_store_drop_trace(j, trace_id);
	if (tw_trace_key(trace_id, key))
		tw_store_drop_key(j, key);
	tw_record_key(trace_id, key);
	tw_store_drop_key(j, key);
}
