/*
 * api_fleet_by.c - the dimension by which a response is grouped: a column, or one of the project's
 * labels.
 */
#include <string.h>

#include "server/api/api.h"
#include "server/api/fleet/api_fleet.h"
#include "server/derive/rollup/rollup_writer.h"

enum { TOP = 20, TOP_MAX = 200 };

static enum tw_status not_counted_by(const char *key, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "traces are not counted by the label %.64s; GET /api/v1/fleet/labels lists the "
	        "labels, PUT changes them",
	        key);
}

static enum tw_status check_key(
        const struct tw_fleet_request *q, const char *key, struct tw_err *err)
{
	const char *labels[TW_ROLLUP_LABELS_MAX];
	size_t n = 0;
	enum tw_status st = tw_rollup_labels(
	        tw_api_catalogue(q->req), tw_api_project(q->req), q->arena, labels, &n, err);

	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(labels[i], key) == 0)
			return TW_OK;
	return st == TW_OK ? not_counted_by(key, err) : st;
}

/* A filter by a label allows grouping by the same label only. */
static enum tw_status check_filter(
        const struct tw_fleet_request *q, const char *key, struct tw_err *err)
{
	const struct tw_rollup_filter *f = &q->filter;
	const size_t len = strlen(key);

	if (f->device_class[0] || f->os[0])
		return tw_fail(err, TW_BAD_REQUEST, TW_FLEET_LABEL_CONFLICT);
	if (f->label[0] && (strncmp(f->label, key, len) != 0 || f->label[len] != '='))
		return tw_fail(err, TW_BAD_REQUEST,
		        "traces are counted by one label at a time: omit label= or use by=label: "
		        "with the same key");
	return TW_OK;
}

static enum tw_status check_any(const char *key, struct tw_err *err)
{
	return key[0] && !strchr(key, '=')
	               ? TW_OK
	               : tw_fail(err, TW_BAD_REQUEST, "by=label: is followed by a label's key");
}

static enum tw_status read_key(struct tw_fleet_request *q, const char *key, struct tw_err *err)
{
	const bool any = tw_fleet_store_of(q)->engine->any_label;
	enum tw_status st = any ? check_any(key, err) : check_key(q, key, err);

	if (st == TW_OK && !any)
		st = check_filter(q, key, err);
	if (st != TW_OK)
		return st;
	q->label_key = key;
	if (!q->filter.label[0])
		q->filter.label = key;
	return TW_OK;
}

const struct tw_param tw_fleet_by_params[] = {
        TW_PARAM_TEXT("by", 0,
                "The dimension of the groups: all, day, version, build, scenario, class, os, app, "
                "or label:KEY for a label by which traces are counted (GET /api/v1/fleet/labels). "
                "label:KEY cannot be combined with class, os, or label of another key. The default "
                "is version, or day for one method."),
        TW_PARAM_NUMBER("top", TOP, 1, TOP_MAX,
                "With by=label:KEY: number of values with a separate group, by traces. The others "
                "form one group with the key \"\" and their number as `values`; a single other "
                "value has a separate group. Traces without the label are the group with the key "
                "\"\" and `values` 0."),
        {0},
};

enum tw_status tw_fleet_read_by(
        struct tw_fleet_request *q, const char *dflt, enum tw_fleet_by *ret, struct tw_err *err)
{
	static const char prefix[] = "label:";
	const char *text = tw_req_text(q->req, "by");
	unsigned which = TW_FLEET_ALL;
	enum tw_status st;

	*ret = TW_FLEET_LABEL;
	if (text && strncmp(text, prefix, sizeof prefix - 1) == 0)
		return read_key(q, text + sizeof prefix - 1, err);
	st = tw_enum_of_name("by", text ? text : dflt, tw_fleet_by_names, &which, err);
	*ret = (enum tw_fleet_by)which;
	return st;
}

/* Traces that arrived before the label was configured are in none of its cells. */
static enum tw_status count_others(struct tw_fleet_request *q, struct tw_err *err)
{
	struct tw_fleet_store *store = tw_fleet_store_of(q);
	struct tw_fleet_query all = q->query;
	const uint64_t counted = tw_fleet_traces(q);
	uint64_t n = 0;
	enum tw_status st;

	if (strchr(q->filter.label, '=')) /* with a value, no other values exist */
		return TW_OK;
	all.filter.label = "";
	st = store->engine->count(store, &all, &n, err);
	q->not_counted = n > counted ? n - counted : 0;
	return st;
}

enum tw_status tw_fleet_sum_label_values(struct tw_fleet_request *q, struct tw_err *err)
{
	enum tw_status st;

	if (!q->label_key[0])
		return TW_OK;
	st = count_others(q, err);
	if (st == TW_OK)
		st = tw_fleet_label_values(q->cells, q->n_cells,
		        (size_t)tw_req_number(q->req, "top"), q->arena, &q->values, err);
	return st;
}

void tw_fleet_put_by(struct tw_fleet_request *q, enum tw_fleet_by by)
{
	if (!q->label_key[0]) {
		tw_json_key_text(&q->j, "by", tw_fleet_by_names[by]);
		return;
	}
	tw_json_key_text(&q->j, "by", tw_req_text(q->req, "by"));
	tw_json_key_int(&q->j, "values", (int64_t)q->values.values);
	tw_json_key_int(&q->j, "not_counted", (int64_t)q->not_counted);
}

/* The rest has no key, because any text could be a value. */
void tw_fleet_put_key(struct tw_fleet_request *q, const char *key)
{
	const bool rest = strcmp(key, TW_FLEET_REST) == 0;

	tw_json_key_text(&q->j, "key", rest ? "" : key);
	if (q->label_key[0])
		tw_json_key_int(&q->j, "values", rest ? (int64_t)q->values.rest : key[0] != '\0');
}
