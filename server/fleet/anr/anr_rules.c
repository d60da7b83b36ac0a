#include "server/fleet/anr/anr_rules.h"

#include <string.h>

#include "decoder/base/arena.h"
#include "server/base/text/match.h"
#include "server/base/text/members.h"
#include "server/catalogue/access/catalogue_ruleset.h"
#include "server/catalogue/access/catalogue_setting.h"

enum act { SKIP, MERGE, NAME };
static const char *const acts[] = {"skip", "merge", "name", NULL};
enum { ANY_KIND = 1000 };

struct rule {
	unsigned action; /* enum act */
	unsigned kind;   /* of tw_anr_kinds, or ANY_KIND */
	bool enabled;
	const char *name, *frame_text, *lock_text; /* NULL: not set */
	struct tw_match *frame, *lock;
	const json_t *groups;
};

struct tw_anr_rules {
	size_t n;
	struct rule rules[];
};

/* --- reading --- */

static bool is_key(const char *s)
{
	return strspn(s, "0123456789abcdef") == TW_ANR_KEY_BYTES - 1 &&
	       s[TW_ANR_KEY_BYTES - 1] == '\0';
}

#define A_NAME "a text of 1 to 100 bytes without control characters"
#define PATTERN(name_, member)                                                                     \
	{                                                                                          \
		.name = (name_), .kind = TW_MEMBER_TEXT, .offset = offsetof(struct rule, member),  \
		.min = 1, .max = TW_ANR_RULE_PATTERN_BYTES,                                        \
		.form = "a text of 1 to 200 bytes without control characters"                      \
	}
static const struct tw_member members[] = {
        TW_MEMBER(TW_MEMBER_ENUM, struct rule, action, .required = true, .enum_names = acts),
        TW_MEMBER(TW_MEMBER_TEXT, struct rule, name, .min = 1, .max = TW_ANR_RULE_NAME_BYTES,
                .form = A_NAME),
        PATTERN("frame", frame_text),
        PATTERN("lock", lock_text),
        TW_MEMBER(TW_MEMBER_ENUM, struct rule, kind, .enum_names = tw_anr_kinds),
        TW_MEMBER(TW_MEMBER_TEXTS, struct rule, groups, .min = 1, .max = TW_ANR_RULE_GROUPS_MAX,
                .fits = is_key, .form = "a group's key of 16 digits, 0-9 and a-f"),
        TW_MEMBER(TW_MEMBER_FLAG, struct rule, enabled),
        {0},
};

/* "/expression/", or text. */
static enum tw_status read_pattern(
        const char *text, const char *key, struct tw_match **ret, struct tw_err *err)
{
	char inner[TW_ANR_RULE_PATTERN_BYTES + 1];
	size_t len = text ? strlen(text) : 0;
	bool regex = len > 2 && text[0] == '/' && text[len - 1] == '/';

	if (!text)
		return TW_OK;
	memcpy(inner, text + regex, len - 2 * (size_t)regex);
	inner[len - 2 * (size_t)regex] = '\0';
	return tw_fail_within(tw_match_new(inner, regex, ret, err), err, "%s", key);
}

static enum tw_status check_whole(const struct rule *r, struct tw_err *err)
{
	const bool any = r->lock || r->kind != ANY_KIND || r->groups;

	if (r->action == SKIP && (!r->frame || any || r->name))
		return tw_fail(
		        err, TW_BAD_REQUEST, "a skip rule has only the frame that is not blamed");
	if (r->action != SKIP && !r->name)
		return tw_fail(err, TW_BAD_REQUEST, "name must be " A_NAME);
	if (r->action != SKIP && !r->frame && !any)
		return tw_fail(err, TW_BAD_REQUEST, "select ANRs by frame, lock, kind or groups");
	return TW_OK;
}

static enum tw_status read_rule(struct rule *r, const json_t *o, struct tw_err *err)
{
	enum tw_status st = tw_members_known(o, members, err);

	r->kind = ANY_KIND;
	r->enabled = true;
	if (st == TW_OK)
		st = tw_members_read(o, members, r, err);
	if (st == TW_OK)
		st = read_pattern(r->frame_text, "frame", &r->frame, err);
	if (st == TW_OK)
		st = read_pattern(r->lock_text, "lock", &r->lock, err);
	return st == TW_OK ? check_whole(r, err) : st;
}

enum tw_status tw_anr_rules_new(const json_t *doc, struct tw_anr_rules **ret, struct tw_err *err)
{
	const json_t *list = json_object_get(doc, "rules");
	size_t n = json_array_size(list);
	struct tw_anr_rules *r;
	struct tw_err why;
	enum tw_status st = TW_OK;

	if (doc && (!json_is_array(list) || n > TW_ANR_RULES_MAX))
		return tw_fail(err, TW_BAD_REQUEST, "rules must be a list of at most %d rules",
		        TW_ANR_RULES_MAX);
	r = tw_mem_zalloc(1, sizeof *r + n * sizeof *r->rules);
	if (!r)
		return tw_oom(err);
	for (size_t i = 0; st == TW_OK && i < n; i++) {
		r->n++;
		st = read_rule(&r->rules[i], json_array_get(list, i), &why);
		st = tw_fail_within(st, &why, "rule %zu", i + 1);
	}
	if (st == TW_OK) {
		*ret = r;
	} else {
		tw_err_copy(err, &why);
		tw_anr_rules_free(r);
	}
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
		if (r->rules[i].action == SKIP && r->rules[i].enabled &&
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
	return r->enabled && (r->kind == ANY_KIND || strcmp(tw_anr_kinds[r->kind], s->kind) == 0) &&
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
		const char **at = rule->action == MERGE ? ret_merged : ret_named;

		if (rule->action != SKIP && !*at && holds(rule, s))
			*at = rule->name;
	}
}
