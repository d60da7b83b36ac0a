/*
 * api_digest.c - the digest as it would be sent now, its schedule and its recipients.
 */
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/catalogue/access/catalogue_project.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/derive/jobs_hook.h"
#include "server/notify/digest.h"
#include "server/notify/text.h"

enum { TEXT_BYTES = 512 << 10, MINUTE_MS = 60 * 1000 };

/* The rules point into *ret_doc; release it with json_decref. */
static enum tw_status load_rules(
        struct tw_req *r, json_t **ret_doc, struct tw_digest_rules *ret, struct tw_err *err)
{
	int64_t changed_ms;

	return tw_digest_rules_of(
	        tw_api_catalogue(r), tw_api_project(r), ret_doc, ret, &changed_ms, err);
}

/* --- the digest --- */

static enum tw_status find_project(struct tw_req *r, const char **ret_name, struct tw_err *err)
{
	const char *id = tw_api_project(r);
	struct tw_project_row *rows = NULL;
	size_t n = 0;
	enum tw_status st =
	        tw_catalogue_projects(tw_api_catalogue(r), tw_req_arena(r), &rows, &n, err);

	*ret_name = "";
	for (size_t i = 0; st == TW_OK && i < n; i++)
		if (strcmp(rows[i].id, id) == 0)
			*ret_name = rows[i].name;
	return st;
}

static const struct tw_param days_params[] = {
        TW_PARAM_OPTIONAL_NUMBER("days", 1, 31,
                "Days that it covers. The default is 1, or 7 if digests are weekly."),
        {0},
};

/* The days before now; for today only the events so far. */
static enum tw_status read_period(
        struct tw_req *r, struct tw_digest_period *ret, struct tw_err *err)
{
	struct tw_digest_rules rules = {.every = TW_DIGEST_OFF};
	json_t *doc;
	enum tw_status st = load_rules(r, &doc, &rules, err);

	json_decref(doc);
	ret->until_ms = tw_unix_ms();
	ret->since_ms =
	        ret->until_ms -
	        tw_req_number_or(r, "days", rules.every == TW_DIGEST_WEEKLY ? 7 : 1) * TW_DAY_MS;
	return st;
}

static enum tw_status reply_text(
        struct tw_req *r, const json_t *digest, unsigned form, struct tw_err *err)
{
	static const enum tw_markup markups[] = {
	        [1] = TW_MARKUP_MARKDOWN, TW_MARKUP_HTML, TW_MARKUP_PLAIN};
	static const char *const types[] = {[1] = "text/markdown",
	        "text/plain",
	        "text/plain"}; /* HTML is shown, not rendered */
	struct tw_buf out;
	struct tw_text_links w = {{&out, markups[form]}, tw_req_base(r), tw_api_project(r)};
	enum tw_status st;

	tw_buf_init(&out, TEXT_BYTES);
	tw_text_digest(&w, digest);
	st = tw_buf_status(&out);
	st = st == TW_OK ? tw_req_reply_buf(r, 200, types[form], true, &out, err)
	                 : tw_fail(err, st, "the digest is too large");
	if (st != TW_OK)
		tw_buf_done(&out);
	return st;
}

static const char *const forms[] = {"json", "markdown", "html", "text", NULL};

static const struct tw_param form_params[] = {
        TW_PARAM_ENUM(
                "for", forms, "`html` is returned as text/plain, so that it is not rendered."),
        {0},
};

static enum tw_status get_digest(struct tw_req *r, struct tw_err *err)
{
	const unsigned form = (unsigned)tw_req_enum(r, "for");
	struct tw_digest_of of = {.project_id = tw_api_project(r), .deadline = tw_api_deadline(r)};
	json_t *digest = NULL;
	enum tw_status st = read_period(r, &of.period, err);

	if (st == TW_OK)
		st = find_project(r, &of.project, err);
	if (st == TW_OK)
		st = tw_digest_preview(tw_api_of(r)->fleet, &of, &digest, err);
	if (st != TW_OK)
		return st;
	if (form == 0)
		return tw_req_reply_json(r, 200, digest, err);
	st = reply_text(r, digest, form, err);
	json_decref(digest);
	return st;
}

/* --- sending it now --- */

/* Hooks that receive digests and are not paused. */
static enum tw_status count_hooks(struct tw_req *r, json_int_t *ret, struct tw_err *err)
{
	struct tw_webhook *rows = NULL;
	size_t n = 0;
	enum tw_status st = tw_catalogue_hooks(
	        tw_api_catalogue(r), tw_api_project(r), tw_req_arena(r), &rows, &n, err);

	*ret = 0;
	for (size_t i = 0; st == TW_OK && i < n; i++)
		*ret += !rows[i].paused_ms && (rows[i].events >> TW_HOOK_DIGEST & 1);
	return st;
}

/* The period ends with the current minute, so that a repeated request within it sends only once. */
static enum tw_status send_now(
        struct tw_req *r, const struct tw_digest_rules *to, struct tw_err *err)
{
	struct tw_api *api = tw_api_of(r);
	struct tw_digest_of of = {.project_id = tw_api_project(r), .deadline = tw_api_deadline(r)};
	json_t *digest = NULL, *facts;
	char *text;
	enum tw_status st = read_period(r, &of.period, err);

	of.period.until_ms += MINUTE_MS - of.period.until_ms % MINUTE_MS;
	if (st == TW_OK)
		st = find_project(r, &of.project, err);
	if (st == TW_OK)
		st = tw_digest_preview(api->fleet, &of, &digest, err);
	if (st != TW_OK)
		return st;
	facts = json_pack("{s:o}", "digest", digest);
	text = tw_json_dumps(facts, JSON_COMPACT);
	st = text ? tw_catalogue_digest_notify(api->catalogue, &of, text, to, err) : tw_oom(err);
	free(text);
	json_decref(facts);
	return st;
}

static enum tw_status post_digest(struct tw_req *r, struct tw_err *err)
{
	struct tw_digest_rules to = {.n_mail = 0};
	json_int_t hooks = 0, mails = 0;
	json_t *doc;
	enum tw_status st = load_rules(r, &doc, &to, err);

	if (st == TW_OK && to.webhook)
		st = count_hooks(r, &hooks, err);
	if (!*tw_api_of(r)->config->smtp_url)
		to.n_mail = 0;
	mails = (json_int_t)to.n_mail;
	if (st == TW_OK && hooks + mails == 0)
		st = tw_fail(err, TW_CONFLICT,
		        "no recipients: no active webhook receives digests, and no mail address is "
		        "set");
	if (st == TW_OK)
		st = send_now(r, &to, err);
	json_decref(doc);
	if (st != TW_OK)
		return st;
	tw_hook_runner_wake(tw_api_of(r)->hooks);
	return tw_req_reply_json(
	        r, 202, json_pack("{s:I, s:I}", "webhooks", hooks, "mails", mails), err);
}

/* --- schedule and recipients --- */

static enum tw_status get_settings(struct tw_req *r, struct tw_err *err)
{
	struct tw_digest_rules rules;
	json_t *doc, *answer = NULL;
	enum tw_status st = load_rules(r, &doc, &rules, err);

	if (st == TW_OK)
		answer = tw_digest_rules_json(&rules);
	json_decref(doc);
	return st == TW_OK ? tw_req_reply_json(r, 200, answer, err) : st;
}

static bool has(const struct tw_digest_rules *r, const char *address)
{
	for (size_t i = 0; i < r->n_mail; i++)
		if (strcmp(r->mail[i], address) == 0)
			return true;
	return false;
}

/* Existing addresses may remain if the server can no longer send mail, so that other settings can
 * be changed. */
static enum tw_status refuse_new_addresses(
        struct tw_req *r, const struct tw_digest_rules *rules, struct tw_err *err)
{
	struct tw_digest_rules old = {.n_mail = 0};
	json_t *doc;
	enum tw_status st = load_rules(r, &doc, &old, err);

	for (size_t i = 0; st == TW_OK && i < rules->n_mail; i++)
		if (!has(&old, rules->mail[i]))
			st = tw_fail(err, TW_CONFLICT,
			        "this server cannot send mail: --smtp-url is not set");
	json_decref(doc);
	return st;
}

static enum tw_status store(struct tw_req *r, const json_t *body, struct tw_err *err)
{
	struct tw_digest_rules rules;
	enum tw_status st = tw_digest_rules_read(body, &rules, err);
	json_t *doc = NULL;

	if (st == TW_OK && rules.n_mail && !*tw_api_of(r)->config->smtp_url)
		st = refuse_new_addresses(r, &rules, err);
	if (st != TW_OK)
		return st;
	doc = tw_digest_rules_json(&rules);
	st = tw_api_store_setting(r, TW_SETTING_DIGEST, doc, err);
	json_decref(doc);
	return st == TW_OK ? get_settings(r, err) : st;
}

const struct tw_route tw_routes_digest[] = {
        TW_ROUTE("GET", "/api/v1/digest", TW_NEED_READ, "The digest's content",
                .params = TW_PARAMS(form_params, days_params), .end = get_digest),
        TW_ROUTE("POST", "/api/v1/digest", TW_NEED_ADMIN, "Sends the digest now",
                .params = TW_PARAMS(days_params), .end = post_digest),
        TW_ROUTE("GET", "/api/v1/digest/settings", TW_NEED_ADMIN,
                "Schedule and recipients of the digest", .end = get_settings),
        TW_ROUTE("PUT", "/api/v1/digest/settings", TW_NEED_ADMIN,
                "Sets schedule and recipients of the digest", .json = store),
        {0},
};
