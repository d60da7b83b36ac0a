#include "server/derive/jobs_retention.h"

#include <stdatomic.h>

#include "server/base/age_clock.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/access/catalogue_audit.h"
#include "server/catalogue/access/catalogue_capture.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/derive/retention.h"
#include "server/fleet/store/fleet_store.h"
#include "server/http/metrics.h"

/* Traces deleted between two reads of the sums that limits by number or bytes need, because a sum
 * reads all rows. */
enum { AT_ONCE = 512, FAILED_MAPPING_DAYS = 30 };
/* Deletions of a batch that may fail without ending it: the files of one trace may be unreadable,
 * but with an unavailable store all deletions fail. */
enum { FAILED_MOST = 8 };

struct tw_retention_job {
	struct tw_retention_parts parts;
	struct tw_catalogue *catalogue;
	int64_t due_ms; /* time of the next run (monotonic) */
	_Atomic bool woken;
	/* of the current run */
	struct tw_periodic *by;
	int64_t now_ms; /* by the age clock */
	struct tw_periodic *thread;
};

static bool is_stopping(const struct tw_retention_job *j)
{
	return tw_periodic_stopping(j->by);
}

/* A failure of one part does not stop the others. */
static void log_failure(enum tw_status st, const char *what, const struct tw_err *err)
{
	if (st != TW_OK)
		tw_log_err(TW_LOG_WARN, "retention", what, err);
}

/* Sets *ret_gone, unless the trace was deleted, pinned or queued in the meantime, which is not a
 * failure. */
static enum tw_status expire(struct tw_retention_job *j, const struct tw_expiry *e,
        struct tw_arena *a, bool *ret_gone, struct tw_err *err)
{
	const struct tw_deleter *d = &j->parts.deleter;
	const char *project_id = e->project_id;
	static const char *const events[] = {"trace_expired", "upload_expired", "decoded_expired"};
	enum tw_expired what = tw_expiry_what(e->why);
	enum tw_status st =
	        what == TW_EXPIRED_UPLOAD ? tw_delete_upload(d, project_id, e->id, a, err)
	        : what == TW_EXPIRED_DECODED
	                ? tw_delete_decoded(d, project_id, e->id, err)
	                : tw_delete_trace(d, project_id, e->id, TW_DELETE_FILES, a, err);

	*ret_gone = st == TW_OK;
	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK) {
		tw_log(TW_LOG_INFO, events[what], tw_log_text("trace", e->id),
		        tw_log_text("reason", tw_expiry_name(e->why)),
		        tw_log_number("bytes", (int64_t)e->bytes));
		tw_metrics_expired(j->parts.metrics, what, e->bytes);
	}
	return st;
}

/* *ret_more: more may be due. */
static enum tw_status expire_some(struct tw_retention_job *j, const char *project_id,
        const struct tw_retention *rules, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct tw_expiry *due = NULL;
	size_t n = 0, failed = 0;
	enum tw_status st = a ? tw_retention_due(j->catalogue, project_id, rules, j->now_ms,
	                                AT_ONCE, a, &due, &n, err)
	                      : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n && !is_stopping(j); i++) {
		bool gone;

		st = expire(j, &due[i], a, &gone, err);
		if (st == TW_OK || ++failed > FAILED_MOST)
			continue;
		log_failure(st, due[i].id, err);
		st = TW_OK;
	}
	*ret_more = st == TW_OK && n > failed;
	tw_arena_free(a);
	return st;
}

static void expire_project(struct tw_retention_job *j, const char *project_id)
{
	struct tw_retention rules;
	struct tw_err err;
	bool more = true;
	enum tw_status st = tw_retention_of(j->catalogue, project_id, &rules, &err);

	while (st == TW_OK && more && !is_stopping(j))
		st = expire_some(j, project_id, &rules, &more, &err);
	log_failure(st, project_id, &err);
}

/* --- deleted projects --- */

/* *ret_more: it had data.  Only a run that finds none deletes its row: work on the project that the
 * deletion overtook may have added more. */
static enum tw_status delete_project(
        struct tw_retention_job *j, const char *project_id, bool *ret_more, struct tw_err *err)
{
	struct tw_fleet_store *fleet = j->parts.fleet;
	enum tw_status st = TW_OK;
	bool any = true;

	*ret_more = false;
	while (st == TW_OK && any && !is_stopping(j)) {
		struct tw_arena *a = tw_arena_new(4 << 20);

		st = a ? tw_delete_project_part(&j->parts.deleter, project_id, a, &any, err)
		       : tw_oom(err);
		*ret_more = *ret_more || any;
		tw_arena_free(a);
	}
	if (st == TW_OK && !any && fleet->engine->drop_project)
		st = fleet->engine->drop_project(fleet, project_id, err);
	return st;
}

static void delete_projects(struct tw_retention_job *j)
{
	char id[TW_ID_BYTES] = "";
	struct tw_err err;

	while (!is_stopping(j) &&
	        tw_catalogue_project_deleted(j->catalogue, id, id, &err) == TW_OK && id[0]) {
		bool more = false;
		enum tw_status st = delete_project(j, id, &more, &err);

		if (st == TW_OK && !more)
			st = tw_catalogue_project_forget(j->catalogue, id, &err);
		log_failure(st, id, &err);
		if (st == TW_OK)
			tw_log(TW_LOG_INFO, more ? "project_deleting" : "project_deleted",
			        tw_log_text("project", id));
	}
}

/* --- the disk --- */

struct disk_run { /* one pass over all projects, until disk usage is below the limit */
	struct tw_retention_job *job;
	const struct tw_project_row *projects;
	size_t n_projects;
	uint64_t over_bytes, traces, bytes;
};

/* *ret_more: something was deleted, but not enough yet. */
static enum tw_status free_some(struct disk_run *f, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	const uint64_t before = f->traces;
	struct tw_expiry *due = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_retention_for_disk(f->job->catalogue, f->projects, f->n_projects,
	                                f->over_bytes, AT_ONCE, a, &due, &n, err)
	                      : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n && !is_stopping(f->job); i++) {
		bool gone = false;

		st = expire(f->job, &due[i], a, &gone, err);
		if (!gone)
			continue;
		f->traces++;
		f->bytes += due[i].bytes;
		f->over_bytes -= due[i].bytes < f->over_bytes ? due[i].bytes : f->over_bytes;
	}
	*ret_more = st == TW_OK && f->over_bytes > 0 && f->traces > before;
	tw_arena_free(a);
	return st;
}

static void log_disk(const struct disk_run *f, const struct tw_disk *disk)
{
	tw_log(TW_LOG_WARN, "disk_expired", tw_log_number("traces", (int64_t)f->traces),
	        tw_log_number("bytes", (int64_t)f->bytes),
	        tw_log_number("used_bytes", (int64_t)disk->used_bytes),
	        tw_log_number("size_bytes", (int64_t)disk->size_bytes),
	        tw_log_text("reason",
	                f->over_bytes == 0
	                        ? "the disk was above --max-disk-use"
	                        : "the disk is above --max-disk-use, and deleting all traces that "
	                          "may be deleted would not free enough space"));
	tw_metrics_disk_expired(f->job->parts.metrics, f->traces, f->bytes);
}

static void free_disk(struct tw_retention_job *j, const struct tw_disk *disk,
        const struct tw_project_row *projects, size_t n)
{
	struct disk_run f = {j, projects, n,
	        .over_bytes = tw_disk_bytes_above(disk, j->parts.config->max_disk_percent)};
	struct tw_err err;
	bool more = true;
	enum tw_status st = TW_OK;

	if (f.over_bytes == 0)
		return;
	while (st == TW_OK && more && !is_stopping(j))
		st = free_some(&f, &more, &err);
	log_failure(st, "disk", &err);
	log_disk(&f, disk);
}

bool tw_retention_disk(const struct tw_config *config, struct tw_disk *ret)
{
	return config->max_disk_percent && !config->storage.blobs[0] &&
	       tw_disk_of(config->data_dir, ret);
}

/* --- all rules --- */

static void expire_audit(struct tw_retention_job *j)
{
	int64_t age_ms = (int64_t)j->parts.config->audit_days * TW_DAY_MS;
	bool more = age_ms > 0;
	struct tw_err err;
	enum tw_status st = TW_OK;

	while (st == TW_OK && more && !is_stopping(j))
		st = tw_catalogue_audit_expire(j->catalogue, j->now_ms - age_ms, &more, &err);
	log_failure(st, "audit", &err);
}

/* Rows that no project's rules cover. */
static void expire_others(struct tw_retention_job *j)
{
	struct tw_err err;

	expire_audit(j);
	/* devices of yesterday and today are retained, as today's are being counted */
	log_failure(tw_catalogue_capture_forget(j->catalogue, j->now_ms / TW_DAY_MS - 1, &err),
	        "capture", &err);
	log_failure(tw_catalogue_mapping_expire(
	                    j->catalogue, j->now_ms - FAILED_MAPPING_DAYS * TW_DAY_MS, &err),
	        "mappings", &err);
}

static void expire_traces(struct tw_retention_job *j)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_project_row *projects = NULL;
	struct tw_disk disk;
	struct tw_err err;
	size_t n = 0;
	enum tw_status st =
	        a ? tw_catalogue_projects(j->catalogue, a, &projects, &n, &err) : tw_oom(&err);

	for (size_t i = 0; st == TW_OK && i < n && !is_stopping(j); i++)
		expire_project(j, projects[i].id);
	if (st == TW_OK && tw_retention_disk(j->parts.config, &disk))
		free_disk(j, &disk, projects, n);
	log_failure(st, "projects", &err);
	tw_arena_free(a);
}

static void run(struct tw_periodic *by, void *arg)
{
	struct tw_retention_job *j = arg;
	struct tw_err err;

	if (!tw_lease_held(j->parts.lease) ||
	        (!atomic_exchange(&j->woken, false) && tw_monotonic_ms() < j->due_ms))
		return;
	if (j->parts.lease) /* a server that acquires the lease late should start early */
		j->due_ms = tw_monotonic_ms() + (int64_t)j->parts.config->retention_every_s * 1000;
	j->by = by;
	j->now_ms = tw_age_ms();
	log_failure(tw_catalogue_end_long_waits(j->catalogue, &err), "waits", &err);
	delete_projects(j);
	expire_traces(j);
	expire_others(j);
}

/* Logged at each start until there are traces that the defaults could delete. */
static void log_defaults(struct tw_retention_job *j)
{
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct tw_project_row *projects = NULL;
	struct tw_use use = {0};
	size_t n = 0;
	bool first = a && tw_catalogue_projects(j->catalogue, a, &projects, &n, NULL) == TW_OK;

	for (size_t i = 0; first && i < n; i++)
		first = tw_catalogue_use(j->catalogue, projects[i].id, &use, NULL) == TW_OK &&
		        use.traces == 0;
	if (first)
		tw_log(TW_LOG_INFO, "retention_defaults",
		        tw_log_number("uploads_days", TW_UPLOADS_DAYS),
		        tw_log_number("traces_days", TW_TRACES_DAYS),
		        tw_log_number("figures_days", j->parts.config->figures_days),
		        tw_log_number("max_disk_use_percent", j->parts.config->max_disk_percent),
		        tw_log_text("reason", "projects change theirs on the page Retention"));
	tw_arena_free(a);
}

enum tw_status tw_retention_job_start(
        const struct tw_retention_parts *parts, struct tw_retention_job **ret, struct tw_err *err)
{
	struct tw_retention_job *j = *ret = tw_mem_zalloc(1, sizeof *j);

	if (!j)
		return tw_oom(err);
	j->parts = *parts;
	j->catalogue = parts->deleter.catalogue;
	log_defaults(j);
	return tw_periodic_start(
	        &(struct tw_periodic_task){"retention", run,
	                tw_lease_interval_s(parts->lease, parts->config->retention_every_s) * 1000},
	        j, &j->thread, err);
}

void tw_retention_job_wake(struct tw_retention_job *j)
{
	if (!j)
		return;
	atomic_store(&j->woken, true);
	tw_periodic_wake(j->thread);
}

struct tw_retention_job *tw_retention_job_stop(struct tw_retention_job *j)
{
	if (j)
		(void)tw_periodic_stop(j->thread);
	tw_mem_free(j);
	return NULL;
}
