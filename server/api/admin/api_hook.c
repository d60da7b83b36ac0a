/*
 * api_hook.c - webhooks of a project, their tests and their log of deliveries.
 */
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/catalogue/catalogue_row.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/derive/jobs_hook.h"

enum { LOG_DEFAULT = 50, LOG_MAX = 100 };

/* --- as JSON --- */

static json_t *events_json(unsigned events)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < TW_HOOK_EVENTS; i++)
		if (events & TW_HOOK_CHOICES & 1U << i)
			(void)json_array_append_new(list, json_string(tw_hook_event_names[i]));
	return list;
}

/* Does not contain the secret. */
static json_t *hook_json(const struct tw_req *r, const struct tw_webhook *h)
{
	char secret[TW_SECRET_PLAIN_MAX + 1];
	const bool lost = tw_secret_decrypt(tw_api_of(r)->secret_key, tw_api_project(r), h->secret,
	                          secret, NULL) != TW_OK;
	json_t *j;

	explicit_bzero(secret, sizeof secret);
	j = tw_row_json(&tw_hook_fields, h);
	return tw_json_complete(
	        j, json_object_set_new(j, "events", events_json(h->events)) |
	                   json_object_set_new(j, "secret_lost", json_boolean(lost)));
}

/* A new secret, in plain text and encrypted; the caller wipes it. */
static enum tw_status new_encrypted(struct tw_req *r, char plain[TW_SECRET_BYTES],
        char encrypted[TW_SECRET_TEXT_BYTES], struct tw_err *err)
{
	tw_secret_new("twh_", plain);
	return tw_secret_encrypt(
	        tw_api_of(r)->secret_key, tw_api_project(r), plain, encrypted, err);
}

static enum tw_status list(struct tw_req *r, struct tw_err *err)
{
	const struct tw_config *c = tw_api_of(r)->config;
	struct tw_webhook *rows = NULL;
	json_t *all;
	size_t n = 0;
	enum tw_status st = tw_catalogue_hooks(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	all = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, hook_json(r, &rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:i, s:s, s:b}", "webhooks", all, "max_webhooks",
	                (int)TW_HOOKS_MAX, "public_url", c->public_url, "mail",
	                *c->smtp_url != '\0'),
	        err);
}

static enum tw_status find(struct tw_req *r, struct tw_webhook *ret, struct tw_err *err)
{
	return tw_catalogue_hook_get(tw_api_catalogue(r), tw_api_project(r), tw_req_path(r, "hook"),
	        tw_req_arena(r), ret, err);
}

/* The current hook; secret NULL: not included. */
static enum tw_status reply(
        struct tw_req *r, int http, const char *id, const char *secret, struct tw_err *err)
{
	struct tw_webhook h;
	json_t *j;
	enum tw_status st = tw_catalogue_hook_get(
	        tw_api_catalogue(r), tw_api_project(r), id, tw_req_arena(r), &h, err);

	if (st != TW_OK)
		return st;
	j = hook_json(r, &h);
	if (secret)
		j = tw_json_complete(j, json_object_set_new(j, "secret", json_string(secret)));
	return tw_req_reply_json(r, http, j, err);
}

static enum tw_status get_one(struct tw_req *r, struct tw_err *err)
{
	return reply(r, 200, tw_req_path(r, "hook"), NULL, err);
}

/* --- the request --- */

static const struct tw_member members[] = {
        TW_MEMBER(TW_MEMBER_TEXT, struct tw_webhook, name, .max = TW_HOOK_NAME_BYTES),
        TW_MEMBER(TW_MEMBER_TEXT, struct tw_webhook, url, .max = TW_HOOK_URL_BYTES),
        TW_MEMBER(TW_MEMBER_ENUM, struct tw_webhook, kind, .enum_names = tw_hook_kind_names),
        {.name = "events", .kind = TW_MEMBER_OTHER},
        {.name = "paused", .kind = TW_MEMBER_OTHER},
        {.name = "new_secret", .kind = TW_MEMBER_OTHER},
        {0},
};

/* Of a change. */
struct flags {
	bool paused, new_secret;
};

static const struct tw_member flag_members[] = {
        TW_MEMBER(TW_MEMBER_FLAG, struct flags, paused),
        TW_MEMBER(TW_MEMBER_FLAG, struct flags, new_secret),
        {0},
};

static enum tw_status read_event(const json_t *one, unsigned *io, struct tw_err *err)
{
	const char *word = json_string_value(one);

	for (unsigned i = 0; word && i < TW_HOOK_EVENTS; i++)
		if ((TW_HOOK_CHOICES & 1U << i) && strcmp(word, tw_hook_event_names[i]) == 0) {
			*io |= 1U << i;
			return TW_OK;
		}
	return tw_fail(err, TW_BAD_REQUEST,
	        "unknown event %.40s; the events are regression.found, regression.returned, "
	        "regression.fixed, regression.status, anr.new, anr.returned, alert.found, "
	        "alert.returned, alert.fixed and digest",
	        word ? word : "of that kind");
}

static enum tw_status read_events(const json_t *body, unsigned *io, struct tw_err *err)
{
	const json_t *list = json_object_get(body, "events");
	const json_t *one;
	size_t i;
	enum tw_status st = TW_OK;

	if (!list)
		return TW_OK;
	if (!json_is_array(list) || json_array_size(list) == 0 ||
	        json_array_size(list) >= TW_HOOK_EVENTS)
		return tw_fail(err, TW_BAD_REQUEST,
		        "events must be a list of at least one event, each once");
	*io = 0;
	json_array_foreach(list, i, one)
	{
		if (st == TW_OK)
			st = read_event(one, io, err);
	}
	return st;
}

static enum tw_status read_hook(const json_t *body, struct tw_webhook *io, struct tw_err *err)
{
	enum tw_status st =
	        tw_members_only(body, members, 0, "the only fields of a webhook are ", "", err);

	if (st == TW_OK)
		st = tw_members_read(body, members, io, err);
	if (st == TW_OK)
		st = tw_hook_url(io->url, err);
	return st == TW_OK ? read_events(body, &io->events, err) : st;
}

/* A URL that was stored while the server allowed private addresses may remain. */
static enum tw_status refuse_private(
        struct tw_req *r, const char *url, const char *was, struct tw_err *err)
{
	struct tw_proxies allowed;
	enum tw_status st = tw_proxies_parse(tw_api_of(r)->config->webhook_private, &allowed, err);

	return st == TW_OK && strcmp(url, was) != 0 ? tw_hook_url_public(url, &allowed, err) : st;
}

static enum tw_status make(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES], encrypted[TW_SECRET_TEXT_BYTES];
	char id[TW_ID_BYTES];
	struct tw_webhook h = {.name = "",
	        .url = "",
	        .secret = encrypted,
	        .author = tw_api_author(r),
	        .events = TW_HOOK_CHOICES};
	enum tw_status st = read_hook(body, &h, err);

	if (st == TW_OK)
		st = refuse_private(r, h.url, "", err);
	if (st == TW_OK)
		st = new_encrypted(r, secret, encrypted, err);
	if (st == TW_OK)
		st = tw_catalogue_hook_add(tw_api_catalogue(r), tw_api_project(r), &h, id, err);
	return st == TW_OK ? reply(r, 201, id, secret, err) : st;
}

static void set_paused(struct tw_webhook *h, bool paused)
{
	if (paused == (h->paused_ms != 0))
		return;
	h->paused_ms = paused ? tw_unix_ms() : 0;
	h->paused_why = "";
}

static enum tw_status change(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	char secret[TW_SECRET_BYTES], encrypted[TW_SECRET_TEXT_BYTES];
	struct tw_webhook h;
	const char *was;
	struct flags flags = {false, false};
	enum tw_status st = find(r, &h, err);

	if (st != TW_OK)
		return st;
	was = h.url;
	flags.paused = h.paused_ms != 0;
	st = read_hook(body, &h, err);
	if (st == TW_OK)
		st = refuse_private(r, h.url, was, err);
	if (st == TW_OK)
		st = tw_members_read(body, flag_members, &flags, err);
	if (st == TW_OK && flags.new_secret)
		st = new_encrypted(r, secret, encrypted, err);
	if (st != TW_OK)
		return st;
	if (flags.new_secret)
		h.secret = encrypted;
	set_paused(&h, flags.paused);
	st = tw_catalogue_hook_change(tw_api_catalogue(r), tw_api_project(r), &h, err);
	if (st != TW_OK)
		return st;
	tw_hook_runner_wake(tw_api_of(r)->hooks);
	return reply(r, 200, h.id, flags.new_secret ? secret : NULL, err);
}

static enum tw_status drop(struct tw_req *r, struct tw_err *err)
{
	enum tw_status st = tw_catalogue_hook_delete(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_path(r, "hook"), err);

	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

/* --- deliveries --- */

static enum tw_status test(struct tw_req *r, struct tw_err *err)
{
	json_t *facts = json_pack("{s:s}", "by", tw_api_author(r));
	char *text = tw_json_dumps(facts, JSON_COMPACT);
	int64_t id = 0;
	enum tw_status st = text ? tw_catalogue_hook_test(tw_api_catalogue(r), tw_api_project(r),
	                                   tw_req_path(r, "hook"), text, &id, err)
	                         : tw_oom(err);

	free(text);
	json_decref(facts);
	if (st != TW_OK)
		return st;
	tw_hook_runner_wake(tw_api_of(r)->hooks);
	return tw_req_reply_json(r, 202, json_pack("{s:I}", "delivery", (json_int_t)id), err);
}

static json_t *logged_json(const struct tw_logged *l)
{
	const bool waits = l->state == TW_OUTBOX_WAITS;

	return json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:o}", "id",
	        (json_int_t)l->id, "event_id", l->event_id, "event", tw_hook_event_names[l->event],
	        "state", tw_outbox_names[l->state], "created_ms", (json_int_t)l->created_ms,
	        "next_ms", (json_int_t)(waits ? l->due_ms : 0), "attempts", (json_int_t)l->attempts,
	        "body", l->body, "body_length", (json_int_t)l->length, "log",
	        tw_rows_json(&tw_try_fields, l->log, l->n_log, sizeof *l->log));
}

/* A hook of the project, or its digest mail. */
static enum tw_status find_target(struct tw_req *r, const char **ret, struct tw_err *err)
{
	struct tw_webhook h;

	*ret = tw_req_path(r, "hook");
	return strcmp(*ret, TW_HOOK_MAIL) == 0 ? TW_OK : find(r, &h, err);
}

static const struct tw_param deliveries_params[] = {
        TW_PARAM_OPTIONAL_NUMBER("cursor", 0, INT64_MAX, "`next_cursor` of the previous page."),
        TW_PARAM_NUMBER("limit", LOG_DEFAULT, 1, LOG_MAX, ""),
        {0},
};

static enum tw_status deliveries(struct tw_req *r, struct tw_err *err)
{
	struct tw_logged *rows = NULL;
	const char *hook;
	json_t *all;
	const int64_t limit = tw_req_number(r, "limit");
	size_t n = 0;
	enum tw_status st = find_target(r, &hook, err);

	if (st == TW_OK)
		st = tw_catalogue_deliveries(tw_api_catalogue(r), tw_api_project(r), hook,
		        tw_req_number_or(r, "cursor", 0), (uint32_t)limit, tw_req_arena(r), &rows,
		        &n, err);
	if (st != TW_OK)
		return st;
	all = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, logged_json(&rows[i]));
	return tw_req_reply_json(r, 200,
	        json_pack("{s:o, s:o}", "deliveries", all, "next_cursor",
	                n == (size_t)limit ? json_integer((json_int_t)rows[n - 1].id)
	                                   : json_null()),
	        err);
}

static enum tw_status find_delivery(
        struct tw_req *r, const char **ret_hook, uint64_t *ret_id, struct tw_err *err)
{
	enum tw_status st = find_target(r, ret_hook, err);

	if (st == TW_OK && !tw_str_u64(tw_str_of(tw_req_path(r, "delivery")), INT64_MAX, ret_id))
		st = tw_fail(err, TW_NOT_FOUND, "this webhook has no such delivery");
	return st;
}

static enum tw_status delivery(struct tw_req *r, struct tw_err *err)
{
	struct tw_logged row;
	const char *hook;
	uint64_t id = 0;
	enum tw_status st = find_delivery(r, &hook, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_logged(tw_api_catalogue(r), tw_api_project(r), hook, (int64_t)id,
		        tw_req_arena(r), &row, err);
	return st == TW_OK ? tw_req_reply_json(r, 200, logged_json(&row), err) : st;
}

static enum tw_status redeliver(struct tw_req *r, struct tw_err *err)
{
	const char *hook;
	uint64_t id = 0;
	enum tw_status st = find_delivery(r, &hook, &id, err);

	if (st == TW_OK)
		st = tw_catalogue_redeliver(
		        tw_api_catalogue(r), tw_api_project(r), hook, (int64_t)id, err);
	if (st != TW_OK)
		return st;
	tw_hook_runner_wake(tw_api_of(r)->hooks);
	return tw_req_reply_json(r, 202, json_pack("{s:I}", "delivery", (json_int_t)id), err);
}

const struct tw_route tw_routes_hook[] = {
        TW_ROUTE("GET", "/api/v1/webhooks", TW_NEED_ADMIN, "The project's webhooks", .end = list),
        TW_ROUTE("POST", "/api/v1/webhooks", TW_NEED_ADMIN,
                "Creates a webhook; its secret is shown only here", .json = make),
        TW_ROUTE("GET", "/api/v1/webhooks/{hook}", TW_NEED_ADMIN, "One webhook", .end = get_one),
        TW_ROUTE("PATCH", "/api/v1/webhooks/{hook}", TW_NEED_ADMIN,
                "Changes, pauses or resumes a webhook, or replaces its secret", .json = change),
        TW_ROUTE("DELETE", "/api/v1/webhooks/{hook}", TW_NEED_ADMIN,
                "Removes a webhook and its pending events", .end = drop),
        TW_ROUTE("POST", "/api/v1/webhooks/{hook}/test", TW_NEED_ADMIN,
                "Sends a test event to a webhook", .end = test),
        TW_ROUTE("GET", "/api/v1/webhooks/{hook}/deliveries", TW_NEED_ADMIN,
                "Deliveries to a webhook with their attempts",
                .params = TW_PARAMS(deliveries_params), .end = deliveries),
        TW_ROUTE("GET", "/api/v1/webhooks/{hook}/deliveries/{delivery}", TW_NEED_ADMIN,
                "One delivery with its complete body", .end = delivery),
        TW_ROUTE("POST", "/api/v1/webhooks/{hook}/deliveries/{delivery}", TW_NEED_ADMIN,
                "Sends a delivery again, with the same event id", .end = redeliver),
        {0},
};
