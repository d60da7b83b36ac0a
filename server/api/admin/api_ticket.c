/*
 * api_ticket.c - the project's issue tracker, and creation of issues by the tracker's API.
 */
#include <string.h>

#include "server/api/api.h"
#include "server/api/api_shared.h"
#include "server/base/secret.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/catalogue_setting.h"
#include "server/catalogue/notify/catalogue_ticket.h"
#include "server/notify/ticket.h"

enum {
	TITLE_MOST = 250,
	BODY_MOST = 60000,
	JIRA_BODY_MOST = 32000, /* Jira refuses more than 32,767 characters */
	ORIGIN_BYTES = 300
};

/* --- the tracker --- */

/* "": none. */
static enum tw_status encrypted_token(struct tw_req *r, const char **ret, struct tw_err *err)
{
	int64_t changed_ms;
	enum tw_status st = tw_catalogue_setting_get(tw_api_catalogue(r), tw_api_project(r),
	        TW_SETTING_TRACKER_TOKEN, tw_req_arena(r), ret, &changed_ms, err);

	if (st == TW_OK && !*ret)
		*ret = "";
	return st;
}

static bool can_read(struct tw_req *r, const char *encrypted)
{
	char token[TW_SECRET_PLAIN_MAX + 1];
	const bool can = tw_secret_decrypt(tw_api_of(r)->secret_key, tw_api_project(r), encrypted,
	                         token, NULL) == TW_OK;

	explicit_bzero(token, sizeof token);
	return can;
}

/* Does not contain the token. */
static enum tw_status get_tracker(struct tw_req *r, struct tw_err *err)
{
	const char *encrypted = "";
	json_t *doc;
	enum tw_status st = tw_api_tracker(r, &doc, err);

	if (st != TW_OK)
		return st;
	st = encrypted_token(r, &encrypted, err);
	if (st != TW_OK) {
		json_decref(doc);
		return st;
	}
	(void)json_object_set_new(doc, "token_set", json_boolean(*encrypted));
	(void)json_object_set_new(
	        doc, "token_lost", json_boolean(*encrypted && !can_read(r, encrypted)));
	return tw_req_reply_json(r, 200, doc, err);
}

/* A stored token is sent only to the server for which it was entered: an admin who changes the
 * address enters the token again. */
static enum tw_status check_origin(
        struct tw_req *r, const json_t *doc, const char *encrypted, struct tw_err *err)
{
	char was[ORIGIN_BYTES], is[ORIGIN_BYTES];
	json_t *before;
	enum tw_status st = tw_api_tracker(r, &before, err);

	if (st != TW_OK)
		return st;
	tw_hook_host(tw_json_text(before, "api"), was, sizeof was);
	tw_hook_host(tw_json_text(doc, "api"), is, sizeof is);
	json_decref(before);
	if (*encrypted && *is && strcmp(was, is) != 0)
		return tw_fail(
		        err, TW_BAD_REQUEST, "api is another server: enter its token as well");
	return TW_OK;
}

static bool is_token(const char *text)
{
	return strlen(text) <= TW_SECRET_PLAIN_MAX && tw_str_is_graphic(tw_str_of(text));
}

static enum tw_status keep_token(struct tw_req *r, const char *token, struct tw_err *err)
{
	char encrypted[TW_SECRET_TEXT_BYTES] = "";
	enum tw_status st = TW_OK;

	if (*token)
		st = tw_secret_encrypt(
		        tw_api_of(r)->secret_key, tw_api_project(r), token, encrypted, err);
	return st == TW_OK ? tw_catalogue_setting_set(tw_api_catalogue(r), tw_api_project(r),
	                             TW_SETTING_TRACKER_TOKEN, encrypted, err)
	                   : st;
}

/* The settings without members that exist only in responses. */
static json_t *without_token(const json_t *body)
{
	json_t *doc = json_copy((json_t *)(uintptr_t)body);

	(void)json_object_del(doc, "token");
	(void)json_object_del(doc, "token_set");
	(void)json_object_del(doc, "token_lost");
	return doc;
}

static enum tw_status refuse_private(struct tw_req *r, const char *url, struct tw_err *err)
{
	struct tw_proxies allowed;
	enum tw_status st = tw_proxies_parse(tw_api_of(r)->config->webhook_private, &allowed, err);

	return st == TW_OK ? tw_hook_url_public(url, &allowed, err) : st;
}

static enum tw_status check(struct tw_req *r, const json_t *doc, const json_t *token,
        const char *encrypted, struct tw_err *err)
{
	enum tw_status st = tw_tracker_check(doc, err);

	if (st == TW_OK && token && !json_is_string(token))
		st = tw_fail(err, TW_BAD_REQUEST, "token must be a text");
	if (st == TW_OK && token && !is_token(json_string_value(token)))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "token must be at most %d characters without spaces", TW_SECRET_PLAIN_MAX);
	if (st == TW_OK && !token)
		st = check_origin(r, doc, encrypted, err);
	if (st == TW_OK && tw_tracker_has_api(doc))
		st = refuse_private(r, tw_json_text(doc, "api"), err);
	return st;
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	const json_t *token = json_object_get(body, "token");
	const char *encrypted = "";
	json_t *doc = without_token(body);
	enum tw_status st = doc ? encrypted_token(r, &encrypted, err) : tw_oom(err);

	if (st == TW_OK)
		st = check(r, doc, token, encrypted, err);
	/* a stored token must never be sent to another address, even after a crash */
	if (st == TW_OK && token && *encrypted)
		st = keep_token(r, "", err);
	if (st == TW_OK)
		st = tw_api_store_setting(r, TW_SETTING_TRACKER, doc, err);
	if (st == TW_OK && token && json_string_length(token))
		st = keep_token(r, json_string_value(token), err);
	json_decref(doc);
	return st == TW_OK ? get_tracker(r, err) : st;
}

/* --- tickets --- */

static enum tw_status reply(struct tw_req *r, int http, const char *tag, struct tw_err *err)
{
	struct tw_ticket t;
	enum tw_status st = tw_catalogue_ticket_get(
	        tw_api_catalogue(r), tw_api_project(r), tag, tw_req_arena(r), &t, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, http,
	        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "state",
	                tw_ticket_state_names[t.state], "for", t.tracker, "key", t.key, "url",
	                t.url, "error", t.error, "assignee", t.assignee, "author", t.author,
	                "attempts", (json_int_t)t.attempts, "next_ms", (json_int_t)t.due_ms,
	                "created_ms", (json_int_t)t.created_ms, "updated_ms",
	                (json_int_t)t.changed_ms),
	        err);
}

static enum tw_status regression_tag(
        struct tw_req *r, char ret[TW_TICKET_TAG_BYTES], struct tw_err *err)
{
	struct tw_regression row;
	enum tw_status st = tw_catalogue_regression_get(tw_api_catalogue(r), tw_api_project(r),
	        tw_req_path(r, "regression"), tw_req_arena(r), &row, err);

	return st == TW_OK ? tw_catalogue_ticket_regression_tag(tw_api_catalogue(r),
	                             tw_api_project(r), &row, tw_req_arena(r), ret, err)
	                   : st;
}

static enum tw_status get_of_regression(struct tw_req *r, struct tw_err *err)
{
	char tag[TW_TICKET_TAG_BYTES];
	enum tw_status st = regression_tag(r, tag, err);

	return st == TW_OK ? reply(r, 200, tag, err) : st;
}

static enum tw_status get_of_group(struct tw_req *r, struct tw_err *err)
{
	char tag[TW_TICKET_TAG_BYTES];

	tw_ticket_tag(tw_api_project(r), TW_TICKET_ANR, tw_req_path(r, "key"), tag);
	return reply(r, 200, tag, err);
}

/* --- creating --- */

struct wanted {
	enum tw_ticket_kind kind;
	const char *subject, *tag;
	const json_t *tracker;
};

/* Truncates at a character boundary. */
static void shorten(struct tw_buf *io, size_t most)
{
	if (io->len <= most)
		return;
	io->len = most;
	while (io->len && (io->data[io->len] & 0xC0) == 0x80)
		io->len--;
}

static void write_texts(
        const struct tw_issue *i, const char *tag, struct tw_buf *title, struct tw_buf *body)
{
	tw_issue_title(i, title);
	shorten(title, TITLE_MOST);
	(void)tw_buf_add_u8(title, 0);
	tw_issue_body(i, body);
	shorten(body, i->tracker == TW_JIRA ? JIRA_BODY_MOST : BODY_MOST);
	tw_buf_printf(body, "\n\nCreated by tracewell: %s\n", tag);
	(void)tw_buf_add_u8(body, 0);
}

static enum tw_status queue(
        struct tw_req *r, const struct tw_issue *i, void *arg, struct tw_err *err)
{
	const struct wanted *w = arg;
	struct tw_buf title, body;
	enum tw_status st;

	tw_buf_init(&title, TW_ISSUE_BYTES);
	tw_buf_init(&body, (size_t)2 * TW_ISSUE_BYTES);
	write_texts(i, w->tag, &title, &body);
	if (tw_buf_status(&title) != TW_OK || tw_buf_status(&body) != TW_OK)
		st = tw_fail(err, TW_TOO_LARGE, "the issue is too large");
	else
		st = tw_catalogue_ticket_add(tw_api_catalogue(r),
		        &(struct tw_ticket){.project_id = tw_api_project(r),
		                .tag = w->tag,
		                .kind = w->kind,
		                .subject_id = w->subject,
		                .tracker = tw_tracker_names[i->tracker],
		                .title = (const char *)title.data,
		                .body = (const char *)body.data,
		                .assignee = tw_tracker_assignee(w->tracker, i->blame),
		                .author = tw_api_author(r)},
		        err);
	tw_buf_done(&body);
	tw_buf_done(&title);
	return st;
}

/* *ret_exists: a ticket exists that did not fail. */
static enum tw_status find(struct tw_req *r, const char *tag, bool *ret_exists, struct tw_err *err)
{
	struct tw_ticket t;
	enum tw_status st = tw_catalogue_ticket_get(
	        tw_api_catalogue(r), tw_api_project(r), tag, tw_req_arena(r), &t, err);

	*ret_exists = st == TW_OK && t.state != TW_TICKET_FAILED;
	return st == TW_NOT_FOUND ? TW_OK : st;
}

static enum tw_status ready_tracker(struct tw_req *r, json_t **ret, struct tw_err *err)
{
	const char *encrypted = "";
	enum tw_status st = tw_api_tracker(r, ret, err);

	if (st == TW_OK)
		st = encrypted_token(r, &encrypted, err);
	if (st == TW_OK && (!tw_tracker_has_api(*ret) || !*encrypted))
		st = tw_fail(err, TW_CONFLICT,
		        "the project's tracker has no API and token: an administrator sets them");
	return st;
}

static enum tw_status create(struct tw_req *r, enum tw_ticket_kind kind, const char *subject,
        const char *tag, struct tw_err *err)
{
	json_t *tracker = NULL;
	struct wanted w = {kind, subject, tag, NULL};
	bool exists;
	enum tw_status st = find(r, tag, &exists, err);

	if (st == TW_OK && !exists) {
		st = ready_tracker(r, &tracker, err);
		w.tracker = tracker;
		if (st == TW_OK)
			st = kind == TW_TICKET_REGRESSION
			             ? tw_api_issue_regression(
			                       r, tw_tracker_of(tracker), queue, &w, err)
			             : tw_api_issue_group(
			                       r, tw_tracker_of(tracker), queue, &w, err);
		json_decref(tracker);
	}
	return st == TW_OK ? reply(r, 202, tag, err) : st;
}

static enum tw_status post_of_regression(struct tw_req *r, struct tw_err *err)
{
	char tag[TW_TICKET_TAG_BYTES];
	enum tw_status st = regression_tag(r, tag, err);

	return st == TW_OK ? create(r, TW_TICKET_REGRESSION, tw_req_path(r, "regression"), tag, err)
	                   : st;
}

static enum tw_status post_of_group(struct tw_req *r, struct tw_err *err)
{
	const char *key = tw_req_path(r, "key");
	char tag[TW_TICKET_TAG_BYTES];

	tw_ticket_tag(tw_api_project(r), TW_TICKET_ANR, key, tag);
	return create(r, TW_TICKET_ANR, key, tag, err);
}

const struct tw_route tw_routes_ticket[] = {
        TW_ROUTE("GET", "/api/v1/regressions/{regression}/ticket", TW_NEED_READ,
                "The issue that was created for a regression", .end = get_of_regression),
        TW_ROUTE("POST", "/api/v1/regressions/{regression}/ticket", TW_NEED_WRITE,
                "Creates an issue for a regression in the project's tracker", .by_child = true,
                .end = post_of_regression),
        TW_ROUTE("GET", "/api/v1/anr/groups/{key}/ticket", TW_NEED_READ,
                "The issue that was created for an ANR group", .end = get_of_group),
        TW_ROUTE("POST", "/api/v1/anr/groups/{key}/ticket", TW_NEED_WRITE,
                "Creates an issue for a group of ANRs in the project's tracker", .by_child = true,
                .end = post_of_group),
        TW_ROUTE("GET", "/api/v1/tracker", TW_NEED_READ, "The project's issue tracker",
                .end = get_tracker),
        TW_ROUTE("PUT", "/api/v1/tracker", TW_NEED_ADMIN, "Sets the project's issue tracker",
                .json = store),
        {0},
};
