/*
 * api_detect.c - detectors: a project's rules, their findings in a trace, and a preview of other
 * rules.
 */
#include "server/api/admin/api_ruleset.h"
#include "server/api/api.h"
#include "server/api/trace/trace_query.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/derive/detecting.h"
#include "server/derive/pipeline.h"
#include "server/query/detect/frame_rules.h"

#define BODY_MAX  ((size_t)64 << 20)
#define ARENA_MAX ((size_t)512 << 20)
#define CAUSE_MAX ((size_t)256 << 20)

enum { KEEP = 50 };

/* --- answers --- */

static const struct tw_api_ruleset detectors;

/* An incomplete response is not cached: a repeated request may find more. */
static enum tw_status reply(struct tw_req *r, struct tw_detecting *d, struct tw_err *err)
{
	if (d->cut)
		tw_req_unset_header(r, "ETag");
	return tw_req_reply_buf(r, 200, "application/json", true, &d->out, err);
}

/* Runs the detectors on d->v, which is open, and replies. */
static enum tw_status answer(struct tw_req *r, struct tw_detecting *d, struct tw_err *err)
{
	enum tw_status st;

	tw_buf_init(&d->out, BODY_MAX);
	d->arena = tw_arena_new(ARENA_MAX);
	d->scratch = tw_arena_new(CAUSE_MAX);
	d->deadline = tw_view_deadline(&d->v);
	d->j = tw_json_to(&d->out);
	st = d->arena && d->scratch ? tw_detecting_run(d, err) : tw_oom(err);
	if (st == TW_OK)
		st = tw_detecting_put(d, err);
	if (st == TW_OK)
		st = reply(r, d, err);
	d->scratch = tw_arena_free(d->scratch);
	d->arena = tw_arena_free(d->arena);
	tw_buf_done(&d->out);
	return st;
}

static const struct tw_param keep_params[] = {
        TW_PARAM_NUMBER("limit", KEEP, 1, TW_DETECT_KEEP_MAX,
                "Number of findings per rule in the response, longest first."),
        {0},
};

static enum tw_status read_rules_sent(
        struct tw_req *r, struct tw_detecting *d, int64_t *ret_changed, struct tw_err *err)
{
	d->keep = tw_req_number(r, "limit");
	return tw_frame_rules_of(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), &d->app, ret_changed, err);
}

static enum tw_status stored_findings(
        struct tw_req *r, struct tw_detecting *d, const json_t *doc, struct tw_err *err)
{
	int64_t changed = 0;
	enum tw_status st = tw_detect_rules_new(doc, &d->rules, err);

	if (st == TW_OK)
		st = read_rules_sent(r, d, &changed, err);
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

/* --- preview --- */

static enum tw_status trace_of(const json_t *body, const char **ret, struct tw_err *err)
{
	*ret = json_string_value(json_object_get(body, "trace"));
	if (!*ret || strlen(*ret) != TW_ID_BYTES - 1)
		return tw_fail(err, TW_BAD_REQUEST,
		        "trace must be the id of the trace on which the rules are tested");
	return TW_OK;
}

static enum tw_status try_on(
        struct tw_req *r, struct tw_detecting *d, const char *trace, struct tw_err *err)
{
	int64_t changed;
	enum tw_status st = read_rules_sent(r, d, &changed, err);

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

/* --- rules --- */

static bool with_defaults(json_t *doc)
{
	json_t *defaults = tw_detect_defaults();

	return defaults && json_object_set_new(doc, "defaults", defaults) == 0;
}

static const struct tw_api_ruleset detectors = {
        .setting = &tw_detect_setting, .none = tw_detect_defaults, .more = with_defaults};

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
	enum tw_status st = tw_detect_setting.check(body, err);

	if (st == TW_OK)
		st = tw_api_ruleset_put(r, &detectors, body, document_of(body), err);
	/* detectors run again on all traces */
	tw_pipeline_wake(tw_api_of(r)->pipeline, TW_RAISED_BY_RULES);
	return st;
}

const struct tw_route tw_routes_detect[] = {
        TW_ROUTE("GET", "/api/v1/traces/{id}/findings", TW_NEED_READ,
                "Detector findings in a trace", .params = TW_PARAMS(keep_params),
                .end = get_findings),
        TW_ROUTE("GET", "/api/v1/detectors", TW_NEED_READ, "The project's detectors",
                .params = TW_PARAMS(tw_api_ruleset_params), .end = get_rules),
        TW_ROUTE("PUT", "/api/v1/detectors", TW_NEED_WRITE, "Sets the project's detectors",
                .json = store),
        TW_ROUTE("POST", "/api/v1/detectors/preview", TW_NEED_READ,
                "Runs the given detectors on a trace without saving them", .read_only = true,
                .params = TW_PARAMS(keep_params), .json = try_rules),
        {0},
};

/* --- which frames are the app's --- */

static enum tw_status get_frames(struct tw_req *r, struct tw_err *err)
{
	int64_t version = 0;
	json_t *project;
	json_t *answer;
	enum tw_status st = tw_setting_load(
	        tw_api_catalogue(r), tw_api_project(r), &tw_frame_setting, &project, &version, err);

	if (st != TW_OK)
		return st;
	answer = tw_frame_rules_json(project);
	json_decref(project);
	return tw_req_reply_json(r, 200, answer, err);
}

static enum tw_status store_frames(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const struct tw_frame_rules *rules;
	enum tw_status st = tw_frame_rules_new(body, tw_req_arena(r), &rules, err);

	if (st == TW_OK)
		st = tw_api_store_setting(r, TW_SETTING_FRAMES, body, err);
	tw_pipeline_wake(tw_api_of(r)->pipeline,
	        TW_RAISED_BY_RULES); /* the keys of ANRs depend on which frames are the app's */
	return st;
}

static enum tw_status put_frames(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = store_frames(r, body, err);

	return st == TW_OK ? get_frames(r, err) : st;
}

const struct tw_route tw_routes_frames[] = {
        TW_ROUTE("GET", "/api/v1/frames", TW_NEED_READ,
                "Rules that classify methods as app or framework code", .end = get_frames),
        TW_ROUTE("PUT", "/api/v1/frames", TW_NEED_WRITE,
                "Sets the rules that classify methods as app or framework code",
                .json = put_frames),
        {0},
};
