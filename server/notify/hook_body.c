/* hook_body.c - the JSON bodies of webhooks: tracewell's, Slack's, Teams'. */
#include "server/notify/text.h"

#include <jansson.h>
#include <stdlib.h>

#include "server/base/text/json.h"
#include "server/catalogue/notify/catalogue_hook.h"
#include "server/notify/markup.h"

enum { TEAMS_BYTES = 20 << 10 }; /* Teams refuses more than 28 KB in total */

/* --- text --- */

/* Without trailing line breaks; NULL: out of memory. */
static json_t *text_of(const struct tw_delivery *d, const json_t *facts, enum tw_markup markup,
        const char *base, size_t most)
{
	struct tw_buf out;
	struct tw_text_links w = {{&out, markup}, base, d->project_id};
	json_t *text = NULL;

	tw_buf_init(&out, TW_HOOK_BODY_BYTES / 2);
	if (d->event == TW_HOOK_DIGEST)
		tw_text_digest(&w, json_object_get(facts, "digest"));
	else
		tw_text_event(&w, d->event, facts);
	while (out.len && out.data[out.len - 1] == '\n')
		out.len--;
	if (out.len > most) {
		for (out.len = most; out.len && (out.data[out.len] & 0xC0) == 0x80;)
			out.len--;
	}
	if (tw_buf_status(&out) == TW_OK && out.data)
		text = json_stringn_nocheck((const char *)out.data, out.len);
	tw_buf_done(&out);
	return text;
}

static const char *url_of(const struct tw_delivery *d, const json_t *facts, const char *base,
        char out[TW_TEXT_URL_BYTES])
{
	const struct tw_text_links w = {{NULL, TW_MARKUP_PLAIN}, base, d->project_id};

	return tw_text_event_url(&w, d->event, facts, out);
}

/* --- kinds of webhooks --- */

static json_t *plain_body(const struct tw_delivery *d, json_t *facts, const char *base)
{
	char url[TW_TEXT_URL_BYTES];
	const char *to = url_of(d, facts, base, url);
	json_t *j = json_pack("{s:s, s:s, s:I, s:{s:s, s:s}, s:o, s:o}", "id", d->event_id, "event",
	        tw_hook_event_names[d->event], "at_ms", (json_int_t)d->created_ms, "project", "id",
	        d->project_id, "name", d->project, "text",
	        text_of(d, facts, TW_MARKUP_PLAIN, base, SIZE_MAX), "url",
	        to ? json_string(to) : json_null());

	if (j && json_object_update_missing(j, facts) != 0) {
		json_decref(j);
		j = NULL;
	}
	return j;
}

static json_t *slack_body(const struct tw_delivery *d, json_t *facts, const char *base)
{
	char url[TW_TEXT_URL_BYTES];
	const char *to = d->event == TW_HOOK_DIGEST ? NULL : url_of(d, facts, base, url);
	json_t *text = text_of(d, facts, TW_MARKUP_SLACK, base, SIZE_MAX);

	if (text && to) {
		json_t *linked = json_sprintf("%s\n<%s|Look>", json_string_value(text), to);

		json_decref(text);
		text = linked;
	}
	return json_pack("{s:o, s:b, s:b}", "text", text, "unfurl_links", 0, "unfurl_media", 0);
}

static json_t *teams_body(const struct tw_delivery *d, json_t *facts, const char *base)
{
	char url[TW_TEXT_URL_BYTES];
	const char *to = url_of(d, facts, base, url);
	json_t *card = json_pack("{s:s, s:s, s:[{s:s, s:o, s:b}], s:[]}", "type", "AdaptiveCard",
	        "version", "1.4", "body", "type", "TextBlock", "text",
	        text_of(d, facts, TW_MARKUP_CARD, base, TEAMS_BYTES), "wrap", 1, "actions");

	if (card && to)
		(void)json_array_append_new(json_object_get(card, "actions"),
		        json_pack("{s:s, s:s, s:s}", "type", "Action.OpenUrl", "title", "Look",
		                "url", to));
	return json_pack("{s:s, s:[{s:s, s:o}]}", "type", "message", "attachments", "contentType",
	        "application/vnd.microsoft.card.adaptive", "content", card);
}

static json_t *matrix_body(const struct tw_delivery *d, json_t *facts, const char *base)
{
	return json_pack("{s:s, s:o, s:o}", "username", "tracewell", "text",
	        text_of(d, facts, TW_MARKUP_MARKDOWN, base, SIZE_MAX), "html",
	        text_of(d, facts, TW_MARKUP_HTML, base, SIZE_MAX));
}

enum tw_status tw_hook_body(
        const struct tw_delivery *d, const char *base, struct tw_buf *out, struct tw_err *err)
{
	static json_t *(*const kinds[])(const struct tw_delivery *, json_t *, const char *) = {
	        plain_body, slack_body, teams_body, matrix_body};
	json_t *facts = json_loads(d->facts, 0, NULL);
	json_t *body =
	        facts && (unsigned)d->kind < TW_HOOK_KINDS ? kinds[d->kind](d, facts, base) : NULL;
	char *text = tw_json_dumps(body, JSON_COMPACT);
	enum tw_status st = text ? tw_buf_add_str(out, tw_str_of(text)) : tw_oom(err);

	if (text && st != TW_OK)
		st = tw_fail(err, st, "the webhook's body is too large");
	free(text);
	json_decref(body);
	json_decref(facts);
	return st;
}
