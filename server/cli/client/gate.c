#include "server/cli/client/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/base/str.h"
#include "server/base/text/figure.h"

/* --- conditions --- */

static enum tw_status misunderstood(const char *text, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST,
	        "'%.60s' is not a condition such as 'p95(cold_start) > +10%%' or "
	        "'mean(method:A.b) > 5ms' (p50, p75, p95, p99, mean or share)",
	        text);
}

static bool take_stat(struct tw_str stat, struct tw_gate *g)
{
	static const char *const names[] = {"p50", "p75", "p95", "p99", "mean", "share"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (tw_str_eq(stat, tw_str_of(names[i]))) {
			(void)snprintf(g->stat, sizeof g->stat, "%s", names[i]);
			g->is_share = i == 5;
			return true;
		}
	return false;
}

static bool take_name(struct tw_str name, struct tw_gate *g)
{
	const struct tw_str prefix = TW_STR("method:");

	g->is_method = tw_str_starts(name, prefix);
	if (g->is_method)
		name = tw_str_trim(tw_str_from(name, prefix.len));
	if (!name.len || name.len >= sizeof g->name || (g->is_share && !g->is_method))
		return false;
	memcpy(g->name, name.ptr, name.len);
	g->name[name.len] = '\0';
	return true;
}

static bool take_limit(const char *text, struct tw_gate *g)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"%", 0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end = NULL;
	double v = strtod(text, &end);
	const char *first = text + strspn(text, " ");
	struct tw_str unit;

	if (end == text || !isfinite(v))
		return false;
	unit = tw_str_trim(tw_str_of(end));
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (tw_str_eq(unit, tw_str_of(units[i].unit))) {
			g->relative = i == 0;
			g->limit = g->relative ? v : v * units[i].ns;
			g->budget = *first != '+' && *first != '-' && (!g->relative || g->is_share);
			return !g->is_share || g->relative;
		}
	return false;
}

enum tw_status tw_gate_parse(const char *text, struct tw_gate *ret, struct tw_err *err)
{
	struct tw_gate g = {.below = false};
	struct tw_str all = tw_str_of(text);
	size_t open = tw_str_find(all, TW_STR("("));
	size_t close = tw_str_find_last(all, TW_STR(")"));
	struct tw_str rest;

	if (open >= all.len || close >= all.len || close < open)
		return misunderstood(text, err);
	rest = tw_str_trim(tw_str_from(all, close + 1));
	if (!take_stat(tw_str_trim((struct tw_str){text, open}), &g) ||
	        !take_name(tw_str_trim((struct tw_str){text + open + 1, close - open - 1}), &g))
		return misunderstood(text, err);
	if (!rest.len || (rest.ptr[0] != '>' && rest.ptr[0] != '<'))
		return misunderstood(text, err);
	g.below = rest.ptr[0] == '<';
	if (!take_limit(rest.ptr + 1, &g))
		return misunderstood(text, err);
	*ret = g;
	return TW_OK;
}

/* --- evaluation --- */

struct change { /* values in the unit of the condition */
	double a, b, value, low, high;
	bool enough, sure;
};

static const json_t *find_subject(const struct tw_gate *g, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "scenarios");
	const json_t *one;
	size_t i;

	if (g->is_method) {
		const json_t *m = json_object_get(answer, "method");

		return json_is_object(m) ? m : NULL;
	}
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "scenario"));

		if (name && strcmp(name, g->name) == 0)
			return one;
	}
	return NULL;
}

static double number(const json_t *o, const char *key, const char *member)
{
	return json_number_value(json_object_get(json_object_get(o, key), member));
}

static struct change share_of(const json_t *subject)
{
	const json_t *error = json_object_get(subject, "share_margin");
	double a = json_number_value(json_object_get(subject, "a_share"));
	double b = json_number_value(json_object_get(subject, "b_share"));
	double margin = 100 * json_number_value(error), value = 100 * (b - a);

	return (struct change){100 * a, 100 * b, value, value - margin, value + margin,
	        json_is_number(error), fabs(value) > margin};
}

static struct change stat_of(const struct tw_gate *g, const json_t *subject)
{
	const json_t *s = json_object_get(json_object_get(subject, "stats"), g->stat);
	double a = number(s, "a", "value"), scale = g->relative ? 100 : a;

	return (struct change){a, number(s, "b", "value"), scale * number(s, "change", "value"),
	        scale * number(s, "change", "low"), scale * number(s, "change", "high"),
	        json_is_true(json_object_get(s, "enough_traces")),
	        json_is_true(json_object_get(s, "significant"))};
}

static const char *in_unit(double v, bool relative, char out[TW_FIGURE_BYTES])
{
	if (relative)
		(void)snprintf(out, TW_FIGURE_BYTES, "%+.1f %%", v);
	else
		(void)snprintf(out, TW_FIGURE_BYTES, "%+.3f ms", v / 1e6);
	return out;
}

static void write_reason(const struct tw_gate *g, const struct change *c, const char *end,
        char out[TW_GATE_TEXT_BYTES])
{
	char value[TW_FIGURE_BYTES], low[TW_FIGURE_BYTES], high[TW_FIGURE_BYTES];
	char interval[TW_INTERVAL_BYTES];

	if (g->is_share)
		(void)snprintf(out, TW_GATE_TEXT_BYTES, "%.1f %% -> %.1f %% of the traces (%s)%s",
		        c->a, c->b, in_unit(c->value, true, value), end);
	else
		(void)snprintf(out, TW_GATE_TEXT_BYTES,
		        "%.3f ms -> %.3f ms (%s, 95 %% confidence interval %s)%s", c->a / 1e6,
		        c->b / 1e6, in_unit(c->value, g->relative, value),
		        tw_interval_text(in_unit(c->low, g->relative, low),
		                in_unit(c->high, g->relative, high), interval),
		        end);
}

/* A budget limits the head's value regardless of the base, so it needs no significance test. */
static enum tw_gate_result within_budget(
        const struct tw_gate *g, const struct change *c, char ret_why[TW_GATE_TEXT_BYTES])
{
	if (g->is_share)
		(void)snprintf(ret_why, TW_GATE_TEXT_BYTES, "%.1f %% of the traces", c->b);
	else
		(void)snprintf(ret_why, TW_GATE_TEXT_BYTES, "%.3f ms", c->b / 1e6);
	return (g->below ? c->b < g->limit : c->b > g->limit) ? TW_GATE_FAILS : TW_GATE_PASSES;
}

enum tw_gate_result tw_gate_check(const struct tw_gate *g, const json_t *answer, bool strict,
        char ret_why[TW_GATE_TEXT_BYTES])
{
	const json_t *subject = find_subject(g, answer);
	struct change c;
	bool beyond;

	if (!subject) {
		(void)snprintf(ret_why, TW_GATE_TEXT_BYTES, "neither side has %s %s",
		        g->is_method ? "the method" : "the scenario", g->name);
		return TW_GATE_TOO_LITTLE;
	}
	c = g->is_share ? share_of(subject) : stat_of(g, subject);
	if (!c.enough) {
		(void)snprintf(ret_why, TW_GATE_TEXT_BYTES,
		        "too few traces on one side to evaluate %s", g->stat);
		return TW_GATE_TOO_LITTLE;
	}
	if (g->budget)
		return within_budget(g, &c, ret_why);
	beyond = g->below ? c.value < g->limit : c.value > g->limit;
	write_reason(g, &c,
	        beyond && !c.sure && !strict ? "; beyond the limit, but not significant" : "",
	        ret_why);
	return beyond && (c.sure || strict) ? TW_GATE_FAILS : TW_GATE_PASSES;
}
