/*
 * api_session.c - signing in by link or read token, and what the page may know of who asks.
 *
 * A link's secret is used once and becomes a session's; a read token is put
 * into the cookie itself, so that revoking it ends the session too.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "app.h"
#include "auth_secret.h"

enum { SESSION_DAYS = 30, MAX_COOKIE = 320 };

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Behind a proxy the page is on https: the cookie then never travels without. */
static void set_cookie(struct tw_req *r, const char *secret, long max_age_s)
{
	const struct tw_config *c = tw_req_app(r)->config;
	const char *proto = tw_req_header(r, "X-Forwarded-Proto");
	bool secure = strncmp(c->public_url, "https:", 6) == 0 ||
	              (c->behind_proxy && proto && strcmp(proto, "https") == 0);
	char text[MAX_COOKIE];

	(void)snprintf(text, sizeof text, "%s=%s; Path=/; Max-Age=%ld; HttpOnly; SameSite=Strict%s",
	        TW_SESSION_COOKIE, secret, max_age_s, secure ? "; Secure" : "");
	tw_req_set_header(r, "Set-Cookie", text);
}

static enum tw_status sign_in_by_link(struct tw_req *r, const char *token, struct tw_err *err)
{
	const int64_t life_ms = (int64_t)SESSION_DAYS * 86400 * 1000;
	char secret[TW_SECRET_BYTES];
	uint8_t link[32];
	uint8_t session[32];
	enum tw_status st = tw_secret_new("tws_", secret, err);

	if (st != TW_OK)
		return st;
	tw_secret_hash(token, link);
	tw_secret_hash(secret, session);
	st = tw_catalogue_link_use(
	        tw_req_app(r)->catalogue, link, session, now_ms() + life_ms, err);
	if (st == TW_OK)
		set_cookie(r, secret, SESSION_DAYS * 86400L);
	return st;
}

static enum tw_status sign_in_by_token(struct tw_req *r, const char *token, struct tw_err *err)
{
	struct tw_caller caller;
	uint8_t hash[32];
	enum tw_status st;

	tw_secret_hash(token, hash);
	st = tw_catalogue_key_find(tw_req_app(r)->catalogue, hash, &caller, err);
	if (st != TW_OK)
		return st;
	if (caller.scope != TW_SCOPE_READ)
		return tw_fail(err, TW_DENIED, TW_NO_OFFSET, "an ingest key does not sign in");
	set_cookie(r, token, SESSION_DAYS * 86400L);
	return TW_OK;
}

static enum tw_status sign_in(struct tw_req *r, struct tw_err *err)
{
	json_t *body;
	const char *token;
	enum tw_status st = tw_api_json(r, &body, err);

	if (st != TW_OK)
		return st;
	token = json_string_value(json_object_get(body, "token"));
	if (!token || strlen(token) >= 128)
		st = tw_fail(err, TW_BAD_REQUEST, TW_NO_OFFSET, "token must be a text");
	else if (sign_in_by_token(r, token, err) == TW_OK)
		st = TW_OK;
	else if (strncmp(token, "twl_", 4) == 0)
		st = sign_in_by_link(r, token, err);
	else
		st = tw_fail(err, TW_NO_TOKEN, TW_NO_OFFSET,
		        "this token signs nobody in: links are used once, and end after a while");
	json_decref(body);
	return st == TW_OK ? tw_req_reply_empty(r, 204, err) : st;
}

static enum tw_status sign_out(struct tw_req *r, struct tw_err *err)
{
	char secret[128];
	uint8_t hash[32];
	enum tw_status st = TW_OK;

	if (tw_auth_cookie(tw_req_header(r, "Cookie"), TW_SESSION_COOKIE, secret, sizeof secret)) {
		tw_secret_hash(secret, hash);
		st = tw_catalogue_session_end(tw_req_app(r)->catalogue, hash, err);
	}
	if (st != TW_OK && st != TW_NOT_FOUND && st != TW_NO_TOKEN)
		return st;
	set_cookie(r, "", 0);
	return tw_req_reply_empty(r, 204, err);
}

/* The projects this caller may see: an admin all, a token its own. */
static enum tw_status visible_projects(struct tw_req *r, json_t **ret, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	struct tw_project_row *rows;
	json_t *list;
	size_t n;
	enum tw_status st =
	        tw_catalogue_projects(tw_req_app(r)->catalogue, tw_req_arena(r), &rows, &n, err);

	if (st != TW_OK)
		return st;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		if (caller->scope == TW_SCOPE_ADMIN ||
		        (caller->scope != TW_SCOPE_PUBLIC &&
		                strcmp(rows[i].id, caller->project_id) == 0))
			(void)json_array_append_new(list,
			        json_pack("{ss ss sI}", "id", rows[i].id, "name", rows[i].name,
			                "created_ms", (json_int_t)rows[i].created_ms));
	*ret = list;
	return TW_OK;
}

static enum tw_status projects(struct tw_req *r, struct tw_err *err)
{
	json_t *list;
	enum tw_status st = visible_projects(r, &list, err);

	return st == TW_OK ? tw_req_reply_json(r, 200, json_pack("{so}", "projects", list), err)
	                   : st;
}

/* The one the caller's requests are about: {"id","name"} or null. */
static json_t *current_project(json_t *list, const char *id)
{
	json_t *project;
	size_t i;

	json_array_foreach(list, i, project)
	{
		const char *one = json_string_value(json_object_get(project, "id"));

		if (one && strcmp(one, id) == 0)
			return json_incref(project);
	}
	return json_null();
}

static enum tw_status session(struct tw_req *r, struct tw_err *err)
{
	const struct tw_caller *caller = tw_req_caller(r);
	const struct tw_config *c = tw_req_app(r)->config;
	json_t *list;
	enum tw_status st = visible_projects(r, &list, err);

	if (st != TW_OK)
		return st;
	return tw_req_reply_json(r, 200,
	        json_pack("{sb ss so so ss ss ss ss}", "signed_in",
	                caller->scope != TW_SCOPE_PUBLIC, "scope", tw_scope_word(caller->scope),
	                "project", current_project(list, caller->project_id), "projects", list,
	                "version", TW_VERSION, "perfetto_ui", c->perfetto_ui, "speedscope_ui",
	                c->speedscope_ui, "firefox_ui", c->firefox_ui),
	        err);
}

const struct tw_route tw_routes_session[] = {
        {.method = "GET",
                .path = "/api/v1/session",
                .scope = TW_SCOPE_PUBLIC,
                .knows_caller = true,
                .slow = true,
                .end = session,
                .summary = "Who is asking, and about which project"},
        {.method = "POST",
                .path = "/api/v1/session",
                .scope = TW_SCOPE_PUBLIC,
                .slow = true,
                .max_body = tw_api_small_body,
                .begin = tw_api_collect_begin,
                .body = tw_api_collect,
                .end = sign_in,
                .summary = "Signs in by a link's or a read token; sets the cookie"},
        {.method = "DELETE",
                .path = "/api/v1/session",
                .scope = TW_SCOPE_PUBLIC,
                .slow = true,
                .end = sign_out,
                .summary = "Signs out"},
        {.method = "GET",
                .path = "/api/v1/projects",
                .scope = TW_SCOPE_READ,
                .slow = true,
                .end = projects,
                .summary = "Projects the caller may see"},
        {0},
};
