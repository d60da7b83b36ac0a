#include "server/notify/issue.h"
#include "server/base/text/json.h"
#include "server/notify/markup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *const tw_tracker_names[TW_TRACKERS + 1] = {"github", "gitlab", "jira", "gitea", NULL};

enum tw_tracker tw_tracker_of(const json_t *doc)
{
	unsigned i = 0;

	while (i + 1 < TW_TRACKERS && strcmp(tw_json_text(doc, "for"), tw_tracker_names[i]) != 0)
		i++;
	return (enum tw_tracker)i;
}

/* A ticket may be read weeks later. */
enum { COMPARED_DAYS = 90 };
enum { TITLE_NAME_BYTES = 120, ADDRESS_BODY_BYTES = 2000, SHORT_ID = 12 };

/* --- titles --- */

/* Keeps the end of a long name, which is more specific than its package. */
static void put_short(struct tw_buf *out, const char *name)
{
	const size_t n = strlen(name);
	const char *from = n > TITLE_NAME_BYTES ? name + n - TITLE_NAME_BYTES : name;

	while (((unsigned char)*from & 0xC0) == 0x80)
		from++;
	if (from > name)
		tw_buf_printf(out, "…");
	for (; *from; from++)
		(void)tw_buf_add_u8(
		        out, (unsigned char)*from < ' ' || *from == 0x7f ? ' ' : (uint8_t)*from);
}

static void regression_title(const json_t *r, struct tw_buf *out)
{
	struct tw_markup_out p = {out, TW_MARKUP_PLAIN};
	const char *method = tw_json_text(r, "method"), *scenario = tw_json_text(r, "scenario");
	const char *head = tw_json_text(r, "head"), *name = *method ? method : scenario;

	put_short(out, *name ? name : "Duration of traces without a scenario");
	if (*method && *scenario) {
		tw_buf_printf(out, " in ");
		put_short(out, scenario);
	}
	if (strcmp(tw_json_text(r, "kind"), "new") == 0)
		tw_buf_printf(out, " is new");
	else {
		tw_buf_printf(out, " is ");
		tw_markup_percent(&p, json_number_value(json_object_get(r, "change")), false);
		tw_buf_printf(out, " slower");
	}
	if (*head) {
		tw_buf_printf(out, " since ");
		put_short(out, head);
	}
}

void tw_issue_title(const struct tw_issue *i, struct tw_buf *out)
{
	if (i->regression) {
		regression_title(i->regression, out);
		return;
	}
	tw_buf_printf(out, "ANR: ");
	put_short(out, tw_json_text(i->anr, tw_json_text(i->anr, "name")[0] ? "name" : "title"));
}

/* --- bodies --- */

static void put_classes(struct tw_text_links *w, const struct tw_issue *i)
{
	if (i->n_classes == 0)
		return;
	tw_markup_heading(&w->p, "Trace duration, by class of device");
	tw_markup_list(&w->p, true);
	for (size_t c = 0; c < i->n_classes; c++) {
		const struct tw_issue_class *one = &i->classes[c];

		tw_markup_item(&w->p);
		tw_markup_printf(&w->p, "%s: median ", *one->name ? one->name : "unknown");
		tw_markup_ns(&w->p, one->before_ns);
		tw_markup_printf(&w->p, " (");
		tw_markup_count(&w->p, (int64_t)one->before_traces, "trace");
		tw_markup_printf(&w->p, ") to ");
		tw_markup_ns(&w->p, one->after_ns);
		tw_markup_printf(&w->p, " (");
		tw_markup_count(&w->p, (int64_t)one->after_traces, "trace");
		tw_markup_printf(&w->p, ")");
		tw_markup_item_end(&w->p);
	}
	tw_markup_list(&w->p, false);
}

static void put_method_name(struct tw_text_links *w, const char *name)
{
	struct tw_buf shown;

	tw_buf_init(&shown, TITLE_NAME_BYTES + sizeof "…");
	put_short(&shown, name);
	(void)tw_buf_add_u8(&shown, 0);
	if (tw_buf_status(&shown) == TW_OK)
		tw_markup_name(&w->p, (const char *)shown.data);
	tw_buf_done(&shown);
}

static void put_methods(struct tw_text_links *w, const struct tw_issue *i)
{
	if (i->n_methods == 0)
		return;
	tw_markup_heading(&w->p, "Methods with the largest increase of mean self time per trace");
	tw_markup_list(&w->p, true);
	for (size_t m = 0; m < i->n_methods; m++) {
		const struct tw_issue_method *one = &i->methods[m];

		tw_markup_item(&w->p);
		put_method_name(w, one->name);
		tw_markup_printf(&w->p, one->is_new ? ": new, " : ": ");
		if (!one->is_new) {
			tw_markup_ns(&w->p, one->before_ns);
			tw_markup_printf(&w->p, " to ");
		}
		tw_markup_ns(&w->p, one->after_ns);
		tw_markup_item_end(&w->p);
	}
	tw_markup_list(&w->p, false);
}

/* 0 is unknown: a report need not name its user. */
static void put_of(struct tw_text_links *w, const char *before, int64_t n, const char *noun)
{
	if (n == 0)
		return;
	tw_markup_printf(&w->p, "%s", before);
	tw_markup_count(&w->p, n, noun);
}

/* --- source --- */

static void put_day(struct tw_text_links *w, const char *before, int64_t ms)
{
	const time_t at = (time_t)(ms / 1000);
	struct tm day;

	if (ms > 0 && gmtime_r(&at, &day))
		tw_markup_printf(&w->p, "%s%04d-%02d-%02d", before, day.tm_year + 1900,
		        day.tm_mon + 1, day.tm_mday);
}

static void put_commit(struct tw_text_links *w, const json_t *c)
{
	const char *link = tw_json_text(c, "link");
	char id[SHORT_ID + 1];

	(void)snprintf(id, sizeof id, "%s", tw_json_text(c, "id"));
	tw_markup_item(&w->p);
	if (*link)
		tw_markup_link(&w->p, id, link);
	else
		tw_markup_name(&w->p, id);
	tw_markup_printf(&w->p, " ");
	tw_markup_text(&w->p, tw_json_text(c, "summary"));
	tw_markup_printf(&w->p, " (");
	tw_markup_text(&w->p, tw_json_text(c, "author"));
	put_day(w, " on ", tw_json_integer(c, "time_ms"));
	put_of(w, ", ", tw_json_integer(c, "lines"), "line");
	tw_markup_printf(&w->p, ")");
	tw_markup_item_end(&w->p);
}

static void put_owner_names(struct tw_text_links *w, const json_t *section)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(section, "names"), i, name)
	{
		tw_markup_printf(&w->p, "%s", i ? ", " : "Owned by ");
		tw_markup_name(&w->p, json_string_value(name) ? json_string_value(name) : "");
	}
}

static void put_owners(struct tw_text_links *w, const json_t *owners)
{
	const json_t *section;
	size_t i;

	json_array_foreach(owners, i, section)
	{
		if (json_array_size(json_object_get(section, "names")) == 0)
			continue;
		tw_markup_item(&w->p);
		put_owner_names(w, section);
		tw_markup_item_end(&w->p);
	}
}

static void put_source(struct tw_text_links *w, const struct tw_issue *i)
{
	const char *path = tw_json_text(i->blame, "path"), *link = tw_json_text(i->blame, "link");

	if (!*path)
		return;
	tw_markup_heading(&w->p, "Source");
	tw_markup_list(&w->p, true);
	tw_markup_item(&w->p);
	if (*link)
		tw_markup_link(&w->p, path, link);
	else
		tw_markup_name(&w->p, path);
	tw_markup_item_end(&w->p);
	put_owners(w, json_object_get(i->blame, "owners"));
	tw_markup_list(&w->p, false);
}

/* Lists commits between two versions that changed the method, or its last ones without a base. */
static void put_commits(struct tw_text_links *w, const struct tw_issue *i)
{
	const json_t *commits = json_object_get(i->blame, "commits"), *c;
	bool between = tw_json_text(i->blame, "base_commit")[0];
	size_t n;

	if (json_array_size(commits)) {
		tw_markup_heading(&w->p,
		        between ? "Suspect commits" : "Last commits that changed the method");
		tw_markup_list(&w->p, true);
		json_array_foreach(commits, n, c)
		{
			put_commit(w, c);
		}
		tw_markup_list(&w->p, false);
	} else if (between && commits) {
		tw_markup_begin(&w->p);
		tw_markup_printf(
		        &w->p, "No commit between the two versions changed the method itself.");
		tw_markup_end(&w->p);
	}
}

/* --- evidence --- */

static void put_trace(struct tw_text_links *w, const char *what, const char *id)
{
	char url[TW_TEXT_URL_BYTES];

	if (!*id)
		return;
	tw_markup_item(&w->p);
	tw_markup_printf(&w->p, "%s: ", what);
	if (tw_text_url(w, "/traces/", id, NULL, url))
		tw_markup_link(&w->p, id, url);
	else
		tw_markup_name(&w->p, id);
	tw_markup_item_end(&w->p);
}

static void put_parameter(struct tw_buf *query, const char *name, const char *value)
{
	if (!*value)
		return;
	tw_buf_printf(query, "&%s=", name);
	tw_markup_query(query, value, strlen(value));
}

/* Both versions, with the methods that changed. */
static void put_comparison(struct tw_text_links *w, const json_t *r)
{
	const char *base = tw_json_text(r, "base"), *head = tw_json_text(r, "head");
	char url[TW_TEXT_URL_BYTES];
	struct tw_buf query;

	if (!*base || !*head)
		return;
	tw_buf_init(&query, TW_TEXT_URL_BYTES);
	tw_buf_printf(&query, "days=%d", COMPARED_DAYS);
	put_parameter(&query, "a", base);
	put_parameter(&query, "b", head);
	put_parameter(&query, "app", tw_json_text(r, "app"));
	put_parameter(&query, "scenario", tw_json_text(r, "scenario"));
	put_parameter(&query, "method", tw_json_text(r, "method"));
	(void)tw_buf_add_u8(&query, 0);
	if (tw_buf_status(&query) == TW_OK &&
	        tw_text_url(w, "/fleet/compare", "", (const char *)query.data, url)) {
		tw_markup_item(&w->p);
		tw_markup_link(&w->p, "Both versions compared, with the methods that changed", url);
		tw_markup_item_end(&w->p);
	}
	tw_buf_done(&query);
}

static void put_traces(struct tw_text_links *w, const json_t *r)
{
	char url[TW_TEXT_URL_BYTES];

	tw_markup_heading(&w->p, "Where to look");
	tw_markup_list(&w->p, true);
	if (tw_text_regression_url(w, r, url)) {
		tw_markup_item(&w->p);
		tw_markup_link(&w->p, "The regression in tracewell", url);
		tw_markup_item_end(&w->p);
	}
	put_comparison(w, r);
	put_trace(w, "A slow trace", tw_json_text(r, "after_trace"));
	put_trace(w, "One from before", tw_json_text(r, "before_trace"));
	tw_markup_list(&w->p, false);
}

static void put_end(struct tw_text_links *w, const json_t *r)
{
	tw_markup_heading(&w->p, "Done when");
	tw_markup_begin(&w->p);
	tw_markup_printf(&w->p, "A later version is back at ");
	tw_markup_ns(&w->p, tw_json_integer(r, "before_ns"));
	tw_markup_printf(&w->p, ". tracewell then marks the regression as fixed, and reopens it if "
	                        "it returns.");
	tw_markup_end(&w->p);
}

static void regression_body(struct tw_text_links *w, const struct tw_issue *i)
{
	const json_t *r = i->regression;

	tw_markup_begin(&w->p);
	tw_text_regression_name(w, r);
	tw_markup_printf(&w->p, " got slower: ");
	tw_text_regression_change(w, r);
	tw_markup_printf(&w->p, ".");
	tw_markup_end(&w->p);
	tw_markup_begin(&w->p);
	tw_markup_printf(&w->p, "Measured in ");
	tw_markup_count(&w->p, tw_json_integer(r, "traces_before"), "trace");
	tw_markup_printf(&w->p, " before");
	put_day(w, " ", tw_json_integer(r, "day_ms"));
	tw_markup_printf(&w->p,
	        " and %" PRId64
	        " since then, compared by day and class of device; %.1f standard errors.",
	        tw_json_integer(r, "traces_after"), json_number_value(json_object_get(r, "score")));
	tw_markup_end(&w->p);
	if (tw_json_text(r, "earlier")[0]) {
		tw_markup_begin(&w->p);
		tw_markup_printf(&w->p, "It was slow before, was fixed, and has returned.");
		tw_markup_end(&w->p);
	}
	put_classes(w, i);
	put_commits(w, i);
	put_source(w, i);
	put_traces(w, r);
	put_methods(w, i); /* after the links, as a prefilled form is cut */
	put_end(w, r);
}

static void put_frames(struct tw_text_links *w, const json_t *frames)
{
	const json_t *one;
	size_t i;

	if (json_array_size(frames) == 0)
		return;
	tw_markup_heading(&w->p, "Identified by");
	tw_markup_list(&w->p, true);
	json_array_foreach(frames, i, one)
	{
		tw_markup_item(&w->p);
		tw_markup_name(&w->p, json_string_value(one) ? json_string_value(one) : "");
		tw_markup_item_end(&w->p);
	}
	tw_markup_list(&w->p, false);
}

static void put_exemplar(struct tw_text_links *w, const struct tw_issue_trace *t)
{
	char url[TW_TEXT_URL_BYTES];

	tw_markup_item(&w->p);
	if (tw_text_url(w, "/traces/", t->id, NULL, url))
		tw_markup_link(&w->p, t->id, url);
	else
		tw_markup_name(&w->p, t->id);
	tw_markup_phrase(&w->p, ", version ", t->version);
	tw_markup_phrase(&w->p, ", ", t->device);
	tw_markup_phrase(&w->p, ", Android ", t->os);
	tw_markup_item_end(&w->p);
}

static void anr_body(struct tw_text_links *w, const struct tw_issue *i)
{
	char url[TW_TEXT_URL_BYTES];

	tw_markup_begin(&w->p);
	tw_markup_text(&w->p, tw_json_text(i->anr, "verdict"));
	tw_markup_end(&w->p);
	tw_markup_begin(&w->p);
	tw_markup_count(&w->p, tw_json_integer(i->anr, "count"), "report");
	put_of(w, " of ", tw_json_integer(i->anr, "users"), "user");
	put_of(w, ", in ", tw_json_integer(i->anr, "versions"), "version");
	put_of(w, " on ", tw_json_integer(i->anr, "devices"), "device");
	tw_markup_printf(&w->p, ".");
	tw_markup_end(&w->p);
	put_frames(w, json_object_get(i->anr, "frames"));
	put_commits(w, i);
	put_source(w, i);
	tw_markup_heading(&w->p, "Where to look");
	tw_markup_list(&w->p, true);
	if (tw_text_url(w, "/anrs/", tw_json_text(i->anr, "key"), NULL, url)) {
		tw_markup_item(&w->p);
		tw_markup_link(&w->p, "The group in tracewell", url);
		tw_markup_item_end(&w->p);
	}
	for (size_t t = 0; t < i->n_traces; t++)
		put_exemplar(w, &i->traces[t]);
	tw_markup_list(&w->p, false);
	tw_markup_heading(&w->p, "Done when");
	tw_markup_begin(&w->p);
	tw_markup_printf(&w->p, "No report of a later version is in this group.");
	tw_markup_end(&w->p);
}

void tw_issue_body(const struct tw_issue *i, struct tw_buf *out)
{
	struct tw_text_links w = {
	        {out, i->tracker == TW_JIRA ? TW_MARKUP_JIRA : TW_MARKUP_MARKDOWN}, i->base,
	        i->project_id};

	if (i->regression)
		regression_body(&w, i);
	else
		anr_body(&w, i);
	/* a GitLab quick action: a separate line without names from traces */
	if (i->tracker == TW_GITLAB)
		tw_buf_printf(out, "/label ~performance\n");
}

/* --- the issue --- */

static enum tw_status is_tracker(const char *word, struct tw_err *err)
{
	for (size_t i = 0; i < TW_TRACKERS; i++)
		if (word && strcmp(word, tw_tracker_names[i]) == 0)
			return TW_OK;
	return tw_fail(err, TW_BAD_REQUEST, "for must be github, gitlab, jira or gitea");
}

enum tw_status tw_issue_template(const json_t *doc, struct tw_err *err)
{
	const char *template = json_string_value(json_object_get(doc, "template"));
	enum tw_status st;

	if (!template)
		return tw_fail(err, TW_BAD_REQUEST, "template must be a text");
	st = is_tracker(json_string_value(json_object_get(doc, "for")), err);
	if (st != TW_OK || !*template)
		return st;
	st = tw_hook_url(template, err);
	if (st == TW_OK && !strstr(template, "{title}"))
		st = tw_fail(err, TW_BAD_REQUEST,
		        "template must contain {title}, and {body} if the tracker supports it");
	return st;
}

void tw_issue_address(
        const char *template, struct tw_str title, struct tw_str body, struct tw_buf *out)
{
	while (*template) {
		if (strncmp(template, "{title}", 7) == 0) {
			tw_markup_query(out, title.ptr, title.len);
			template += 7;
		} else if (strncmp(template, "{body}", 6) == 0) {
			size_t n = body.len < ADDRESS_BODY_BYTES ? body.len : ADDRESS_BODY_BYTES;

			while (n < body.len && n && ((unsigned char)body.ptr[n] & 0xC0) == 0x80)
				n--;
			tw_markup_query(out, body.ptr, n);
			template += 6;
		} else {
			(void)tw_buf_add_u8(out, (uint8_t) * template ++);
		}
	}
}
