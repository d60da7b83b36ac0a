/*
 * catalogue_anr_index_key.c - names and groups stored ANRs and lock waits: new ones, after a new
 * mapping, after changed rules.  In batches, so that no transaction grows with the number of
 * traces.
 */
#include "server/catalogue/anr/catalogue_anr_rollup_int.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/fleet/catalogue_rollup_int.h"
#include "server/catalogue/notify/catalogue_notify.h"

enum { MARKED_AT_ONCE = 256 };

/* --- new mappings --- */

static enum tw_status traces_of(struct tw_catalogue *c, const struct tw_rename *r,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, MARKED_AT_ONCE, &tw_text_fields, ret, ret_n), err,
	        /* anr_trace_by_build, anr_trace_by_mapping, primary key */
	        "SELECT trace_id FROM (SELECT * FROM (SELECT trace_id FROM anr_trace WHERE"
	        " project_id=?1 AND build_id=?2 AND trace_id>?3 ORDER BY trace_id LIMIT ?4)"
	        " of_build UNION SELECT * FROM (SELECT trace_id FROM anr_trace WHERE project_id=?1"
	        " AND mapping_id=?2 AND mapping_id<>'' AND trace_id>?3 ORDER BY trace_id LIMIT ?4)"
	        " of_mapping UNION SELECT * FROM (SELECT h.trace_id FROM build_library u JOIN"
	        " anr_trace h ON h.project_id=?1 AND h.build_id=u.build_id AND h.trace_id>?3 WHERE"
	        " u.project_id=?1 AND library=?2 ORDER BY h.trace_id LIMIT ?4) of_library)"
	        " of_all ORDER BY trace_id LIMIT ?4",
	        "ttti", r->project_id, r->build_id, r->after_id, (int64_t)MARKED_AT_ONCE);
}

static enum tw_status mark_stale(struct tw_catalogue *c, const struct tw_rename *r,
        const char *const *ids, size_t n, struct tw_err *err)
{
	struct tw_db *w = NULL;
	bool ours = false;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_rename_done(w, "anr", r, n ? ids[n - 1] : NULL, &ours, err);
	for (size_t i = 0; st == TW_OK && ours && i < n; i++)
		st = tw_cat_exec(w, NULL, err, /* primary key */
		        "UPDATE anr_trace SET keyed=0 WHERE project_id=? AND trace_id=?", "tt",
		        r->project_id, ids[i]);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_anr_renames(struct tw_catalogue *c, bool *ret_more, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_rename r;
	const char **ids = NULL;
	size_t n = 0;
	enum tw_status st = a ? tw_cat_rename_next(c, "anr", NULL, a, &r, err) : tw_oom(err);

	*ret_more = st == TW_OK;
	if (st == TW_OK)
		st = traces_of(c, &r, a, &ids, &n, err);
	if (st == TW_OK)
		st = mark_stale(c, &r, ids, n, err);
	tw_arena_free(a);
	return st == TW_NOT_FOUND ? TW_OK : st;
}

/* --- pending facts --- */

#define STALE(member) TW_FIELD(struct tw_anr_stale, member, "", NULL)
static const struct tw_fields stale_fields = TW_FIELDS_OF(
        STALE(project_id), STALE(trace_id), STALE(build_id), STALE(mapping_id), STALE(anr));

static bool read_stale(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_stale *r = ret_row;
	const int at = tw_row_read(q, 0, &stale_fields, a, r);

	return at >= 0 && (!r->anr || tw_cat_bytes(q, at, a, &r->brief, NULL) == TW_OK);
}

enum tw_status tw_cat_lock_list(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, struct tw_arena *a, struct tw_lock_wait **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_LOCKS_MAX, &tw_cat_lock_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM lock_wait WHERE project_id=? AND trace_id=? ORDER BY seq"
	        " LIMIT ?",
	        "tti", project_id, trace_id, (int64_t)TW_LOCKS_MAX);
}

enum tw_status tw_catalogue_anr_stale(struct tw_catalogue *c, const char *project_id, int64_t rules,
        uint32_t limit, struct tw_arena *a, struct tw_anr_stale **ret, size_t *ret_n,
        struct tw_err *err)
{
	enum tw_status st = tw_cat_list(c,
	        &(struct tw_cat_list){.arena = a,
	                .limit = limit,
	                .row_bytes = sizeof **ret,
	                .read = read_stale,
	                .ret = ret,
	                .ret_n = ret_n},
	        err, /* anr_trace_unnamed, anr_trace_by_rules, primary keys */
	        "WITH stale(trace_id) AS (SELECT * FROM (SELECT trace_id FROM anr_trace WHERE"
	        " project_id=?1 AND keyed=0 LIMIT ?3) of_none UNION SELECT * FROM (SELECT"
	        " trace_id FROM anr_trace WHERE project_id=?1 AND anr=1 AND keyed<?2 LIMIT ?3)"
	        " of_older UNION SELECT * FROM (SELECT trace_id FROM anr_trace WHERE"
	        " project_id=?1 AND anr=1 AND keyed>?2 LIMIT ?3) of_newer LIMIT ?3) SELECT"
	        " h.project_id, h.trace_id, h.build_id, h.mapping_id, h.anr, a.brief FROM stale"
	        " s CROSS JOIN anr_trace h ON h.project_id=?1 AND h.trace_id=s.trace_id LEFT"
	        " JOIN anr a ON a.project_id=?1 AND a.trace_id=s.trace_id",
	        "tii", project_id, rules, (int64_t)limit);

	for (size_t i = 0; st == TW_OK && i < *ret_n; i++)
		st = tw_cat_lock_list(c, (*ret)[i].project_id, (*ret)[i].trace_id, a,
		        &(*ret)[i].locks, &(*ret)[i].n_locks, err);
	return st;
}

/* --- results --- */

static enum tw_status set_cause(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE anr_trace SET key=?, kind=? WHERE project_id=? AND trace_id=?", "tttt",
	        cause->key, cause->kind, of->project_id, of->trace_id);

	if (st != TW_OK)
		return st;
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE anr SET base=?, key=?, kind=?, name=?, title=?, verdict=?, detail=?"
	        " WHERE project_id=? AND trace_id=?",
	        "ttttttttt", cause->base, cause->key, cause->kind, cause->name, cause->title,
	        cause->verdict, cause->detail, of->project_id, of->trace_id);
}

/* The first report that shows that a fixed group returned is an event, also for its ticket. */
static enum tw_status join_group(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, struct tw_err *err)
{
	bool before = false, after = false;
	int64_t fixed_ms = 0;
	enum tw_status st = tw_cat_anr_note(db, of, cause, err);

	if (st == TW_OK)
		st = tw_cat_anr_has_returned(
		        db, of->project_id, cause->key, &before, &fixed_ms, err);
	if (st == TW_OK)
		st = set_cause(db, of, cause, err);
	if (st == TW_OK && fixed_ms && !before)
		st = tw_cat_anr_has_returned(
		        db, of->project_id, cause->key, &after, &fixed_ms, err);
	return st == TW_OK && after ? tw_cat_anr_note_return(db, of, cause, fixed_ms, err) : st;
}

enum tw_status tw_catalogue_anr_keyed(struct tw_catalogue *c, const struct tw_anr_stale *of,
        int64_t rules, const struct tw_anr_cause *cause, struct tw_err *err)
{
	struct tw_db *w = NULL;
	bool current = true;
	int there = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_ANR, "", &w, err);

	if (st != TW_OK)
		return st;
	if (of->natives.of.n)
		st = tw_cat_has_images(w, of->project_id, &of->natives.of, &current, err);
	if (st == TW_OK && !current) /* next time */
		return tw_cat_end(c, w, st, err);
	if (st == TW_OK)
		st = tw_cat_add_libraries(w, of->project_id, &of->natives, err);
	if (st == TW_OK)
		st = tw_cat_anr_rollup_undo(w, of->project_id, of->trace_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, &there, err, /* primary key */
		        "UPDATE anr_trace SET keyed=?, rollup_generation=0, copied=0 WHERE"
		        " project_id=? AND trace_id=?",
		        "itt", rules, of->project_id, of->trace_id);
	if (st == TW_OK && there && cause)
		st = join_group(w, of, cause, err);
	if (st == TW_OK && there)
		st = tw_cat_exec(w, NULL, err,
		        "DELETE FROM lock_wait WHERE project_id=? AND trace_id=?", "tt",
		        of->project_id, of->trace_id);
	if (st == TW_OK && there)
		st = tw_cat_lock_insert(
		        w, of->project_id, of->trace_id, of->locks, of->n_locks, err);
	return tw_cat_end(c, w, st, err);
}
