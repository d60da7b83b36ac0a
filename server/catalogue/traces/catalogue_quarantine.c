#include "server/catalogue/traces/catalogue_quarantine.h"

#include "server/catalogue/catalogue_internal.h"

#define COLUMNS                                                                                    \
	"SELECT q.trace_id, reason, q.format, error_message, app, build_id, signal,"               \
	" q.decoder_version, created_ms, first_ms, last_ms, deaths, upload_bytes, state,"          \
	" pinned<>0 OR kept_for<>'', title<>'' OR annotations>0"                                   \
	" FROM quarantine q JOIN trace t USING (project_id, trace_id) "

enum tw_status tw_cat_quarantine_enter(struct tw_db *db, const struct tw_job_row *job,
        const struct tw_death_note *note, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO quarantine(project_id,trace_id,reason,signal,format,decoder_version,"
	        "first_ms,last_ms,deaths) VALUES(?1,?2,?3,?4,?5,?6,?7,?7,?8)"
	        " ON CONFLICT(project_id,trace_id) DO UPDATE SET reason=excluded.reason, "
	        "signal=excluded.signal,"
	        " format=excluded.format, decoder_version=excluded.decoder_version,"
	        " last_ms=excluded.last_ms, deaths=quarantine.deaths+excluded.deaths",
	        "tttitiii", job->project_id, job->trace_id, note->reason, (int64_t)note->signal,
	        note->format, (int64_t)note->decoder_version, tw_unix_ms(), (int64_t)job->tries);
}

enum tw_status tw_cat_quarantine_leave(
        struct tw_db *db, const struct tw_job_row *job, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "DELETE FROM quarantine WHERE project_id=? AND trace_id=?", "tt", job->project_id,
	        job->trace_id);
}

static bool read_one(const struct tw_cat_query *q, struct tw_arena *a, struct tw_quarantined *ret)
{
	const char **texts[] = {
	        &ret->id, &ret->reason, &ret->format, &ret->message, &ret->app, &ret->build_id};
	const int n = (int)(sizeof texts / sizeof *texts);
	int at = n;

	for (int i = 0; i < n; i++) {
		*texts[i] = tw_cat_text(q, i, a);
		if (!*texts[i])
			return false;
	}
	ret->signal = (int)tw_cat_int(q, at++);
	ret->decoder_version = (uint32_t)tw_cat_int(q, at++);
	ret->created_ms = tw_cat_int(q, at++);
	ret->first_ms = tw_cat_int(q, at++);
	ret->last_ms = tw_cat_int(q, at++);
	ret->deaths = (uint32_t)tw_cat_int(q, at++);
	ret->bytes = (uint64_t)tw_cat_int(q, at++);
	ret->state = (enum tw_trace_state)tw_cat_int(q, at++);
	ret->pinned = tw_cat_int(q, at++) != 0;
	ret->spoken_of = tw_cat_int(q, at) != 0;
	return true;
}

static enum tw_status read_all(struct tw_cat_query *q, struct tw_arena *a,
        struct tw_quarantined **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_quarantined *rows = tw_arena_alloc(a, TW_QUARANTINE_PAGE, sizeof *rows);
	enum tw_status st = TW_OK;
	size_t n = 0;

	while (rows && st == TW_OK && n < TW_QUARANTINE_PAGE && tw_cat_row(q))
		if (!read_one(q, a, &rows[n++]))
			st = tw_oom(err);
	if (!rows)
		st = tw_oom(err);
	st = tw_cat_close_after(q, st, err);
	if (st == TW_OK) {
		*ret = rows;
		*ret_n = n;
	}
	return st;
}

enum tw_status tw_catalogue_quarantine(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_quarantined **ret, size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, /* quarantine_by_age */
	        COLUMNS "WHERE project_id=? ORDER BY first_ms, q.trace_id LIMIT ?", "ti",
	        project_id, (int64_t)TW_QUARANTINE_PAGE);
	if (st == TW_OK)
		st = read_all(&q, a, ret, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_quarantine_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_quarantined *ret, struct tw_err *err)
{
	struct tw_quarantined *rows = NULL;
	struct tw_cat_query q;
	size_t n = 0;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, /* primary keys */
	        COLUMNS "WHERE project_id=? AND trace_id=?", "tt", project_id, trace_id);
	if (st == TW_OK)
		st = read_all(&q, a, &rows, &n, err);
	tw_cat_done(c, db);
	if (st == TW_OK && n == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such trace in quarantine");
	if (st == TW_OK)
		*ret = rows[0];
	return st;
}

enum tw_status tw_catalogue_quarantine_size(
        struct tw_catalogue *c, uint64_t *ret_traces, uint64_t *ret_bytes, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, /* bounded by retention */
	        "SELECT count(*), sum(upload_bytes) FROM quarantine JOIN trace"
	        " USING (project_id, trace_id)",
	        "");
	if (st == TW_OK && tw_cat_row(&q)) {
		*ret_traces = (uint64_t)tw_cat_int(&q, 0);
		*ret_bytes = (uint64_t)tw_cat_int(&q, 1);
	}
	if (st == TW_OK)
		st = tw_cat_close(&q, err);
	tw_cat_done(c, db);
	return st;
}
