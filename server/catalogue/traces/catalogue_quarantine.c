#include "server/catalogue/traces/catalogue_quarantine.h"

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/page_cursor.h"
#include "server/catalogue/traces/catalogue_job.h"

#define PARTS_OF " FROM part p WHERE p.project_id=q.project_id AND p.trace_id=q.trace_id)"
#define PARTS                                                                                      \
	TW_EITHER("(SELECT json_group_array(json_object('part',p.part,'bytes',p.bytes))" PARTS_OF, \
	        "(SELECT json_agg(json_build_object('part',p.part,'bytes',p.bytes)"                \
	        " ORDER BY p.part)::text" PARTS_OF)

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
        TW_FIELD(struct tw_quarantined, parts, PARTS, "parts", .shape = TW_SHAPE_LIST),
        ROW(pinned, "pinned<>0 OR exempt_reason<>''", NULL),
        ROW(is_annotated, "title<>'' OR annotations>0", NULL),
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
        const char *cursor, uint32_t limit, struct tw_arena *a, struct tw_quarantined **ret,
        size_t *ret_n, const char **ret_cursor, struct tw_err *err)
{
	struct tw_page_cursor after = {INT64_MIN, ""};
	enum tw_status st = tw_page_cursor_read(cursor, &after, err);

	if (st == TW_OK)
		st = tw_cat_list(c, TW_CAT_LIST(a, limit + 1, &tw_quarantined_fields, ret, ret_n),
		        err, /* quarantine_by_age, primary keys */
		        COLUMNS "WHERE project_id=? AND (first_ms, q.trace_id)>(?, ?)"
		                " ORDER BY first_ms, q.trace_id LIMIT ?",
		        "titi", project_id, after.number, after.id, (int64_t)limit + 1);
	if (st != TW_OK)
		return st;
	*ret_cursor = "";
	if (*ret_n > limit) {
		const struct tw_quarantined *last = &(*ret)[limit - 1];

		*ret_n = limit;
		*ret_cursor = tw_page_cursor_text(a, last->first_ms, last->id);
	}
	return *ret_cursor ? TW_OK : tw_oom(err);
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

#define SIZE                                                                                       \
	"SELECT count(*), sum(upload_bytes) FROM quarantine JOIN trace"                            \
	" USING (project_id, trace_id)"

enum tw_status tw_catalogue_quarantine_size(struct tw_catalogue *c, const char *project_id,
        uint64_t *ret_traces, uint64_t *ret_bytes, struct tw_err *err)
{
	struct sums s = {0};
	enum tw_status st = project_id[0] ? tw_cat_read_row(c, &sum_fields, NULL, &s, NULL,
	                                            err, /* primary keys; bounded by retention */
	                                            SIZE " WHERE project_id=?", "t", project_id)
	                                  : tw_cat_read_row(c, &sum_fields, NULL, &s, NULL,
	                                            err, /* bounded by retention */
	                                            SIZE, "");

	*ret_traces = s.traces;
	*ret_bytes = s.bytes;
	return st;
}
