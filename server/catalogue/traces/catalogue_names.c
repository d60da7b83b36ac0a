/*
 * catalogue_names.c - how many names of a build's traces its mappings resolve.
 *
 * Each trace's counts are in its row and summed in its build's, and both change in the same
 * transaction.  A new mapping only adds rows to `build_rename`: its traces are marked in batches,
 * so that no transaction grows with the number of traces.
 */
#include "server/catalogue/traces/catalogue_names.h"
#include "server/catalogue/catalogue_internal.h"

#include <string.h>

#include "decoder/base/lookup.h"

enum { MARKED_AT_ONCE = 256 };

/* Adds to the sums of a build; and the values then stored in a trace's row. */
struct change {
	const char *project_id, *build_id;
	int64_t traces, lacking, ids, resolved, slices, resolved_slices;
};

struct counted { /* of a trace, as stored */
	const char *trace_id, *build_id;
	bool named;
	struct tw_name_counts counts;
};

static bool read_counted(const struct tw_cat_query *q, struct tw_arena *a, struct counted *ret)
{
	const int64_t named = tw_cat_int(q, 2);

	*ret = (struct counted){tw_cat_text(q, 0, a), tw_cat_text(q, 1, a),
	        named > 0 || named == -4, /* -2-2: postponed */
	        {(uint64_t)tw_cat_int(q, 3), (uint64_t)tw_cat_int(q, 4), (uint64_t)tw_cat_int(q, 5),
	                (uint64_t)tw_cat_int(q, 6)}};
	return ret->trace_id && ret->build_id;
}

/* Locks the rows, so that each difference is added once. */
static enum tw_status read_all(struct tw_db *db, const char *project_id, const char *const *ids,
        size_t n, struct tw_arena *a, struct counted **ret, size_t *ret_n, struct tw_err *err)
{
	struct counted *all = tw_arena_zalloc(a, n, sizeof *all);
	const char *list = tw_cat_texts(db, ids, n, a);
	struct tw_cat_query q;
	enum tw_status st = all && list ? tw_cat_query(&q, db, err, /* primary key */
	                                          "SELECT trace_id, build_id, named, names_ids,"
	                                          " names_resolved, names_slices,"
	                                          " names_resolved_slices FROM trace WHERE"
	                                          " project_id=?1 AND trace_id" TW_CAT_AMONG_TEXTS(
	                                                  "?2") " ORDER BY"
	                                                        " trace_id" TW_CAT_FOR_UPDATE,
	                                          "tt", project_id, list)
	                                : tw_oom(err);

	if (st != TW_OK)
		return st;
	*ret = all;
	for (*ret_n = 0; st == TW_OK && *ret_n < n && tw_cat_row(&q); (*ret_n)++)
		if (!read_counted(&q, a, &all[*ret_n]))
			st = tw_oom(err);
	return tw_cat_close_after(&q, st, err);
}

static struct change change_of(
        const char *project_id, const struct counted *old, const struct tw_name_counts *counts)
{
	static const struct tw_name_counts none;
	const struct tw_name_counts *now = counts ? counts : &none;
	const bool is_partial = counts && now->resolved < now->ids;
	const bool was_partial = old->named && old->counts.resolved < old->counts.ids;

	return (struct change){project_id, old->build_id, (int64_t)(counts != NULL) - old->named,
	        (int64_t)is_partial - was_partial, (int64_t)(now->ids - old->counts.ids),
	        (int64_t)(now->resolved - old->counts.resolved),
	        (int64_t)(now->slices - old->counts.slices),
	        (int64_t)(now->resolved_slices - old->counts.resolved_slices)};
}

/* A build once: a row is changed only once by a statement. */
static size_t merge(struct change *all, size_t n, const struct change *c)
{
	size_t at = 0;

	while (at < n && strcmp(all[at].build_id, c->build_id) != 0)
		at++;
	if (at < n) {
		all[at].traces += c->traces;
		all[at].lacking += c->lacking;
		all[at].ids += c->ids;
		all[at].resolved += c->resolved;
		all[at].slices += c->slices;
		all[at].resolved_slices += c->resolved_slices;
	} else {
		all[n++] = *c;
	}
	return n;
}

static enum tw_status change_builds(
        struct tw_db *db, const struct change *all, size_t n, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "ttiiiiii",
	        .sql = "UPDATE build SET names_traces=names_traces+r.c3,"
	               " names_lacking=names_lacking+r.c4, names_ids=names_ids+r.c5,"
	               " names_resolved=names_resolved+r.c6, names_slices=names_slices+r.c7,"
	               " names_resolved_slices=names_resolved_slices+r.c8 FROM {rows}"
	               " WHERE build.project_id=r.c1 AND build.build_id=r.c2"};
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = tw_cat_rows_add(&rows, err, all[i].project_id, all[i].build_id, all[i].traces,
		        all[i].lacking, all[i].ids, all[i].resolved, all[i].slices,
		        all[i].resolved_slices);
	return tw_cat_rows_end(&rows, st, err);
}

/* Deleted traces have no row. */
static enum tw_status set_names(struct tw_db *db, const char *project_id,
        const struct tw_trace_names *of, size_t n, struct tw_arena *a, struct tw_err *err)
{
	struct tw_cat_rows rows = {.db = db,
	        .types = "ttiiiii",
	        .sql = "UPDATE trace SET named=r.c3, names_ids=r.c4, names_resolved=r.c5,"
	               " names_slices=r.c6, names_resolved_slices=r.c7 FROM {rows}"
	               " WHERE trace.project_id=r.c1 AND trace.trace_id=r.c2"};
	struct change *builds = tw_arena_alloc(a, n, sizeof *builds);
	const char **ids = tw_arena_alloc(a, n, sizeof *ids);
	struct counted *old = NULL;
	size_t n_old = 0, n_builds = 0;
	enum tw_status st = builds && ids ? TW_OK : tw_oom(err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		ids[i] = of[i].trace.trace_id;
	if (st == TW_OK)
		st = read_all(db, project_id, ids, n, a, &old, &n_old, err);
	for (size_t i = 0; st == TW_OK && i < n_old; i++) {
		const struct tw_trace_names *new =
		        TW_LOOKUP(of, n, trace.trace_id, old[i].trace_id);
		const struct tw_name_counts *counts = new ? new->counts : NULL;
		const struct tw_name_counts now = counts ? *counts : (struct tw_name_counts){0};
		const struct change c = change_of(project_id, &old[i], counts);

		n_builds = merge(builds, n_builds, &c);
		st = tw_cat_rows_add(&rows, err, project_id, old[i].trace_id,
		        (int64_t)(counts != NULL), (int64_t)now.ids, (int64_t)now.resolved,
		        (int64_t)now.slices, (int64_t)now.resolved_slices);
	}
	st = tw_cat_rows_end(&rows, st, err);
	return st == TW_OK ? change_builds(db, builds, n_builds, err) : st;
}

enum tw_status tw_cat_clear_names(
        struct tw_db *db, const char *project_id, const char *trace_id, struct tw_err *err)
{
	const struct tw_trace_names of = {{project_id, trace_id, "", ""}, {"", ""}, NULL};
	struct tw_arena *a = tw_arena_new(1 << 16);
	enum tw_status st = a ? set_names(db, project_id, &of, 1, a, err) : tw_oom(err);

	tw_arena_free(a);
	return st;
}

struct setting { /* tw_catalogue_names_set, as one transaction */
	const struct tw_trace_names *of;
	size_t n;
	struct tw_arena *arena;
};

static bool same_names(const struct tw_trace_names *a, const struct tw_trace_names *b)
{
	return strcmp(a->trace.build_id, b->trace.build_id) == 0 &&
	       strcmp(a->trace.mapping_id, b->trace.mapping_id) == 0 &&
	       strcmp(a->by.map, b->by.map) == 0 && strcmp(a->by.retrace, b->by.retrace) == 0;
}

/* Skips traces of a build whose mapping changed since: they are counted again. */
static enum tw_status take_current(struct tw_db *w, const struct setting *s,
        struct tw_trace_names *out, size_t *ret_n, struct tw_err *err)
{
	bool current = false;
	enum tw_status st = TW_OK;

	*ret_n = 0;
	for (size_t i = 0; st == TW_OK && i < s->n; i++) {
		if (i == 0 || !same_names(&s->of[i], &s->of[i - 1]))
			st = tw_cat_is_named_by(w, &s->of[i].trace, &s->of[i].by, &current, err);
		if (st == TW_OK && current)
			out[(*ret_n)++] = s->of[i];
	}
	return st;
}

static enum tw_status set_all(struct tw_db *w, void *arg, struct tw_err *err)
{
	const struct setting *s = arg;
	struct tw_trace_names *current = tw_arena_alloc(s->arena, s->n, sizeof *current);
	size_t n = 0;
	enum tw_status st = current ? take_current(w, s, current, &n, err) : tw_oom(err);

	return st == TW_OK && n ? set_names(w, s->of[0].trace.project_id, current, n, s->arena, err)
	                        : st;
}

enum tw_status tw_catalogue_names_set(
        struct tw_catalogue *c, const struct tw_trace_names *of, size_t n, struct tw_err *err)
{
	struct setting s = {of, n, tw_arena_new(1 << 20)};
	enum tw_status st = TW_OK;

	if (!s.arena)
		return tw_oom(err);
	if (n)
		st = tw_cat_transact(c, TW_SUBJECT_NONE, set_all, &s, err);
	tw_arena_free(s.arena);
	return st;
}

/* --- a mapping came --- */

static const struct tw_fields rename_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_rename, project_id, "project_id", NULL),
                TW_FIELD(struct tw_rename, build_id, "build_id", NULL),
                TW_FIELD(struct tw_rename, after_id, "after_id", NULL),
                TW_FIELD(struct tw_rename, generation, "generation", NULL));

enum tw_status tw_cat_rename(struct tw_db *db, const char *stage, const char *project_id,
        const char *build_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO build_rename(project_id,build_id,stage,generation) VALUES(?,?,?,?)"
	        " ON CONFLICT(project_id,build_id,stage) DO UPDATE SET after_id='',"
	        " generation=excluded.generation",
	        "ttti", project_id, build_id, stage, tw_cat_random());
}

enum tw_status tw_cat_rename_next(struct tw_catalogue *c, const char *stage,
        const struct tw_rename *after, struct tw_arena *a, struct tw_rename *ret,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &rename_fields, ret, "no mapping was uploaded"), err,
	        /* primary key */
	        "SELECT {columns} FROM build_rename WHERE stage=? AND (project_id,build_id)>(?,?)"
	        " ORDER BY project_id, build_id LIMIT 1",
	        "ttt", stage, after ? after->project_id : "", after ? after->build_id : "");
}

enum tw_status tw_cat_rename_done(struct tw_db *db, const char *stage, const struct tw_rename *of,
        const char *last, bool *ret_ours, struct tw_err *err)
{
	int changed = 0;
	enum tw_status st = tw_cat_exec(db, &changed, err, /* primary key */
	        last ? "UPDATE build_rename SET after_id=?6 WHERE project_id=?1 AND build_id=?2 AND"
	               " stage=?3 AND after_id=?4 AND generation=?5"
	             : "DELETE FROM build_rename WHERE project_id=?1 AND build_id=?2 AND stage=?3"
	               " AND after_id=?4 AND generation=?5",
	        last ? "tttti"
	               "t"
	             : "tttti",
	        of->project_id, of->build_id, stage, of->after_id, of->generation, last);

	*ret_ours = changed > 0;
	return st;
}

/* The last trace of the batch to mark, after after_id; NULL if there is none. */
static enum tw_status last_of_batch(struct tw_catalogue *c, struct tw_arena *a,
        const struct tw_rename *r, const char **ret, struct tw_err *err)
{
	const char **last = NULL;
	size_t n = 0;
	enum tw_status st = tw_cat_list(c, TW_CAT_LIST(a, 1, &tw_text_fields, &last, &n), err,
	        /* trace_by_build, trace_by_mapping */
	        "SELECT max(trace_id) FROM (SELECT trace_id FROM ("
	        "SELECT * FROM (SELECT trace_id FROM trace WHERE project_id=?1 AND build_id=?2"
	        " AND trace_id>?3 ORDER BY trace_id LIMIT ?4) of_build UNION "
	        "SELECT * FROM (SELECT trace_id FROM trace WHERE project_id=?1 AND mapping_id=?2"
	        " AND mapping_id<>'' AND trace_id>?3 ORDER BY trace_id LIMIT ?4) of_mapping) "
	        "of_both ORDER BY trace_id LIMIT ?4) of_these",
	        "ttti", r->project_id, r->build_id, r->after_id, (int64_t)MARKED_AT_ONCE);

	*ret = n && last[0][0] ? last[0] : NULL;
	return st;
}

/* After a new mapping, the stages that count by name or depend on names wait again. */
#define AGAIN                                                                                      \
	"CASE WHEN named=1 THEN 2 ELSE named END,"                                                 \
	" detected=CASE WHEN detected>0 THEN 0 ELSE detected END"
#define CHANGES " AND (named=1 OR detected>0)" /* the traces whose state changes */

static enum tw_status mark_stale(
        struct tw_db *db, const struct tw_rename *r, const char *last, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* trace_by_build */
	        "UPDATE trace SET named=" AGAIN " WHERE project_id=?1 AND build_id=?2 AND"
	        " trace_id>?3 AND trace_id<=?4" CHANGES,
	        "tttt", r->project_id, r->build_id, r->after_id, last);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* trace_by_mapping */
		        "UPDATE trace SET named=" AGAIN " WHERE project_id=?1 AND mapping_id=?2"
		        " AND mapping_id<>'' AND trace_id>?3 AND trace_id<=?4" CHANGES,
		        "tttt", r->project_id, r->build_id, r->after_id, last);
	return st;
}

enum tw_status tw_catalogue_names_mark_stale(
        struct tw_catalogue *c, struct tw_arena *a, bool *ret_more, struct tw_err *err)
{
	struct tw_rename r;
	const char *last = NULL;
	struct tw_db *w = NULL;
	bool ours = false;
	enum tw_status st = tw_cat_rename_next(c, "names", NULL, a, &r, err);

	*ret_more = st == TW_OK;
	if (st == TW_OK)
		st = last_of_batch(c, a, &r, &last, err);
	if (st == TW_OK)
		st = tw_cat_begin(c, TW_SUBJECT_NONE, "", &w, err);
	if (st != TW_OK)
		return st == TW_NOT_FOUND ? TW_OK : st;
	st = tw_cat_rename_done(w, "names", &r, last, &ours, err);
	if (st == TW_OK && ours && last)
		st = mark_stale(w, &r, last, err);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_cat_is_named_by(struct tw_db *db, const struct tw_named_trace *of,
        const struct tw_mapping_ids *by, bool *ret, struct tw_err *err)
{
	int64_t same = 0;
	enum tw_status st = TW_OK;

	/* blocks new mappings of these builds until this transaction ends */
	if (of->mapping_id[0])
		st = tw_cat_lock(db, TW_SUBJECT_BUILD, of->mapping_id, false, err);
	if (st == TW_OK && of->build_id[0])
		st = tw_cat_lock(db, TW_SUBJECT_BUILD, of->build_id, false, err);
	if (st == TW_OK)
		st = tw_cat_get_int(db, &same, err, /* primary key */
		        "SELECT coalesce(nullif((SELECT map_sha256 FROM build WHERE"
		        " project_id=?1 AND build_id=?2),''),(SELECT map_sha256 FROM build WHERE"
		        " project_id=?1 AND build_id=?3),'')=?4 AND coalesce(nullif((SELECT"
		        " retrace_sha256 FROM build WHERE project_id=?1 AND"
		        " build_id=?2),''),(SELECT retrace_sha256 FROM build WHERE project_id=?1"
		        " AND build_id=?3),'')=?5",
		        "ttttt", of->project_id, of->mapping_id, of->build_id, by->map,
		        by->retrace);

	*ret = same != 0;
	return st;
}
