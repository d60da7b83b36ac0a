/*
 * detect_rules.c - the default detectors, and the matching of rules.
 */
#include "server/query/detect/detect_rules.h"

#include <stdio.h>

static const struct {
	const char *id, *kind, *title, *methods, *notes, *message;
	int threshold_ms;
} defaults[] = {
#define DETECTOR(id, kind, threshold_ms, title, methods, notes, message)                           \
	{id, kind, title, methods, notes, message, threshold_ms},
#include "server/query/detect/detect_rules.def"
#undef DETECTOR
};

enum { DEFAULTS = sizeof defaults / sizeof *defaults, SLOW_MS = 16, FROZEN_MS = 700 };

/* Names may contain spaces, so they are separated by |. */
static json_t *list_of(const char *text)
{
	struct tw_str rest = tw_str_of(text);
	json_t *list = json_array();

	while (rest.len) {
		struct tw_str one = tw_str_split(&rest, '|');

		(void)json_array_append_new(list, json_stringn(one.ptr, one.len));
	}
	return list;
}

static json_t *default_rule(size_t i)
{
	json_t *rule = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:o}", "id", defaults[i].id,
	        "kind", defaults[i].kind, "title", defaults[i].title, "threads", "main",
	        "threshold_ms", defaults[i].threshold_ms, "severity", "warning", "message",
	        defaults[i].message, "methods", list_of(defaults[i].methods));

	if (rule && defaults[i].notes[0])
		(void)json_object_set_new(rule, "notes", list_of(defaults[i].notes));
	return rule;
}

json_t *tw_detect_defaults(void)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < DEFAULTS; i++)
		(void)json_array_append_new(rules, default_rule(i));
	return json_pack("{s:o, s:{s:i, s:i}}", "rules", rules, "frames", "slow_ms", SLOW_MS,
	        "frozen_ms", FROZEN_MS);
}

/* --- matching --- */

static bool fits(struct tw_detect_rule *rule, struct tw_str name)
{
	struct tw_err why;
	bool yes = false;

	for (size_t i = 0; !yes && i < rule->n_patterns; i++) {
		const struct tw_name_pattern *p = &rule->patterns[i];

		if (rule->left_out[i])
			continue;
		if (tw_name_pattern_check(p, name, &yes, &why) == TW_OK)
			continue;
		yes = false;
		if (!rule->costly_why[0])
			(void)snprintf(
			        rule->costly_why, sizeof rule->costly_why, "%.199s", why.msg);
		rule->left_out[i] = true;
	}
	return yes;
}

uint64_t tw_detect_rules_of(struct tw_detect_rules *r, struct tw_str name)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->rules[i].on && fits(&r->rules[i], name))
			bits |= UINT64_C(1) << i;
	return bits;
}

static bool is_about(
        const struct tw_detect_rule *rule, const struct tw_thread_info *t, bool is_main)
{
	if (strcmp(rule->threads, "all") == 0)
		return true;
	if (!t)
		return false;
	if (strcmp(rule->threads, "main") == 0)
		return is_main;
	if (strcmp(rule->threads, "others") == 0)
		return !is_main;
	return tw_name_fits(t->name, tw_str_of(rule->threads));
}

uint64_t tw_detect_rules_on(
        const struct tw_detect_rules *r, const struct tw_thread_info *t, bool is_main)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->rules[i].on && is_about(&r->rules[i], t, is_main))
			bits |= UINT64_C(1) << i;
	return bits;
}
