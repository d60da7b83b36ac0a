#include "server/derive/jobs_hook.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/text/json.h"
#include "server/notify/text.h"

enum { TEXT_BYTES = 256 << 10 };

/* --- making --- */

struct making {
	struct tw_fleet_store *store;
	struct tw_catalogue *c;
	struct tw_periodic *by;
	bool mails;
	int64_t now_ms, end_ms; /* end_ms: CLOCK_MONOTONIC */
};

static bool is_over(void *arg)
{
	const struct making *m = arg;

	return tw_monotonic_ms() >= m->end_ms || tw_periodic_stopping(m->by);
}

/* A digest that was interrupted because the server stops is made again after the restart. */
static enum tw_status make(struct making *m, const struct tw_digest_of *of,
        struct tw_digest_rules *rules, struct tw_err *err)
{
	json_t *digest = NULL, *facts;
	char *text;
	enum tw_status st = tw_digest_make(m->store, of, &digest, err);

	if (st != TW_OK)
		return st;
	if (tw_periodic_stopping(m->by)) {
		json_decref(digest);
		return TW_OK;
	}
	if (!m->mails)
		rules->n_mail = 0;
	facts = json_pack("{s:o}", "digest", digest);
	text = tw_json_dumps(facts, JSON_COMPACT);
	st = text ? tw_catalogue_digest_claim(m->c, of, text, rules, err) : tw_oom(err);
	free(text);
	json_decref(facts);
	return st;
}

/* Skips periods that ended before the project enabled digests. */
static enum tw_status make_due(
        struct making *m, const struct tw_digest_project *project, struct tw_err *err)
{
	struct tw_digest_of of = {project->id, project->name, {0, 0}, {is_over, m}};
	struct tw_digest_rules rules;
	json_t *doc;
	enum tw_status st = tw_digest_rules_parse(project->id, project->rules, &doc, &rules, err);

	m->end_ms = tw_monotonic_ms() + INT64_C(1000) * TW_DIGEST_LIMIT_S;
	if (st == TW_OK && rules.every != TW_DIGEST_OFF) {
		of.period = tw_digest_period(&rules, m->now_ms);
		if (of.period.until_ms > project->changed_ms &&
		        !tw_catalogue_digest_made(project, of.period.until_ms))
			st = make(m, &of, &rules, err);
	}
	json_decref(doc);
	return st;
}

enum tw_status tw_digests_make(struct tw_fleet_store *store, struct tw_periodic *by, bool mails,
        int64_t now_ms, struct tw_err *err)
{
	struct making m = {store, store->catalogue, by, mails, now_ms, 0};
	struct tw_arena *a = tw_arena_new((size_t)16 << 20);
	struct tw_digest_project *projects = NULL;
	struct tw_err why;
	size_t n = 0;
	enum tw_status one,
	        st = a ? tw_catalogue_digest_projects(m.c, a, &projects, &n, err) : tw_oom(err);

	for (size_t i = 0; i < n && !tw_periodic_stopping(by); i++) {
		one = make_due(&m, &projects[i], &why);
		if (one != TW_OK && st == TW_OK) {
			st = one;
			tw_err_copy(err, &why);
		}
	}
	tw_arena_free(a);
	return st;
}

/* --- mail --- */

static enum tw_status check_recipient(
        const struct tw_digest_mail *m, const char *to, struct tw_err *err)
{
	struct tw_digest_rules rules;
	json_t *doc;
	int64_t changed_ms;
	bool listed = false;
	enum tw_status st =
	        tw_digest_rules_of(m->c, m->of->project_id, &doc, &rules, &changed_ms, err);

	for (size_t i = 0; st == TW_OK && i < rules.n_mail; i++)
		listed = listed || strcmp(to, rules.mail[i]) == 0;
	json_decref(doc);
	if (st == TW_OK && !listed)
		st = tw_fail(err, TW_NOT_FOUND, "the address was removed from the digest");
	return st;
}

static void write_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts)
{
	char url[TW_TEXT_URL_BYTES];

	tw_text_event(w, event, facts);
	if (!tw_text_event_url(w, event, facts, url))
		return;
	tw_markup_begin(&w->p);
	tw_markup_link(&w->p, "Open in tracewell", url);
	tw_markup_end(&w->p);
}

static void write_form(const struct tw_digest_mail *m, const json_t *facts, enum tw_markup markup,
        struct tw_buf *out)
{
	struct tw_text_links w = {{out, markup}, m->base, m->of->project_id};

	if (markup == TW_MARKUP_HTML)
		tw_buf_printf(out, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		                   "<body style=\"font-family:sans-serif\">\n");
	if (m->of->event == TW_HOOK_DIGEST)
		tw_text_digest(&w, json_object_get(facts, "digest"));
	else
		write_event(&w, m->of->event, facts);
	if (markup == TW_MARKUP_HTML)
		tw_buf_printf(out, "</body></html>\n");
}

static enum tw_status write_message(
        const struct tw_digest_mail *m, const char *to, const json_t *facts, struct tw_err *err)
{
	struct tw_buf subject, text, html;
	struct tw_mail_text mail = {.from = m->by->from,
	        .to = to,
	        .id = tw_arena_printf(m->arena, "%s.%s", m->of->event_id, m->of->project_id),
	        .at_ms = m->of->created_ms};
	enum tw_status st;

	tw_buf_init(&subject, 4096);
	tw_buf_init(&text, TEXT_BYTES);
	tw_buf_init(&html, TEXT_BYTES);
	if (m->of->event == TW_HOOK_DIGEST)
		tw_text_digest_title(json_object_get(facts, "digest"), &subject);
	else
		tw_text_alert_title(m->of->event, facts, &subject);
	st = tw_buf_add_u8(&subject, 0);
	write_form(m, facts, TW_MARKUP_PLAIN, &text);
	write_form(m, facts, TW_MARKUP_HTML, &html);
	mail.subject = (const char *)subject.data;
	mail.text = tw_buf_str(&text);
	mail.html = tw_buf_str(&html);
	if (st == TW_OK && mail.id && tw_buf_status(&text) == TW_OK &&
	        tw_buf_status(&html) == TW_OK)
		tw_mail_write(&mail, m->message);
	else
		st = tw_oom(err);
	tw_buf_done(&html);
	tw_buf_done(&text);
	tw_buf_done(&subject);
	return st;
}

enum tw_status tw_digest_mail(
        const struct tw_digest_mail *m, struct tw_mail *ret, struct tw_err *err)
{
	json_t *facts;
	const char *to;
	enum tw_status st;

	*ret = (struct tw_mail){.by = m->by};
	if (!*m->by->url)
		return tw_fail(err, TW_BAD_REQUEST, "--smtp-url is not set");
	facts = json_loads(m->of->facts, 0, NULL);
	to = json_string_value(json_object_get(facts, "to"));
	if (!facts)
		return tw_oom(err);
	st = to ? check_recipient(m, to, err) : tw_fail(err, TW_BUG, "a mail has no recipient");
	if (st == TW_OK)
		st = write_message(m, to, facts, err);
	ret->to = st == TW_OK ? tw_arena_str(m->arena, tw_str_of(to)) : NULL;
	if (st == TW_OK && !ret->to)
		st = tw_oom(err);
	json_decref(facts);
	return st;
}
