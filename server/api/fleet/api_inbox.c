/*
 * api_inbox.c - regressions, ANR groups and alerts to triage, with common states, in one list.
 *
 * Items are open, acknowledged, fixed or returned, have an owner and may be muted. Counts include
 * every item that the other filters select, whatever its box.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/base/clock.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/notify/catalogue_alert.h"

enum { ANR_DAYS = 90, CHANGED_MAX = 200, LIMIT_MAX = 1000 };

enum box {
	BOX_LIVE,
	BOX_NEW,
	BOX_ACKNOWLEDGED,
	BOX_RETURNED,
	BOX_FIXED,
	BOX_MUTED,
	BOX_ALL,
	BOXES
};
static const char *const box_names[] = {
        "live", "new", "acknowledged", "returned", "fixed", "muted", "all", NULL};

static const char *const kind_names[] = {[TW_TRIAGE_REGRESSION] = "regression",
        [TW_TRIAGE_ANR] = "anr",
        [TW_TRIAGE_ALERT] = "alert",
        NULL};

struct item {
	enum tw_triage_kind kind;
	const char *id, *title, *app, *scenario, *version;
	const struct tw_triage *triage;
	int64_t first_ms, last_ms;
	const struct tw_regression *regression; /* exactly one of these is set */
	const struct tw_anr_group *group;
	const struct tw_alert *alert;
};

struct inbox {
	struct tw_req *req;
	struct tw_arena *arena;
	int64_t now_ms;
	unsigned box, kind; /* kind 0: any, otherwise enum tw_triage_kind + 1 */
	const char *app, *owner;
	const char *after_id; /* the last item of the page before; NULL: first page */
	int64_t after_ms;
	struct item *items;
	size_t n;
	uint64_t counts[BOXES];
};

static const char *project_of(const struct inbox *b)
{
	return tw_api_project(b->req);
}

/* --- which boxes an item is in --- */

static bool is_in(const struct inbox *b, const struct item *i, unsigned box)
{
	const bool muted = i->triage->muted_until_ms > b->now_ms;
	const enum tw_regress_status s = i->triage->status;

	switch (box) {
	case BOX_NEW:
		return s == TW_REGRESS_OPEN && !muted;
	case BOX_ACKNOWLEDGED:
		return s == TW_REGRESS_ACKNOWLEDGED && !muted;
	case BOX_RETURNED:
		return s == TW_REGRESS_RETURNED && !muted;
	case BOX_FIXED:
		return s == TW_REGRESS_FIXED;
	case BOX_MUTED:
		return muted;
	case BOX_LIVE:
		return s != TW_REGRESS_FIXED && !muted;
	default:
		return true;
	}
}

static void add(struct inbox *b, const struct item *i)
{
	if ((b->kind && b->kind - 1 != (unsigned)i->kind) ||
	        (b->app[0] && strcmp(b->app, i->app) != 0) ||
	        (b->owner[0] && strcmp(b->owner, i->triage->owner) != 0))
		return;
	for (unsigned box = 0; box < BOXES; box++)
		b->counts[box] += is_in(b, i, box);
	if (is_in(b, i, b->box))
		b->items[b->n++] = *i;
}

/* --- reading the three kinds --- */

static enum tw_status add_regressions(
        struct inbox *b, const struct tw_regression *rows, size_t n, struct tw_err *err)
{
	struct tw_triage *triage = tw_arena_alloc(b->arena, n + 1, sizeof *triage);

	if (!triage)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		const struct tw_regression *r = &rows[i];

		triage[i] = (struct tw_triage){
		        r->status, r->of.fixed_in, r->owner, r->note, r->muted_until_ms};
		add(b, &(struct item){TW_TRIAGE_REGRESSION, r->id,
		               r->of.method[0] ? r->of.method : r->of.scenario, r->of.app,
		               r->of.scenario, r->of.head, &triage[i], r->of.day * TW_DAY_MS,
		               r->last_ms, r, NULL, NULL});
	}
	return TW_OK;
}

static enum tw_status add_groups(struct inbox *b, const struct tw_anr_group *groups, size_t n,
        const struct tw_anr_state *states, size_t n_states, struct tw_err *err)
{
	struct tw_anr_state *own = tw_arena_alloc(b->arena, n + 1, sizeof *own);

	if (!own)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		const struct tw_anr_group *g = &groups[i];

		own[i] = tw_anr_state_of(states, n_states, g->key);
		add(b, &(struct item){TW_TRIAGE_ANR, g->key, g->name[0] ? g->name : g->title,
		               b->app, "", g->last_version, &own[i].triage, g->first_ms, g->last_ms,
		               NULL, g, NULL});
	}
	return TW_OK;
}

static void add_alerts(struct inbox *b, const struct tw_alert *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct tw_alert *x = &rows[i];
		const bool group = x->rule.kind == TW_ALERT_anr_spike;

		add(b, &(struct item){TW_TRIAGE_ALERT, x->id, x->rule.name, x->of.app,
		               x->rule.scenario, group ? "" : x->of.subject, &x->triage,
		               x->first_ms, x->last_ms, NULL, NULL, x});
	}
}

static enum tw_status read_all(struct inbox *b, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(b->req);
	const int64_t today = b->now_ms / TW_DAY_MS;
	const struct tw_rollup_filter f = {
	        b->app, "", "", "", "", "", "", today - ANR_DAYS + 1, today + 1};
	const struct tw_regression_query all = {
	        b->app, "", "", "", "", (1U << TW_REGRESS_STATUSES) - 1, 0};
	struct tw_regression *rows = NULL;
	struct tw_anr_group *groups = NULL;
	struct tw_anr_state *states = NULL;
	struct tw_alert *alerts = NULL;
	size_t n = 0, n_groups = 0, n_states = 0, n_alerts = 0;
	enum tw_status st =
	        tw_catalogue_regressions(c, project_of(b), &all, b->arena, &rows, &n, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_groups(
		        c, project_of(b), &f, "", b->arena, &groups, &n_groups, err);
	if (st == TW_OK)
		st = tw_catalogue_anr_states(
		        c, project_of(b), "", b->arena, &states, &n_states, err);
	if (st == TW_OK)
		st = tw_catalogue_alerts(c, project_of(b), "", b->arena, &alerts, &n_alerts, err);
	if (st != TW_OK)
		return st;
	b->items = tw_arena_alloc(b->arena, n + n_groups + n_alerts + 1, sizeof *b->items);
	if (!b->items)
		return tw_oom(err);
	add_alerts(b, alerts, n_alerts);
	st = add_regressions(b, rows, n, err);
	return st == TW_OK ? add_groups(b, groups, n_groups, states, n_states, err) : st;
}

/* --- the response --- */

TW_ORDER_BY(newest_first, struct item, TW_FALLING(last_ms), TW_RISING(id))

/* Items change place when they are seen again, so a cursor contains the last item's place and not
 * its number. */
static enum tw_status read_cursor(struct inbox *b, struct tw_err *err)
{
	const char *text = tw_req_text_or_empty(b->req, "cursor");
	struct tw_str rest = tw_str_of(text);
	struct tw_str ms = tw_str_split(&rest, '.');
	uint64_t number = 0;

	if (!text[0])
		return TW_OK;
	if (!tw_str_u64(ms, INT64_MAX, &number) || !rest.len)
		return tw_fail(err, TW_BAD_REQUEST,
		        "invalid cursor: use next_cursor of the previous page");
	b->after_ms = (int64_t)number;
	b->after_id = rest.ptr;
	return TW_OK;
}

/* The number of items of earlier pages. */
static size_t first_of_page(const struct inbox *b)
{
	const struct item after = {.id = b->after_id, .last_ms = b->after_ms};
	size_t i = 0;

	while (b->after_id && i < b->n && newest_first(&b->items[i], &after) <= 0)
		i++;
	return i;
}

static json_t *item_json(const struct item *i)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}",
	        "kind", kind_names[i->kind], "id", i->id, "title", i->title, "app", i->app,
	        "scenario", i->scenario, "version", i->version, "status",
	        tw_regress_status_names[i->triage->status], "fixed_in", i->triage->fixed_in,
	        "owner", i->triage->owner, "note", i->triage->note, "muted_until_ms",
	        (json_int_t)i->triage->muted_until_ms, "first_ms", (json_int_t)i->first_ms,
	        "last_ms", (json_int_t)i->last_ms);

	if (i->regression) {
		const struct tw_regress_found *f = &i->regression->of;

		(void)json_object_set_new(j, "regression",
		        json_pack("{s:s, s:s, s:f, s:I, s:I, s:i}", "kind",
		                tw_regress_kind_names[f->kind], "base", f->base, "change",
		                f->shift.change, "before_ns", (json_int_t)f->before_ns, "after_ns",
		                (json_int_t)f->after_ns, "percentile", (int)f->percentile));
	} else if (i->alert) {
		(void)json_object_set_new(
		        j, "alert", tw_alert_json(i->id, &i->alert->rule, &i->alert->of));
	} else {
		(void)json_object_set_new(j, "anr",
		        json_pack("{s:s, s:I, s:I}", "kind", i->group->kind, "count",
		                (json_int_t)i->group->count, "users", (json_int_t)i->group->users));
	}
	return j;
}

static json_t *counts_json(const struct inbox *b)
{
	json_t *j = json_object();

	for (unsigned box = 0; box < BOXES; box++)
		(void)json_object_set_new(
		        j, box_names[box], json_integer((json_int_t)b->counts[box]));
	return j;
}

static const struct tw_param inbox_params[] = {
        TW_PARAM_ENUM("state", box_names,
                "`new` is open and not muted; `live` is neither fixed nor muted."),
        TW_PARAM_OPTIONAL_ENUM("kind", kind_names, "Only items of these kinds."),
        TW_PARAM_TEXT("app", 0, "Exactly this app."),
        TW_PARAM_TEXT("owner", 0, "Exactly this owner."),
        TW_PARAM_TEXT("cursor", 0, "`next_cursor` of the previous page."),
        TW_PARAM_NUMBER("limit", 200, 1, LIMIT_MAX, "Items."),
        {0},
};

static enum tw_status get_inbox(struct tw_req *r, struct tw_err *err)
{
	struct inbox b = {.req = r,
	        .arena = tw_req_arena(r),
	        .now_ms = tw_unix_ms(),
	        .box = (unsigned)tw_req_enum(r, "state"),
	        .kind = (unsigned)(tw_req_enum(r, "kind") + 1),
	        .app = tw_req_text_or_empty(r, "app"),
	        .owner = tw_req_text_or_empty(r, "owner")};
	const size_t limit = (size_t)tw_req_number(r, "limit");
	const char *cursor = NULL;
	json_t *list;
	size_t first, end;
	enum tw_status st = read_cursor(&b, err);

	if (st == TW_OK)
		st = read_all(&b, err);
	if (st != TW_OK)
		return st;
	TW_SORT(b.items, b.n, newest_first);
	first = first_of_page(&b);
	end = b.n - first > limit ? first + limit : b.n;
	if (end < b.n) {
		cursor = tw_arena_printf(b.arena, "%lld.%s", (long long)b.items[end - 1].last_ms,
		        b.items[end - 1].id);
		if (!cursor)
			return tw_oom(err);
	}
	list = json_array();
	for (size_t i = first; i < end; i++)
		(void)json_array_append_new(list, item_json(&b.items[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:o, s:I, s:s?}", "items", list, "counts", counts_json(&b),
	                "total", (json_int_t)b.n, "next_cursor", cursor),
	        err);
}

/* --- triage of several items --- */

static enum tw_status read_regression(struct tw_req *r, const char *id, const json_t *body,
        struct tw_triage *ret, struct tw_err *err)
{
	struct tw_regression row;
	enum tw_status st = tw_catalogue_regression_get(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);

	if (st != TW_OK)
		return st;
	*ret = (struct tw_triage){
	        row.status, row.of.fixed_in, row.owner, row.note, row.muted_until_ms};
	return tw_triage_read(body, ret, err);
}

static enum tw_status read_group(struct tw_req *r, const char *key, const json_t *body,
        struct tw_triage *ret, struct tw_err *err)
{
	struct tw_anr_state *rows = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_anr_states(
	        tw_api_catalogue(r), tw_api_project(r), key, tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	*ret = tw_anr_state_of(rows, n, key).triage;
	st = tw_triage_read(body, ret, err);
	if (st == TW_OK && ret->status == TW_REGRESS_RETURNED && json_object_get(body, "status"))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "status of a group of ANRs is set to open, acknowledged or fixed");
	return st;
}

static enum tw_status read_alert(struct tw_req *r, const char *id, const json_t *body,
        struct tw_triage *ret, struct tw_err *err)
{
	struct tw_alert *row = NULL;
	size_t n = 0;
	enum tw_status st = *id ? tw_catalogue_alerts(tw_api_catalogue(r), tw_api_project(r), id,
	                                  tw_req_arena(r), &row, &n, err)
	                        : TW_OK;

	if (st == TW_OK && n == 0)
		st = tw_fail(err, TW_NOT_FOUND, "no such alert");
	if (st != TW_OK)
		return st;
	*ret = row->triage;
	return tw_triage_read(body, ret, err);
}

static enum tw_status check_body(const json_t *body, struct tw_err *err)
{
	static const char *const known[] = {
	        "items", "status", "fixed_in", "owner", "note", "muted_until_ms", NULL};
	const size_t items = json_array_size(json_object_get(body, "items"));

	if (items == 0 || items > CHANGED_MAX)
		return tw_fail(err, TW_BAD_REQUEST,
		        "items is a list of 1 to %d objects with kind and id", CHANGED_MAX);
	if (json_object_size(body) < 2 || !tw_json_has_only(body, known))
		return tw_fail(err, TW_BAD_REQUEST,
		        "only status, fixed_in, owner, note and muted_until_ms can be changed");
	return TW_OK;
}

/* An item's state with the changes of the body. */
static enum tw_status read_item(struct tw_req *r, const json_t *item, const json_t *body,
        struct tw_triage_item *ret, struct tw_err *err)
{
	static enum tw_status (*const read[])(struct tw_req *, const char *, const json_t *,
	        struct tw_triage *, struct tw_err *) = {[TW_TRIAGE_REGRESSION] = read_regression,
	        [TW_TRIAGE_ANR] = read_group,
	        [TW_TRIAGE_ALERT] = read_alert};
	const char *kind = json_string_value(json_object_get(item, "kind"));
	unsigned which = 0;
	enum tw_status st = tw_enum_of_name("kind", kind ? kind : "", kind_names, &which, err);

	ret->id = json_string_value(json_object_get(item, "id"));
	if (st == TW_OK && !ret->id)
		st = tw_fail(err, TW_BAD_REQUEST, "id must be a text");
	if (st != TW_OK)
		return st;
	ret->kind = (enum tw_triage_kind)which;
	return read[which](r, ret->id, body, &ret->what, err);
}

static enum tw_status triage_all(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *list = json_object_get(body, "items");
	const json_t *item;
	struct tw_triage_item items[CHANGED_MAX];
	size_t i;
	enum tw_status st = check_body(body, err);

	if (st != TW_OK)
		return st;
	json_array_foreach(list, i, item)
	{
		st = read_item(r, item, body, &items[i], err);
		if (st != TW_OK)
			return st;
	}
	st = tw_catalogue_triage(tw_api_catalogue(r), tw_api_project(r), items, i, err);
	return st == TW_OK ? tw_req_reply_json(
	                             r, 200, json_pack("{s:I}", "changed", (json_int_t)i), err)
	                   : st;
}

const struct tw_route tw_routes_inbox[] = {
        TW_ROUTE("GET", "/api/v1/inbox", TW_NEED_READ,
                "Regressions, ANR groups and alerts to triage, with counts by state",
                .params = TW_PARAMS(inbox_params), .end = get_inbox),
        TW_ROUTE("PATCH", "/api/v1/inbox", TW_NEED_WRITE,
                "Sets state, owner or mute of several regressions, ANR groups and alerts",
                .json = triage_all),
        {0},
};
