/* api_setting.c - stored settings that cannot be used; their own routes return the defaults. */
#include "server/api/api.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/derive/settings.h"

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
