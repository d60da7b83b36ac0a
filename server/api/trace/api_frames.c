/* The project's rules for frames of the app. */
#include "server/api/api.h"
#include "server/base/thread/periodic.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/derive/pipeline.h"
#include "server/query/detect/frame_rules.h"

static enum tw_status get_frames(struct tw_req *r, struct tw_err *err)
{
	const char *text = NULL;
	int64_t version = 0;
	json_t *project;
	json_t *answer;
	enum tw_status st =
	        tw_catalogue_setting_get(tw_api_of(r)->catalogue, tw_req_caller(r)->project_id,
	                TW_SETTING_FRAMES, tw_req_arena(r), &text, &version, err);

	if (st != TW_OK)
		return st;
	project = text ? json_loads(text, 0, NULL) : NULL;
	answer = tw_frame_rules_json(project);
	json_decref(project);
	return tw_req_reply_json(r, 200, answer, err);
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const struct tw_frame_rules *rules;
	enum tw_status st = tw_frame_rules_new(body, tw_req_arena(r), &rules, err);

	if (st == TW_OK)
		st = tw_api_keep_setting(r, TW_SETTING_FRAMES, body, err);
	tw_pipeline_wake(tw_api_of(r)->pipeline,
	        TW_RAISED_BY_RULES); /* the keys of ANRs depend on which frames are the app's */
	return st;
}

static enum tw_status put_frames(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	enum tw_status st = store(r, body, err);

	return st == TW_OK ? get_frames(r, err) : st;
}

const struct tw_route tw_routes_frames[] = {
        {.method = "GET",
                .path = "/api/v1/frames",
                .needs = TW_NEED_READ,
                .end = get_frames,
                .summary = "Rules that classify methods as app or framework code"},
        {.method = "PUT",
                .path = "/api/v1/frames",
                .needs = TW_NEED_WRITE,
                .json = put_frames,
                .summary = "Sets the rules that classify methods as app or framework code"},
        {0},
};
