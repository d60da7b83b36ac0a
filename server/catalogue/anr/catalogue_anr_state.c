#include "server/catalogue/anr/catalogue_anr_state.h"

#include <string.h>

#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_notify.h"

static bool read_row(const struct tw_cat_query *q, struct tw_arena *a, void *ret_row)
{
	struct tw_anr_state *r = ret_row;

	*r = (struct tw_anr_state){.key = tw_cat_text(q, 0, a),
	        .said = {(enum tw_regress_status)tw_cat_int(q, 1), tw_cat_text(q, 2, a),
	                tw_cat_text(q, 4, a), tw_cat_text(q, 5, a), tw_cat_int(q, 6)},
	        .fixed_ms = tw_cat_int(q, 3),
	        .author = tw_cat_text(q, 7, a),
	        .changed_ms = tw_cat_int(q, 8)};
	return r->key && r->said.fixed_in && r->said.owner && r->said.note && r->author;
}

/* Whether a report from that version says that the fix did not hold: versions are compared by their
 * numbers. */
static bool is_after_fix(const char *fixed_in, const char *version)
{
	return !fixed_in[0] || strverscmp(version, fixed_in) >= 0;
}

static enum tw_status has_returned(struct tw_db *db, const char *project_id,
        const struct tw_anr_state *s, bool *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* hang_anr_of_key */
	        "SELECT DISTINCT version_name FROM hang WHERE project_id=? AND key=? AND anr=1"
	        " AND day>=? AND created_ms>?",
	        "ttii", project_id, s->key, s->fixed_ms / TW_DAY_MS, s->fixed_ms);

	if (st != TW_OK)
		return st;
	while (!*ret && tw_cat_row(&q))
		*ret = is_after_fix(s->said.fixed_in, tw_cat_str(&q, 0));
	return tw_cat_close(&q, err);
}

static enum tw_status look_at_fixed(struct tw_catalogue *c, const char *project_id,
        struct tw_anr_state *rows, size_t n, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		bool returned = false;

		if (rows[i].said.status != TW_REGRESS_FIXED)
			continue;
		st = has_returned(db, project_id, &rows[i], &returned, err);
		if (returned)
			rows[i].said.status = TW_REGRESS_RETURNED;
	}
	tw_cat_done(c, db);
	return st;
}

enum tw_status tw_catalogue_anr_states(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, struct tw_anr_state **ret, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_cat_list l = {a, TW_ANR_STATES_MAX, sizeof **ret, read_row, NULL, 0};
	enum tw_status st = tw_cat_list(c, &l, err, /* primary key */
	        "SELECT key, status, fixed_in, fixed_ms, owner, note, muted_until_ms, author, "
	        "changed_ms"
	        " FROM anr_state WHERE project_id=?1 AND (?2='' OR key=?2) ORDER BY key LIMIT ?3",
	        "tti", project_id, key, (int64_t)TW_ANR_STATES_MAX);

	if (st != TW_OK)
		return st;
	*ret = l.rows;
	*ret_n = l.n;
	return look_at_fixed(c, project_id, *ret, *ret_n, err);
}

struct tw_anr_state tw_anr_state_of(const struct tw_anr_state *rows, size_t n, const char *key)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (strcmp(rows[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < n && strcmp(rows[low].key, key) == 0)
		return rows[low];
	return (struct tw_anr_state){
	        .key = key, .said = {.fixed_in = "", .owner = "", .note = ""}, .author = ""};
}

static enum tw_status is_known(
        struct tw_db *db, const char *project_id, const char *key, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_first_int(db, &there, err, /* hang_anr_of_key */
	        "SELECT EXISTS(SELECT 1 FROM hang WHERE project_id=? AND key=? AND anr=1)", "tt",
	        project_id, key);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no ANR has that group");
	return st;
}

enum tw_status tw_catalogue_anr_say(struct tw_catalogue *c, const char *project_id, const char *key,
        const struct tw_regression_said *what, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_ALONE_ANR, "", &w, err);

	if (st != TW_OK)
		return st;
	st = is_known(w, project_id, key, err);
	if (st == TW_OK) /* an earlier fix is kept until it is set again */
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO anr_state(project_id,key,status,fixed_in,fixed_ms,owner,note,"
		        "muted_until_ms,author,changed_ms) VALUES(?1,?2,?3,?4,CASE WHEN ?3=2 THEN "
		        "?9"
		        " ELSE 0 END,?5,?6,?7,?8,?9) ON CONFLICT(project_id,key) DO UPDATE SET"
		        " status=excluded.status, fixed_in=excluded.fixed_in,"
		        " fixed_ms=CASE WHEN excluded.status=2 AND anr_state.status=2 AND"
		        " anr_state.fixed_in=excluded.fixed_in THEN anr_state.fixed_ms ELSE"
		        " excluded.fixed_ms END, owner=excluded.owner, note=excluded.note,"
		        " muted_until_ms=excluded.muted_until_ms, author=excluded.author,"
		        " changed_ms=excluded.changed_ms",
		        "ttitttiti", project_id, key, (int64_t)what->status, what->fixed_in,
		        what->owner, what->note, what->muted_until_ms, tw_cat_author(), now);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"anr.change", project_id, key,
	                .facts = {{"status", tw_regress_status_names[what->status]},
	                        {"owner", what->owner}}},
	        err);
}
