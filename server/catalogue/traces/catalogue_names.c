/*
 * catalogue_names.c - how many names of a build's traces its mappings resolve.
 *
 * Each trace's counts are in its row and summed in its build's, and both change in the same
 * transaction.  A new mapping only adds a row to `recount`: its traces are marked in batches, so
 * that no transaction grows with the number of traces.
 */
#include "server/catalogue/traces/catalogue_names.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/traces/catalogue_build.h"

#include <stdio.h>

enum { MARKED_AT_ONCE = 256 };

struct counted { /* of a trace, as stored */
	bool found, named;
	int64_t ids, resolved, slices, resolved_slices;
	char build_id[256];
};

static enum tw_status read_counted(struct tw_db *db, const char *project_id, const char *trace_id,
        struct counted *ret, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(1 << 16);
	const char *build_id = NULL;
	int64_t named;
	struct tw_cat_query q;
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT build_id, named, names_ids, names_resolved, names_slices,"
	        " names_resolved_slices FROM trace WHERE project_id=? AND trace_id=?",
	        "tt", project_id, trace_id);
	if (st == TW_OK) {
		ret->found = tw_cat_row(&q);
		if (ret->found) {
			build_id = tw_cat_text(&q, 0, a);
			named = tw_cat_int(&q, 1);
			ret->named = named > 0 || named == -4; /* -2-2: postponed */
			ret->ids = tw_cat_int(&q, 2);
			ret->resolved = tw_cat_int(&q, 3);
			ret->slices = tw_cat_int(&q, 4);
			ret->resolved_slices = tw_cat_int(&q, 5);
		}
		st = tw_cat_close_after(&q, st, err);
	}
	(void)snprintf(ret->build_id, sizeof ret->build_id, "%s", build_id ? build_id : "");
	tw_arena_free(a);
	return st;
}

enum tw_status tw_cat_set_names(struct tw_db *db, const char *project_id, const char *trace_id,
        const struct tw_name_counts *counts, struct tw_err *err)
{
	static const struct tw_name_counts none;
	const struct tw_name_counts *now = counts ? counts : &none;
	struct counted old = {0};
	enum tw_status st = read_counted(db, project_id, trace_id, &old, err);
	int64_t lacks = counts && now->resolved < now->ids;

	if (st != TW_OK || !old.found)
		return st;
	st = tw_cat_exec(db, NULL, err,
	        "UPDATE build SET names_traces=names_traces+?, names_lacking=names_lacking+?,"
	        " names_ids=names_ids+?, names_resolved=names_resolved+?,"
	        " names_slices=names_slices+?, names_resolved_slices=names_resolved_slices+?"
	        " WHERE project_id=? AND build_id=?",
	        "iiiiiitt", (int64_t)(counts != NULL) - old.named,
	        lacks - (old.named && old.resolved < old.ids), (int64_t)now->ids - old.ids,
	        (int64_t)now->resolved - old.resolved, (int64_t)now->slices - old.slices,
	        (int64_t)now->resolved_slices - old.resolved_slices, project_id, old.build_id);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE trace SET named=?, names_ids=?, names_resolved=?, names_slices=?,"
		        " names_resolved_slices=? WHERE project_id=? AND trace_id=?",
		        "iiiiitt", (int64_t)(counts != NULL), (int64_t)now->ids,
		        (int64_t)now->resolved, (int64_t)now->slices, (int64_t)now->resolved_slices,
		        project_id, trace_id);
	return st;
}

enum tw_status tw_cat_recount(
        struct tw_db *db, const char *project_id, const char *build_id, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO recount(project_id,build_id) VALUES(?,?)"
	        " ON CONFLICT(project_id,build_id) DO UPDATE SET after_id=''",
	        "tt", project_id, build_id);

	if (st == TW_OK)
		st = tw_cat_rename(db, project_id, build_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO hang_rename(project_id,build_id) VALUES(?,?)"
		        " ON CONFLICT(project_id,build_id) DO UPDATE SET after_id=''",
		        "tt", project_id, build_id);
	return st;
}

enum tw_status tw_catalogue_names_set(struct tw_catalogue *c, const char *project_id,
        const char *trace_id, const struct tw_name_counts *counts, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_TRACE, trace_id, &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_set_names(w, project_id, trace_id, counts, err);
	return tw_cat_end(c, w, st, err);
}

/* --- a mapping came --- */

struct recount {
	bool found;
	const char *project_id, *build_id, *after_id;
};

static enum tw_status first_recount(
        struct tw_db *db, struct tw_arena *a, struct recount *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(
	        &q, db, err, "SELECT project_id, build_id, after_id FROM recount LIMIT 1", "");

	if (st != TW_OK)
		return st;
	ret->found = tw_cat_row(&q);
	if (ret->found) {
		ret->project_id = tw_cat_text(&q, 0, a);
		ret->build_id = tw_cat_text(&q, 1, a);
		ret->after_id = tw_cat_text(&q, 2, a);
		if (!ret->project_id || !ret->build_id || !ret->after_id)
			st = tw_oom(err);
	}
	return tw_cat_close_after(&q, st, err);
}

/* The last trace of the batch to mark, after after_id; "" if there is none. */
static enum tw_status last_of_batch(struct tw_db *db, struct tw_arena *a, const struct recount *r,
        const char **ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* trace_by_build, trace_by_mapping */
	        "SELECT max(trace_id) FROM (SELECT trace_id FROM ("
	        "SELECT * FROM (SELECT trace_id FROM trace WHERE project_id=?1 AND build_id=?2"
	        " AND trace_id>?3 ORDER BY trace_id LIMIT ?4) of_build UNION "
	        "SELECT * FROM (SELECT trace_id FROM trace WHERE project_id=?1 AND mapping_id=?2"
	        " AND mapping_id<>'' AND trace_id>?3 ORDER BY trace_id LIMIT ?4) of_mapping) "
	        "of_both"
	        " ORDER BY trace_id LIMIT ?4) of_these",
	        "ttti", r->project_id, r->build_id, r->after_id, (int64_t)MARKED_AT_ONCE);

	if (st != TW_OK)
		return st;
	*ret = tw_cat_row(&q) ? tw_cat_text(&q, 0, a) : "";
	if (!*ret)
		st = tw_oom(err);
	return tw_cat_close_after(&q, st, err);
}

/* The marks that a new mapping changes: counts of names, and findings that depend on names. */
#define AGAIN                                                                                      \
	"CASE WHEN named=1 THEN 2 ELSE named END,"                                                 \
	" detected=CASE WHEN detected>0 THEN 0 ELSE detected END"

static enum tw_status mark(
        struct tw_db *db, const struct recount *r, const char *last, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* trace_by_build */
	        "UPDATE trace SET named=" AGAIN " WHERE project_id=?1 AND build_id=?2 AND"
	        " trace_id>?3 AND trace_id<=?4 AND (named=1 OR detected>0)",
	        "tttt", r->project_id, r->build_id, r->after_id, last);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* trace_by_mapping */
		        "UPDATE trace SET named=" AGAIN " WHERE project_id=?1 AND mapping_id=?2"
		        " AND mapping_id<>'' AND trace_id>?3 AND trace_id<=?4 AND (named=1 OR"
		        " detected>0)",
		        "tttt", r->project_id, r->build_id, r->after_id, last);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "UPDATE recount SET after_id=?3 WHERE project_id=?1 AND build_id=?2", "ttt",
		        r->project_id, r->build_id, last);
	return st;
}

static enum tw_status mark_some(
        struct tw_db *db, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct recount r = {false, "", "", ""};
	const char *last = "";
	enum tw_status st = first_recount(db, a, &r, err);

	*ret_more = r.found;
	if (st == TW_OK && r.found)
		st = last_of_batch(db, a, &r, &last, err);
	if (st != TW_OK || !r.found)
		return st;
	if (last[0])
		return mark(db, &r, last, err);
	return tw_cat_exec(db, NULL, err, "DELETE FROM recount WHERE project_id=? AND build_id=?",
	        "tt", r.project_id, r.build_id);
}

enum tw_status tw_catalogue_names_mark(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct recount r = {false, "", "", ""};
	bool more = false;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	st = first_recount(db, a, &r, err); /* a check that writes nothing */
	tw_cat_done(c, db);
	if (st == TW_OK && r.found) {
		st = tw_cat_begin(c, TW_ALONE_NOTHING, "", &w, err);
		if (st != TW_OK)
			return st;
		st = tw_cat_end(c, w, mark_some(w, a, &more, err), err);
	}
	if (st == TW_OK)
		*ret_more = more;
	return st;
}

/* --- mappings of a trace --- */

static enum tw_status take_mappings(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_arena *a, struct tw_mapping_ids *ids, struct tw_err *err)
{
	struct tw_build_row build;
	enum tw_status st;

	if ((ids->map[0] && ids->retrace[0]) || !build_id[0])
		return TW_OK;
	st = tw_catalogue_build_get(c, project_id, build_id, a, &build, err);
	if (st == TW_NOT_FOUND)
		return TW_OK;
	if (st == TW_OK && !ids->map[0])
		(void)snprintf(ids->map, sizeof ids->map, "%s", build.map_sha256);
	if (st == TW_OK && !ids->retrace[0])
		(void)snprintf(ids->retrace, sizeof ids->retrace, "%s", build.retrace.sha256);
	return st;
}

enum tw_status tw_cat_is_named_by(struct tw_db *db, const struct tw_named_trace *of,
        const struct tw_mapping_ids *by, bool *ret, struct tw_err *err)
{
	int64_t same = 0;
	enum tw_status st = TW_OK;

	/* no mapping of them comes into use before this transaction ends */
	if (of->mapping_id[0])
		st = tw_cat_lock(db, TW_ALONE_BUILD, of->mapping_id, false, err);
	if (st == TW_OK && of->build_id[0])
		st = tw_cat_lock(db, TW_ALONE_BUILD, of->build_id, false, err);
	if (st == TW_OK)
		st = tw_cat_first_int(db, &same, err, /* primary key */
		        "SELECT coalesce(nullif((SELECT map_sha256 FROM build WHERE project_id=?1 "
		        "AND"
		        " build_id=?2),''),(SELECT map_sha256 FROM build WHERE project_id=?1 AND"
		        " build_id=?3),'')=?4 AND"
		        " coalesce(nullif((SELECT retrace_sha256 FROM build WHERE project_id=?1 AND"
		        " build_id=?2),''),(SELECT retrace_sha256 FROM build WHERE project_id=?1 "
		        "AND"
		        " build_id=?3),'')=?5",
		        "ttttt", of->project_id, of->mapping_id, of->build_id, by->map,
		        by->retrace);

	*ret = same != 0;
	return st;
}

enum tw_status tw_catalogue_mappings(struct tw_catalogue *c, const struct tw_named_trace *of,
        struct tw_arena *a, struct tw_mapping_ids *ret, struct tw_err *err)
{
	struct tw_mapping_ids ids = {"", ""};
	enum tw_status st = take_mappings(c, of->project_id, of->mapping_id, a, &ids, err);

	if (st == TW_OK)
		st = take_mappings(c, of->project_id, of->build_id, a, &ids, err);
	if (st == TW_OK)
		*ret = ids;
	return st;
}
