/*
 * text_digest.c - a digest (digest.h) as text: headings, items, links.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "server/base/text/json.h"
#include "server/notify/markup.h"
#include "server/notify/text.h"

static void put_time(struct tw_buf *out, int64_t ms)
{
	const time_t s = (time_t)(ms / 1000);
	struct tm at;

	if (gmtime_r(&s, &at))
		tw_buf_printf(out, "%04d-%02d-%02d %02d:%02d", at.tm_year + 1900, at.tm_mon + 1,
		        at.tm_mday, at.tm_hour, at.tm_min);
}

static void put_day(struct tw_buf *out, int64_t ms)
{
	const time_t s = (time_t)(ms / 1000);
	struct tm at;

	if (gmtime_r(&s, &at))
		tw_buf_printf(out, "%04d-%02d-%02d", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday);
}

void tw_text_digest_title(const json_t *digest, struct tw_buf *out)
{
	tw_buf_printf(out, "%s: slow methods and changes, ",
	        tw_json_text(json_object_get(digest, "project"), "name"));
	put_time(out, tw_json_integer(digest, "since_ms"));
	tw_buf_printf(out, " to ");
	put_time(out, tw_json_integer(digest, "until_ms"));
	tw_buf_printf(out, " UTC");
}

static void more(struct tw_text_links *w, const json_t *list, int64_t all, const char *path)
{
	char text[64], url[TW_TEXT_URL_BYTES];
	const int64_t left = all - (int64_t)json_array_size(list);

	if (left <= 0)
		return;
	(void)snprintf(text, sizeof text, "and %" PRId64 " more", left);
	tw_markup_item(&w->p);
	tw_markup_link(&w->p, text, tw_text_url(w, path, "", NULL, url));
	tw_markup_item_end(&w->p);
}

/* --- regressions --- */

static void regressions(
        struct tw_text_links *w, const json_t *digest, const char *key, const char *title)
{
	const json_t *part = json_object_get(digest, key);
	const json_t *list = json_object_get(part, "list");
	char url[TW_TEXT_URL_BYTES];
	const json_t *r;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	tw_markup_heading(&w->p, title);
	tw_markup_list(&w->p, true);
	json_array_foreach(list, i, r)
	{
		tw_markup_item(&w->p);
		tw_text_regression_name(w, r);
		tw_markup_printf(&w->p, ", ");
		tw_text_regression_change(w, r);
		tw_markup_phrase(&w->p, "; fixed in ", tw_json_text(r, "fixed_in"));
		tw_markup_printf(&w->p, ". ");
		if (tw_text_regression_url(w, r, url))
			tw_markup_link(&w->p, "Look", url);
		tw_markup_item_end(&w->p);
	}
	more(w, list, tw_json_integer(part, "total"), "/regressions");
	tw_markup_list(&w->p, false);
}

/* --- scenarios, methods --- */

static void put_change(struct tw_text_links *w, int64_t before, int64_t now)
{
	if (before <= 0)
		return;
	tw_markup_printf(&w->p, " (");
	tw_markup_percent(&w->p, (double)now / (double)before - 1, true);
	tw_markup_printf(&w->p, ")");
}

static void put_days(struct tw_buf *out, const json_t *days, const char *first, const char *last)
{
	put_day(out, tw_json_integer(days, first));
	if (tw_json_integer(days, first) != tw_json_integer(days, last)) {
		tw_buf_printf(out, " to ");
		put_day(out, tw_json_integer(days, last));
	}
}

/* "Slow, on 2026-11-02 to 2026-11-08 (UTC)", and the days compared with. */
static void heading_of_days(
        struct tw_text_links *w, const char *text, const json_t *digest, bool against)
{
	const json_t *days = json_object_get(digest, "days");
	struct tw_buf line;

	tw_buf_init(&line, 4096);
	tw_buf_printf(&line, "%s, ", text);
	put_days(&line, days, "first_ms", "last_ms");
	if (against) {
		tw_buf_printf(&line, " against ");
		put_days(&line, days, "before_first_ms", "before_last_ms");
	}
	tw_buf_printf(&line, " (UTC)");
	(void)tw_buf_add_u8(&line, 0);
	if (tw_buf_status(&line) == TW_OK)
		tw_markup_heading(&w->p, (const char *)line.data);
	tw_buf_done(&line);
}

static void scenarios(struct tw_text_links *w, const json_t *digest)
{
	const json_t *list = json_object_get(digest, "scenarios");
	const json_t *s;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	heading_of_days(w, "Scenarios", digest, true);
	tw_markup_list(&w->p, true);
	json_array_foreach(list, i, s)
	{
		tw_markup_item(&w->p);
		if (tw_json_text(s, "scenario")[0])
			tw_markup_name(&w->p, tw_json_text(s, "scenario"));
		else
			tw_markup_printf(&w->p, "Traces without a scenario");
		tw_markup_printf(&w->p, ": median ");
		tw_markup_ns(&w->p, tw_json_integer(s, "p50_ns"));
		put_change(w, tw_json_integer(s, "before_p50_ns"), tw_json_integer(s, "p50_ns"));
		tw_markup_printf(&w->p, ", 95th percentile ");
		tw_markup_ns(&w->p, tw_json_integer(s, "p95_ns"));
		put_change(w, tw_json_integer(s, "before_p95_ns"), tw_json_integer(s, "p95_ns"));
		tw_markup_printf(&w->p, ", ");
		tw_markup_count(&w->p, tw_json_integer(s, "traces"), "trace");
		tw_markup_item_end(&w->p);
	}
	tw_markup_list(&w->p, false);
}

static void methods(struct tw_text_links *w, const json_t *digest)
{
	const json_t *list = json_object_get(digest, "methods");
	const json_t *m;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	heading_of_days(w, "Slowest methods by self time", digest, false);
	tw_markup_list(&w->p, true);
	json_array_foreach(list, i, m)
	{
		tw_markup_item(&w->p);
		tw_markup_name(&w->p, tw_json_text(m, "name"));
		tw_markup_printf(&w->p, ": ");
		tw_markup_ns(&w->p, tw_json_integer(m, "mean_ns"));
		tw_markup_printf(&w->p, " per trace, in ");
		tw_markup_count(&w->p, tw_json_integer(m, "traces"), "trace");
		tw_markup_item_end(&w->p);
	}
	tw_markup_list(&w->p, false);
}

/* --- ANRs, ingest --- */

static void anrs(struct tw_text_links *w, const json_t *digest)
{
	const json_t *part = json_object_get(digest, "anrs");
	const json_t *list = json_object_get(part, "list");
	char url[TW_TEXT_URL_BYTES];
	const json_t *g;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	tw_markup_heading(&w->p, "New groups of ANRs");
	tw_markup_list(&w->p, true);
	json_array_foreach(list, i, g)
	{
		const char *name = tw_json_text(g, "name");

		tw_markup_item(&w->p);
		tw_markup_name(&w->p, *name ? name : tw_json_text(g, "title"));
		tw_markup_printf(&w->p, ", ");
		tw_markup_count(&w->p, tw_json_integer(g, "count"), "report");
		tw_markup_printf(&w->p, ". ");
		if (tw_text_url(w, "/anrs/", tw_json_text(g, "key"), NULL, url))
			tw_markup_link(&w->p, "Look", url);
		tw_markup_item_end(&w->p);
	}
	more(w, list, tw_json_integer(part, "total"), "/anrs");
	tw_markup_list(&w->p, false);
}

static void ingest(struct tw_text_links *w, const json_t *digest)
{
	const json_t *in = json_object_get(digest, "ingest");

	tw_markup_heading(&w->p, "Traces");
	tw_markup_begin(&w->p);
	tw_markup_count(&w->p, tw_json_integer(in, "accepted"), "trace");
	tw_markup_printf(&w->p,
	        " received, %" PRId64 " of them could not be decoded, %" PRId64 " %s",
	        tw_json_integer(in, "failed"), tw_json_integer(in, "expired"),
	        tw_json_integer(in, "expired") == 1 ? "was" : "were");
	tw_markup_printf(&w->p, " deleted by retention.");
	tw_markup_end(&w->p);
}

void tw_text_digest(struct tw_text_links *w, const json_t *digest)
{
	struct tw_buf line;
	char url[TW_TEXT_URL_BYTES];

	tw_buf_init(&line, 4096);
	tw_text_digest_title(digest, &line);
	(void)tw_buf_add_u8(&line, 0);
	if (tw_buf_status(&line) == TW_OK)
		tw_markup_heading(&w->p, (const char *)line.data);
	tw_buf_done(&line);
	if (json_is_true(json_object_get(digest, "empty"))) {
		tw_markup_begin(&w->p);
		tw_markup_printf(&w->p, "No new regressions and no new ANR groups.");
		tw_markup_end(&w->p);
	}
	regressions(w, digest, "returned", "Came back");
	regressions(w, digest, "found", "Got slower");
	regressions(w, digest, "fixed", "Fixed");
	regressions(w, digest, "open", "Still open");
	anrs(w, digest);
	scenarios(w, digest);
	methods(w, digest);
	if (json_is_true(json_object_get(digest, "partial"))) {
		tw_markup_begin(&w->p);
		tw_markup_printf(&w->p, "Too many traces to sum in one run: some are omitted.");
		tw_markup_end(&w->p);
	}
	ingest(w, digest);
	if (tw_text_url(w, "/fleet", "", NULL, url)) {
		tw_markup_begin(&w->p);
		tw_markup_link(&w->p, "Open tracewell", url);
		tw_markup_end(&w->p);
	}
}
