#include "server/catalogue/traces/catalogue_stage.h"

#include <stdio.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"

enum { RESUMED_AT_ONCE = 64, SQL_BYTES = 1200 };

/* Arguments are constants of the code, so the text always fits. */
#define SQL(buf, ...) (snprintf((buf), SQL_BYTES, __VA_ARGS__) < SQL_BYTES ? (buf) : "")

/* Of a project, the first ?2 traces.  Formatted with the stage, the condition and the stage.  With
 * IN, PostgreSQL would plan for any limit, and join them with the complete table. */
#define WAITING                                                                                    \
	TW_EITHER("INDEXED BY trace_stage_%s WHERE project_id=?1 AND %s",                          \
	        "WHERE project_id=?1 AND trace_id=ANY(ARRAY(SELECT s.trace_id FROM trace_stage s"  \
	        " WHERE s.stage='%s' AND s.project_id=?1 AND s.rank=0 ORDER BY s.trace_id"         \
	        " LIMIT ?2))")                                                                     \
	" ORDER BY trace_id LIMIT ?2"

static const char *todo_of(const struct tw_stage_sql *m)
{
	return m->todo ? m->todo : m->waits;
}

/* --- projects --- */

enum tw_status tw_catalogue_stage_next(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *after, char ret[TW_ID_BYTES], struct tw_err *err)
{
	char sql[SQL_BYTES];
	size_t n = (size_t)snprintf(sql, sizeof sql,
	        "SELECT min(project_id) FROM (SELECT min(project_id) AS project_id FROM " TW_EITHER(
	                "trace INDEXED BY %s WHERE %s",
	                "trace_stage WHERE stage='%s' AND rank=0") " AND project_id>?1",
	        m->index, m->waits, m->stage);

	for (size_t i = 0; i < TW_STAGE_ALSO && m->also[i]; i++)
		n += (size_t)snprintf(sql + n, sizeof sql - n,
		        " UNION ALL SELECT min(project_id) FROM %s AND project_id>?1", m->also[i]);
	(void)snprintf(sql + n, sizeof sql - n, ") of_all");
	return tw_cat_read_text(c, ret, TW_ID_BYTES, err, sql, "t", after);
}

enum tw_status tw_catalogue_stage_projects(struct tw_catalogue *c, const char *table,
        struct tw_arena *a, const char *const **ret, size_t *ret_n, struct tw_err *err)
{
	char sql[SQL_BYTES];

	return tw_cat_list(c, TW_CAT_LIST(a, UINT32_MAX, &tw_text_fields, ret, ret_n), err,
	        SQL(sql,
	                "SELECT project_id FROM project WHERE deleted_ms=0 AND EXISTS(SELECT 1"
	                " FROM %s t WHERE t.project_id=project.project_id) ORDER BY project_id",
	                table),
	        "");
}

/* Entries are committed in the order of their numbers, so none up to the last one is missed. */
enum tw_status tw_catalogue_stage_changed(struct tw_catalogue *c, int64_t *io_entry,
        struct tw_arena *a, const char *const **ret, size_t *ret_n, struct tw_err *err)
{
	const int64_t after = *io_entry;
	int64_t last = 0;
	enum tw_status st = tw_cat_read_int(
	        c, &last, err, "SELECT coalesce(max(entry_id),0) FROM audit" /* primary key */, "");

	*ret_n = 0;
	if (st == TW_OK && last > after)
		st = tw_cat_list(c, TW_CAT_LIST(a, UINT32_MAX, &tw_text_fields, ret, ret_n),
		        err, /* primary key */
		        "SELECT DISTINCT project_id FROM audit WHERE entry_id>?1 AND entry_id<=?2"
		        " AND action IN ('setting.set','project.import') ORDER BY project_id",
		        "ii", after, last);
	if (st == TW_OK)
		*io_entry = last;
	return st;
}

static const struct tw_fields trace_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_named_trace, project_id, "", NULL),
                TW_FIELD(struct tw_named_trace, trace_id, "", NULL),
                TW_FIELD(struct tw_named_trace, build_id, "", NULL),
                TW_FIELD(struct tw_named_trace, mapping_id, "", NULL));

enum tw_status tw_catalogue_stage_todo(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, uint32_t limit, struct tw_arena *a, struct tw_named_trace **ret,
        size_t *ret_n, struct tw_err *err)
{
	char sql[SQL_BYTES];

	return tw_cat_list(c, TW_CAT_LIST(a, limit, &trace_fields, ret, ret_n), err,
	        SQL(sql, "SELECT project_id, trace_id, build_id, mapping_id FROM trace " WAITING,
	                m->stage, m->waits, m->stage),
	        "ti", project_id, (int64_t)limit);
}

static bool read_row(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	return tw_cat_read_trace(q, a, ret_row);
}

enum tw_status tw_catalogue_stage_rows(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, uint32_t limit, struct tw_arena *a, struct tw_trace_row **ret,
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_list *list = TW_CAT_LIST(a, limit, &tw_trace_fields, ret, ret_n);
	char sql[SQL_BYTES];

	list->read = read_row;
	return tw_cat_list(c, list, err,
	        SQL(sql, "SELECT " TW_CAT_TRACE_COLUMNS " FROM trace " WAITING, m->stage, m->waits,
	                m->stage),
	        "ti", project_id, (int64_t)limit);
}

/* --- work that failed --- */

static enum tw_status set(struct tw_db *db, const struct tw_named_trace *t, const char *to,
        const char *where, int *ret_changed, struct tw_err *err)
{
	char sql[SQL_BYTES];

	return tw_cat_exec(db, ret_changed, err, /* primary key */
	        SQL(sql, "UPDATE trace SET %s WHERE project_id=? AND trace_id=? AND %s", to, where),
	        "tt", t->project_id, t->trace_id);
}

enum tw_status tw_catalogue_stage_give_up(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const struct tw_named_trace *t, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	if (st != TW_OK)
		return st;
	return tw_cat_end(c, w, set(w, t, m->give_up, todo_of(m), NULL, err), err);
}

enum tw_status tw_catalogue_stage_postpone(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const struct tw_named_trace *t, const char *reason, int64_t now_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int changed = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);

	if (st == TW_OK)
		st = set(w, t, m->postpone, todo_of(m), &changed, err);
	if (st == TW_OK && changed)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO postponed(project_id,trace_id,stage,attempts,again_ms,waits,"
		        "reason) VALUES(?1,?2,?3,1,?4+5000,1,?5) ON"
		        " CONFLICT(project_id,trace_id,stage) DO UPDATE SET"
		        " attempts=postponed.attempts+1, waits=1, reason=?5,"
		        " again_ms=?4+" TW_POSTPONE_MS("postponed.attempts"),
		        "tttit", t->project_id, t->trace_id, m->stage, now_ms, reason);
	return tw_cat_end(c, w, st, err);
}

static enum tw_status resume_one(struct tw_db *db, const struct tw_stage_sql *m,
        const struct tw_named_trace *t, int64_t now_ms, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = set(db, t, m->resume, m->is_postponed, &changed, err);

	if (st == TW_OK && changed)
		return tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE postponed SET waits=0, again_ms=?4 WHERE project_id=?1 AND"
		        " trace_id=?2 AND stage=?3",
		        "ttti", t->project_id, t->trace_id, m->stage, now_ms + TW_DAY_MS);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM postponed WHERE project_id=? AND trace_id=? AND stage=?",
		        "ttt", t->project_id, t->trace_id, m->stage);
	return st;
}

enum tw_status tw_catalogue_stage_resume(struct tw_catalogue *c, const struct tw_stage_sql *m,
        int64_t now_ms, bool *ret_more, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_cat_list list = {.arena = a,
	        .limit = RESUMED_AT_ONCE,
	        .row_bytes = sizeof(struct tw_named_trace),
	        .fields = &trace_fields};
	enum tw_status st =
	        a ? tw_cat_list(c, &list, err, /* postponed_by_time */
	                    "SELECT project_id, trace_id, '', '' FROM postponed WHERE stage=?1 AND"
	                    " again_ms<=?2 UNION ALL SELECT project_id, trace_id, '', '' FROM"
	                    " postponed WHERE stage=?1 AND again_ms>?3 LIMIT ?4",
	                    "tiii", m->stage, now_ms, now_ms + TW_LONGEST_WAIT_MS,
	                    (int64_t)RESUMED_AT_ONCE)
	          : tw_oom(err);

	*ret_more = st == TW_OK && list.n > 0;
	if (*ret_more)
		st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);
	if (*ret_more && st == TW_OK) {
		const struct tw_named_trace *rows = list.rows;

		for (size_t i = 0; st == TW_OK && i < list.n; i++)
			st = resume_one(w, m, &rows[i], now_ms, err);
		st = tw_cat_end(c, w, st, err);
	}
	tw_arena_free(a);
	return st;
}

/* --- how many wait, and why --- */

/* Ids begin with the time of the upload, and are in every index. */
static enum tw_status count_waiting(struct tw_db *db, const struct tw_stage_sql *m,
        const char *project_id, struct tw_stage_waiting *ret, struct tw_err *err)
{
	char sql[SQL_BYTES];
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err,
	        SQL(sql,
	                "SELECT n, coalesce((SELECT created_ms FROM trace WHERE"
	                " trace_id=oldest LIMIT 1),0) FROM (SELECT count(*) AS n,"
	                " min(t.trace_id) AS oldest FROM project CROSS JOIN " TW_EITHER(
	                        "trace t INDEXED BY trace_stage_%s WHERE %s",
	                        "trace_stage t WHERE t.stage='%s' AND"
	                        " t.rank=0") " AND (?1='' OR project.project_id=?1) AND"
	                                     " t.project_id=project.project_id) of_waiting",
	                m->stage, m->waits, m->stage),
	        "t", project_id);

	if (tw_cat_row(&q)) {
		ret->traces = (uint64_t)tw_cat_int(&q, 0);
		ret->oldest_ms = tw_cat_int(&q, 1);
	}
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status count_postponed(struct tw_db *db, const struct tw_stage_sql *m,
        const char *project_id, struct tw_stage_waiting *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* postponed_by_time */
	        "SELECT reason, count(*) FROM postponed WHERE stage=?2 AND waits=1 AND"
	        " (?1='' OR project_id=?1) GROUP BY reason ORDER BY reason",
	        "tt", project_id, m->stage);

	while (ret->n_why < TW_STAGE_REASONS && tw_cat_row(&q)) {
		const char *reason = tw_cat_str(&q, 0);

		(void)snprintf(ret->why[ret->n_why].reason, sizeof ret->why->reason, "%s",
		        reason ? reason : "");
		ret->why[ret->n_why].traces = (uint64_t)tw_cat_int(&q, 1);
		ret->postponed += ret->why[ret->n_why++].traces;
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_stage_waiting(struct tw_catalogue *c, const struct tw_stage_sql *m,
        const char *project_id, struct tw_stage_waiting *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	*ret = (struct tw_stage_waiting){0};
	st = count_waiting(db, m, project_id, ret, err);
	if (st == TW_OK)
		st = count_postponed(db, m, project_id, ret, err);
	tw_cat_done(c, db);
	return st;
}
