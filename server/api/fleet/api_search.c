/*
 * api_search.c - searches a project by name: methods, traces, builds, ANR groups, regressions.
 *
 * Each kind returns its best matches. If no method matches, the names closest to the text are
 * returned and marked as similar. Scanning method names has a short time limit, so that
 * suggestions appear while the user types; `partial` means that it was reached.
 */
#include <string.h>

#include "decoder/base/lookup.h"
#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/text/find.h"
#include "server/catalogue/anr/catalogue_anr_index.h"
#include "server/catalogue/fleet/catalogue_regression.h"
#include "server/catalogue/fleet/catalogue_search_index.h"
#include "server/catalogue/traces/catalogue_build.h"
#include "server/catalogue/traces/catalogue_list.h"
#include "server/catalogue/traces/catalogue_trace.h"
#include "server/query/detect/frame_rules.h"

enum {
	LIMIT_MAX = 50,
	SCAN_MS = 400,
	NAMES_PER_CHECK = 256,
	ANR_DAYS = 90,
	ANR_GROUPS_READ = 1000,
	BUILDS_READ = 500
};
#define MATCHES_BYTES ((size_t)8 << 20)

struct match { /* a name and its object */
	enum tw_find_rank rank;
	unsigned errors; /* 0: it matches; otherwise it is similar */
	bool is_app;     /* a method of the app's own code */
	size_t len;
	const char *name, *raw;
	const void *of;
};

struct matches { /* the best so far, in order */
	struct match at[LIMIT_MAX + 1];
	size_t n, limit;
};

struct search {
	struct tw_req *req;
	struct tw_find find;
	struct tw_find_near near;
	struct tw_arena *arena;
	int64_t until_ms;
	uint32_t scanned;
	bool partial;
	const struct tw_frame_rules *rules;
	struct matches methods;
};

static bool is_better(const struct match *a, const struct match *b)
{
	if (a->errors != b->errors)
		return a->errors < b->errors;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->is_app != b->is_app ? a->is_app : a->len < b->len;
}

static bool has_space(const struct matches *f, const struct match *one)
{
	return one->rank != TW_FIND_NOT && (f->n < f->limit || is_better(one, &f->at[f->n - 1]));
}

static void insert(struct matches *f, const struct match *one)
{
	size_t at = f->n;

	while (at > 0 && is_better(one, &f->at[at - 1])) {
		f->at[at] = f->at[at - 1];
		at--;
	}
	f->at[at] = *one;
	f->n += f->n < f->limit;
}

/* --- methods --- */

/* Whether no name matches so far: similar names are listed then, until one matches. */
static bool is_similar(const struct matches *f)
{
	return f->n == 0 || f->at[0].errors > 0;
}

static enum tw_status take_name(
        void *arg, const char *name, const char *raw, bool *io_more, struct tw_err *err)
{
	struct search *s = arg;
	struct match one = {.len = strlen(name)};

	if (++s->scanned % NAMES_PER_CHECK == 0 && tw_monotonic_ms() > s->until_ms) {
		s->partial = true;
		*io_more = false;
	}
	one.rank = tw_find_rank(&s->find, tw_str_of(raw[0] ? raw : name));
	if (one.rank != TW_FIND_NOT && is_similar(&s->methods))
		s->methods.n = 0;
	if (one.rank == TW_FIND_NOT && is_similar(&s->methods)) {
		one.errors = tw_find_errors(&s->near, tw_str_of(raw[0] ? raw : name));
		one.rank = one.errors < TW_FIND_FAR ? TW_FIND_WITHIN : TW_FIND_NOT;
	}
	one.is_app = one.rank != TW_FIND_NOT && tw_frame_rules_app(s->rules, tw_str_of(name));
	if (!has_space(&s->methods, &one) ||
	        (raw[0] && TW_LOOKUP(s->methods.at, s->methods.n, name, name)))
		return TW_OK;
	one.name = tw_arena_str(s->arena, tw_str_of(name));
	one.raw = tw_arena_str(s->arena, tw_str_of(raw));
	if (!one.name || !one.raw)
		return tw_oom(err);
	insert(&s->methods, &one);
	return TW_OK;
}

static enum tw_status find_methods(struct search *s, json_t *out, struct tw_err *err)
{
	const struct tw_method_names names = {tw_api_project(s->req), true, take_name, s};
	struct tw_catalogue *c = tw_api_catalogue(s->req);
	int64_t version = 0;
	enum tw_status st =
	        tw_frame_rules_of(c, names.project_id, s->arena, &s->rules, &version, err);
	json_t *list = json_array();

	if (st == TW_OK)
		st = tw_catalogue_method_names(c, &names, err);
	for (size_t i = 0; st == TW_OK && i < s->methods.n; i++)
		(void)json_array_append_new(
		        list, json_pack("{s:s, s:s}", "name", s->methods.at[i].name, "raw",
		                      s->methods.at[i].raw));
	(void)json_object_set_new(out, "methods", list);
	(void)json_object_set_new(out, "methods_are_similar",
	        json_boolean(s->methods.n > 0 && is_similar(&s->methods)));
	return st;
}

/* --- other kinds --- */

static enum tw_status find_traces(
        struct search *s, const char *text, json_t *out, struct tw_err *err)
{
	struct tw_trace_filter f = {
	        .sort = TW_SORT_CREATED, .limit = (uint32_t)s->methods.limit, .cursor = ""};
	struct tw_trace_row *rows = NULL;
	const char *cursor;
	uint64_t total = 0;
	size_t n = 0;
	json_t *list = json_array();
	enum tw_status st = tw_trace_filter_add(&f, "q", text, err);

	if (st == TW_OK)
		st = tw_catalogue_traces(tw_api_catalogue(s->req), tw_api_project(s->req), &f,
		        s->arena, &rows, &n, &cursor, &total, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		(void)json_array_append_new(
		        list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "id", rows[i].id,
		                      "title", rows[i].title, "app", rows[i].meta.app,
		                      "version_name", rows[i].meta.version_name, "scenario",
		                      rows[i].meta.scenario, "device", rows[i].meta.device,
		                      "created_ms", (json_int_t)rows[i].created_ms));
	(void)json_object_set_new(out, "traces", list);
	(void)json_object_set_new(out, "traces_total",
	        json_integer(
	                (json_int_t)(total > TW_TRACE_TOTAL_MAX ? TW_TRACE_TOTAL_MAX : total)));
	(void)json_object_set_new(
	        out, "traces_total_is_capped", json_boolean(total > TW_TRACE_TOTAL_MAX));
	return st;
}

/* Adds the best of several names of one object. */
static void offer(const struct search *s, struct matches *f, const void *of,
        const char *const names[], size_t n)
{
	struct match best = {.of = of, .name = ""};

	for (size_t i = 0; i < n; i++) {
		const struct match one = {tw_find_rank(&s->find, tw_str_of(names[i])), 0, false,
		        strlen(names[i]), names[i], "", of};

		if (one.rank != TW_FIND_NOT && (best.rank == TW_FIND_NOT || is_better(&one, &best)))
			best = one;
	}
	if (has_space(f, &best))
		insert(f, &best);
}

static enum tw_status find_builds(struct search *s, json_t *out, struct tw_err *err)
{
	struct matches matches = {.limit = s->methods.limit};
	struct tw_build_row *rows = NULL;
	const char *cursor;
	size_t n = 0;
	json_t *list = json_array();
	enum tw_status st = tw_catalogue_builds(tw_api_catalogue(s->req), tw_api_project(s->req),
	        BUILDS_READ, "", s->arena, &rows, &n, &cursor, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		offer(s, &matches, &rows[i],
		        (const char *const[]){
		                rows[i].build_id, rows[i].version_name, rows[i].commit},
		        3);
	for (size_t i = 0; i < matches.n; i++) {
		const struct tw_build_row *b = matches.at[i].of;

		(void)json_array_append_new(list,
		        json_pack("{s:s, s:s, s:s, s:I}", "build_id", b->build_id, "app", b->app,
		                "version_name", b->version_name, "traces", (json_int_t)b->traces));
	}
	(void)json_object_set_new(out, "builds", list);
	return st;
}

static enum tw_status find_anrs(struct search *s, json_t *out, struct tw_err *err)
{
	const int64_t today = tw_unix_ms() / TW_DAY_MS;
	const struct tw_rollup_filter f = tw_rollup_days(today - ANR_DAYS + 1, today + 1);
	struct matches matches = {.limit = s->methods.limit};
	struct tw_anr_group *rows = NULL;
	size_t n = 0;
	json_t *list = json_array();
	enum tw_status st = tw_catalogue_anr_groups(
	        tw_api_catalogue(s->req), tw_api_project(s->req), &f, s->arena, &rows, &n, err);

	n = n < ANR_GROUPS_READ ? n : ANR_GROUPS_READ; /* those with the most reports */
	if (st == TW_OK)
		st = tw_catalogue_anr_groups_name(
		        tw_api_catalogue(s->req), tw_api_project(s->req), s->arena, rows, &n, err);
	for (size_t i = 0; st == TW_OK && i < n; i++)
		offer(s, &matches, &rows[i],
		        (const char *const[]){
		                rows[i].name, rows[i].title, rows[i].key, rows[i].detail},
		        4);
	for (size_t i = 0; i < matches.n; i++) {
		const struct tw_anr_group *g = matches.at[i].of;

		(void)json_array_append_new(list,
		        json_pack("{s:s, s:s, s:s, s:s, s:I}", "key", g->key, "kind", g->kind,
		                "name", g->name, "title", g->title, "count", (json_int_t)g->count));
	}
	(void)json_object_set_new(out, "anrs", list);
	return st;
}

static enum tw_status find_regressions(struct search *s, json_t *out, struct tw_err *err)
{
	const struct tw_regression_query all = {
	        "", "", "", "", "", (1U << TW_REGRESS_STATUSES) - 1, 0};
	struct matches matches = {.limit = s->methods.limit};
	struct tw_regression *rows = NULL;
	size_t n = 0;
	json_t *list = json_array();
	enum tw_status st =
	        tw_catalogue_regressions(tw_api_catalogue(s->req), tw_api_project(s->req), &all,
	                TW_REGRESSIONS_MAX, "", s->arena, &rows, &n, NULL, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		offer(s, &matches, &rows[i],
		        (const char *const[]){
		                rows[i].of.method[0] ? rows[i].of.method : rows[i].of.scenario,
		                rows[i].id},
		        2);
	for (size_t i = 0; i < matches.n; i++) {
		const struct tw_regression *r = matches.at[i].of;

		(void)json_array_append_new(
		        list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", r->id, "method",
		                      r->of.method, "scenario", r->of.scenario, "head", r->of.head,
		                      "status", tw_regress_status_names[r->status]));
	}
	(void)json_object_set_new(out, "regressions", list);
	return st;
}

static enum tw_status find_all(struct search *s, const char *text, json_t *out, struct tw_err *err)
{
	enum tw_status st = find_traces(s, text, out, err);

	if (st == TW_OK)
		st = find_builds(s, out, err);
	if (st == TW_OK)
		st = find_anrs(s, out, err);
	if (st == TW_OK)
		st = find_regressions(s, out, err);
	if (st == TW_OK)
		st = find_methods(s, out, err); /* last: it uses the remaining time */
	(void)json_object_set_new(out, "partial", json_boolean(s->partial));
	return st;
}

static const struct tw_param search_params[] = {
        TW_PARAM_REQUIRED("q", 0, "Search words, separated by spaces."),
        TW_PARAM_NUMBER("limit", 8, 1, LIMIT_MAX, "Largest number of results of each kind."),
        {0},
};

static enum tw_status get_search(struct tw_req *r, struct tw_err *err)
{
	const char *text = tw_req_text(r, "q");
	struct search *s = tw_arena_zalloc(tw_req_arena(r), 1, sizeof *s);
	json_t *out;
	enum tw_status st;

	if (!s)
		return tw_oom(err);
	s->req = r;
	s->methods.limit = (size_t)tw_req_number(r, "limit");
	s->until_ms = tw_monotonic_ms() + SCAN_MS;
	st = tw_find_read(text, &s->find, err);
	if (st == TW_OK && s->find.n == 0)
		st = tw_fail(err, TW_BAD_REQUEST, "q is missing: set the text to search for");
	if (st != TW_OK)
		return st;
	tw_find_near_read(&s->find, &s->near);
	s->arena = tw_arena_new(MATCHES_BYTES);
	if (!s->arena)
		return tw_oom(err);
	out = json_object();
	st = find_all(s, text, out, err);
	tw_arena_free(s->arena);
	if (st == TW_OK)
		return tw_req_reply_json(r, 200, out, err);
	json_decref(out);
	return st;
}

const struct tw_route tw_routes_search[] = {
        TW_ROUTE("GET", "/api/v1/search", TW_NEED_READ,
                "Methods, traces, builds, ANR groups and regressions by name",
                .params = TW_PARAMS(search_params), .end = get_search),
        {0},
};
