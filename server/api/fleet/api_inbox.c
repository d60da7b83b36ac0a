/*
 * api_inbox.c - regressions, ANR groups and alerts to triage, with common states, in one list.
 *
 * Items are open, acknowledged, fixed or returned, have an owner and may be muted. Counts include
 * every item that the other filters select, whatever its box.  Items move when they are
 * seen again, so a cursor contains the sort key of the last item, not its number.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/base/clock.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/catalogue/notify/catalogue_alert.h"

enum { ANR_DAYS = 90, TREND_DAYS = 30, CHANGED_MAX = 200, LIMIT_MAX = 1000 };

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
	const char *id;
	int64_t last_ms;
	const struct tw_triage *triage;
	const struct tw_regression *regression; /* exactly one of these is set */
	struct tw_anr_group *group;
	const struct tw_alert *alert;
};

struct inbox {
	struct tw_req *req;
	struct tw_arena *arena;
	unsigned box, kind; /* kind 0: any, otherwise enum tw_triage_kind + 1 */
	struct tw_inbox_query
	        q; /* the box's items after the previous page, one more than a page has */
	struct item *items;
	size_t n;
	struct tw_anr_slice *days; /* of the page's ANR groups, by group and day */
	size_t n_days;
	uint64_t counts[BOXES];
};

static const char *project_of(const struct inbox *b)
{
	return tw_api_project(b->req);
}

/* --- which boxes an item is in --- */

#define BIT(status) (1U << TW_REGRESS_##status)
static const struct {
	unsigned statuses;
	enum tw_inbox_muted muted;
} boxes[BOXES] = {
        [BOX_LIVE] = {BIT(OPEN) | BIT(ACKNOWLEDGED) | BIT(RETURNED), TW_INBOX_UNMUTED},
        [BOX_NEW] = {BIT(OPEN), TW_INBOX_UNMUTED},
        [BOX_ACKNOWLEDGED] = {BIT(ACKNOWLEDGED), TW_INBOX_UNMUTED},
        [BOX_RETURNED] = {BIT(RETURNED), TW_INBOX_UNMUTED},
        [BOX_FIXED] = {BIT(FIXED), TW_INBOX_ANY},
        [BOX_MUTED] = {BIT(STATUSES) - 1, TW_INBOX_MUTED},
        [BOX_ALL] = {BIT(STATUSES) - 1, TW_INBOX_ANY},
};

static bool is_in(unsigned box, enum tw_regress_status status, bool muted)
{
	return boxes[box].statuses >> status & 1 &&
	       (boxes[box].muted == TW_INBOX_ANY || muted == (boxes[box].muted == TW_INBOX_MUTED));
}

static void count(struct inbox *b, enum tw_regress_status status, bool muted, uint64_t n)
{
	for (unsigned box = 0; box < BOXES; box++)
		b->counts[box] += is_in(box, status, muted) ? n : 0;
}

static void count_all(struct inbox *b, const struct tw_inbox_counts *counts)
{
	for (unsigned status = 0; status < TW_REGRESS_STATUSES; status++)
		for (int muted = 0; muted < 2; muted++)
			count(b, (enum tw_regress_status)status, muted != 0,
			        counts->of[status][muted]);
}

/* --- the page --- */

/* By id too, as items may be seen in the same millisecond. */
TW_ORDER_BY(newest_first, struct item, TW_FALLING(last_ms), TW_FALLING(id))

static bool is_of(const struct inbox *b, enum tw_triage_kind kind)
{
	return !b->kind || b->kind - 1 == (unsigned)kind;
}

static enum tw_status reserve_space(struct inbox *b, size_t more, struct tw_err *err)
{
	struct item *items = tw_arena_alloc(b->arena, b->n + more + 1, sizeof *items);

	if (!items)
		return tw_oom(err);
	if (b->n)
		memcpy(items, b->items, b->n * sizeof *items);
	b->items = items;
	return TW_OK;
}

static enum tw_status add_regressions(struct inbox *b, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(b->req);
	struct tw_inbox_counts counts;
	struct tw_regression *rows = NULL;
	struct tw_triage *triage;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_inbox_count_regressions(c, project_of(b), &b->q, &counts, err);

	if (st == TW_OK)
		st = tw_catalogue_inbox_regressions(
		        c, project_of(b), &b->q, b->arena, &rows, &n, err);
	if (st == TW_OK)
		st = reserve_space(b, n, err);
	if (st != TW_OK)
		return st;
	triage = tw_arena_alloc(b->arena, n + 1, sizeof *triage);
	if (!triage)
		return tw_oom(err);
	count_all(b, &counts);
	for (size_t i = 0; i < n; i++) {
		const struct tw_regression *r = &rows[i];

		triage[i] = (struct tw_triage){
		        r->status, r->of.fixed_in, r->owner, r->note, r->muted_until_ms};
		b->items[b->n++] = (struct item){
		        TW_TRIAGE_REGRESSION, r->id, r->last_ms, &triage[i], .regression = r};
	}
	return TW_OK;
}

static enum tw_status add_alerts(struct inbox *b, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(b->req);
	struct tw_inbox_counts counts;
	struct tw_alert *rows = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_inbox_count_alerts(c, project_of(b), &b->q, &counts, err);

	if (st == TW_OK)
		st = tw_catalogue_inbox_alerts(c, project_of(b), &b->q, b->arena, &rows, &n, err);
	if (st == TW_OK)
		st = reserve_space(b, n, err);
	if (st != TW_OK)
		return st;
	count_all(b, &counts);
	for (size_t i = 0; i < n; i++)
		b->items[b->n++] = (struct item){TW_TRIAGE_ALERT, rows[i].id, rows[i].last_ms,
		        &rows[i].triage, .alert = &rows[i]};
	return TW_OK;
}

static struct tw_rollup_filter last_days(const struct inbox *b, int64_t days)
{
	const int64_t today = b->q.now_ms / TW_DAY_MS;

	return (struct tw_rollup_filter){
	        b->q.app, "", "", "", "", "", "", today - days + 1, today + 1};
}

/* Groups are sums of reports, so all of them are read. */
static enum tw_status add_groups(struct inbox *b, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(b->req);
	const struct item before = {.id = b->q.before.id, .last_ms = b->q.before.number};
	const struct tw_rollup_filter f = last_days(b, ANR_DAYS);
	struct tw_anr_group *groups = NULL;
	struct tw_anr_state *states = NULL, *own;
	size_t n = 0, n_states = 0;
	enum tw_status st =
	        tw_catalogue_anr_groups(c, project_of(b), &f, b->arena, &groups, &n, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_states(
		        c, project_of(b), "", b->arena, &states, &n_states, err);
	if (st == TW_OK)
		st = reserve_space(b, n, err);
	if (st != TW_OK)
		return st;
	own = tw_arena_alloc(b->arena, n + 1, sizeof *own);
	if (!own)
		return tw_oom(err);
	for (size_t i = 0; i < n; i++) {
		struct tw_anr_group *g = &groups[i];
		const struct item item = {
		        TW_TRIAGE_ANR, g->key, g->last_ms, &own[i].triage, .group = g};
		bool muted;

		own[i] = tw_anr_state_of(states, n_states, g->key);
		muted = item.triage->muted_until_ms > b->q.now_ms;
		if (b->q.owner[0] && strcmp(b->q.owner, item.triage->owner) != 0)
			continue;
		count(b, item.triage->status, muted, 1);
		if (is_in(b->box, item.triage->status, muted) && newest_first(&before, &item) < 0)
			b->items[b->n++] = item;
	}
	return TW_OK;
}

/* Names the groups of the page, and reads their days; those whose last report was removed since
 * are dropped. */
static enum tw_status name_groups(struct inbox *b, struct tw_err *err)
{
	const struct tw_rollup_filter f = last_days(b, TREND_DAYS);
	struct tw_anr_group *named = tw_arena_alloc(b->arena, b->n + 1, sizeof *named);
	size_t n = 0, kept = 0, at = 0;
	enum tw_status st;

	if (!named)
		return tw_oom(err);
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].group)
			named[n++] = *b->items[i].group;
	st = tw_catalogue_anr_groups_name(
	        tw_api_catalogue(b->req), project_of(b), b->arena, named, &n, err);
	for (size_t i = 0; i < b->n; i++) { /* both are in the same order */
		struct item item = b->items[i];

		if (item.group && (at == n || strcmp(named[at].key, item.id) != 0))
			continue;
		if (item.group)
			item.group = &named[at++];
		b->items[kept++] = item;
	}
	b->n = kept;
	if (st != TW_OK || n == 0)
		return st;
	return tw_catalogue_anr_days(tw_api_catalogue(b->req), project_of(b), &f, named, n,
	        b->arena, &b->days, &b->n_days, err);
}

static enum tw_status read_page(struct inbox *b, const char **ret_cursor, struct tw_err *err)
{
	const size_t limit = b->q.limit - 1;
	enum tw_status st = TW_OK;

	*ret_cursor = NULL;
	if (is_of(b, TW_TRIAGE_REGRESSION))
		st = add_regressions(b, err);
	if (st == TW_OK && is_of(b, TW_TRIAGE_ALERT))
		st = add_alerts(b, err);
	if (st == TW_OK && is_of(b, TW_TRIAGE_ANR))
		st = add_groups(b, err);
	if (st != TW_OK)
		return st;
	TW_SORT(b->items, b->n, newest_first);
	if (b->n > limit) {
		const struct item *last = &b->items[limit - 1];

		b->n = limit;
		*ret_cursor = tw_page_cursor_text(b->arena, last->last_ms, last->id);
		if (!*ret_cursor)
			return tw_oom(err);
	}
	return name_groups(b, err);
}

/* --- the response --- */

struct shown { /* of an item */
	const char *title, *app, *scenario, *version;
	int64_t first_ms;
};

static struct shown shown_of(const struct inbox *b, const struct item *i)
{
	const struct tw_regression *r = i->regression;
	const struct tw_anr_group *g = i->group;
	const struct tw_alert *x = i->alert;

	if (r)
		return (struct shown){r->of.method[0] ? r->of.method : r->of.scenario, r->of.app,
		        r->of.scenario, r->of.head, r->of.day * TW_DAY_MS};
	if (g)
		return (struct shown){g->name[0] ? g->name : g->title, b->q.app, "",
		        g->last_version, g->first_ms};
	return (struct shown){x->rule.name, x->of.app, x->rule.scenario,
	        x->rule.kind == TW_ALERT_anr_spike ? "" : x->of.subject, x->first_ms};
}

/* Reports by day; days without reports are absent. */
static json_t *trend_json(const struct inbox *b, const char *key)
{
	json_t *list = json_array();
	size_t at;

	TW_BISECT(at, b->n_days, strcmp(b->days[at].key, key) < 0);
	for (; at < b->n_days && strcmp(b->days[at].key, key) == 0; at++)
		(void)json_array_append_new(list,
		        json_pack("{s:I, s:I}", "day_ms", (json_int_t)(b->days[at].day * TW_DAY_MS),
		                "count", (json_int_t)b->days[at].count));
	return list;
}

static json_t *item_json(const struct inbox *b, const struct item *i)
{
	const struct shown shown = shown_of(b, i);
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}",
	        "kind", kind_names[i->kind], "id", i->id, "title", shown.title, "app", shown.app,
	        "scenario", shown.scenario, "version", shown.version, "status",
	        tw_regress_status_names[i->triage->status], "fixed_in", i->triage->fixed_in,
	        "owner", i->triage->owner, "note", i->triage->note, "muted_until_ms",
	        (json_int_t)i->triage->muted_until_ms, "first_ms", (json_int_t)shown.first_ms,
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
		        json_pack("{s:s, s:I, s:I, s:o}", "kind", i->group->kind, "count",
		                (json_int_t)i->group->count, "users", (json_int_t)i->group->users,
		                "trend", trend_json(b, i->id)));
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
	const unsigned box = (unsigned)tw_req_enum(r, "state");
	struct inbox b = {.req = r,
	        .arena = tw_req_arena(r),
	        .box = box,
	        .kind = (unsigned)(tw_req_enum(r, "kind") + 1),
	        .q = {.app = tw_req_text_or_empty(r, "app"),
	                .owner = tw_req_text_or_empty(r, "owner"),
	                .now_ms = tw_unix_ms(),
	                .statuses = boxes[box].statuses,
	                .muted = boxes[box].muted,
	                .before = {INT64_MAX, ""},
	                .limit = (uint32_t)tw_req_number(r, "limit") + 1}};
	const char *cursor;
	json_t *list;
	enum tw_status st =
	        tw_page_cursor_read(tw_req_text_or_empty(r, "cursor"), &b.q.before, err);

	if (st == TW_OK)
		st = read_page(&b, &cursor, err);
	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < b.n; i++)
		(void)json_array_append_new(list, item_json(&b, &b.items[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:o, s:I, s:s?}", "items", list, "counts", counts_json(&b),
	                "total", (json_int_t)b.counts[box], "next_cursor", cursor),
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
	struct tw_alert row;
	enum tw_status st = tw_catalogue_alert_get(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &row, err);

	if (st != TW_OK)
		return st;
	*ret = row.triage;
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
