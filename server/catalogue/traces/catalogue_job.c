/*
 * catalogue_job.c - the durable queues: a row per trace that is not decoded yet (job), and one per
 * mapping that is not compiled yet (mapping_job; added and ended by catalogue_mapping.c).  The
 * order of claims is decided in catalogue_turn.c.
 *
 * A claim is a lease: when it expires (the claimer died) another claim may take the job.  Ending a
 * job checks that it still belongs to its claimer, because the job may have been deleted or taken
 * over in the meantime.
 */
#include "server/catalogue/traces/catalogue_job.h"
#include "server/base/age_clock.h"
#include "server/catalogue/catalogue.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/storage/small_file.h"
#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/storage/blob_store.h"

enum { RETRY_AFTER_MS = 500, WAIT_LEAST_MS = 1000, WAIT_MOST_MS = 60000 };
enum { KEEP_ARENA = 1 << 16 };

/* Only the claim to end. */
#define OWN(table) " AND claimed=1 AND owner=? AND " table ".attempts=?"

/* A claim changes only the job's row: a trace in state 0 whose job is claimed is being decoded
 * (TW_CAT_TRACE_STATE). */
static enum tw_status set_attempts(
        struct tw_db *db, const struct tw_job_row *job, int64_t attempts, struct tw_err *err)
{
	if (job->queue == TW_QUEUE_MAPPINGS) /* shown from its job's row */
		return TW_OK;
	return tw_cat_exec(db, NULL, err,
	        "UPDATE trace SET attempts=? WHERE project_id=? AND trace_id=? AND attempts<>?",
	        "itti", attempts, job->project_id, job->trace_id, attempts);
}

enum tw_status tw_catalogue_queue_claim(struct tw_catalogue *c, const struct tw_claim *of,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err)
{
	size_t n;

	return tw_catalogue_jobs_claim(c, of, 0, a, ret, 1, &n, err);
}

enum tw_status tw_catalogue_jobs_claim(struct tw_catalogue *c, const struct tw_claim *of,
        uint64_t small_bytes, struct tw_arena *a, struct tw_job_row *ret, size_t cap, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_cat_turn by = {.queue = of->queue,
	        .owner = tw_arena_str(a, tw_str_of(of->owner)),
	        .lease_ms = of->lease_ms,
	        .per_project = of->per_project,
	        .small_bytes = small_bytes};
	enum tw_status st;

	if (!by.owner)
		return tw_oom(err);
	(void)pthread_mutex_lock(&c->turns[of->queue].lock);
	st = tw_cat_claim(c, &by, a, ret, cap, ret_n, err);
	(void)pthread_mutex_unlock(&c->turns[of->queue].lock);
	if (st == TW_OK && !*ret_n) {
		tw_fair_idle(&c->turns[of->queue].fair);
		st = tw_fail(err, TW_NOT_FOUND, "nothing is queued");
	}
	return st;
}

/* Nothing changed: determines whether it was deleted or taken over. */
static enum tw_status check_owner(
        struct tw_db *db, const struct tw_job_row *job, int changed, struct tw_err *err)
{
	const bool mapping = job->queue == TW_QUEUE_MAPPINGS;
	int64_t there = 0;
	enum tw_status st = TW_OK;

	if (changed)
		return TW_OK;
	st = tw_cat_get_int(db, &there, err, /* primary key */
	        mapping ? "SELECT 1 FROM mapping_job WHERE project_id=? AND job_id=?"
	                : "SELECT 1 FROM trace WHERE project_id=? AND trace_id=?",
	        "tt", job->project_id, job->trace_id);
	if (st != TW_OK)
		return st;
	return there ? tw_fail(err, TW_CONFLICT, "the claim expired, and another server has the %s",
	                       mapping ? "mapping" : "trace")
	             : tw_fail(err, TW_NOT_FOUND, "the %s was deleted",
	                       mapping ? "upload of the mapping" : "trace");
}

enum tw_status tw_cat_drop_job(struct tw_db *db, const struct tw_job_row *job, struct tw_err *err)
{
#define DROP(table, id) "DELETE FROM " table " WHERE project_id=? AND " id "=?" OWN(table)
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err, TW_OF_QUEUE(job->queue, DROP), "ttti",
	        job->project_id, job->trace_id, job->owner, (int64_t)job->attempts);

	return st == TW_OK ? check_owner(db, job, changed, err) : st;
}

/* Primary key.  A row that another transaction has locked is left out: it is renewed next time, or
 * its job just ended. */
#define RENEW(table, id)                                                                           \
	"UPDATE " table " SET due_ms=mine.due FROM (SELECT q.project_id, q." id                    \
	", r.c5 AS due FROM {rows}, " table " q WHERE q.project_id=r.c1 AND q." id                 \
	"=r.c2 AND q.claimed=1 AND q.owner=r.c3 AND q.attempts=r.c4" TW_EITHER(                    \
	        "", " FOR UPDATE OF q SKIP LOCKED") ") mine WHERE " table                          \
	                                            ".project_id=mine.project_id AND " table       \
	                                            "." id "=mine." id

static enum tw_status renew_queue(struct tw_db *db, enum tw_queue queue,
        const struct tw_job_row *const *jobs, size_t n, int64_t until_ms, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db, .types = "tttii", .sql = TW_OF_QUEUE(queue, RENEW)};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (jobs[i]->queue == queue)
			st = tw_cat_rows_add(&rows, err, jobs[i]->project_id, jobs[i]->trace_id,
			        jobs[i]->owner, (int64_t)jobs[i]->attempts, until_ms);
	return tw_cat_rows_end(&rows, st, err);
}

static enum tw_status renew(struct tw_db *db, const struct tw_job_row *const *jobs, size_t n,
        int64_t lease_ms, struct tw_err *err)
{
	int64_t now = 0;
	enum tw_status st = tw_cat_now(db, &now, err);

	for (enum tw_queue q = 0; st == TW_OK && q < TW_QUEUES; q++)
		st = renew_queue(db, q, jobs, n, now + lease_ms, err);
	return st;
}

/* On a separate connection: it waits for no other writer. */
static enum tw_status open_renewer(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_cat_reader_new(c, &c->renewer, err);

	/* the lock of an only server is held by one connection */
	return st == TW_OK && c->shared ? tw_cat_postgres_hold(c->renewer, false, err) : st;
}

enum tw_status tw_catalogue_jobs_renew(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t lease_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = TW_OK;

	if (tw_cat_is_sqlite(c)) {
		st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);
		return st == TW_OK ? tw_cat_end(c, w, renew(w, jobs, n, lease_ms, err), err) : st;
	}
	if (!c->renewer)
		st = open_renewer(c, err);
	return st == TW_OK ? renew(c->renewer, jobs, n, lease_ms, err) : st;
}

/* primary key */
#define HELD(table, id)                                                                            \
	"SELECT " id " FROM " table " WHERE project_id=?1 AND " id TW_CAT_AMONG_TEXTS(             \
	        "?2") " AND claimed=1 AND owner=?3 AND attempts=?4 AND due_ms>?5" TW_EITHER("",    \
	        "+" TW_CAT_DATABASE_MS)

static enum tw_status read_held(struct tw_db *db, const struct tw_job_row *const *jobs, size_t n,
        const char *ids, int64_t until_ms, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, TW_OF_QUEUE(jobs[0]->queue, HELD), "tttii",
	        jobs[0]->project_id, ids, jobs[0]->owner, (int64_t)jobs[0]->attempts, until_ms);

	while (tw_cat_row(&q)) {
		const char *id = tw_cat_str(&q, 0);

		for (size_t i = 0; id && i < n; i++)
			ret[i] = ret[i] || strcmp(jobs[i]->trace_id, id) == 0;
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_jobs_held(struct tw_catalogue *c, const struct tw_job_row *const *jobs,
        size_t n, int64_t for_ms, bool *ret, struct tw_err *err)
{
	const int64_t now = tw_cat_is_sqlite(c) ? tw_wait_ms() : 0;
	const char **of;
	struct tw_arena *a;
	struct tw_db *db;
	enum tw_status st;

	memset(ret, 0, n * sizeof *ret);
	if (n == 0)
		return TW_OK;
	a = tw_arena_new(KEEP_ARENA);
	of = a ? tw_arena_alloc(a, n, sizeof *of) : NULL;
	st = of ? tw_cat_reader(c, &db, err) : tw_oom(err);
	if (st == TW_OK) {
		const char *ids;

		for (size_t i = 0; i < n; i++)
			of[i] = jobs[i]->trace_id;
		ids = tw_cat_texts(db, of, n, a);
		st = ids ? read_held(db, jobs, n, ids, now + for_ms, ret, err) : tw_oom(err);
		tw_cat_done(c, db);
	}
	tw_arena_free(a);
	return st;
}

enum tw_status tw_catalogue_job_held(struct tw_catalogue *c, const struct tw_job_row *job,
        int64_t for_ms, bool *ret, struct tw_err *err)
{
	return tw_catalogue_jobs_held(c, &job, 1, for_ms, ret, err);
}

/* In PostgreSQL one statement.  An object of an earlier decode is deleted if the file is in a row
 * now. */
static enum tw_status set_ready(struct tw_db *w, const struct tw_job_row *job,
        const struct tw_trace_summary *s, struct tw_err *err)
{
#define READY                                                                                      \
	"UPDATE trace SET state=2, ready_ms=?1, attempts=?2, error_status='', error_message='',"   \
	" error_offset=-1, file_sha256=?3, anr=?4, {sets}"
	const bool one = w->engine->is_shared;
	char object[TW_STORE_KEY] = "";
	enum tw_status st = one ? TW_OK : tw_cat_drop_job(w, job, err);

	if (s->file_hex)
		(void)tw_trace_key(job->trace_id, object);
	if (st == TW_OK)
		st = tw_cat_write(w, &(struct tw_cat_written){&tw_trace_summary_fields, s, NULL},
		        err, /* primary keys */
		        TW_EITHER(READY " WHERE project_id=?5 AND trace_id=?6 AND ?7=?7 AND ?8=?8"
		                        " AND ?9=?9",
		                "WITH gone AS (DELETE FROM job WHERE project_id=?5 AND trace_id=?6"
		                " AND claimed=1 AND owner=?7 AND attempts=?2 RETURNING project_id,"
		                " trace_id), calm AS (DELETE FROM quarantine USING gone WHERE"
		                " quarantine.project_id=gone.project_id AND"
		                " quarantine.trace_id=gone.trace_id), ready AS (" READY
		                " FROM gone WHERE trace.project_id=gone.project_id AND"
		                " trace.trace_id=gone.trace_id), large AS (DELETE FROM small_file"
		                " USING gone WHERE small_file.trace_id=gone.trace_id AND"
		                " part='" TW_SMALL_DECODED "' AND ?8=''), earlier AS (INSERT INTO"
		                " file_drop(key,due_ms,attempts) SELECT ?9," TW_CAT_DATABASE_MS ",0"
		                " FROM gone JOIN trace USING(project_id,trace_id) WHERE ?9<>''"
		                " AND file_bytes>0 AND NOT EXISTS(SELECT 1 FROM small_file f WHERE"
		                " f.trace_id=gone.trace_id AND f.part='" TW_SMALL_DECODED "')"
		                " ON CONFLICT(key) DO UPDATE SET due_ms=excluded.due_ms), small"
		                " AS (INSERT INTO small_file(trace_id,part,project_id,content)"
		                " SELECT trace_id,"
		                "'" TW_SMALL_DECODED "',project_id,decode(?8,'hex') FROM gone WHERE"
		                " ?8<>'' ON CONFLICT(trace_id,part) DO UPDATE SET"
		                " content=excluded.content) SELECT 1 FROM gone"),
		        "iittttttt", tw_unix_ms(), (int64_t)job->attempts, s->file_sha256, s->anr,
		        job->project_id, job->trace_id, job->owner, s->file_hex ? s->file_hex : "",
		        object);
	if (st == TW_OK && one)
		return check_owner(w, job, (int)tw_db_changed(w), err);
	return st == TW_OK ? tw_cat_quarantine_leave(w, job, err) : st;
}

enum tw_status tw_catalogue_job_publish(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *s, const struct tw_job_move *move, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st =
	        move ? tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err) : tw_cat_begin_one(c, &w, err);

	tw_fair_end(&c->turns[job->queue].fair, job->trace_id);
	if (st != TW_OK)
		return st;
	st = set_ready(w, job, s, err);
	if (st == TW_OK && move)
		st = tw_cat_may_idle(w, err);
	if (st == TW_OK && move)
		st = move->run(move->arg, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_jobs_publish(struct tw_catalogue *c, const struct tw_job_row *jobs,
        const struct tw_trace_summary *summaries, const struct tw_job_move *moves, size_t n,
        enum tw_status *ret, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	for (size_t i = 0; i < n; i++)
		tw_fair_end(&c->turns[jobs[i].queue].fair, jobs[i].trace_id);
	if (st != TW_OK)
		return st;
	if (moves)
		st = tw_cat_may_idle(w, err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		ret[i] = set_ready(w, &jobs[i], &summaries[i], err);
		if (ret[i] != TW_NOT_FOUND && ret[i] != TW_CONFLICT) /* these changed nothing */
			st = ret[i];
		if (ret[i] == TW_OK && moves)
			st = moves[i].run(moves[i].arg, err);
	}
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, const struct tw_death_note *death, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t offset = why->offset == TW_NO_OFFSET ? -1 : (int64_t)why->offset;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	tw_fair_end(&c->turns[job->queue].fair, job->trace_id);
	if (st != TW_OK)
		return st;
	st = tw_cat_drop_job(w, job, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "UPDATE trace SET state=3, attempts=?, error_status=?, error_message=?,"
		        " error_offset=? WHERE project_id=? AND trace_id=?",
		        "ittitt", (int64_t)job->attempts, tw_status_name(why->code), why->msg,
		        offset, job->project_id, job->trace_id);
	if (st == TW_OK)
		st = death ? tw_cat_quarantine_enter(w, job, death, err)
		           : tw_cat_quarantine_leave(w, job, err);
	return tw_cat_end(c, w, st, err);
}

/* How to end the claim of a job that remains in the queue. */
struct claim_end {
	int64_t least_ms, most_ms; /* the delay is a quarter of the job's age, within these limits;
	                              0: due immediately */
	bool counts;               /* counts as an attempt */
	const struct tw_err *why;  /* shown while it waits; NULL: nothing */
};

/* Records the reason for the wait in the trace, or in the job of a mapping. */
static enum tw_status set_reason(struct tw_db *db, const struct tw_job_row *job, int64_t attempts,
        const struct tw_err *why, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        job->queue == TW_QUEUE_MAPPINGS
	                ? "UPDATE mapping_job SET attempts=?, error_status=?, error_message=?,"
	                  " error_offset=-1 WHERE project_id=? AND job_id=?"
	                : "UPDATE trace SET attempts=?, error_status=?, error_message=?,"
	                  " error_offset=-1 WHERE project_id=? AND trace_id=?",
	        "itttt", attempts, tw_status_name(why->code), why->msg, job->project_id,
	        job->trace_id);
}

static enum tw_status end_claim(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct claim_end *how, struct tw_err *err)
{
#define END_CLAIM(table, id)                                                                       \
	"UPDATE " table " SET claimed=0, owner='', attempts=?4, due_ms=CASE WHEN ?7=0 THEN"        \
	" queued_ms ELSE ?5+max(min((?5-queued_ms)/4,?7),?6) END WHERE project_id=?1 AND " id      \
	"=?2 AND claimed=1 AND owner=?3 AND " table ".attempts=?8"
	const int64_t attempts = (int64_t)job->attempts - !how->counts;
	struct tw_db *w = NULL;
	int64_t now = 0;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	tw_fair_end(&c->turns[job->queue].fair, job->trace_id);
	if (st != TW_OK)
		return st;
	st = tw_cat_now(w, &now, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, &changed, err, TW_OF_QUEUE(job->queue, END_CLAIM), "tttiiiii",
		        job->project_id, job->trace_id, job->owner, attempts, now, how->least_ms,
		        how->most_ms, (int64_t)job->attempts);
	if (st == TW_OK)
		st = check_owner(w, job, changed, err);
	if (st == TW_OK)
		st = how->why ? set_reason(w, job, attempts, how->why, err)
		              : set_attempts(w, job, attempts, err);
	return tw_cat_end(c, w, st, err);
}

/* Delays grow with every attempt, so that a job that kills its worker does not spin. */
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err)
{
	const int64_t later = (int64_t)RETRY_AFTER_MS << (job->attempts < 6 ? job->attempts : 6);

	return end_claim(c, job, &(struct claim_end){later, later, true, NULL}, err);
}

enum tw_status tw_catalogue_job_return(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err)
{
	return end_claim(c, job, &(struct claim_end){0, 0, false, NULL}, err);
}

enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err)
{
	return end_claim(c, job, &(struct claim_end){WAIT_LEAST_MS, WAIT_MOST_MS, false, why}, err);
}

#define RELEASE(table, id)                                                                         \
	"UPDATE " table " SET claimed=0, due_ms=0, owner='', attempts=max(attempts-1,0) WHERE"     \
	" claimed=1 AND (?1='' OR owner=?1)"

/* "": any owner's.  An attempt interrupted by the server's own end does not count. */
static enum tw_status release(struct tw_db *db, const char *owner, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (enum tw_queue q = 0; st == TW_OK && q < TW_QUEUES; q++)
		st = tw_cat_exec(db, NULL, err, TW_OF_QUEUE(q, RELEASE), "t", owner);
	return st;
}

enum tw_status tw_catalogue_jobs_release_except(struct tw_catalogue *c, enum tw_queue queue,
        const char *owner, const char *const *held, size_t n, struct tw_err *err)
{
#define RELEASE_OTHERS(table, id) RELEASE(table, id) " AND NOT " id TW_CAT_AMONG_TEXTS("?2")
	struct tw_arena *a = tw_arena_new(KEEP_ARENA);
	struct tw_db *w = NULL;
	const char *ids;
	enum tw_status st = a ? tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err) : tw_oom(err);

	if (st == TW_OK) {
		ids = tw_cat_texts(w, held, n, a);
		st = !ids ? tw_oom(err)
		          : tw_cat_exec(w, NULL, err, /* claimed jobs: few */
		                    TW_OF_QUEUE(queue, RELEASE_OTHERS), "tt", owner, ids);
		st = tw_cat_end(c, w, st, err);
	}
	tw_arena_free(a);
	return st;
}

enum tw_status tw_catalogue_jobs_leave(
        struct tw_catalogue *c, const char *owner, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	return st == TW_OK ? tw_cat_end(c, w, release(w, owner, err), err) : st;
}

#define DUE_NOW(table, id) "UPDATE " table " SET due_ms=?1 WHERE claimed=0 AND due_ms>?1"

enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	if (st != TW_OK)
		return st;
	if (!tw_catalogue_is_shared(c))
		st = release(w, "", err);
	for (enum tw_queue q = 0; st == TW_OK && q < TW_QUEUES;
	        q++) /* the cause may have been removed */
		st = tw_cat_exec(w, NULL, err, TW_OF_QUEUE(q, DUE_NOW), "i", tw_wait_ms());
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_trace_requeue(
        struct tw_catalogue *c, const char *project_id, const char *trace_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int64_t now = tw_wait_ms();
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	/* waits for a server that ends the job now; the trace is decoded then */
	st = tw_cat_exec(w, NULL, err,
	        "SELECT 1 FROM job WHERE project_id=? AND trace_id=?" TW_CAT_FOR_UPDATE, "tt",
	        project_id, trace_id);
	if (st == TW_OK) /* a fleet engine's rows are replaced by those of the new decode */
		st = tw_cat_change(w, "the upload of this trace is no longer stored", err,
		        "UPDATE trace SET state=0, attempts=0, error_status='', error_message='',"
		        " error_offset=-1, anr_state=0, detected=0,"
		        " rollup_state=CASE WHEN rollup_state=2 OR EXISTS(SELECT 1 FROM"
		        " fleet_engine) THEN 0 ELSE rollup_state END"
		        " WHERE project_id=? AND trace_id=? AND has_upload=1",
		        "tt", project_id, trace_id);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO job(project_id,trace_id,due_ms,queued_ms,bytes)"
		        " SELECT project_id, trace_id, " TW_CAT_BY_NOW(
		                "?3") ", ?3, upload_bytes FROM"
		                      " trace WHERE project_id=?1 AND trace_id=?2 ON CONFLICT DO"
		                      " NOTHING",
		        "tti", project_id, trace_id, now);
	if (st == TW_OK)
		st = tw_cat_clear_names(w, project_id, trace_id, err);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"trace.requeue", project_id, trace_id}, err);
}

#define STAT(member) TW_FIELD(struct tw_queue_stats, member, "", NULL)
static const struct tw_fields stat_fields = TW_FIELDS_OF(
        STAT(queued), STAT(decoding), STAT(oldest_ms), STAT(mappings), STAT(compiling));

enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err)
{
	enum tw_status st = tw_cat_read_row(c, &stat_fields, NULL, ret, NULL,
	        err, /* a row per trace not yet decoded: small */
	        "SELECT count(*)-sum(claimed), sum(claimed), min(CASE WHEN claimed=0 THEN queued_ms"
	        " END), (SELECT count(*) FROM mapping_job WHERE claimed=0),"
	        " (SELECT count(*) FROM mapping_job WHERE claimed=1) FROM job",
	        "");

	if (st == TW_OK && ret->oldest_ms)
		ret->oldest_ms = tw_wait_ms() - ret->oldest_ms;
	return st;
}
