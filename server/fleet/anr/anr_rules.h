/*
 * anr_rules.h - a project's rules for groups of ANRs: frames that are not blamed, groups to merge,
 * names of groups.
 *
 * Stored per project as JSON, applied in order:
 *   {"rules":[{"action":"skip","frame":"com.app.log."},
 *             {"action":"merge","name":"Image
 * loading","frame":"/^com\\.app\\.image\\./","kind":"io"},
 *             {"action":"name","name":"Cart deadlock","groups":["0123456789abcdef"]}]}
 * `frame` and `lock` are text that a name contains, ignoring case, or an expression between slashes
 * (match.h, whose steps are bounded); `kind` is a word of tw_anr_kinds; `groups` are keys before
 * merging.  All conditions of a rule must hold.  "enabled":false disables a rule.  Thread: one at a
 * time.
 */
#ifndef TW_ANR_RULES_H
#define TW_ANR_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/catalogue/anr/catalogue_anr_index.h"

enum {
	TW_ANR_RULES_MAX = 100,
	TW_ANR_RULE_NAME_BYTES = 100,
	TW_ANR_RULE_PATTERN_BYTES = 200,
	TW_ANR_RULE_GROUPS_MAX = 50
};

/* The kinds of causes (anr_cause.c); ends with NULL. */
extern const char *const tw_anr_kinds[];

struct tw_anr_rules;

/* doc NULL: no rules.  TW_BAD_REQUEST names the rule and the error.  Texts are borrowed from doc,
 * which must outlive the rules. */
enum tw_status tw_anr_rules_new(
        const json_t *doc, struct tw_anr_rules **ret, struct tw_err *err) TW_MUST_USE;
extern const struct tw_setting tw_anr_setting; /* catalogue_setting.h; a ruleset */
struct tw_anr_rules *tw_anr_rules_free(struct tw_anr_rules *r);

/* Returns whether a frame of this name is never blamed. */
bool tw_anr_rules_skip(const struct tw_anr_rules *r, struct tw_str frame);

struct tw_anr_subject { /* a cause, as input of rules */
	const char *kind, *key;
	const char *const *frames, *const *locks; /* complete names */
	size_t n_frames, n_locks;
};
/* The name of the first matching merge rule, NULL if none; and that of the first matching name
 * rule. */
void tw_anr_rules_apply(const struct tw_anr_rules *r, const struct tw_anr_subject *s,
        const char **ret_merged, const char **ret_named);

#endif
