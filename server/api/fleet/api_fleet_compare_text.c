/*
 * api_fleet_compare_text.c - a comparison as text: one sentence, and a page of Markdown.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/fleet/api_fleet_compare.h"
#include "server/base/text/figure.h"

enum { TEXT_BYTES = 48, ROWS = 20, DEFAULT_STAT = 2 /* p95 */ };

/* --- numbers --- */

/* "1.43 s", "18 ms", "250 µs". */
static const char *time_text(double ns, char out[TEXT_BYTES])
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	double size = fabs(ns);
	int i = 0;

	while (i < 3 && size < 0.9995 * units[i].ns) /* 999.5 ms would be 1e+03 ms */
		i++;
	(void)snprintf(out, TEXT_BYTES, size < 999.5 * units[i].ns ? "%.3g %s" : "%.0f %s",
	        ns / units[i].ns, units[i].unit);
	return out;
}

/* "+7.1 % to +11 %" */
static const char *interval_of(const struct tw_compared_stat *x, char out[TW_INTERVAL_BYTES])
{
	char low[TW_FIGURE_BYTES], high[TW_FIGURE_BYTES];

	return tw_interval_text(tw_percent_text(x->change_low, true, low),
	        tw_percent_text(x->change_high, true, high), out);
}

/* --- the sentence --- */

/* The scenario with most traces on both sides; NULL: none exists on both. */
static const struct tw_compared_scenario *main_scenario(const struct tw_comparison *c)
{
	const struct tw_compared_scenario *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < c->n_scenarios; i++) {
		const uint64_t *n = c->scenarios[i].mix.traces;
		uint64_t both = n[TW_SIDE_A] < n[TW_SIDE_B] ? n[TW_SIDE_A] : n[TW_SIDE_B];

		if (both > most) {
			most = both;
			best = &c->scenarios[i];
		}
	}
	return best;
}

/* The highest quantile up to p95 with enough traces, otherwise the median. */
static int reported_stat(const struct tw_compared_scenario *s)
{
	int k = DEFAULT_STAT;

	while (k > 0 && !s->stats[k].enough)
		k--;
	return k;
}

/* The significant method that changed most, not counting changes in other scenarios, and whether it
 * changed more than all others. */
static const struct tw_compared_method *cause(
        const struct tw_comparison *c, const char *scenario, bool slower, bool *ret_most)
{
	const struct tw_compared_method *best = NULL;
	double all = 0, largest = 0;

	for (size_t i = 0; i < c->n_methods; i++) {
		const struct tw_compared_method *m = &c->methods[i];
		double change = m->self.of[TW_SIDE_B] - m->self.of[TW_SIDE_A];

		change = slower ? change : -change;
		if (change <= 0 || !m->sure || (m->scenario && strcmp(m->scenario, scenario) != 0))
			continue;
		all += change;
		if (change > largest) {
			largest = change;
			best = m;
		}
	}
	*ret_most = largest >= all / 2;
	return best;
}

static const char *put_cause(
        const struct tw_comparison *c, const char *scenario, bool slower, struct tw_arena *a)
{
	bool most = false;
	const struct tw_compared_method *m = cause(c, scenario, slower, &most);

	if (!m)
		return "; no single method changes significantly";
	return tw_arena_printf(a, ", %s of it in %.*s", most ? "most" : "the largest part",
	        (int)m->name.len, m->name.ptr);
}

static const char *put_stat_change(
        const struct tw_comparison *c, const struct tw_compared_scenario *s)
{
	const struct tw_compared_stat *x = &s->stats[reported_stat(s)];
	const char *word = tw_compare_stat_names[reported_stat(s)];
	const char *name = s->name[0] ? s->name : "traces without a scenario";
	char a[TEXT_BYTES], b[TEXT_BYTES], change[TW_FIGURE_BYTES], interval[TW_INTERVAL_BYTES];
	const char *why;

	(void)time_text(x->of[TW_SIDE_A], a);
	(void)time_text(x->of[TW_SIDE_B], b);
	(void)interval_of(x, interval);
	if (!x->enough)
		return tw_arena_printf(c->q->arena,
		        "%s of %s is %s in A and %s in B, of %llu and %llu traces: too few to "
		        "distinguish a difference from chance (%d per side are needed).",
		        word, name, a, b, (unsigned long long)s->mix.traces[TW_SIDE_A],
		        (unsigned long long)s->mix.traces[TW_SIDE_B], TW_COMPARE_ENOUGH);
	if (!x->sure)
		return tw_arena_printf(c->q->arena,
		        "%s of %s shows no significant change (%s → %s, 95 %% confidence interval "
		        "%s).",
		        word, name, a, b, interval);
	why = put_cause(c, s->name, x->change > 0, c->q->arena);
	return why ? tw_arena_printf(c->q->arena,
	                     "%s of %s is %s %s (%s → %s, 95 %% confidence interval %s)%s.", word,
	                     name, tw_percent_text(fabs(x->change), false, change),
	                     x->change > 0 ? "slower" : "faster", a, b, interval, why)
	           : NULL;
}

static const char *put_traces(const struct tw_comparison *c, const struct tw_compared_scenario *s)
{
	char a[TEXT_BYTES], b[TEXT_BYTES];

	return tw_arena_printf(c->q->arena,
	        "%s takes %s in A and %s in B: one trace per side shows how these two differ, not "
	        "what is typical.",
	        s->name[0] ? s->name : "The trace",
	        time_text(s->stats[TW_COMPARE_MEAN].of[TW_SIDE_A], a),
	        time_text(s->stats[TW_COMPARE_MEAN].of[TW_SIDE_B], b));
}

static const char *put_empty(const struct tw_comparison *c)
{
	bool a = c->sides[TW_SIDE_A].cells.traces > 0, b = c->sides[TW_SIDE_B].cells.traces > 0;
	const char *label = c->sides[a ? TW_SIDE_B : TW_SIDE_A].label;

	if (a && b)
		return "A and B have no scenario in common, so their lengths are not compared.";
	if (a || b)
		return tw_arena_printf(c->q->arena,
		        "%s (%s) has no traces on these days, so nothing can be compared.",
		        a ? "B" : "A", label);
	return "Neither side has traces on these days, so nothing can be compared.";
}

enum tw_status tw_comparison_describe(struct tw_comparison *c, struct tw_err *err)
{
	const struct tw_compared_scenario *s = main_scenario(c);

	if (!s)
		c->sentence = put_empty(c);
	else if (c->sides[0].trace_id && c->sides[1].trace_id)
		c->sentence = put_traces(c, s);
	else
		c->sentence = put_stat_change(c, s);
	return c->sentence ? TW_OK : tw_oom(err);
}

/* --- Markdown --- */

/* Names are data: escapes all markup in them. */
static void put_plain(struct tw_buf *out, struct tw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] && strchr("\\`*_{}[]<>#|~&", s.ptr[i]))
			(void)tw_buf_add_u8(out, '\\');
		(void)tw_buf_add_u8(out, s.ptr[i] == '\n' ? ' ' : (uint8_t)s.ptr[i]);
	}
}

static void put_side(const struct tw_comparison *c, int side, struct tw_buf *out)
{
	(void)tw_buf_printf(out, "- %c: ", side == TW_SIDE_A ? 'A' : 'B');
	put_plain(out, tw_str_of(c->sides[side].label));
	(void)tw_buf_printf(
	        out, ", %llu traces\n", (unsigned long long)c->sides[side].cells.traces);
}

static void put_stat(const struct tw_compared_scenario *s, int k, struct tw_buf *out)
{
	const struct tw_compared_stat *x = &s->stats[k];
	char a[TEXT_BYTES], b[TEXT_BYTES], change[TW_FIGURE_BYTES], interval[TW_INTERVAL_BYTES];

	(void)tw_buf_add_str(out, TW_STR("| "));
	put_plain(out, tw_str_of(s->name[0] ? s->name : "(none)"));
	(void)tw_buf_printf(out, " | %s | %s | %s | %s | ", tw_compare_stat_names[k],
	        time_text(x->of[TW_SIDE_A], a), time_text(x->of[TW_SIDE_B], b),
	        x->of[TW_SIDE_A] > 0 ? tw_percent_text(x->change, true, change) : "");
	if (x->enough)
		(void)tw_buf_printf(
		        out, "%s | %s |\n", interval_of(x, interval), x->sure ? "yes" : "no");
	else
		(void)tw_buf_printf(out, "too few traces | no |\n");
}

static void put_method(const struct tw_compared_method *m, struct tw_buf *out)
{
	double change = m->self.of[TW_SIDE_B] - m->self.of[TW_SIDE_A];
	double margin = tw_compare_margin(&m->self);
	char percent[TW_FIGURE_BYTES];
	char a[TEXT_BYTES], b[TEXT_BYTES], by[TEXT_BYTES], within[TEXT_BYTES];

	(void)tw_buf_add_str(out, TW_STR("| "));
	put_plain(out, m->name);
	(void)tw_buf_printf(out, " | %s | %s | %s%s", time_text(m->self.of[TW_SIDE_A], a),
	        time_text(m->self.of[TW_SIDE_B], b), change > 0 ? "+" : "", time_text(change, by));
	if (isfinite(margin))
		(void)tw_buf_printf(out, " ± %s", time_text(margin, within));
	if (m->scenario && m->sure && m->in.of[TW_SIDE_A] > 0) {
		(void)tw_buf_printf(out, " (%s in ",
		        tw_percent_text(
		                m->in.of[TW_SIDE_B] / m->in.of[TW_SIDE_A] - 1, true, percent));
		put_plain(out, tw_str_of(m->scenario[0] ? m->scenario : "(none)"));
		(void)tw_buf_add_str(out, TW_STR(")"));
	}
	(void)tw_buf_printf(out, " | %.0f %% | %.0f %% | %s |\n", 100 * m->share.of[TW_SIDE_A],
	        100 * m->share.of[TW_SIDE_B], m->sure ? "yes" : "no");
}

static void put_mix(const struct tw_comparison *c, struct tw_buf *out)
{
	if (c->mix.corrected)
		(void)tw_buf_printf(out,
		        "\nB is weighted by A's mix of scenarios and device classes (low, mid, "
		        "high or unknown, by memory).\n");
	if (c->mix.note[0])
		(void)tw_buf_printf(out, "\n%s\n", c->mix.note);
}

void tw_comparison_markdown(const struct tw_comparison *c, struct tw_buf *out)
{
	(void)tw_buf_add_str(out, TW_STR("**"));
	put_plain(out, tw_str_of(c->sentence));
	(void)tw_buf_add_str(out, TW_STR("**\n\n"));
	put_side(c, TW_SIDE_A, out);
	put_side(c, TW_SIDE_B, out);
	if (!c->mix.all[TW_SIDE_A] || !c->mix.all[TW_SIDE_B])
		return;
	put_mix(c, out);
	(void)tw_buf_printf(out,
	        "\n| Scenario | | A | B | Change | 95 %% interval | Significant |\n"
	        "|---|---|--:|--:|--:|---|---|\n");
	for (size_t i = 0; i < c->n_scenarios; i++)
		for (int k = 0; k < TW_COMPARE_STATS; k++)
			put_stat(&c->scenarios[i], k, out);
	(void)tw_buf_printf(out,
	        "\n| Method | Self A | Self B | Change per trace | In A | In B | Significant |\n"
	        "|---|--:|--:|--:|--:|--:|---|\n");
	for (size_t i = 0; i < c->n_methods && i < ROWS; i++)
		put_method(&c->methods[i], out);
	(void)tw_buf_printf(out,
	        "\n%llu methods in all. Percentiles are of a side's traces together, accurate to "
	        "within %.1f %%; intervals come from %d resamples of the traces. A regression "
	        "states the mean change per device class and day, which may differ.\n",
	        (unsigned long long)c->n_methods, 100 * TW_SKETCH_ERROR, TW_COMPARE_RESAMPLES);
}
