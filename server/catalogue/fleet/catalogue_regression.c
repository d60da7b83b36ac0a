#include "server/catalogue/fleet/catalogue_regression_int.h"

#include <math.h>
#include <string.h>

#include "server/base/age_clock.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_notify.h"
#include "server/stats/change_point.h"

const char *const tw_regress_status_names[TW_REGRESS_STATUSES + 1] = {
        "open", "acknowledged", "fixed", "returned", NULL};

/* Changes of a series without a version are the same if at most this many days apart. */
#define SAME_DAYS "3"
#define KEPT_FOR  "regression"

struct known { /* the stored regression for a result */
	char id[TW_ID_BYTES];
	int64_t status, fixed_day;
	const char *fixed_in; /* in the arena */
};

static int64_t ppm(double share)
{
	return (int64_t)llround(fmin(fmax(share, -1e6), 1e6) * 1e6);
}

static enum tw_status read_known(
        struct tw_cat_query *q, struct known *ret, struct tw_arena *a, struct tw_err *err)
{
	const char *id = tw_cat_row(q) ? tw_cat_text(q, 0, a) : "";

	*ret = (struct known){.fixed_in = ""};
	if (id && strlen(id) == TW_ID_BYTES - 1) {
		memcpy(ret->id, id, TW_ID_BYTES);
		ret->status = tw_cat_int(q, 1);
		ret->fixed_day = tw_cat_int(q, 2);
		ret->fixed_in = tw_cat_text(q, 3, a);
	}
	return tw_cat_close_after(q, id && ret->fixed_in ? TW_OK : tw_oom(err), err);
}

static enum tw_status find_same(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, struct tw_arena *a, struct known *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* regression_by_series */
	        "SELECT regression_id, status, fixed_day, fixed_in FROM regression WHERE"
	        " project_id=?1 AND app=?2"
	        " AND scenario=?3 AND method=?4 AND descriptor=?5 AND base=?6 AND head=?7"
	        " AND (?7<>'' OR abs(day-?8)<=" SAME_DAYS ") AND kind=?9"
	        " ORDER BY regression_id DESC LIMIT 1",
	        "tttttttii", project_id, f->app, f->scenario, f->method, f->descriptor, f->base,
	        f->head, f->day, (int64_t)f->kind);

	return st == TW_OK ? read_known(&q, ret, a, err) : st;
}

/* A regression of the series that was fixed before this one began. */
static enum tw_status find_fixed(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, struct tw_arena *a, struct known *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* regression_by_series */
	        "SELECT regression_id, status, fixed_day, fixed_in FROM regression WHERE"
	        " project_id=? AND app=? AND scenario=? AND method=? AND descriptor=? AND"
	        " status=? AND day<=? AND kind=? ORDER BY day DESC, regression_id DESC LIMIT 1",
	        "tttttiii", project_id, f->app, f->scenario, f->method, f->descriptor,
	        (int64_t)TW_REGRESS_FIXED, f->day, (int64_t)f->kind);

	return st == TW_OK ? read_known(&q, ret, a, err) : st;
}

static bool is_fixed(const struct tw_regress_found *f)
{
	return f->fixed_in[0] || f->fixed_day;
}

static enum tw_status insert(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, const struct known *earlier, char id[TW_ID_BYTES],
        struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	const int64_t status = is_fixed(f)      ? TW_REGRESS_FIXED
	                       : earlier->id[0] ? TW_REGRESS_RETURNED
	                                        : TW_REGRESS_OPEN;

	tw_ulid_new(now, id);
	return tw_cat_exec(db, NULL, err,
	        "INSERT INTO"
	        " regression(project_id,regression_id,app,scenario,method,descriptor,base,head,"
	        "day,percent,before_ns,after_ns,change_ppm,low_ppm,high_ppm,score_milli,"
	        "n_before,n_after,before_trace,after_trace,status,fixed_in,fixed_day,earlier,"
	        "first_ms,last_ms,kind)"
	        " VALUES(?,?,?,?,?,?,?,?,?,0,0,0,0,0,0,0,0,0,'','',?,'',0,?,?12,?12,?13)",
	        "ttttttttiitii", project_id, id, f->app, f->scenario, f->method, f->descriptor,
	        f->base, f->head, f->day, status, earlier->id, now, (int64_t)f->kind);
}

/* The last day on which a person reopened it (the server never does), 0 none; and whether that
 * version is in its history. */
static enum tw_status read_triage(struct tw_db *db, const char *project_id, const struct known *k,
        const char *version, int64_t *ret_day, int64_t *ret_recorded, struct tw_err *err)
{
	int64_t ms = 0;
	enum tw_status st = tw_cat_get_int(db, &ms, err, /* primary key */
	        "SELECT coalesce(max(h.at_ms),0) FROM regression_history h WHERE h.project_id=?1"
	        " AND h.regression_id=?2 AND h.status<>2 AND EXISTS(SELECT 1 FROM"
	        " regression_history b WHERE b.project_id=?1 AND b.regression_id=?2 AND b.n=h.n-1"
	        " AND b.status=2)",
	        "tt", project_id, k->id);

	*ret_day = ms / TW_DAY_MS;
	*ret_recorded = 0;
	if (st != TW_OK)
		return st;
	return tw_cat_get_int(db, ret_recorded, err, /* primary key */
	        "SELECT EXISTS(SELECT 1 FROM regression_history WHERE project_id=? AND"
	        " regression_id=? AND version=?)",
	        "ttt", project_id, k->id, version);
}

/* Whether to report it as fixed.  A status set by a person is not changed.  A person who reopened
 * it knew the versions and days until then, so none of those counts as a fix. */
static enum tw_status is_newly_fixed(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, const struct known *k, bool *ret, struct tw_err *err)
{
	int64_t opened_day, triage;
	enum tw_status st;

	*ret = false;
	if (k->status == TW_REGRESS_FIXED || !is_fixed(f))
		return TW_OK;
	st = read_triage(db, project_id, k, f->fixed_in, &opened_day, &triage, err);
	*ret = f->fixed_in[0] ? !triage && f->fixed_from >= opened_day
	                      : f->fixed_day > k->fixed_day && f->fixed_day > opened_day;
	return st;
}

/* The traces that show regressions, before and after them. */
#define EVIDENCE(which)                                                                            \
	"SELECT before_trace FROM regression WHERE project_id=?1 AND " which                       \
	" UNION SELECT after_trace FROM regression WHERE project_id=?1 AND " which
/* Another regression may need them too, so keep_evidence() must follow. */
#define RELEASE(which)                                                                             \
	"UPDATE trace SET exempt_reason='' WHERE project_id=?1 AND exempt_reason='" KEPT_FOR "'"   \
	" AND trace_id IN (" EVIDENCE(which) ")"

/* A "fixed" status set by a person is kept. */
static enum tw_status update(struct tw_db *db, const char *project_id, const struct known *k,
        const struct tw_regress_found *f, bool is_newly_fixed, struct tw_err *err)
{
	const struct tw_change_found *s = &f->shift;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary keys */
	        RELEASE("regression_id=?2"), "tt", project_id, k->id);

	if (st != TW_OK)
		return st;
	return tw_cat_exec(db, NULL, err,
	        "UPDATE regression SET day=?3, percent=?4, before_ns=?5, after_ns=?6,"
	        " change_ppm=?7, low_ppm=?8, high_ppm=?9, score_milli=?10, n_before=?11,"
	        " n_after=?12, before_trace=?13, after_trace=?14,"
	        " status=CASE WHEN ?18<>0 THEN 2 ELSE status END,"
	        " fixed_in=CASE WHEN ?18<>0 AND ?15<>'' THEN ?15 ELSE fixed_in END,"
	        " fixed_day=CASE WHEN ?18<>0 THEN max(fixed_day, ?16) ELSE fixed_day END,"
	        " last_ms=?17, share_ppm=?19"
	        " WHERE project_id=?1 AND regression_id=?2", /* primary key */
	        "ttiiiiiiiiiitttiiii", project_id, k->id, f->day, (int64_t)f->percentile,
	        f->before_ns, f->after_ns, ppm(s->change), ppm(s->low), ppm(s->high),
	        ppm(s->score) / 1000, (int64_t)s->n_before, (int64_t)s->n_after,
	        f->before_trace ? f->before_trace : "", f->after_trace ? f->after_trace : "",
	        f->fixed_in, f->fixed_day, tw_unix_ms(), (int64_t)is_newly_fixed, ppm(f->share));
}

enum { REGRESSIONS_KEPT = 2000, KEEP_DAYS = 400 };

/* Deletes regressions not seen for a long time; their evidence, and that of fixed ones, is no
 * longer protected. */
static enum tw_status tidy(struct tw_db *db, const char *project_id, struct tw_err *err)
{
	const int64_t oldest_ms = tw_age_ms() - KEEP_DAYS * TW_DAY_MS;
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary keys */
	        RELEASE("(status=2 OR last_ms<?2)"), "ti", project_id, oldest_ms);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM regression WHERE project_id=? AND last_ms<?", "ti", project_id,
		        oldest_ms);

	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM regression_history WHERE project_id=?1 AND regression_id NOT"
		        " IN (SELECT regression_id FROM regression WHERE project_id=?1)",
		        "t", project_id);
	return st;
}

static enum tw_status has_space(
        struct tw_db *db, const char *project_id, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT count(*) FROM regression WHERE project_id=?", "t", project_id);

	*ret = n < REGRESSIONS_KEPT;
	return st;
}

/* Protects the evidence of all that are not fixed from retention: at most two traces of each. */
static enum tw_status keep_evidence(struct tw_db *db, const char *project_id, struct tw_err *err)
{
	return tw_cat_exec(db, NULL, err, /* primary keys */
	        "UPDATE trace SET exempt_reason='" KEPT_FOR
	        "' WHERE project_id=?1 AND exempt_reason=''"
	        " AND trace_id IN (" EVIDENCE("status<>2") ")",
	        "t", project_id);
}

static enum tw_status begin(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, struct tw_arena *a, struct known *ret, struct tw_err *err)
{
	struct known earlier;
	enum tw_status st = find_fixed(db, project_id, f, a, &earlier, err);

	if (st == TW_OK)
		st = insert(db, project_id, f, &earlier, ret->id, err);
	if (st != TW_OK)
		return st;
	ret->status = earlier.id[0] ? TW_REGRESS_RETURNED : TW_REGRESS_OPEN;
	return TW_OK;
}

/* Regressions that exist when a project is first examined, and were fixed long ago, cause no
 * event. */
static enum tw_status queue_events(struct tw_db *db, const char *project_id, const struct known *k,
        const struct tw_regress_found *f, bool is_new, bool is_newly_fixed, struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const struct tw_regression_digest opened = {
	        k->status == TW_REGRESS_RETURNED ? TW_HOOK_RETURNED : TW_HOOK_FOUND, TW_BY_ITSELF,
	        is_fixed(f)};
	const struct tw_regression_digest fixed = {TW_HOOK_FIXED, TW_BY_ITSELF, false};

	if (is_new)
		st = tw_cat_regression_note(db, project_id, k->id, &opened, err);
	else if (is_newly_fixed)
		st = tw_cat_regression_note(db, project_id, k->id, &fixed, err);
	return st;
}

static enum tw_status keep(struct tw_db *db, const char *project_id,
        const struct tw_regress_found *f, struct tw_arena *a, uint64_t *io_new, struct tw_err *err)
{
	struct known same;
	bool space = false, is_new, fixed = false;
	enum tw_status st = find_same(db, project_id, f, a, &same, err);

	is_new = st == TW_OK && !same.id[0];
	if (is_new) {
		st = has_space(db, project_id, &space, err);
		if (st == TW_OK && !space)
			return TW_OK;
	}
	if (st == TW_OK && is_new) {
		st = begin(db, project_id, f, a, &same, err);
		*io_new += st == TW_OK;
	}
	if (st == TW_OK)
		st = is_newly_fixed(db, project_id, f, &same, &fixed, err);
	if (st == TW_OK)
		st = update(db, project_id, &same, f, fixed, err);
	return st == TW_OK ? queue_events(db, project_id, &same, f, is_new, fixed, err) : st;
}

enum tw_status tw_catalogue_regression_store(struct tw_catalogue *c, const char *project_id,
        const struct tw_regress_found *of, size_t n, uint64_t *io_new, struct tw_err *err)
{
	struct tw_db *w = NULL;
	struct tw_arena *a = n ? tw_arena_new((size_t)1 << 20) : NULL;
	enum tw_status st;

	if (n == 0)
		return TW_OK;
	if (!a)
		return tw_oom(err);
	st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);
	if (st == TW_OK) {
		st = tidy(w, project_id, err);
		for (size_t i = 0; st == TW_OK && i < n; i++) {
			tw_arena_reset(a);
			st = keep(w, project_id, &of[i], a, io_new, err);
		}
		if (st == TW_OK)
			st = keep_evidence(w, project_id, err);
		st = tw_cat_end(c, w, st, err);
	}
	tw_arena_free(a);
	return st;
}

/* --- reading --- */

#define ROW(member, column, json, ...)                                                             \
	TW_FIELD(struct tw_regression, member, column, json, __VA_ARGS__)
static const struct tw_field row_fields[] = {
        ROW(id, "regression_id", "id"),
        ROW(of.kind, "kind", "kind", .names = tw_regress_kind_names),
        ROW(of.app, "app", "app"),
        ROW(of.scenario, "scenario", "scenario"),
        ROW(of.method, "method", "method"),
        ROW(of.descriptor, "descriptor", "descriptor"),
        ROW(of.base, "base", "base"),
        ROW(of.head, "head", "head"),
        ROW(of.day, "day", "day_ms", .shape = TW_SHAPE_DAY),
        ROW(of.percentile, "percent", "percentile"),
        ROW(of.before_ns, "before_ns", "before_ns"),
        ROW(of.after_ns, "after_ns", "after_ns"),
        ROW(of.shift.change, "change_ppm", "change", .scale = 1e6),
        ROW(of.shift.low, "low_ppm", "low", .scale = 1e6),
        ROW(of.shift.high, "high_ppm", "high", .scale = 1e6),
        ROW(of.shift.score, "score_milli", "score", .scale = 1e3),
        ROW(of.shift.n_before, "n_before", "traces_before"),
        ROW(of.shift.n_after, "n_after", "traces_after"),
        ROW(of.share, "share_ppm", "share", .scale = 1e6),
        ROW(of.before_trace, "before_trace", "before_trace", .shape = TW_SHAPE_OR_NULL),
        ROW(of.after_trace, "after_trace", "after_trace", .shape = TW_SHAPE_OR_NULL),
        ROW(status, "status", "status", .names = tw_regress_status_names),
        ROW(of.fixed_in, "fixed_in", "fixed_in"),
        ROW(of.fixed_day, "fixed_day", "fixed_day_ms", .shape = TW_SHAPE_DAY),
        ROW(earlier, "earlier", "earlier"),
        ROW(owner, "owner", "owner"),
        ROW(note, "note", "note"),
        ROW(muted_until_ms, "muted_until_ms", "muted_until_ms"),
        ROW(first_ms, "first_ms", "first_ms"),
        ROW(last_ms, "last_ms", "last_ms"),
};
const struct tw_fields tw_regression_fields = TW_FIELDS(row_fields);

#define COLUMNS "SELECT {columns} FROM regression WHERE project_id=?1 "

/* "<day>.<slowdown in ns>.<id>" of the last row. */
static enum tw_status read_cursor(const char *cursor, struct tw_page_cursor *ret_day,
        struct tw_page_cursor *ret_change, struct tw_err *err)
{
	enum tw_status st = tw_page_cursor_read(cursor, ret_day, err);

	return st == TW_OK && cursor[0] ? tw_page_cursor_read(ret_day->id, ret_change, err) : st;
}

static const char *cursor_text(const struct tw_regression *last, struct tw_arena *a)
{
	const char *change =
	        tw_page_cursor_text(a, last->of.after_ns - last->of.before_ns, last->id);

	return change ? tw_page_cursor_text(a, last->of.day, change) : NULL;
}

enum tw_status tw_catalogue_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_regression_query *of, uint32_t limit, const char *cursor,
        struct tw_arena *a, struct tw_regression **ret, size_t *ret_n, const char **ret_cursor,
        struct tw_err *err)
{
	struct tw_page_cursor day = {INT64_MAX, ""}, change = {INT64_MAX, ""};
	enum tw_status st = read_cursor(cursor, &day, &change, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_list(c, TW_CAT_LIST(a, limit + 1, &tw_regression_fields, ret, ret_n),
	        err, /* regression_by_change */
	        COLUMNS "AND (?2='' OR app=?2) AND (?3='' OR scenario=?3) AND (?4='' OR method=?4)"
	                " AND (?5='' OR head=?5) AND (?6='' OR owner=?6) AND (?7" TW_HAS_STATUS
	                " AND (?8=0 OR muted_until_ms<=?8) AND (day, (after_ns-before_ns),"
	                " regression_id)<(?9,?10,?11) ORDER BY day DESC, (after_ns-before_ns)"
	                " DESC, regression_id DESC LIMIT ?12",
	        "ttttttiiiiti", project_id, of->app, of->scenario, of->method, of->version,
	        of->owner, (int64_t)of->statuses, of->unmuted_at_ms, day.number, change.number,
	        change.id, (int64_t)limit + 1);
	if (st != TW_OK)
		return st;
	if (ret_cursor)
		*ret_cursor = *ret_n > limit ? cursor_text(&(*ret)[limit - 1], a) : "";
	/* the extra row only shows that there is another page */
	*ret_n = *ret_n > limit ? limit : *ret_n;
	return !ret_cursor || *ret_cursor ? TW_OK : tw_oom(err);
}

/* --- the inbox --- */

enum tw_status tw_catalogue_inbox_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_arena *a, struct tw_regression **ret,
        size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, of->limit, &tw_regression_fields, ret, ret_n),
	        err, /* regression_by_last */
	        "SELECT {columns} FROM regression x WHERE x.project_id=?1" TW_INBOX_PAGE(
	                "regression_id"),
	        TW_INBOX_TYPES, TW_INBOX_ARGS(project_id, of));
}

enum tw_status tw_cat_inbox_count(struct tw_catalogue *c, const char *sql, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	*ret = (struct tw_inbox_counts){0};
	if (st != TW_OK)
		return st;
	st = tw_cat_query(&q, db, err, sql, "ttti", project_id, of->app, of->owner, of->now_ms);
	while (st == TW_OK && tw_cat_row(&q)) {
		const int64_t status = tw_cat_int(&q, 0);

		if (status >= 0 && status < TW_REGRESS_STATUSES)
			ret->of[status][tw_cat_int(&q, 1) != 0] += (uint64_t)tw_cat_int(&q, 2);
	}
	st = tw_cat_close_after(&q, st, err);
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_inbox_count_regressions(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret, struct tw_err *err)
{
	return tw_cat_inbox_count(c, /* regression_by_last, regression_by_status */
	        TW_INBOX_COUNTS("regression"), project_id, of, ret, err);
}

enum tw_status tw_catalogue_regression_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_regression *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &tw_regression_fields, ret, "no such regression"),
	        err, /* primary key */
	        COLUMNS "AND regression_id=?2", "tt", project_id, id);
}

enum tw_status tw_cat_regression_read(struct tw_db *db, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_regression *ret, struct tw_err *err)
{
	bool found = false;
	enum tw_status st;

	*ret = (struct tw_regression){.id = NULL};
	st = tw_cat_get_row(db, &tw_regression_fields, a, ret, &found, err,
	        COLUMNS "AND regression_id=?2", "tt", project_id, id); /* primary key */
	if (st == TW_OK && !found)
		st = tw_fail(err, TW_NOT_FOUND, "no such regression");
	return st;
}

/* Call in the transaction, with the previous status. */
static enum tw_status note_triage(struct tw_db *db, const char *project_id, const char *id,
        int64_t before, const struct tw_triage *what, struct tw_err *err)
{
	const struct tw_regression_digest change = {
	        what->status == TW_REGRESS_FIXED ? TW_HOOK_FIXED : TW_HOOK_STATUS, tw_cat_author(),
	        false};

	if (before == (int64_t)what->status)
		return TW_OK;
	return tw_cat_regression_note(db, project_id, id, &change, err);
}

enum tw_status tw_cat_regression_triage(struct tw_db *w, const char *project_id, const char *id,
        const struct tw_triage *what, struct tw_err *err)
{
	int64_t before = 0;
	enum tw_status st = tw_cat_get_int(w, &before, err, /* primary key */
	        "SELECT status FROM regression WHERE project_id=? AND regression_id=?", "tt",
	        project_id, id);

	if (st == TW_OK)
		st = tw_cat_change(w, "no such regression", err,
		        "UPDATE regression SET status=?, fixed_in=?, owner=?, note=?,"
		        " muted_until_ms=? WHERE project_id=? AND regression_id=?",
		        "itttitt", (int64_t)what->status, what->fixed_in, what->owner, what->note,
		        what->muted_until_ms, project_id, id);
	return st == TW_OK ? note_triage(w, project_id, id, before, what, err) : st;
}
