/* A project's retention rules, its use of storage, and the traces to be deleted next. */
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/catalogue/access/catalogue_retention.h"
#include "server/derive/jobs_retention.h"
#include "server/derive/retention.h"

enum { LISTED_MAX = 200, SOON_DAYS = 7, SOON_DAYS_MOST = 3650 };

static json_t *row_json(const struct tw_expiry *e)
{
	static const char *const what[] = {"trace", "upload", "decoded"};

	return json_pack("{ss ss ss ss sI sI so}", "id", e->id, "name", e->name, "deletes",
	        what[tw_expiry_what(e->why)], "reason", tw_expiry_name(e->why), "created_ms",
	        (json_int_t)e->created_ms, "bytes", (json_int_t)e->bytes, "expires_ms",
	        e->due_ms ? json_integer((json_int_t)e->due_ms) : json_null());
}

static bool is_among(const struct tw_expiry *e, const struct tw_expiry *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].why == e->why && strcmp(rows[i].id, e->id) == 0)
			return true;
	return false;
}

struct preview {
	struct tw_use use;
	struct tw_expiry *due, *later; /* later: due by the end of the preview, `due` among them */
	size_t n_due, n_later;
};

static json_t *due_json(const struct preview *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_due; i++)
		(void)json_array_append_new(list, row_json(&t->due[i]));
	return list;
}

static json_t *soon_json(const struct preview *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_later; i++)
		if (!is_among(&t->later[i], t->due, t->n_due))
			(void)json_array_append_new(list, row_json(&t->later[i]));
	return list;
}

static enum tw_status count_expiring(
        struct tw_req *r, const struct tw_retention *rules, struct preview *ret, struct tw_err *err)
{
	struct tw_catalogue *c = tw_api_catalogue(r);
	const char *project_id = tw_api_project(r);
	int64_t now_ms = tw_unix_ms();
	int64_t days = tw_req_number(r, "days");
	enum tw_status st = tw_catalogue_use(c, project_id, &ret->use, err);

	if (st == TW_OK)
		st = tw_retention_due(c, project_id, rules, now_ms, LISTED_MAX, tw_req_arena(r),
		        &ret->due, &ret->n_due, err);
	if (st == TW_OK)
		st = tw_retention_due(c, project_id, rules, now_ms + days * TW_DAY_MS, LISTED_MAX,
		        tw_req_arena(r), &ret->later, &ret->n_later, err);
	return st;
}

static json_t *disk_json(const struct tw_api *api)
{
	struct tw_disk disk;

	if (!tw_retention_disk(api->config, &disk))
		return json_null();
	return json_pack("{sI sI sI}", "max_percent", (json_int_t)api->config->max_disk_percent,
	        "size_bytes", (json_int_t)disk.size_bytes, "used_bytes",
	        (json_int_t)disk.used_bytes);
}

static enum tw_status reply(struct tw_req *r, const struct tw_retention *rules, struct tw_err *err)
{
	struct preview t = {0};
	enum tw_status st = count_expiring(r, rules, &t, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{so s{sI sI sI sI sI} so so so}", "rules", tw_retention_json(rules),
	                "use", "traces", (json_int_t)t.use.traces, "archived",
	                (json_int_t)t.use.archived, "pinned", (json_int_t)t.use.pinned,
	                "upload_bytes", (json_int_t)t.use.upload_bytes, "decoded_bytes",
	                (json_int_t)t.use.decoded_bytes, "expiring_now", due_json(&t),
	                "expiring_soon", soon_json(&t), "disk", disk_json(tw_api_of(r))),
	        err);
}

static enum tw_status get_retention(struct tw_req *r, struct tw_err *err)
{
	struct tw_retention rules;
	enum tw_status st = tw_retention_of(tw_api_catalogue(r), tw_api_project(r), &rules, err);

	return st == TW_OK ? reply(r, &rules, err) : st;
}

static enum tw_status store(struct tw_req *r, const struct tw_retention *rules, struct tw_err *err)
{
	json_t *json = tw_retention_json(rules);
	enum tw_status st = tw_api_store_setting(r, TW_SETTING_RETENTION, json, err);

	json_decref(json);
	return st;
}

/* With dry_run=true the response states the effect of the rules; nothing is changed. */
static enum tw_status put_retention(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_retention rules;
	enum tw_status st = tw_retention_read(body, &rules, err);

	if (st == TW_OK && !tw_req_flag(r, "dry_run"))
		st = store(r, &rules, err);
	return st == TW_OK ? reply(r, &rules, err) : st;
}

static const struct tw_param days_params[] = {
        TW_PARAM_NUMBER(
                "days", SOON_DAYS, 1, SOON_DAYS_MOST, "How far ahead `expiring_soon` looks."),
        {0},
};
static const struct tw_param put_params[] = {
        TW_PARAM_FLAG("dry_run", false, "Only returns the effect of the rules."),
        {0},
};

const struct tw_route tw_routes_retention[] = {
        TW_ROUTE("GET", "/api/v1/retention", TW_NEED_READ,
                "Retention rules, and the storage in use", .params = TW_PARAMS(days_params),
                .end = get_retention),
        TW_ROUTE("PUT", "/api/v1/retention", TW_NEED_ADMIN, "Sets the retention rules",
                .params = TW_PARAMS(put_params, days_params), .json = put_retention),
        {0},
};
