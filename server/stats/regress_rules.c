/*
 * regress_rules.c - the thresholds as JSON, with the valid range of each.
 */
#include <math.h>

#include "decoder/base/lookup.h"
#include "server/stats/regress.h"

const struct tw_regress_rules tw_regress_defaults = {{0.1, 4, 30, 2}, 28, 0.01};

#define AT(member) offsetof(struct tw_regress_rules, member)

static const struct number {
	const char *name, *what;
	size_t offset;
	bool is_integer; /* stored as uint32_t; otherwise as double */
	double least, most;
} numbers[] = {
        {"min_change", "a share, as 0.1 for a tenth", AT(shift.min_change), false, 0.01, 10},
        {"certainty", "standard errors", AT(shift.certainty), false, 2, 20},
        {"min_traces", "traces on each side of a change", AT(shift.min_traces), true, 5, 1000000},
        {"min_days", "days on each side of a change", AT(shift.min_days), true, 1, 14},
        {"window_days", "days that are analysed", AT(window_days), true, 4, TW_REGRESS_DAYS},
        {"min_share", "a share of the scenario's median", AT(min_share), false, 0, 1},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static json_t *number_json(const struct tw_regress_rules *r, const struct number *n)
{
	const void *at = (const char *)r + n->offset;

	return n->is_integer ? json_integer(*(const uint32_t *)at) : json_real(*(const double *)at);
}

json_t *tw_regress_rules_json(const struct tw_regress_rules *rules)
{
	json_t *doc = json_object();

	for (size_t i = 0; doc && i < NUMBERS; i++)
		if (json_object_set_new(doc, numbers[i].name, number_json(rules, &numbers[i])) !=
		        0) {
			json_decref(doc);
			doc = NULL;
		}
	return doc;
}

static enum tw_status read_number(const struct number *n, const json_t *value,
        struct tw_regress_rules *io, struct tw_err *err)
{
	const double v = json_number_value(value);
	void *at = (char *)io + n->offset;

	if (!json_is_number(value) || v < n->least || v > n->most ||
	        (n->is_integer && v != floor(v)))
		return tw_fail(err, TW_BAD_REQUEST, "%s is %s: %s from %g to %g", n->name, n->what,
		        n->is_integer ? "a whole number" : "a number", n->least, n->most);
	if (n->is_integer)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(double *)at = v;
	return TW_OK;
}

enum tw_status tw_regress_rules_read(
        const json_t *doc, struct tw_regress_rules *io, struct tw_err *err)
{
	struct tw_regress_rules rules = *io;
	const char *name;
	json_t *value;

	if (!json_is_object(doc))
		return tw_fail(err, TW_BAD_REQUEST, "the rules must be a JSON object");
	json_object_foreach((json_t *)(uintptr_t)doc, name, value)
	{
		const struct number *n = TW_LOOKUP(numbers, NUMBERS, name, name);
		enum tw_status st = n ? read_number(n, value, &rules, err)
		                      : tw_fail(err, TW_BAD_REQUEST,
		                                "unknown rule %.40s; the rules are min_change, "
		                                "certainty, min_traces, min_days, window_days and "
		                                "min_share",
		                                name);

		if (st != TW_OK)
			return st;
	}
	if (rules.window_days < 2 * rules.shift.min_days)
		return tw_fail(err, TW_BAD_REQUEST, "window_days must be at least twice min_days");
	*io = rules;
	return TW_OK;
}
