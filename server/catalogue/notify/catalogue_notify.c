#include "server/catalogue/notify/catalogue_notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text/json.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/notify/catalogue_ticket.h"

enum { NEWS_DAYS = 7, EVENT_ID_BYTES = 96, ARENA_BYTES = 1 << 20 };

/* Takes the reference to facts. */
static enum tw_status queue_event(struct tw_db *db, const char *project_id,
        const struct tw_notice *of, json_t *facts, struct tw_err *err)
{
	/* a name that is not valid text suppresses the event, but not the stored row */
	char *text = tw_json_dumps(facts ? facts : json_null(), JSON_COMPACT | JSON_ENCODE_ANY);
	const struct tw_notice what = {of->event, of->id, text};
	enum tw_status st = !text   ? tw_oom(err)
	                    : facts ? tw_cat_notify(db, project_id, &what, err)
	                            : TW_OK;

	json_decref(facts);
	free(text);
	return st;
}

/* --- regressions --- */

const char *tw_cat_author(void)
{
	const struct tw_actor *by = tw_actor_get();

	if (strcmp(by->kind, "server") == 0)
		return TW_BY_ITSELF;
	if (by->name && by->name[0])
		return by->name;
	return strcmp(by->kind, "key") == 0    ? "an API key"
	       : strcmp(by->kind, "link") == 0 ? "a sign-in link"
	                                       : by->kind;
}

static enum tw_status add_entry(struct tw_db *db, const char *project_id,
        const struct tw_regression *r, const struct tw_regression_digest *what, int64_t *ret_n,
        struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT coalesce(max(n),0)+1 FROM regression_history WHERE project_id=? AND"
	        " regression_id=?",
	        "tt", project_id, r->id);

	*ret_n = n;
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "INSERT INTO regression_history(project_id,regression_id,n,at_ms,author,"
		        "event,status,version) VALUES(?,?,?,?,?,?,?,?)",
		        "ttiitiit", project_id, r->id, n, tw_unix_ms(), what->author,
		        (int64_t)what->event, (int64_t)r->status,
		        r->status == TW_REGRESS_FIXED ? r->of.fixed_in : "");
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "DELETE FROM regression_history WHERE project_id=? AND regression_id=? AND"
		        " n<=?",
		        "tti", project_id, r->id, n - TW_REGRESSION_ENTRIES);
	return st;
}

static enum tw_status note(struct tw_db *db, const char *project_id, const struct tw_regression *r,
        const struct tw_regression_digest *change, struct tw_err *err)
{
	char id[EVENT_ID_BYTES];
	const struct tw_notice what = {change->event, id, NULL};
	int64_t n = 0;
	enum tw_status st = add_entry(db, project_id, r, change, &n, err);

	if (st == TW_OK)
		st = tw_cat_ticket_returned(db, project_id, r, err);
	if (st != TW_OK || change->quiet)
		return st;
	(void)snprintf(id, sizeof id, "%s.%" PRId64, r->id, n);
	return queue_event(db, project_id, &what,
	        json_pack("{s:s, s:o}", "by", change->author, "regression",
	                tw_row_json(&tw_regression_fields, r)),
	        err);
}

enum tw_status tw_cat_regression_note(struct tw_db *db, const char *project_id,
        const char *regression_id, const struct tw_regression_digest *what, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct tw_regression r = {.id = ""};
	enum tw_status st =
	        a ? tw_cat_regression_read(db, project_id, regression_id, a, &r, err) : tw_oom(err);

	if (st == TW_OK)
		st = note(db, project_id, &r, what, err);
	tw_arena_free(a);
	return st;
}

static const struct tw_fields entry_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_regression_entry, n, "n", NULL),
                TW_FIELD(struct tw_regression_entry, at_ms, "at_ms", NULL),
                TW_FIELD(struct tw_regression_entry, author, "author", NULL),
                TW_FIELD(struct tw_regression_entry, event, "event", NULL),
                TW_FIELD(struct tw_regression_entry, status, "status", NULL),
                TW_FIELD(struct tw_regression_entry, version, "version", NULL));

enum tw_status tw_catalogue_regression_history(struct tw_catalogue *c, const char *project_id,
        const char *regression_id, struct tw_arena *a, struct tw_regression_entry **ret,
        size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_REGRESSION_ENTRIES, &entry_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM regression_history WHERE project_id=? AND regression_id=? "
	        "ORDER BY n DESC LIMIT ?",
	        "tti", project_id, regression_id, (int64_t)TW_REGRESSION_ENTRIES);
}

/* --- ANRs --- */

struct shown { /* properties of the trace that first showed a group */
	const char *app, *version, *device, *os;
	int64_t recorded_ms;
	bool first;
};

static enum tw_status read_shown(
        struct tw_cat_query *q, struct tw_arena *a, struct shown *ret, struct tw_err *err)
{
	*ret = (struct shown){0};
	if (tw_cat_row(q))
		*ret = (struct shown){tw_cat_text(q, 0, a), tw_cat_text(q, 1, a),
		        tw_cat_text(q, 2, a), tw_cat_text(q, 3, a), tw_cat_int(q, 4), true};
	return tw_cat_close_after(q,
	        ret->first && (!ret->app || !ret->version || !ret->device || !ret->os) ? tw_oom(err)
	                                                                               : TW_OK,
	        err);
}

/* of_group: the report is the first of this group; "": any report. */
static enum tw_status find_shown(struct tw_db *db, const struct tw_anr_stale *of,
        const char *of_group, struct tw_arena *a, struct shown *ret, struct tw_err *err)
{
	struct tw_cat_query q;
	enum tw_status st = tw_cat_query(&q, db, err, /* primary keys, anr_trace_of_key */
	        "SELECT h.app, h.version_name, h.device, h.os, h.recorded_ms FROM anr a CROSS"
	        " JOIN anr_trace h ON h.project_id=a.project_id AND h.trace_id=a.trace_id WHERE"
	        " a.project_id=?1 AND a.trace_id=?2 AND (?3='' OR (a.key='' AND NOT"
	        " EXISTS(SELECT 1 FROM anr_trace o INDEXED BY anr_trace_of_key WHERE"
	        " o.project_id=?1 AND o.anr=1 AND o.key=?3)))",
	        "ttt", of->project_id, of->trace_id, of_group);

	return st == TW_OK ? read_shown(&q, a, ret, err) : st;
}

static json_t *anr_facts(
        const struct tw_anr_stale *of, const struct tw_anr_cause *cause, const struct shown *by)
{
	return json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "anr", "key",
	        cause->key, "kind", cause->kind, "name", cause->name, "title", cause->title,
	        "verdict", cause->verdict, "app", by->app, "version_name", by->version, "device",
	        by->device, "os", by->os, "trace", of->trace_id);
}

enum tw_status tw_cat_anr_note(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct shown by = {.first = false};
	char id[EVENT_ID_BYTES];
	const struct tw_notice what = {TW_HOOK_ANR, id, NULL};
	enum tw_status st = a ? find_shown(db, of, cause->key, a, &by, err) : tw_oom(err);

	(void)snprintf(id, sizeof id, "anr.%s", cause->key);
	if (st == TW_OK && by.first && by.recorded_ms >= tw_unix_ms() - NEWS_DAYS * TW_DAY_MS)
		st = queue_event(db, of->project_id, &what, anr_facts(of, cause, &by), err);
	tw_arena_free(a);
	return st;
}

enum tw_status tw_cat_anr_note_return(struct tw_db *db, const struct tw_anr_stale *of,
        const struct tw_anr_cause *cause, int64_t fixed_ms, struct tw_err *err)
{
	struct tw_arena *a = tw_arena_new(ARENA_BYTES);
	struct shown by = {.first = false};
	char id[EVENT_ID_BYTES];
	const struct tw_notice what = {TW_HOOK_ANR_RETURNED, id, NULL};
	enum tw_status st = a ? find_shown(db, of, "", a, &by, err) : tw_oom(err);

	(void)snprintf(id, sizeof id, "anr.%s.%" PRId64, cause->key, fixed_ms);
	if (st == TW_OK)
		st = tw_cat_ticket_group_returned(db, of->project_id, cause->key, true, err);
	if (st == TW_OK && by.first)
		st = queue_event(db, of->project_id, &what, anr_facts(of, cause, &by), err);
	tw_arena_free(a);
	return st;
}
