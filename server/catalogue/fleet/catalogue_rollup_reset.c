/* catalogue_rollup_reset.c - deletes expired rollups, and empties days to count them again. */
#include <stdio.h>

#include "server/catalogue/fleet/catalogue_rollup_int.h"

enum { EXPIRED_AT_ONCE = 64, FORGOTTEN_AT_ONCE = 512, AGAIN_AT_ONCE = 512, AGAIN_BYTES = 1 << 20 };

/* --- expiry --- */

static enum tw_status delete_cell(
        struct tw_db *db, const char *project_id, int64_t cell_id, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "DELETE FROM rollup_part WHERE project_id=? AND cell_id=?",
	        "DELETE FROM rollup_delta WHERE project_id=? AND cell_id=?",
	        "DELETE FROM rollup_cell WHERE project_id=? AND cell_id=?",
	        "DELETE FROM finding WHERE project_id=? AND cell_id=?"};
	enum tw_status st = tw_cat_merged_delete(db, project_id, cell_id, err);

	for (int i = 0; st == TW_OK && i < 4; i++)
		st = tw_cat_exec(db, NULL, err, sql[i], "ti", project_id, cell_id);
	if (st == TW_OK)
		st = tw_cat_index_delete(db, project_id, cell_id, err);
	return st == TW_OK ? tw_cat_tree_delete(db, project_id, cell_id, err) : st;
}

/* Deletes the cells that the query (of project_id and cell_id) returns. */
static enum tw_status delete_cells(
        struct tw_cat_query *q, struct tw_db *db, uint64_t *ret_n, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	while (st == TW_OK && tw_cat_row(q)) {
		st = delete_cell(db, tw_cat_str(q, 0), tw_cat_int(q, 1), err);
		++*ret_n;
	}
	return tw_cat_close_after(q, st, err);
}

static enum tw_status any_old(struct tw_db *db, int64_t day, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* rollup_cell_by_age and others */
	        "SELECT EXISTS(SELECT 1 FROM rollup_cell WHERE day<?1)"
	        " OR EXISTS(SELECT 1 FROM rollup_method WHERE seen_day<?1)"
	        " OR EXISTS(SELECT 1 FROM build_library WHERE seen_day<?1)",
	        "i", day);

	if (st == TW_OK)
		*ret = n != 0;
	return st;
}

/* A cell's day is not later than the last day of its methods: methods last seen before `day` are
 * used only by cells that expire too. */
static enum tw_status forget_names(struct tw_db *db, int64_t day, int *ret_n, struct tw_err *err)
{
	int libraries = 0;
	enum tw_status st = tw_cat_exec(db, ret_n, err, /* rollup_method_by_age */
	        "DELETE FROM rollup_method WHERE " TW_CAT_SOME(
	                "project_id,method_id", "rollup_method WHERE seen_day<? LIMIT ?"),
	        "ii", day, (int64_t)FORGOTTEN_AT_ONCE);

	if (st == TW_OK)
		st = tw_cat_exec(db, &libraries, err, /* build_library_by_age */
		        "DELETE FROM build_library WHERE " TW_CAT_SOME(
		                "project_id,library,build_id",
		                "build_library WHERE seen_day<? LIMIT ?"),
		        "ii", day, (int64_t)FORGOTTEN_AT_ONCE);
	*ret_n += libraries;
	return st;
}

static enum tw_status expire_some(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_cat_query q;
	uint64_t cells = 0;
	int names = 0;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, w, err, /* rollup_cell_by_age */
	        "SELECT project_id, cell_id FROM rollup_cell WHERE day<? LIMIT ?", "ii", day,
	        (int64_t)EXPIRED_AT_ONCE);
	if (st == TW_OK)
		st = delete_cells(&q, w, &cells, err);
	if (st == TW_OK && cells == 0) /* names are deleted after the cells that use them */
		st = forget_names(w, day, &names, err);
	*ret_more = cells > 0 || names >= FORGOTTEN_AT_ONCE;
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_rollup_expire(
        struct tw_catalogue *c, int64_t day, bool *ret_more, struct tw_err *err)
{
	bool any = false;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	*ret_more = false;
	if (st != TW_OK)
		return st;
	st = any_old(db, day, &any, err); /* a check that writes nothing */
	tw_cat_done(c, db);
	return st == TW_OK && any ? expire_some(c, day, ret_more, err) : st;
}

/* --- recomputation --- */

struct scope { /* the cells and traces to count again */
	const char *project_id;
	const char *build_id; /* or id of a mapping; "" all */
	bool all;             /* also traces of days with deleted ones, whose cells stay */
};
/* Of a native library: everything of the builds that use it. */
#define IN_SCOPE(project, build)                                                                   \
	"(" build "='' OR build_id=" build " OR mapping_id=" build                                 \
	" OR build_id IN (SELECT u.build_id FROM build_library u WHERE u.project_id=" project      \
	" AND library=" build "))"

/* --- traces that could not be read or are postponed --- */

/* They are counted in no cell, so no day has to be emptied. */
static enum tw_status find_undone(struct tw_catalogue *c, const char *project_id, const char *after,
        struct tw_arena *a, const char ***ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, AGAIN_AT_ONCE, &tw_text_fields, ret, ret_n),
	        err, /* primary keys: all rows of the project */
	        "SELECT trace_id FROM trace t WHERE project_id=?1 AND trace_id>?2 AND"
	        " (rollup_state>1 OR (state=2 AND rollup_state=1 AND detected<0) OR EXISTS(SELECT 1"
	        " FROM postponed p WHERE p.project_id=?1 AND p.trace_id=t.trace_id AND p.stage IN"
	        " ('rollup','findings'))) ORDER BY trace_id LIMIT ?3",
	        "tti", project_id, after, (int64_t)AGAIN_AT_ONCE);
}

static enum tw_status undo(struct tw_catalogue *c, const char *project_id, const char *const *ids,
        size_t n, struct tw_arena *a, struct tw_err *err)
{
	static const char *const sql[] = {/* primary keys */
	        "UPDATE trace SET rollup_state=CASE WHEN rollup_state>1 THEN 0 ELSE rollup_state"
	        " END, detected=CASE WHEN state=2 AND rollup_state=1 AND detected<0 THEN 0 ELSE"
	        " detected END WHERE project_id=?1 AND trace_id" TW_CAT_AMONG_TEXTS("?2"),
	        "DELETE FROM postponed WHERE project_id=?1 AND trace_id" TW_CAT_AMONG_TEXTS(
	                "?2") " AND stage IN ('rollup','findings')"};
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);
	const char *list;

	if (st != TW_OK)
		return st;
	list = tw_cat_texts(w, ids, n, a);
	st = list ? TW_OK : tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < sizeof sql / sizeof *sql; i++)
		st = tw_cat_exec(w, NULL, err, sql[i], "tt", project_id, list);
	return tw_cat_end(c, w, st, err);
}

/* All rows are read without the writer, for which uploads wait, and changed in batches. */
static enum tw_status try_again(struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(AGAIN_BYTES);
	char after[TW_ID_BYTES] = "";
	enum tw_status st = a ? TW_OK : tw_oom(err);
	size_t n = AGAIN_AT_ONCE;

	while (st == TW_OK && n == AGAIN_AT_ONCE) {
		const char **ids = NULL;

		tw_arena_reset(a);
		st = find_undone(c, project_id, after, a, &ids, &n, err);
		if (st == TW_OK && n)
			st = undo(c, project_id, ids, n, a, err);
		if (st == TW_OK && n)
			(void)snprintf(after, sizeof after, "%s", ids[n - 1]);
	}
	tw_arena_free(a);
	return st;
}

/* --- days --- */

enum { DAYS_MAX = 4096 };

struct day {
	int64_t day;
	uint64_t counted; /* traces */
};

static enum tw_status read_days(struct tw_db *db, const struct scope *in, struct day days[DAYS_MAX],
        size_t *ret_n, struct tw_err *err)
{
	struct tw_cat_query q;
	/* days with cells, and days of traces counted in none: cells can be lost */
	enum tw_status st = tw_cat_query(&q, db, err, /* rollup_cell_by_day, trace_by_recorded */
	        "SELECT day, sum(n) FROM (SELECT day, traces AS n FROM rollup_cell"
	        " WHERE project_id=?1 AND label='' AND " IN_SCOPE(
	                "?1", "?4") " UNION ALL SELECT recorded_ms/?3, 0 FROM trace"
	                            " WHERE project_id=?1 AND rollup_state=1 AND " IN_SCOPE("?1",
	                                    "?4") ") of_day GROUP BY day ORDER BY day LIMIT ?2",
	        "tiit", in->project_id, (int64_t)DAYS_MAX, (int64_t)TW_DAY_MS, in->build_id);

	while (*ret_n < DAYS_MAX && tw_cat_row(&q))
		days[(*ret_n)++] = (struct day){tw_cat_int(&q, 0), (uint64_t)tw_cat_int(&q, 1)};
	return tw_cat_close_after(&q, st, err);
}

static enum tw_status count_there(
        struct tw_db *db, const struct scope *in, int64_t day, uint64_t *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* trace_by_recorded */
	        "SELECT count(*) FROM trace WHERE project_id=?1 AND recorded_ms>=?2 AND"
	        " recorded_ms<?3 AND rollup_state=1" /* archived: no file to count again */
	        " AND state=2 AND " IN_SCOPE("?1", "?4"),
	        "tiit", in->project_id, day * TW_DAY_MS, (day + 1) * TW_DAY_MS, in->build_id);

	if (st == TW_OK)
		*ret = (uint64_t)n;
	return st;
}

static enum tw_status uncount_day(
        struct tw_db *db, const struct scope *in, int64_t day, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* trace_by_recorded */
	        "UPDATE trace SET rollup_state=0, detected=0 WHERE project_id=?1 AND"
	        " recorded_ms>=?2 AND recorded_ms<?3 AND rollup_state<>0 AND " IN_SCOPE("?1", "?4"),
	        "tiit", in->project_id, day * TW_DAY_MS, (day + 1) * TW_DAY_MS, in->build_id);
}

/* Traces that are not counted again are still inspected again after new symbols.  After a mapping,
 * they are already marked (catalogue_names.c). */
static enum tw_status inspect_day(
        struct tw_db *db, const struct scope *in, int64_t day, struct tw_err *err)
{
	if (!tw_str_starts(tw_str_of(in->build_id), TW_STR(TW_NATIVE_BUILD)))
		return TW_OK;
	return tw_cat_exec(db, NULL, err, /* trace_by_recorded */
	        "UPDATE trace SET detected=0 WHERE project_id=?1 AND recorded_ms>=?2 AND"
	        " recorded_ms<?3 AND detected>0 AND " IN_SCOPE("?1", "?4"),
	        "tiit", in->project_id, day * TW_DAY_MS, (day + 1) * TW_DAY_MS, in->build_id);
}

static enum tw_status empty_day(
        struct tw_db *db, const struct scope *in, int64_t day, struct tw_err *err)
{
	struct tw_cat_query q;
	uint64_t n = 0;
	enum tw_status st = tw_cat_query(&q, db, err, /* rollup_cell_by_age */
	        "SELECT project_id, cell_id FROM rollup_cell WHERE day=?1 AND project_id=?2"
	        " AND " IN_SCOPE("?2", "?3"),
	        "itt", day, in->project_id, in->build_id);

	if (st == TW_OK)
		st = delete_cells(&q, db, &n, err);
	return st == TW_OK ? uncount_day(db, in, day, err) : st;
}

static enum tw_status reset_day(struct tw_catalogue *c, const struct scope *in, const struct day *d,
        struct tw_rollup_reset *sums, struct tw_err *err)
{
	struct tw_db *w = NULL;
	uint64_t there = 0;
	bool again;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = count_there(w, in, d->day, &there, err);
	again = there == d->counted || d->counted == 0;
	if (st == TW_OK && again)
		st = empty_day(w, in, d->day, err);
	else if (st == TW_OK && in->all)
		st = uncount_day(w, in, d->day, err);
	else if (st == TW_OK)
		st = inspect_day(w, in, d->day, err);
	st = tw_cat_end(c, w, st, err);
	if (st != TW_OK)
		return st;
	again = again || in->all;
	sums->days += again;
	sums->days_kept += !again;
	sums->traces += again ? there : 0;
	return TW_OK;
}

static enum tw_status name_again(struct tw_catalogue *c, const char *project_id, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_FLEET, ""}, err,
	        "INSERT INTO build_rename(project_id,build_id,stage,generation) SELECT project_id,"
	        " build_id, 'rollup', ?2 FROM build WHERE project_id=?1"
	        " ON CONFLICT(project_id,build_id,stage) DO UPDATE SET after_id='',"
	        " generation=excluded.generation",
	        "ti", project_id, tw_cat_random());
}

static enum tw_status reset_days(struct tw_catalogue *c, const struct scope *in,
        struct tw_rollup_reset *ret, struct tw_err *err)
{
	struct day *days = tw_mem_alloc(DAYS_MAX, sizeof *days);
	size_t n = 0;
	struct tw_db *db;
	enum tw_status st;

	*ret = (struct tw_rollup_reset){0};
	if (!days)
		return tw_oom(err);
	st = tw_cat_reader(c, &db, err);
	if (st == TW_OK) {
		st = read_days(db, in, days, &n, err);
		tw_cat_done(c, db);
	}
	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = reset_day(c, in, &days[i], ret, err);
	tw_mem_free(days);
	return st;
}

enum tw_status tw_catalogue_rollup_reset(struct tw_catalogue *c, const char *project_id,
        struct tw_rollup_reset *ret, struct tw_err *err)
{
	const struct scope in = {project_id, "", false};
	enum tw_status st = reset_days(c, &in, ret, err);

	if (st == TW_OK)
		st = try_again(c, project_id, err);
	return st == TW_OK ? name_again(c, project_id, err) : st;
}

enum tw_status tw_catalogue_rollup_reset_build(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_rollup_reset *ret, struct tw_err *err)
{
	const struct scope in = {project_id, build_id, false};

	return reset_days(c, &in, ret, err);
}

enum tw_status tw_catalogue_rollup_reset_all(struct tw_catalogue *c, const char *project_id,
        const char *build_id, struct tw_rollup_reset *ret, struct tw_err *err)
{
	const struct scope in = {project_id, build_id, true};
	enum tw_status st = reset_days(c, &in, ret, err);

	if (st == TW_OK && !build_id[0])
		st = try_again(c, project_id, err);
	return st == TW_OK && !build_id[0] ? name_again(c, project_id, err) : st;
}

enum tw_status tw_catalogue_rollup_expanded(struct tw_catalogue *c, const char *project_id,
        const char *build_id, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	struct tw_db *w;
	/* after a transaction that counts traces by the former mapping or symbols */
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_get_int(w, &n, err, /* rollup_method_by_build, _by_mapping, primary key */
	        "SELECT EXISTS(SELECT 1 FROM rollup_method WHERE project_id=?1 AND build_id=?2"
	        " AND raw<' ') OR EXISTS(SELECT 1 FROM rollup_method WHERE project_id=?1 AND"
	        " mapping_id=?2 AND mapping_id<>'' AND raw<' ') OR EXISTS(SELECT 1 FROM"
	        " build_library WHERE project_id=?1 AND library=?2)",
	        "tt", project_id, build_id);
	st = tw_cat_end(c, w, st, err);
	*ret = n != 0;
	return st;
}
