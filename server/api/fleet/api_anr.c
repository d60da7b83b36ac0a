/*
 * api_anr.c - groups of ANRs by cause, and their triage rules.
 *
 * Groups accept the filters of rollups (api_fleet.c). `pending` is the number of reports that have
 * no key yet by the current rules and mappings. `traces` is the number of traces with times by the
 * same filter, for rates, because the server receives no number of sessions.
 */
#include <string.h>

#include "decoder/base/order.h"
#include "server/api/admin/api_ruleset.h"
#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/api/fleet/api_fleet.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/anr/catalogue_anr_state.h"
#include "server/derive/pipeline.h"
#include "server/derive/stages.h"
#include "server/fleet/anr/anr_rules.h"

enum { LIMIT_MAX = 1000 };

/* --- groups --- */

struct page {
	unsigned kind; /* 0: any */
	int64_t limit, offset;
	struct tw_anr_group *groups;
	size_t n, total; /* on the page, of all kinds and pages */
	struct tw_anr_slice *days;
	size_t n_days;
	struct tw_anr_state *states;
	size_t n_states;
};

static const char *project_of(const struct tw_fleet_request *q)
{
	return tw_api_project(q->req);
}

static struct tw_catalogue *catalogue_of(const struct tw_fleet_request *q)
{
	return tw_api_catalogue(q->req);
}

/* --- traces of the same filter --- */

/* Sums of traces exist for some labels only, while reports can be filtered by any. */
static bool has_traces(const struct tw_fleet_request *q)
{
	return !q->filter.label[0];
}

/* -1: not known.  A store of sums that fails leaves the groups readable. */
static int64_t count_traces(const struct tw_fleet_request *q)
{
	struct tw_fleet_store *store = tw_fleet_store_of(q);
	const struct tw_fleet_query all = {.project_id = project_of(q),
	        .filter = q->filter,
	        .with_deleted = true,
	        .until_ms = tw_monotonic_ms() + (int64_t)tw_req_ms_left(q->req)};
	struct tw_err unused;
	uint64_t n = 0;

	return has_traces(q) && store->engine->count(store, &all, &n, &unused) == TW_OK ? (int64_t)n
	                                                                                : -1;
}

/* Traces by version; *ret NULL: not known. */
static void count_versions(struct tw_fleet_request *q, struct tw_fleet_group **ret, size_t *ret_n)
{
	const struct tw_fleet_query all = {.dims = TW_DIM_VERSION, .with_deleted = true};
	struct tw_err unused;

	if (!has_traces(q) || tw_fleet_read_only(q, &all, &unused) != TW_OK ||
	        tw_fleet_groups(q->cells, q->n_cells, TW_FLEET_VERSION, false, q->arena, ret, ret_n,
	                &unused) != TW_OK)
		*ret = NULL;
}

/* Groups are sorted by key.  A version without traces has none. */
static int64_t traces_of(const struct tw_fleet_group *groups, size_t n, const char *version)
{
	size_t at;

	if (!groups)
		return -1;
	TW_BISECT(at, n, strcmp(groups[at].key, version) < 0);
	return at < n && strcmp(groups[at].key, version) == 0 ? (int64_t)groups[at].traces : 0;
}

static enum tw_status put_head(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_ruleset rules;
	struct tw_anr_sums sums;
	int64_t number = 0;
	enum tw_status st =
	        tw_anr_rules_number(catalogue_of(q), project_of(q), q->arena, &number, err);

	if (st == TW_OK)
		st = tw_catalogue_ruleset(
		        catalogue_of(q), project_of(q), TW_RULESET_ANR, 0, q->arena, &rules, err);
	if (st == TW_OK)
		st = tw_catalogue_anr_sums(
		        catalogue_of(q), project_of(q), &q->filter, number, &sums, err);
	if (st != TW_OK)
		return st;
	tw_json_open(&q->j, '{');
	tw_json_key_int(&q->j, "since_ms", q->filter.first_day * TW_DAY_MS);
	tw_json_key_int(&q->j, "until_ms", (q->filter.last_day + 1) * TW_DAY_MS);
	tw_json_key_int(&q->j, "anrs", (int64_t)sums.traces);
	TW_JSON_MEMBERS(&q->j, &sums, users, pending);
	tw_json_key_int_or_null(&q->j, "traces", count_traces(q));
	tw_json_key_int(&q->j, "rules_version", rules.version);
	return TW_OK;
}

static void put_group(
        struct tw_fleet_request *q, const struct page *p, const struct tw_anr_group *g)
{
	const struct tw_anr_state state = tw_anr_state_of(p->states, p->n_states, g->key);

	TW_JSON_MEMBERS(&q->j, g, key, kind, name, title, verdict);
	tw_json_key(&q->j, "cause");
	tw_json_raw(&q->j, tw_str_of(g->detail));
	TW_JSON_MEMBERS(&q->j, g, count, users, versions, devices, first_ms, last_ms, last_version);
	tw_json_key_text(&q->j, "status", tw_regress_status_names[state.triage.status]);
	TW_JSON_MEMBERS(&q->j, &state.triage, fixed_in, owner, note, muted_until_ms);
}

/* Days are sorted by group, then by time. */
static void put_trend(struct tw_fleet_request *q, const struct page *p, const char *key)
{
	size_t at;

	TW_BISECT(at, p->n_days, strcmp(p->days[at].key, key) < 0);
	tw_json_key_open(&q->j, "trend", '[');
	for (; at < p->n_days && strcmp(p->days[at].key, key) == 0; at++) {
		tw_json_open(&q->j, '{');
		tw_json_key_int(&q->j, "day_ms", p->days[at].day * TW_DAY_MS);
		TW_JSON_MEMBERS(&q->j, &p->days[at], count, users);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static const struct tw_param page_params[] = {
        TW_PARAM_OPTIONAL_ENUM("kind", tw_anr_kinds, "Only groups with this kind of cause."),
        TW_PARAM_NUMBER("limit", 100, 1, LIMIT_MAX, ""),
        TW_API_OFFSET,
        {0},
};

static enum tw_status name(struct tw_fleet_request *q, struct page *p, struct tw_err *err)
{
	return tw_catalogue_anr_groups_name(
	        catalogue_of(q), project_of(q), q->arena, p->groups, &p->n, err);
}

static void cut(struct page *p)
{
	const size_t skipped = (size_t)p->offset < p->n ? (size_t)p->offset : p->n;

	p->groups += skipped;
	p->n -= skipped;
	p->n = p->n < (size_t)p->limit ? p->n : (size_t)p->limit;
}

/* The groups of the page, with their names, which include the kind of the cause. */
static enum tw_status read_groups(struct tw_fleet_request *q, struct page *p, struct tw_err *err)
{
	const char *kind = p->kind ? tw_anr_kinds[p->kind - 1] : NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_anr_groups(
	        catalogue_of(q), project_of(q), &q->filter, q->arena, &p->groups, &p->n, err);

	if (st != TW_OK)
		return st;
	p->total = p->n;
	if (!kind) {
		cut(p);
		return name(q, p, err);
	}
	st = name(q, p, err);
	for (size_t i = 0; st == TW_OK && i < p->n; i++)
		if (strcmp(p->groups[i].kind, kind) == 0)
			p->groups[n++] = p->groups[i];
	p->n = n;
	cut(p);
	return st;
}

/* `key`: of the only group, or "". */
static enum tw_status read_details(
        struct tw_fleet_request *q, const char *key, struct page *p, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_anr_days(catalogue_of(q), project_of(q), &q->filter,
	        p->groups, p->n, q->arena, &p->days, &p->n_days, err);

	if (st == TW_OK)
		st = tw_catalogue_anr_states(catalogue_of(q), project_of(q), key, q->arena,
		        &p->states, &p->n_states, err);
	return st;
}

static void put_groups(struct tw_fleet_request *q, const struct page *p)
{
	tw_json_key_open(&q->j, "groups", '[');
	for (size_t i = 0; i < p->n; i++) {
		tw_json_open(&q->j, '{');
		put_group(q, p, &p->groups[i]);
		put_trend(q, p, p->groups[i].key);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static enum tw_status answer_groups(struct tw_fleet_request *q, struct tw_err *err)
{
	struct page p = {0};
	enum tw_status st;

	p.kind = (unsigned)(tw_req_enum(q->req, "kind") + 1);
	p.limit = tw_req_number(q->req, "limit");
	p.offset = tw_req_number(q->req, "offset");
	st = put_head(q, err); /* first: each report that it counts is in the groups by then */
	if (st == TW_OK)
		st = read_groups(q, &p, err);
	if (st == TW_OK)
		st = read_details(q, "", &p, err);
	if (st != TW_OK)
		return st;
	tw_json_key_int(&q->j, "total", (int64_t)p.total);
	put_groups(q, &p);
	tw_json_close(&q->j, '}');
	return TW_OK;
}

/* --- one group --- */

static enum tw_status put_slices(struct tw_fleet_request *q, const char *key, enum tw_anr_by by,
        const char *name, struct tw_err *err)
{
	struct tw_anr_slice *slices = NULL;
	struct tw_fleet_group *versions = NULL;
	size_t n = 0, n_versions = 0;
	enum tw_status st = tw_catalogue_anr_slices(
	        catalogue_of(q), project_of(q), &q->filter, key, by, q->arena, &slices, &n, err);

	if (st != TW_OK)
		return st;
	if (by == TW_ANR_BY_VERSION)
		count_versions(q, &versions, &n_versions);
	tw_json_key_open(&q->j, name, '[');
	for (size_t i = 0; i < n; i++) {
		tw_json_open(&q->j, '{');
		TW_JSON_MEMBERS(&q->j, &slices[i], value, count, users);
		if (by == TW_ANR_BY_VERSION)
			tw_json_key_int_or_null(
			        &q->j, "traces", traces_of(versions, n_versions, slices[i].value));
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
	return TW_OK;
}

static enum tw_status put_exemplars(struct tw_fleet_request *q, const char *key, struct tw_err *err)
{
	struct tw_anr_exemplar *e = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_anr_exemplars(
	        catalogue_of(q), project_of(q), &q->filter, key, q->arena, &e, &n, err);

	if (st != TW_OK)
		return st;
	tw_json_key_open(&q->j, "exemplars", '[');
	for (size_t i = 0; i < n; i++) {
		tw_json_open(&q->j, '{');
		tw_json_key_text(&q->j, "trace", e[i].trace_id);
		tw_json_key_bool(&q->j, "exists", e[i].there);
		TW_JSON_MEMBERS(&q->j, &e[i], recorded_ms, version_name, device, os, verdict);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
	return TW_OK;
}

static enum tw_status put_one(struct tw_fleet_request *q, const struct page *p, struct tw_err *err)
{
	static const struct {
		enum tw_anr_by by;
		const char *name;
	} slices[] = {{TW_ANR_BY_VERSION, "by_version"}, {TW_ANR_BY_DEVICE, "by_device"},
	        {TW_ANR_BY_OS, "by_os"}};
	const char *key = p->groups[0].key;
	enum tw_status st = put_head(q, err);

	if (st != TW_OK)
		return st;
	put_group(q, p, &p->groups[0]);
	put_trend(q, p, key);
	for (size_t i = 0; st == TW_OK && i < sizeof slices / sizeof *slices; i++)
		st = put_slices(q, key, slices[i].by, slices[i].name, err);
	if (st == TW_OK)
		st = put_exemplars(q, key, err);
	tw_json_close(&q->j, '}');
	return st;
}

static enum tw_status answer_group(struct tw_fleet_request *q, struct tw_err *err)
{
	const char *key = tw_req_path(q->req, "key");
	struct tw_anr_group group;
	struct page p = {.groups = &group, .n = 1};
	enum tw_status st;

	if (strlen(key) != TW_ANR_KEY_BYTES - 1 || strspn(key, "0123456789abcdef") != strlen(key))
		return tw_fail(err, TW_NOT_FOUND, "the key of an ANR group is 16 hex digits");
	st = tw_catalogue_anr_group(
	        catalogue_of(q), project_of(q), &q->filter, key, q->arena, &group, err);
	if (st == TW_OK)
		st = read_details(q, key, &p, err);
	if (st == TW_NOT_FOUND)
		st = tw_fail(err, TW_NOT_FOUND,
		        "this group has no ANRs in that time range and filter; a later mapping or "
		        "rule may have moved them to another group");
	return st == TW_OK ? put_one(q, &p, err) : st;
}

/* --- rules --- */

static json_t *no_rules(void)
{
	return json_pack("{s:[]}", "rules");
}

static const struct tw_api_ruleset anr_rules = {.setting = &tw_anr_setting, .none = no_rules};

static enum tw_status get_rules(struct tw_req *r, struct tw_err *err)
{
	return tw_api_ruleset_get(r, &anr_rules, err);
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = tw_anr_setting.check(body, err);

	if (st == TW_OK)
		st = tw_api_ruleset_put(r, &anr_rules, body,
		        json_pack("{s:O}", "rules", json_object_get(body, "rules")), err);
	if (st == TW_OK)
		tw_pipeline_wake(tw_api_of(r)->pipeline, TW_RAISED_BY_RULES);
	return st;
}

const struct tw_route tw_routes_anr[] = {
        TW_ROUTE("GET", "/api/v1/anr/groups", TW_NEED_READ, "Groups of ANRs by cause",
                .params = TW_PARAMS(page_params, tw_fleet_any_label_params),
                .fleet_query = answer_groups),
        TW_ROUTE("GET", "/api/v1/anr/groups/{key}", TW_NEED_READ, "One group of ANRs",
                .params = TW_PARAMS(tw_fleet_any_label_params), .fleet_query = answer_group),
        TW_ROUTE("GET", "/api/v1/anr/rules", TW_NEED_READ, "The rules by which ANRs are grouped",
                .params = TW_PARAMS(tw_api_ruleset_params), .end = get_rules),
        TW_ROUTE("PUT", "/api/v1/anr/rules", TW_NEED_WRITE, "Sets the rules that group ANRs",
                .json = store),
        {0},
};
