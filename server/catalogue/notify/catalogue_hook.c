#include "server/catalogue/notify/catalogue_hook.h"

#include "server/base/age_clock.h"
#include "server/catalogue/catalogue_internal.h"

enum { HOST_BYTES = 300, SECRETS_MAX = 200000 };

#define HOOK(member, column, json) TW_FIELD(struct tw_webhook, member, column, json)
static const struct tw_field hook_fields[] = {
        HOOK(id, "hook_id", "id"),
        HOOK(name, "name", "name"),
        HOOK(url, "url", "url"),
        HOOK(secret, "secret", NULL),
        TW_FIELD(struct tw_webhook, kind, "kind", "kind", .names = tw_hook_kind_names),
        HOOK(events, "events", NULL),
        HOOK(author, "author", "author"),
        HOOK(created_ms, "created_ms", "created_ms"),
        HOOK(delivered_ms, "delivered_ms", "delivered_ms"),
        HOOK(failing_ms, "failing_ms", "failing_ms"),
        HOOK(fails, "fails", "consecutive_failures"),
        HOOK(paused_ms, "paused_ms", "paused_ms"),
        HOOK(paused_why, "paused_why", "paused_reason"),
        HOOK(waiting,
                "(SELECT count(*) FROM outbox o WHERE o.project_id=w.project_id AND"
                " o.hook_id=w.hook_id AND o.state=0)",
                "waiting"),
};
const struct tw_fields tw_hook_fields = TW_FIELDS(hook_fields);

#define COLUMNS "SELECT {columns} FROM webhook w WHERE project_id=?1 "

enum tw_status tw_catalogue_hooks(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_webhook **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_HOOKS_MAX, &tw_hook_fields, ret, ret_n), err,
	        COLUMNS "ORDER BY hook_id", "t", project_id); /* primary key */
}

static const char no_hook[] = "no such webhook";

enum tw_status tw_catalogue_hook_get(struct tw_catalogue *c, const char *project_id, const char *id,
        struct tw_arena *a, struct tw_webhook *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &tw_hook_fields, ret, no_hook), err,
	        COLUMNS "AND hook_id=?2", "tt", project_id, id);
}

static const struct tw_fields secret_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_stored_secret, project_id, "", NULL),
                TW_FIELD(struct tw_stored_secret, encrypted, "", NULL));

enum tw_status tw_catalogue_secrets(struct tw_catalogue *c, struct tw_arena *a,
        struct tw_stored_secret **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, SECRETS_MAX, &secret_fields, ret, ret_n), err,
	        "SELECT project_id, secret FROM webhook UNION ALL" /* at most a few per project */
	        " SELECT project_id, value FROM project_setting WHERE value LIKE 'sealed:%'"
	        " LIMIT ?",
	        "i", (int64_t)SECRETS_MAX);
}

static enum tw_status has_space(struct tw_db *db, const char *project_id, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT count(*) FROM webhook WHERE project_id=?", "t", project_id);

	if (st == TW_OK && n >= TW_HOOKS_MAX)
		st = tw_fail(err, TW_CONFLICT,
		        "a project has at most %d webhooks; remove one first", TW_HOOKS_MAX);
	return st;
}

/* An address may be a secret: the audit log contains only its host. */
static enum tw_status end_changed(struct tw_catalogue *c, struct tw_db *w, enum tw_status st,
        const char *action, const char *project_id, const struct tw_webhook *h, struct tw_err *err)
{
	char host[HOST_BYTES];

	tw_hook_host(h->url, host, sizeof host);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){action, project_id, h->id,
	                .facts = {{"name", h->name}, {"host", host},
	                        {"kind", tw_hook_kind_names[h->kind]},
	                        {"paused", h->paused_ms ? "yes" : "no"}}},
	        err);
}

enum tw_status tw_catalogue_hook_add(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t now = tw_unix_ms();
	struct tw_webhook made = *h;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st != TW_OK)
		return st;
	tw_ulid_new(now, ret_id);
	made.id = ret_id;
	st = has_space(w, project_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO webhook(project_id,hook_id,name,url,kind,events,secret,author,"
		        "created_ms) VALUES(?,?,?,?,?,?,?,?,?)",
		        "ttttiitti", project_id, ret_id, h->name, h->url, (int64_t)h->kind,
		        (int64_t)h->events, h->secret, h->author, now);
	return end_changed(c, w, st, "webhook.create", project_id, &made, err);
}

enum tw_status tw_catalogue_hook_change(struct tw_catalogue *c, const char *project_id,
        const struct tw_webhook *h, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st != TW_OK)
		return st;
	st = tw_cat_change(w, no_hook, err, /* primary key */
	        "UPDATE webhook SET name=?3, url=?4, kind=?5, events=?6, secret=?7,"
	        " fails=CASE WHEN ?8=0 AND paused_ms<>0 THEN 0 ELSE fails END,"
	        " failing_ms=CASE WHEN ?8=0 AND paused_ms<>0 THEN 0 ELSE failing_ms END,"
	        " hold_ms=CASE WHEN ?8=0 THEN 0 ELSE hold_ms END, paused_ms=?8, paused_why=?9 "
	        "WHERE project_id=?1 AND hook_id=?2",
	        "ttttiitit", project_id, h->id, h->name, h->url, (int64_t)h->kind,
	        (int64_t)h->events, h->secret, h->paused_ms, h->paused_why);
	if (st == TW_OK && !h->paused_ms)      /* a new address may work immediately */
		st = tw_cat_exec(w, NULL, err, /* outbox_waiting */
		        "UPDATE outbox SET due_ms=min(due_ms,?3) WHERE project_id=?1 AND hook_id=?2"
		        " AND state=0",
		        "tti", project_id, h->id, tw_wait_ms());
	return end_changed(c, w, st, "webhook.change", project_id, h, err);
}

enum tw_status tw_catalogue_hook_delete(
        struct tw_catalogue *c, const char *project_id, const char *id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_NOTIFY, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_change(w, no_hook, err,
		        "DELETE FROM webhook WHERE project_id=? AND hook_id=?", "tt", project_id,
		        id);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* outbox_by_hook, primary key */
		        "DELETE FROM outbox_attempt WHERE delivery_id IN (SELECT delivery_id FROM"
		        " outbox WHERE project_id=? AND hook_id=?)",
		        "tt", project_id, id);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "DELETE FROM outbox WHERE project_id=? AND hook_id=?", "tt", project_id,
		        id);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"webhook.remove", project_id, id}, err);
}
