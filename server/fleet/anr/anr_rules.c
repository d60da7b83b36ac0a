#include "server/fleet/anr/anr_rules.h"

#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/text/match.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"

enum act { SKIP, MERGE, NAME, ACTS };
static const char *const acts[ACTS + 1] = {"skip", "merge", "name", NULL};
static const char *const members[] = {
        "action", "name", "frame", "lock", "kind", "groups", "enabled", NULL};

struct rule {
	enum act act;
	bool off;
	const char *name, *kind; /* NULL: not set */
	struct tw_match *frame, *lock;
	const json_t *groups;
};

struct tw_anr_rules {
	size_t n;
	struct rule rules[];
};

/* --- reading --- */

static enum tw_status wrong(size_t at, const char *what, struct tw_err *err)
{
	return tw_fail(err, TW_BAD_REQUEST, "rule %zu: %s", at + 1, what);
}

static bool is_in(const char *const *words, const char *word)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

static enum tw_status check_members(const json_t *o, size_t at, struct tw_err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return wrong(at, "a rule is an object", err);
	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	{
		if (!is_in(members, name))
			return tw_fail(err, TW_BAD_REQUEST,
			        "rule %zu: %.40s is not a member of a rule; the members are "
			        "action, name, frame, lock, kind, groups and enabled",
			        at + 1, name);
		if (strcmp(name, "enabled") == 0 && !json_is_boolean(v))
			return wrong(at, "enabled must be true or false", err);
		if (strcmp(name, "enabled") != 0 && strcmp(name, "groups") != 0 &&
		        !json_is_string(v))
			return wrong(at, "action, name, frame, lock and kind must be texts", err);
	}
	return TW_OK;
}

/* "/expression/", or text. */
static enum tw_status read_pattern(
        const json_t *o, const char *key, size_t at, struct tw_match **ret, struct tw_err *err)
{
	const json_t *v = json_object_get(o, key);
	const char *text = json_string_value(v);
	size_t len = json_string_length(v);
	char inner[TW_ANR_RULE_PATTERN_BYTES + 1];
	bool regex = len > 2 && text[0] == '/' && text[len - 1] == '/';
	struct tw_err why;
	enum tw_status st;

	if (!v)
		return TW_OK;
	if (len == 0 || len > TW_ANR_RULE_PATTERN_BYTES || tw_str_has_control(tw_str_of(text)) ||
	        strlen(text) != len)
		return tw_fail(err, TW_BAD_REQUEST,
		        "rule %zu: %s has 1 to %d bytes and no control characters", at + 1, key,
		        TW_ANR_RULE_PATTERN_BYTES);
	memcpy(inner, text + regex, len - 2 * (size_t)regex);
	inner[len - 2 * (size_t)regex] = '\0';
	st = tw_match_new(inner, regex, ret, &why);
	if (st == TW_BAD_REQUEST)
		return tw_fail(err, st, "rule %zu: %s: %.120s", at + 1, key, why.msg);
	if (st != TW_OK)
		tw_err_copy(err, &why);
	return st;
}

static bool is_key(const char *s)
{
	return s && strspn(s, "0123456789abcdef") == TW_ANR_KEY_BYTES - 1 &&
	       s[TW_ANR_KEY_BYTES - 1] == '\0';
}

static enum tw_status read_groups(
        const json_t *o, size_t at, const json_t **ret, struct tw_err *err)
{
	const json_t *v = json_object_get(o, "groups");

	*ret = v;
	if (!v)
		return TW_OK;
	if (!json_is_array(v) || json_array_size(v) == 0 ||
	        json_array_size(v) > TW_ANR_RULE_GROUPS_MAX)
		return wrong(at, "groups must be a list of 1 to 50 keys", err);
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!is_key(json_string_value(json_array_get(v, i))))
			return wrong(at, "a key of a group has 16 digits, 0-9 and a-f", err);
	return TW_OK;
}

static enum tw_status read_words(struct rule *r, const json_t *o, size_t at, struct tw_err *err)
{
	const char *act = json_string_value(json_object_get(o, "action"));
	const json_t *name = json_object_get(o, "name");

	r->act = SKIP;
	while (r->act < ACTS && (!act || strcmp(acts[r->act], act) != 0))
		r->act++;
	if (r->act == ACTS)
		return wrong(at, "action must be skip, merge or name", err);
	r->off = json_is_false(json_object_get(o, "enabled"));
	r->kind = json_string_value(json_object_get(o, "kind"));
	r->name = json_string_value(name);
	if (r->kind && !is_in(tw_anr_kinds, r->kind))
		return tw_fail(err, TW_BAD_REQUEST,
		        "rule %zu: unknown kind %.40s; the kinds are deadlock, lock, path, io, "
		        "binder, no_cpu, gc, sleep, wait, run, idle and unknown",
		        at + 1, r->kind);
	if (r->act != SKIP &&
	        (!r->name || !r->name[0] || json_string_length(name) > TW_ANR_RULE_NAME_BYTES ||
	                tw_str_has_control(tw_str_of(r->name))))
		return wrong(at, "a name has 1 to 100 bytes and no control characters", err);
	return TW_OK;
}

static enum tw_status check_whole(const struct rule *r, size_t at, struct tw_err *err)
{
	if (r->act == SKIP && (!r->frame || r->lock || r->kind || r->groups || r->name))
		return wrong(at, "a skip rule has only the frame that is not blamed", err);
	if (r->act != SKIP && !r->frame && !r->lock && !r->kind && !r->groups)
		return wrong(at, "select ANRs by frame, lock, kind or groups", err);
	return TW_OK;
}

static enum tw_status read_rule(struct rule *r, const json_t *o, size_t at, struct tw_err *err)
{
	enum tw_status st = check_members(o, at, err);

	if (st == TW_OK)
		st = read_words(r, o, at, err);
	if (st == TW_OK)
		st = read_pattern(o, "frame", at, &r->frame, err);
	if (st == TW_OK)
		st = read_pattern(o, "lock", at, &r->lock, err);
	if (st == TW_OK)
		st = read_groups(o, at, &r->groups, err);
	return st == TW_OK ? check_whole(r, at, err) : st;
}

enum tw_status tw_anr_rules_new(const json_t *doc, struct tw_anr_rules **ret, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "rules");
	size_t n = json_array_size(list);
	struct tw_anr_rules *r;
	enum tw_status st = TW_OK;

	if (doc && (!json_is_array(list) || n > TW_ANR_RULES_MAX))
		return tw_fail(err, TW_BAD_REQUEST, "rules must be a list of at most %d rules",
		        TW_ANR_RULES_MAX);
	r = tw_mem_zalloc(1, sizeof *r + n * sizeof *r->rules);
	if (!r)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		r->n++;
		st = read_rule(&r->rules[i], json_array_get(list, i), i, err);
	}
	if (st == TW_OK)
		*ret = r;
	else
		tw_anr_rules_free(r);
	return st;
}

struct tw_anr_rules *tw_anr_rules_free(struct tw_anr_rules *r)
{
	for (size_t i = 0; r && i < r->n; i++) {
		tw_match_free(r->rules[i].frame);
		tw_match_free(r->rules[i].lock);
	}
	tw_mem_free(r);
	return NULL;
}

static enum tw_status check(const json_t *doc, struct tw_err *err)
{
	struct tw_anr_rules *rules = NULL;
	enum tw_status st = tw_anr_rules_new(doc, &rules, err);

	tw_anr_rules_free(rules);
	return st;
}

const struct tw_setting tw_anr_setting = {TW_RULESET_ANR, check};

/* --- matching --- */

bool tw_anr_rules_skip(const struct tw_anr_rules *r, struct tw_str frame)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->rules[i].act == SKIP && !r->rules[i].off &&
		        tw_match_has(r->rules[i].frame, frame))
			return true;
	return false;
}

static bool any_has(const struct tw_match *m, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tw_match_has(m, tw_str_of(names[i])))
			return true;
	return false;
}

static bool lists(const json_t *groups, const char *key)
{
	for (size_t i = 0; i < json_array_size(groups); i++)
		if (strcmp(json_string_value(json_array_get(groups, i)), key) == 0)
			return true;
	return false;
}

static bool holds(const struct rule *r, const struct tw_anr_subject *s)
{
	return !r->off && (!r->kind || strcmp(r->kind, s->kind) == 0) &&
	       (!r->groups || lists(r->groups, s->key)) &&
	       (!r->frame || any_has(r->frame, s->frames, s->n_frames)) &&
	       (!r->lock || any_has(r->lock, s->locks, s->n_locks));
}

void tw_anr_rules_apply(const struct tw_anr_rules *r, const struct tw_anr_subject *s,
        const char **ret_merged, const char **ret_named)
{
	*ret_merged = *ret_named = NULL;
	for (size_t i = 0; i < r->n; i++) {
		const struct rule *rule = &r->rules[i];
		const char **at = rule->act == MERGE ? ret_merged : ret_named;

		if (rule->act != SKIP && !*at && holds(rule, s))
			*at = rule->name;
	}
}
