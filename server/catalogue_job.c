/*
 * catalogue_job.c - the durable queue: a row per trace that is not decoded yet.
 *
 * A claim is a lease: when its time runs out (the claimer died) another claim
 * may take the job.  Ending a job checks that the trace is still there, because
 * it may have been deleted meanwhile.
 */
#include "catalogue_internal.h"

#include <stdio.h>
#include <string.h>

enum { RETRY_AFTER_MS = 500, WAIT_LEAST_MS = 1000, WAIT_MOST_MS = 60000 };

static enum tw_status next_job(sqlite3 *db, int64_t now, struct tw_arena *a, struct tw_job_row *ret,
        bool *ret_found, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* job_by_due, twice */
	        "SELECT * FROM (SELECT project_id, trace_id, tries, due_ms FROM job"
	        " WHERE claimed=0 AND due_ms<=?1 ORDER BY due_ms LIMIT 1)"
	        " UNION ALL SELECT * FROM (SELECT project_id, trace_id, tries, due_ms FROM job"
	        " WHERE claimed=1 AND due_ms<=?1 ORDER BY due_ms LIMIT 1) LIMIT 1",
	        "i", now);

	if (st != TW_OK)
		return st;
	*ret_found = tw_cat_row(&q);
	if (*ret_found) {
		*ret = (struct tw_job_row){tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a),
		        (uint32_t)tw_cat_int(&q, 2) + 1};
		if (!ret->project_id || !ret->trace_id)
			st = tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory");
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status set_state(
        sqlite3 *db, const struct tw_job_row *job, enum tw_trace_state state, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "UPDATE trace SET state=?, tries=? WHERE project_id=? AND trace_id=?", "iitt",
	        (int64_t)state, (int64_t)job->tries, job->project_id, job->trace_id);
}

static enum tw_status take(sqlite3 *db, const struct tw_job_row *job, const char *owner,
        int64_t lease_end_ms, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "UPDATE job SET claimed=1, due_ms=?, tries=?, owner=?"
	        " WHERE project_id=? AND trace_id=?",
	        "iittt", lease_end_ms, (int64_t)job->tries, owner, job->project_id, job->trace_id);

	return st == TW_OK ? set_state(db, job, TW_TRACE_DECODING, err) : st;
}

enum tw_status tw_catalogue_job_claim(struct tw_catalogue *c, const char *owner, int64_t lease_ms,
        struct tw_arena *a, struct tw_job_row *ret, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	struct tw_job_row job;
	bool found = false;
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = next_job(db, now, a, &job, &found, err); /* a look that writes nothing */
	tw_cat_done(c, db);
	if (st == TW_OK && found)
		st = tw_cat_begin(c, err);
	if (st != TW_OK)
		return st;
	if (found) {
		st = next_job(c->writer, now, a, &job, &found, err);
		if (st == TW_OK && found)
			st = take(c->writer, &job, owner, now + lease_ms, err);
		st = tw_cat_end(c, st, err);
	}
	if (st == TW_OK && !found)
		return tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "nothing is queued");
	if (st == TW_OK)
		*ret = job;
	return st;
}

/* TW_NOT_FOUND when the trace was deleted meanwhile. */
static enum tw_status drop_job(sqlite3 *db, const struct tw_job_row *job, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st =
	        tw_cat_exec(db, &changed, err, "DELETE FROM job WHERE project_id=? AND trace_id=?",
	                "tt", job->project_id, job->trace_id);

	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "the trace was deleted meanwhile");
	return st;
}

enum tw_status tw_catalogue_job_done(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_trace_summary *s, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = drop_job(c->writer, job, err);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err,
		        "UPDATE trace SET state=2, ready_ms=?, tries=?, format=?, "
		        "decoder_version=?,"
		        " slices=?, threads=?, methods=?, max_depth=?, duration_ns=?, "
		        "input_bytes=?,"
		        " decoded_bytes=?, file_bytes=?, losses=?, repairs=?,"
		        " error_status='', error_message='', error_offset=-1"
		        " WHERE project_id=? AND trace_id=?",
		        "iitiiiiiiiiiiitt", tw_cat_now_ms(), (int64_t)job->tries, s->format,
		        (int64_t)s->decoder_version, (int64_t)s->slices, (int64_t)s->threads,
		        (int64_t)s->methods, (int64_t)s->max_depth, s->duration_ns,
		        (int64_t)s->input_bytes, (int64_t)s->decoded_bytes, (int64_t)s->file_bytes,
		        (int64_t)s->losses, (int64_t)s->repairs, job->project_id, job->trace_id);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_job_failed(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err)
{
	int64_t offset = why->offset == TW_NO_OFFSET ? -1 : (int64_t)why->offset;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = drop_job(c->writer, job, err);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err,
		        "UPDATE trace SET state=3, tries=?, error_status=?, error_message=?,"
		        " error_offset=? WHERE project_id=? AND trace_id=?",
		        "ittitt", (int64_t)job->tries, tw_status_word(why->code), why->msg, offset,
		        job->project_id, job->trace_id);
	return tw_cat_end(c, st, err);
}

/* Waits longer with every try, so that a job that kills its worker does not spin. */
enum tw_status tw_catalogue_job_retry(
        struct tw_catalogue *c, const struct tw_job_row *job, struct tw_err *err)
{
	int64_t due =
	        tw_cat_now_ms() + ((int64_t)RETRY_AFTER_MS << (job->tries < 6 ? job->tries : 6));
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, &changed, err,
	        "UPDATE job SET claimed=0, due_ms=?, owner='' WHERE project_id=? AND trace_id=?",
	        "itt", due, job->project_id, job->trace_id);
	if (st == TW_OK && changed)
		st = set_state(c->writer, job, TW_TRACE_QUEUED, err);
	return tw_cat_end(c, st, err);
}

/* The longer it has been there, the longer it waits: a quarter of its age, a minute at most. */
static enum tw_status put_off(
        sqlite3 *db, const struct tw_job_row *job, int64_t now, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err,
	        "UPDATE job SET claimed=0, owner='', tries=?, due_ms=?4+max(min((?4-queued_ms)/4,"
	        "?6),?5) WHERE project_id=?2 AND trace_id=?3",
	        "ittiii", (int64_t)job->tries - 1, job->project_id, job->trace_id, now,
	        (int64_t)WAIT_LEAST_MS, (int64_t)WAIT_MOST_MS);

	if (st == TW_OK && changed == 0)
		st = tw_fail(err, TW_NOT_FOUND, TW_NO_OFFSET, "the trace was deleted meanwhile");
	return st;
}

enum tw_status tw_catalogue_job_wait(struct tw_catalogue *c, const struct tw_job_row *job,
        const struct tw_err *why, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = put_off(c->writer, job, tw_cat_now_ms(), err);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err,
		        "UPDATE trace SET state=0, tries=?, error_status=?, error_message=?,"
		        " error_offset=-1 WHERE project_id=? AND trace_id=?",
		        "itttt", (int64_t)job->tries - 1, tw_status_word(why->code), why->msg,
		        job->project_id, job->trace_id);
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_jobs_recover(struct tw_catalogue *c, struct tw_err *err)
{
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	/* A try that the server's own death cut short does not count against the trace. */
	st = tw_cat_exec(c->writer, NULL, err,
	        "UPDATE job SET claimed=0, due_ms=0, owner='', tries=max(tries-1,0) WHERE "
	        "claimed=1",
	        "");
	if (st == TW_OK) /* what was put off may have been mended meanwhile */
		st = tw_cat_exec(c->writer, NULL, err,
		        "UPDATE job SET due_ms=?1 WHERE claimed=0 AND due_ms>?1", "i",
		        tw_cat_now_ms());
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err, /* those being decoded have a job */
		        "UPDATE trace SET state=0 WHERE state=1 AND (project_id, trace_id) IN"
		        " (SELECT project_id, trace_id FROM job)",
		        "");
	return tw_cat_end(c, st, err);
}

enum tw_status tw_catalogue_trace_requeue(
        struct tw_catalogue *c, const char *project_id, const char *trace_id, struct tw_err *err)
{
	int64_t now = tw_cat_now_ms();
	enum tw_status st = tw_cat_begin(c, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_exec(c->writer, NULL, err,
	        "INSERT INTO job(project_id,trace_id,due_ms,queued_ms) SELECT project_id, trace_id,"
	        " ?3, ?3 FROM trace WHERE project_id=?1 AND trace_id=?2 ON CONFLICT DO NOTHING",
	        "tti", project_id, trace_id, now);
	if (st == TW_OK)
		st = tw_cat_set_names(c->writer, project_id, trace_id, NULL, err);
	if (st == TW_OK)
		st = tw_cat_exec(c->writer, NULL, err,
		        "UPDATE trace SET state=0, tries=0, error_status='', error_message='',"
		        " error_offset=-1 WHERE project_id=? AND trace_id=?",
		        "tt", project_id, trace_id);
	return tw_cat_end(c, st, err);
}

static enum tw_status read_stats(sqlite3 *db, struct tw_queue_stats *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	int64_t oldest;
	enum tw_status st = tw_cat_query(&q, db, err, /* a row per trace not yet decoded: small */
	        "SELECT total(claimed=0), total(claimed), min(iif(claimed=0, queued_ms, NULL)) "
	        "FROM job",
	        "");

	if (st != TW_OK)
		return st;
	*ret = (struct tw_queue_stats){0};
	if (tw_cat_row(&q)) {
		ret->queued = (uint64_t)tw_cat_int(&q, 0);
		ret->decoding = (uint64_t)tw_cat_int(&q, 1);
		oldest = tw_cat_int(&q, 2);
		ret->oldest_ms = oldest ? tw_cat_now_ms() - oldest : 0;
	}
	return tw_cat_close(&q, err);
}

enum tw_status tw_catalogue_queue_stats(
        struct tw_catalogue *c, struct tw_queue_stats *ret, struct tw_err *err)
{
	sqlite3 *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = read_stats(db, ret, err);
	tw_cat_done(c, db);
	return st;
}
