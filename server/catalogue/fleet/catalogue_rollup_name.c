/*
 * catalogue_rollup_name.c - renames methods in rollups after a new mapping, in batches.
 *
 * Counts do not change; only the names of the methods' ids do.
 */
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_rollup.h"

/* A new generation stops a renaming with an earlier mapping, even one that has not begun. */
enum tw_status tw_cat_rename(
        struct tw_db *db, const char *project_id, const char *build_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO rollup_rename(project_id,build_id,generation) VALUES(?,?,?)"
	        " ON CONFLICT(project_id,build_id) DO UPDATE SET after_id=0, "
	        "generation=excluded.generation",
	        "tti", project_id, build_id, tw_cat_random());
}

static enum tw_status first_rename(struct tw_db *db, const struct tw_rollup_rename *after,
        struct tw_arena *a, struct tw_rollup_rename *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT project_id, build_id, after_id, generation FROM rollup_rename"
	        " WHERE (project_id,build_id)>(?,?) ORDER BY project_id, build_id LIMIT 1",
	        "tt", after ? after->project_id : "", after ? after->build_id : "");

	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q)) {
		*ret = (struct tw_rollup_rename){tw_cat_text(&q, 0, a), tw_cat_text(&q, 1, a),
		        tw_cat_int(&q, 2), tw_cat_int(&q, 3)};
		if (!ret->project_id || !ret->build_id)
			st = tw_oom(err);
	} else if (tw_cat_at_end(&q)) {
		st = tw_fail(err, TW_NOT_FOUND, "no mapping was uploaded");
	}
	return tw_cat_close_after(&q, st, err);
}

static bool read_method(
        const struct tw_cat_query *q, struct tw_arena *a, struct tw_rollup_naming *m)
{
	*m = (struct tw_rollup_naming){
	        .id = (uint64_t)tw_cat_int(q, 0),
	        .build_id = tw_cat_text(q, 1, a),
	        .mapping_id = tw_cat_text(q, 2, a),
	        .raw = tw_cat_text(q, 3, a),
	        .name = tw_cat_text(q, 4, a),
	        .descriptor = tw_cat_text(q, 5, a),
	};
	return m->build_id && m->mapping_id && m->raw && m->name && m->descriptor;
}

static enum tw_status read_methods(struct tw_db *db, const struct tw_rollup_rename *r,
        struct tw_arena *a, struct tw_rollup_naming *methods, size_t *ret_n, struct tw_err *err)
{
	const size_t limit = TW_ROLLUP_NAMED_AT_ONCE;
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* rollup_method_by_build, _by_mapping */
	        "SELECT method_id, build_id, mapping_id, raw, name, descriptor FROM ("
	        "SELECT * FROM (SELECT * FROM rollup_method WHERE project_id=?1 AND build_id=?2"
	        " AND method_id>?3 ORDER BY method_id LIMIT ?4) of_build UNION "
	        "SELECT * FROM (SELECT * FROM rollup_method WHERE project_id=?1 AND mapping_id=?2"
	        " AND mapping_id<>'' AND method_id>?3 ORDER BY method_id LIMIT ?4) of_mapping) "
	        "of_both"
	        " ORDER BY method_id LIMIT ?4",
	        "ttii", r->project_id, r->build_id, r->after_id, (int64_t)limit);

	if (st != TW_OK)
		return st;
	while (st == TW_OK && *ret_n < limit && tw_cat_row(&q))
		if (!read_method(&q, a, &methods[(*ret_n)++]))
			st = tw_oom(err);
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_rollup_renames(struct tw_catalogue *c,
        const struct tw_rollup_rename *after, struct tw_arena *a, struct tw_rollup_rename *ret,
        struct tw_rollup_naming **ret_methods, size_t *ret_n, struct tw_err *err)
{
	struct tw_rollup_naming *methods =
	        tw_arena_alloc(a, TW_ROLLUP_NAMED_AT_ONCE, sizeof *methods);
	struct tw_db *db;
	enum tw_status st;

	if (!methods)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	*ret_methods = methods;
	*ret_n = 0;
	st = first_rename(db, after, a, ret, err);
	if (st == TW_OK)
		st = read_methods(db, ret, a, methods, ret_n, err);
	tw_cat_done(c, db);
	return st;
}

static enum tw_status set_name(struct tw_db *db, struct tw_stmt **kept, const char *project_id,
        const struct tw_rollup_naming *m, struct tw_err *err)
{
	return tw_cat_exec_kept(db, kept, err, /* primary key */
	        "UPDATE rollup_method SET name=?, descriptor=?, named=? WHERE project_id=? AND"
	        " method_id=?",
	        "ttiti", m->name, m->descriptor, (int64_t)m->named, project_id, (int64_t)m->id);
}

/* *ret_ours false: another mapping arrived, and the renaming restarts. */
static enum tw_status save_progress(struct tw_db *db, const struct tw_rollup_rename *of,
        int64_t last, bool ends, bool *ret_ours, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st;

	if (ends)
		st = tw_cat_exec(db, &changed, err,
		        "DELETE FROM rollup_rename WHERE project_id=? AND build_id=? AND"
		        " after_id=? AND generation=?",
		        "ttii", of->project_id, of->build_id, of->after_id, of->generation);
	else
		st = tw_cat_exec(db, &changed, err,
		        "UPDATE rollup_rename SET after_id=?5 WHERE project_id=?1 AND build_id=?2"
		        " AND after_id=?3 AND generation=?4",
		        "ttiii", of->project_id, of->build_id, of->after_id, of->generation, last);
	*ret_ours = changed > 0;
	return st;
}

enum tw_status tw_catalogue_rollup_renamed(struct tw_catalogue *c,
        const struct tw_rollup_rename *of, const struct tw_rollup_naming *methods, size_t n,
        struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_stmt *kept = NULL;
	bool ours = false;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = save_progress(w, of, n ? (int64_t)methods[n - 1].id : 0, n == 0, &ours, err);
	for (size_t i = 0; st == TW_OK && ours && i < n; i++)
		st = set_name(w, &kept, of->project_id, &methods[i], err);
	tw_stmt_drop(kept);
	return tw_cat_end(c, w, st, err);
}
