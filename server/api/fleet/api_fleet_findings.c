/*
 * api_fleet_findings.c - findings of detectors in many traces: by rule, by causing method, by
 * version or another dimension.
 */
#include <string.h>

#include "decoder/base/lookup.h"
#include "decoder/base/order.h"
#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/catalogue/fleet/catalogue_found.h"
#include "server/derive/stages.h"
#include "server/fleet/found.h"

enum { CAUSES = 5, CAUSES_MAX = 100, ROWS_MAX = 500000, ROWS_PER_CHECK = 64, RESPONSE_MS = 500 };

struct group { /* of cells */
	const struct tw_fleet_group *of;
	uint64_t looked;
	struct tw_found_sum *rules;
};

struct cause { /* methods with one name */
	uint32_t rule;
	const struct tw_rollup_naming *naming;
	struct tw_found_sum sum;
};

struct answer {
	struct tw_fleet_request *q;
	struct tw_found_rules rules;
	const char *only; /* a rule; "": all */
	int64_t limit;    /* of causes of a rule */
	enum tw_fleet_by by;
	struct tw_found_sums sums; /* its rules and traces belong to the current group */
	struct tw_found found;
	uint64_t rows, looked, partial, pending, unreadable;
	bool cut; /* the rest was omitted for lack of time or memory */
	struct tw_found_sum total[TW_DETECT_RULES_MAX];
	struct group *groups; /* by falling number of traces; the first ones have sums */
	size_t n_groups;
	struct tw_found_sum unshown[TW_DETECT_RULES_MAX];
	struct cause *causes; /* by rule, then by falling time */
	size_t n_causes;
};

/* --- reading --- */

/* Findings beyond the limits of time and size are omitted; the response says so. */
static enum tw_status take_row(
        void *arg, const char *trace_id, struct tw_str data, struct tw_err *err)
{
	struct answer *a = arg;
	enum tw_status st;

	if (a->rows == ROWS_MAX ||
	        (a->rows % ROWS_PER_CHECK == 0 && tw_req_ms_left(a->q->req) < RESPONSE_MS))
		return tw_fail(err, TW_DEADLINE, "the rest is omitted");
	a->rows++;
	st = tw_found_read((const uint8_t *)data.ptr, data.len, &a->found, NULL);
	a->unreadable += st != TW_OK;
	return st == TW_OK ? tw_found_add(&a->sums, trace_id, &a->found, err) : TW_OK;
}

static bool is_shown(const struct answer *a, const struct group *g)
{
	return g < a->groups + TW_FLEET_GROUPS_MAX;
}

static enum tw_status read_group(
        struct answer *a, struct group *g, const struct tw_fleet_group *of, struct tw_err *err)
{
	const size_t n = a->rules.detectors->n;
	const struct tw_fleet_cells_of cells = {of->cells, of->n, a->q->n_cells};
	struct tw_fleet_store *store = tw_fleet_store_of(a->q);
	enum tw_status st;

	g->of = of;
	g->rules =
	        is_shown(a, g) ? tw_arena_zalloc(a->q->arena, n + 1, sizeof *g->rules) : a->unshown;
	if (!g->rules)
		return tw_oom(err);
	memset(a->sums.rules, 0, sizeof a->sums.rules);
	a->sums.traces = a->sums.partial = 0;
	st = store->engine->found(
	        store, &a->q->query, &cells, &(struct tw_fleet_findings){take_row, a}, err);
	a->cut = st == TW_DEADLINE || st == TW_TOO_LARGE;
	st = a->cut ? TW_OK : st;
	g->looked = a->sums.traces;
	a->looked += a->sums.traces;
	a->partial += a->sums.partial;
	for (size_t i = 0; i < n; i++) {
		g->rules[i] = a->sums.rules[i];
		tw_found_merge(&a->total[i], &a->sums.rules[i]);
	}
	return st;
}

TW_ORDER_BY(most_traces_first, struct tw_fleet_group, TW_FALLING(traces), TW_RISING(key))

TW_ORDER_BY(by_key, struct tw_fleet_group, TW_RISING(key))

/* The groups with sums are sorted by key, or all if all have sums. */
static void put_shown_first(struct tw_fleet_group *groups, size_t n)
{
	if (n <= TW_FLEET_GROUPS_MAX)
		return;
	TW_SORT(groups, n, most_traces_first);
	TW_SORT(groups, TW_FLEET_GROUPS_MAX, by_key);
}

static enum tw_status read_groups(struct answer *a, struct tw_err *err)
{
	struct tw_fleet_group *groups = NULL;
	enum tw_status st = tw_fleet_groups(
	        a->q->cells, a->q->n_cells, a->by, false, a->q->arena, &groups, &a->n_groups, err);

	if (st != TW_OK)
		return st;
	put_shown_first(groups, a->n_groups);
	a->groups = tw_arena_zalloc(a->q->arena, a->n_groups + 1, sizeof *a->groups);
	a->found.rules = tw_arena_alloc(a->q->arena, TW_DETECT_RULES_MAX, sizeof *a->found.rules);
	if (!a->groups || !a->found.rules)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && !a->cut && i < a->n_groups; i++)
		st = read_group(a, &a->groups[i], &groups[i], err);
	return st;
}

/* --- causes --- */

static int compare_naming(const struct tw_rollup_naming *a, const struct tw_rollup_naming *b)
{
	int c = strcmp(a->name, b->name);

	if (c || (a->named && b->named)) /* overloads count as one */
		return c;
	return a->id < b->id ? -1 : a->id > b->id;
}

TW_ORDER_BY(by_name, struct cause, TW_RISING(rule), compare_naming(a->naming, b->naming))

TW_ORDER_BY(by_time, struct cause, TW_RISING(rule), TW_FALLING(sum.ns),
        compare_naming(a->naming, b->naming))

/* Merges methods of one name from several builds. */
static void merge_causes(struct answer *a)
{
	size_t n = 0;

	TW_SORT(a->causes, a->n_causes, by_name);
	for (size_t i = 0; i < a->n_causes; i++)
		if (n && by_name(&a->causes[n - 1], &a->causes[i]) == 0)
			tw_found_merge(&a->causes[n - 1].sum, &a->causes[i].sum);
		else
			a->causes[n++] = a->causes[i];
	a->n_causes = n;
	TW_SORT(a->causes, n, by_time);
}

static enum tw_status name_causes(struct answer *a, struct tw_err *err)
{
	const struct tw_found_sums *s = &a->sums;
	struct tw_rollup_naming *names = NULL;
	uint64_t *ids = tw_arena_alloc(a->q->arena, (size_t)s->n + 1, sizeof *ids);
	enum tw_status st;

	a->causes = tw_arena_alloc(a->q->arena, (size_t)s->n + 1, sizeof *a->causes);
	if (!ids || !a->causes)
		return tw_oom(err);
	for (uint32_t i = 0; i < s->n; i++)
		ids[i] = s->causes[i].method;
	st = tw_catalogue_rollup_names(tw_api_catalogue(a->q->req), tw_api_project(a->q->req), ids,
	        s->n, a->q->arena, &names, err);
	if (st != TW_OK)
		return st;
	for (uint32_t i = 0; i < s->n; i++)
		a->causes[i] = (struct cause){s->causes[i].rule, &names[i], s->causes[i].sum};
	a->n_causes = s->n;
	merge_causes(a);
	return TW_OK;
}

/* --- the response --- */

static void put_sum(struct tw_fleet_request *q, const struct tw_found_sum *s)
{
	TW_JSON_MEMBERS(&q->j, s, traces, found, ns, max_ns);
}

/* A method by name, or null if no method of the app encloses the finding. */
static void put_cause(struct tw_fleet_request *q, const struct cause *c)
{
	const struct tw_rollup_naming *m = c->naming;

	tw_json_open(&q->j, '{');
	tw_json_key(&q->j, "name");
	if (m->id)
		tw_json_str(&q->j, m->name[0] ? tw_str_of(m->name)
		                              : TW_STR("(a method that no longer exists)"));
	else
		tw_json_null(&q->j);
	tw_json_key_bool(&q->j, "resolved", m->named);
	tw_json_key_text(&q->j, "build_id", m->named ? "" : m->build_id);
	put_sum(q, &c->sum);
	tw_fleet_put_trace(q, "exemplar", c->sum.worst[0].trace_id);
	tw_json_close(&q->j, '}');
}

static void put_causes(struct answer *a, uint32_t rule)
{
	struct tw_fleet_request *q = a->q;
	int64_t total = 0;

	tw_json_key_open(&q->j, "causes", '[');
	for (size_t i = 0; i < a->n_causes; i++) {
		if (a->causes[i].rule != rule)
			continue;
		if (total++ < a->limit)
			put_cause(q, &a->causes[i]);
	}
	tw_json_close(&q->j, ']');
	tw_json_key_int(&q->j, "causes_total", total);
}

static void put_exemplars(struct tw_fleet_request *q, const struct tw_found_sum *s)
{
	tw_json_key_open(&q->j, "exemplars", '[');
	for (int i = 0; i < TW_FOUND_EXEMPLARS && s->worst[i].trace_id[0]; i++) {
		tw_json_open(&q->j, '{');
		tw_fleet_put_trace(q, "id", s->worst[i].trace_id);
		tw_json_key_int(&q->j, "ns", s->worst[i].ns);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static void put_rule_groups(struct answer *a, uint32_t rule)
{
	struct tw_fleet_request *q = a->q;

	tw_json_key_open(&q->j, "groups", '[');
	for (size_t i = 0; i < a->n_groups && i < TW_FLEET_GROUPS_MAX; i++) {
		const struct group *g = &a->groups[i];

		if (!g->rules) /* omitted for lack of time */
			continue;
		tw_json_open(&q->j, '{');
		tw_fleet_put_key(q, g->of->key);
		tw_json_key_int(&q->j, "of_traces", (int64_t)g->looked);
		put_sum(q, &g->rules[rule]);
		tw_json_key_int(&q->j, "main_ns", g->rules[rule].main_ns);
		tw_json_close(&q->j, '}');
	}
	tw_json_close(&q->j, ']');
}

static void put_rule(struct answer *a, uint32_t rule)
{
	const struct tw_detect_rule *of = &a->rules.detectors->rules[rule];
	const struct tw_found_sum *s = &a->total[rule];
	struct tw_fleet_request *q = a->q;

	tw_json_open(&q->j, '{');
	TW_JSON_MEMBERS(&q->j, of, id, kind, title, severity, message, threshold_ns);
	put_sum(q, s);
	tw_json_key_int(&q->j, "main_ns", s->main_ns);
	tw_json_key(&q->j, "share");
	tw_json_double(&q->j, a->looked ? (double)s->traces / (double)a->looked : 0);
	put_exemplars(q, s);
	put_causes(a, rule);
	put_rule_groups(a, rule);
	tw_json_close(&q->j, '}');
}

struct ranked {
	uint32_t rule;
	const struct tw_found_sum *sum;
};

TW_ORDER_BY(
        most_first, struct ranked, TW_FALLING(sum->main_ns), TW_FALLING(sum->ns), TW_RISING(rule))

static void put_rules(struct answer *a)
{
	struct ranked ranked[TW_DETECT_RULES_MAX];
	size_t n = 0;

	for (uint32_t i = 0; i < a->rules.detectors->n; i++)
		if (a->total[i].traces &&
		        (!a->only[0] || strcmp(a->only, a->rules.detectors->rules[i].id) == 0))
			ranked[n++] = (struct ranked){i, &a->total[i]};
	TW_SORT(ranked, n, most_first);
	tw_json_key_open(&a->q->j, "rules", '[');
	for (size_t i = 0; i < n; i++)
		put_rule(a, ranked[i].rule);
	tw_json_close(&a->q->j, ']');
}

static void put_all(struct answer *a)
{
	struct tw_fleet_request *q = a->q;

	tw_fleet_put_head(q);
	tw_fleet_put_by(q, a->by);
	tw_json_key_int(&q->j, "examined", (int64_t)a->looked);
	tw_json_key_int(&q->j, "partial", (int64_t)a->partial);
	tw_json_key_bool(&q->j, "complete", !a->cut);
	TW_JSON_MEMBERS(&q->j, a, unreadable, pending);
	tw_json_key_int(&q->j, "rules_version", a->rules.version);
	put_rules(a);
	tw_json_close(&q->j, '}');
}

/* --- the request --- */

static enum tw_status read_all(struct answer *a, struct tw_err *err)
{
	struct tw_fleet_request *q = a->q;
	struct tw_catalogue *c = tw_api_catalogue(q->req);
	enum tw_status st = tw_fleet_read(q, 0, tw_fleet_by_dims(a->by), err);

	if (st == TW_OK)
		st = tw_fleet_sum_label_values(q, err);
	if (st == TW_OK) /* first, so that findings of traces that are no longer pending are read */
		st = tw_catalogue_found_waiting(
		        c, tw_api_project(q->req), a->rules.number, &a->pending, err);
	if (st == TW_OK)
		st = read_groups(a, err);
	return st == TW_OK ? name_causes(a, err) : st;
}

static enum tw_status check_rule(const struct answer *a, struct tw_err *err)
{
	if (!a->only[0] || TW_LOOKUP(a->rules.detectors->rules, a->rules.detectors->n, id, a->only))
		return TW_OK;
	return tw_fail(err, TW_NOT_FOUND, "no detector has the id %.40s", a->only);
}

const struct tw_param tw_fleet_findings_params[] = {
        TW_PARAM_TEXT("rule", 0, "Id of a detector; only its findings."),
        TW_PARAM_NUMBER("limit", CAUSES, 1, CAUSES_MAX, "Causes of each detector."),
        {0},
};

enum tw_status tw_fleet_write_findings(struct tw_fleet_request *q, struct tw_err *err)
{
	struct answer *a = tw_arena_zalloc(q->arena, 1, sizeof *a);
	enum tw_status st;

	if (!a)
		return tw_oom(err);
	*a = (struct answer){.q = q,
	        .only = tw_req_text_or_empty(q->req, "rule"),
	        .limit = tw_req_number(q->req, "limit")};
	st = tw_fleet_read_by(q, "version", &a->by, err);
	if (st == TW_OK)
		st = tw_found_rules_open(
		        tw_api_catalogue(q->req), tw_api_project(q->req), q->arena, &a->rules, err);
	if (st != TW_OK)
		return st;
	a->sums = (struct tw_found_sums){.arena = q->arena, .of = a->rules.detectors};
	st = check_rule(a, err);
	if (st == TW_OK)
		st = read_all(a, err);
	if (st == TW_OK)
		put_all(a);
	tw_found_rules_done(&a->rules);
	return st;
}
