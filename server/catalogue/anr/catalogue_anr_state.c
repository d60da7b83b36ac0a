#include "server/catalogue/anr/catalogue_anr_state.h"

#include <stdio.h>
#include <string.h>

#include "decoder/base/order.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/notify/catalogue_notify.h"
#include "server/catalogue/notify/catalogue_ticket.h"

enum { FIXED_IN_BYTES = 1024 };

#define STATE(member, column) TW_FIELD(struct tw_anr_state, member, column, NULL)
static const struct tw_fields state_fields = TW_FIELDS_OF(STATE(key, "key"),
        STATE(triage.status, "status"), STATE(triage.fixed_in, "fixed_in"),
        STATE(fixed_ms, "fixed_ms"), STATE(triage.owner, "owner"), STATE(triage.note, "note"),
        STATE(triage.muted_until_ms, "muted_until_ms"), STATE(author, "author"),
        STATE(changed_ms, "changed_ms"));

/* Whether a report from that version shows that the fix failed: compares the numbers in
 * versions. */
static bool is_after_fix(const char *fixed_in, const char *version)
{
	return !fixed_in[0] || strverscmp(version, fixed_in) >= 0;
}

#define REPORTS_AFTER_FIX                                                                          \
	TW_CAT_JOIN_EACH("anr_trace h", "h",                                                       \
	        "h.project_id=?1 AND h.key=s.key AND h.anr=1 AND"                                  \
	        " h.day>=s.fixed_ms/86400000 AND h.recorded_ms>s.fixed_ms")

/* Sets the status of fixed groups that have returned; rows are by key, all of the project or only
 * that of `key`. */
static enum tw_status find_returned(struct tw_db *db, const char *project_id, const char *key,
        struct tw_anr_state *rows, size_t n, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key, anr_trace_of_key */
	        "SELECT DISTINCT s.key, h.version_name FROM anr_state s" REPORTS_AFTER_FIX
	        " WHERE s.project_id=?1 AND (?2='' OR s.key=?2) AND s.status=2",
	        "tt", project_id, key);

	while (st == TW_OK && tw_cat_row(&q)) {
		const char *of = tw_cat_str(&q, 0);
		size_t at;

		TW_BISECT(at, n, strcmp(rows[at].key, of) < 0);
		if (at < n && strcmp(rows[at].key, of) == 0 &&
		        rows[at].triage.status == TW_REGRESS_FIXED &&
		        is_after_fix(rows[at].triage.fixed_in, tw_cat_str(&q, 1)))
			rows[at].triage.status = TW_REGRESS_RETURNED;
	}
	return tw_cat_close_after(&q, st, err);
}

enum tw_status tw_catalogue_anr_states(struct tw_catalogue *c, const char *project_id,
        const char *key, struct tw_arena *a, struct tw_anr_state **ret, size_t *ret_n,
        struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_list(c,
	        TW_CAT_LIST(a, TW_ANR_STATES_MAX, &state_fields, ret, ret_n), err, /* primary key */
	        "SELECT {columns} FROM anr_state WHERE project_id=?1 AND (?2='' OR key=?2)"
	        " ORDER BY key LIMIT ?3",
	        "tti", project_id, key, (int64_t)TW_ANR_STATES_MAX);

	if (st == TW_OK)
		st = tw_cat_reader(c, &db, err);
	if (st != TW_OK)
		return st;
	st = find_returned(db, project_id, key, *ret, *ret_n, err);
	tw_cat_done(c, db);
	return st;
}

struct tw_anr_state tw_anr_state_of(const struct tw_anr_state *rows, size_t n, const char *key)
{
	size_t at;

	TW_BISECT(at, n, strcmp(rows[at].key, key) < 0);
	if (at < n && strcmp(rows[at].key, key) == 0)
		return rows[at];
	return (struct tw_anr_state){
	        .key = key, .triage = {.fixed_in = "", .owner = "", .note = ""}, .author = ""};
}

static enum tw_status is_known(
        struct tw_db *db, const char *project_id, const char *key, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(db, &there, err, /* anr_trace_of_key */
	        "SELECT EXISTS(SELECT 1 FROM anr_trace WHERE project_id=? AND key=? AND anr=1)",
	        "tt", project_id, key);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no ANR has that group");
	return st;
}

/* The stored state of a group, and whether reports show that it returned. */
struct stored {
	enum tw_regress_status status;
	char fixed_in[FIXED_IN_BYTES];
	int64_t fixed_ms;
	bool returned;
};

static enum tw_status read_stored(struct tw_db *db, const char *project_id, const char *key,
        struct stored *ret, struct tw_err *err)
{
	struct tw_anr_state state = {.key = key};
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary key */
	        "SELECT status, fixed_in, fixed_ms FROM anr_state WHERE project_id=? AND key=?",
	        "tt", project_id, key);

	*ret = (struct stored){.status = TW_REGRESS_OPEN};
	if (st != TW_OK)
		return st;
	if (tw_cat_row(&q)) {
		ret->status = (enum tw_regress_status)tw_cat_int(&q, 0);
		(void)snprintf(ret->fixed_in, sizeof ret->fixed_in, "%s", tw_cat_str(&q, 1));
		ret->fixed_ms = tw_cat_int(&q, 2);
	}
	st = tw_cat_close(&q, err);
	if (st != TW_OK || ret->status != TW_REGRESS_FIXED)
		return st;
	state.triage.status = ret->status;
	state.triage.fixed_in = ret->fixed_in;
	st = find_returned(db, project_id, key, &state, 1, err);
	ret->returned = state.triage.status == TW_REGRESS_RETURNED;
	return st;
}

/* An earlier fix is kept until it is set again, which the return of a fixed group requires. */
static int64_t fixed_at(const struct stored *was, const struct tw_triage *what, int64_t now)
{
	if (what->status == TW_REGRESS_RETURNED)
		return was->fixed_ms;
	if (what->status != TW_REGRESS_FIXED)
		return 0;
	return was->status == TW_REGRESS_FIXED && !was->returned &&
	                       strcmp(was->fixed_in, what->fixed_in) == 0
	               ? was->fixed_ms
	               : now;
}

static enum tw_status store(struct tw_db *db, const char *project_id, const char *key,
        const struct tw_triage *what, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	const bool fixed = what->status == TW_REGRESS_FIXED || what->status == TW_REGRESS_RETURNED;
	struct stored was;
	enum tw_status st = read_stored(db, project_id, key, &was, err);

	if (st != TW_OK)
		return st;
	if (what->status == TW_REGRESS_RETURNED && was.status != TW_REGRESS_FIXED)
		return tw_fail(err, TW_CONFLICT, "the group was changed by another request");
	st = tw_cat_exec(db, NULL, err,
	        "INSERT INTO anr_state(project_id,key,status,fixed_in,fixed_ms,owner,note,"
	        "muted_until_ms,author,changed_ms) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"
	        " ON CONFLICT(project_id,key) DO UPDATE SET status=excluded.status,"
	        " fixed_in=excluded.fixed_in, fixed_ms=excluded.fixed_ms, owner=excluded.owner,"
	        " note=excluded.note, muted_until_ms=excluded.muted_until_ms,"
	        " author=excluded.author, changed_ms=excluded.changed_ms",
	        "ttitittiti", project_id, key, (int64_t)(fixed ? TW_REGRESS_FIXED : what->status),
	        what->fixed_in, fixed_at(&was, what, now), what->owner, what->note,
	        what->muted_until_ms, tw_cat_author(), now);
	if (st == TW_OK && !fixed && was.status == TW_REGRESS_FIXED)
		st = tw_cat_ticket_group_returned(db, project_id, key, was.returned, err);
	return st;
}

enum tw_status tw_cat_anr_triage(struct tw_db *w, const char *project_id, const char *key,
        const struct tw_triage *what, struct tw_err *err)
{
	enum tw_status st = is_known(w, project_id, key, err);

	return st == TW_OK ? store(w, project_id, key, what, err) : st;
}

enum tw_status tw_cat_anr_has_returned(struct tw_db *db, const char *project_id, const char *key,
        bool *ret_returned, int64_t *ret_fixed_ms, struct tw_err *err)
{
	struct stored was;
	enum tw_status st = read_stored(db, project_id, key, &was, err);

	*ret_returned = st == TW_OK && was.returned;
	*ret_fixed_ms = st == TW_OK ? was.fixed_ms : 0;
	return st;
}
