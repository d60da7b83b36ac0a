#include "server/notify/text.h"
#include "server/base/text/figure.h"
#include "server/base/text/json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double share(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

const char *tw_text_url(const struct tw_text_links *w, const char *path, const char *id,
        const char *query, char out[TW_TEXT_URL_BYTES])
{
	int n;

	if (!w->base || !w->base[0])
		return NULL;
	n = snprintf(out, TW_TEXT_URL_BYTES, "%s%s%s?project=%s%s%s", w->base, path, id,
	        w->project_id, query ? "&" : "", query ? query : "");
	return n > 0 && n < TW_TEXT_URL_BYTES ? out : NULL;
}

/* --- regressions --- */

void tw_text_regression_name(struct tw_text_links *w, const json_t *r)
{
	const char *method = tw_json_text(r, "method"), *scenario = tw_json_text(r, "scenario");
	const char *app = tw_json_text(r, "app");

	if (*method || *scenario)
		tw_markup_name(&w->p, *method ? method : scenario);
	else
		tw_markup_printf(&w->p, "Duration of traces without a scenario");
	if (*method)
		tw_markup_phrase(&w->p, " in ", scenario);
	tw_markup_phrase(&w->p, " of ", app);
}

static void put_day(struct tw_text_links *w, int64_t ms)
{
	const time_t s = (time_t)(ms / 1000);
	struct tm day;

	if (gmtime_r(&s, &day))
		tw_markup_printf(
		        &w->p, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

static void put_since(struct tw_text_links *w, const json_t *r)
{
	const char *head = tw_json_text(r, "head"), *base = tw_json_text(r, "base");

	if (!*head) {
		tw_markup_printf(&w->p, " since ");
		put_day(w, tw_json_integer(r, "day_ms"));
		return;
	}
	tw_markup_phrase(&w->p, " in ", head);
	tw_markup_phrase(&w->p, " against ", base);
}

/* "new in 8.3.1 against 8.3.0: 120 ms at the median in 94 % of traces, +12 % of a median one" */
static void put_new(struct tw_text_links *w, const json_t *r)
{
	tw_markup_printf(&w->p, "new");
	put_since(w, r);
	tw_markup_printf(&w->p, ": ");
	tw_markup_ns(&w->p, tw_json_integer(r, "after_ns"));
	tw_markup_printf(&w->p, " at the median in ");
	tw_markup_percent(&w->p, share(r, "share"), false);
	tw_markup_printf(&w->p, " of traces, ");
	tw_markup_percent(&w->p, share(r, "change"), false);
	tw_markup_printf(&w->p, " of a median one");
}

static const char *ordinal(int n)
{
	static const char *const ends[] = {"th", "st", "nd", "rd"};

	return n / 10 % 10 == 1 || n % 10 > 3 ? ends[0] : ends[n % 10];
}

void tw_text_regression_change(struct tw_text_links *w, const json_t *r)
{
	const int percentile = (int)tw_json_integer(r, "percentile");
	char low[TW_FIGURE_BYTES], high[TW_FIGURE_BYTES], interval[TW_INTERVAL_BYTES];

	if (strcmp(tw_json_text(r, "kind"), "new") == 0) {
		put_new(w, r);
		return;
	}

	tw_markup_percent(&w->p, share(r, "change"), true);
	put_since(w, r);
	tw_markup_printf(&w->p, ": ");
	tw_markup_ns(&w->p, tw_json_integer(r, "before_ns"));
	tw_markup_printf(&w->p, " to ");
	tw_markup_ns(&w->p, tw_json_integer(r, "after_ns"));
	if (percentile == 50)
		tw_markup_printf(&w->p, " at the median, ");
	else
		tw_markup_printf(
		        &w->p, " at the %d%s percentile, ", percentile, ordinal(percentile));
	tw_markup_printf(&w->p, "95 %% confidence interval %s",
	        tw_interval_text(tw_percent_text(share(r, "low"), true, low),
	                tw_percent_text(share(r, "high"), true, high), interval));
}

const char *tw_text_regression_url(
        const struct tw_text_links *w, const json_t *r, char out[TW_TEXT_URL_BYTES])
{
	char query[80];

	(void)snprintf(query, sizeof query, "status=all&muted=1&open=%.40s", tw_json_text(r, "id"));
	return tw_text_url(w, "/regressions", "", query, out);
}

static void put_fixed_where(struct tw_text_links *w, const json_t *r)
{
	const char *version = tw_json_text(r, "fixed_in");

	if (*version) {
		tw_markup_phrase(&w->p, " in ", version);
	} else if (tw_json_integer(r, "fixed_day_ms")) {
		tw_markup_printf(&w->p, " since ");
		put_day(w, tw_json_integer(r, "fixed_day_ms"));
	}
}

static void put_by(struct tw_text_links *w, const json_t *facts)
{
	const char *by = tw_json_text(facts, "by");

	if (!*by)
		return;
	tw_markup_printf(&w->p, " (by ");
	tw_markup_name(&w->p, by);
	tw_markup_printf(&w->p, ")");
}

static void regression_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts)
{
	const json_t *r = json_object_get(facts, "regression");

	if (event == TW_HOOK_FOUND) {
		tw_markup_printf(&w->p, "Slower");
	} else if (event == TW_HOOK_RETURNED) {
		tw_markup_printf(&w->p, "Returned after it was fixed");
	} else if (event == TW_HOOK_FIXED) {
		tw_markup_printf(&w->p, "Fixed");
		put_fixed_where(w, r);
		put_by(w, facts);
	} else {
		tw_markup_printf(&w->p, "Now %s",
		        tw_json_text(r, "status")[0] == 'a' ? "acknowledged" : "open");
		put_by(w, facts);
	}
	tw_markup_printf(&w->p, ": ");
	tw_text_regression_name(w, r);
	tw_markup_printf(&w->p, event == TW_HOOK_FIXED ? ", which was " : ", ");
	tw_text_regression_change(w, r);
	tw_markup_printf(&w->p, ".");
}

/* --- ANRs and the rest --- */

static void anr_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts)
{
	const json_t *anr = json_object_get(facts, "anr");
	const char *name = tw_json_text(anr, "name");

	tw_markup_printf(&w->p,
	        event == TW_HOOK_ANR ? "A new group of ANRs: " : "Fixed ANRs have returned: ");
	tw_markup_name(&w->p, *name ? name : tw_json_text(anr, "title"));
	tw_markup_printf(&w->p, ". ");
	if (tw_json_text(anr, "verdict")[0]) {
		tw_markup_text(&w->p, tw_json_text(anr, "verdict"));
		tw_markup_printf(&w->p, " ");
	}
	tw_markup_printf(&w->p, event == TW_HOOK_ANR ? "First seen" : "Seen again");
	tw_markup_phrase(&w->p, " in version ", tw_json_text(anr, "version_name"));
	tw_markup_phrase(&w->p, " on ", tw_json_text(anr, "device"));
	tw_markup_printf(&w->p,
	        *tw_json_text(anr, "version_name") || *tw_json_text(anr, "device") ? "." : " now.");
}

/* --- alerts --- */

static bool is_alert(enum tw_hook_event event)
{
	return event == TW_HOOK_ALERT || event == TW_HOOK_ALERT_RETURNED ||
	       event == TW_HOOK_ALERT_FIXED;
}

/* "912 ms", "12 %", "5.2 times" */
static void put_figure(struct tw_text_links *w, const json_t *a, const char *key)
{
	const char *unit = tw_json_text(a, "unit");
	const double v = share(a, key);

	if (strcmp(unit, "ms") == 0)
		tw_markup_ns(&w->p, (int64_t)(v * 1e6));
	else if (strcmp(unit, "share") == 0)
		tw_markup_percent(&w->p, v, false);
	else
		tw_markup_printf(&w->p, v >= 100 ? "%.0f times" : "%.3g times", v);
}

/* "p95 of the duration of cold_start of shop in 8.3.1" */
static void put_measured(struct tw_text_links *w, const json_t *a)
{
	static const struct {
		const char *kind, *phrase;
	} kinds[] = {{"duration", "the duration"},
	        {"initial_display", "the time to initial display"},
	        {"full_display", "the time to full display"},
	        {"slow_frames", "The share of slow frames"},
	        {"frozen_frames", "The share of frozen frames"}, {"method_self", "the self time"},
	        {"method_share", "The share of self time"}};
	const bool quantile = strcmp(tw_json_text(a, "unit"), "ms") == 0;

	if (quantile)
		tw_markup_printf(&w->p, "p%d of ", (int)tw_json_integer(a, "percentile"));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].kind, tw_json_text(a, "kind")) == 0)
			tw_markup_printf(&w->p, "%s", kinds[i].phrase);
	tw_markup_phrase(&w->p, " of ", tw_json_text(a, "method"));
	tw_markup_phrase(&w->p, " in ", tw_json_text(a, "scenario"));
	tw_markup_phrase(&w->p, " of ", tw_json_text(a, "app"));
	tw_markup_phrase(&w->p, ", version ", tw_json_text(a, "version"));
}

static void put_spike(struct tw_text_links *w, const json_t *a)
{
	tw_markup_name(&w->p, tw_json_text(a, "title"));
	tw_markup_printf(&w->p, ": ");
	tw_markup_count(&w->p, tw_json_integer(a, "traces"), "ANR report");
	tw_markup_printf(&w->p, " in 24 hours, ");
	put_figure(w, a, "value");
	tw_markup_printf(&w->p, " the mean of earlier days (threshold: ");
	put_figure(w, a, "threshold");
	tw_markup_printf(&w->p, ").");
}

static void put_evidence(struct tw_text_links *w, const json_t *a)
{
	char url[TW_TEXT_URL_BYTES];
	const char *trace = tw_json_text(a, "trace");

	if (!*trace || !tw_text_url(w, "/traces/", trace, NULL, url))
		return;
	tw_markup_printf(&w->p, " Evidence: ");
	tw_markup_link(&w->p, trace, url);
	tw_markup_printf(&w->p, ".");
}

static const char *alert_word(enum tw_hook_event event)
{
	return event == TW_HOOK_ALERT            ? "Above the threshold"
	       : event == TW_HOOK_ALERT_RETURNED ? "Above the threshold again"
	                                         : "Below the threshold again";
}

static void alert_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts)
{
	const json_t *a = json_object_get(facts, "alert");

	tw_markup_printf(&w->p, "%s: ", alert_word(event));
	tw_markup_name(&w->p, tw_json_text(a, "name"));
	tw_markup_printf(&w->p, ". ");
	if (tw_json_text(a, "anr")[0])
		put_spike(w, a);
	else {
		put_measured(w, a);
		tw_markup_printf(&w->p, ": ");
		if (tw_json_integer(a, "traces") > 0)
			put_figure(w, a, "value");
		else
			tw_markup_printf(&w->p, "no figure");
		tw_markup_printf(&w->p, " (threshold: ");
		put_figure(w, a, "threshold");
		tw_markup_printf(&w->p, "; ");
		tw_markup_count(&w->p, tw_json_integer(a, "traces"), "trace");
		tw_markup_printf(&w->p, " in ");
		tw_markup_count(&w->p, tw_json_integer(a, "days"), "day");
		tw_markup_printf(&w->p, ").");
	}
	put_evidence(w, a);
}

void tw_text_alert_title(enum tw_hook_event event, const json_t *facts, struct tw_buf *out)
{
	tw_buf_printf(out, "%s: ", alert_word(event));
	for (const char *c = tw_json_text(json_object_get(facts, "alert"), "name"); *c; c++)
		(void)tw_buf_add_u8(out, (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : (uint8_t)*c);
}

/* --- any event --- */

void tw_text_event(struct tw_text_links *w, enum tw_hook_event event, const json_t *facts)
{
	tw_markup_begin(&w->p);
	if (event == TW_HOOK_TEST) {
		tw_markup_printf(&w->p, "This is a test of the webhook");
		tw_markup_phrase(&w->p, ", requested by ", tw_json_text(facts, "by"));
		tw_markup_printf(&w->p, ".");
	} else if (event == TW_HOOK_ANR || event == TW_HOOK_ANR_RETURNED) {
		anr_event(w, event, facts);
	} else if (is_alert(event)) {
		alert_event(w, event, facts);
	} else {
		regression_event(w, event, facts);
	}
	tw_markup_end(&w->p);
}

const char *tw_text_event_url(const struct tw_text_links *w, enum tw_hook_event event,
        const json_t *facts, char out[TW_TEXT_URL_BYTES])
{
	if (event == TW_HOOK_ANR || event == TW_HOOK_ANR_RETURNED)
		return tw_text_url(
		        w, "/anrs/", tw_json_text(json_object_get(facts, "anr"), "key"), NULL, out);
	if (is_alert(event)) {
		const char *group = tw_json_text(json_object_get(facts, "alert"), "anr");

		return *group ? tw_text_url(w, "/anrs/", group, NULL, out)
		              : tw_text_url(w, "/inbox", "", "state=all&kind=alert", out);
	}
	if (event == TW_HOOK_TEST || event == TW_HOOK_DIGEST)
		return tw_text_url(w, "/notifications", "", NULL, out);
	return tw_text_regression_url(w, json_object_get(facts, "regression"), out);
}
