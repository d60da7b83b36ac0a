/*
 * api_detect.c - detectors: a project's rules of what should not take long, what they find in a
 * trace, and what others would find.
 */
#include "api_detect.h"

#include <stdlib.h>

#include "api.h"
#include "api_ruleset.h"

#define BODY_MAX  ((size_t)64 << 20)
#define ARENA_MAX ((size_t)512 << 20)
#define CAUSE_MAX ((size_t)256 << 20)

enum { KEEP = 50 };

static enum tw_status no_memory(struct tw_err *err)
{
	return tw_fail(err, TW_NOMEM, TW_NO_OFFSET, "no memory for what rules find");
}

/* --- what a trace's names are --- */

static uint64_t name_rules(void *arg, struct tw_str name, uint8_t *ret_mark)
{
	struct tw_detecting *d = arg;

	*ret_mark = tw_detect_mark_of(name);
	return tw_detect_rules_of(d->rules, name);
}

static void look_at_name(struct tw_detecting *d, uint32_t method)
{
	bool known = true;
	const struct tw_str name = tw_view_name(&d->v, method, d->name, &known);

	d->unnamed += !known;
	d->is_app[method] = tw_frame_rules_app(d->app, name);
	if (known)
		d->by_method[method] = name_rules(d, name, &d->marks[method]);
}

static bool make_room(struct tw_detecting *d)
{
	const size_t n = (size_t)d->v.n_methods + 1;

	d->name = tw_arena_alloc(d->arena, TW_NAME_BYTES, 1);
	d->by_method = tw_arena_zalloc(d->arena, n, sizeof *d->by_method);
	d->by_thread = tw_arena_zalloc(d->arena, (size_t)d->n_threads + 1, sizeof *d->by_thread);
	d->marks = tw_arena_zalloc(d->arena, n, sizeof *d->marks);
	d->is_app = tw_arena_zalloc(d->arena, n, sizeof *d->is_app);
	return d->name && d->by_method && d->by_thread && d->marks && d->is_app;
}

/* The most frequent methods come first, so what time leaves out is rare.  A name may be dear: time
 * is asked at each. */
static void look_at_names(struct tw_detecting *d)
{
	for (uint32_t i = 0; i < d->v.n_methods && !(d->cut & TW_CUT_TIME); i++) {
		look_at_name(d, i);
		if (tw_deadline_passed(&d->deadline))
			d->cut |= TW_CUT_TIME;
	}
	d->by_thread[0] = tw_detect_rules_on(d->rules, NULL, false);
	for (uint32_t i = 0; i < d->n_threads; i++)
		d->by_thread[d->threads[i].thread_id] =
		        tw_detect_rules_on(d->rules, &d->threads[i], &d->threads[i] == d->main);
}

/* --- findings --- */

static int by_begin(const void *pa, const void *pb)
{
	const struct tw_finding *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns ? -1 : 1;
	return a->rule < b->rule ? -1 : a->rule > b->rule;
}

static enum tw_status gather(struct tw_detecting *d, struct tw_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < d->rules->n; i++)
		n += d->found.sums[i].n_kept;
	d->list = tw_arena_alloc(d->arena, n + 1, sizeof *d->list);
	if (!d->list)
		return no_memory(err);
	for (size_t i = 0; i < d->rules->n; i++)
		for (uint32_t k = 0; k < d->found.sums[i].n_kept; k++)
			d->list[d->n++] = d->found.sums[i].kept[k];
	if (d->n)
		qsort(d->list, d->n, sizeof *d->list, by_begin);
	return TW_OK;
}

static enum tw_status find(struct tw_detecting *d, struct tw_err *err)
{
	struct tw_detect_spec *specs = tw_arena_zalloc(d->arena, d->rules->n + 1, sizeof *specs);
	const struct tw_detect_ask ask = {.rules = specs,
	        .n_rules = d->rules->n,
	        .by_method = d->by_method,
	        .marks = d->marks,
	        .is_app = d->is_app,
	        .n_methods = d->v.n_methods,
	        .by_thread = d->by_thread,
	        .main_id = d->main ? d->main->thread_id : 0,
	        .by_name = name_rules,
	        .arg = d,
	        .keep = (uint32_t)d->keep,
	        .least_message_ns = d->rules->frozen_ns,
	        .deadline = &d->deadline};
	enum tw_status st;

	if (!specs)
		return no_memory(err);
	for (size_t i = 0; i < d->rules->n; i++)
		specs[i] = (struct tw_detect_spec){d->rules->rules[i].group,
		        d->rules->rules[i].threshold_ns, d->rules->rules[i].notes};
	st = tw_query_detect(d->v.file, &ask, d->arena, &d->found, err);
	d->cut |= d->found.cut;
	return st == TW_OK ? gather(d, err) : st;
}

/* By its id where the trace tells the process, else the only one that is called so. */
static const struct tw_thread_info *find_main(const struct tw_detecting *d)
{
	const struct tw_thread_info *named = NULL;
	unsigned n = 0;

	for (uint32_t i = 0; i < d->n_threads; i++) {
		if (d->threads[i].is_main)
			return &d->threads[i];
		if (!tw_str_eq(d->threads[i].name, TW_STR("main")))
			continue;
		named = &d->threads[i];
		n++;
	}
	return n == 1 ? named : NULL;
}

enum tw_status tw_detecting_run(struct tw_detecting *d, struct tw_err *err)
{
	const struct tw_frame_limits limits = {
	        d->rules->slow_ns, d->rules->frozen_ns, TW_FRAMES_MAX, &d->deadline};
	enum tw_status st;

	d->threads = tw_trace_file_threads(d->v.file, &d->n_threads);
	d->main = find_main(d);
	if (!make_room(d))
		return no_memory(err);
	look_at_names(d);
	st = find(d, err);
	if (st == TW_OK)
		st = tw_detect_frames(d->v.file, &d->found, &limits, d->arena, &d->frames, err);
	d->cut |= d->frames.cut;
	if (st == TW_OK)
		tw_detect_start(&d->found, &d->start);
	return st;
}

/* --- answers --- */

static const struct tw_api_ruleset detectors;

/* What is not all of it may be more the next time. */
static enum tw_status reply(struct tw_req *r, struct tw_detecting *d, struct tw_err *err)
{
	if (d->cut)
		tw_req_unset_header(r, "ETag");
	return tw_req_reply_buf(r, 200, "application/json", true, &d->out, err);
}

/* Looks through d->v, which is open, and replies. */
static enum tw_status answer(struct tw_req *r, struct tw_detecting *d, struct tw_err *err)
{
	enum tw_status st;

	tw_buf_init(&d->out, BODY_MAX);
	d->arena = tw_arena_new(ARENA_MAX);
	d->scratch = tw_arena_new(CAUSE_MAX);
	d->deadline = tw_view_deadline(&d->v);
	d->j = tw_json_to(&d->out);
	st = d->arena && d->scratch ? tw_detecting_run(d, err) : no_memory(err);
	if (st == TW_OK)
		st = tw_detecting_put(d, err);
	if (st == TW_OK)
		st = reply(r, d, err);
	d->scratch = tw_arena_free(d->scratch);
	d->arena = tw_arena_free(d->arena);
	tw_buf_done(&d->out);
	return st;
}

static enum tw_status read_asked(
        struct tw_req *r, struct tw_detecting *d, int64_t *ret_changed, struct tw_err *err)
{
	enum tw_status st =
	        tw_req_query_i64(r, "limit", KEEP, 1, TW_DETECT_KEEP_MAX, &d->keep, err);

	if (st == TW_OK)
		st = tw_frame_rules_of(tw_req_app(r)->catalogue, tw_req_caller(r)->project_id,
		        tw_req_arena(r), &d->app, ret_changed, err);
	return st;
}

static enum tw_status stored_findings(
        struct tw_req *r, struct tw_detecting *d, const json_t *doc, struct tw_err *err)
{
	int64_t changed = 0;
	enum tw_status st = tw_detect_rules_new(doc, &d->rules, err);

	if (st == TW_OK)
		st = read_asked(r, d, &changed, err);
	if (st == TW_OK)
		st = tw_view_open(r, &d->v, err);
	if (st != TW_OK)
		return st;
	d->v.rules_version = changed * 1024 + d->rules_version;
	if (!tw_view_unchanged(&d->v))
		st = answer(r, d, err);
	tw_view_close(&d->v);
	return st;
}

static enum tw_status get_findings(struct tw_req *r, struct tw_err *err)
{
	struct tw_detecting d = {.rules = NULL};
	struct tw_ruleset rules;
	json_t *doc = NULL;
	enum tw_status st = tw_api_ruleset_load(r, &detectors, 0, &rules, &doc, err);

	if (st != TW_OK)
		return st;
	d.rules_version = rules.version;
	st = stored_findings(r, &d, doc, err);
	tw_detect_rules_free(d.rules);
	json_decref(doc);
	return st;
}

/* --- trying --- */

static enum tw_status trace_of(const json_t *body, const char **ret, struct tw_err *err)
{
	*ret = json_string_value(json_object_get(body, "trace"));
	if (!*ret || strlen(*ret) != TW_ID_BYTES - 1)
		return tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET,
		        "trace is the id of the trace on which the rules are tried");
	return TW_OK;
}

static enum tw_status try_on(
        struct tw_req *r, struct tw_detecting *d, const char *trace, struct tw_err *err)
{
	int64_t changed;
	enum tw_status st = read_asked(r, d, &changed, err);

	if (st == TW_OK)
		st = tw_view_open_id(r, trace, &d->v, err);
	if (st != TW_OK)
		return st;
	st = answer(r, d, err);
	tw_view_close(&d->v);
	return st;
}

static enum tw_status try_rules(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_detecting d = {.rules_version = -1};
	const char *trace = NULL;
	enum tw_status st = tw_detect_rules_new(body, &d.rules, err);

	if (st == TW_OK)
		st = trace_of(body, &trace, err);
	if (st == TW_OK)
		st = try_on(r, &d, trace, err);
	tw_detect_rules_free(d.rules);
	return st;
}

static enum tw_status post_try(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, try_rules, err);
}

/* --- rules --- */

static bool with_defaults(json_t *doc)
{
	json_t *defaults = tw_detect_defaults();

	return defaults && json_object_set_new(doc, "defaults", defaults) == 0;
}

static const struct tw_api_ruleset detectors = {
        .kind = TW_RULESET_DETECTORS, .none = tw_detect_defaults, .more = with_defaults};

static enum tw_status get_rules(struct tw_req *r, struct tw_err *err)
{
	return tw_api_ruleset_get(r, &detectors, err);
}

static json_t *document_of(const json_t *body)
{
	json_t *doc = json_pack("{s:O}", "rules", json_object_get(body, "rules"));
	json_t *frames = json_object_get(body, "frames");

	if (doc && frames)
		(void)json_object_set(doc, "frames", frames);
	return doc;
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_detect_rules *rules = NULL;
	enum tw_status st = tw_detect_rules_new(body, &rules, err);

	tw_detect_rules_free(rules);
	return st == TW_OK ? tw_api_ruleset_put(r, &detectors, body, document_of(body), err) : st;
}

static enum tw_status put_rules(struct tw_req *r, struct tw_err *err)
{
	return tw_api_with_body(r, store, err);
}

const struct tw_route tw_routes_detect[] = {
        {.method = "GET",
                .path = "/api/v1/traces/{id}/findings",
                .slow = true,
                .end = get_findings,
                .summary = "What the project's detectors find in a trace"},
        {.method = "GET",
                .path = "/api/v1/detectors",
                .slow = true,
                .end = get_rules,
                .summary = "The project's detectors, and their versions"},
        {.method = "PUT",
                .path = "/api/v1/detectors",
                .slow = true,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = put_rules,
                .summary = "Replaces the project's detectors"},
        {.method = "POST",
                .path = "/api/v1/detectors/try",
                .slow = true,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = post_try,
                .summary = "What other detectors would find in a trace"},
        {0},
};
