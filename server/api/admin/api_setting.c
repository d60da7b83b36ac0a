/* api_setting.c - settings that are JSON documents, and those stored ones that cannot be used:
 * their own routes return the defaults. */
#include "server/api/admin/api_setting.h"

#include <string.h>

#include "server/api/api.h"
#include "server/catalogue/access/capture.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/derive/retention.h"
#include "server/derive/rollup/rollup_writer.h"
#include "server/fleet/anr/anr_rules.h"
#include "server/fleet/regress_detect.h"
#include "server/notify/digest.h"
#include "server/notify/ticket.h"
#include "server/query/detect/detect_rules.h"
#include "server/query/detect/frame_rules.h"
#include "server/source/source_rules.h"

static const struct tw_setting *const settings[] = {
        &tw_anr_setting,
        &tw_capture_setting,
        &tw_detect_setting,
        &tw_digest_setting,
        &tw_frame_setting,
        &tw_regress_setting,
        &tw_retention_setting,
        &tw_rollup_setting,
        &tw_source_setting,
        &tw_tracker_setting,
};

enum tw_status tw_setting_text_check(const char *key, const char *text, struct tw_err *err)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		json_t *doc = NULL;
		enum tw_status st;

		if (strcmp(settings[i]->key, key) != 0)
			continue;
		st = tw_setting_parse(text, settings[i]->check, &doc, err);
		json_decref(doc);
		return st;
	}
	return TW_OK;
}

static void add_invalid(void *list, const char *project, const char *key, const char *text)
{
	struct tw_err why;

	(void)project;
	if (tw_setting_text_check(key, text, &why) == TW_BAD_REQUEST)
		(void)json_array_append_new(
		        list, json_pack("{s:s, s:s}", "key", key, "reason", why.msg));
}

static enum tw_status get_invalid(struct tw_req *r, struct tw_err *err)
{
	json_t *list = json_array();
	enum tw_status st = tw_catalogue_settings(
	        tw_api_catalogue(r), tw_api_project(r), add_invalid, list, err);

	if (st == TW_OK)
		return tw_req_reply_json(r, 200, json_pack("{s:o}", "settings", list), err);
	json_decref(list);
	return st;
}

const struct tw_route tw_routes_setting[] = {
        TW_ROUTE("GET", "/api/v1/settings/invalid", TW_NEED_READ,
                "Stored settings that are invalid, so that the defaults apply", .end = get_invalid),
        {0},
};
