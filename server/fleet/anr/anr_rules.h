/*
 * anr_rules.h - a project's rules for groups of ANRs: what is not blamed, what belongs together,
 * what a group is called.
 *
 * As JSON, which a project stores, in the order in which they are tried:
 *   {"rules":[{"do":"skip","frame":"com.app.log."},
 *             {"do":"merge","name":"Image loading","frame":"/^com\\.app\\.image\\./","kind":"io"},
 *             {"do":"name","name":"Cart deadlock","groups":["0123456789abcdef"]}]}
 * `frame` and `lock` are text that a name contains, without regard to case, or an expression
 * between slashes (match.h, whose steps are bounded); `kind` is a word of tw_anr_kinds; `groups`
 * are keys as they are before anything is merged.  What a rule says must all hold.  "on":false
 * rests a rule. Thread: one at a time.
 */
#ifndef TW_ANR_RULES_H
#define TW_ANR_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "decoder/base/err.h"
#include "decoder/base/str.h"
#include "server/catalogue/anr/catalogue_hang.h"

enum {
	TW_ANR_RULES_MAX = 100,
	TW_ANR_RULE_NAME_BYTES = 100,
	TW_ANR_RULE_PATTERN_BYTES = 200,
	TW_ANR_RULE_GROUPS_MAX = 50
};

/* What kinds of causes there are (anr_cause.c); ended by NULL. */
extern const char *const tw_anr_kinds[];

struct tw_anr_rules;

/* doc NULL: no rules.  TW_BAD_REQUEST names the rule and what is wrong with it.  Texts are borrowed
 * from doc, which must live as long. */
enum tw_status tw_anr_rules_new(
        const json_t *doc, struct tw_anr_rules **ret, struct tw_err *err) TW_MUST_USE;
struct tw_anr_rules *tw_anr_rules_free(struct tw_anr_rules *r);

/* Is a frame of this name never blamed? */
bool tw_anr_rules_skip(const struct tw_anr_rules *r, struct tw_str frame);

struct tw_anr_subject { /* a cause, as rules see it */
	const char *kind, *key;
	const char *const *frames, *const *locks; /* whole names */
	size_t n_frames, n_locks;
};
/* The name of the first merge rule that holds, NULL for none; and of the first name rule. */
void tw_anr_rules_apply(const struct tw_anr_rules *r, const struct tw_anr_subject *s,
        const char **ret_merged, const char **ret_named);

#endif
