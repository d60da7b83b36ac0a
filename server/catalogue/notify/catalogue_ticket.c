#include "server/catalogue/notify/catalogue_ticket.h"

#include <stdio.h>

#include "server/base/age_clock.h"
#include "server/base/file/sha256.h"
#include "server/catalogue/catalogue_internal.h"

const char *const tw_ticket_state_names[TW_TICKET_STATES + 1] = {
        "waiting", "open", "closed", "reopening", "failed", NULL};

enum { RETURNS_MOST = 100, TAG_DIGITS = 32 };

/* --- tags --- */

void tw_ticket_tag(const char *project_id, enum tw_ticket_kind kind, const char *subject_id,
        char ret[TW_TICKET_TAG_BYTES])
{
	char text[512], hex[TW_SHA256_HEX];
	uint8_t hash[32];

	(void)snprintf(text, sizeof text, "%s %d %s", project_id, (int)kind, subject_id);
	tw_sha256_bytes(tw_str_of(text), hash);
	tw_sha256_hex(hash, hex);
	(void)snprintf(ret, TW_TICKET_TAG_BYTES, "tracewell-%.*s", (int)TAG_DIGITS, hex);
}

enum tw_status tw_catalogue_ticket_regression_tag(struct tw_catalogue *c, const char *project_id,
        const struct tw_regression *of, struct tw_arena *a, char ret[TW_TICKET_TAG_BYTES],
        struct tw_err *err)
{
	struct tw_regression first = *of;
	enum tw_status st = TW_OK;

	for (int i = 0; st == TW_OK && first.earlier[0] && i < RETURNS_MOST; i++)
		st = tw_catalogue_regression_get(c, project_id, first.earlier, a, &first, err);
	if (st != TW_OK && st != TW_NOT_FOUND) /* an old one was deleted */
		return st;
	tw_ticket_tag(project_id, TW_TICKET_REGRESSION,
	        st == TW_NOT_FOUND ? first.earlier : first.id, ret);
	return TW_OK;
}

/* --- rows --- */

#define TICKET(member, column, ...) TW_FIELD(struct tw_ticket, member, column, NULL, __VA_ARGS__)
static const struct tw_fields ticket_fields = TW_FIELDS_OF(TICKET(project_id, "project_id"),
        TICKET(tag, "tag"), TICKET(subject_id, "subject_id"), TICKET(tracker, "tracker"),
        TICKET(title, "title"), TICKET(body, "body"), TICKET(assignee, "assignee"),
        TICKET(author, "author"), TICKET(key, "ticket_key"), TICKET(url, "url"),
        TICKET(error, "error"), TICKET(kind, "kind"),
        TICKET(state, "state", .names = tw_ticket_state_names), TICKET(attempts, "attempts"),
        TICKET(due_ms, "due_ms"), TICKET(created_ms, "created_ms"),
        TICKET(changed_ms, "changed_ms"));

enum tw_status tw_catalogue_ticket_get(struct tw_catalogue *c, const char *project_id,
        const char *tag, struct tw_arena *a, struct tw_ticket *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &ticket_fields, ret, "no ticket was created for it"),
	        err, /* primary key */
	        "SELECT {columns} FROM ticket WHERE project_id=? AND tag=?", "tt", project_id, tag);
}

enum tw_status tw_catalogue_tickets_due(struct tw_catalogue *c, int64_t now_ms, struct tw_arena *a,
        struct tw_ticket **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_TICKETS_DUE, &ticket_fields, ret, ret_n),
	        err, /* ticket_due */
	        "SELECT {columns} FROM ticket WHERE due_ms>0 AND due_ms<=?"
	        " ORDER BY CASE state WHEN 1 THEN 1 ELSE 0 END, due_ms LIMIT ?",
	        "ii", now_ms, (int64_t)TW_TICKETS_DUE);
}

/* --- changes --- */

enum tw_status tw_catalogue_ticket_add(
        struct tw_catalogue *c, const struct tw_ticket *t, struct tw_err *err)
{
	const int64_t now = tw_wait_ms();

	/* attempts are retained: a failed creation may have succeeded in the tracker */
	return tw_cat_run(c,
	        &(struct tw_cat_statement){TW_SUBJECT_NOTIFY, "",
	                .change = &(struct tw_change){"ticket.create", t->project_id, t->subject_id,
	                        .facts = {{"tracker", t->tracker}, {"tag", t->tag}}}},
	        err,
	        "INSERT INTO ticket(project_id,tag,kind,subject_id,tracker,title,body,assignee,"
	        "author,state,due_ms,created_ms,changed_ms)"
	        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,0,?10,?10,?10)"
	        " ON CONFLICT(project_id,tag) DO UPDATE SET subject_id=excluded.subject_id,"
	        " tracker=excluded.tracker, title=excluded.title, body=excluded.body,"
	        " assignee=excluded.assignee, author=excluded.author, ticket_key='', url='',"
	        " error='', state=0, due_ms=excluded.due_ms, changed_ms=excluded.changed_ms"
	        " WHERE ticket.state=4",
	        "ttitttttti", t->project_id, t->tag, (int64_t)t->kind, t->subject_id, t->tracker,
	        t->title, t->body, t->assignee, t->author, now);
}

enum tw_status tw_catalogue_ticket_change(struct tw_catalogue *c, const struct tw_ticket *t,
        enum tw_ticket_state from, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_NOTIFY, ""},
	        err, /* primary key */
	        "UPDATE ticket SET tracker=?3, assignee=?4, ticket_key=?5, url=?6, error=?7,"
	        " state=?8, attempts=?9, due_ms=?10, changed_ms=?11 WHERE project_id=?1 AND tag=?2"
	        " AND state=?12",
	        "tttttttiiiii", t->project_id, t->tag, t->tracker, t->assignee, t->key, t->url,
	        t->error, (int64_t)t->state, t->attempts, t->due_ms, tw_wait_ms(), (int64_t)from);
}

enum tw_status tw_catalogue_tickets_hold(
        struct tw_catalogue *c, const char *project_id, int64_t until_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_NOTIFY, ""},
	        err, /* primary key */
	        "UPDATE ticket SET due_ms=?2 WHERE project_id=?1 AND due_ms>0 AND due_ms<?2", "ti",
	        project_id, until_ms);
}

enum tw_status tw_catalogue_tickets_expire(
        struct tw_catalogue *c, int64_t now_ms, struct tw_err *err)
{
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_NOTIFY, ""},
	        err, /* ticket_due */
	        "DELETE FROM ticket WHERE due_ms=0 AND changed_ms<?", "i",
	        now_ms - TW_TICKET_KEEP_DAYS * TW_DAY_MS);
}

enum tw_status tw_cat_ticket_returned(
        struct tw_db *db, const char *project_id, const struct tw_regression *r, struct tw_err *err)
{
	/* an open ticket may have been closed in the tracker, which would fix the new regression */
	const bool returned = r->status == TW_REGRESS_RETURNED;

	if (r->status == TW_REGRESS_FIXED)
		return TW_OK;
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE ticket SET subject_id=?2, state=3, attempts=0, error='', due_ms=?4 WHERE"
	        " project_id=?1 AND kind=0 AND (state=2 OR (state=1 AND ?5=1 AND subject_id=?3))"
	        " AND (subject_id=?2 OR subject_id=?3)",
	        "tttii", project_id, r->id, r->earlier, tw_wait_ms(), (int64_t)returned);
}

enum tw_status tw_cat_ticket_group_returned(struct tw_db *db, const char *project_id,
        const char *key, bool by_report, struct tw_err *err)
{
	char tag[TW_TICKET_TAG_BYTES];

	tw_ticket_tag(project_id, TW_TICKET_ANR, key, tag);
	return tw_cat_exec(db, NULL, err, /* primary key */
	        "UPDATE ticket SET state=3, attempts=0, error='', due_ms=?3 WHERE project_id=?1 AND"
	        " tag=?2 AND (state=2 OR (state=1 AND ?4=1))",
	        "ttii", project_id, tag, tw_wait_ms(), (int64_t)by_report);
}
