#include "server/catalogue/notify/catalogue_alert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/lookup.h"
#include "server/base/age_clock.h"
#include "server/base/file/sha256.h"
#include "server/base/text/json.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/catalogue_internal.h"
#include "server/catalogue/fleet/catalogue_regression_int.h"
#include "server/catalogue/notify/catalogue_hook.h"

enum { KEPT_DAYS = 400, EVENT_ID_BYTES = 96, QUIET_MS = 24 * 3600 * 1000 };

const char *const tw_alert_kind_names[TW_ALERT_KINDS + 1] = {
#define ALERT_KIND(id, unit, quantile) #id,
#include "server/catalogue/notify/alert_kinds.def"
#undef ALERT_KIND
        NULL};
const char *const tw_alert_units[TW_ALERT_KINDS] = {
#define ALERT_KIND(id, unit, quantile) unit,
#include "server/catalogue/notify/alert_kinds.def"
#undef ALERT_KIND
};

bool tw_alert_is_quantile(enum tw_alert_kind k)
{
	static const bool quantiles[TW_ALERT_KINDS] = {
#define ALERT_KIND(id, unit, quantile) quantile,
#include "server/catalogue/notify/alert_kinds.def"
#undef ALERT_KIND
	};

	return quantiles[k];
}

bool tw_alert_is_of_method(enum tw_alert_kind k)
{
	return k == TW_ALERT_method_self || k == TW_ALERT_method_share;
}

/* --- rules --- */

#define RULE(member, column, json) TW_FIELD(struct tw_alert_rule, member, "r." column, json)
static const struct tw_field rule_fields[] = {
        RULE(id, "rule_id", "id"),
        RULE(name, "name", "name"),
        RULE(app, "app", "app"),
        RULE(scenario, "scenario", "scenario"),
        RULE(version_name, "version_name", "version_name"),
        RULE(method, "method", "method"),
        RULE(author, "author", "author"),
        TW_FIELD(struct tw_alert_rule, kind, "r.kind", "kind", .names = tw_alert_kind_names),
        RULE(percentile, "percentile", "percentile"),
        RULE(days, "days", "days"),
        RULE(threshold, "limit_micro", NULL),
        RULE(min_traces, "min_traces", "min_traces"),
        RULE(mail, "mail", "mail"),
        RULE(created_ms, "created_ms", "created_ms"),
        RULE(changed_ms, "changed_ms", "updated_ms"),
};
const struct tw_fields tw_alert_rule_fields = TW_FIELDS(rule_fields);

enum tw_status tw_catalogue_alert_rules(struct tw_catalogue *c, const char *project_id,
        struct tw_arena *a, struct tw_alert_rule **ret, size_t *ret_n, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_ALERT_RULES_MAX, &tw_alert_rule_fields, ret, ret_n),
	        err, /* primary key */
	        "SELECT {columns} FROM alert_rule r WHERE r.project_id=? ORDER BY r.rule_id"
	        " LIMIT ?",
	        "ti", project_id, (int64_t)TW_ALERT_RULES_MAX);
}

enum tw_status tw_catalogue_alert_rule_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_alert_rule *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &tw_alert_rule_fields, ret, "no such alert rule"),
	        err, /* primary key */
	        "SELECT {columns} FROM alert_rule r WHERE r.project_id=? AND r.rule_id=?", "tt",
	        project_id, id);
}

static enum tw_status has_space(struct tw_db *db, const char *project_id, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT count(*) FROM alert_rule WHERE project_id=?", "t", project_id);

	if (st == TW_OK && n >= TW_ALERT_RULES_MAX)
		st = tw_fail(err, TW_CONFLICT, "a project has at most %d alert rules",
		        TW_ALERT_RULES_MAX);
	return st;
}

/* Alerts of two rules with one name could not be distinguished in the inbox and in mails. */
static enum tw_status has_free_name(struct tw_db *db, const char *project_id, const char *name,
        const char *id, struct tw_err *err)
{
	int64_t n = 0;
	enum tw_status st = tw_cat_get_int(db, &n, err, /* primary key */
	        "SELECT count(*) FROM alert_rule WHERE project_id=? AND name=? AND rule_id<>?",
	        "ttt", project_id, name, id);

	if (st == TW_OK && n)
		st = tw_fail(err, TW_CONFLICT,
		        "another alert rule has the name %.100s: choose a different one", name);
	return st;
}

enum tw_status tw_catalogue_alert_rule_add(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *r, char ret_id[TW_ID_BYTES], struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t now = tw_unix_ms();
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	tw_ulid_new(now, ret_id);
	if (st == TW_OK)
		st = has_space(w, project_id, err);
	if (st == TW_OK)
		st = has_free_name(w, project_id, r->name, ret_id, err);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err,
		        "INSERT INTO"
		        " alert_rule(project_id,rule_id,name,app,scenario,version_name,author,"
		        "kind,percentile,days,limit_micro,min_traces,mail,created_ms,changed_ms,"
		        "method)"
		        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?14,?15)",
		        "tttttttiiiiiiit", project_id, ret_id, r->name, r->app, r->scenario,
		        r->version_name, r->author, (int64_t)r->kind, (int64_t)r->percentile,
		        (int64_t)r->days, r->threshold, (int64_t)r->min_traces, (int64_t)r->mail,
		        now, r->method);
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){"alert.create", project_id, ret_id,
	                .facts = {{"name", r->name}, {"kind", tw_alert_kind_names[r->kind]}}},
	        err);
}

enum tw_status tw_catalogue_alert_rule_change(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *r, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = has_free_name(w, project_id, r->name, r->id, err);
	if (st == TW_OK)
		st = tw_cat_change(w, "no such alert rule", err, /* primary key */
		        "UPDATE alert_rule SET name=?3, percentile=?4, days=?5, limit_micro=?6,"
		        " min_traces=?7, mail=?8, changed_ms=?9 WHERE project_id=?1 AND rule_id=?2",
		        "tttiiiiii", project_id, r->id, r->name, (int64_t)r->percentile,
		        (int64_t)r->days, r->threshold, (int64_t)r->min_traces, (int64_t)r->mail,
		        tw_unix_ms());
	return tw_cat_end_audited(c, w, st,
	        &(struct tw_change){
	                "alert.change", project_id, r->id, .facts = {{"name", r->name}}},
	        err);
}

enum tw_status tw_catalogue_alert_rule_delete(
        struct tw_catalogue *c, const char *project_id, const char *id, struct tw_err *err)
{
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = tw_cat_change(w, "no such alert rule", err, /* primary key */
		        "DELETE FROM alert_rule WHERE project_id=? AND rule_id=?", "tt", project_id,
		        id);
	if (st == TW_OK)
		st = tw_cat_exec(w, NULL, err, /* primary key: few rows per project */
		        "DELETE FROM alert WHERE project_id=? AND rule_id=?", "tt", project_id, id);
	return tw_cat_end_audited(
	        c, w, st, &(struct tw_change){"alert.remove", project_id, id}, err);
}

/* --- alerts --- */

#define ALERT(member, column) TW_FIELD(struct tw_alert, member, "x." column, NULL)
static const struct tw_field alert_fields[] = {
        TW_FIELD_OF_GROUP(struct tw_alert, rule, &tw_alert_rule_fields, NULL),
        ALERT(id, "alert_id"),
        ALERT(of.app, "app"),
        ALERT(of.subject, "subject"),
        ALERT(of.title, "title"),
        ALERT(of.trace_id, "trace_id"),
        ALERT(of.value, "value_micro"),
        ALERT(of.traces, "traces"),
        ALERT(of.is_over, "is_over"),
        TW_FIELD(
                struct tw_alert, triage.status, "x.status", NULL, .names = tw_regress_status_names),
        ALERT(triage.fixed_in, "fixed_in"),
        ALERT(triage.owner, "owner"),
        ALERT(triage.note, "note"),
        ALERT(triage.muted_until_ms, "muted_until_ms"),
        ALERT(first_ms, "first_ms"),
        ALERT(last_ms, "last_ms"),
};
static const struct tw_fields fields_of_alert = TW_FIELDS(alert_fields);

#define ALERTS_WHERE                                                                               \
	"SELECT {columns} FROM alert x CROSS JOIN alert_rule r WHERE x.project_id=?1 AND"          \
	" r.project_id=?1 AND r.rule_id=x.rule_id AND "

enum tw_status tw_catalogue_alert_get(struct tw_catalogue *c, const char *project_id,
        const char *id, struct tw_arena *a, struct tw_alert *ret, struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_ONE(a, &fields_of_alert, ret, "no such alert"),
	        err, /* primary keys */
	        ALERTS_WHERE "x.alert_id=?2", "tt", project_id, id);
}

enum tw_status tw_catalogue_alerts_of(struct tw_catalogue *c, const char *project_id,
        const char *rule_id, struct tw_arena *a, struct tw_alert **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, TW_ALERTS_OF_RULE_MAX, &fields_of_alert, ret, ret_n),
	        err, /* primary keys */
	        ALERTS_WHERE "x.rule_id=?2 ORDER BY x.is_over DESC, x.last_ms DESC, x.alert_id"
	                     " LIMIT ?3",
	        "tti", project_id, rule_id, (int64_t)TW_ALERTS_OF_RULE_MAX);
}

enum tw_status tw_catalogue_inbox_alerts(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_arena *a, struct tw_alert **ret, size_t *ret_n,
        struct tw_err *err)
{
	return tw_cat_list(c, TW_CAT_LIST(a, of->limit, &fields_of_alert, ret, ret_n),
	        err, /* alert_by_last, primary key */
	        ALERTS_WHERE "1=1" TW_INBOX_PAGE("alert_id"), TW_INBOX_TYPES,
	        TW_INBOX_ARGS(project_id, of));
}

enum tw_status tw_catalogue_inbox_count_alerts(struct tw_catalogue *c, const char *project_id,
        const struct tw_inbox_query *of, struct tw_inbox_counts *ret, struct tw_err *err)
{
	return tw_cat_inbox_count(c, /* alert_by_last, alert_by_status */
	        TW_INBOX_COUNTS("alert"), project_id, of, ret, err);
}

static enum tw_status triage_alert(struct tw_db *w, const char *project_id, const char *id,
        const struct tw_triage *what, struct tw_err *err)
{
	return tw_cat_change(w, "no such alert", err, /* primary key */
	        "UPDATE alert SET status=?3, fixed_in=?4, owner=?5, note=?6, muted_until_ms=?7"
	        " WHERE project_id=?1 AND alert_id=?2",
	        "ttittti", project_id, id, (int64_t)what->status, what->fixed_in, what->owner,
	        what->note, what->muted_until_ms);
}

enum tw_status tw_catalogue_triage(struct tw_catalogue *c, const char *project_id,
        const struct tw_triage_item *items, size_t n, struct tw_err *err)
{
	static const struct {
		const char *action;
		enum tw_status (*apply)(struct tw_db *, const char *, const char *,
		        const struct tw_triage *, struct tw_err *);
	} kinds[] = {[TW_TRIAGE_REGRESSION] = {"regression.change", tw_cat_regression_triage},
	        [TW_TRIAGE_ANR] = {"anr.change", tw_cat_anr_triage},
	        [TW_TRIAGE_ALERT] = {"alert.answer", triage_alert}};
	struct tw_db *w = NULL;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st != TW_OK)
		return st;
	for (size_t i = 0; i < n && st == TW_OK; i++)
		if (items[i].kind == TW_TRIAGE_ANR) {
			st = tw_cat_lock(w, TW_SUBJECT_ANR, "", true, err);
			break;
		}
	for (size_t i = 0; i < n && st == TW_OK; i++) {
		const struct tw_triage_item *of = &items[i];
		const int64_t muted_ms = of->what.muted_until_ms;
		char number[TW_NUMBER_BYTES];
		const struct tw_change change = {kinds[of->kind].action, project_id, of->id,
		        .facts = {{"status", tw_regress_status_names[of->what.status]},
		                {"owner", of->what.owner},
		                {"muted_until_ms",
		                        muted_ms ? tw_cat_number(muted_ms, number) : NULL}}};

		st = kinds[of->kind].apply(w, project_id, of->id, &of->what, err);
		if (st == TW_OK)
			st = tw_cat_audit(w, &change, err);
	}
	return tw_cat_end(c, w, st, err);
}

/* --- figures --- */

bool tw_alert_is_over(bool was, int64_t value, int64_t threshold)
{
	return value > (was ? threshold - threshold / 10 : threshold);
}

static double units(int64_t micro)
{
	return (double)micro / TW_ALERT_MICRO;
}

json_t *tw_alert_json(
        const char *id, const struct tw_alert_rule *rule, const struct tw_alert_figure *of)
{
	const bool group = rule->kind == TW_ALERT_anr_spike;

	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f,"
	                 " s:I, s:i}",
	        "id", id, "rule", rule->id, "name", rule->name, "kind",
	        tw_alert_kind_names[rule->kind], "percentile", (int)rule->percentile, "unit",
	        tw_alert_units[rule->kind], "app", of->app, "scenario", rule->scenario, "method",
	        rule->method, "version", group ? "" : of->subject, "anr", group ? of->subject : "",
	        "trace", of->trace_id, "value", units(of->value), "threshold",
	        units(rule->threshold), "traces", (json_int_t)of->traces, "days", (int)rule->days);
}

struct stored {
	bool exists, is_over, quiet;
	enum tw_regress_status status;
	int64_t n_events, event_ms, muted_until_ms;
};

#define STORED(member, column) TW_FIELD(struct stored, member, column, NULL)
static const struct tw_fields stored_fields = TW_FIELDS_OF(STORED(is_over, "is_over"),
        STORED(quiet, "quiet"), STORED(status, "status"), STORED(n_events, "notified"),
        STORED(event_ms, "notified_ms"), STORED(muted_until_ms, "muted_until_ms"));

/* Whether it is above its threshold, not reported, and not acknowledged, fixed or muted by a
 * person. */
static bool is_unreported(const struct stored *s, int64_t now)
{
	return s->quiet && s->status != TW_REGRESS_ACKNOWLEDGED && s->status != TW_REGRESS_FIXED &&
	       s->muted_until_ms <= now && s->event_ms <= now - QUIET_MS;
}

/* The change of an alert that a figure causes; false: no event. */
static bool step(struct stored *io, bool over, int64_t now, enum tw_hook_event *ret)
{
	const bool was = io->is_over;

	io->is_over = over;
	if (over && was && is_unreported(io, now)) {
		io->quiet = false;
		*ret = TW_HOOK_ALERT_RETURNED;
		return true;
	}
	if (over == was)
		return false;
	if (!over) {
		*ret = TW_HOOK_ALERT_FIXED;
		if (io->status == TW_REGRESS_FIXED)
			return false;
		io->status = TW_REGRESS_FIXED;
		return !io->quiet && io->muted_until_ms <= now;
	}
	*ret = io->exists ? TW_HOOK_ALERT_RETURNED : TW_HOOK_ALERT;
	if (io->exists && io->status == TW_REGRESS_FIXED)
		io->status = TW_REGRESS_RETURNED;
	io->quiet = io->muted_until_ms > now || (io->n_events && io->event_ms > now - QUIET_MS);
	return !io->quiet;
}

static enum tw_status queue_mails(struct tw_db *db, const char *project_id,
        const struct tw_notice *of, json_t *facts, const struct tw_alert_mails *mails,
        struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < mails->n; i++) {
		char id[EVENT_ID_BYTES];
		char *text;

		(void)snprintf(id, sizeof id, "%s.%zu", of->id, i + 1);
		(void)json_object_set_new(facts, "to", json_string(mails->to[i]));
		text = tw_json_dumps(facts, JSON_COMPACT);
		st = text ? tw_cat_notify_mail(
		                    db, project_id, &(struct tw_notice){of->event, id, text}, err)
		          : tw_oom(err);
		free(text);
	}
	return st;
}

struct putting {
	const char *project_id;
	const struct tw_alert_rule *rule;
	const struct tw_alert_mails *mails;
	const struct tw_alert_figure *of;
	char id[TW_ALERT_ID_BYTES];
};

static enum tw_status queue(struct tw_db *db, const struct putting *p, enum tw_hook_event event,
        int64_t n, struct tw_err *err)
{
	const struct tw_alert_mails none = {NULL, 0};
	char id[EVENT_ID_BYTES];
	struct tw_notice what = {event, id, NULL};
	json_t *alert = tw_alert_json(p->id, p->rule, p->of);
	json_t *facts;
	char *text;
	enum tw_status st;

	if (alert)
		(void)json_object_set_new(alert, "title", json_string(p->of->title));
	facts = json_pack("{s:o}", "alert", alert);
	text = tw_json_dumps(facts, JSON_COMPACT);
	(void)snprintf(id, sizeof id, "alert.%s.%" PRId64, p->id, n);
	what.facts = text;
	st = facts && text ? tw_cat_notify(db, p->project_id, &what, err) : tw_oom(err);
	if (st == TW_OK)
		st = queue_mails(
		        db, p->project_id, &what, facts, p->rule->mail ? p->mails : &none, err);
	free(text);
	json_decref(facts);
	return st;
}

static enum tw_status store(
        struct tw_db *db, const struct putting *p, const struct stored *s, struct tw_err *err)
{
	const int64_t now = tw_unix_ms();
	const struct tw_alert_figure *f = p->of;

	return tw_cat_exec(db, NULL, err, /* primary key */
	        "INSERT INTO alert(project_id,alert_id,rule_id,app,subject,title,trace_id,"
	        "value_micro,traces,is_over,notified,notified_ms,quiet,status,first_ms,last_ms)"
	        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?15)"
	        " ON CONFLICT(project_id,alert_id) DO UPDATE SET title=excluded.title,"
	        " trace_id=excluded.trace_id, value_micro=excluded.value_micro,"
	        " traces=excluded.traces, is_over=excluded.is_over, notified=excluded.notified,"
	        " notified_ms=excluded.notified_ms, quiet=excluded.quiet, status=excluded.status,"
	        " last_ms=CASE WHEN excluded.is_over=1 THEN excluded.last_ms ELSE alert.last_ms"
	        " END",
	        "tttttttiiiiiiii", p->project_id, p->id, p->rule->id, f->app, f->subject, f->title,
	        f->trace_id, f->value, (int64_t)f->traces, (int64_t)s->is_over, s->n_events,
	        s->event_ms, (int64_t)s->quiet, (int64_t)s->status, now);
}

/* Skips a rule that was changed or deleted since the figure was computed; the next evaluation
 * handles it. */
static enum tw_status is_current(
        struct tw_db *db, const struct putting *p, bool *ret, struct tw_err *err)
{
	int64_t there = 0;
	enum tw_status st = tw_cat_get_int(db, &there, err, /* primary key */
	        "SELECT 1 FROM alert_rule WHERE project_id=? AND rule_id=? AND changed_ms=?", "tti",
	        p->project_id, p->rule->id, p->rule->changed_ms);

	*ret = there != 0;
	return st;
}

/* Figures from too few traces neither raise nor end an alert. */
static bool is_now_over(const struct putting *p, const struct stored *s)
{
	return (s->is_over || p->of->traces >= p->rule->min_traces) &&
	       tw_alert_is_over(s->is_over, p->of->value, p->rule->threshold);
}

static enum tw_status put_one(struct tw_catalogue *c, const struct putting *p, struct tw_err *err)
{
	struct tw_db *w = NULL;
	const int64_t now = tw_unix_ms();
	enum tw_hook_event event = TW_HOOK_ALERT;
	struct stored s;
	bool has_event = false, current = false;
	enum tw_status st = tw_cat_begin(c, TW_SUBJECT_FLEET, "", &w, err);

	if (st == TW_OK)
		st = is_current(w, p, &current, err);
	if (st == TW_OK && current) {
		s = (struct stored){.exists = false};
		st = tw_cat_get_row(w, &stored_fields, NULL, &s, &s.exists, err, /* primary key */
		        "SELECT {columns} FROM alert WHERE project_id=? AND alert_id=?", "tt",
		        p->project_id, p->id);
	}
	if (st == TW_OK && current) {
		has_event = step(&s, is_now_over(p, &s), now, &event);
		s.n_events += has_event;
		s.event_ms = has_event && event != TW_HOOK_ALERT_FIXED ? now : s.event_ms;
		if (s.exists || s.is_over)
			st = store(w, p, &s, err);
	}
	if (st == TW_OK && has_event)
		st = queue(w, p, event, s.n_events, err);
	return tw_cat_end(c, w, st, err);
}

static void name_alert(struct putting *p)
{
	char text[4096], hex[TW_SHA256_HEX];
	uint8_t hash[32];

	(void)snprintf(text, sizeof text, "%s\n%s\n%s", p->rule->id, p->of->app, p->of->subject);
	tw_sha256_bytes(tw_str_of(text), hash);
	tw_sha256_hex(hash, hex);
	(void)snprintf(p->id, sizeof p->id, "%.*s", TW_ALERT_ID_BYTES - 1, hex);
}

static enum tw_status put_figure(struct tw_catalogue *c, const struct tw_alert_evaluation *l,
        struct tw_alert_figure *io, const struct tw_alert_mails *mails, struct tw_err *err)
{
	struct putting p = {l->project_id, l->rule, mails, io, ""};
	const struct tw_alert *row;

	name_alert(&p);
	row = TW_LOOKUP(l->known, l->n_known, id, p.id);
	io->is_over = tw_alert_is_over(row && row->of.is_over, io->value, l->rule->threshold);
	/* most figures need no transaction */
	return row || io->is_over ? put_one(c, &p, err) : TW_OK;
}

static bool has_figure(const struct tw_alert *of, const struct tw_alert_figure *figures, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(figures[i].subject, of->of.subject) == 0 &&
		        strcmp(figures[i].app, of->of.app) == 0)
			return true;
	return false;
}

static enum tw_status end_others(struct tw_catalogue *c, const struct tw_alert_evaluation *l,
        const struct tw_alert_figure *figures, size_t n, const struct tw_alert_mails *mails,
        struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < l->n_known && l->known[i].of.is_over; i++) {
		struct tw_alert_figure none = l->known[i].of;

		none.value = 0;
		none.traces = 0;
		none.trace_id = "";
		if (!has_figure(&l->known[i], figures, n))
			st = put_figure(c, l, &none, mails, err);
	}
	return st;
}

/* Deletes alerts that ended long ago, in any status. */
static enum tw_status expire(
        struct tw_catalogue *c, const struct tw_alert_evaluation *l, struct tw_err *err)
{
	const int64_t until_ms = tw_age_ms() - KEPT_DAYS * TW_DAY_MS;
	bool old = l->n_known == TW_ALERTS_OF_RULE_MAX; /* the oldest are not among them */

	for (size_t i = 0; i < l->n_known; i++)
		old = old || l->known[i].last_ms < until_ms;
	if (!old)
		return TW_OK;
	return tw_cat_run(c, &(struct tw_cat_statement){TW_SUBJECT_FLEET, ""},
	        err, /* primary key: few rows per project */
	        "DELETE FROM alert WHERE project_id=? AND rule_id=? AND last_ms<?", "tti",
	        l->project_id, l->rule->id, until_ms);
}

enum tw_status tw_catalogue_alerts_put(struct tw_catalogue *c, const struct tw_alert_evaluation *l,
        struct tw_alert_figure *figures, size_t n, const struct tw_alert_mails *mails,
        struct tw_err *err)
{
	enum tw_status st = TW_OK;

	for (size_t i = 0; st == TW_OK && i < n; i++)
		st = put_figure(c, l, &figures[i], mails, err);
	if (st == TW_OK)
		st = end_others(c, l, figures, n, mails, err);
	return st == TW_OK ? expire(c, l, err) : st;
}

/* --- reports of known ANR groups in the last 24 hours and in the days before --- */

static const struct tw_fields spike_fields =
        TW_FIELDS_OF(TW_FIELD(struct tw_anr_spike, key, "", NULL),
                TW_FIELD(struct tw_anr_spike, title, "", NULL),
                TW_FIELD(struct tw_anr_spike, trace_id, "", NULL),
                TW_FIELD(struct tw_anr_spike, recent, "", NULL),
                TW_FIELD(struct tw_anr_spike, before, "", NULL),
                TW_FIELD(struct tw_anr_spike, first_ms, "", NULL));

enum tw_status tw_catalogue_anr_spikes(struct tw_catalogue *c, const char *project_id,
        const struct tw_alert_rule *of, int64_t now_ms, struct tw_arena *a,
        struct tw_anr_spike **ret, size_t *ret_n, struct tw_err *err)
{
	const int64_t since_ms = now_ms - TW_DAY_MS;
	const int64_t from_ms = since_ms - of->days * TW_DAY_MS;
	return tw_cat_list(c, TW_CAT_LIST(a, TW_ANR_SPIKES_MAX, &spike_fields, ret, ret_n),
	        err, /* anr_trace_of_day_and_key, primary key */
	        "SELECT g.key, CASE WHEN a.name<>'' THEN a.name ELSE a.title END, g.trace_id,"
	        " g.recent, g.earlier, g.first_ms FROM (SELECT h.key AS key, sum(CASE WHEN"
	        " h.recorded_ms>=?3 THEN 1 ELSE 0 END) AS recent, sum(CASE WHEN h.recorded_ms<?3"
	        " THEN 1 ELSE 0 END) AS earlier, min(h.recorded_ms) AS first_ms, max(CASE WHEN"
	        " h.recorded_ms>=?3 THEN h.trace_id ELSE '' END) AS trace_id FROM anr_trace h"
	        " WHERE h.project_id=?1 AND h.anr=1 AND h.day>=?4 AND h.recorded_ms>=?2 AND"
	        " h.key<>'' AND (?5='' OR h.app=?5) AND (?6='' OR h.scenario=?6) AND (?7='' OR"
	        " h.version_name=?7) GROUP BY h.key) g CROSS JOIN anr a WHERE g.recent>0 AND"
	        " g.earlier>0 AND a.project_id=?1 AND a.trace_id=g.trace_id ORDER BY CASE WHEN"
	        " g.key IN (SELECT subject FROM alert WHERE project_id=?1 AND rule_id=?8 AND"
	        " is_over=1) THEN 0 ELSE 1 END, g.recent DESC, g.key LIMIT ?9",
	        "tiiitttti", project_id, from_ms, since_ms, from_ms / TW_DAY_MS, of->app,
	        of->scenario, of->version_name, of->id, (int64_t)TW_ANR_SPIKES_MAX);
}
