#include "server/notify/digest.h"

#include <string.h>

#include "decoder/base/lookup.h"
#include "decoder/base/order.h"
#include "server/base/clock.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/notify/hook.h"
#include "server/fleet/fleet.h"

enum { LIST_MAX = 10, METHODS_MAX = 10, SCENARIOS_MAX = 10 };
#define ARENA_MAX ((size_t)512 << 20)
enum { METHODS_PER_CHECK = 64 };

static const char *const every_names[] = {"off", "daily", "weekly", NULL};

/* --- rules --- */

static enum tw_status read_mail(const json_t *doc, struct tw_digest_rules *ret, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "mail");
	const json_t *one;
	size_t i;

	if (list && (!json_is_array(list) || json_array_size(list) > TW_MAILS_MAX))
		return tw_fail(err, TW_BAD_REQUEST, "mail must be a list of at most %d addresses",
		        TW_MAILS_MAX);
	json_array_foreach(list, i, one)
	{
		const char *address = json_string_value(one);

		if (!address || !tw_mail_address(address))
			return tw_fail(err, TW_BAD_REQUEST,
			        "mail: \"%.80s\" is not an address such as ann@example.com",
			        address ? address : "");
		ret->mail[ret->n_mail++] = address;
	}
	return TW_OK;
}

static const struct tw_member members[] = {
        TW_MEMBER(TW_MEMBER_ENUM, struct tw_digest_rules, every, .enum_names = every_names),
        TW_MEMBER(TW_MEMBER_NUMBER, struct tw_digest_rules, hour, .max = 23),
        TW_MEMBER(TW_MEMBER_NUMBER, struct tw_digest_rules, weekday, .max = 6),
        TW_MEMBER(TW_MEMBER_FLAG, struct tw_digest_rules, webhook),
        {.name = "mail", .kind = TW_MEMBER_OTHER},
        {0},
};

enum tw_status tw_digest_rules_read(
        const json_t *doc, struct tw_digest_rules *ret, struct tw_err *err)
{
	struct tw_digest_rules r = {
	        .every = TW_DIGEST_OFF, .hour = 7, .weekday = 1, .webhook = true};
	enum tw_status st = tw_members_known(doc, members, err);

	if (st == TW_OK)
		st = tw_members_read(doc, members, &r, err);
	if (st == TW_OK)
		st = read_mail(doc, &r, err);
	if (st == TW_OK)
		*ret = r;
	return st;
}

static enum tw_status check_rules(const json_t *doc, struct tw_err *err)
{
	struct tw_digest_rules r;

	return tw_digest_rules_read(doc, &r, err);
}

const struct tw_setting tw_digest_setting = {TW_SETTING_DIGEST, check_rules};

static enum tw_status read_or_default(
        json_t **io_doc, struct tw_digest_rules *ret, struct tw_err *err)
{
	if (!*io_doc)
		*io_doc = json_object();
	return *io_doc ? tw_digest_rules_read(*io_doc, ret, err) : tw_oom(err);
}

enum tw_status tw_digest_rules_parse(const char *project_id, const char *text, json_t **ret_doc,
        struct tw_digest_rules *ret, struct tw_err *err)
{
	enum tw_status st = tw_setting_of_text(project_id, &tw_digest_setting, text, ret_doc, err);

	return st == TW_OK ? read_or_default(ret_doc, ret, err) : st;
}

enum tw_status tw_digest_rules_of(struct tw_catalogue *c, const char *project_id, json_t **ret_doc,
        struct tw_digest_rules *ret, int64_t *ret_changed_ms, struct tw_err *err)
{
	enum tw_status st =
	        tw_setting_load(c, project_id, &tw_digest_setting, ret_doc, ret_changed_ms, err);

	return st == TW_OK ? read_or_default(ret_doc, ret, err) : st;
}

json_t *tw_digest_rules_json(const struct tw_digest_rules *r)
{
	json_t *mail = json_array();

	for (size_t i = 0; i < r->n_mail; i++)
		(void)json_array_append_new(mail, json_string(r->mail[i]));
	return json_pack("{s:s, s:i, s:i, s:b, s:o}", "every", every_names[r->every], "hour",
	        (int)r->hour, "weekday", (int)r->weekday, "webhook", (int)r->webhook, "mail", mail);
}

struct tw_digest_period tw_digest_period(const struct tw_digest_rules *r, int64_t now_ms)
{
	const int64_t length = (r->every == TW_DIGEST_WEEKLY ? 7 : 1) * TW_DAY_MS;
	/* 1970-01-01 was a Thursday, so day 4 was a Monday */
	const int64_t offset =
	        (int64_t)r->hour * 3600000 +
	        (r->every == TW_DIGEST_WEEKLY ? ((r->weekday + 3) % 7) * TW_DAY_MS : 0);
	const int64_t until = (now_ms - offset) / length * length + offset;

	return (struct tw_digest_period){until - length, until};
}

/* --- the digest --- */

struct making {
	struct tw_fleet_store *store;
	struct tw_catalogue *c;
	const struct tw_digest_of *of;
	struct tw_arena *a;
	json_t *out;
	json_t *listed; /* ids of listed regressions: each is in one list only */
	size_t n_items; /* number of regressions and new items */
	bool partial;
};

struct part {
	const char *key;
	enum tw_status (*fn)(struct making *, const struct part *, struct tw_err *);
	const char *none;         /* JSON if it has none */
	enum tw_hook_event event; /* of put_regressions */
};

static enum tw_status put(struct making *m, const char *key, json_t *part, struct tw_err *err)
{
	return json_object_set_new(m->out, key, part) == 0 ? TW_OK : tw_oom(err);
}

static enum tw_status late(const struct making *m, struct tw_err *err)
{
	return tw_deadline_passed(&m->of->deadline)
	               ? tw_fail(err, TW_DEADLINE, "the digest took too long")
	               : TW_OK;
}

static bool is_muted(const struct tw_regression *r)
{
	return r->muted_until_ms > tw_unix_ms();
}

/* Whether to list a regression under this event.  Each is listed once, under the event of the
 * period that set its current state. */
static bool take_listed(struct making *m, const struct tw_regression *r, enum tw_hook_event event)
{
	if ((event == TW_HOOK_FIXED) != (r->status == TW_REGRESS_FIXED) ||
	        json_object_get(m->listed, r->id))
		return false;
	(void)json_object_set_new(m->listed, r->id, json_true());
	if (*r->earlier)
		(void)json_object_set_new(m->listed, r->earlier, json_true());
	return true;
}

/* Regressions with the part's event in the period. */
static enum tw_status put_regressions(struct making *m, const struct part *of, struct tw_err *err)
{
	const char *const *ids = NULL;
	json_t *list = json_array();
	json_int_t total = 0;
	size_t n = 0;
	enum tw_status st = tw_catalogue_digest_regressions(
	        m->c, m->of->project_id, m->of->period, (int)of->event, m->a, &ids, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++) {
		struct tw_regression r;

		st = late(m, err);
		if (st == TW_OK)
			st = tw_catalogue_regression_get(
			        m->c, m->of->project_id, ids[i], m->a, &r, err);
		if (st == TW_NOT_FOUND || (st == TW_OK && is_muted(&r))) {
			st = TW_OK;
			continue;
		}
		m->n_items += st == TW_OK && of->event != TW_HOOK_FIXED;
		if (st == TW_OK && take_listed(m, &r, of->event) && total++ < LIST_MAX)
			(void)json_array_append_new(list, tw_row_json(&tw_regression_fields, &r));
	}
	if (st == TW_OK)
		return put(m, of->key, json_pack("{s:I, s:o}", "total", total, "list", list), err);
	json_decref(list);
	return st;
}

/* Open regressions older than the period. */
static enum tw_status put_open(struct making *m, const struct part *of, struct tw_err *err)
{
	const struct tw_regression_query q = {"", "", "", "", "",
	        1U << TW_REGRESS_OPEN | 1U << TW_REGRESS_RETURNED, tw_unix_ms()};
	struct tw_regression *rows = NULL;
	json_t *list;
	json_int_t total = 0;
	size_t n = 0;
	enum tw_status st = tw_catalogue_regressions(
	        m->c, m->of->project_id, &q, TW_REGRESSIONS_MAX, "", m->a, &rows, &n, NULL, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		if (rows[i].first_ms < m->of->period.since_ms && total++ < LIST_MAX)
			(void)json_array_append_new(
			        list, tw_row_json(&tw_regression_fields, &rows[i]));
	return put(m, of->key, json_pack("{s:I, s:o}", "total", total, "list", list), err);
}

/* --- scenarios and methods --- */

/* Cells cover whole days in UTC. */
struct days {
	int64_t first, last;
};

/* Complete days only, so that consecutive digests share none. */
static struct days days_of(struct tw_digest_period p)
{
	return (struct days){p.since_ms / TW_DAY_MS, p.until_ms / TW_DAY_MS - 1};
}

/* The same number of earlier days, on the same days of the week. */
static struct days before(struct days d)
{
	const int64_t weeks = (d.last - d.first) / 7 + 1;

	return (struct days){d.first - 7 * weeks, d.last - 7 * weeks};
}

static json_int_t ms_of(int64_t day)
{
	return (json_int_t)day * TW_DAY_MS;
}

static enum tw_status put_days(struct making *m, struct tw_err *err)
{
	const struct days now = days_of(m->of->period), then = before(now);

	return put(m, "days",
	        json_pack("{s:I, s:I, s:I, s:I}", "first_ms", ms_of(now.first), "last_ms",
	                ms_of(now.last), "before_first_ms", ms_of(then.first), "before_last_ms",
	                ms_of(then.last)),
	        err);
}

static enum tw_status read_cells(struct making *m, struct days of, unsigned metrics, unsigned dims,
        struct tw_rollup_cell **ret, size_t *ret_n, struct tw_err *err)
{
	const struct tw_fleet_query query = {.project_id = m->of->project_id,
	        .filter = {"", "", "", "", "", "", "", of.first, of.last},
	        .metrics = metrics,
	        .dims = dims};

	*ret = NULL;
	*ret_n = 0;
	return m->store->engine->cells(m->store, &query, m->a, ret, ret_n, err);
}

struct lengths {
	struct tw_fleet_group *groups;
	size_t n;
};

static enum tw_status read_lengths(
        struct making *m, struct days of, struct lengths *ret, struct tw_err *err)
{
	struct tw_rollup_cell *cells;
	size_t n = 0;
	enum tw_status st = read_cells(m, of, 0, TW_DIM_SCENARIO, &cells, &n, err);

	*ret = (struct lengths){NULL, 0};
	if (st == TW_OK)
		st = late(m, err);
	if (st == TW_OK && n)
		st = tw_fleet_groups(
		        cells, n, TW_FLEET_SCENARIO, false, m->a, &ret->groups, &ret->n, err);
	return st;
}

static enum tw_status put_scenario(struct making *m, json_t *list, const struct tw_fleet_group *g,
        const struct tw_fleet_group *same, struct tw_err *err)
{
	struct tw_rollup_head *h = tw_arena_zalloc(m->a, 2, sizeof *h);
	struct tw_fleet_lengths now = {.stat = {.n = 0}}, then = now;
	enum tw_status st = h ? late(m, err) : tw_oom(err);

	if (st == TW_OK && h)
		st = tw_fleet_lengths(g, h, &now, err);
	if (st == TW_OK && h && same)
		st = tw_fleet_lengths(same, h + 1, &then, err);
	if (st != TW_OK)
		return st;
	(void)json_array_append_new(
	        list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "scenario", g->key, "traces",
	                      (json_int_t)g->traces, "p50_ns", (json_int_t)now.stat.at[0], "p95_ns",
	                      (json_int_t)now.stat.at[2], "before_traces", (json_int_t)then.stat.n,
	                      "before_p50_ns", (json_int_t)then.stat.at[0], "before_p95_ns",
	                      (json_int_t)then.stat.at[2]));
	return TW_OK;
}

/* Sorts by falling number of traces. */
TW_ORDER_BY(by_traces, struct tw_fleet_group, TW_FALLING(traces), TW_RISING(key))

static enum tw_status put_scenarios(struct making *m, const struct part *of, struct tw_err *err)
{
	const struct days days = days_of(m->of->period);
	struct lengths now, then = {NULL, 0};
	json_t *list = json_array();
	enum tw_status st = read_lengths(m, days, &now, err);

	if (st == TW_OK)
		st = read_lengths(m, before(days), &then, err);
	if (st == TW_OK && now.n)
		TW_SORT(now.groups, now.n, by_traces);
	for (size_t i = 0; st == TW_OK && i < now.n && i < SCENARIOS_MAX; i++)
		st = put_scenario(m, list, &now.groups[i],
		        TW_LOOKUP(then.groups, then.n, key, now.groups[i].key), err);
	if (st == TW_OK)
		return put(m, of->key, list, err);
	json_decref(list);
	return st;
}

static enum tw_status rank_methods(struct making *m, const struct tw_rollup *r,
        struct tw_fleet_method **ret, size_t *ret_n, struct tw_err *err)
{
	uint64_t *ids = tw_arena_alloc(m->a, r->n + 1, sizeof *ids);
	struct tw_sketch *s = tw_arena_zalloc(m->a, 1, sizeof *s);
	struct tw_rollup_naming *names = NULL;
	enum tw_status st = ids && s ? TW_OK : tw_oom(err);

	for (uint32_t i = 0; ids && i < r->n; i++)
		ids[i] = r->methods[i].id;
	if (st == TW_OK)
		st = tw_catalogue_rollup_names(
		        m->c, m->of->project_id, ids, r->n, m->a, &names, err);
	if (st == TW_OK)
		st = tw_fleet_methods(r, names, m->a, ret, ret_n, err);
	for (size_t i = 0; st == TW_OK && i < *ret_n; i++) {
		struct tw_fleet_method *one = &(*ret)[i];

		if (i % METHODS_PER_CHECK == 0 && late(m, err) != TW_OK)
			return TW_DEADLINE;
		st = tw_fleet_stat(one->of, one->n, TW_ROLLUP_SELF, s, &one->sorted_by, err);
		one->rank = one->naming.named ? one->sorted_by.sum : -1;
	}
	return st;
}

static struct tw_fleet_method *take_slowest(struct tw_fleet_method *list, size_t n)
{
	struct tw_fleet_method *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (list[i].rank > 0 && (!best || list[i].rank > best->rank))
			best = &list[i];
	return best;
}

static enum tw_status put_methods(struct making *m, const struct part *of, struct tw_err *err)
{
	struct tw_rollup all = {.arena = m->a, .metrics = 1U << TW_ROLLUP_SELF};
	struct tw_fleet_method *list = NULL, *one;
	struct tw_fleet_group *groups = NULL;
	struct tw_rollup_cell *cells;
	json_t *out = json_array();
	size_t n = 0, n_groups = 0;
	enum tw_status st = read_cells(m, days_of(m->of->period), all.metrics, 0, &cells, &n, err);

	if (st == TW_OK)
		st = late(m, err);
	if (st == TW_OK && n)
		st = tw_fleet_groups(cells, n, TW_FLEET_ALL, false, m->a, &groups, &n_groups, err);
	if (st == TW_OK && n_groups)
		st = tw_fleet_collect(groups[0].cells, groups[0].n, &all, err);
	if (st == TW_OK)
		st = late(m, err);
	n = 0;
	if (st == TW_OK && all.n)
		st = rank_methods(m, &all, &list, &n, err);
	for (size_t i = 0; st == TW_OK && i < METHODS_MAX && (one = take_slowest(list, n)); i++) {
		(void)json_array_append_new(
		        out, json_pack("{s:s, s:I, s:I, s:I}", "name", one->naming.name, "traces",
		                     (json_int_t)one->sorted_by.n, "mean_ns",
		                     (json_int_t)one->sorted_by.mean, "p95_ns",
		                     (json_int_t)one->sorted_by.at[2]));
		one->rank = 0;
	}
	if (st == TW_OK)
		return put(m, of->key, out, err);
	json_decref(out);
	return st;
}

/* --- ANRs, ingest --- */

static enum tw_status put_anrs(struct making *m, const struct part *of, struct tw_err *err)
{
	struct tw_digest_anr *rows = NULL;
	json_t *list;
	size_t n = 0;
	enum tw_status st = tw_catalogue_digest_anrs(
	        m->c, m->of->project_id, m->of->period, m->a, &rows, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(
		        list, json_pack("{s:s, s:s, s:s, s:s, s:I}", "key", rows[i].key, "name",
		                      rows[i].name, "title", rows[i].title, "verdict",
		                      rows[i].verdict, "count", (json_int_t)rows[i].count));
	m->n_items += n ? (size_t)rows[0].total : 0;
	return put(m, of->key,
	        json_pack("{s:I, s:o}", "total", n ? (json_int_t)rows[0].total : 0, "list", list),
	        err);
}

static enum tw_status put_ingest(struct making *m, const struct part *of, struct tw_err *err)
{
	struct tw_digest_ingest in;
	enum tw_status st =
	        tw_catalogue_digest_ingest(m->c, m->of->project_id, m->of->period, &in, err);

	if (st != TW_OK)
		return st;
	return put(m, of->key,
	        json_pack("{s:I, s:I, s:I}", "accepted", (json_int_t)in.accepted, "failed",
	                (json_int_t)in.failed, "expired", (json_int_t)in.expired),
	        err);
}

/* A part that exceeds its limits is left out and marked: the rest is useful, and a retry would fail
 * too. */
static enum tw_status put_some(struct making *m, const struct part *of, struct tw_err *err)
{
	enum tw_status st;

	tw_arena_reset(m->a);
	st = late(m, err);
	if (st == TW_OK)
		st = of->fn(m, of, err);
	if (st != TW_TOO_LARGE && st != TW_NOMEM && st != TW_DEADLINE)
		return st;
	m->partial = true;
	return put(m, of->key, json_loads(of->none, 0, NULL), err);
}

static enum tw_status put_all(struct making *m, struct tw_err *err)
{
	static const char some[] = "{\"total\": 0, \"list\": []}";
	static const struct part parts[] = {
	        {"returned", put_regressions, some, TW_HOOK_RETURNED},
	        {"found", put_regressions, some, TW_HOOK_FOUND},
	        {"fixed", put_regressions, some, TW_HOOK_FIXED},
	        {"open", put_open, some},
	        {"anrs", put_anrs, some},
	        {"ingest", put_ingest, "{\"accepted\": 0, \"failed\": 0, \"expired\": 0}"},
	        {"scenarios", put_scenarios, "[]"},
	        {"methods", put_methods, "[]"},
	};
	enum tw_status st = put_days(m, err);

	for (size_t i = 0; st == TW_OK && i < sizeof parts / sizeof *parts; i++)
		st = put_some(m, &parts[i], err);
	if (st == TW_OK)
		st = put(m, "partial", json_boolean(m->partial), err);
	return st == TW_OK ? put(m, "empty", json_boolean(m->n_items == 0 && !m->partial), err)
	                   : st;
}

enum tw_status tw_digest_preview(struct tw_fleet_store *store, const struct tw_digest_of *of,
        json_t **ret, struct tw_err *err)
{
	struct making m = {store, store->catalogue, of, tw_arena_new(ARENA_MAX), NULL,
	        json_object(), 0, false};
	enum tw_status st;

	m.out = json_pack("{s:{s:s, s:s}, s:I, s:I}", "project", "id", of->project_id, "name",
	        of->project, "since_ms", (json_int_t)of->period.since_ms, "until_ms",
	        (json_int_t)of->period.until_ms);
	st = m.a && m.out && m.listed ? put_all(&m, err) : tw_oom(err);
	tw_arena_free(m.a);
	json_decref(m.listed);
	if (st == TW_OK)
		*ret = m.out;
	else
		json_decref(m.out);
	return st;
}

/* Digests that a pause skipped are sent later, at most a week or two back. */
enum tw_status tw_digest_make(struct tw_fleet_store *store, const struct tw_digest_of *of,
        json_t **ret, struct tw_err *err)
{
	const int64_t length = of->period.until_ms - of->period.since_ms;
	const int64_t most = length > TW_DAY_MS ? 2 * length : 7 * TW_DAY_MS;
	struct tw_digest_of since = *of;
	int64_t last;
	enum tw_status st = tw_catalogue_digest_last(
	        store->catalogue, of->project_id, of->period.until_ms, &last, err);

	if (st != TW_OK)
		return st;
	if (last)
		since.period.since_ms =
		        last > since.period.until_ms - most ? last : since.period.until_ms - most;
	return tw_digest_preview(store, &since, ret, err);
}
