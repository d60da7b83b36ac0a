/* The labels by which a project's rollups are grouped, in addition to version and scenario. */
#include <string.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/derive/rollup/rollup_writer.h"

enum { LABEL_BYTES = 64 };

static enum tw_status reply_labels(struct tw_req *r, struct tw_err *err)
{
	const char *labels[TW_ROLLUP_LABELS_MAX];
	json_t *list;
	size_t n = 0;
	enum tw_status st = tw_rollup_labels(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), labels, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(labels[i]));
	return tw_req_reply_json(r, 200, json_pack("{so}", "labels", list), err);
}

enum tw_status tw_fleet_get_labels(struct tw_req *r, struct tw_err *err)
{
	return reply_labels(r, err);
}

static enum tw_status check_label(const json_t *label, struct tw_err *err)
{
	const char *text = json_string_value(label);

	if (!text || !*text || strlen(text) > LABEL_BYTES || strchr(text, '='))
		return tw_fail(err, TW_BAD_REQUEST,
		        "the name of a label must have 1 to %d bytes and no =", LABEL_BYTES);
	return tw_check_text("a label", text, err);
}

static enum tw_status check_labels(const json_t *labels, struct tw_err *err)
{
	enum tw_status st = TW_OK;

	if (!json_is_array(labels) || json_array_size(labels) > TW_ROLLUP_LABELS_MAX)
		return tw_fail(err, TW_BAD_REQUEST,
		        "labels must be a list of at most %d names, as in "
		        "{\"labels\":[\"device\"]}",
		        TW_ROLLUP_LABELS_MAX);
	for (size_t i = 0; st == TW_OK && i < json_array_size(labels); i++) {
		st = check_label(json_array_get(labels, i), err);
		for (size_t k = 0; st == TW_OK && k < i; k++)
			if (json_equal(json_array_get(labels, i), json_array_get(labels, k)))
				st = tw_fail(err, TW_BAD_REQUEST, "a label is listed twice");
	}
	return st;
}

enum tw_status tw_fleet_set_labels(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *labels = json_object_get(body, "labels");
	json_t *value;
	enum tw_status st = check_labels(labels, err);

	if (st != TW_OK)
		return st;
	value = json_pack("{sO}", "labels", labels);
	st = tw_api_keep_setting(r, TW_SETTING_ROLLUPS, value, err);
	json_decref(value);
	return st == TW_OK ? reply_labels(r, err) : st;
}
