/* catalogue_outbox.c - the outbox of webhooks: adding, taking due deliveries, results. */
#include "server/catalogue/notify/catalogue_hook.h"

#include "server/base/age_clock.h"
#include "server/base/ulid.h"
#include "server/catalogue/catalogue_internal.h"

const char *const tw_outbox_names[] = {"waiting", "delivered", "given_up", NULL};

static int64_t abandon_at(int64_t now)
{
	return now + TW_HOOK_GIVE_UP_DAYS * TW_DAY_MS;
}

/* --- adding --- */

/* Devices can invent groups of ANRs. */
static enum tw_status is_flood(struct tw_db *db, const char *project_id,
        const struct tw_notice *what, bool *ret, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = TW_OK;

	if (what->event == TW_HOOK_ANR)
		st = tw_cat_get_int(db, &n, err, /* outbox_anrs */
		        "SELECT count(DISTINCT event_id) FROM outbox WHERE project_id=? AND event=4"
		        " AND created_ms>?",
		        "ti", project_id, tw_wait_ms() - INT64_C(3600000));
	*ret = n >= TW_HOOK_ANRS_PER_HOUR;
	return st;
}

enum tw_status tw_cat_notify(
        struct tw_db *db, const char *project_id, const struct tw_notice *what, struct tw_err *err)
{
	const int64_t now = tw_wait_ms();
	bool flood = false;
	enum tw_status st = is_flood(db, project_id, what, &flood, err);

	if (st != TW_OK || flood)
		return st;
	return tw_cat_exec(db, NULL, err, /* primary key, outbox_waiting */
	        "INSERT INTO"
	        " outbox(project_id,hook_id,event_id,event,facts,created_ms,due_ms,until_ms,"
	        "attempts_left) SELECT ?1, w.hook_id, ?2, ?3, ?4, ?5, ?5, ?6, ?7 FROM webhook w"
	        " WHERE w.project_id=?1 AND w.paused_ms=0 AND (w.events>>CAST(?3 AS"
	        " INTEGER))&1=1 AND (SELECT count(*) FROM outbox o WHERE o.project_id=?1 AND"
	        " o.hook_id=w.hook_id AND o.state=0)<?8 ON CONFLICT DO NOTHING",
	        "ttitiiii", project_id, what->id, (int64_t)what->event, what->facts, now,
	        abandon_at(now), (int64_t)TW_HOOK_ATTEMPTS_MAX, (int64_t)TW_HOOK_WAITING_MAX);
}

enum tw_status tw_cat_no_test(
        struct tw_db *db, const char *project_id, const char *hook_id, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(db, &there, err, /* outbox_tests */
	        "SELECT 1 FROM outbox INDEXED BY outbox_tests WHERE project_id=? AND hook_id=? AND"
	        " state=0 AND event=6",
	        "tt", project_id, hook_id);

	if (st == TW_OK && there)
		st = tw_fail(err, TW_CONFLICT,
		        "a test of this webhook is already queued or in progress: see its "
		        "deliveries");
	return st;
}

#define QUEUE_DELIVERY                                                                             \
	"INSERT INTO outbox(project_id,hook_id,event_id,event,facts,created_ms,"                   \
	"due_ms,until_ms,attempts_left) VALUES(?1,?2,?3,?4,?5,?6,?6,?7,?8) ON CONFLICT DO NOTHING"

enum tw_status tw_cat_notify_mail(
        struct tw_db *db, const char *project_id, const struct tw_notice *what, struct tw_err *err)
{
	const int64_t now = tw_wait_ms();

	return tw_cat_exec(db, NULL, err, QUEUE_DELIVERY, "tttitiii", project_id, TW_HOOK_MAIL,
	        what->id, (int64_t)what->event, what->facts, now, abandon_at(now),
	        (int64_t)TW_HOOK_ATTEMPTS_MAX);
}

static enum tw_status queue_for_hook(struct tw_db *db, const char *project_id, const char *hook_id,
        const struct tw_notice *what, struct tw_err *err)
{
	const int64_t now = tw_wait_ms();
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(db, &there, err, /* primary key */
	        "SELECT 1 FROM webhook WHERE project_id=? AND hook_id=?", "tt", project_id,
	        hook_id);

	if (st == TW_OK && !there)
		st = tw_fail(err, TW_NOT_FOUND, "no such webhook");
	if (st == TW_OK)
		st = tw_cat_no_test(db, project_id, hook_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err, QUEUE_DELIVERY, "tttitiii", project_id, hook_id,
		        what->id, (int64_t)what->event, what->facts, now, abandon_at(now),
		        INT64_C(1));
	return st;
}

enum tw_status tw_catalogue_hook_test(struct tw_catalogue *c, const char *project_id,
        const char *hook_id, const char *facts, int64_t *ret_id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	char id[TW_ID_BYTES];
	const struct tw_notice what = {TW_HOOK_TEST, id, facts};
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st != TW_OK)
		return st;
	tw_ulid_new(tw_unix_ms(), id);
	st = queue_for_hook(w, project_id, hook_id, &what, err);
	if (st == TW_OK)
		st = tw_cat_get_int(w, ret_id, err, /* outbox_once */
		        "SELECT delivery_id FROM outbox WHERE project_id=? AND hook_id=? AND"
		        " event_id=?",
		        "ttt", project_id, hook_id, id);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"webhook.test", project_id, hook_id}, err);
}

/* --- taking --- */

enum tw_status tw_catalogue_outbox_next(struct tw_catalogue *c, const char *after,
        char ret_project[TW_ID_BYTES], struct tw_err *err)
{
	return tw_cat_read_text(c, ret_project, TW_ID_BYTES, err, /* outbox_waiting */
	        "SELECT project_id FROM outbox INDEXED BY outbox_waiting WHERE state=0 AND"
	        " project_id>? ORDER BY project_id LIMIT 1",
	        "t", after);
}

static const struct tw_fields due_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_due, id, "o.delivery_id", NULL),
                TW_FIELD(struct tw_due, hook_id, "o.hook_id", NULL));

/* Of a paused or held hook only its test is considered. */
enum tw_status tw_catalogue_outbox_due(struct tw_catalogue *c, const char *project_id,
        int64_t now_ms, struct tw_arena *a, struct tw_due **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_HOOKS_MAX + 1, &due_fields, ret, ret_n),
	        err, /* primary key, outbox_tests, outbox_waiting */
	        "SELECT {columns} FROM (SELECT coalesce((SELECT t.delivery_id FROM outbox t "
	        "INDEXED BY outbox_tests WHERE t.project_id=?1 AND t.hook_id=of_project.hook_id "
	        "AND t.state=0 AND t.event=6 LIMIT 1), CASE WHEN of_project.open THEN (SELECT "
	        "d.delivery_id FROM outbox d INDEXED BY outbox_waiting WHERE d.project_id=?1 AND "
	        "d.hook_id=of_project.hook_id AND d.state=0 AND d.due_ms<=?2 ORDER BY d.due_ms, "
	        "d.delivery_id LIMIT 1) END) AS id FROM (SELECT hook_id, paused_ms=0 AND "
	        "hold_ms<=?2 AS open FROM webhook WHERE project_id=?1 UNION ALL SELECT ?3, 1=1) "
	        "of_project) f CROSS JOIN outbox o ON o.delivery_id=f.id ORDER BY o.due_ms, "
	        "o.delivery_id",
	        "tit", project_id, now_ms, TW_HOOK_MAIL);
}

static const struct tw_fields delivery_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_delivery, id, "o.delivery_id", NULL),
                TW_FIELD(struct tw_delivery, project_id, "o.project_id", NULL),
                TW_FIELD(struct tw_delivery, project, "p.name", NULL),
                TW_FIELD(struct tw_delivery, hook_id, "o.hook_id", NULL),
                TW_FIELD(struct tw_delivery, event_id, "o.event_id", NULL),
                TW_FIELD(struct tw_delivery, event, "o.event", NULL),
                TW_FIELD(struct tw_delivery, facts, "o.facts", NULL),
                TW_FIELD(struct tw_delivery, created_ms, "o.created_ms", NULL),
                TW_FIELD(struct tw_delivery, attempts, "o.attempts", NULL),
                TW_FIELD(struct tw_delivery, url, "w.url", NULL),
                TW_FIELD(struct tw_delivery, secret, "w.secret", NULL),
                TW_FIELD(struct tw_delivery, kind, "w.kind", NULL),
                TW_FIELD(struct tw_delivery, fails, "w.fails", NULL));

enum tw_status tw_catalogue_outbox_get(struct tw_catalogue *c, int64_t id, struct tw_arena *a,
        struct tw_delivery *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &delivery_fields, ret, "no such delivery"),
	        err, /* primary keys */
	        "SELECT {columns} FROM outbox o CROSS JOIN project p ON p.project_id=o.project_id "
	        "LEFT JOIN webhook w ON w.project_id=o.project_id AND w.hook_id=o.hook_id WHERE "
	        "o.delivery_id=?",
	        "i", id);
}

/* --- results --- */

static enum tw_status note_try(struct tw_db *db, const struct tw_delivery *of,
        const struct tw_tried *t, int *ret_there, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary keys */
	        "INSERT INTO outbox_attempt(delivery_id,n,at_ms,took_ms,http,error) SELECT"
	        " delivery_id, attempts+1, ?2, ?3, ?4, ?5 FROM outbox WHERE delivery_id=?1 ON "
	        "CONFLICT DO NOTHING",
	        "iiiit", of->id, t->at_ms, t->took_ms, t->http, t->error);

	if (st == TW_OK)
		st = tw_cat_exec(db, ret_there, err,
		        "UPDATE outbox SET attempts=attempts+1, attempts_left=attempts_left-1,"
		        " body=?2, due_ms=CASE WHEN ?6<>0 THEN due_ms ELSE ?3 END, state=CASE"
		        " WHEN ?4='' THEN 1 WHEN ?7<>0 OR attempts_left<=1 OR until_ms<=?5 THEN"
		        " 2 ELSE 0 END WHERE delivery_id=?1",
		        "ititiii", of->id, t->body, t->next_ms, t->error, t->at_ms,
		        (int64_t)t->holds_all, (int64_t)t->permanent);
	return st;
}

static enum tw_status pause(struct tw_db *db, const struct tw_delivery *of,
        const struct tw_tried *t, int *ret_paused, struct tw_err *err)
{
	const int64_t since = t->at_ms - TW_HOOK_PAUSE_H * INT64_C(3600000);

	return tw_cat_exec(db, ret_paused, err, /* primary key */
	        "UPDATE webhook SET paused_ms=?3, paused_why=?4 WHERE project_id=?1 AND hook_id=?2"
	        " AND paused_ms=0 AND (?5<>0 OR (fails>=?6 AND failing_ms<=?7))",
	        "ttitiii", of->project_id, of->hook_id, t->at_ms, t->error, (int64_t)t->gone,
	        (int64_t)TW_HOOK_PAUSE_FAILS, since);
}

static enum tw_status note_failure(struct tw_db *db, const struct tw_delivery *of,
        const struct tw_tried *t, int *ret_paused, struct tw_err *err)
{
	enum tw_status st = tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE webhook SET fails=fails+1, failing_ms=CASE WHEN failing_ms=0 THEN ?3 ELSE"
	        " failing_ms END, hold_ms=CASE WHEN ?4<>0 THEN max(hold_ms,?5) ELSE hold_ms END"
	        " WHERE project_id=?1 AND hook_id=?2",
	        "ttiii", of->project_id, of->hook_id, t->at_ms, (int64_t)t->holds_all, t->next_ms);

	return st == TW_OK ? pause(db, of, t, ret_paused, err) : st;
}

/* Limits the log of each hook. */
static enum tw_status trim(struct tw_db *db, const struct tw_delivery *of, struct tw_err *err)
{
	int64_t last = 0;
	enum tw_status st = tw_cat_get_int(db, &last, err, /* outbox_by_hook */
	        "SELECT delivery_id FROM outbox WHERE project_id=? AND hook_id=?"
	        " ORDER BY delivery_id DESC LIMIT 1 OFFSET ?",
	        "tti", of->project_id, of->hook_id, (int64_t)TW_HOOK_KEEP);

	if (st != TW_OK || last == 0)
		return st;
	st = tw_cat_exec(db, NULL, err, /* outbox_by_hook */
	        "DELETE FROM outbox_attempt WHERE delivery_id IN (SELECT delivery_id FROM outbox"
	        " WHERE project_id=? AND hook_id=? AND delivery_id<=? AND state<>0)",
	        "tti", of->project_id, of->hook_id, last);
	if (st == TW_OK)
		st = tw_cat_exec(db, NULL, err,
		        "DELETE FROM outbox WHERE project_id=? AND hook_id=? AND delivery_id<=? AND"
		        " state<>0",
		        "tti", of->project_id, of->hook_id, last);
	return st;
}

static enum tw_status note_all(struct tw_db *db, const struct tw_delivery *of,
        const struct tw_tried *t, int *ret_paused, struct tw_err *err)
{
	int there = 0;
	enum tw_status st = note_try(db, of, t, &there, err);

	if (st != TW_OK || !there) /* the hook was removed in the meantime */
		return st;
	if (!t->error[0])
		st = tw_cat_exec(db, NULL, err, /* primary key */
		        "UPDATE webhook SET fails=0, failing_ms=0, hold_ms=0, delivered_ms=?3 WHERE"
		        " project_id=?1 AND hook_id=?2",
		        "tti", of->project_id, of->hook_id, t->at_ms);
	else if (of->event != TW_HOOK_TEST)
		st = note_failure(db, of, t, ret_paused, err);
	return st == TW_OK ? trim(db, of, err) : st;
}

enum tw_status tw_catalogue_outbox_tried(struct tw_catalogue *c, const struct tw_delivery *of,
        const struct tw_tried *t, enum tw_outbox_state *ret, struct tw_err *err)
{
	struct tw_db *w = NULL;
	int paused = 0;
	int64_t state = TW_OUTBOX_GIVEN_UP;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st != TW_OK)
		return st;
	st = note_all(w, of, t, &paused, err);
	if (st == TW_OK)
		st = tw_cat_get_int(w, &state, err, /* primary key */
		        "SELECT state FROM outbox WHERE delivery_id=?", "i", of->id);
	*ret = (enum tw_outbox_state)state;
	if (!paused)
		return tw_cat_end(c, w, st, err);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"webhook.pause", of->project_id, of->hook_id,
	                .facts = {{"reason", t->error}}},
	        err);
}

/* --- expiry --- */

enum tw_status tw_catalogue_outbox_expire(
        struct tw_catalogue *c, int64_t now_ms, struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t before = now_ms - TW_HOOK_KEEP_DAYS * TW_DAY_MS;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* outbox_until */
		        "UPDATE outbox INDEXED BY outbox_until SET state=2"
		        " WHERE state=0 AND until_ms<=?1",
		        "i", now_ms);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* outbox_by_age, primary key */
		        "DELETE FROM outbox_attempt WHERE delivery_id" TW_EITHER(" IN (",
		                "=ANY(ARRAY(") "SELECT delivery_id FROM outbox WHERE"
		                               " state<>0 AND created_ms<? LIMIT 1000" TW_EITHER(
		                                       ")", "))"),
		        "i", before);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "DELETE FROM outbox WHERE " TW_CAT_SOME(
		                "delivery_id", "outbox WHERE state<>0 AND created_ms<? LIMIT 1000"),
		        "i", before);
	return tw_cat_end(c, w, st, err);
}

enum tw_status tw_catalogue_outbox_sums(
        struct tw_catalogue *c, struct tw_outbox_sums *ret, struct tw_err *err)
{
	struct tw_db *db;
	enum tw_status st = tw_cat_reader(c, &db, err);

	*ret = (struct tw_outbox_sums){0};
	if (st != TW_OK)
		return st;
	st = tw_cat_get_int(db, &ret->waiting, err, /* outbox_until */
	        "SELECT count(*) FROM outbox INDEXED BY outbox_until WHERE state=0", "");
	if (st == TW_OK)
		st = tw_cat_get_int(db, &ret->oldest_ms, err,
		        "SELECT until_ms-?1 FROM outbox INDEXED BY outbox_until WHERE state=0"
		        " ORDER BY until_ms LIMIT 1",
		        "i", TW_HOOK_GIVE_UP_DAYS * TW_DAY_MS);
	if (st == TW_OK)
		st = tw_cat_get_int(db, &ret->paused, err, /* a few of each project */
		        "SELECT count(*) FROM webhook WHERE paused_ms<>0", "");
	tw_cat_done(c, db);
	return st;
}
