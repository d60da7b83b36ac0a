/*
 * regress_rules.c - the thresholds as JSON, with the valid range of each.
 */
#include <math.h>
#include <string.h>

#include "server/stats/change_point.h"
#include "server/stats/regress.h"

const struct tw_regress_rules tw_regress_defaults = {{0.1, 4, 30, 2}, 28, 0.01};

struct number {
	const char *name, *what;
	double least, most;
	bool is_integer;
};
static const struct number numbers[] = {
        {"min_change", "a share, as 0.1 for a tenth", 0.01, 10, false},
        {"certainty", "standard errors", 2, 20, false},
        {"min_traces", "traces on each side of a change", 5, 1000000, true},
        {"min_days", "days on each side of a change", 1, 14, true},
        {"window_days", "days that are analysed", 4, TW_REGRESS_DAYS, true},
        {"min_share", "a share of the scenario's median", 0, 1, false},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void take(const struct tw_regress_rules *r, double v[NUMBERS])
{
	const double all[NUMBERS] = {r->shift.min_change, r->shift.certainty, r->shift.min_traces,
	        r->shift.min_days, r->window_days, r->min_share};

	memcpy(v, all, sizeof all);
}

json_t *tw_regress_rules_json(const struct tw_regress_rules *rules)
{
	json_t *doc = json_object();
	double v[NUMBERS];

	take(rules, v);
	for (size_t i = 0; doc && i < NUMBERS; i++) {
		json_t *n =
		        numbers[i].is_integer ? json_integer((json_int_t)v[i]) : json_real(v[i]);

		if (json_object_set_new(doc, numbers[i].name, n) == 0)
			continue;
		json_decref(doc);
		doc = NULL;
	}
	return doc;
}

static enum tw_status read_number(
        const struct number *n, const json_t *at, double *ret, struct tw_err *err)
{
	double v = json_number_value(at);

	if (json_is_number(at) && v >= n->least && v <= n->most &&
	        (!n->is_integer || v == floor(v))) {
		*ret = v;
		return TW_OK;
	}
	return tw_fail(err, TW_BAD_REQUEST, "%s is %s: %s from %g to %g", n->name, n->what,
	        n->is_integer ? "a whole number" : "a number", n->least, n->most);
}

static const struct number *find(const char *name, size_t *ret_at)
{
	for (*ret_at = 0; *ret_at < NUMBERS; (*ret_at)++)
		if (strcmp(numbers[*ret_at].name, name) == 0)
			return &numbers[*ret_at];
	return NULL;
}

static enum tw_status read_all(json_t *doc, double v[NUMBERS], struct tw_err *err)
{
	enum tw_status st = TW_OK;
	const char *name;
	json_t *at;

	json_object_foreach(doc, name, at)
	{
		size_t i;
		const struct number *n = find(name, &i);

		st = n ? read_number(n, at, &v[i], err)
		       : tw_fail(err, TW_BAD_REQUEST,
		                 "unknown rule %.40s; the rules are min_change, certainty, "
		                 "min_traces, min_days, window_days and min_share",
		                 name);
		if (st != TW_OK)
			break;
	}
	return st;
}

enum tw_status tw_regress_rules_read(
        const json_t *doc, struct tw_regress_rules *io, struct tw_err *err)
{
	json_t *copy = json_is_object(doc) ? json_deep_copy(doc) : NULL;
	enum tw_status st;
	double v[NUMBERS];

	if (!json_is_object(doc))
		return tw_fail(err, TW_BAD_REQUEST, "the rules must be a JSON object");
	take(io, v);
	st = copy ? read_all(copy, v, err) : tw_oom(err);
	json_decref(copy);
	if (st == TW_OK && v[4] < 2 * v[3])
		st = tw_fail(err, TW_BAD_REQUEST, "window_days must be at least twice min_days");
	if (st == TW_OK) {
		io->shift = (struct tw_change_rules){v[0], v[1], (uint32_t)v[2], (uint32_t)v[3]};
		io->window_days = (uint32_t)v[4];
		io->min_share = v[5];
	}
	return st;
}
