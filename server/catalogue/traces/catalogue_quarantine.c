#include "server/catalogue/traces/catalogue_quarantine.h"
#include "server/catalogue/traces/catalogue_trace.h"

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_job.h"

#define ROW(member, column, json) TW_FIELD(struct tw_quarantined, member, column, json)
static const struct tw_field row_fields[] = {
        ROW(id, "q.trace_id", "id"),
        TW_FIELD(struct tw_quarantined, state, TW_CAT_TRACE_STATE, "state",
                .names = tw_trace_state_names),
        ROW(reason, "reason", "reason"),
        ROW(signal, "signal", "signal"),
        ROW(format, "q.format", "format"),
        ROW(decoder_version, "q.decoder_version", "decoder_version"),
        ROW(message, "error_message", "message"),
        ROW(app, "app", "app"),
        ROW(build_id, "build_id", "build_id"),
        ROW(created_ms, "created_ms", "created_ms"),
        ROW(first_ms, "first_ms", "first_ms"),
        ROW(last_ms, "last_ms", "last_ms"),
        ROW(deaths, "deaths", "crashes"),
        ROW(bytes, "upload_bytes", "bytes"),
        ROW(pinned, "pinned<>0 OR exempt_reason<>''", NULL),
        ROW(spoken_of, "title<>'' OR annotations>0", NULL),
};
const struct tw_fields tw_quarantined_fields = TW_FIELDS(row_fields);

#define COLUMNS "SELECT {columns} FROM quarantine q JOIN trace USING (project_id, trace_id) "

enum tw_status tw_cat_quarantine_enter(struct tw_db *db, const struct tw_job_row *job,
        const struct tw_death_note *note, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO"
	        " quarantine(project_id,trace_id,reason,signal,format,decoder_version,first_ms,"
	        "last_ms,deaths) VALUES(?1,?2,?3,?4,?5,?6,?7,?7,?8) ON"
	        " CONFLICT(project_id,trace_id) DO UPDATE SET reason=excluded.reason,"
	        " signal=excluded.signal, format=excluded.format,"
	        " decoder_version=excluded.decoder_version, last_ms=excluded.last_ms,"
	        " deaths=quarantine.deaths+excluded.deaths",
	        "tttitiii", job->project_id, job->trace_id, note->reason, (int64_t)note->signal,
	        note->format, (int64_t)note->decoder_version, tw_unix_ms(), (int64_t)job->attempts);
}

enum tw_status tw_cat_quarantine_leave(
        struct tw_db *db, const struct tw_job_row *job, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "DELETE FROM quarantine WHERE project_id=? AND trace_id=?", "tt", job->project_id,
	        job->trace_id);
}

enum tw_status tw_catalogue_quarantine(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_quarantined **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c,
	        TW_CAT_LIST(a, TW_QUARANTINE_PAGE, &tw_quarantined_fields, ret, ret_n),
	        err, /* quarantine_by_age */
	        COLUMNS "WHERE project_id=? ORDER BY first_ms, q.trace_id LIMIT ?", "ti",
	        project_id, (int64_t)TW_QUARANTINE_PAGE);
}

enum tw_status tw_catalogue_quarantine_get(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_quarantined *ret, struct tw_err *err)
{
	return tw_cat_list(c,
	        TW_CAT_ONE(a, &tw_quarantined_fields, ret, "no such trace in quarantine"),
	        err, /* primary keys */
	        COLUMNS "WHERE project_id=? AND trace_id=?", "tt", project_id, trace_id);
}

struct sums {
	uint64_t traces, bytes;
};

static const struct tw_fields sum_fields = TW_FIELDS_OF(
        TW_FIELD(struct sums, traces, "", NULL), TW_FIELD(struct sums, bytes, "", NULL));

enum tw_status tw_catalogue_quarantine_size(
        struct tw_catalogue *c, uint64_t *ret_traces, uint64_t *ret_bytes, struct tw_err *err)
{
	struct sums s = {0};
	enum tw_status st =
	        tw_cat_read_row(c, &sum_fields, NULL, &s, NULL, err, /* bounded by retention */
	                "SELECT count(*), sum(upload_bytes) FROM quarantine JOIN trace"
	                " USING (project_id, trace_id)",
	                "");

	*ret_traces = s.traces;
	*ret_bytes = s.bytes;
	return st;
}
